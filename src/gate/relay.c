/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the life of one relayed connection: its two sockets, what it waits for at each of them, and its
 * end. How bytes move is in relay_flow.c.
 *
 * Invariant: a socket is asked only for what can be acted on. A side that has hung up while nothing can
 * be done about it (the other one is full) leaves the loop until something can: it would be reported
 * again and again.
 */
#include "gate/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "gate/relay_internal.h"

enum { cage, world, drain_max = 16 };

struct side {
    struct tci_relay *relay;
    struct tci_source source;
    int fd;
    struct tci_flow *sends, *gets;
};

struct tci_relay {
    struct tci_loop *loop;
    struct tci_inspect *inspect;
    struct tci_grave grave;
    struct tci_waiter waiter; /* for the rate */
    tci_relay_done *done;     /* NULL: was called, or will not be */
    void *data;
    struct side sides[2];
    struct tci_flow flows[2]; /* from the cage, from the world */
};

/* ---- the end ------------------------------------------------------------------------------------- */

/* Dissolving the connection sends the reset at once. Closing alone would send it only when nobody else
 * has a copy of the descriptor, and a child of the host may have one. */
static void close_side(struct tci_relay *relay, struct side *side, bool reset)
{
    const struct linger none = { .l_onoff = 1 };
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    tci_loop_remove(relay->loop, &side->source);
    if (side->fd >= 0 && reset) {
        (void)setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        (void)connect(side->fd, &nobody, sizeof nobody);
    }
    side->fd = tci_close(side->fd);
}

static void close_all(struct tci_relay *relay, bool reset)
{
    tci_budget_leave(&relay->waiter);
    for (int i = 0; i < 2; i++) {
        close_side(relay, &relay->sides[i], reset);
        tci_flow_release(&relay->flows[i]);
    }
}

static void bury(struct tci_relay *relay)
{
    tci_inspect_free(relay->inspect);
    relay->inspect = NULL;
    tci_loop_bury(relay->loop, &relay->grave, relay);
}

static void finish(struct tci_relay *relay, enum tci_relay_end end, bool reset)
{
    tci_relay_done *done = relay->done;
    relay->done = NULL;
    close_all(relay, reset);
    done(relay->data, end, relay->flows[world].passed, relay->flows[cage].passed);
    bury(relay);
}

/* ---- what to wait for ---------------------------------------------------------------------------- */

static uint32_t wanted(const struct side *side)
{
    const struct tci_flow *sends = side->sends;
    bool reads = !sends->ended && !sends->blocked && !sends->paused;
    return (reads ? (uint32_t)EPOLLIN : 0) | (side->gets->blocked ? (uint32_t)EPOLLOUT : 0);
}

/* It has ended, which was passed on, and is still being sent to. */
static bool awaits_only_reset(const struct side *side)
{
    return side->sends->shut && !side->gets->shut;
}

static int wait_for(struct side *side)
{
    uint32_t events = wanted(side);
    if (side->source.in_loop)
        return tci_loop_change(side->relay->loop, &side->source, events);
    if (events || awaits_only_reset(side))
        return tci_loop_add(side->relay->loop, &side->source, side->fd, events);
    return 0;
}

/* The reader of `flow` is dead. What it sent before is delivered, as far as there is room for it. */
static int drain_back(struct tci_relay *relay, const struct tci_flow *flow)
{
    struct tci_flow *back = &relay->flows[flow == &relay->flows[cage] ? world : cage];
    back->cut = true;
    for (int i = 0; i < drain_max; i++) {
        uint64_t before = back->passed;
        int r = tci_flow_pump(back);
        if (r >= 0)
            return r;
        if (r != TCI_FLOW_GOES_ON || back->passed == before)
            break;
    }
    return TCI_RELAY_CLOSED;
}

/* After flows were pumped; `r` is what the last one of them said. */
static void settle(struct tci_relay *relay, int r, const struct tci_flow *last)
{
    if (r == TCI_FLOW_NO_READER)
        r = drain_back(relay, last);
    if (r == TCI_FLOW_GOES_ON && relay->flows[cage].shut && relay->flows[world].shut) {
        finish(relay, TCI_RELAY_CLOSED, false);
        return;
    }
    if (r == TCI_FLOW_GOES_ON &&
        (wait_for(&relay->sides[cage]) < 0 || wait_for(&relay->sides[world]) < 0))
        r = TCI_RELAY_BROKEN;
    if (r != TCI_FLOW_GOES_ON)
        finish(relay, (enum tci_relay_end)r, true);
    else if (relay->flows[cage].paused || relay->flows[world].paused)
        tci_budget_wait(&relay->waiter);
    else
        tci_budget_leave(&relay->waiter);
}

/* ---- what happens -------------------------------------------------------------------------------- */

static void side_ready(struct tci_source *source, uint32_t events)
{
    struct side *side = source->data;
    struct tci_relay *relay = side->relay;
    struct tci_flow *last = side->sends;
    int r = TCI_FLOW_GOES_ON;
    bool hung = events & (EPOLLERR | EPOLLHUP);
    if (hung && !wanted(side)) {
        if (awaits_only_reset(side))
            settle(relay, TCI_RELAY_CLOSED, NULL);
        else
            tci_loop_remove(relay->loop, source); /* first what it has sent */
        return;
    }
    relay->waiter.served = false;
    if (hung || events & EPOLLIN)
        r = tci_flow_pump(side->sends);
    if (r == TCI_FLOW_GOES_ON && (hung || events & EPOLLOUT)) {
        last = side->gets;
        r = tci_flow_pump(last);
    }
    settle(relay, r, last);
}

static void rate_due(struct tci_timer *timer)
{
    struct tci_relay *relay = timer->data;
    int r = TCI_FLOW_GOES_ON, i;
    relay->waiter.served = false;
    for (i = 0; i < 2; i++)
        relay->flows[i].paused = false;
    for (i = 0; i < 2 && r == TCI_FLOW_GOES_ON; i++)
        r = tci_flow_pump(&relay->flows[i]);
    settle(relay, r, &relay->flows[i - 1]);
}

/* ---- the beginning ------------------------------------------------------------------------------- */

static void set_flow(struct tci_relay *relay, int from, const struct tci_relay_options *options,
                     struct tci_relay_pool *pool)
{
    struct tci_flow *flow = &relay->flows[from];
    flow->pool = pool;
    flow->waiter = &relay->waiter;
    flow->inspect = from == cage ? options->inspect : NULL;
    flow->inward = from == world;
    flow->from = relay->sides[from].fd;
    flow->to = relay->sides[!from].fd;
}

static int set_side(struct tci_relay *relay, int which)
{
    const int yes = 1;
    struct side *side = &relay->sides[which];
    side->relay = relay;
    side->source.ready = side_ready;
    side->source.data = side;
    side->sends = &relay->flows[which];
    side->gets = &relay->flows[!which];
    /* Whoever sends decides what is put together. And urgent bytes stay in their place: no direction is
     * to have a second, uninspected channel, nor a hole. */
    (void)setsockopt(side->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(side->fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
    return tci_loop_add(relay->loop, &side->source, side->fd, EPOLLIN);
}

int tci_relay_start(const struct tci_relay_options *options, struct tci_relay **ret)
{
    struct tci_relay_pool *pool = tci_relay_pool(options->loop);
    struct tci_relay *relay = pool ? calloc(1, sizeof *relay) : NULL;
    int r;
    if (!relay) {
        (void)tci_close(options->cage);
        (void)tci_close(options->world);
        tci_inspect_free(options->inspect);
        return -ENOMEM;
    }
    relay->loop = options->loop;
    relay->inspect = options->inspect;
    relay->done = options->done;
    relay->data = options->data;
    relay->waiter = (struct tci_waiter){ .loop = options->loop,
                                         .budget = options->budget,
                                         .timer = { .due = rate_due, .data = relay } };
    relay->sides[cage].fd = options->cage;
    relay->sides[world].fd = options->world;
    set_flow(relay, cage, options, pool);
    set_flow(relay, world, options, pool);
    r = set_side(relay, cage);
    if (r == 0)
        r = set_side(relay, world);
    if (r < 0) {
        tci_relay_cancel(relay);
        return r;
    }
    *ret = relay;
    return 0;
}

void tci_relay_cancel(struct tci_relay *relay)
{
    if (!relay || !relay->done)
        return;
    relay->done = NULL;
    close_all(relay, !tci_relay_is_drained(relay));
    bury(relay);
}

bool tci_relay_is_drained(const struct tci_relay *relay)
{
    return relay->flows[cage].shut;
}

void tci_relay_bytes(const struct tci_relay *relay, uint64_t *ret_in, uint64_t *ret_out)
{
    *ret_in = relay->flows[world].passed;
    *ret_out = relay->flows[cage].passed;
}
