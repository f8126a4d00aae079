/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the first of the three questions that a policy answers: may this agent call this tool? The
 * others (decide_network.c, decide_path.c) begin with it. Pure functions of the policy and their
 * arguments; the answer names the clause that gave it. Backends, `explain` and servers ask here and
 * nowhere else.
 *
 * A grant can only narrow: where a grant has a network or a file system of its own, both the tool
 * and the grant must allow.
 */
#include "policy/decide_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "policy/decide_grant.h"

tci_printf_like(3, 0) static void say(char *text, size_t size, const char *format, va_list args)
{
    (void)vsnprintf(text, size, format, args);
}

void tci_decide(struct tc_decision *d, bool allowed, const char *key, const char *format, ...)
{
    va_list args;
    d->allowed = allowed;
    (void)snprintf(d->key, sizeof d->key, "%s", key);
    va_start(args, format);
    say(d->reason, sizeof d->reason, format, args);
    va_end(args);
}

void tci_decide_fix(struct tc_decision *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(d->fix, sizeof d->fix, format, args);
    va_end(args);
}

void tci_decide_place(struct tc_decision *d, struct tci_pos pos)
{
    d->line = pos.line;
    d->column = pos.column;
    d->file = pos.file;
}

const char *tci_decide_quote(const char *text, char buffer[TCI_QUOTE_MAX])
{
    return tci_quote(text, strlen(text), buffer);
}

/* ---- calls -------------------------------------------------------------------------------- */

void tc_decide_call(const struct tc_policy *policy, const char *agent, const char *tool,
                    int64_t now, uint64_t calls_made, struct tc_decision *ret)
{
    const struct tci_tool *t = tool ? tci_policy_tool(policy, tool) : NULL;
    const struct tci_agent *a = agent ? tci_policy_agent(policy, agent) : NULL;
    const struct tci_grant *grant = a && t ? tci_agent_grant(a, tool) : NULL;

    memset(ret, 0, sizeof *ret);
    tool = tool ? tool : "";
    if (!agent)
        tci_decide_owner(t, tool, ret);
    else if (!t || !grant)
        tci_decide_no_grant(agent, tool, a && a->parent, ret);
    else
        tci_decide_grant(grant, agent, now, calls_made, ret);
}

bool tci_decide_find(const struct tc_policy *policy, const char *agent, const char *tool,
                     const struct tci_tool **ret_tool, const struct tci_grant **ret_grant,
                     struct tc_decision *d)
{
    const struct tci_agent *a;
    tc_decide_call(policy, agent, tool, INT64_MIN, 0, d);
    if (!d->allowed)
        return false;
    *ret_tool = tci_policy_tool(policy, tool);
    a = agent ? tci_policy_agent(policy, agent) : NULL;
    *ret_grant = a ? tci_agent_grant(a, tool) : NULL;
    memset(d, 0, sizeof *d);
    return true;
}
