/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: resources/read. Reading may wait for the disk and for the journal's lock, so a worker does it; the
 * loop only finds out what is meant. One answer for "there is none" and "it is not yours".
 * The attack: many reads of a large file at once, from connections that do not read, that take all memory and
 * all workers. So each read is a job with a lane (few at one time for an agent) and a share of the budget.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/base64.h"
#include "core/engine.h"
#include "core/record.h"
#include "json/write.h"
#include "mcp/hide.h"
#include "mcp/job.h"
#include "mcp/resources.h"

enum { uri_max = 4096 };

/* One that is being read. */
struct tci_mcp_reading {
    bool is_file;
    struct tci_mcp_file file; /* a copy of what reading it takes: it may be forgotten meanwhile */
    char *uri;
};

void tci_mcp_reading_free(struct tci_mcp_reading *reading)
{
    if (!reading)
        return;
    free(reading->file.path);
    free(reading->file.media_type);
    free(reading->uri);
    free(reading);
}

enum tci_mcp_outcome tci_mcp_no_resource(struct tci_mcp_failure *failure, const char *uri,
                                         const char *why)
{
    struct tci_buf data = TCI_BUF_INIT(65536);
    struct tci_json json = { .out = &data };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "uri", uri);
    tci_json_object_end(&json);
    failure->data_json = tci_buf_take(&data, NULL);
    return tci_mcp_failed(failure, TCI_MCP_NO_RESOURCE, "Resource not found%s%s", why ? ": " : "",
                          why ? why : "");
}

/* ---- in the worker -------------------------------------------------------------------------- */

static void put_contents(struct tci_mcp_job *job, const char *media_type, const char *bytes,
                         size_t length)
{
    struct tci_json json = { .out = &job->answer };
    /* Bytes that are not text stay what they are; the writer would replace them. */
    bool text = tci_is_utf8(bytes, length) && !memchr(bytes, '\0', length) &&
                strncmp(media_type, "image/", 6) != 0 && strncmp(media_type, "audio/", 6) != 0;
    tci_mcp_write_result_begin(&json, job->request->id);
    tci_json_object_begin(&json, "result");
    tci_json_array_begin(&json, "contents");
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "uri", job->reading->uri);
    tci_json_string(&json, "mimeType", media_type);
    if (text) {
        tci_json_bytes(&json, "text", bytes, length);
    } else {
        tci_json_raw(&json, "blob", "\"");
        tci_base64_encode(json.out, bytes, length);
        tci_buf_char(json.out, '"');
    }
    tci_json_object_end(&json);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_json_object_end(&json);
}

/* A file that was brought back. */
static int read_file(struct tci_mcp_job *job, struct tc_error *reterr)
{
    struct tci_arena *arena = tci_arena_new();
    const struct tci_mcp_file *file = &job->reading->file;
    char *bytes = NULL;
    size_t length = 0;
    int r = -1;
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_mcp_files_read(job->server->store, file, arena, &bytes, &length, reterr) == 0) {
        put_contents(job, file->media_type, bytes ? bytes : "", length);
        r = 0;
    }
    tci_arena_free(arena);
    return r;
}

/* 1: there is none; *ret_why may say more. */
static int read_text(struct tci_mcp_job *job, struct tci_buf *out, const char **ret_type,
                     const char **ret_why, struct tc_error *reterr)
{
    const struct tci_mcp_session *session = job->request->session;
    struct tc_engine *engine = job->engine->engine;
    const char *uri = job->reading->uri;

    *ret_type = "application/json";
    if (!tci_mcp_resource_is_there(session, uri))
        return 1;
    if (strcmp(uri, TCI_MCP_POLICY_URI) == 0) {
        *ret_type = "application/toml";
        return tci_mcp_text_policy(engine, NULL, false, out, reterr);
    }
    if (strcmp(uri, TCI_MCP_TOOLS_URI) == 0)
        return tci_mcp_text_tools(session, engine, NULL, out, reterr);
    if (strcmp(uri, TCI_MCP_JOURNAL_URI) == 0) {
        *ret_type = "application/jsonl";
        return tci_mcp_text_journal(job, out, reterr);
    }
    if (strncmp(uri, TCI_MCP_CALL_PREFIX, strlen(TCI_MCP_CALL_PREFIX)) == 0)
        return tci_mcp_text_call(job, uri + strlen(TCI_MCP_CALL_PREFIX), out, ret_why, reterr);
    if (strncmp(uri, TCI_MCP_TOOL_PREFIX, strlen(TCI_MCP_TOOL_PREFIX)) == 0) {
        const struct tci_tool *tool = tci_mcp_visible_tool(session, engine,
                                                           uri + strlen(TCI_MCP_TOOL_PREFIX));
        return tool ? tci_mcp_text_tools(session, engine, tool, out, reterr) : 1;
    }
    return 1;
}

/* ---- shares of the budget ------------------------------------------------------------------- */

/* What it takes at most: the bytes, and the answer, in which a control character is six. */
bool tci_mcp_reading_share(struct tci_mcp_job *job, size_t bytes)
{
    const uint64_t answer =
        65536 + 6 * (uint64_t)(bytes < TCI_MCP_RESOURCE_MAX ? bytes : TCI_MCP_RESOURCE_MAX);
    if (job->share || atomic_load(&job->cancelled))
        return !atomic_load(&job->cancelled);
    return tci_mcp_budget_take(
        &job->server->budget, job,
        (size_t)(bytes + (answer < TCI_MCP_ANSWER_MAX ? answer : TCI_MCP_ANSWER_MAX)));
}

/* Texts are made before there is a share: they may wait for the journal, which another process may have locked, and
 * nobody who waits may keep others from theirs. */
static int read_text_shared(struct tci_mcp_job *job, const char **ret_why, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_MCP_RESOURCE_MAX);
    const char *type = "";
    int r = read_text(job, &text, &type, ret_why, reterr);
    if (r == 0 && tci_mcp_reading_share(job, text.length))
        put_contents(job, type, text.data ? text.data : "", text.length);
    return r;
}

/* 0; 1: there is none; *ret_why may say more. */
static int read_resource(struct tci_mcp_job *job, const char **ret_why, struct tc_error *reterr)
{
    if (!job->reading->is_file)
        return read_text_shared(job, ret_why, reterr);
    if (!tci_mcp_reading_share(job, job->reading->file.size))
        return 0;
    return read_file(job, reterr);
}

static void fail_reading(struct tci_mcp_job *job, int r, const char *why,
                         const struct tc_error *error)
{
    tci_buf_free(&job->answer);
    job->failure = calloc(1, sizeof *job->failure);
    if (!job->failure)
        return; /* the loop says that there was no memory */
    if (r > 0)
        (void)tci_mcp_no_resource(job->failure, job->reading->uri, why);
    else
        (void)tci_mcp_failed(job->failure, job->engine ? TCI_MCP_INTERNAL : TCI_MCP_BUSY,
                             "the resource cannot be read: %s", error->message);
    tci_mcp_hide_text(NULL, job->request->session->agent, job->failure->message,
                      sizeof job->failure->message);
}

static void run_reading(struct tci_mcp_job *job)
{
    struct tc_error error = { 0 };
    const char *why = NULL;
    int r = -1;

    job->engine = tci_mcp_engine_take(job->server);
    if (!job->engine)
        tci_error_set(&error, TC_ERROR_IO, "the policy is being loaded; try again");
    else
        r = read_resource(job, &why, &error);
    if (atomic_load(&job->cancelled)) {
        tci_buf_free(&job->answer); /* which is perhaps a part of one */
        return;
    }
    if (r == 0)
        r = tci_buf_check(&job->answer, &error);
    if (r != 0)
        fail_reading(job, r, why, &error);
    tci_mcp_budget_keep(&job->server->budget, job, job->answer.length + 1);
}

/* ---- in the loop ---------------------------------------------------------------------------- */

const char *tci_mcp_resource_uri(const struct json_t *params, struct tci_mcp_failure *failure)
{
    const json_t *uri = json_object_get(params, "uri");
    if (json_is_string(uri) && json_string_length(uri) <= uri_max &&
        strlen(json_string_value(uri)) == json_string_length(uri))
        return json_string_value(uri);
    (void)tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "uri must be a text of at most %d bytes",
                         uri_max);
    return NULL;
}

/* NULL: no memory. */
static struct tci_mcp_reading *new_reading(const struct tci_mcp_session *session, const char *uri)
{
    const struct tci_mcp_file *file = tci_mcp_files_find(session, uri);
    struct tci_mcp_reading *reading = calloc(1, sizeof *reading);

    if (!reading)
        return NULL;
    reading->uri = strdup(uri);
    reading->is_file = file != NULL;
    if (file) {
        reading->file.path = strdup(file->path);
        reading->file.media_type = strdup(file->media_type);
        reading->file.size = file->size;
        memcpy(reading->file.sha256, file->sha256, sizeof file->sha256);
    }
    if (!reading->uri || (file && (!reading->file.path || !reading->file.media_type))) {
        tci_mcp_reading_free(reading);
        return NULL;
    }
    return reading;
}

enum tci_mcp_outcome tci_mcp_resources_read(struct tci_mcp_request *request,
                                            const struct json_t *params, struct tci_buf *result,
                                            struct tci_mcp_failure *failure)
{
    const char *uri = tci_mcp_resource_uri(params, failure);
    struct tci_mcp_work what = { .run = run_reading, .is_reading = true };

    (void)result;
    if (!uri)
        return TCI_MCP_FAILED;
    what.reading = new_reading(request->session, uri);
    if (!what.reading)
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "no memory");
    return tci_mcp_job_begin(request, &what, failure);
}
