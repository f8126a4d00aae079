/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a client may read about tools and calls, as text.
 * The attack: an agent asks about what it was not given. The owner sees everything; an agent sees only
 * tools that it holds a grant for now, of these only what a caller has to know (no environment, no
 * command, no paths of the host, no other agents), and only calls of its own session.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "base/moment.h"
#include "core/engine_runtime.h"
#include "core/engine_tools.h"
#include "core/record.h"
#include "json/canonical.h"
#include "json/write.h"
#include "journal/journal.h"
#include "mcp/hide.h"
#include "mcp/resources.h"
#include "policy/dump.h"
#include "policy/explain.h"
#include "policy/value.h"

enum { records_max = 500, request_max = 8192 };

/* ---- which tools -------------------------------------------------------------------------- */

/* After refresh(). */
static bool is_visible(const struct tci_mcp_session *session, struct tc_engine *engine,
                       const struct tci_tool *tool)
{
    bool granted = true;
    struct tc_error error = { 0 };
    return !session->agent || (tci_engine_is_granted_known(engine, session->agent, tool->name,
                                                           &granted, &error) == 0 &&
                               granted);
}

/* False: nothing is known of an agent's grants, and it sees nothing. */
static bool refresh(const struct tci_mcp_session *session, struct tc_engine *engine)
{
    struct tc_error error = { 0 };
    return !session->agent || tci_engine_refresh(engine, &error) == 0;
}

const struct tci_tool *tci_mcp_visible_tool(const struct tci_mcp_session *session,
                                            struct tc_engine *engine, const char *name)
{
    const struct tci_tool *tool = tci_engine_tool(engine, name);
    return tool && refresh(session, engine) && is_visible(session, engine, tool) ? tool : NULL;
}

struct visible {
    const struct tci_mcp_session *session;
    struct tc_engine *engine;
    int (*each)(void *context, const struct tci_tool *tool);
    void *context;
};

static int visit(void *context, const struct tci_tool *tool)
{
    const struct visible *visible = context;
    return is_visible(visible->session, visible->engine, tool)
               ? visible->each(visible->context, tool)
               : 0;
}

int tci_mcp_each_visible(const struct tci_mcp_session *session, struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context)
{
    struct visible visible = { session, engine, each, context };
    if (!refresh(session, engine))
        return 0;
    return tci_engine_each_tool(engine, visit, &visible);
}

/* ---- the policy, for whoever reads it ----------------------------------------------------- */

/* The owner's client is a model all the same. Keys of services are given to tools by `env` so that the
 * model does not have them: it reads the names, and not the values. */
static int hide_values(struct tci_arena *arena, struct tci_environment *env)
{
    struct tci_variable *items = tci_arena_alloc(arena, (env->count + 1) * sizeof *items);
    if (!items)
        return -1;
    for (size_t i = 0; i < env->count; i++) {
        items[i] = env->items[i];
        items[i].value = "(hidden)";
    }
    env->items = items;
    return 0;
}

/* A copy of the policy that may be shown; it shares the rest with the policy. */
static int copy_policy(struct tci_arena *arena, const struct tc_policy *policy,
                       struct tc_policy *ret, struct tc_error *reterr)
{
    *ret = *policy;
    ret->tools = tci_arena_alloc(arena, (policy->tool_count + 1) * sizeof *ret->tools);
    if (!ret->tools)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < policy->tool_count; i++) {
        ret->tools[i] = policy->tools[i];
        if (hide_values(arena, &ret->tools[i].settings.env) < 0)
            return tci_error_no_memory(reterr);
    }
    return 0;
}

int tci_mcp_text_policy(const struct tc_engine *engine, const struct tci_tool *tool, bool explain,
                        struct tci_buf *out, struct tc_error *reterr)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_policy copy = { 0 };
    int r = arena ? copy_policy(arena, engine->policy, &copy, reterr) : tci_error_no_memory(reterr);
    if (r == 0 && explain)
        tci_explain_json(&copy, tool ? &copy.tools[tool - engine->policy->tools] : NULL, NULL, out);
    else if (r == 0)
        tci_policy_dump(&copy, out);
    tci_arena_free(arena);
    return r < 0 ? -1 : tci_buf_check(out, reterr);
}

/* ---- a tool, for an agent ----------------------------------------------------------------- */

static void put_paths(struct tci_json *json, const char *key, const struct tci_settings *settings,
                      enum tci_access access)
{
    tci_json_array_begin(json, key);
    for (size_t i = 0; i < settings->filesystem.count; i++)
        if (settings->filesystem.rules[i].access == access)
            tci_json_string(json, NULL, settings->filesystem.rules[i].cage);
    tci_json_array_end(json);
}

static void put_grant(struct tci_json *json, const struct tci_grant *grant)
{
    char text[TCI_MOMENT_TEXT_MAX];
    tci_json_object_begin(json, NULL);
    if (grant->has_expiry)
        tci_json_string(json, "expires", tci_moment_format(grant->expires, text));
    if (grant->has_max_calls)
        tci_json_unsigned(json, "max_calls", grant->max_calls);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if ((grant->narrow->present & tci_key_bit(key)) && key != TCI_KEY_FILESYSTEM)
            tci_value_write(json, tci_key_name((enum tci_key)key), grant->narrow,
                            (enum tci_key)key);
    if (grant->narrow->present & tci_key_bit(TCI_KEY_FILESYSTEM)) {
        put_paths(json, "readable", grant->narrow, TCI_ACCESS_READABLE);
        put_paths(json, "writable", grant->narrow, TCI_ACCESS_WRITABLE);
    }
    tci_json_object_end(json);
}

/* What narrows it: the agent's grant, and those of whom it works for. */
static void put_grants(struct tci_json *json, const struct tc_engine *engine, const char *agent,
                       const char *tool)
{
    const char *chain[TCI_GRANTS_MAX];
    size_t count = tci_engine_chain(engine, agent, chain);
    tci_json_array_begin(json, "grants");
    for (size_t i = 0; i < count && i < TCI_GRANTS_MAX; i++) {
        const struct tci_agent *holder = tci_policy_agent(engine->policy, chain[i]);
        const struct tci_grant *grant = holder ? tci_agent_grant(holder, tool) : NULL;
        if (grant)
            put_grant(json, grant);
    }
    tci_json_array_end(json);
}

static void put_tool(struct tci_json *json, const struct tc_engine *engine, const char *agent,
                     const struct tci_tool *tool)
{
    static const enum tci_key keys[] = {
        TCI_KEY_DESCRIPTION, TCI_KEY_BACKEND, TCI_KEY_NETWORK,    TCI_KEY_TIMEOUT, TCI_KEY_MEMORY,
        TCI_KEY_CPU,         TCI_KEY_PIDS,    TCI_KEY_FILES,      TCI_KEY_DISK,    TCI_KEY_OUTPUT,
        TCI_KEY_COMMANDS,    TCI_KEY_OUTPUTS, TCI_KEY_PARAMETERS, TCI_KEY_RETURNS, TCI_KEY_APPROVAL,
    };
    const struct tci_settings *settings = &tool->settings;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "name", tool->name);
    for (size_t i = 0; i < tci_array_size(keys); i++)
        if (tci_value_is_set(settings, keys[i]))
            tci_value_write(json, tci_key_name(keys[i]), settings, keys[i]);
    put_paths(json, "readable", settings, TCI_ACCESS_READABLE);
    put_paths(json, "writable", settings, TCI_ACCESS_WRITABLE);
    put_grants(json, engine, agent, tool->name);
    tci_json_object_end(json);
}

struct listing {
    struct tci_json json;
    const struct tc_engine *engine;
    const char *agent;
};

static int list_tool(void *context, const struct tci_tool *tool)
{
    struct listing *listing = context;
    put_tool(&listing->json, listing->engine, listing->agent, tool);
    return 0;
}

int tci_mcp_text_tools(const struct tci_mcp_session *session, struct tc_engine *engine,
                       const struct tci_tool *tool, struct tci_buf *out, struct tc_error *reterr)
{
    struct listing listing = { { .out = out, .pretty = true }, engine, session->agent };
    if (!session->agent)
        return tci_mcp_text_policy(engine, tool, true, out, reterr);
    tci_json_object_begin(&listing.json, NULL);
    tci_json_string(&listing.json, "agent", session->agent);
    tci_json_array_begin(&listing.json, "tools");
    if (tool)
        (void)list_tool(&listing, tool);
    else
        (void)tci_mcp_each_visible(session, engine, list_tool, &listing);
    tci_json_array_end(&listing.json);
    tci_json_object_end(&listing.json);
    return tci_buf_check(out, reterr);
}

/* ---- calls -------------------------------------------------------------------------------- */

/* Several sessions of MCP may share a session of the journal (--session): an agent sees its own calls. */
static struct tci_journal_query calls_of(const struct tci_mcp_session *session)
{
    return (struct tci_journal_query){ .session = session->name,
                                       .agent = session->agent,
                                       .kind = "call" };
}

/* The records of a session, as lines. */
struct lines {
    const struct tci_mcp_session *session;
    struct tc_engine *engine;
    struct tci_buf *out;
    uint64_t count;
};

/* A text of the record, in words for who reads it. */
static void put_words(struct tci_json *json, const char *key, const json_t *document,
                      const struct lines *lines, const char *tool)
{
    const json_t *kept = json_object_get(document, key);
    char text[sizeof((struct tc_result){ 0 }.reason)];
    if (!kept)
        return;
    (void)snprintf(text, sizeof text, "%s", json_is_string(kept) ? json_string_value(kept) : "");
    tci_mcp_hide_text(tci_engine_tool(lines->engine, tool), lines->session->agent, text,
                      sizeof text);
    tci_json_string(json, key, json_is_string(kept) ? text : NULL);
}

/* Those members of a result that say how it ended. */
static void put_outcome(struct tci_json *json, const char *result, const struct lines *lines,
                        const char *tool)
{
    static const char *const members[] = { "exit_code", "signal", "usage" };
    json_t *document = result ? tci_json_read(result, strlen(result), NULL) : NULL;
    put_words(json, "reason", document, lines, tool);
    put_words(json, "fix", document, lines, tool);
    for (size_t i = 0; i < tci_array_size(members); i++) {
        const json_t *member = json_object_get(document, members[i]);
        struct tci_buf text = TCI_BUF_INIT(65536);
        if (member)
            tci_mcp_write_value(&text, member);
        if (text.length && tci_buf_check(&text, NULL) == 0)
            tci_json_raw(json, members[i], text.data);
        tci_buf_free(&text);
    }
    json_decref(document);
}

static int put_record(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct lines *lines = context;
    struct tci_json json = { .out = lines->out };
    (void)reterr;
    lines->count++;
    tci_json_object_begin(&json, NULL);
    /* The session's own numbers would tell an agent how many calls others made between its own. */
    tci_json_unsigned(&json, "step", lines->session->agent ? lines->count : row->step);
    tci_json_string(&json, "call_id", row->entry.call_id);
    tci_json_string(&json, "tool", row->entry.tool);
    tci_json_string(&json, "verdict", row->entry.verdict);
    tci_json_integer(&json, "started_us", row->entry.started_us);
    tci_json_integer(&json, "ended_us", row->entry.ended_us);
    tci_json_string(&json, "state_hash", row->state_hash);
    if (row->entry.request && strlen(row->entry.request) <= request_max)
        tci_json_raw(&json, "request", row->entry.request);
    else
        tci_json_string(&json, "request_hash", row->entry.request_hash);
    put_outcome(&json, row->entry.result, lines, row->entry.tool);
    tci_json_object_end(&json);
    tci_buf_char(lines->out, '\n');
    return 0;
}

int tci_mcp_text_journal(const struct tci_mcp_session *session, struct tc_engine *engine,
                         struct tci_buf *out, struct tc_error *reterr)
{
    struct tci_journal_query query = calls_of(session);
    struct lines lines = { .session = session, .engine = engine, .out = out };
    query.last = records_max;
    if (tci_journal_each(engine->journal, &query, put_record, &lines, reterr) < 0)
        return -1;
    return tci_buf_check(out, reterr);
}

struct found {
    struct lines lines;
    const char *why, *fix;
    bool is_found;
};

static int put_result(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct found *found = context;
    struct tci_result *result = tci_result_new(NULL);
    const char *json = NULL;
    int r;
    if (!result)
        return tci_error_no_memory(reterr);
    r = tci_record_read(row, result, &found->why, &found->fix, reterr);
    if (r == 0)
        tci_mcp_hide(tci_engine_tool(found->lines.engine, row->entry.tool),
                     found->lines.session->agent, &result->public);
    if (r == 0 && !(json = tc_result_json(&result->public)))
        r = tci_error_no_memory(reterr);
    if (json)
        tci_buf_string(found->lines.out, json);
    found->is_found = json != NULL;
    tc_result_free(&result->public);
    return r < 0 ? -1 : 1;
}

int tci_mcp_text_call(const struct tci_mcp_session *session, struct tc_engine *engine,
                      const char *call_id, struct tci_buf *out, const char **ret_why,
                      struct tc_error *reterr)
{
    struct tci_journal_query query = calls_of(session);
    struct found found = { .lines = { .session = session, .engine = engine, .out = out },
                           .why = "this session has no such call" };
    query.call_id = call_id;
    if (tci_journal_each(engine->journal, &query, put_result, &found, reterr) < 0 ||
        tci_buf_check(out, reterr) < 0)
        return -1;
    *ret_why = found.why;
    return found.is_found ? 0 : 1;
}
