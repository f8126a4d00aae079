/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: making, revoking and listing grants. What is made is checked like a policy's grant: by the same
 * reader, against the same tool, down to whether the tool can be narrowed in that way at all. It is
 * stored in its canonical form, so that what is shown later is what was read.
 */
#include "core/engine_runtime.h"

#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/moment.h"
#include "base/nearest.h"
#include "core/call.h"
#include "core/grants_list.h"
#include "journal/journal.h"
#include "policy/parse.h"
#include "policy/reader.h"

enum { nearest_of = 1000, text_max = 4 * TCI_GRANT_TEXT_MAX };

static int need_journal(const struct tc_engine *engine, struct tc_error *reterr)
{
    if (engine->journal)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "grants made at run time are kept in a journal");
    tci_error_remedy(reterr, "open the engine with journal_path");
    return -1;
}

/* The same names as in a policy. */
static int check_agent(const char *agent, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new("");
    struct tci_reader reader = { .arena = arena, .findings = findings };
    struct tci_text name = { .data = agent, .length = strlen(agent) };

    if (!arena || !findings)
        return tci_error_no_memory(reterr);
    if (tci_read_check_name(&reader, "an agent", name, (struct tci_pos){ .file = TCI_FILE_NONE }) ==
        0)
        return 0;
    return tci_findings_error(findings, reterr) < 0 ? -1 : tci_error_no_memory(reterr);
}

static int no_tool(const struct tc_policy *policy, const char *name, struct tc_error *reterr)
{
    const char *words[nearest_of + 1] = { NULL }, *nearest;
    for (size_t i = 0; i < policy->tool_count && i < nearest_of; i++)
        words[i] = policy->tools[i].name;
    nearest = tci_nearest_word(name, strlen(name), words);
    tci_error_set(reterr, TC_ERROR_POLICY,
                  "the grant names \"%.100s\", which is no tool of this policy", name);
    if (nearest)
        tci_error_remedy(reterr, "did you mean \"%s\"?", nearest);
    else
        tci_error_remedy(reterr, "define the tool first");
    return -1;
}

/* A grant that could never be used is better refused now, where somebody reads why. */
static int check_narrowing(const struct tci_tool *tool, const struct tci_grant *grant,
                           struct tci_arena *arena, struct tc_error *reterr)
{
    static const struct tc_limits no_limits;
    struct tci_grants one = { .items = { grant }, .count = 1 };
    struct tci_limits limits;
    struct tci_tool narrowed;
    (void)tci_narrow_limits(tool, &one, NULL, &no_limits, &limits);
    return tci_narrow_tool(arena, tool, grant, &limits, &narrowed, reterr);
}

int tc_grant_add(struct tc_engine *engine, const char *agent, const char *grant, char ret_id[37],
                 struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max);
    const struct tci_tool *tool;
    struct tci_grant *parsed = NULL;

    tci_error_clear(reterr);
    if (!arena)
        return tci_error_no_memory(reterr);
    if (!agent || !grant)
        return tci_error_set(reterr, TC_ERROR_USAGE, "a grant needs an agent and a table");
    if (need_journal(engine, reterr) < 0 || check_agent(agent, reterr) < 0 ||
        tci_grant_parse(engine->policy, arena, grant, strlen(grant), &parsed, reterr) < 0)
        return -1;
    tool = tci_engine_tool(engine, parsed->tool);
    if (!tool)
        return no_tool(engine->policy, parsed->tool, reterr);
    if (check_narrowing(tool, parsed, arena, reterr) < 0)
        return -1;
    tci_grant_write(parsed, &text);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    return tci_journal_grant_add(engine->journal, agent, parsed->tool, text.data, ret_id, reterr);
}

int tc_grant_revoke(struct tc_engine *engine, const char *id, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    int r;

    tci_error_clear(reterr);
    if (need_journal(engine, reterr) < 0)
        return -1;
    id = id ? id : "";
    r = tci_journal_grant_revoke(engine->journal, id, reterr);
    if (r <= 0)
        return r;
    tci_error_set(reterr, TC_ERROR_USAGE, "there is no grant %s, or it is revoked already",
                  tci_quote(id, strlen(id), quoted));
    tci_error_remedy(reterr,
                     "\"toolcage grant list\" shows ids; a policy's grants are in its file");
    return -1;
}

/* ---- lists -------------------------------------------------------------------------------- */

static const char *state_of(struct tc_engine *engine, const struct tci_listed_grant *row)
{
    const struct tci_grant *grant = row->grant;
    int64_t now = (int64_t)(tci_clock_realtime_ms() / 1000);
    if (row->revoked_us)
        return "revoked";
    if (!grant || !tci_engine_tool(engine, row->tool))
        return "no_tool";
    if (grant->has_expiry && now >= grant->expires)
        return "expired";
    if (grant->has_max_calls && row->calls >= grant->max_calls)
        return "used_up";
    return "active";
}

static int list_policy(struct tc_engine *engine, const char *agent, tci_grant_visitor *each,
                       void *context, struct tc_error *reterr)
{
    for (size_t i = 0; i < engine->policy->agent_count; i++) {
        const struct tci_agent *a = &engine->policy->agents[i];
        if (agent && strcmp(a->name, agent) != 0)
            continue;
        for (size_t j = 0; j < a->grant_count; j++) {
            struct tci_listed_grant row = { .agent = a->name,
                                            .tool = a->grants[j].tool,
                                            .grant = &a->grants[j],
                                            .is_counted = a->grants[j].has_max_calls };
            if (tci_engine_calls(engine, a->name, row.grant, &row.calls, reterr) < 0)
                return -1;
            row.parent = a->parent ? a->parent->name : NULL;
            row.state = state_of(engine, &row);
            each(context, &row);
        }
    }
    return 0;
}

static int list_journal(struct tc_engine *engine, const char *agent, tci_grant_visitor *each,
                        void *context, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant *rows = NULL;
    size_t count = 0;

    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_grants(engine->journal, agent, true, arena, &rows, &count, reterr) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct tci_agent *a = tci_policy_agent(engine->policy, rows[i].agent);
        struct tci_listed_grant row = { .id = rows[i].id,
                                        .agent = rows[i].agent,
                                        .tool = rows[i].tool,
                                        .text = rows[i].text,
                                        .is_counted = true,
                                        .calls = rows[i].calls,
                                        .created_us = rows[i].created_us,
                                        .revoked_us = rows[i].revoked_us };
        struct tci_grant *grant = NULL;
        struct tc_error problem = { 0 };
        if (tci_grant_parse(engine->policy, arena, rows[i].text, strlen(rows[i].text), &grant,
                            &problem) == 0)
            row.grant = grant;
        row.parent = a && a->parent ? a->parent->name : NULL;
        row.state = state_of(engine, &row);
        each(context, &row);
    }
    return 0;
}

int tci_grants_each(struct tc_engine *engine, const char *agent, tci_grant_visitor *each,
                    void *context, struct tc_error *reterr)
{
    if (list_policy(engine, agent, each, context, reterr) < 0)
        return -1;
    return engine->journal ? list_journal(engine, agent, each, context, reterr) : 0;
}

static void write_moment(struct tci_json *json, const char *key, int64_t us)
{
    char text[TCI_MOMENT_TEXT_MAX];
    tci_json_string(json, key, us ? tci_moment_format(us / 1000000, text) : NULL);
}

static void write_row(void *context, const struct tci_listed_grant *row)
{
    struct tci_json *json = context;
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max);
    if (!row->text)
        tci_grant_write(row->grant, &text);
    json->out->no_memory |= text.no_memory;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "source", row->id ? "journal" : "policy");
    tci_json_string(json, "id", row->id);
    tci_json_string(json, "agent", row->agent);
    tci_json_string(json, "parent", row->parent);
    tci_json_string(json, "tool", row->tool);
    tci_json_string(json, "state", row->state);
    if (row->is_counted)
        tci_json_unsigned(json, "calls", row->calls);
    else
        tci_json_null(json, "calls");
    write_moment(json, "created", row->created_us);
    write_moment(json, "revoked", row->revoked_us);
    tci_json_value(json, "grant", row->text ? row->text : text.data ? text.data : "{}");
    tci_json_object_end(json);
}

int tci_grants_json(struct tc_engine *engine, const char *agent, struct tci_buf *out,
                    struct tc_error *reterr)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_array_begin(&json, "grants");
    if (tci_grants_each(engine, agent, write_row, &json, reterr) < 0)
        return -1;
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    return tci_buf_check(out, reterr);
}

int tc_grant_list(struct tc_engine *engine, char **ret_json, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    char *text;
    tci_error_clear(reterr);
    if (tci_grants_json(engine, NULL, &out, reterr) < 0)
        return -1;
    text = tci_buf_take(&out, reterr);
    if (!text)
        return -1;
    *ret_json = text;
    return 0;
}
