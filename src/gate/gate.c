/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate as an object: it takes the sockets from inside and hands what comes on them to the
 * files that know what to do. */
#include "gate/gate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "gate/setup.h"

enum {
    drain_us = 2000000,
    /* A cage can send a hundred thousand packets a second, and each of them costs the host time that no
     * limit of the cage counts. So many of them are looked at in so long; the others wait, or get lost
     * as in any network. */
    busy_us = 100000,
    busy_max = 1000,
};

struct tci_address tci_gate_plain(const struct in6_addr *address)
{
    struct tci_address plain = { .is_v6 = true }, v4;
    memcpy(plain.bytes, address, sizeof *address);
    return tci_address_is_mapped(&plain, &v4) ? v4 : plain;
}

/* ---- sockets from inside -------------------------------------------------------------------------- */

static tci_source_ready *handler_of(size_t number, size_t fixed)
{
    static tci_source_ready *const handlers[] = {
        [TCI_GATE_SOCKET_DNS] = tci_gate_dns_ready,   [TCI_GATE_SOCKET_TCP4] = tci_gate_syn_ready,
        [TCI_GATE_SOCKET_UDP4] = tci_gate_lost_ready, [TCI_GATE_SOCKET_TCP6] = tci_gate_syn_ready,
        [TCI_GATE_SOCKET_UDP6] = tci_gate_lost_ready,
    };
    return number < fixed ? handlers[number] : tci_gate_accept_ready;
}

static void serve(struct tci_gate *gate, const int *sockets, size_t count, size_t fixed)
{
    gate->fixed_count = fixed;
    for (size_t i = 0; i < count; i++) {
        gate->sockets[i] = sockets[i];
        gate->sources[i] = (struct tci_source){ .ready = handler_of(i, fixed), .data = gate };
        gate->socket_count++;
        (void)tci_loop_add(gate->loop, &gate->sources[i], sockets[i], EPOLLIN);
    }
}

/* Comes once, from init. The command does not exist then, so nobody else can have written it. */
static void channel_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    int sockets[TCI_GATE_SOCKETS_MAX];
    unsigned char fixed = 0;
    struct iovec vector = { &fixed, 1 };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof sockets)];
    } control;
    struct msghdr message = { .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(gate->channel, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    size_t count = 0;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    tci_loop_remove(gate->loop, source);
    gate->channel = tci_close(gate->channel);
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return; /* init could not do it, and reports why */
    count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(sockets, CMSG_DATA(head), count * sizeof(int));
    if (fixed <= TCI_GATE_SOCKET_LISTENERS && fixed >= TCI_GATE_SOCKET_TCP6 && count > fixed &&
        !(message.msg_flags & MSG_CTRUNC)) {
        serve(gate, sockets, count, fixed);
        return;
    }
    for (size_t i = 0; i < count; i++)
        (void)tci_close(sockets[i]);
}

static void close_sockets(struct tci_gate *gate, size_t first)
{
    for (size_t i = first; i < gate->socket_count; i++) {
        tci_loop_remove(gate->loop, &gate->sources[i]);
        gate->sockets[i] = tci_close(gate->sockets[i]);
    }
    if (gate->socket_count > first)
        gate->socket_count = first;
}

/* ---- resting ---------------------------------------------------------------------------------------- */

static void has_rested(struct tci_timer *timer)
{
    struct tci_gate *gate = timer->data;
    for (size_t i = 0; i < gate->socket_count; i++)
        if (!gate->sources[i].in_loop && gate->sources[i].ready)
            (void)tci_loop_add(gate->loop, &gate->sources[i], gate->sockets[i], EPOLLIN);
    tci_gate_dns_rested(gate);
}

void tci_gate_rest(struct tci_gate *gate, struct tci_source *source)
{
    tci_loop_remove(gate->loop, source);
    if (!gate->rest.deadline)
        tci_loop_set_timer(gate->loop, &gate->rest, tci_clock_us() + busy_us);
}

bool tci_gate_is_busy(struct tci_gate *gate, struct tci_source *source)
{
    const uint64_t now = tci_clock_us();
    if (now - gate->busy_since >= busy_us) {
        gate->busy_since = now;
        gate->busy_count = 0;
    }
    if (++gate->busy_count < busy_max)
        return false;
    tci_gate_rest(gate, source);
    return true;
}

/* ---- the object ------------------------------------------------------------------------------------ */

/* The kernel cuts off what a process has no descriptors for, and the cage would run without its
 * listeners: said before, that is an error which somebody sees. `fd` is the highest so far. */
static bool has_room_for_sockets(const struct tci_gate *gate, int fd)
{
    struct rlimit limit;
    const size_t listeners = 1 + (gate->ports.every ? 1 : gate->ports.count);
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
           (rlim_t)fd + TCI_GATE_SOCKET_LISTENERS + listeners < limit.rlim_cur;
}

int tci_gate_new(const struct tci_gate_options *options, struct tci_gate **ret, int *ret_inside,
                 struct tc_error *reterr)
{
    const struct tci_network_limits *limits = &options->settings->network_limits;
    struct tci_gate *gate = calloc(1, sizeof *gate);
    int ends[2];
    if (!gate)
        return tci_error_no_memory(reterr);
    gate->options = *options;
    gate->network = &options->settings->network;
    gate->budget = (struct tci_budget){ .bytes_in_max = limits->bytes_in,
                                        .bytes_out_max = limits->bytes_out,
                                        .rate = limits->rate };
    gate->started = tci_clock_us();
    gate->rest = (struct tci_timer){ .due = has_rested, .data = gate };
    gate->channel = -1;
    tci_gate_ports(gate->network, &gate->ports);
    gate->catches_loopback = tci_gate_catches_loopback(gate->network);
    if (tci_loop_new(&gate->loop, reterr) < 0) {
        free(gate);
        return -1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        tci_error_errno(reterr, errno, "making a socket pair for the gate");
        tci_gate_free(gate);
        return -1;
    }
    gate->channel = ends[0];
    if (!has_room_for_sockets(gate, ends[1])) {
        tci_error_errno(reterr, EMFILE, "making the sockets of the gate");
        (void)tci_close(ends[1]);
        tci_gate_free(gate);
        return -1;
    }
    gate->channel_source = (struct tci_source){ .ready = channel_ready, .data = gate };
    if (tci_loop_add(gate->loop, &gate->channel_source, gate->channel, EPOLLIN) < 0) {
        tci_error_errno(reterr, errno, "watching the gate");
        (void)tci_close(ends[1]);
        tci_gate_free(gate);
        return -1;
    }
    *ret = gate;
    *ret_inside = ends[1];
    return 0;
}

void tci_gate_begin(struct tci_gate *gate,
                    void (*on_event)(void *data, const struct tci_gate_record *record), void *data)
{
    gate->options.on_event = on_event;
    gate->options.data = data;
    gate->started = tci_clock_us();
}

int tci_gate_fd(const struct tci_gate *gate)
{
    return tci_loop_fd(gate->loop);
}

void tci_gate_step(struct tci_gate *gate)
{
    tci_loop_step(gate->loop);
}

/* A program that has ended may have left bytes behind that the kernel would have delivered. The raw
 * sockets stay until the end: nothing is sent any more, and closing them costs. */
bool tci_gate_finish(struct tci_gate *gate)
{
    if (!gate->closing) {
        gate->closing = true;
        gate->finish_by = tci_clock_us() + drain_us;
        tci_loop_step(gate->loop); /* what the program did last: a connection, an end */
        tci_gate_connect_close(gate, false);
    }
    return tci_gate_connect_drained(gate) || tci_clock_us() >= gate->finish_by;
}

void tci_gate_close(struct tci_gate *gate)
{
    tci_loop_remove(gate->loop, &gate->channel_source);
    gate->channel = tci_close(gate->channel);
    tci_gate_connect_close(gate, true);
    tci_gate_dns_close(gate);
    tci_loop_set_timer(gate->loop, &gate->rest, 0);
    close_sockets(gate, 0);
}

const struct tci_gate_record *tci_gate_records(const struct tci_gate *gate, size_t *ret_count,
                                               uint64_t *ret_dropped)
{
    *ret_count = gate->record_count;
    *ret_dropped = gate->dropped;
    return gate->records;
}

void tci_gate_free(struct tci_gate *gate)
{
    if (!gate)
        return;
    tci_gate_close(gate);
    tci_gate_names_free(gate);
    tci_loop_free(gate->loop);
    free(gate->records);
    free(gate);
}
