/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the words of an answer about a grant. */
#include "policy/decide_grant.h"

#include "base/moment.h"
#include "policy/decide_internal.h"

void tci_decide_no_grant(const char *agent, const char *tool, bool has_parent,
                         struct tc_decision *d)
{
    char a[TCI_QUOTE_MAX], t[TCI_QUOTE_MAX];
    tci_decide(d, false, "grants", "agent %s holds no grant for a tool named %s",
               tci_decide_quote(agent, a), tci_decide_quote(tool, t));
    tci_decide_fix(d, "add %s to the grants of agent %s%s, if there is such a tool", t, a,
                   has_parent ? " and of those that it works for" : "");
}

void tci_decide_grant(const struct tci_grant *grant, const char *agent, int64_t now,
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
        if (grant->max_calls == 1)
            tci_decide(d, false, "max_calls", "agent \"%s\" has used its one call of \"%s\"", agent,
                       grant->tool);
        else
            tci_decide(d, false, "max_calls", "agent \"%s\" has used all %llu calls of \"%s\"",
                       agent, (unsigned long long)grant->max_calls, grant->tool);
        tci_decide_fix(d, "raise \"max_calls\" in the grant");
        return;
    }
    tci_decide(d, true, "grants", "agent \"%s\" holds a grant for \"%s\"", agent, grant->tool);
}

void tci_decide_owner(const struct tci_tool *tool, const char *name, struct tc_decision *d)
{
    char text[TCI_QUOTE_MAX];
    if (tool) {
        tci_decide_place(d, tool->pos);
        tci_decide(d, true, "tool", "the policy defines \"%s\", and its owner may call it",
                   tool->name);
        return;
    }
    tci_decide(d, false, "tool", "the policy has no tool named %s", tci_decide_quote(name, text));
    tci_decide_fix(d, "define [tool.NAME]; \"toolcage tools\" lists what there is");
}
