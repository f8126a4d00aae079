/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this call be made? The grants answer (engine_grants.c); here the answer becomes a result.
 * An agent learns nothing from it that the policy does not want to say: a tool that is not granted and
 * a tool that does not exist give the same result.
 */
#include "core/call.h"

#include <stdio.h>
#include <string.h>
#include "base/clock.h"

int tci_call_deny_grant(struct tc_call *call, const char *tool, const struct tc_decision *decision,
                        struct tc_error *reterr)
{
    struct tci_result *result = call->result;
    char rule[sizeof decision->key + sizeof decision->fix + 2];
    (void)snprintf(rule, sizeof rule, "%s: %s", decision->key, decision->fix);
    tci_result_verdict(result, TC_VERDICT_DENIED, decision->fix, "%s", decision->reason);
    if (tci_result_deny(result, "grant", tool ? tool : "", rule) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}

/* ---- for whom ----------------------------------------------------------------------------- */

static bool has_agent(const struct tc_call *call, const char *name)
{
    for (size_t i = 0; i < call->agent_count; i++)
        if (strcmp(call->agents[i], name) == 0)
            return true;
    return false;
}

/* The agent of the call comes first, since answers are about it; then those that it works for, then
 * those of the calls around it. False: there are too many. */
static bool gather_agents(struct tc_call *call)
{
    const char *name = call->result->public.agent, *around[TCI_GRANTS_MAX];
    size_t around_count = call->agent_count;

    if (!name)
        return true;
    memcpy(around, call->agents, sizeof around);
    call->agent_count = tci_engine_chain(call->engine, name, call->agents);
    if (call->agent_count > TCI_GRANTS_MAX)
        return false;
    for (size_t i = 0; i < around_count; i++) {
        if (has_agent(call, around[i]))
            continue;
        if (call->agent_count == TCI_GRANTS_MAX)
            return false;
        call->agents[call->agent_count++] = around[i];
    }
    return true;
}

static int too_many(struct tc_call *call, struct tc_error *reterr)
{
    tci_result_verdict(call->result, TC_VERDICT_DENIED, "let fewer agents work for each other",
                       "the call is made for more than %d agents, one for the other",
                       TCI_GRANTS_MAX);
    if (tci_result_deny(call->result, "grant", "agents", "grants: too many agents") < 0)
        return tci_error_no_memory(reterr);
    return 1;
}

int tci_call_decide(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    struct tc_engine *engine = call->engine;
    __typeof__(tci_engine_decide) *decide;
    struct tc_decision decision;
    int r = tci_call_nest(call, request, reterr);

    if (r != 0)
        return r;
    if (!gather_agents(call))
        return too_many(call, reterr);
    /* Only the owner may run a command under [defaults]: no grant can name them. */
    if (!call->agent_count && !request->tool) {
        call->tool = engine->policy->anonymous;
        return 0;
    }
    decide = call->kind == TCI_CALL_SERVER || call->kind == TCI_CALL_NOTED || call->refusal
                 ? tci_engine_decide_start
                 : tci_engine_decide;
    if (decide(engine, call->agents, call->agent_count, request->tool, &call->grants, &decision,
               reterr) < 0)
        return -1;
    if (!decision.allowed)
        return tci_call_deny_grant(call, request->tool, &decision, reterr);
    call->tool = tci_engine_tool(engine, request->tool);
    return 0;
}

/* ---- limits ------------------------------------------------------------------------------- */

/* What the call around it has, and the time that it has left. */
static const struct tci_limits *limits_around(const struct tc_call *call, struct tci_limits *ret)
{
    uint64_t now = tci_clock_us(), left;
    if (!call->within)
        return NULL;
    *ret = call->within->limits;
    left = now < call->end_by ? (call->end_by - now) / 1000 : 0;
    if (call->end_by != UINT64_MAX && left < tci_limits_get(ret, TCI_KEY_TIMEOUT))
        tci_limits_set(ret, TCI_KEY_TIMEOUT, left ? left : 1);
    return ret;
}

int tci_call_limits(struct tc_call *call, const struct tc_request *request, struct tci_limits *ret,
                    struct tc_error *reterr)
{
    const struct tci_tool *tool = call->tool;
    bool granted = call->grants.count > 0;
    struct tci_result *result = call->result;
    struct tci_limits around;
    int wider = tci_narrow_limits(tool, &call->grants, limits_around(call, &around),
                                  &request->limits, ret);
    char asked[TCI_LIMIT_TEXT_MAX], allowed[TCI_LIMIT_TEXT_MAX], fix[256], rule[128];
    enum tci_key key;
    const char *name;

    if (wider < 0)
        return 0;
    key = (enum tci_key)wider;
    name = tci_key_name(key);
    (void)tci_limit_toml(key, tci_limits_requested(&request->limits, key), asked);
    (void)tci_limit_toml(key, tci_limits_get(ret, key), allowed);
    (void)snprintf(fix, sizeof fix, "ask for %s or less, or set %s = %s in %s%s%s", allowed, name,
                   asked, granted ? "the tool and the grant" : "the policy",
                   granted || *tool->name ? "" : "'s [defaults]",
                   call->within ? ", and give the call around it more" : "");
    (void)snprintf(rule, sizeof rule, "%s = %s", name, allowed);
    tci_result_verdict(result, TC_VERDICT_DENIED, fix,
                       "the request asks for %s = %s, and %s %s: a request can only narrow", name,
                       asked, call->within ? "the call around it has" : "the policy allows",
                       allowed);
    if (tci_result_deny(result, "limit", name, rule) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}
