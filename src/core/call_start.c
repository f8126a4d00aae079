/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the beginning of a call: from a request to a running cage, or to a refusal. Invariant: what
 * was opened on the way belongs to the call, and goes with it.
 */
#include "core/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include "base/clock.h"
#include "core/engine_tools.h"
#include "core/record.h"
#include "core/relayed.h"

/* Names are shown, recorded and compared. An empty one would look like none at all, and so a call of an
 * agent like one of the owner's; one that is not UTF-8 would be another in each of these places. It is
 * about the form alone: whether there is such a tool has no part in it. */
static int check_names(const struct tc_request *request, struct tc_error *reterr)
{
    const struct {
        const char *what, *name;
    } names[] = { { "tool", request->tool },
                  { "agent", request->agent },
                  { "session", request->session } };
    for (size_t i = 0; i < tci_array_size(names); i++) {
        const char *name = names[i].name;
        if (!name || (*name && tci_is_utf8(name, strlen(name))))
            continue;
        tci_error_set(reterr, TC_ERROR_USAGE, "the name of the %s is %s", names[i].what,
                      *name ? "not UTF-8" : "empty");
        tci_error_remedy(reterr, "give a name of UTF-8 text%s",
                         request->tool == name && !request->argv ? "" : ", or none");
        return -1;
    }
    return 0;
}

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
    return check_names(request, reterr);
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
    uint64_t ms = tci_call_time(call);
    struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
                                             .tv_nsec = (long)(ms % 1000) * 1000000 } };
    call->started = tci_clock_us();
    if (call->kind == TCI_CALL_SERVER || ms >= (UINT64_MAX - call->started) / 1000)
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
    const struct tc_backend *backend = call->plan->backend;
    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "%s",
                   backend->sandbox_id(call->run));
    public->layers = tci_arena_strdup(call->result->arena, backend->layers(call->run));
    return public->layers ? 0 : tci_error_no_memory(reterr);
}

static void pass_on_network(void *data, const struct tci_gate_record *record)
{
    const struct tc_call *call = data;
    struct tc_network_event event;
    if (!call->in_step)
        return; /* the call is being freed, and perhaps the caller's context is gone */
    tci_network_event(record, &event);
    call->on_network(call->network_context, &event);
}

static int start_run(struct tc_call *call, const struct tc_request *request,
                     const struct tci_command *command, struct tc_error *reterr)
{
    bool terminal = request->flags & TC_REQUEST_TERMINAL, server = call->kind == TCI_CALL_SERVER;
    const struct tci_settings *settings = &call->plan->narrowed.settings;
    const void *input = command->input ? command->input : request->input;
    size_t length = command->input ? command->input_length : request->input_length;
    struct tc_io io = { .argv = command->argv,
                        .terminal = terminal,
                        .traced = request->flags & TC_REQUEST_EXPLAIN_DENIALS,
                        .hold = settings->outputs.globs.count > 0,
                        .on_network = request->on_network ? pass_on_network : NULL,
                        .network_data = call };

    if (!request->argv &&
        tci_engine_start_with(call->engine, call, &call->plan->spec, &io, reterr) < 0)
        return -1;
    call->on_network = request->on_network;
    call->network_context = request->network_context;
    call->fd = epoll_create1(EPOLL_CLOEXEC);
    if (call->fd < 0)
        return tci_error_errno(reterr, errno, "cannot wait for the call");
    if (tci_streams_open(&call->streams, call->fd, request, input, length, call->engine->null >= 0,
                         server ? TCI_UNLIMITED : settings->output, call->result, reterr) < 0)
        return -1;
    if (call->recorded && !server)
        call->streams.keep =
            true; /* also what the caller lets pass: the journal has it, or its hash */
    call->streams.input.is_watched = server;
    io.in = terminal                     ? request->terminal
            : call->streams.cage[0] >= 0 ? call->streams.cage[0]
                                         : call->engine->null;
    io.out = terminal ? request->terminal : call->streams.cage[1];
    io.err = terminal ? request->terminal : call->streams.cage[2];
    if (arm_timer(call, reterr) < 0 ||
        call->plan->backend->start(call->plan->plan, &io, &call->run, reterr) < 0)
        return -1;
    if (describe_run(call, reterr) < 0 || tci_streams_begin(&call->streams, reterr) < 0)
        return -1;
    if (io.traced && tci_trace_start(call->plan->backend, call->run, &call->trace, reterr) < 0)
        return -1;
    if (tci_event_add(call->fd, call->plan->backend->fd(call->run), EPOLLIN, TCI_EVENT_RUN) < 0)
        return tci_error_errno(reterr, errno, "cannot wait for the cage");
    return 0;
}

/* From the request to a running cage. 1: refused, the result says why. */
static int prepare(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    static const char *const none[] = { NULL };
    const bool noted = call->kind == TCI_CALL_NOTED;
    const bool relayed = noted || call->kind == TCI_CALL_RELAYED;
    struct tci_command command = { .argv = none };
    struct tci_limits limits;
    int r;

    if ((r = tci_call_read_arguments(call, request, reterr)) != 0 ||
        (r = tci_call_replay(call, request, reterr)) != 0)
        return r;
    r = tci_call_decide(call, request, reterr);
    tci_call_decided(call, request, r == 0);
    if (r != 0)
        return r;
    if (call->refusal) {
        tci_result_verdict(call->result, call->refusal->verdict, call->refusal->fix, "%s",
                           call->refusal->reason);
        return 1;
    }
    call->result->public.backend = tci_backend_kind_name(call->tool->settings.backend);
    if ((r = tci_call_limits(call, request, &limits, reterr)) != 0 ||
        (!noted && (r = tci_call_check_arguments(call, request, reterr)) != 0) ||
        (!relayed && (r = tci_call_command(call, request, &command, reterr)) != 0))
        return r;
    call->program = tci_arena_strdup(call->result->arena, relayed ? "" : command.argv[0]);
    if (!call->program)
        return tci_error_no_memory(reterr);
    if (request->out_directory && tci_call_open_out(request->out_directory, &call->out, reterr) < 0)
        return -1;
    if ((r = tci_call_plan(call, &limits, reterr)) != 0 ||
        (call->kind != TCI_CALL_SERVER && !noted &&
         (r = tci_call_approve(call, request, &command, reterr)) != 0))
        return r;
    call->started = tci_clock_us();
    return relayed ? 0 : start_run(call, request, &command, reterr);
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
    if (r == 0) {
        tci_engine_enter(call);
        return 0;
    }
    tci_call_leave(call);
    call->over = true;
    return tci_call_record(call, reterr);
}

struct tc_call *tci_call_begin(struct tc_engine *engine, const struct tc_request *request,
                               enum tci_call_kind kind, bool blocking,
                               const struct tci_relayed_refusal *refusal, struct tc_error *reterr)
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
    call->kind = kind;
    call->refusal = refusal;
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
