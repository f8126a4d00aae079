/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does an address lead to this host? The kernel's route says so, for every address of every
 * interface, without a list that could be out of date.
 *
 * The attack: a name, or an address that looks public, behind which the host itself listens.
 */
#include "gate/dial.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "base/attr.h"
#include "base/fd.h"

/* One message: which way to this address? */
struct route_question {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    uint8_t bytes[16];
};

static struct route_question make_question(const struct tci_address *address)
{
    unsigned char size = address->is_v6 ? 16 : 4;
    struct route_question q = {
        .head = { .nlmsg_len = (uint32_t)(offsetof(struct route_question, bytes) + size),
                  .nlmsg_type = RTM_GETROUTE,
                  .nlmsg_flags = NLM_F_REQUEST,
                  .nlmsg_seq = 1 },
        .route = { .rtm_family = address->is_v6 ? AF_INET6 : AF_INET,
                   .rtm_dst_len = (unsigned char)(size * 8) },
        .attribute = { .rta_len = (unsigned short)(sizeof(struct rtattr) + size),
                       .rta_type = RTA_DST },
    };
    memcpy(q.bytes, address->bytes, size);
    return q;
}

/* What cannot be understood counts as the host's own. */
static bool answer_means_own(const void *bytes, size_t length)
{
    struct nlmsghdr head;
    struct rtmsg route;
    struct nlmsgerr error;
    const uint8_t *body = (const uint8_t *)bytes + NLMSG_HDRLEN;
    if (length < NLMSG_HDRLEN)
        return true;
    memcpy(&head, bytes, sizeof head);
    if (head.nlmsg_type == NLMSG_ERROR && length >= NLMSG_HDRLEN + sizeof error) {
        memcpy(&error, body, sizeof error);
        return error.error != -ENETUNREACH && error.error != -EHOSTUNREACH;
    }
    if (head.nlmsg_type != RTM_NEWROUTE || length < NLMSG_HDRLEN + sizeof route)
        return true;
    memcpy(&route, body, sizeof route);
    return route.rtm_type != RTN_UNICAST && route.rtm_type != RTN_UNREACHABLE &&
           route.rtm_type != RTN_BLACKHOLE && route.rtm_type != RTN_PROHIBIT;
}

bool tci_address_is_own(const struct tci_address *address)
{
    static const uint8_t nowhere[16];
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    struct tci_address asked = *address;
    struct route_question question;
    uint8_t answer[1024];
    tc_cleanup(tci_closep) int fd = -1;
    ssize_t n;
    (void)tci_address_is_mapped(address, &asked);
    /* The kernel takes "no address" for the host itself. */
    if (memcmp(asked.bytes, nowhere, asked.is_v6 ? 16 : 4) == 0)
        return true;
    question = make_question(&asked);
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || sendto(fd, &question, question.head.nlmsg_len, 0,
                         (const struct sockaddr *)&kernel, sizeof kernel) < 0)
        return true;
    /* The kernel has answered before sendto() returned. */
    n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    return n < 0 || answer_means_own(answer, (size_t)n);
}
