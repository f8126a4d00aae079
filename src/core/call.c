/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the life of a call: step, cancel, free, and the blocking call on top of them. Its beginning is
 * in call_start.c.
 * Invariants: a call has a run or is over; what ends a call is decided in one place (finish); no
 * step waits for anything but the files that it brings back.
 */
#include "core/call.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include "base/clock.h"
#include "base/fd.h"

/* Of one stream in one step: a cage that floods must not keep a caller's event loop to itself. */
enum { step_bytes = 128 * 1024 };

/* ---- the end ------------------------------------------------------------------------------ */

static const struct tc_backend *backend_of(const struct tc_call *call)
{
    return call->plan->backend;
}

static void end_tree(struct tc_call *call, enum tci_cause cause)
{
    if (!call->cause)
        call->cause = cause;
    if (!call->in_step) /* a caller may cancel in on_network, which a step of the backend calls */
        backend_of(call)->kill(call->run);
}

static enum tci_cause cause_of(enum tci_flow flow)
{
    static const enum tci_cause causes[] = {
        [TCI_FLOW_ON] = TCI_CAUSE_NONE,
        [TCI_FLOW_FULL] = TCI_CAUSE_OUTPUT,
        [TCI_FLOW_STOPPED] = TCI_CAUSE_CALLER,
        [TCI_FLOW_NO_MEMORY] = TCI_CAUSE_NO_MEMORY,
    };
    return causes[flow];
}

void tci_call_leave(struct tc_call *call)
{
    tci_engine_leave(call); /* first: what others may take from it is about to go */
    if (call->run)
        backend_of(call)->destroy(call->run);
    call->run = NULL;
    tci_trace_free(tc_take(call->trace)); /* it waits for the tree, and looks at the plan */
    tci_engine_release(call->engine, call->plan);
    tci_engine_release(call->engine, call->within);
    call->plan = call->within = NULL;
}

/* What the cage was refused. The gate's come first, and so are named first: a program seldom does
 * without a host that it asks for, and looks for many files that it can do without. */
static int add_denials(struct tc_call *call, struct tc_error *reterr)
{
    const struct tc_backend *backend = backend_of(call);
    const struct tci_gate_record *records = NULL;
    size_t count = 0;
    uint64_t dropped = 0;

    if (backend->network)
        records = backend->network(call->run, &count, &dropped);
    if (tci_network_add(call->result, records, count, dropped, reterr) < 0 ||
        (call->trace && tci_denials_add(call->result, call->trace, reterr) < 0))
        return -1;
    tci_denials_name(call->result);
    return 0;
}

/* The tree is gone: take what it left, and say how it was. */
static int finish(struct tc_call *call, const struct tc_outcome *outcome,
                  const struct tc_error *broken, struct tc_error *reterr)
{
    enum tci_cause cause = cause_of(tci_streams_drain(&call->streams));
    int r;
    if (!call->cause)
        call->cause = cause; /* there is nobody left to end; files may still be in the cage */
    /* An engine may have named its container only after the start. */
    (void)snprintf(call->result->public.sandbox_id, sizeof call->result->public.sandbox_id, "%s",
                   backend_of(call)->sandbox_id(call->run));
    r = tci_call_verdict(call, outcome, broken, reterr);
    if (r == 0)
        r = add_denials(call, reterr);
    if (r == 0)
        r = tci_call_collect(call, outcome, reterr);
    if (r == 0)
        r = tci_call_check_output(call, reterr);
    tci_call_leave(call);
    call->over = true;
    return r == 0 ? tci_call_record(call, reterr) : r;
}

static int step_backend(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_outcome outcome = { .finished = false };
    struct tc_error broken = { 0 };
    enum tci_cause before = call->cause;
    int r;

    call->in_step = true;
    r = backend_of(call)->step(call->run, &outcome, &broken);
    call->in_step = false;
    if (r < 0) {
        outcome.finished = true;
        outcome.end = TCI_END_BROKEN;
    }
    if (!outcome.finished && call->cause != before)
        backend_of(call)->kill(call->run);
    return outcome.finished ? finish(call, &outcome, &broken, reterr) : 0;
}

/* ---- the middle --------------------------------------------------------------------------- */

/* Milliseconds for epoll_wait, rounded up: a timeout is never early. */
static int time_left(const struct tc_call *call)
{
    uint64_t now, left;
    if (!call->blocking)
        return 0;
    if (call->deadline == UINT64_MAX)
        return -1;
    now = tci_clock_us();
    left = now < call->deadline ? (call->deadline - now + 999) / 1000 : 0;
    return left < INT_MAX ? (int)left : INT_MAX;
}

static void end_by_timeout(struct tc_call *call)
{
    (void)epoll_ctl(call->fd, EPOLL_CTL_DEL, call->timer, NULL);
    call->timer = tci_close(call->timer); /* or it would stay readable */
    call->deadline = UINT64_MAX;
    end_tree(call, TCI_CAUSE_TIMEOUT);
}

/* One round: whatever is ready. A blocking call waits for it. */
static int run_once(struct tc_call *call, struct tc_error *reterr)
{
    struct epoll_event events[TCI_EVENT_COUNT];
    unsigned ready = 0;
    int count;

    do
        count = epoll_wait(call->fd, events, TCI_EVENT_COUNT, time_left(call));
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return tci_error_errno(reterr, errno, "cannot wait for the call");
    for (int i = 0; i < count; i++) {
        enum tci_event event = (enum tci_event)events[i].data.u32;
        size_t budget = step_bytes;
        enum tci_cause cause = TCI_CAUSE_NONE;
        if (event < TCI_EVENT_TIMER)
            cause = cause_of(tci_streams_event(&call->streams, event, &budget));
        else
            ready |= 1U << event;
        if (cause)
            end_tree(call, cause);
    }
    /* A tree that has ended by itself at the last moment was not stopped by its timeout. */
    if ((ready & 1U << TCI_EVENT_RUN) && step_backend(call, reterr) < 0)
        return -1;
    if (!call->over &&
        ((ready & 1U << TCI_EVENT_TIMER) || (call->blocking && time_left(call) == 0)))
        end_by_timeout(call);
    return 0;
}

int tc_call_step(struct tc_call *call, struct tc_result **ret_result, struct tc_error *reterr)
{
    tci_error_clear(reterr);
    if (!call->result)
        return tci_error_set(reterr, TC_ERROR_USAGE, "the call is over: its result was taken");
    if (!call->over && run_once(call, reterr) < 0) {
        call->over = true; /* tc_call_free ends what is left of it */
        tci_engine_leave(call);
        tc_result_free(&tc_take(call->result)->public);
        return -1;
    }
    if (call->over)
        tci_call_replay_output(call);
    *ret_result = call->over ? &tc_take(call->result)->public : NULL;
    return 0;
}

int tc_call_fd(const struct tc_call *call)
{
    return call->fd;
}

const char *tc_call_id(const struct tc_call *call)
{
    return call->result ? call->result->public.call_id : "";
}

void tc_call_cancel(struct tc_call *call)
{
    if (call && call->run)
        end_tree(call, TCI_CAUSE_CANCEL);
}

size_t tci_call_count_output(struct tc_call *call, size_t length)
{
    uint64_t limit, room;
    if (!call->plan)
        return length;
    limit = call->plan->narrowed.settings.output;
    room = limit - call->terminal_output;
    if (limit == TCI_UNLIMITED || length <= room) {
        call->terminal_output += length;
        return length;
    }
    call->terminal_output = limit;
    if (call->run)
        end_tree(call, TCI_CAUSE_OUTPUT);
    return (size_t)room;
}

int tci_call_hold(struct tc_call *call, bool hold)
{
    return call->over ? 0 : tci_streams_hold(&call->streams, hold);
}

void tc_call_free(struct tc_call *call)
{
    if (!call)
        return;
    tci_call_leave(call);
    json_decref(call->arguments);
    tci_streams_close(&call->streams);
    tci_close(call->timer);
    tci_close(call->out);
    tci_close(call->fd);
    if (call->result)
        tc_result_free(&call->result->public);
    free(call);
}

/* ---- both ways to call -------------------------------------------------------------------- */

/* The call was over at once: there is something to step for, and nothing to wait for. */
static int make_readable(struct tc_call *call, struct tc_error *reterr)
{
    tci_close(call->fd);
    call->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    return call->fd < 0 ? tci_error_errno(reterr, errno, "cannot make an event") : 0;
}

int tci_call_hand_over(struct tc_call *call, struct tc_call **ret_call, struct tc_error *reterr)
{
    if (!call)
        return -1;
    if (call->over && make_readable(call, reterr) < 0) {
        tc_call_free(call);
        return -1;
    }
    *ret_call = call;
    return 0;
}

int tc_call_start(struct tc_engine *engine, const struct tc_request *request,
                  struct tc_call **ret_call, struct tc_error *reterr)
{
    struct tc_call *call = tci_call_begin(engine, request, TCI_CALL_CAGED, false, NULL, reterr);
    return tci_call_hand_over(call, ret_call, reterr);
}

int tc_call(struct tc_engine *engine, const struct tc_request *request,
            struct tc_result **ret_result, struct tc_error *reterr)
{
    struct tc_call *call = tci_call_begin(engine, request, TCI_CALL_CAGED, true, NULL, reterr);
    int r = 0;
    if (!call)
        return -1;
    while (r == 0 && !call->over)
        r = run_once(call, reterr);
    if (r == 0) {
        tci_call_replay_output(call);
        *ret_result = &tc_take(call->result)->public;
    }
    tc_call_free(call);
    return r;
}
