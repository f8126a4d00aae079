/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a client may read about calls, as text.
 * The attacks: an agent asks about calls of others; it sees only those of its own session. And one whose
 * results are long asks for all of them again and again: so many bytes of results are looked at, by one pass
 * over them and without the journal's lock, and no more when the job is cancelled.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "core/engine_runtime.h"
#include "core/engine_tools.h"
#include "core/record.h"
#include "journal/journal.h"
#include "json/canonical.h"
#include "json/scan.h"
#include "json/write.h"
#include "mcp/hide.h"
#include "mcp/job.h"
#include "mcp/resources.h"

enum {
    records_max = 500,
    request_max = 8192,
    member_max = 65536,
    result_max = 16 * 1024 * 1024,   /* bytes of a result that is looked into */
    results_max = 256 * 1024 * 1024, /* of all of them */
};

/* Several sessions of MCP may share a session of the journal (--session): an agent sees its own calls. */
static struct tci_journal_query calls_of(const struct tci_mcp_session *session)
{
    return (struct tci_journal_query){ .session = session->name,
                                       .agent = session->agent,
                                       .kind = "call" };
}

/* ---- the records of a session ----------------------------------------------------------------- */

/* From the last one back; `text` has them without their steps. */
struct lines {
    const struct tci_mcp_session *session;
    struct tc_engine *engine;
    struct tci_buf text;
    size_t count;
    struct line {
        size_t end; /* in the text */
        uint64_t step;
    } lines[records_max];
};

enum member { member_reason, member_fix, member_exit_code, member_signal, member_usage };
static const char *const members[] = { "reason", "fix", "exit_code", "signal", "usage" };

/* A text of the record, in words for who reads it. */
static void put_words(struct tci_json *json, const char *key, const json_t *kept,
                      const struct lines *lines, const char *tool)
{
    char text[sizeof((struct tc_result){ 0 }.reason)];
    (void)snprintf(text, sizeof text, "%s", json_is_string(kept) ? json_string_value(kept) : "");
    tci_mcp_hide_text(tci_engine_tool(lines->engine, tool), lines->session->agent, text,
                      sizeof text);
    tci_json_string(json, key, json_is_string(kept) ? text : NULL);
}

static void put_value(struct tci_json *json, const char *key, const json_t *value)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(member_max);
    tci_mcp_write_value(&text, value);
    if (text.length && tci_buf_check(&text, NULL) == 0)
        tci_json_raw(json, key, text.data);
}

/* Those members of a result that say how it ended. What the tool printed may be a hundred times as long. */
static void put_outcome(struct tci_json *json, const char *result, const struct lines *lines,
                        const char *tool)
{
    struct tci_json_part parts[tci_array_size(members)];
    tci_json_scan_members(result, strlen(result), members, tci_array_size(members), parts);
    for (size_t i = 0; i < tci_array_size(members); i++) {
        json_t *value = parts[i].length && parts[i].length <= member_max
                            ? tci_json_read(parts[i].text, parts[i].length, NULL)
                            : NULL;
        if (value && (i == member_reason || i == member_fix))
            put_words(json, members[i], value, lines, tool);
        else if (value)
            put_value(json, members[i], value);
        json_decref(value);
    }
}

static int put_record(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct lines *lines = context;
    struct tci_json json = { .out = &lines->text };
    (void)reterr;
    tci_json_object_begin(&json, NULL);
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
    if (row->entry.result)
        put_outcome(&json, row->entry.result, lines, row->entry.tool);
    tci_json_object_end(&json);
    lines->lines[lines->count++] = (struct line){ lines->text.length, row->step };
    return 0;
}

/* In the order in which they were made. */
static void put_lines(const struct lines *lines, struct tci_buf *out)
{
    for (size_t i = lines->count; i-- > 0;) {
        const size_t begin = i ? lines->lines[i - 1].end : 0;
        /* The session's own numbers would tell an agent how many calls others made between its own. */
        const uint64_t step = lines->session->agent ? lines->count - i : lines->lines[i].step;
        tci_buf_printf(out, "{\"step\":%llu,", (unsigned long long)step);
        tci_buf_append(out, lines->text.data + begin + 1, lines->lines[i].end - begin - 1);
        tci_buf_char(out, '\n');
    }
}

int tci_mcp_text_journal(struct tci_mcp_job *job, struct tci_buf *out, struct tc_error *reterr)
{
    struct lines lines = { .session = job->request->session,
                           .engine = job->engine->engine,
                           .text = TCI_BUF_INIT(TCI_MCP_RESOURCE_MAX) };
    struct tci_journal_query query = calls_of(lines.session);
    const struct tci_journal_bounds bounds = { result_max, results_max, &job->cancelled };
    int r;
    query.last = records_max;
    r = tci_journal_each_back(lines.engine->journal, &query, &bounds, put_record, &lines, reterr);
    if (r == 0)
        r = tci_buf_check(&lines.text, reterr);
    if (r == 0 && tci_mcp_reading_share(job, 2 * lines.text.length))
        put_lines(&lines, out);
    tci_buf_free(&lines.text);
    return r < 0 ? -1 : tci_buf_check(out, reterr);
}

/* ---- one call --------------------------------------------------------------------------------- */

struct found {
    struct tci_mcp_job *job;
    struct tci_buf *out;
    const char *why, *fix;
    bool is_found;
};

/* As the call itself was answered. */
static int put_result(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct found *found = context;
    struct tc_engine *engine = found->job->engine->engine;
    struct tci_result *result;
    const char *json = NULL;
    int r;
    if (!tci_mcp_reading_share(found->job, TCI_MCP_RESOURCE_MAX))
        return 1;
    result = tci_result_new(NULL);
    if (!result)
        return tci_error_no_memory(reterr);
    result->public.mode = engine->mode;
    r = tci_record_read(row, result, &found->why, &found->fix, reterr);
    if (r == 0)
        tci_mcp_hide(tci_engine_tool(engine, row->entry.tool), found->job->request->session->agent,
                     &result->public);
    if (r == 0 && !(json = tc_result_json(&result->public)))
        r = tci_error_no_memory(reterr);
    if (json)
        tci_buf_string(found->out, json);
    found->is_found = json != NULL;
    tc_result_free(&result->public);
    return r < 0 ? -1 : 1;
}

int tci_mcp_text_call(struct tci_mcp_job *job, const char *call_id, struct tci_buf *out,
                      const char **ret_why, struct tc_error *reterr)
{
    struct tci_journal_query query = calls_of(job->request->session);
    struct found found = { .job = job, .out = out, .why = "this session has no such call" };
    const struct tci_journal_bounds bounds = { SIZE_MAX, SIZE_MAX, &job->cancelled };
    query.call_id = call_id;
    if (tci_journal_each_back(job->engine->engine->journal, &query, &bounds, put_result, &found,
                              reterr) < 0 ||
        tci_buf_check(out, reterr) < 0)
        return -1;
    *ret_why = found.why;
    return found.is_found ? 0 : 1;
}
