/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the raw sockets of a gate: SYNs and lost datagrams come from the cage, and what the program is
 * to see goes back. What is sent has the gate's mark and reaches nobody but this cage.
 */
#include "gate/gate_internal.h"

#include <errno.h>
#include <string.h>

enum {
    packets_per_step = 64,
    lost_max = 200, /* datagrams that are looked at; who sends more is not followed any longer */
};

/* The cage's own, as the route and setup.c have it. Addresses that only stand for a loopback address
 * somewhere else (64:ff9b::7f00:1) are no such thing: they are refused like any other. */
bool tci_gate_is_loopback(const struct tci_address *address)
{
    static const uint8_t one[16] = { [15] = 1 };
    return address->is_v6 ? memcmp(address->bytes, one, sizeof one) == 0 : address->bytes[0] == 127;
}

/* ---- into the cage --------------------------------------------------------------------------------- */

static void inject(struct tci_gate *gate, const struct tci_syn *syn, const uint8_t *packet,
                   size_t length, const struct tci_address *to)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    const bool is_v6 = syn->to.is_v6;
    memcpy(&v4.sin_addr, to->bytes, sizeof v4.sin_addr);
    memcpy(&v6.sin6_addr, to->bytes, sizeof v6.sin6_addr);
    if (is_v6 && gate->fixed_count <= TCI_GATE_SOCKET_TCP6)
        return;
    (void)sendto(gate->sockets[is_v6 ? TCI_GATE_SOCKET_TCP6 : TCI_GATE_SOCKET_TCP4], packet, length,
                 MSG_DONTWAIT | MSG_NOSIGNAL,
                 is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                 is_v6 ? sizeof v6 : sizeof v4);
}

void tci_gate_announce(struct tci_gate *gate, const struct tci_syn *syn)
{
    uint8_t packet[TCI_PACKET_MAX];
    inject(gate, syn, packet, tci_packet_write_syn(syn, packet), &syn->to);
}

/* The program sees what the world said. Silence stays silence. */
void tci_gate_answer(struct tci_gate *gate, const struct tci_syn *syn, int problem)
{
    uint8_t packet[TCI_PACKET_MAX];
    size_t length;
    switch (problem) {
    case ETIMEDOUT:
        return;
    case EHOSTUNREACH:
    case ENETUNREACH:
        length = tci_packet_write_unreachable(syn, problem == ENETUNREACH, packet);
        break;
    default:
        length = tci_packet_write_reset(syn, packet);
    }
    inject(gate, syn, packet, length, &syn->from);
}

/* ---- out of it ------------------------------------------------------------------------------------ */

/* One packet from a raw socket, with where it was going. 0: there is none. */
static size_t receive(int fd, struct iovec into, struct tci_address *ret_from,
                      struct tci_address *ret_to)
{
    struct sockaddr_in6 from = { 0 };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control;
    struct msghdr message = { .msg_name = &from,
                              .msg_namelen = sizeof from,
                              .msg_iov = &into,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    memset(ret_from, 0, sizeof *ret_from);
    memset(ret_to, 0, sizeof *ret_to);
    if (head && head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_PKTINFO) {
        ret_from->is_v6 = ret_to->is_v6 = true;
        memcpy(ret_from->bytes, &from.sin6_addr, 16);
        memcpy(ret_to->bytes, CMSG_DATA(head), 16); /* the first member of in6_pktinfo */
    }
    return n > 0 ? (size_t)n : 0;
}

void tci_gate_syn_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    const bool is_v6 = source->fd != gate->sockets[TCI_GATE_SOCKET_TCP4];
    struct tci_address from, to;
    uint8_t bytes[TCI_PACKET_MAX];
    struct tci_syn syn;
    size_t n;
    (void)events;
    for (int i = 0; i < packets_per_step; i++) {
        n = receive(source->fd, (struct iovec){ bytes, sizeof bytes }, &from, &to);
        if (!n)
            return;
        if (is_v6 ? tci_packet_read_syn6(bytes, n, &from, &to, &syn)
                  : tci_packet_read_syn4(bytes, n, &syn))
            tci_gate_knock(gate, &syn);
        if (tci_gate_is_busy(gate, source))
            return;
    }
}

void tci_gate_lost_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    const bool is_v6 = source->fd != gate->sockets[TCI_GATE_SOCKET_UDP4];
    struct tci_gate_verdict verdict = { .reason = "datagrams do not leave a cage" };
    struct tci_address from, to;
    uint8_t bytes[TCI_PACKET_MAX];
    uint16_t port = 0;
    size_t n;
    (void)events;
    for (int i = 0; i < packets_per_step; i++) {
        n = receive(source->fd, (struct iovec){ bytes, sizeof bytes }, &from, &to);
        if (!n)
            return;
        if (is_v6 && n >= 4)
            port = (uint16_t)(bytes[2] << 8 | bytes[3]);
        if ((is_v6 ? n >= 4 : tci_packet_read_udp4(bytes, n, &to, &port)) &&
            !tci_gate_is_loopback(&to)) {
            struct tci_gate_name *name = tci_gate_name_at(gate, &to);
            tci_gate_refused(gate, "udp", name ? name->host.name : NULL, name ? NULL : &to, port,
                             &verdict);
        }
        if (++gate->lost_seen >= lost_max) {
            source->ready = NULL; /* for good */
            tci_loop_remove(gate->loop, source);
            return;
        }
    }
}
