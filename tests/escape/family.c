/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to open sockets of other kinds: raw, packet, netlink, and families that few need
 * and that have had most of the kernel's holes. */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attempt.h"

static int open_socket(int family, int type, int protocol, const char *what)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (fd < 0 && errno == EAFNOSUPPORT)
        return absent("no %s sockets here", what);
    if (fd < 0)
        return held("%s socket", what);
    close(fd);
    return escaped("opened a socket: %s", what);
}

static int raw4(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw IPv4");
}

static int raw6(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "raw IPv6");
}

static int packet(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return open_socket(AF_PACKET, SOCK_RAW, 0x0300, "packet");
}

static int vsock(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    /* Opened, never connected: what listens there is the machine's own business. */
    return open_socket(AF_VSOCK, SOCK_STREAM, 0, "vsock");
}

static int crypto(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return open_socket(AF_ALG, SOCK_SEQPACKET, 0, "crypto");
}

static int netlink_uevent(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return open_socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT, "device events");
}

static int netlink_audit(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int result = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, "audit");
    return result == HELD && errno == EPROTONOSUPPORT ? absent("no audit here") : result;
}

static int netlink_netfilter(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int result = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, "netfilter");
    return result == HELD && errno == EPROTONOSUPPORT ? absent("no netfilter here") : result;
}

/* A socket number above 32 bits: a filter that looks at half of it sees another family. */
static int family_high_bits(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    register long result;
#ifdef __x86_64__
    register long flags __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(41L), "D"((1L << 32) | AF_NETLINK), "S"((long)(SOCK_RAW | SOCK_CLOEXEC)),
                       "d"((long)NETLINK_KOBJECT_UEVENT), "r"(flags)
                     : "rcx", "r11", "memory");
#else
    result = -ENOSYS;
#endif
    errno = result < 0 ? (int)-result : 0;
    return judge(result, "socket with bits above 32");
}

/* Asks the kernel for the listening sockets and looks for the host's. */
static int netlink_sockets(int argc, char **argv)
{
    (void)argc;
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 query;
    } request = {
        .header = { .nlmsg_len = sizeof(request),
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .query = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U },
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return held("netlink socket");
    if (send(fd, &request, sizeof(request), 0) < 0)
        return held("send");
    static _Alignas(struct nlmsghdr) char answer[65536];
    for (int round = 0; round < 64; round++) {
        ssize_t got = recv(fd, answer, sizeof(answer), 0);
        if (got < 0)
            return held("receive");
        size_t left = (size_t)got;
        for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
                errno = ENOENT;
                return held("a socket of the host in the kernel's list");
            }
            const struct inet_diag_msg *one = NLMSG_DATA(h);
            if (ntohs(one->id.idiag_sport) == number(argv[0]))
                return escaped("the kernel lists the host's listener at port %s", argv[0]);
        }
    }
    errno = ENOENT;
    return held("a socket of the host in the kernel's list");
}

/* Every family that is neither unix, internet nor netlink. */
static int odd_families(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
    int last = EAFNOSUPPORT;
    for (int family = 1; family < 46; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            int fd = socket(family, types[i] | SOCK_CLOEXEC, 0);
            if (fd >= 0)
                return escaped("opened a socket of family %d, type %d", family, types[i]);
            if (errno != EAFNOSUPPORT)
                last = errno;
        }
    }
    errno = last;
    return held("sockets of any other family");
}

const struct attempt family_attempts[] = {
    { "raw-ipv4", 0, raw4, "open a raw IPv4 socket" },
    { "raw-ipv6", 0, raw6, "open a raw IPv6 socket" },
    { "packet-socket", 0, packet, "open a packet socket" },
    { "vsock", 0, vsock, "open a socket to the hypervisor" },
    { "crypto-socket", 0, crypto, "open a socket of the kernel's crypto" },
    { "netlink-uevent", 0, netlink_uevent, "listen to device events" },
    { "netlink-audit", 0, netlink_audit, "talk to the audit system" },
    { "netlink-netfilter", 0, netlink_netfilter, "talk to the packet filter" },
    { "netlink-sockets", 1, netlink_sockets, "find the listener at PORT in the kernel's list" },
    { "family-high-bits", 0, family_high_bits, "open a netlink socket with bits above 32" },
    { "odd-families", 0, odd_families, "open a socket of any family that few need" },
    { 0 },
};
