/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: lint of agents and grants. */
#include "policy/lint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/moment.h"
#include "base/nearest.h"
#include "policy/limits.h"

enum { nearest_of = 1000 }; /* a suggestion is a courtesy; it need not look at every tool */

static void lint_unknown_tool(struct tci_lint *lint, const struct tci_grant *grant)
{
    const struct tc_policy *policy = lint->policy;
    const char *nearest = NULL, *words[nearest_of + 1] = { NULL };
    char remedy[160] = "define the tool, or remove the grant";

    for (size_t i = 0; i < policy->tool_count && i < nearest_of; i++)
        words[i] = policy->tools[i].name;
    if (!tci_findings_full(lint->findings))
        nearest = tci_nearest_word(grant->tool, strlen(grant->tool), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    tci_lint_add(lint, TCI_FINDING_UNKNOWN_TOOL, grant->pos, remedy,
                 "the grant names \"%.100s\", which is no tool of this policy", grant->tool);
}

/* Does the tool have all of what the rule allows? */
static bool covered(const struct tci_network *network, const struct tci_netrule *rule)
{
    const struct tci_host *host = &rule->host;
    bool found = false;
    switch (network->mode) {
    case TCI_NETWORK_NONE:
        return false;
    case TCI_NETWORK_HOST:
        return true;
    case TCI_NETWORK_PUBLIC:
        return host->kind != TCI_HOST_ADDRESS ||
               tci_prefix_classify(&host->address, host->prefix) == TCI_ADDRESS_PUBLIC;
    case TCI_NETWORK_RULES:
        break;
    }
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_netrule *other = &network->rules[i].rule;
        if (!tci_netrule_covers(other, rule))
            continue;
        if (other->deny)
            return false;
        found = true;
    }
    return found;
}

static void lint_wider_network(struct tci_lint *lint, const struct tci_tool *tool,
                               const struct tci_grant *grant)
{
    const struct tci_network *narrow = &grant->narrow->network;
    if (narrow->mode == TCI_NETWORK_PUBLIC || narrow->mode == TCI_NETWORK_HOST) {
        if (tool->settings.network.mode < narrow->mode)
            tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, grant->narrow->pos[TCI_KEY_NETWORK],
                         "a grant only takes away: change the tool, or remove this",
                         "\"network\" of the grant is wider than the tool's, and has no effect");
        return;
    }
    for (size_t i = 0; i < narrow->count; i++) {
        char text[TCI_RULE_TEXT_MAX];
        if (narrow->rules[i].rule.deny || covered(&tool->settings.network, &narrow->rules[i].rule))
            continue;
        tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, narrow->rules[i].pos,
                     "a grant only takes away: add it to the tool, or remove it here",
                     "\"%s\" of the grant is not among the tool's rules",
                     tci_netrule_format(&narrow->rules[i].rule, text));
    }
}

static void lint_wider_paths(struct tci_lint *lint, const struct tci_tool *tool,
                             const struct tci_filesystem *narrow)
{
    for (size_t i = 0; i < narrow->count; i++) {
        const struct tci_path_rule *rule = &narrow->rules[i];
        struct tc_decision decision;
        tci_lint_not_expanded(lint, rule->as_given, rule->pos);
        if (rule->access == TCI_ACCESS_HIDDEN)
            continue;
        tc_decide_path(lint->policy, NULL, tool->name, rule->cage,
                       rule->access == TCI_ACCESS_WRITABLE ? TC_ACCESS_WRITE : TC_ACCESS_READ,
                       &decision);
        if (!decision.allowed)
            tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, rule->pos,
                         "a grant only takes away: add it to the tool, or remove it here",
                         "\"%.300s\" of the grant is not %s for the tool", rule->cage,
                         tci_access_name(rule->access));
    }
}

static void lint_wider_limits(struct tci_lint *lint, const struct tci_tool *tool,
                              const struct tci_settings *narrow)
{
    const struct tci_network_limits *has = &tool->settings.network_limits;
    const struct tci_network_limits *wants = &narrow->network_limits;
    const struct {
        const char *name;
        uint64_t has, wants;
    } table[] = {
        { "connections", has->connections, wants->connections },
        { "bytes_in", has->bytes_in, wants->bytes_in },
        { "bytes_out", has->bytes_out, wants->bytes_out },
        { "rate", has->rate, wants->rate },
    };
    for (size_t i = 0; i < tci_array_size(table); i++)
        if (table[i].has && table[i].wants != TCI_UNLIMITED &&
            (!table[i].wants || table[i].wants > table[i].has))
            tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, narrow->pos[TCI_KEY_NETWORK_LIMITS],
                         "a grant only takes away: raise the tool's own limit, or remove this",
                         "\"%s\" of the grant is above the tool's, and has no effect",
                         table[i].name);
}

/* What the tool asks, the grant cannot keep silent. */
static void lint_approval(struct tci_lint *lint, const struct tci_tool *tool,
                          const struct tci_settings *narrow)
{
    static const char remedy[] = "a grant only takes away: change the tool, or remove this";
    if ((narrow->present & tci_key_bit(TCI_KEY_APPROVAL)) &&
        tool->settings.approval == TCI_APPROVAL_ASK && narrow->approval != TCI_APPROVAL_ASK)
        tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, narrow->pos[TCI_KEY_APPROVAL], remedy,
                     "the tool asks for approval, and \"approval\" of the grant has no effect");
    if ((narrow->present & tci_key_bit(TCI_KEY_APPROVAL_TIMEOUT)) &&
        narrow->approval_timeout > tool->settings.approval_timeout)
        tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, narrow->pos[TCI_KEY_APPROVAL_TIMEOUT], remedy,
                     "\"approval_timeout\" of the grant is above the tool's, and has no effect");
}

static void lint_wider(struct tci_lint *lint, const struct tci_tool *tool,
                       const struct tci_grant *grant)
{
    for (int k = 0; k < TCI_KEY_COUNT; k++) {
        enum tci_key key = (enum tci_key)k;
        if (!(grant->narrow->present & tci_key_bit(key)) || !tci_key_is_limit(key) ||
            tci_limit(grant->narrow, key) <= tci_limit(&tool->settings, key))
            continue;
        tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, grant->narrow->pos[key],
                     "a grant only takes away: raise the tool's own limit, or remove this",
                     "\"%s\" of the grant is above the tool's, and has no effect",
                     tci_key_name(key));
    }
    if (grant->narrow->present & tci_key_bit(TCI_KEY_NETWORK))
        lint_wider_network(lint, tool, grant);
    if (grant->narrow->present & tci_key_bit(TCI_KEY_NETWORK_LIMITS))
        lint_wider_limits(lint, tool, grant->narrow);
    if ((grant->narrow->present & tci_key_bit(TCI_KEY_INSPECT)) && tool->settings.inspect_strict &&
        !grant->narrow->inspect_strict)
        tci_lint_add(lint, TCI_FINDING_WIDER_GRANT, grant->narrow->pos[TCI_KEY_INSPECT],
                     "a grant only takes away: change the tool, or remove this",
                     "\"inspect\" of the grant is weaker than the tool's, and has no effect");
    if (grant->narrow->present & tci_key_bit(TCI_KEY_FILESYSTEM))
        lint_wider_paths(lint, tool, &grant->narrow->filesystem);
    lint_approval(lint, tool, grant->narrow);
}

/* A child agent may do what it and everybody above it may do. */
static void lint_child(struct tci_lint *lint, const struct tci_agent *agent,
                       const struct tci_grant *grant)
{
    const struct tci_agent *parent = agent->parent;
    if (!parent || !tci_policy_tool(lint->policy, grant->tool) ||
        !tci_lint_may_compare(lint, parent->grant_count) || tci_agent_grant(parent, grant->tool))
        return;
    tci_lint_add(lint, TCI_FINDING_CHILD_WITHOUT_PARENT, grant->pos,
                 "grant it to the parent, too, or remove it here",
                 "\"%s\" is the parent of \"%s\" and holds no grant for \"%.100s\": this one has "
                 "no effect",
                 parent->name, agent->name, grant->tool);
}

static void lint_grant(struct tci_lint *lint, const struct tci_grant *grant)
{
    const struct tci_tool *tool = tci_policy_tool(lint->policy, grant->tool);
    char text[TCI_MOMENT_TEXT_MAX];
    if (!tool)
        lint_unknown_tool(lint, grant);
    else
        lint_wider(lint, tool, grant);
    if (grant->has_expiry && lint->options->now && lint->options->now >= grant->expires)
        tci_lint_add(lint, TCI_FINDING_EXPIRED_GRANT, grant->expires_pos,
                     "remove the grant, or set a later date", "the grant expired at %s",
                     tci_moment_format(grant->expires, text));
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted names of everything granted, so that 1000 tools and 1000 grants stay cheap. */
static void lint_ungranted(struct tci_lint *lint)
{
    const struct tc_policy *policy = lint->policy;
    size_t total = 0, count = 0;
    const char **granted;

    for (size_t i = 0; i < policy->agent_count; i++)
        total += policy->agents[i].grant_count;
    granted = calloc(total + 1, sizeof *granted);
    if (!granted) {
        lint->findings->no_memory = true;
        return;
    }
    for (size_t i = 0; i < policy->agent_count; i++)
        for (size_t j = 0; j < policy->agents[i].grant_count; j++)
            granted[count++] = policy->agents[i].grants[j].tool;
    qsort(granted, count, sizeof *granted, compare_strings);
    for (size_t i = 0; i < policy->tool_count; i++) {
        const char *name = policy->tools[i].name;
        lint->tool = &policy->tools[i];
        if (!bsearch(&name, granted, count, sizeof *granted, compare_strings))
            tci_lint_add(lint, TCI_FINDING_UNGRANTED_TOOL, policy->tools[i].pos,
                         "grant it to an agent, or remove it", "no agent may call \"%s\"", name);
    }
    lint->tool = NULL;
    free(granted);
}

/* `exec` without a tool runs under [defaults] alone. */
static bool serves_exec(const struct tc_policy *policy)
{
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (policy->anonymous->source[key] == TCI_FROM_DEFAULTS)
            return policy->agent_count == 0;
    return false;
}

static void lint_no_tools(struct tci_lint *lint)
{
    if (serves_exec(lint->policy))
        tci_lint_add(
            lint, TCI_FINDING_NO_AGENTS, tci_pos(1, 1),
            "define [tool.NAME], and [agent.NAME] with grants, when something is to be called",
            "the policy has neither tools nor agents: it serves \"toolcage exec\" only");
    else
        tci_lint_add(lint, TCI_FINDING_NO_TOOLS, tci_pos(1, 1), "define one: [tool.NAME]",
                     "the policy has no tools: nothing can be called");
}

void tci_lint_agents(struct tci_lint *lint)
{
    const struct tc_policy *policy = lint->policy;
    if (policy->tool_count == 0)
        lint_no_tools(lint);
    else if (policy->agent_count == 0) {
        tci_lint_add(lint, TCI_FINDING_NO_AGENTS, tci_pos(1, 1),
                     "add [agent.NAME] with grants when agents are to call the tools",
                     "the policy names no agent: only its owner may call its tools");
        return;
    }
    for (size_t i = 0; i < policy->agent_count; i++)
        for (size_t j = 0; j < policy->agents[i].grant_count; j++) {
            lint_grant(lint, &policy->agents[i].grants[j]);
            lint_child(lint, &policy->agents[i], &policy->agents[i].grants[j]);
        }
    lint_ungranted(lint);
}
