/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: furnishing a cage's network namespace for its gate (gate/inside.h), before the command exists:
 * addresses, routes, sockets. The sockets go to the supervisor; no copy of them stays here. Built into
 * the jail's init, which has no C library, and into the stage of containers.
 *
 * The attack: a SYN that reaches a listener without the supervisor's word. The filter on each listener
 * drops it: only who may send with the gate's mark can open a connection, and that takes a capability
 * which nobody in the cage has.
 */
#include "backend/furnish.h"

#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/calls.h"
#include "gate/inside.h"

enum {
    af_inet = 2,
    af_inet6 = 10,
    af_netlink = 16,
    sock_stream = 1,
    sock_dgram = 2,
    sock_raw = 3,
    sock_flags = 02000000 | 04000, /* CLOEXEC, NONBLOCK */
    sol_socket = 1,
    so_mark = 36,
    so_attach_filter = 26,
    scm_rights = 1,
    proto_ip = 0,
    proto_tcp = 6,
    proto_udp = 17,
    proto_ipv6 = 41,
    ip_hdrincl = 3,
    ip_pktinfo = 8,
    ip_transparent = 19,
    ipv6_v6only = 26,
    ipv6_hdrincl = 36,
    ipv6_recvpktinfo = 49,
    ipv6_transparent = 75,
    msg_dontwait = 0x40,
    tcp_flags = 13, /* offset in a TCP header */
    syn = 0x02,
    syn_or_ack = 0x12,
    udp_to = 2, /* offset of the destination port */
    everything = -1,
};

static const int on = 1, off;

static bool option(long fd, int level, int name, const void *value, size_t size)
{
    return CALL(setsockopt, fd, level, name, value, size) == 0;
}

/* ---- filters ------------------------------------------------------------------------------------ */

#define NOT_MARKED_OR(drop, keep)                                                                  \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)SKF_AD_OFF + SKF_AD_MARK),                        \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCI_GATE_MARK, drop, keep)
#define KEEP BPF_STMT(BPF_RET | BPF_K, (unsigned)everything)
#define DROP BPF_STMT(BPF_RET | BPF_K, 0)

/* At a listener: a SYN needs the mark; everything else belongs to a connection that has begun. */
static const struct sock_filter only_marked[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, tcp_flags),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, syn_or_ack),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syn, 0, 2),
    NOT_MARKED_OR(0, 1),
    KEEP,
    DROP,
};

/* At the raw sockets: SYNs that the cage sent. IPv4 comes with its header. */
static const struct sock_filter syns4[] = {
    BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
    BPF_STMT(BPF_LD | BPF_B | BPF_IND, tcp_flags),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, syn_or_ack),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syn, 0, 3),
    NOT_MARKED_OR(1, 0),
    KEEP,
    DROP,
};

static const struct sock_filter syns6[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, tcp_flags),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, syn_or_ack),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syn, 0, 3),
    NOT_MARKED_OR(1, 0),
    KEEP,
    DROP,
};

/* Questions to the resolver are served elsewhere, and their answers are ours. */
static const struct sock_filter lost4[] = {
    BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
    BPF_STMT(BPF_LD | BPF_H | BPF_IND, udp_to),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCI_GATE_DNS_PORT, 3, 0),
    BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCI_GATE_DNS_PORT, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, 64),
    DROP,
};

static const struct sock_filter lost6[] = {
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, udp_to),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCI_GATE_DNS_PORT, 3, 0),
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCI_GATE_DNS_PORT, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, 64),
    DROP,
};

static bool filter(long fd, const struct sock_filter *code, size_t size)
{
    const struct sock_fprog program = { .len = (unsigned short)(size / sizeof *code),
                                        .filter = (struct sock_filter *)(uintptr_t)code };
    return option(fd, sol_socket, so_attach_filter, &program, sizeof program);
}

/* ---- addresses and routes ------------------------------------------------------------------------ */

/* Sends what the plan has written down. Answers are there when the sending returns; there must be one,
 * and no error among them. */
static long tell(int protocol, const void *config, const struct tci_sealed_array *messages)
{
    const char *bytes = (const char *)config + messages->offset;
    const unsigned short kernel[6] = { af_netlink };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr body;
        char rest[256];
    } answer = { 0 };
    long fd = CALL(socket, af_netlink, sock_raw | sock_flags, protocol, 0, 0), n, result = -EPROTO;
    if (fd < 0)
        return fd;
    n = CALL6(sendto, fd, bytes, messages->count, 0, kernel, sizeof kernel);
    if (n < 0)
        result = n;
    while (n >= 0 && (n = CALL6(recvfrom, fd, &answer, sizeof answer, msg_dontwait, 0, 0)) > 0) {
        bool is_whole = (size_t)n >= sizeof answer.head + sizeof answer.body.error;
        result = is_whole && answer.head.nlmsg_type == NLMSG_ERROR ? answer.body.error : -EPROTO;
        if (result < 0)
            break;
    }
    (void)CALL(close, fd, 0, 0, 0, 0);
    return result;
}

/* ---- sockets --------------------------------------------------------------------------------------- */

struct address6 {
    unsigned short family, port;
    unsigned int flow;
    unsigned char bytes[16];
    unsigned int scope;
};

/* Bound at `port` for both families, or for IPv4 where there is no IPv6. */
static long bound(int family, int type, uint32_t port, bool transparent)
{
    const struct address6 any = { .family = (unsigned short)family,
                                  .port = (unsigned short)((port & 0xff) << 8 | port >> 8) };
    const size_t size = family == af_inet6 ? sizeof any : 16;
    long fd = CALL(socket, family, type | sock_flags, 0, 0, 0), result;
    if (fd < 0)
        return fd;
    if (family == af_inet6 && !option(fd, proto_ipv6, ipv6_v6only, &off, sizeof off))
        return -EINVAL;
    if (transparent &&
        (!option(fd, proto_ip, ip_transparent, &on, sizeof on) ||
         (family == af_inet6 && !option(fd, proto_ipv6, ipv6_transparent, &on, sizeof on))))
        return -EPERM;
    result = CALL(bind, fd, &any, size, 0, 0);
    return result < 0 ? result : fd;
}

static long listener(int family, uint32_t port, bool transparent)
{
    long fd = bound(family, sock_stream, port, transparent), result;
    if (fd < 0)
        return fd;
    if (!filter(fd, only_marked, sizeof only_marked))
        return -EINVAL;
    result = CALL(listen, fd, TCI_GATE_BACKLOG, 0, 0, 0);
    return result < 0 ? result : fd;
}

/* It answers from whatever address it was asked at. */
static long resolver(int family)
{
    long fd = bound(family, sock_dgram, TCI_GATE_DNS_PORT, true);
    if (fd >= 0 && (family == af_inet6 ? !option(fd, proto_ipv6, ipv6_recvpktinfo, &on, sizeof on)
                                       : !option(fd, proto_ip, ip_pktinfo, &on, sizeof on)))
        return -EINVAL;
    return fd;
}

static long raw(int family, int protocol, const struct sock_filter *code, size_t size)
{
    static const int mark = TCI_GATE_MARK;
    const bool v6 = family == af_inet6;
    long fd = CALL(socket, family, sock_raw | sock_flags, protocol, 0, 0);
    if (fd < 0)
        return fd;
    if (!filter(fd, code, size) ||
        (v6 && !option(fd, proto_ipv6, ipv6_recvpktinfo, &on, sizeof on)))
        return -EINVAL;
    if (protocol == proto_tcp &&
        (!option(fd, sol_socket, so_mark, &mark, sizeof mark) ||
         !option(fd, v6 ? proto_ipv6 : proto_ip, v6 ? ipv6_hdrincl : ip_hdrincl, &on, sizeof on)))
        return -EPERM;
    return fd;
}

/* ---- handing over ---------------------------------------------------------------------------------- */

static long hand_over(int line, const int *sockets, size_t count, unsigned char fixed)
{
    struct {
        size_t length;
        int level, type, sockets[TCI_GATE_SOCKETS_MAX];
    } control = { .length = 16 + count * sizeof(int), .level = sol_socket, .type = scm_rights };
    struct {
        void *base;
        size_t length;
    } byte = { &fixed, 1 };
    struct {
        void *name;
        unsigned int name_length;
        void *vector;
        size_t vector_length;
        void *control;
        size_t control_length;
        int flags;
    } message = { .vector = &byte, .vector_length = 1, .control = &control };
    message.control_length = (control.length + 7) & ~7UL;
    for (size_t i = 0; i < count; i++)
        control.sockets[i] = sockets[i];
    return CALL(sendmsg, line, &message, 0, 0, 0);
}

/* The sockets so far, and the first thing that went wrong. */
struct work {
    int sockets[TCI_GATE_SOCKETS_MAX];
    size_t count;
    uint32_t item;
    long result;
};

static bool done(struct work *work, uint32_t item, long result)
{
    if (work->result < 0)
        return false;
    work->result = result;
    work->item = item;
    return result >= 0;
}

static void add(struct work *work, uint32_t item, long fd)
{
    if (done(work, item, fd))
        work->sockets[work->count++] = (int)fd;
}

static void tell_all(struct work *work, const void *config, const struct tci_sealed_gate *gate)
{
    long result = tell(NETLINK_ROUTE, config, &gate->v4);
    (void)done(work, 0, result);
    /* Where IPv6 is switched off there is nothing to catch, and no way out either. */
    result = gate->has_v6 ? tell(NETLINK_ROUTE, config, &gate->v6) : 0;
    if (result != -EACCES && result != -EOPNOTSUPP)
        (void)done(work, 1, result);
    if (gate->catcher.count)
        (void)done(work, 2, tell(NETLINK_NETFILTER, config, &gate->catcher));
}

long tci_furnish_network(const void *config, const struct tci_sealed_gate *gate, int line,
                         uint32_t *ret_item)
{
    const uint16_t *ports = (const void *)((const char *)config + gate->ports.offset);
    const int family = gate->has_v6 ? af_inet6 : af_inet;
    struct work work;
    unsigned char fixed;
    work.count = 0;
    work.result = 0;
    work.item = 0;
    tell_all(&work, config, gate);
    add(&work, 3, resolver(family));
    add(&work, 4, raw(af_inet, proto_tcp, syns4, sizeof syns4));
    add(&work, 5, raw(af_inet, proto_udp, lost4, sizeof lost4));
    if (gate->has_v6) {
        add(&work, 6, raw(af_inet6, proto_tcp, syns6, sizeof syns6));
        add(&work, 7, raw(af_inet6, proto_udp, lost6, sizeof lost6));
    }
    fixed = (unsigned char)work.count;
    for (uint32_t i = 0; i < gate->ports.count && work.count < TCI_GATE_SOCKETS_MAX; i++)
        add(&work, 8 + i, listener(family, ports[i], ports[i] == TCI_GATE_CATCH_PORT));
    if (work.result >= 0)
        (void)done(&work, 100, hand_over(line, work.sockets, work.count, fixed));
    for (size_t i = 0; i < work.count; i++)
        (void)CALL(close, work.sockets[i], 0, 0, 0, 0);
    *ret_item = work.item;
    return work.result < 0 ? work.result : 0;
}
