/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading the tools of a policy: the tables [tool.NAME], then the tool files, each with its
 * effective values. A name is used once.
 */
#include "policy/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tci_read_tool(struct tci_reader *reader, struct tci_text name, struct tci_pos pos,
                  const struct tci_node *table, const struct tci_settings *defaults,
                  struct tci_tool *tool)
{
    struct tci_settings own = { 0 };
    reader->tool = NULL; /* a bad name is not the previous tool's mistake */
    if (tci_read_check_name(reader, "a tool", name, pos) < 0)
        return -1;
    tool->name = reader->tool = name.data;
    tool->pos = pos;
    (void)snprintf(reader->where, sizeof reader->where, "[tool.%.64s]", tool->name);
    if (tci_read_expect(reader, tool->name, table, TCI_NODE_TABLE, "a table") < 0 ||
        tci_read_settings(reader, table, TCI_IN_TOOL, &own) < 0)
        return -1;
    return tci_effective(reader, defaults, &own, tool);
}

static int compare_tools(const void *a, const void *b)
{
    return strcmp((*(struct tci_tool *const *)a)->name, (*(struct tci_tool *const *)b)->name);
}

/* The names so far, each with its place: those of the tables, then those of the files. */
static int check_new(struct tci_reader *reader, const struct tc_policy *policy,
                     struct tci_node *seen, struct tci_text name, struct tci_pos pos)
{
    const struct tci_entry *other = tci_table_find(seen, name.data, name.length);
    char remedy[512], quoted[TCI_QUOTE_MAX];
    if (!other)
        return tci_table_add(reader->arena, seen, name, pos, seen) ? 0 : tci_read_no_memory(reader);
    (void)snprintf(remedy, sizeof remedy, "keep one: the first is in %.300s, line %u",
                   tci_policy_file(policy, other->key_pos), other->key_pos.line);
    return tci_read_fail(reader, TCI_FINDING_DUPLICATE, pos, remedy, "there are two tools named %s",
                         tci_read_quote(name, quoted));
}

/* A tool file's name without its ending. */
static int name_of_file(struct tci_reader *reader, const struct tci_tool_file *file,
                        struct tci_text *ret)
{
    const char *base = strrchr(file->path, '/') + 1;
    ret->length = strlen(base) - strlen(".toml");
    ret->data = tci_arena_strndup(reader->arena, base, ret->length);
    return ret->data ? 0 : tci_read_no_memory(reader);
}

static const char *directory_of(struct tci_reader *reader, const char *path)
{
    size_t length = (size_t)(strrchr(path, '/') - path);
    return tci_arena_strndup(reader->arena, path, length ? length : 1);
}

/* Relative paths in a tool file start at the file: it means the same whoever names its directory. */
static int read_tool_file(struct tci_reader *reader, struct tc_policy *policy, size_t i,
                          struct tci_node *seen, const struct tci_settings *defaults)
{
    const struct tci_tool_file *file = &policy->tool_files[i];
    struct tci_pos pos = { .line = 1, .column = 1, .file = (uint32_t)i + 1 };
    const char *directory = reader->directory;
    struct tci_tool *tool = &policy->tools[policy->tool_count];
    struct tci_text name;
    struct tci_node *table;
    int r;

    reader->tool = NULL;
    if (name_of_file(reader, file, &name) < 0 || check_new(reader, policy, seen, name, pos) < 0 ||
        tci_read_tool_file(reader, policy, i, &table) < 0)
        return -1;
    reader->directory = directory_of(reader, file->path);
    if (!reader->directory)
        r = tci_read_no_memory(reader);
    else
        r = tci_read_tool(reader, name, pos, table, defaults, tool);
    reader->directory = directory;
    return r;
}

/* Keeps or drops what was read into the next place of the list. */
static int keep_tool(struct tc_policy *policy, int r)
{
    struct tci_tool *tool = &policy->tools[policy->tool_count];
    if (r < 0)
        *tool = (struct tci_tool){ .name = NULL };
    else
        policy->tools_by_name[policy->tool_count++] = tool;
    return r;
}

static int read_all(struct tci_reader *reader, const struct tci_node *table,
                    const struct tci_settings *defaults, struct tc_policy *policy)
{
    struct tci_node *seen = tci_node_new(reader->arena, TCI_NODE_TABLE, tci_pos(0, 0));
    int status = 0;

    if (!seen)
        return tci_read_no_memory(reader);
    tci_table_foreach (entry, table) {
        struct tci_tool *tool = &policy->tools[policy->tool_count];
        int r = tci_read_tool(reader, entry->key, entry->key_pos, entry->value, defaults, tool);
        if (keep_tool(policy, r) < 0)
            status = -1;
        if (policy->tool_file_count &&
            check_new(reader, policy, seen, entry->key, entry->key_pos) < 0)
            status = -1;
    }
    for (size_t i = 0; i < policy->tool_file_count && !reader->findings->no_memory; i++)
        if (keep_tool(policy, read_tool_file(reader, policy, i, seen, defaults)) < 0)
            status = -1;
    reader->tool = NULL;
    return status;
}

int tci_read_tools(struct tci_reader *reader, const struct tci_node *table,
                   const struct tci_settings *defaults, struct tc_policy *policy)
{
    static const struct tci_node none = { .type = TCI_NODE_TABLE };
    struct tci_pos pos;
    size_t count;
    int status;

    if (!table)
        table = &none;
    pos = table->pos;
    count = table->table.count + policy->tool_file_count;
    if (policy->tool_file_count)
        pos = policy->tool_directories[policy->tool_directory_count - 1].pos;
    if (tci_read_table_size(reader, "tools", count, pos) < 0)
        return -1;
    policy->tools = tci_arena_new_array(reader->arena, count, struct tci_tool);
    policy->tools_by_name = tci_arena_new_array(reader->arena, count, struct tci_tool *);
    if (!policy->tools || !policy->tools_by_name)
        return tci_read_no_memory(reader);
    status = read_all(reader, table, defaults, policy);
    if (policy->tool_count)
        qsort(policy->tools_by_name, policy->tool_count, sizeof *policy->tools_by_name,
              compare_tools);
    return status;
}
