/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading [agent.NAME], its parent and its grants. A grant is a tool's name, or a table that names the
 * tool and takes something away from it; nothing in a grant can add.
 */
#include "policy/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/moment.h"

static int read_expiry(struct tci_reader *reader, const struct tci_node *value,
                       struct tci_grant *grant)
{
    const struct tci_datetime *d = &value->datetime;
    /* What can be written with four digits of year, and so read back from a dump. */
    const int64_t earliest = tci_moment(1, 1, 1, 0, 0, 0, 0);
    const int64_t latest = tci_moment(9999, 12, 31, 23, 59, 59, 0);
    char quoted[TCI_QUOTE_MAX];
    bool good = true;

    if (value->type == TCI_NODE_DATETIME)
        grant->expires = tci_moment(d->year, d->month, d->day, d->hour, d->minute, d->second,
                                    d->offset_minutes);
    else if (value->type == TCI_NODE_LOCAL_DATE)
        grant->expires = tci_moment(d->year, d->month, d->day, 0, 0, 0, 0);
    else if (value->type == TCI_NODE_STRING)
        good = tci_moment_parse(value->string.data, value->string.length, &grant->expires);
    else if (value->type == TCI_NODE_LOCAL_DATETIME)
        return tci_read_fail(reader, TCI_FINDING_BAD_DATE, value->pos,
                             "add Z for UTC, or an offset such as +02:00",
                             "\"expires\" in %s has a time without a time zone", reader->where);
    else
        return tci_read_expect(reader, "expires", value, TCI_NODE_STRING,
                               "a date such as \"2027-01-01\"");
    if (!good)
        return tci_read_fail(reader, TCI_FINDING_BAD_DATE, value->pos,
                             "write \"2027-01-01\" or \"2027-01-01T12:00:00Z\"",
                             "\"expires\" in %s: %s is not a date", reader->where,
                             tci_read_quote(value->string, quoted));
    if (grant->expires < earliest || grant->expires > latest)
        return tci_read_fail(reader, TCI_FINDING_BAD_DATE, value->pos,
                             "choose a moment in the years 1 to 9999, in UTC",
                             "\"expires\" in %s is outside the calendar", reader->where);
    grant->has_expiry = true;
    grant->expires_pos = value->pos;
    return 0;
}

/* 0 or -1 when the key is the grant's own; 1 when it is not. */
static int read_own_key(struct tci_reader *reader, const struct tci_entry *entry,
                        struct tci_grant *grant)
{
    if (tci_text_is(entry->key, "tool"))
        return tci_read_plain_string(reader, "tool", entry->value, "a tool's name", &grant->tool);
    if (tci_text_is(entry->key, "expires"))
        return read_expiry(reader, entry->value, grant);
    if (tci_text_is(entry->key, "max_calls")) {
        uint64_t count;
        if (tci_read_count_or_zero(reader, "max_calls", entry->value, &count) < 0)
            return -1;
        grant->max_calls = count;
        grant->has_max_calls = true;
        grant->max_calls_pos = entry->value->pos;
        return 0;
    }
    return 1;
}

/* A grant speaks of paths as the cage sees them. One with a source of its own could put another
 * directory in the place of the one that the tool was given. */
static int check_sources(struct tci_reader *reader, const struct tci_filesystem *fs)
{
    for (size_t i = 0; i < fs->count; i++)
        if (fs->rules[i].host && strcmp(fs->rules[i].host, fs->rules[i].cage) != 0)
            return tci_read_fail(reader, TCI_FINDING_BAD_PATH, fs->rules[i].pos,
                                 "write only the path as the cage sees it",
                                 "a grant in %s names a source for %s: a grant only takes away",
                                 reader->where, fs->rules[i].cage);
    return 0;
}

/* Most grants narrow nothing, and a table of settings is large: only those that do have one. */
static const struct tci_settings nothing_narrowed;

static int keep_narrow(struct tci_reader *reader, const struct tci_settings *narrow,
                       struct tci_grant *grant)
{
    struct tci_settings *copy = tci_arena_new_of(reader->arena, struct tci_settings);
    if (!copy)
        return tci_read_no_memory(reader);
    *copy = *narrow;
    grant->narrow = copy;
    return 0;
}

int tci_read_grant(struct tci_reader *reader, const struct tci_node *table, struct tci_grant *grant)
{
    const char *words[TCI_KEY_COUNT + 4];
    struct tci_settings narrow = { 0 };
    size_t count = 0;
    int status = 0;

    grant->pos = table->pos;
    grant->narrow = &nothing_narrowed;
    words[count++] = "tool";
    words[count++] = "expires";
    words[count++] = "max_calls";
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (tci_key_where((enum tci_key)key) & TCI_IN_GRANT)
            words[count++] = tci_key_name((enum tci_key)key);
    words[count] = NULL;
    tci_table_foreach (entry, table) {
        int r = read_own_key(reader, entry, grant);
        if (r > 0 && !tci_read_setting(reader, entry, TCI_IN_GRANT, &narrow, &r))
            r = tci_read_unknown(reader, entry, "a grant", words);
        if (r < 0)
            status = -1;
    }
    if (check_sources(reader, &narrow.filesystem) < 0)
        status = -1;
    if (narrow.present && keep_narrow(reader, &narrow, grant) < 0)
        return -1;
    if (status == 0 && !grant->tool)
        status = tci_read_fail(reader, TCI_FINDING_BAD_VALUE, table->pos, "add tool = \"NAME\"",
                               "a grant in %s names no tool", reader->where);
    return status;
}

/* `seen` is a table of the tools granted so far. */
static int check_repeated(struct tci_reader *reader, struct tci_node *seen,
                          const struct tci_grant *grant, struct tci_node *value)
{
    struct tci_text name = { grant->tool, strlen(grant->tool) };
    const struct tci_entry *other = tci_table_find(seen, name.data, name.length);
    char remedy[64];
    if (!other)
        return tci_table_add(reader->arena, seen, name, value->pos, value)
                   ? 0
                   : tci_read_no_memory(reader);
    (void)snprintf(remedy, sizeof remedy, "keep one: the first is at line %u", other->key_pos.line);
    return tci_read_fail(reader, TCI_FINDING_DUPLICATE, value->pos, remedy,
                         "%s grants \"%s\" twice", reader->where, grant->tool);
}

static int read_grant(struct tci_reader *reader, struct tci_node *value, struct tci_node *seen,
                      struct tci_agent *agent)
{
    struct tci_grant *grant = &agent->grants[agent->grant_count];
    int r;

    grant->pos = value->pos;
    grant->narrow = &nothing_narrowed;
    if (value->type == TCI_NODE_TABLE)
        r = tci_read_grant(reader, value, grant);
    else
        r = tci_read_plain_string(reader, "grants", value,
                                  "a list of tool names and { tool = } tables", &grant->tool);
    if (r < 0 || check_repeated(reader, seen, grant, value) < 0) {
        *grant = (struct tci_grant){ .tool = NULL };
        return -1;
    }
    agent->grant_count++;
    return 0;
}

static int read_grants(struct tci_reader *reader, const struct tci_node *value,
                       struct tci_agent *agent)
{
    struct tci_node *seen = tci_node_new(reader->arena, TCI_NODE_TABLE, value->pos);
    int status = 0;
    if (tci_read_expect(reader, "grants", value, TCI_NODE_ARRAY, "a list of tool names") < 0)
        return -1;
    agent->grants = tci_arena_new_array(reader->arena, value->array.count, struct tci_grant);
    if (!agent->grants || !seen)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < value->array.count; i++)
        if (read_grant(reader, value->array.items[i], seen, agent) < 0)
            status = -1;
    return status;
}

static int read_parent(struct tci_reader *reader, const struct tci_node *value,
                       struct tci_agent *agent)
{
    agent->parent_pos = value->pos;
    return tci_read_plain_string(reader, "parent", value, "an agent's name", &agent->parent_name);
}

static int read_agent(struct tci_reader *reader, const struct tci_entry *entry,
                      struct tci_agent *agent)
{
    static const char *const words[] = { "grants", "description", "parent", NULL };
    int status = 0;

    if (tci_read_check_name(reader, "an agent", entry->key, entry->key_pos) < 0)
        return -1;
    (void)snprintf(reader->where, sizeof reader->where, "[agent.%.64s]", entry->key.data);
    agent->name = entry->key.data;
    agent->pos = entry->key_pos;
    if (tci_read_expect(reader, entry->key.data, entry->value, TCI_NODE_TABLE, "a table") < 0)
        return -1;
    tci_table_foreach (item, entry->value) {
        int r;
        if (tci_text_is(item->key, "grants"))
            r = read_grants(reader, item->value, agent);
        else if (tci_text_is(item->key, "description"))
            r = tci_read_text(reader, "description", item->value, &agent->description);
        else if (tci_text_is(item->key, "parent"))
            r = read_parent(reader, item->value, agent);
        else
            r = tci_read_unknown(reader, item, reader->where, words);
        if (r < 0)
            status = -1;
    }
    return status;
}

/* ---- child agents ------------------------------------------------------------------------- */

/* A table from names to numbers of agents: 10,000 children look for their parents in it. */
static struct tci_node *number_agents(struct tci_reader *reader, const struct tc_policy *policy)
{
    struct tci_node *numbers = tci_node_new(reader->arena, TCI_NODE_TABLE, tci_pos(0, 0));
    for (size_t i = 0; numbers && i < policy->agent_count; i++) {
        const struct tci_agent *agent = &policy->agents[i];
        struct tci_text name = { agent->name, strlen(agent->name) };
        struct tci_node *number = tci_node_new(reader->arena, TCI_NODE_INTEGER, agent->pos);
        if (!number || !tci_table_add(reader->arena, numbers, name, agent->pos, number))
            return NULL;
        number->integer = (int64_t)i;
    }
    return numbers;
}

static int link_parent(struct tci_reader *reader, const struct tci_node *numbers,
                       struct tc_policy *policy, struct tci_agent *agent)
{
    struct tci_text name = { agent->parent_name, strlen(agent->parent_name) };
    const struct tci_entry *found = tci_table_find(numbers, name.data, name.length);
    char quoted[TCI_QUOTE_MAX];
    if (!found)
        return tci_read_fail(reader, TCI_FINDING_BAD_PARENT, agent->parent_pos,
                             "name another agent of this policy, or remove \"parent\"",
                             "%s has the parent %s, and there is no such agent", reader->where,
                             tci_read_quote(name, quoted));
    agent->parent = &policy->agents[found->value->integer];
    return 0;
}

/* The attack: a chain that never ends keeps a decision from ending. */
static int check_chain(struct tci_reader *reader, const struct tci_agent *agent)
{
    const struct tci_agent *above = agent->parent;
    for (int i = 1; above; above = above->parent, i++) {
        if (above == agent)
            return tci_read_fail(reader, TCI_FINDING_BAD_PARENT, agent->parent_pos,
                                 "remove one \"parent\" of the circle",
                                 "%s is its own parent, or an ancestor of it", reader->where);
        if (i == TCI_AGENT_CHAIN_MAX)
            return tci_read_fail(reader, TCI_FINDING_BAD_PARENT, agent->parent_pos,
                                 "use fewer agents, one below the other",
                                 "%s has more than %d agents above it", reader->where,
                                 TCI_AGENT_CHAIN_MAX - 1);
    }
    return 0;
}

static void set_where(struct tci_reader *reader, const struct tci_agent *agent)
{
    (void)snprintf(reader->where, sizeof reader->where, "[agent.%.64s]", agent->name);
}

static int link_parents(struct tci_reader *reader, struct tc_policy *policy)
{
    const struct tci_node *numbers = number_agents(reader, policy);
    int status = 0;
    if (!numbers)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < policy->agent_count; i++) {
        set_where(reader, &policy->agents[i]);
        if (policy->agents[i].parent_name &&
            link_parent(reader, numbers, policy, &policy->agents[i]) < 0)
            status = -1;
    }
    for (size_t i = 0; status == 0 && i < policy->agent_count; i++) {
        set_where(reader, &policy->agents[i]);
        if (check_chain(reader, &policy->agents[i]) < 0)
            status = -1;
    }
    return status;
}

int tci_read_agents(struct tci_reader *reader, const struct tci_node *table,
                    struct tc_policy *policy)
{
    bool has_children = false;
    int status = 0;
    if (tci_read_table_size(reader, "agents", table->table.count, table->pos) < 0)
        return -1;
    policy->agents = tci_arena_new_array(reader->arena, table->table.count, struct tci_agent);
    if (!policy->agents)
        return tci_read_no_memory(reader);
    tci_table_foreach (entry, table) {
        struct tci_agent *agent = &policy->agents[policy->agent_count];
        if (read_agent(reader, entry, agent) < 0) {
            /* The next agent starts from nothing: above all not with this one's grant count. */
            *agent = (struct tci_agent){ .name = NULL };
            status = -1;
            continue;
        }
        has_children |= agent->parent_name != NULL;
        policy->agent_count++;
    }
    return status < 0 || !has_children ? status : link_parents(reader, policy);
}
