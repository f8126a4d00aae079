/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the life of a call: start, step, cancel, free, and the blocking call on top of them.
 * Invariants: a call has a run or is over; what ends a call is decided in one place (finish); no
 * step waits for anything but the files that it brings back.
 */
#include "core/call.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
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

/* Everything of the cage, in the order in which it can be done without. */
static void leave_cage(struct tc_call *call)
{
    if (call->run)
        backend_of(call)->destroy(call->run);
    call->run = NULL;
    tci_trace_free(tc_take(call->trace)); /* it waits for the tree, and looks at the plan */
    tci_engine_release(call->engine, call->plan);
    call->plan = NULL;
}

/* The tree is gone: take what it left, and say how it was. */
static int finish(struct tc_call *call, const struct tc_outcome *outcome,
                  const struct tc_error *broken, struct tc_error *reterr)
{
    enum tci_cause cause = cause_of(tci_streams_drain(&call->streams));
    int r;
    if (!call->cause)
        call->cause = cause; /* there is nobody left to end; files may still be in the cage */
    r = tci_call_verdict(call, outcome, broken, reterr);
    if (r == 0 && call->trace)
        r = tci_denials_add(call->result, call->trace, reterr);
    if (r == 0)
        r = tci_call_collect(call, outcome, reterr);
    leave_cage(call);
    call->over = true;
    return r;
}

static int step_backend(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_outcome outcome = { .finished = false };
    struct tc_error broken = { 0 };
    if (backend_of(call)->step(call->run, &outcome, &broken) < 0) {
        outcome.finished = true;
        outcome.end = TCI_END_BROKEN;
    }
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
        tc_result_free(&tc_take(call->result)->public);
        return -1;
    }
    *ret_result = call->over ? &tc_take(call->result)->public : NULL;
    return 0;
}

int tc_call_fd(const struct tc_call *call)
{
    return call->fd;
}

void tc_call_cancel(struct tc_call *call)
{
    if (call && call->run)
        end_tree(call, TCI_CAUSE_CANCEL);
}

int tci_call_hold(struct tc_call *call, bool hold)
{
    return call->over ? 0 : tci_streams_hold(&call->streams, hold);
}

void tc_call_free(struct tc_call *call)
{
    if (!call)
        return;
    leave_cage(call);
    tci_streams_close(&call->streams);
    tci_close(call->timer);
    tci_close(call->out);
    tci_close(call->fd);
    if (call->result)
        tc_result_free(&call->result->public);
    free(call);
}

/* ---- the beginning ------------------------------------------------------------------------ */

static int check_request(const struct tc_request *request, struct tc_error *reterr)
{
    bool terminal = request->flags & TC_REQUEST_TERMINAL;
    const struct {
        bool wrong;
        const char *message;
    } checks[] = {
        { request->argv && request->arguments_json,
          "a request has either argv or arguments_json, not both" },
        { request->argv && !request->argv[0], "argv is empty: it names no program" },
        { !request->argv && !request->tool, "a request without a tool needs argv" },
        { request->input && request->input_fd > 0, "a request has one source of input, not two" },
        { !request->input && request->input_length, "input_length is given without input" },
        { terminal && (request->input || request->input_fd > 0),
          "input of a call with a terminal comes from the terminal" },
        { terminal && request->terminal < 0, "TC_REQUEST_TERMINAL needs a terminal" },
        { request->trace_id && !tci_trace_id_is_valid(request->trace_id),
          "trace_id is not 32 hexadecimal digits, or all zero" },
    };
    for (size_t i = 0; i < tci_array_size(checks); i++)
        if (checks[i].wrong)
            return tci_error_set(reterr, TC_ERROR_USAGE, "%s", checks[i].message);
    return 0;
}

static int copy_name(struct tci_arena *arena, const char *name, const char **ret)
{
    if (name)
        *ret = tci_arena_strdup(arena, name);
    return name && !*ret ? -1 : 0;
}

static int make_result(struct tc_call *call, const struct tc_request *request,
                       struct tc_error *reterr)
{
    struct tc_result *public;
    call->result = tci_result_new(request->trace_id);
    if (!call->result)
        return tci_error_no_memory(reterr);
    public = &call->result->public;
    if (copy_name(call->result->arena, request->tool, &public->tool) < 0 ||
        copy_name(call->result->arena, request->agent, &public->agent) < 0 ||
        copy_name(call->result->arena, request->session, &public->session) < 0 ||
        copy_name(call->result->arena, request->out_directory, &call->out_path) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}

/* From now on. A caller who waits in tc_call is woken by epoll_wait; others need a descriptor. */
static int arm_timer(struct tc_call *call, struct tc_error *reterr)
{
    uint64_t ms = call->plan->narrowed.settings.timeout;
    struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
                                             .tv_nsec = (long)(ms % 1000) * 1000000 } };
    call->started = tci_clock_us();
    if (ms >= (UINT64_MAX - call->started) / 1000)
        return 0; /* unlimited, or longer than there will be a clock */
    if (call->blocking) {
        call->deadline = call->started + ms * 1000;
        return 0;
    }
    call->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (call->timer < 0 || timerfd_settime(call->timer, 0, &when, NULL) < 0 ||
        tci_event_add(call->fd, call->timer, EPOLLIN, TCI_EVENT_TIMER) < 0)
        return tci_error_errno(reterr, errno, "cannot set the timer of the call");
    return 0;
}

/* The cage's own description of itself. */
static int describe_run(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_result *public = &call->result->public;
    const struct tc_backend *backend = backend_of(call);
    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "%s",
                   backend->sandbox_id(call->run));
    public->layers = tci_arena_strdup(call->result->arena, backend->layers(call->run));
    return public->layers ? 0 : tci_error_no_memory(reterr);
}

static int start_run(struct tc_call *call, const struct tc_request *request,
                     const struct tci_command *command, struct tc_error *reterr)
{
    bool terminal = request->flags & TC_REQUEST_TERMINAL;
    const struct tci_settings *settings = &call->plan->narrowed.settings;
    const void *input = command->input ? command->input : request->input;
    size_t length = command->input ? command->input_length : request->input_length;
    struct tc_io io = { .argv = command->argv,
                        .terminal = terminal,
                        .traced = request->flags & TC_REQUEST_EXPLAIN_DENIALS,
                        .hold = settings->outputs.globs.count > 0 };

    call->fd = epoll_create1(EPOLL_CLOEXEC);
    if (call->fd < 0)
        return tci_error_errno(reterr, errno, "cannot wait for the call");
    if (tci_streams_open(&call->streams, call->fd, request, input, length, call->engine->null >= 0,
                         settings->output, call->result, reterr) < 0)
        return -1;
    io.in = terminal                     ? request->terminal
            : call->streams.cage[0] >= 0 ? call->streams.cage[0]
                                         : call->engine->null;
    io.out = terminal ? request->terminal : call->streams.cage[1];
    io.err = terminal ? request->terminal : call->streams.cage[2];
    if (arm_timer(call, reterr) < 0 ||
        backend_of(call)->start(call->plan->plan, &io, &call->run, reterr) < 0)
        return -1;
    if (describe_run(call, reterr) < 0 || tci_streams_begin(&call->streams, reterr) < 0)
        return -1;
    if (io.traced && tci_trace_start(backend_of(call), call->run, &call->trace, reterr) < 0)
        return -1;
    if (tci_event_add(call->fd, backend_of(call)->fd(call->run), EPOLLIN, TCI_EVENT_RUN) < 0)
        return tci_error_errno(reterr, errno, "cannot wait for the cage");
    return 0;
}

/* From the request to a running cage. 1: refused, the result says why. */
static int prepare(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    const struct tci_tool *tool = NULL;
    const struct tci_grant *grant = NULL;
    struct tci_command command = { .argv = NULL };
    struct tci_limits limits;
    int r;

    if ((r = tci_call_decide(call->engine, request, call->result, &tool, &grant, reterr)) != 0)
        return r;
    call->tool = tool;
    call->grant = grant;
    call->result->public.backend = tci_backend_kind_name(tool->settings.backend);
    if ((r = tci_call_limits(tool, grant, request, &limits, call->result, reterr)) != 0 ||
        (r = tci_call_command(tool, request, call->result, &command, reterr)) != 0)
        return r;
    call->program = tci_arena_strdup(call->result->arena, command.argv[0]);
    if (!call->program)
        return tci_error_no_memory(reterr);
    if (request->out_directory && tci_call_open_out(request->out_directory, &call->out, reterr) < 0)
        return -1;
    if (tci_engine_plan(call->engine, tool, grant, &limits, &call->plan, reterr) < 0)
        return -1;
    return start_run(call, request, &command, reterr);
}

/* What the caller did wrong, or memory, is an error; a cage that could not be built is a result. */
static int judge(struct tc_call *call, int r, const struct tc_error *error, struct tc_error *reterr)
{
    if (r < 0 && (error->code == TC_ERROR_NO_MEMORY || error->code == TC_ERROR_USAGE)) {
        if (reterr)
            *reterr = *error;
        return -1;
    }
    if (r < 0) {
        tci_call_refuse(call->result, error);
        call->refused = error->code;
    }
    if (r != 0) {
        leave_cage(call);
        call->over = true;
    }
    return 0;
}

/* NULL: *reterr says why. */
static struct tc_call *begin(struct tc_engine *engine, const struct tc_request *request,
                             bool blocking, struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    struct tc_call *call;

    tci_error_clear(reterr);
    if (check_request(request, reterr) < 0)
        return NULL;
    call = calloc(1, sizeof *call);
    if (!call) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    call->engine = engine;
    call->blocking = blocking;
    call->deadline = UINT64_MAX;
    call->fd = call->timer = call->out = -1;
    tci_streams_init(&call->streams);
    if (make_result(call, request, reterr) < 0 ||
        judge(call, prepare(call, request, &error), &error, reterr) < 0) {
        tc_call_free(call);
        return NULL;
    }
    return call;
}

/* ---- both ways to call -------------------------------------------------------------------- */

/* The call was over at once: there is something to step for, and nothing to wait for. */
static int make_readable(struct tc_call *call, struct tc_error *reterr)
{
    tci_close(call->fd);
    call->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    return call->fd < 0 ? tci_error_errno(reterr, errno, "cannot make an event") : 0;
}

int tc_call_start(struct tc_engine *engine, const struct tc_request *request,
                  struct tc_call **ret_call, struct tc_error *reterr)
{
    struct tc_call *call = begin(engine, request, false, reterr);
    if (!call)
        return -1;
    if (call->over && make_readable(call, reterr) < 0) {
        tc_call_free(call);
        return -1;
    }
    *ret_call = call;
    return 0;
}

int tc_call(struct tc_engine *engine, const struct tc_request *request,
            struct tc_result **ret_result, struct tc_error *reterr)
{
    struct tc_call *call = begin(engine, request, true, reterr);
    int r = 0;
    if (!call)
        return -1;
    while (r == 0 && !call->over)
        r = run_once(call, reterr);
    if (r == 0)
        *ret_result = &tc_take(call->result)->public;
    tc_call_free(call);
    return r;
}
