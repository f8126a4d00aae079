/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one direction of a relay. Bytes are read only when all that came before were written; small
 * amounts go through memory that all relays share, large ones stay in the kernel (splice).
 *
 * Invariants: what the inspection has not let through is not written; neither is a byte that the budget
 * does not pay. The end of `from` is passed on only after everything else, and only if it is a real
 * end: a connection that broke off must not look like one that was finished.
 */
#include "gate/relay_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fd.h"

enum {
    turn_max = 512 * 1024,   /* then others have their turn */
    bulk_after = 256 * 1024, /* a flow that has passed less is not worth a pipe */
};

static size_t waiting(const struct tci_flow *flow)
{
    return flow->end - flow->at;
}

static size_t smaller(size_t a, uint64_t b)
{
    return a < b ? a : (size_t)b;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static void release_bytes(struct tci_flow *flow)
{
    if (!flow->borrowed)
        free(flow->bytes);
    flow->bytes = NULL;
    flow->borrowed = false;
    flow->at = flow->end = flow->capacity = flow->cleared = flow->paid = 0;
}

void tci_flow_release(struct tci_flow *flow)
{
    release_bytes(flow);
    if (flow->has_pipe)
        tci_pool_give_pipe(flow->pool, &flow->pipe, !flow->piped);
    flow->has_pipe = false;
    flow->piped = 0;
}

/* Room behind what waits. */
static void make_room(struct tci_flow *flow)
{
    if (!flow->bytes) {
        flow->bytes = flow->pool->scratch;
        flow->capacity = sizeof flow->pool->scratch;
        flow->borrowed = true;
    } else if (flow->at) {
        memmove(flow->bytes, flow->bytes + flow->at, waiting(flow));
        flow->end -= flow->at;
        flow->at = 0;
    }
}

/* The scratch goes back to the pool: what waits in it moves out. */
static int keep(struct tci_flow *flow)
{
    size_t size = flow->inspect ? TCI_INSPECT_HOLD_MAX : waiting(flow);
    uint8_t *own;
    if (!waiting(flow)) {
        release_bytes(flow);
        return 0;
    }
    if (!flow->borrowed)
        return 0;
    own = malloc(size);
    if (!own)
        return -1;
    memcpy(own, flow->bytes + flow->at, waiting(flow));
    flow->bytes = own;
    flow->borrowed = false;
    flow->end -= flow->at;
    flow->at = 0;
    flow->capacity = size;
    return 0;
}

/* ---- out ----------------------------------------------------------------------------------------- */

/* What a failed write means. */
static int write_failed(struct tci_flow *flow)
{
    if (errno != EAGAIN)
        return TCI_FLOW_NO_READER;
    flow->blocked = true;
    return TCI_FLOW_GOES_ON;
}

static int push_pipe(struct tci_flow *flow)
{
    while (flow->piped) {
        ssize_t n = tci_splice_out(flow->pipe.out, flow->to, flow->piped);
        if (n == 0)
            return TCI_RELAY_BROKEN; /* the pipe lost bytes: cannot be */
        if (n < 0)
            return write_failed(flow);
        flow->piped -= (size_t)n;
    }
    if (flow->has_pipe)
        tci_pool_give_pipe(flow->pool, &flow->pipe, true);
    flow->has_pipe = false;
    return TCI_FLOW_GOES_ON;
}

/* The budget pays for bytes that are cleared. */
static int pay(struct tci_flow *flow)
{
    uint64_t room = tci_budget_ask(flow->waiter, flow->inward, &flow->paused);
    if (!room)
        return flow->paused ? TCI_FLOW_GOES_ON : TCI_RELAY_LIMIT;
    flow->paid = smaller(flow->cleared, room);
    tci_budget_charge(flow->waiter, flow->inward, flow->paid);
    flow->passed += flow->paid;
    return TCI_FLOW_GOES_ON;
}

static int push_cleared(struct tci_flow *flow)
{
    while (flow->cleared) {
        ssize_t n;
        if (!flow->paid) {
            int r = pay(flow);
            if (r != TCI_FLOW_GOES_ON || flow->paused)
                return r;
        }
        n = send(flow->to, flow->bytes + flow->at, flow->paid, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return write_failed(flow);
        flow->at += (size_t)n;
        flow->cleared -= (size_t)n;
        flow->paid -= (size_t)n;
    }
    return TCI_FLOW_GOES_ON;
}

/* Shows the inspection what has come. An answer that leads nowhere counts as a refusal: bytes that it
 * wants to see more of when no more can come, or when no more fit. */
static int judge(struct tci_flow *flow)
{
    size_t held = waiting(flow), pass = 0;
    enum tci_inspect_says says;
    flow->fresh = false;
    if (!held)
        return TCI_FLOW_GOES_ON;
    says = tci_inspect_feed(flow->inspect, flow->bytes + flow->at, held, flow->ended, &pass);
    switch (says) {
    case TCI_INSPECT_OPAQUE:
        flow->inspect = NULL;
        flow->cleared = held;
        return TCI_FLOW_GOES_ON;
    case TCI_INSPECT_PASS:
    case TCI_INSPECT_MORE:
        flow->cleared = smaller(held, pass);
        flow->fresh = says == TCI_INSPECT_PASS && flow->cleared && flow->cleared < held;
        if (!flow->fresh && flow->cleared < held &&
            (flow->ended || held - flow->cleared >= TCI_INSPECT_HOLD_MAX))
            return TCI_RELAY_REFUSED;
        return TCI_FLOW_GOES_ON;
    case TCI_INSPECT_REFUSED:
    default:
        return TCI_RELAY_REFUSED;
    }
}

static int push(struct tci_flow *flow)
{
    int r;
    flow->blocked = false;
    r = push_pipe(flow);
    while (r == TCI_FLOW_GOES_ON && !flow->blocked) {
        r = push_cleared(flow);
        if (r != TCI_FLOW_GOES_ON || flow->blocked || flow->paused || !flow->fresh)
            break;
        r = judge(flow);
    }
    return r;
}

/* ---- in ------------------------------------------------------------------------------------------ */

/* What a read of nothing means. */
static int read_ended(struct tci_flow *flow, ssize_t n)
{
    flow->bulk = false;
    if (n == 0) {
        flow->ended = flow->fresh = true;
        return TCI_FLOW_GOES_ON;
    }
    /* All that came before the reset was delivered, and so is the reset. */
    return errno == EAGAIN ? TCI_FLOW_GOES_ON : TCI_RELAY_CLOSED;
}

static ssize_t receive(struct tci_flow *flow, void *bytes, size_t size, int flags)
{
    ssize_t n;
    do
        n = recv(flow->from, bytes, size, flags | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static int pull_inspected(struct tci_flow *flow, size_t *ret)
{
    ssize_t n;
    make_room(flow);
    n = receive(flow, flow->bytes + flow->end, flow->capacity - flow->end, 0);
    if (n <= 0)
        return read_ended(flow, n);
    flow->end += (size_t)n;
    flow->fresh = true;
    *ret = (size_t)n;
    return TCI_FLOW_GOES_ON;
}

/* Nothing may pass any more. That is of interest only if there is something. */
static int pull_nothing(struct tci_flow *flow)
{
    char byte;
    ssize_t n = receive(flow, &byte, 1, MSG_PEEK);
    return n > 0 ? TCI_RELAY_LIMIT : read_ended(flow, n);
}

static int pull_copied(struct tci_flow *flow, uint64_t room, size_t *ret)
{
    size_t most = smaller(TCI_FLOW_CHUNK, room);
    ssize_t n;
    make_room(flow);
    n = receive(flow, flow->bytes, most, 0);
    if (n <= 0)
        return read_ended(flow, n);
    flow->end = flow->cleared = flow->paid = (size_t)n;
    flow->bulk = (size_t)n == TCI_FLOW_CHUNK;
    *ret = (size_t)n;
    return TCI_FLOW_GOES_ON;
}

static int pull_spliced(struct tci_flow *flow, uint64_t room, size_t *ret)
{
    ssize_t n = tci_splice_in(flow->from, flow->pipe.in, smaller(TCI_PIPE_SIZE, room));
    int problem = errno;
    flow->bulk = n >= TCI_FLOW_CHUNK / 2;
    if (n > 0) {
        flow->has_pipe = true;
        flow->piped = *ret = (size_t)n;
        return TCI_FLOW_GOES_ON;
    }
    tci_pool_give_pipe(flow->pool, &flow->pipe, true);
    /* The kernel tells of a reset only once: whoever asked again would take it for an end. */
    if (n < 0 && problem != EAGAIN && problem != EINVAL)
        return TCI_RELAY_CLOSED;
    /* Perhaps there is something after all: the kernel does not splice over urgent data, and a cage that
     * sends some would have us try for ever. */
    return pull_copied(flow, room, ret);
}

/* Reads once. *ret: how much; 0 also when there is nothing now, at the end, and when it must wait. */
static int pull(struct tci_flow *flow, size_t *ret)
{
    uint64_t room;
    int r;
    *ret = 0;
    if (flow->inspect)
        return pull_inspected(flow, ret);
    release_bytes(flow);
    room = tci_budget_ask(flow->waiter, flow->inward, &flow->paused);
    if (!room)
        return flow->paused ? TCI_FLOW_GOES_ON : pull_nothing(flow);
    if (flow->bulk && flow->passed >= bulk_after && tci_pool_take_pipe(flow->pool, &flow->pipe))
        r = pull_spliced(flow, room, ret);
    else
        r = pull_copied(flow, room, ret);
    tci_budget_charge(flow->waiter, flow->inward, *ret);
    flow->passed += *ret;
    return r;
}

/* ---- both ---------------------------------------------------------------------------------------- */

static int announce_end(struct tci_flow *flow)
{
    if (flow->shut || flow->cut)
        return TCI_FLOW_GOES_ON;
    flow->shut = true;
    return shutdown(flow->to, SHUT_WR) < 0 ? TCI_FLOW_NO_READER : TCI_FLOW_GOES_ON;
}

static int pump(struct tci_flow *flow)
{
    bool drained = false;
    for (size_t moved = 0;;) {
        size_t n;
        int r = push(flow);
        if (r != TCI_FLOW_GOES_ON || flow->blocked || flow->paused)
            return r;
        if (flow->ended)
            return announce_end(flow);
        if (drained || moved >= turn_max)
            return TCI_FLOW_GOES_ON;
        r = pull(flow, &n);
        if (r != TCI_FLOW_GOES_ON || flow->paused)
            return r;
        /* A short read took all there was: asking again would only be told so. */
        drained = !flow->ended && !flow->bulk && n < TCI_FLOW_CHUNK;
        moved += n;
    }
}

int tci_flow_pump(struct tci_flow *flow)
{
    int r;
    if (flow->paused)
        return TCI_FLOW_GOES_ON;
    r = pump(flow);
    if (r != TCI_FLOW_GOES_ON)
        tci_flow_release(flow);
    else if (keep(flow) < 0)
        r = TCI_RELAY_BROKEN;
    return r;
}
