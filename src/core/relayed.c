/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the beginning and the end of calls whose work somebody else does. Invariant: a call that began
 * has a record before anybody sees its result, whoever did the work and however it ended.
 */
#include "core/relayed.h"

#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "core/call.h"

enum { noted_max = 4096 }; /* bytes of output of what is no call */

int tci_server_start(struct tc_engine *engine, const struct tc_request *request,
                     struct tc_call **ret_call, struct tc_error *reterr)
{
    if (!request->argv)
        return tci_error_set(reterr, TC_ERROR_USAGE, "a server is started with argv");
    return tci_call_hand_over(tci_call_begin(engine, request, TCI_CALL_SERVER, false, NULL, reterr),
                              ret_call, reterr);
}

bool tci_server_is_deaf(const struct tc_call *server)
{
    return server->streams.input.is_refused;
}

/* Without looking at who holds which grant: one that asks may be made while the server runs. */
bool tci_relayed_asks(struct tc_engine *engine, const char *agent, const char *tool)
{
    const struct tci_tool *t = tci_engine_tool(engine, tool);
    return engine->mode == TC_MODE_LIVE &&
           (agent || !t || t->settings.approval == TCI_APPROVAL_ASK);
}

/* In whose cage: what was in force there was in force for this call. */
static int describe(struct tc_call *call, const struct tc_call *server, struct tc_error *reterr)
{
    struct tc_result *public = &call->result->public;
    const char *layers = server && server->result ? server->result->public.layers : NULL;

    if (!layers)
        return 0;
    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "%s",
                   server->result->public.sandbox_id);
    public->layers = tci_arena_strdup(call->result->arena, layers);
    return public->layers ? 0 : tci_error_no_memory(reterr);
}

static int begin(struct tc_engine *engine, const struct tc_request *request,
                 enum tci_call_kind kind, const struct tci_relayed_refusal *refusal,
                 struct tc_call **ret_call, struct tc_result **ret_result, struct tc_error *reterr)
{
    struct tc_call *call;

    *ret_call = NULL;
    *ret_result = NULL;
    if (request->argv)
        return tci_error_set(reterr, TC_ERROR_USAGE, "a call that is relayed has arguments");
    call = tci_call_begin(engine, request, kind, true, refusal, reterr);
    if (!call)
        return -1;
    call->refusal = NULL;
    if (!call->over) {
        *ret_call = call;
        return 0;
    }
    *ret_result = &tc_take(call->result)->public;
    tc_call_free(call);
    return 0;
}

int tci_relayed_begin(struct tc_engine *engine, const struct tc_request *request,
                      const struct tci_relayed_refusal *refusal, struct tc_call **ret_call,
                      struct tc_result **ret_result, struct tc_error *reterr)
{
    return begin(engine, request, TCI_CALL_RELAYED, refusal, ret_call, ret_result, reterr);
}

int tci_relayed_note(struct tc_engine *engine, const struct tc_request *request,
                     struct tc_call **ret_call, struct tc_result **ret_result,
                     struct tc_error *reterr)
{
    return begin(engine, request, TCI_CALL_NOTED, NULL, ret_call, ret_result, reterr);
}

uint64_t tci_relayed_timeout(const struct tc_call *call)
{
    return call->plan->narrowed.settings.timeout;
}

uint64_t tci_relayed_output(const struct tc_call *call)
{
    return call->plan->narrowed.settings.output;
}

/* 1: more than the policy lets a call print. */
static int keep(struct tc_call *call, const struct tci_relayed_end *end, struct tc_error *reterr)
{
    int r;
    if (!end->output)
        return 0;
    call->result->output_room = call->kind == TCI_CALL_NOTED ? noted_max : tci_relayed_output(call);
    r = tci_result_keep(call->result, TC_STREAM_STDOUT, end->output, end->output_length);
    return r < 0 ? tci_error_no_memory(reterr) : r;
}

int tci_relayed_end(struct tc_call *call, const struct tc_call *server,
                    const struct tci_relayed_end *end, struct tc_result **ret_result,
                    struct tc_error *reterr)
{
    struct tc_result *public = &call->result->public;
    int r = describe(call, server, reterr);

    if (r == 0)
        r = keep(call, end, reterr);
    public->exit_code = end->exit_code;
    public->usage.duration_us = tci_clock_us() - call->started;
    if (r > 0)
        tci_result_verdict(
            call->result, TC_VERDICT_OUTPUT, "ask for less, or raise \"output\" in the policy",
            "the result is larger than the limit of the policy: %zu bytes", end->output_length);
    else if (r == 0)
        tci_result_verdict(call->result, end->verdict, end->fix, "%s",
                           end->reason ? end->reason : "");
    if (r >= 0)
        r = call->kind == TCI_CALL_NOTED ? 0 : tci_call_check_output(call, reterr);
    tci_call_leave(call);
    call->over = true;
    if (r == 0)
        r = tci_call_record(call, reterr);
    if (r == 0)
        *ret_result = &tc_take(call->result)->public;
    tc_call_free(call);
    return r;
}
