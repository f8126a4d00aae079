/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of the gate's parts share: loops with a time limit, sockets on loopback. */
#ifndef TCI_TESTS_GATE_SUPPORT_H
#define TCI_TESTS_GATE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "gate/loop.h"
#include "policy/address.h"
#include "descriptors.h"

enum { PATIENCE_MS = 60000 }; /* the machine may be slow: only a hang takes that long */

/* Steps until *over, or for `limit_ms`. Returns how many steps that took. */
static inline unsigned run_loop(struct tci_loop *loop, const bool *over, int limit_ms)
{
    uint64_t end = tci_clock_us() + (uint64_t)limit_ms * 1000, now;
    unsigned steps = 0;
    while (!*over && (now = tci_clock_us()) < end) {
        struct pollfd p = { .fd = tci_loop_fd(loop), .events = POLLIN };
        if (poll(&p, 1, (int)((end - now) / 1000 + 1)) > 0) {
            tci_loop_step(loop);
            steps++;
        }
    }
    return steps;
}

static inline struct tci_loop *new_loop(void)
{
    struct tci_loop *loop = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tci_loop_new(&loop, &error), 0);
    return loop;
}

static inline struct tci_address address_of(const char *text)
{
    struct tci_address address = { 0 };
    if (!tci_address_parse_v4(text, strlen(text), &address))
        assert_true(tci_address_parse_v6(text, strlen(text), &address));
    return address;
}

static inline socklen_t socket_address(const char *text, uint16_t port,
                                       struct sockaddr_storage *ret)
{
    struct tci_address address = address_of(text);
    memset(ret, 0, sizeof *ret);
    if (address.is_v6) {
        struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        memcpy(&in.sin6_addr, address.bytes, 16);
        memcpy(ret, &in, sizeof in);
        return sizeof in;
    } else {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&in.sin_addr, address.bytes, 4);
        memcpy(ret, &in, sizeof in);
        return sizeof in;
    }
}

/* A listener on an address, at *port or, if that is 0, at any, which is then in *port. */
static inline int listen_on(const char *address, uint16_t *port, int backlog)
{
    const int yes = 1;
    struct sockaddr_storage at;
    socklen_t size = socket_address(address, *port, &at);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(((struct sockaddr_in *)&at)->sin_port); /* at the same place in both families */
    return fd;
}

/* Two ends of one connection over loopback. */
static inline void connect_ends(const char *address, int ret[2])
{
    uint16_t port = 0;
    int listener = listen_on(address, &port, 1);
    struct sockaddr_storage to;
    socklen_t size = socket_address(address, port, &to);
    ret[0] = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(ret[0], (struct sockaddr *)&to, size), 0);
    ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(ret[1] >= 0);
    (void)close(listener);
}

#endif
