/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the tries of one dial. They start one after the other and stay until one of them answers; the
 * first that does wins, the others are closed.
 *
 * Invariant: only the addresses that were given are dialled. They were checked; nothing is resolved
 * here, and no spelling of an address becomes another one (IPV6_V6ONLY).
 */
#include "gate/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/fd.h"

enum {
    attempts_max = 64,
    open_max = 6, /* at a time: a name with many silent addresses must not use up descriptors */
};

struct attempt {
    struct tci_dial *dial;
    struct tci_source source;
    struct tci_address address;
};

struct tci_dial {
    struct tci_loop *loop;
    struct tci_grave grave;
    struct tci_timer stagger, limit;
    tci_dial_done *done; /* NULL: was called, or will not be */
    void *data;
    uint16_t port;
    int problem, problem_rank; /* the most telling failure so far */
    size_t count, next, open;
    struct attempt attempts[];
};

/* ---- which failure tells most -------------------------------------------------------------------- */

/* Somebody who refuses was there. A timeout says more than a route that is missing; and that this host
 * has no IPv6 at all (it fails before anything is sent) says nothing about whoever was called. */
static int rank_of(int problem, bool at_once)
{
    switch (problem) {
    case ECONNREFUSED:
        return 6;
    case EHOSTUNREACH:
        return 3;
    case ETIMEDOUT:
        return 4;
    case ENETUNREACH:
        return at_once ? 1 : 2;
    default:
        return 5;
    }
}

static void remember(struct tci_dial *dial, int problem, bool at_once)
{
    int rank;
    if (problem == EAFNOSUPPORT || problem == EADDRNOTAVAIL) /* this host has none of that family */
        problem = ENETUNREACH;
    rank = rank_of(problem, at_once);
    if (rank <= dial->problem_rank)
        return;
    dial->problem = problem;
    dial->problem_rank = rank;
}

/* ---- one try ------------------------------------------------------------------------------------- */

static socklen_t socket_address(const struct tci_address *address, uint16_t port,
                                struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memset(ret, 0, sizeof *ret);
    if (address->is_v6) {
        memcpy(&v6.sin6_addr, address->bytes, 16);
        memcpy(ret, &v6, sizeof v6);
        return sizeof v6;
    }
    memcpy(&v4.sin_addr, address->bytes, 4);
    memcpy(ret, &v4, sizeof v4);
    return sizeof v4;
}

static void end_attempt(struct attempt *attempt)
{
    int fd = attempt->source.fd;
    if (!attempt->source.in_loop)
        return;
    tci_loop_remove(attempt->dial->loop, &attempt->source);
    (void)tci_close(fd);
    attempt->dial->open--;
}

/* The kernel gives the lowest number that is free, so a high one means that few are left. They are for
 * the host, and for the connections that are being accepted: cages that dial must not have them all. */
static bool is_scarce(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)fd >= limit.rlim_cur - limit.rlim_cur / 8;
}

/* 0, or an errno. */
static int begin_attempt(struct attempt *attempt)
{
    const int yes = 1;
    struct sockaddr_storage to;
    socklen_t size = socket_address(&attempt->address, attempt->dial->port, &to);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP), r;
    if (fd < 0)
        return errno;
    if (is_scarce(fd)) {
        (void)tci_close(fd);
        return EMFILE;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    /* ::ffff:127.0.0.1 was judged as an IPv6 address: it must not become an IPv4 one here. */
    if ((to.ss_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) < 0) ||
        (connect(fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)) {
        r = errno;
        (void)tci_close(fd);
        return r;
    }
    r = tci_loop_add(attempt->dial->loop, &attempt->source, fd, EPOLLOUT);
    if (r < 0) {
        (void)tci_close(fd);
        return -r;
    }
    attempt->dial->open++;
    return 0;
}

/* Where nobody listens at a local port, the kernel may have picked that very port for our end: then the
 * socket is connected to itself and would say back what it is told. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage ours, theirs;
    socklen_t our_size = sizeof ours, their_size = sizeof theirs;
    memset(&ours, 0, sizeof ours);
    memset(&theirs, 0, sizeof theirs);
    return getsockname(fd, (struct sockaddr *)&ours, &our_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &their_size) == 0 &&
           our_size == their_size && memcmp(&ours, &theirs, our_size) == 0;
}

static int result_of(int fd)
{
    int problem = 0;
    socklen_t size = sizeof problem;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0)
        return errno;
    return problem || !is_connected_to_itself(fd) ? problem : ECONNREFUSED;
}

/* ---- the dial ------------------------------------------------------------------------------------ */

static void end_dial(struct tci_dial *dial)
{
    dial->done = NULL;
    for (size_t i = 0; i < dial->next; i++)
        end_attempt(&dial->attempts[i]);
    tci_loop_set_timer(dial->loop, &dial->stagger, 0);
    tci_loop_set_timer(dial->loop, &dial->limit, 0);
    tci_loop_bury(dial->loop, &dial->grave, dial);
}

static void finish(struct tci_dial *dial, int fd, const struct tci_address *address)
{
    tci_dial_done *done = dial->done;
    struct tci_address won = { 0 };
    int problem = dial->problem ? dial->problem : ETIMEDOUT;
    void *data = dial->data;
    if (address)
        won = *address;
    end_dial(dial);
    done(data, fd, &won, fd < 0 ? problem : 0);
}

/* It has had its time: open_max times the stagger. */
static void end_oldest(struct tci_dial *dial)
{
    for (size_t i = 0; i < dial->next; i++) {
        if (dial->attempts[i].source.in_loop) {
            end_attempt(&dial->attempts[i]);
            remember(dial, ETIMEDOUT, false);
            return;
        }
    }
}

/* Starts the next try that gets under way. With none left and none open, the end comes from the loop,
 * also when this is called from tci_dial_start(). */
static void advance(struct tci_dial *dial)
{
    uint64_t now = tci_clock_us();
    if (dial->open == open_max && dial->next < dial->count)
        end_oldest(dial);
    while (dial->next < dial->count) {
        int problem = begin_attempt(&dial->attempts[dial->next++]);
        if (problem) {
            remember(dial, problem, true);
            continue;
        }
        if (dial->next < dial->count)
            tci_loop_set_timer(dial->loop, &dial->stagger,
                               now + (uint64_t)TCI_DIAL_STAGGER_MS * 1000);
        return;
    }
    tci_loop_set_timer(dial->loop, &dial->stagger, dial->open ? 0 : now);
}

static void stagger_due(struct tci_timer *timer)
{
    struct tci_dial *dial = timer->data;
    if (dial->next < dial->count)
        advance(dial);
    else if (!dial->open)
        finish(dial, -1, NULL);
}

static void limit_due(struct tci_timer *timer)
{
    struct tci_dial *dial = timer->data;
    remember(dial, ETIMEDOUT, false);
    finish(dial, -1, NULL);
}

static void attempt_ready(struct tci_source *source, uint32_t events)
{
    struct attempt *attempt = source->data;
    struct tci_dial *dial = attempt->dial;
    int fd = source->fd, problem = result_of(fd);
    (void)events;
    if (problem) {
        end_attempt(attempt);
        remember(dial, problem, false);
        if (dial->next < dial->count || !dial->open)
            advance(dial);
        return;
    }
    tci_loop_remove(dial->loop, source);
    dial->open--;
    finish(dial, fd, &attempt->address);
}

/* The families take turns, beginning with IPv6: where the host has none, that fails at once. */
static void order_attempts(struct tci_dial *dial, const struct tci_address *addresses)
{
    size_t at[2] = { 0, 0 };
    bool family = true;
    for (size_t i = 0; i < dial->count; i++, family = !family) {
        for (int turn = 0; turn < 2; turn++) {
            size_t *from = &at[family];
            while (*from < dial->count && addresses[*from].is_v6 != family)
                ++*from;
            if (*from < dial->count)
                break;
            family = !family; /* none are left of this one */
        }
        dial->attempts[i].address = addresses[at[family]++];
    }
}

int tci_dial_start(struct tci_loop *loop, const struct tci_address *addresses, size_t count,
                   uint16_t port, tci_dial_done *done, void *data, struct tci_dial **ret)
{
    struct tci_dial *dial;
    if (count == 0 || count > attempts_max)
        return -EINVAL;
    dial = calloc(1, sizeof *dial + count * sizeof dial->attempts[0]);
    if (!dial)
        return -ENOMEM;
    dial->loop = loop;
    dial->done = done;
    dial->data = data;
    dial->port = port;
    dial->count = count;
    dial->stagger.due = stagger_due;
    dial->limit.due = limit_due;
    dial->stagger.data = dial->limit.data = dial;
    order_attempts(dial, addresses);
    for (size_t i = 0; i < count; i++) {
        dial->attempts[i].dial = dial;
        dial->attempts[i].source.ready = attempt_ready;
        dial->attempts[i].source.data = &dial->attempts[i];
    }
    tci_loop_set_timer(loop, &dial->limit, tci_clock_us() + (uint64_t)TCI_DIAL_TIMEOUT_MS * 1000);
    advance(dial);
    *ret = dial;
    return 0;
}

void tci_dial_cancel(struct tci_dial *dial)
{
    if (dial && dial->done)
        end_dial(dial);
}
