/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a tools/call in its worker: the call of the engine, from its start to an answer as JSON. It touches
 * nothing of the session but its names and its version, and of the request its id: they do not change while
 * it is under way.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/quote.h"
#include "base/uuid.h"
#include "core/engine.h"
#include "core/relayed.h"
#include "json/write.h"
#include "mcp/hide.h"
#include "mcp/job.h"

void tci_mcp_job_wait(struct tci_mcp_job *job, uint64_t until)
{
    struct timespec at = { .tv_sec = (time_t)(until / 1000000),
                           .tv_nsec = (long)(until % 1000000 * 1000) };
    if (until == UINT64_MAX)
        (void)pthread_cond_wait(&job->changed, &job->lock);
    else
        (void)pthread_cond_timedwait(&job->changed, &job->lock, &at);
}

static void fail_job(struct tci_mcp_job *job, int code, const char *message, const char *data)
{
    struct tci_mcp_failure *failure = calloc(1, sizeof *failure);
    if (!failure)
        return; /* the answer is empty, and the loop says that there was no memory */
    (void)tci_mcp_failed(failure, code, "%s", message);
    failure->data_json = data ? strdup(data) : NULL;
    job->failure = failure;
}

/* Verdict, reason and fix, as members of an object. */
static void write_verdict(struct tci_buf *out, const char *verdict, const char *reason,
                          const char *fix)
{
    struct tci_json json = { .out = out };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "verdict", verdict);
    tci_json_string(&json, "reason", reason);
    tci_json_string(&json, "fix", fix);
    tci_json_object_end(&json);
}

/* An agent is not told what is wrong with the journal: the person who runs the server is. */
static void note_complaint(struct tci_mcp_job *job, const char *reason)
{
    if (job->request->session->agent && !job->complaint && tci_mcp_is_of_journal(reason))
        job->complaint = strdup(reason); /* without memory it is not said */
}

static void fail_with_error(struct tci_mcp_job *job, struct tc_error *error)
{
    const char *agent = job->request->session->agent;
    tc_cleanup(tci_buf_free) struct tci_buf data = TCI_BUF_INIT(65536);
    note_complaint(job, error->message);
    tci_mcp_hide_text(NULL, agent, error->message, sizeof error->message);
    tci_mcp_hide_text(NULL, agent, error->remedy, sizeof error->remedy);
    write_verdict(&data, "error", error->message, error->remedy);
    fail_job(job, error->code == TC_ERROR_USAGE ? TCI_MCP_INVALID_PARAMS : TCI_MCP_INTERNAL,
             error->message, data.data);
}

/* Does the agent hold a grant, as far as anybody can know? A journal that cannot be read now was read before. */
static bool is_granted(struct tci_mcp_job *job, const char *agent)
{
    struct tc_engine *engine = job->engine->engine;
    struct tc_error error = { 0 };
    bool granted = false;
    return (tci_engine_is_granted(engine, agent, job->tool, &granted, &error) == 0 ||
            tci_engine_is_granted_known(engine, agent, job->tool, &granted, &error) == 0) &&
           granted;
}

/*
 * Is there no such tool, as far as the caller may know? Grants that are used up or over are another
 * thing: who held one knows the tool, and can be told. The attack: a model that learns the names of tools
 * which it was not given, from how their refusals differ.
 */
static bool is_unknown(struct tci_mcp_job *job, const struct tc_result *result)
{
    const char *agent = job->request->session->agent;
    const struct tc_denial *denial = result->denials;

    if (!job->is_listed)
        return true;
    if (result->verdict == TC_VERDICT_DENIED && result->denial_count > 0 &&
        strcmp(denial->kind, "grant") == 0)
        return strncmp(denial->rule, "grants:", 7) == 0 || strncmp(denial->rule, "tool:", 5) == 0;
    /* What a replay does not find in the journal, or cannot be recorded in it, is refused before anybody looks
     * at grants; and who fills the disk can bring that about. */
    return agent && result->verdict == TC_VERDICT_ERROR && !is_granted(job, agent);
}

static void fail_unknown(struct tci_mcp_job *job, const struct tc_result *result)
{
    tc_cleanup(tci_buf_free) struct tci_buf data = TCI_BUF_INIT(65536);
    char quoted[TCI_QUOTE_MAX], message[TCI_QUOTE_MAX + 32];
    (void)snprintf(message, sizeof message, "Unknown tool: %s",
                   tci_quote(job->tool, strlen(job->tool), quoted));
    write_verdict(&data, tc_verdict_name(result->verdict), result->reason, result->fix);
    fail_job(job, TCI_MCP_INVALID_PARAMS, message, data.data);
}

/* In the loop's thread, while the worker waits, or after it has given up: the result stays until the
 * job is freed. */
static void add_files(void *context)
{
    struct tci_mcp_job *job = context;
    const struct tc_result *result = job->result;
    for (size_t i = 0; i < result->file_count && !atomic_load(&job->cancelled); i++)
        if (result->files[i].saved)
            job->uris[i] = tci_mcp_files_add(job->request->session, result->call_id,
                                             &result->files[i]);
    (void)pthread_mutex_lock(&job->lock);
    job->has_uris = true;
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
}

/* The session's URIs for files that were brought back: only the loop may make them. */
static int await_uris(struct tci_mcp_job *job, struct tc_error *reterr)
{
    if (!job->out_directory || job->result->file_count == 0)
        return 0;
    job->uris = calloc(job->result->file_count, sizeof *job->uris);
    if (!job->uris)
        return tci_error_no_memory(reterr);
    job->files_posted = true;
    job->files = (struct tci_mcp_post){ .task = add_files, .context = job };
    tci_mcp_loop_post(job->loop, &job->files);
    (void)pthread_mutex_lock(&job->lock);
    while (!job->has_uris && !atomic_load(&job->cancelled))
        tci_mcp_job_wait(job, UINT64_MAX);
    (void)pthread_mutex_unlock(&job->lock);
    return 0;
}

/* ---- the place for its files ----------------------------------------------------------------- */

/* In the loop's thread, while the worker waits, or after it has given up: the end of the job removes it. */
static void make_directory(void *context)
{
    struct tci_mcp_job *job = context;
    struct tc_error error = { 0 };
    char id[17];

    if (atomic_load(&job->cancelled))
        return;
    if (tci_random_hex(8, id) < 0)
        tci_error_errno(&error, errno, "cannot get random bytes");
    else
        job->out_directory = tci_mcp_files_directory(job->request->session, id, &error);
    /* For the person who runs the server, and once: a model could fill their log, and its client has no
     * business with paths of the host. */
    if (!job->out_directory && !job->server->store_failed)
        tci_mcp_say(job->server, "files of a call cannot be kept: %s", error.message);
    job->server->store_failed = !job->out_directory;
    (void)pthread_mutex_lock(&job->lock);
    job->has_directory = true;
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
}

/* Does the call need a directory for its files? Only one that may be made: else a failure to make it, or
 * the time that it takes, would tell of a tool that the agent was not given. */
static bool needs_directory(struct tci_mcp_job *job, const struct tci_tool *tool)
{
    const char *agent = job->request->session->agent;
    struct tc_error error = { 0 };
    bool granted = true;

    if (!job->is_listed || tool->settings.outputs.globs.count == 0 ||
        job->server->options->mode == TC_MODE_REPLAY)
        return false;
    return !agent ||
           (tci_engine_is_granted(job->engine->engine, agent, job->tool, &granted, &error) == 0 &&
            granted);
}

/* False: it cannot be had. */
static bool await_directory(struct tci_mcp_job *job)
{
    job->directory = (struct tci_mcp_post){ .task = make_directory, .context = job };
    tci_mcp_loop_post(job->loop, &job->directory);
    (void)pthread_mutex_lock(&job->lock);
    while (!job->has_directory && !atomic_load(&job->cancelled))
        tci_mcp_job_wait(job, UINT64_MAX);
    (void)pthread_mutex_unlock(&job->lock);
    return atomic_load(&job->cancelled) || job->out_directory;
}

/* The call is not made, and recorded like others. */
static int refuse_call(struct tci_mcp_job *job, const struct tc_request *request,
                       struct tc_error *reterr)
{
    static const struct tci_relayed_refusal no_place = {
        .verdict = TC_VERDICT_ERROR,
        .reason = "there is no place for the files that the tool brings back",
        .fix = "ask the person who runs the server to look at the room and the permissions of its "
               "directory for temporary files",
    };
    struct tc_call *call = NULL;
    int r = tci_relayed_begin(job->engine->engine, request, &no_place, &call, &job->result, reterr);
    tc_call_free(call); /* none: it was refused */
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void answer_job(struct tci_mcp_job *job)
{
    struct tci_mcp_content content = { .version = job->request->session->version,
                                       .result = job->result,
                                       .out_directory = job->out_directory,
                                       .id = job->request->id };
    struct tc_error error = { 0 };

    note_complaint(job, job->result->reason);
    tci_mcp_hide(tci_engine_tool(job->engine->engine, job->tool), job->request->session->agent,
                 job->result);
    if (is_unknown(job, job->result)) {
        fail_unknown(job, job->result);
        return;
    }
    if (await_uris(job, &error) < 0) {
        fail_with_error(job, &error);
        return;
    }
    if (atomic_load(&job->cancelled) ||
        !tci_mcp_budget_take(&job->server->budget, job, tci_mcp_content_most(&content)))
        return;
    content.uris = job->uris;
    if (tci_mcp_content_write(&content, &job->answer, &error) < 0) {
        tci_buf_free(&job->answer);
        fail_with_error(job, &error);
    }
    /* What the tool printed is in it now, and the loop has looked at the files: else it was cancelled. */
    tc_result_free(tc_take(job->result));
    tci_mcp_budget_keep(&job->server->budget, job, job->answer.length + 1);
}

/* Until the call is over. */
static int run_call(struct tci_mcp_job *job, struct tc_call *call, struct tc_error *reterr)
{
    struct pollfd wait[2] = { { .fd = tc_call_fd(call), .events = POLLIN },
                              { .fd = job->wake, .events = POLLIN } };
    while (!job->result) {
        int ready = poll(wait, 2, tci_mcp_progress_timeout(job));
        if (ready < 0 && errno != EINTR)
            return tci_error_errno(reterr, errno, "cannot wait for the call");
        if (ready > 0 && wait[1].revents) {
            tc_call_cancel(call);
            wait[1].fd = -1;
        }
        if (ready > 0 && wait[0].revents && tc_call_step(call, &job->result, reterr) < 0)
            return -1;
        tci_mcp_progress_tick(job);
    }
    return 0;
}

static int make_call(struct tci_mcp_job *job, const struct tc_request *request,
                     struct tc_error *reterr)
{
    struct tc_call *call = NULL;
    int r;

    tci_mcp_lines_begin(job);
    tci_mcp_elicit_for(job);
    r = tc_call_start(job->engine->engine, request, &call, reterr);
    tci_mcp_elicit_for(NULL);
    if (r == 0)
        r = run_call(job, call, reterr);
    tci_mcp_lines_end(job);
    tc_call_free(call);
    return r;
}

/* What the policy says about the tool, as far as it has to be known before the call. */
static bool prepare(struct tci_mcp_job *job)
{
    const struct tci_tool *tool = tci_engine_tool(job->engine->engine, job->tool);
    job->timeout_ms = tool ? tool->settings.timeout : UINT64_MAX;
    job->is_listed = tool && tool->settings.command.count > 0;
    return !needs_directory(job, tool) || await_directory(job);
}

void tci_mcp_job_run(struct tci_mcp_job *job)
{
    const struct tci_mcp_session *session = job->request->session;
    struct tc_request request = { .tool = job->tool,
                                  .agent = session->agent,
                                  .session = session->name,
                                  .arguments_json = job->arguments,
                                  .input_fd = -1,
                                  .on_output = tci_mcp_lines_output,
                                  .context = job };
    struct tc_error error = { 0 };
    int r;

    job->engine = tci_mcp_engine_take(job->server);
    if (!job->engine) {
        fail_job(job, TCI_MCP_BUSY, "the policy has changed and is being loaded; call again", NULL);
        return;
    }
    if (!prepare(job)) {
        r = refuse_call(job, &request, &error);
    } else if (atomic_load(&job->cancelled)) {
        return;
    } else {
        request.out_directory = job->out_directory;
        r = make_call(job, &request, &error);
    }
    if (r < 0)
        fail_with_error(job, &error);
    else if (!atomic_load(&job->cancelled))
        answer_job(job);
    if (!job->files_posted)
        tc_result_free(tc_take(job->result));
}
