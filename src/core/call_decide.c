/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this call be made? The policy answers (policy/decide.c); here its answer becomes a
 * result. An agent learns nothing from it that the policy does not want to say: a tool that is not
 * granted and a tool that does not exist give the same result.
 */
#include "core/call.h"

#include <stdio.h>

static int deny(struct tci_result *result, const char *tool, const struct tc_decision *decision,
                struct tc_error *reterr)
{
    char rule[sizeof decision->key + sizeof decision->fix + 2];
    (void)snprintf(rule, sizeof rule, "%s: %s", decision->key, decision->fix);
    tci_result_verdict(result, TC_VERDICT_DENIED, decision->fix, "%s", decision->reason);
    if (tci_result_deny(result, "grant", tool ? tool : "", rule) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}

int tci_call_decide(struct tc_engine *engine, const struct tc_request *request,
                    struct tci_result *result, const struct tci_tool **ret_tool,
                    const struct tci_grant **ret_grant, struct tc_error *reterr)
{
    const struct tci_agent *agent;
    struct tc_decision decision;

    /* Only the owner may run a command under [defaults]: no grant can name them. */
    if (!request->agent && !request->tool) {
        *ret_tool = engine->policy->anonymous;
        return 0;
    }
    if (tci_engine_decide(engine, request->agent, request->tool, &decision, reterr) < 0)
        return -1;
    if (!decision.allowed)
        return deny(result, request->tool, &decision, reterr);
    agent = request->agent ? tci_policy_agent(engine->policy, request->agent) : NULL;
    *ret_tool = tci_policy_tool(engine->policy, request->tool);
    *ret_grant = agent ? tci_agent_grant(agent, request->tool) : NULL;
    return 0;
}

int tci_call_limits(const struct tci_tool *tool, const struct tci_grant *grant,
                    const struct tc_request *request, struct tci_limits *ret,
                    struct tci_result *result, struct tc_error *reterr)
{
    int wider = tci_narrow_limits(tool, grant, &request->limits, ret);
    char asked[TCI_LIMIT_TEXT_MAX], allowed[TCI_LIMIT_TEXT_MAX], fix[256], rule[128];
    enum tci_key key;
    const char *name;

    if (wider < 0)
        return 0;
    key = (enum tci_key)wider;
    name = tci_key_name(key);
    (void)tci_limit_toml(key, tci_limits_requested(&request->limits, key), asked);
    (void)tci_limit_toml(key, tci_limits_get(ret, key), allowed);
    (void)snprintf(fix, sizeof fix, "ask for %s or less, or set %s = %s in %s%s", allowed, name,
                   asked, grant ? "the tool and the grant" : "the policy",
                   grant || *tool->name ? "" : "'s [defaults]");
    (void)snprintf(rule, sizeof rule, "%s = %s", name, allowed);
    tci_result_verdict(result, TC_VERDICT_DENIED, fix,
                       "the request asks for %s = %s, and the policy allows %s: a request can "
                       "only narrow",
                       name, asked, allowed);
    if (tci_result_deny(result, "limit", name, rule) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}
