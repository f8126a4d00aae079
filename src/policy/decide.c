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
#include "base/moment.h"

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
}

const char *tci_decide_quote(const char *text, char buffer[TCI_QUOTE_MAX])
{
    return tci_quote(text, strlen(text), buffer);
}

/* ---- calls -------------------------------------------------------------------------------- */

/* One answer for "not granted" and "no such tool": an agent must not learn what else exists. */
static void deny_call(struct tc_decision *d, const char *agent, const char *tool)
{
    char a[TCI_QUOTE_MAX], t[TCI_QUOTE_MAX];
    tci_decide(d, false, "grants", "agent %s holds no grant for a tool named %s",
               tci_decide_quote(agent, a), tci_decide_quote(tool, t));
    tci_decide_fix(d, "add %s to the grants of agent %s, if there is such a tool", t, a);
}

static void decide_grant(const struct tci_grant *grant, const char *agent, int64_t now,
                         uint64_t calls_made, struct tc_decision *d)
{
    char text[TCI_MOMENT_TEXT_MAX];
    tci_decide_place(d, grant->pos);
    if (grant->has_expiry && now >= grant->expires) {
        tci_decide_place(d, grant->expires_pos);
        tci_decide(d, false, "expires", "the grant of \"%s\" for agent \"%s\" expired at %s",
                   grant->tool, agent, tci_moment_format(grant->expires, text));
        tci_decide_fix(d, "set a later \"expires\" in the grant");
        return;
    }
    if (grant->has_max_calls && calls_made >= grant->max_calls) {
        tci_decide_place(d, grant->max_calls_pos);
        tci_decide(d, false, "max_calls", "agent \"%s\" has used all %llu calls of \"%s\"", agent,
                   (unsigned long long)grant->max_calls, grant->tool);
        tci_decide_fix(d, "raise \"max_calls\" in the grant");
        return;
    }
    tci_decide(d, true, "grants", "agent \"%s\" holds a grant for \"%s\"", agent, grant->tool);
}

void tc_decide_call(const struct tc_policy *policy, const char *agent, const char *tool,
                    int64_t now, uint64_t calls_made, struct tc_decision *ret)
{
    const struct tci_tool *t = tool ? tci_policy_tool(policy, tool) : NULL;
    const struct tci_agent *a = agent ? tci_policy_agent(policy, agent) : NULL;
    const struct tci_grant *grant = a && t ? tci_agent_grant(a, tool) : NULL;
    char text[TCI_QUOTE_MAX];

    memset(ret, 0, sizeof *ret);
    if (!tool)
        tool = "";
    if (!agent && t) {
        tci_decide_place(ret, t->pos);
        tci_decide(ret, true, "tool", "the policy defines \"%s\", and its owner may call it",
                   t->name);
    } else if (!agent) {
        tci_decide(ret, false, "tool", "the policy has no tool named %s",
                   tci_decide_quote(tool, text));
        tci_decide_fix(ret, "define [tool.NAME]; \"toolcage tools\" lists what there is");
    } else if (!t || !grant) {
        deny_call(ret, agent, tool);
    } else {
        decide_grant(grant, agent, now, calls_made, ret);
    }
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
