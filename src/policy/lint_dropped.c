/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: lint of what a tool loses by having a value of its own. Values replace the inherited ones
 * whole, so a tool must repeat what [defaults] hides or denies; forgetting it opens a door that the
 * author believes to be shut.
 */
#include "policy/lint_internal.h"

#include "policy/cage_paths.h"

static void lint_dropped_hidden(struct tci_lint *lint)
{
    const struct tci_filesystem *had = &lint->policy->defaults->filesystem;
    const struct tci_filesystem *has = &lint->tool->settings.filesystem;
    for (size_t i = 0; i < had->count && tci_lint_may_compare(lint, has->count); i++) {
        const struct tci_path_rule *hidden = &had->rules[i], *now;
        if (hidden->access != TCI_ACCESS_HIDDEN)
            continue;
        now = tci_path_rule_find(has, hidden->cage);
        if (now && now->access != TCI_ACCESS_HIDDEN)
            tci_lint_add(lint, TCI_FINDING_DROPPED_DEFAULT,
                         lint->tool->settings.pos[TCI_KEY_FILESYSTEM],
                         "repeat it in \"hidden\", or remove it from [defaults]",
                         "[defaults] hides \"%.200s\", and this filesystem shows it", hidden->cage);
    }
}

static bool has_deny(const struct tci_network *network, const struct tci_netrule *deny)
{
    for (size_t i = 0; i < network->count; i++)
        if (network->rules[i].rule.deny && tci_netrule_covers(&network->rules[i].rule, deny))
            return true;
    return false;
}

static void lint_dropped_deny(struct tci_lint *lint)
{
    const struct tci_network *had = &lint->policy->defaults->network;
    const struct tci_network *has = &lint->tool->settings.network;
    for (size_t i = 0; i < had->count && tci_lint_may_compare(lint, has->count); i++) {
        char text[TCI_RULE_TEXT_MAX];
        if (had->rules[i].rule.deny && !has_deny(has, &had->rules[i].rule))
            tci_lint_add(lint, TCI_FINDING_DROPPED_DEFAULT,
                         lint->tool->settings.pos[TCI_KEY_NETWORK],
                         "repeat the deny rule, or remove it from [defaults]",
                         "[defaults] has \"%s\", and this network has not",
                         tci_netrule_format(&had->rules[i].rule, text));
    }
}

/* Values of [defaults] that the tool no longer has: its own table of limits is all it has, and the
 * host's network has no gate to keep any. */
static void lint_dropped_limits(struct tci_lint *lint)
{
    const struct tci_settings *had = lint->policy->defaults, *has = &lint->tool->settings;
    const struct {
        const char *name;
        uint64_t had, has;
    } table[] = {
        { "bytes_in", had->network_limits.bytes_in, has->network_limits.bytes_in },
        { "bytes_out", had->network_limits.bytes_out, has->network_limits.bytes_out },
        { "rate", had->network_limits.rate, has->network_limits.rate },
    };
    for (size_t i = 0; i < tci_array_size(table); i++)
        if (table[i].had && !table[i].has)
            tci_lint_add(lint, TCI_FINDING_DROPPED_DEFAULT, has->pos[TCI_KEY_NETWORK_LIMITS],
                         "repeat it, or remove it from [defaults]",
                         "[defaults] limits \"%s\", and this network_limits does not",
                         table[i].name);
}

static void lint_dropped_gate(struct tci_lint *lint)
{
    static const enum tci_key keys[] = { TCI_KEY_NETWORK_LIMITS, TCI_KEY_INSPECT };
    for (size_t i = 0; i < tci_array_size(keys); i++)
        if (lint->policy->defaults->present & tci_key_bit(keys[i]))
            tci_lint_add(lint, TCI_FINDING_DROPPED_DEFAULT,
                         lint->tool->settings.pos[TCI_KEY_NETWORK],
                         "name the hosts in a list instead, if that is possible",
                         "[defaults] has \"%s\", which cannot be kept with the host's network",
                         tci_key_name(keys[i]));
}

void tci_lint_dropped(struct tci_lint *lint)
{
    const struct tci_tool *tool = lint->tool;
    if (tool->source[TCI_KEY_FILESYSTEM] == TCI_FROM_TOOL)
        lint_dropped_hidden(lint);
    if (tool->source[TCI_KEY_NETWORK] == TCI_FROM_TOOL &&
        tool->settings.network.mode != TCI_NETWORK_NONE)
        lint_dropped_deny(lint);
    if (tool->source[TCI_KEY_NETWORK_LIMITS] == TCI_FROM_TOOL)
        lint_dropped_limits(lint);
    if (tool->settings.network.mode == TCI_NETWORK_HOST)
        lint_dropped_gate(lint);
}
