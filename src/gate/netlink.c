/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing netlink messages into a fixed buffer, and one acknowledged exchange. */
#include "gate/netlink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* NLA_HDRLEN without its signs; both kinds of padding are to four bytes. */
static const size_t attribute_head = NLMSG_ALIGN(sizeof(struct nlattr));

/* Room for `size` bytes, padded with zeroes as netlink wants it; NULL when there is none. */
static char *take(struct tci_netlink_batch *b, size_t size)
{
    char *at = b->bytes + b->used;
    size_t padded = NLMSG_ALIGN(size);
    if (b->overflow || padded > sizeof b->bytes - b->used) {
        b->overflow = true;
        return NULL;
    }
    memset(at, 0, padded);
    b->used += padded;
    return at;
}

static void message_grown(struct tci_netlink_batch *b)
{
    b->message->nlmsg_len = (uint32_t)(b->bytes + b->used - (char *)b->message);
}

void tci_netlink_begin(struct tci_netlink_batch *b, uint16_t type, uint16_t flags,
                       const void *header, size_t size)
{
    char *at = take(b, NLMSG_HDRLEN + size);
    if (!at)
        return;
    b->message = (struct nlmsghdr *)(void *)at;
    b->message->nlmsg_type = type;
    b->message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    b->message->nlmsg_seq = ++b->sequence;
    memcpy(at + NLMSG_HDRLEN, header, size);
    message_grown(b);
}

void tci_netlink_attribute(struct tci_netlink_batch *b, uint16_t type, const void *data,
                           size_t size)
{
    struct nlattr head = { .nla_len = (uint16_t)(attribute_head + size), .nla_type = type };
    char *at = take(b, attribute_head + size);
    if (!at)
        return;
    memcpy(at, &head, sizeof head);
    memcpy(at + attribute_head, data, size);
    message_grown(b);
}

size_t tci_netlink_open(struct tci_netlink_batch *b, uint16_t type)
{
    size_t opened = b->used;
    tci_netlink_attribute(b, (uint16_t)(type | NLA_F_NESTED), "", 0);
    return opened;
}

void tci_netlink_close(struct tci_netlink_batch *b, size_t opened)
{
    uint16_t length = (uint16_t)(b->used - opened);
    if (!b->overflow)
        memcpy(b->bytes + opened + offsetof(struct nlattr, nla_len), &length, sizeof length);
}

/* The first error wins; an acknowledgement is an error of 0. Each answer is a datagram. */
static int read_answers(int fd)
{
    _Alignas(struct nlmsghdr) char bytes[4096];
    const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)bytes;
    struct nlmsgerr error;
    bool any = false;
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0) {
        if ((size_t)n < NLMSG_HDRLEN + sizeof error || message->nlmsg_type != NLMSG_ERROR)
            return EPROTO;
        memcpy(&error, bytes + NLMSG_HDRLEN, sizeof error);
        if (error.error)
            return -error.error;
        any = true;
    }
    return any ? 0 : EPROTO;
}

int tci_netlink_send(int protocol, struct tci_netlink_batch *b)
{
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    int problem = 0, fd;
    if (b->overflow)
        return ENOBUFS;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return errno;
    if (sendto(fd, b->bytes, b->used, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        problem = errno;
    else
        problem = read_answers(fd);
    (void)close(fd);
    return problem;
}
