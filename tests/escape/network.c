/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to reach listeners of the host: TCP, UDP, unix sockets with and without a path, and
 * the ways that do not look like connect(). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "attempt.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct sockaddr_in address4(const char *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)number(port)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static struct sockaddr_in6 address6(const char *port)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)number(port)) };
    address.sin6_addr = in6addr_loopback;
    return address;
}

/* "@name" is abstract. */
static socklen_t unix_address(const char *name, struct sockaddr_un *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->sun_family = AF_UNIX;
    snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", name);
    if (name[0] == '@')
        ret->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (name[0] != '@'));
}

static int connect_to(int family, int type, int protocol, const void *address, socklen_t length)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (fd < 0 && (errno == EPROTONOSUPPORT || errno == ENOPROTOOPT) && protocol != 0)
        return absent("this kernel has no protocol %d", protocol);
    if (fd < 0)
        return held("socket");
    if (connect(fd, address, length) < 0)
        return held("connect");
    if (write(fd, "canary", 6) < 0)
        return held("write");
    return escaped("connected to a listener of the host");
}

static int tcp4(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    return connect_to(AF_INET, SOCK_STREAM, 0, &address, sizeof(address));
}

static int tcp6(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in6 address = address6(argv[0]);
    return connect_to(AF_INET6, SOCK_STREAM, 0, &address, sizeof(address));
}

static int tcp_multipath(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    return connect_to(AF_INET, SOCK_STREAM, IPPROTO_MPTCP, &address, sizeof(address));
}

/* A connection to an IPv6 address that is an IPv4 address. */
static int tcp_mapped(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in6 address = address6(argv[0]);
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr);
    return connect_to(AF_INET6, SOCK_STREAM, 0, &address, sizeof(address));
}

/* Data with the first packet: connects without connect(). */
static int tcp_fast_open(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return held("socket");
    return judge(
        sendto(fd, "canary", 6, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof(address)),
        "sendto with MSG_FASTOPEN");
}

static int send_datagram(int family, const void *address, socklen_t length)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return held("socket");
    if (sendto(fd, "canary", 6, 0, address, length) < 0)
        return held("sendto");
    errno = 0;
    return held("sent a datagram; the host sees whether it came");
}

static int udp4(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    return send_datagram(AF_INET, &address, sizeof(address));
}

static int udp6(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in6 address = address6(argv[0]);
    return send_datagram(AF_INET6, &address, sizeof(address));
}

/* A question to a resolver carries any secret out in its name. */
static int dns_query(int argc, char **argv)
{
    static const unsigned char question[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                                            "\x06"
                                            "secret"
                                            "\x07"
                                            "example"
                                            "\x00\x00\x01\x00\x01";
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return held("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return held("connect");
    if (send(fd, question, sizeof(question) - 1, 0) < 0)
        return held("send");
    errno = 0;
    return held("asked a resolver; the host sees whether it came");
}

static int unix_stream(int argc, char **argv)
{
    struct sockaddr_un address;
    (void)argc;
    socklen_t length = unix_address(argv[0], &address);
    return connect_to(AF_UNIX, SOCK_STREAM, 0, &address, length);
}

static int unix_datagram(int argc, char **argv)
{
    struct sockaddr_un address;
    (void)argc;
    socklen_t length = unix_address(argv[0], &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return held("socket");
    return judge(sendto(fd, "canary", 6, 0, (struct sockaddr *)&address, length),
                 "sent a datagram to a socket of the host");
}

/* Waits for the host to come in. */
static int listen_for_host(int argc, char **argv)
{
    (void)argc;
    struct sockaddr_in address = address4(argv[0]);
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return held("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return held("bind");
    if (listen(fd, 1) < 0)
        return held("listen");
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    if (poll(&wait, 1, 1000) <= 0) {
        errno = ETIMEDOUT;
        return held("nobody came");
    }
    return judge(accept4(fd, NULL, NULL, SOCK_CLOEXEC), "the host came in");
}

const struct attempt network_attempts[] = {
    { "tcp4", 1, tcp4, "connect to 127.0.0.1:PORT" },
    { "tcp6", 1, tcp6, "connect to [::1]:PORT" },
    { "tcp-mapped", 1, tcp_mapped, "connect to [::ffff:127.0.0.1]:PORT" },
    { "tcp-multipath", 1, tcp_multipath, "connect to 127.0.0.1:PORT with multipath TCP" },
    { "tcp-fast-open", 1, tcp_fast_open, "connect to 127.0.0.1:PORT by sending" },
    { "udp4", 1, udp4, "send to 127.0.0.1:PORT" },
    { "udp6", 1, udp6, "send to [::1]:PORT" },
    { "dns-query", 1, dns_query, "ask the resolver at 127.0.0.1:PORT" },
    { "unix-path", 1, unix_stream, "connect to unix socket PATH" },
    { "unix-path-granted", 1, unix_stream,
      "connect to unix socket PATH, which is in a granted directory" },
    { "unix-path-datagram", 1, unix_datagram, "send to unix socket PATH" },
    { "unix-abstract", 1, unix_stream, "connect to abstract socket @NAME" },
    { "unix-abstract-datagram", 1, unix_datagram, "send to abstract socket @NAME" },
    { "listen", 1, listen_for_host, "be reached by the host at PORT" },
    { 0 },
};
