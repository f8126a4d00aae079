/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what lint says of MCP servers of others (`mcp`). */
#include "policy/lint_internal.h"

#include <errno.h>
#include "base/path.h"
#include "policy/place.h"
#include "policy/template.h"

static bool has_placeholder(const struct tci_string *element)
{
    const char *cursor = element->text;
    struct tci_template_part part;
    bool found = false;
    while (tci_template_next(&cursor, &part) > 0)
        found |= part.is_placeholder;
    return found;
}

const struct tci_mount_table *tci_lint_mounts(struct tci_lint *lint)
{
    struct tci_arena *arena = lint->findings->arena;
    struct tci_mount_table *table;
    if (lint->mounts)
        return lint->mounts;
    errno = 0;
    table = tci_arena_new_of(arena, struct tci_mount_table);
    if (table && tci_mount_table_read(table, arena) == 0)
        lint->mounts = table;
    lint->findings->no_memory |= errno == ENOMEM;
    return lint->mounts;
}

static bool can_write(struct tci_lint *lint, const char *pin)
{
    tc_cleanup(tci_reach_freep) struct tci_reach *reach = tci_reach_of_cage_in(
        tci_lint_mounts(lint), &lint->tool->settings.filesystem);
    const struct tci_place place = { .what = "pin", .reach = reach };
    struct tc_error error = { 0 };
    int r = reach ? tci_place_open(pin, &place, NULL, &error) : tci_error_no_memory(&error);
    lint->findings->no_memory |= error.code == TC_ERROR_NO_MEMORY;
    return r == 1;
}

/* A server that can write its pin approves itself. By name; and where files may be looked at, by what the
 * directories are, whatever links lead there. Another tool that can write it is as bad: by name. */
static void lint_pin(struct tci_lint *lint, const char *pin, struct tci_pos pos)
{
    const struct tc_policy *policy = lint->policy;
    const struct tci_tool *writer = NULL;

    if (lint->options->look_at_files && can_write(lint, pin))
        writer = lint->tool;
    for (size_t i = 0; !writer && i < policy->tool_count; i++) {
        const struct tci_filesystem *fs = &policy->tools[i].settings.filesystem;
        if (!tci_lint_may_compare(lint, fs->count))
            return;
        for (size_t j = 0; j < fs->count; j++)
            if (fs->rules[j].access == TCI_ACCESS_WRITABLE &&
                tci_path_is_within(pin, fs->rules[j].host))
                writer = &policy->tools[i];
    }
    if (writer)
        tci_lint_add(lint, TCI_FINDING_MCP_PIN_WRITABLE, pos,
                     "keep the pin where no tool can write, such as beside the policy",
                     "tool \"%s\" can rewrite the pin \"%.300s\"", writer->name, pin);
}

void tci_lint_mcp(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    struct tci_pos pos = s->pos[TCI_KEY_MCP];

    if (!s->mcp.given)
        return;
    if (!s->mcp.pin)
        tci_lint_add(lint, TCI_FINDING_MCP_UNPINNED, pos,
                     "look at what it says with \"toolcage mcp pin\", and name the file: pin = "
                     "\"FILE\"",
                     "the server may change its tools and their descriptions: nothing is pinned");
    if (s->mcp.pin)
        lint_pin(lint, s->mcp.pin, pos);
    if (s->mcp.features & (TCI_FEATURE_SAMPLING | TCI_FEATURE_ELICITATION))
        tci_lint_add(lint, TCI_FINDING_MCP_ASKS, pos, "leave it out of \"features\"",
                     "the server may %s",
                     s->mcp.features & TCI_FEATURE_SAMPLING ? "use the client's model (sampling)"
                                                            : "ask the person (elicitation)");
    if (s->mcp.rate == TCI_UNLIMITED)
        tci_lint_add(lint, TCI_FINDING_NO_LIMIT, pos, "give a number of calls a minute",
                     "the limit \"rate\" is switched off");
    for (size_t i = 0; i < s->command.count; i++)
        if (has_placeholder(&s->command.items[i]))
            tci_lint_add(lint, TCI_FINDING_MCP_COMMAND, s->command.items[i].pos,
                         "write the argument itself",
                         "an MCP server is started without arguments: a placeholder in "
                         "\"command\" stays empty");
}
