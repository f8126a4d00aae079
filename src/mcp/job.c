/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the life of a job, as the loop sees it: it is made, waits in its lane, is handed to a worker, answered
 * and freed. What the worker does is its own affair: a call (call_job.c), a resource (resource_read.c), or another
 * method that reads what the journal has (tools/list: which grants there are).
 * Invariants: a job is freed by the loop, after the last of its posts; whatever ends a session, its
 * calls are killed first and their workers wake, so that nobody waits for a loop that waits for them.
 */
#include "mcp/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include "base/clock.h"
#include "base/fd.h"
#include "mcp/hide.h"
#include "mcp/resources.h"

enum { complaint_us = 60 * 1000 * 1000 }; /* between two */

/* ---- a job ---------------------------------------------------------------------------------- */

static void free_job(struct tci_mcp_job *job)
{
    tci_mcp_reading_free(job->reading);
    if (job->failure)
        free(job->failure->data_json);
    free(job->failure);
    free(job->complaint);
    tci_buf_free(&job->answer);
    if (job->share)
        tci_mcp_budget_keep(&job->server->budget, job, 0);
    tc_result_free(job->result);
    free(job->uris);
    free(job->question);
    tci_mcp_lines_free(&job->lines);
    (void)pthread_cond_destroy(&job->changed);
    (void)pthread_mutex_destroy(&job->lock);
    tci_close(job->wake);
    free(job->out_directory);
    free(job->arguments);
    free(job->tool);
    if (job->engine)
        tci_mcp_engine_release(job->engine);
    free(job);
}

static int make_condition(pthread_cond_t *ret)
{
    pthread_condattr_t attributes;
    int r = pthread_condattr_init(&attributes);
    if (r != 0)
        return -1;
    r = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (r == 0)
        r = pthread_cond_init(ret, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return r == 0 ? 0 : -1;
}

static struct tci_mcp_job *new_job(struct tc_error *reterr)
{
    struct tci_mcp_job *job = calloc(1, sizeof *job);
    if (!job) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    job->answer.maximum = TCI_MCP_ANSWER_MAX;
    job->wake = -1;
    if (make_condition(&job->changed) < 0 || pthread_mutex_init(&job->lock, NULL) != 0) {
        free(job);
        tci_error_no_memory(reterr);
        return NULL;
    }
    return job;
}

/* ---- its end -------------------------------------------------------------------------------- */

/* Not for each job: a model could fill the log. */
static void complain(struct tci_mcp_server *server, const char *complaint)
{
    const uint64_t now = tci_clock_us();
    if (server->complained_us && now - server->complained_us < complaint_us)
        return;
    server->complained_us = now;
    tci_mcp_say(server, "%s", complaint);
}

/* Answers, and frees it. */
static void end_job(struct tci_mcp_job *job)
{
    struct tci_mcp_request *request = job->request;
    struct tci_mcp_failure failure = { .code = 0 };

    tci_mcp_lines_send(job);
    if (job->complaint)
        complain(job->server, job->complaint);
    if (job->out_directory) /* what is in it and no resource of the session is not needed any more */
        tci_mcp_files_done(request->session, job->out_directory);
    if (!job->is_reading)
        tci_mcp_resource_updated(request->session, "toolcage://session/journal");
    if (job->listed.is_read && job->answer.length)
        request->session->listed = job->listed;
    request->cancel = NULL;
    if (job->failure) {
        tci_mcp_fail(request, job->failure);
    } else if (job->answer.length) {
        tci_mcp_answer_message(request, &job->answer);
    } else { /* cancelled, and then nothing is sent; or without memory for more than this */
        (void)tci_mcp_failed(&failure, TCI_MCP_INTERNAL, "there is no answer: %s",
                             request->cancelled ? "it was cancelled" : "out of memory");
        tci_mcp_fail(request, &failure);
    }
    free_job(job);
}

/* The client does not want it any more, or is gone. In the loop's thread, before the job is done. */
static void cancel_job(void *context)
{
    struct tci_mcp_job *job = context;
    if (tci_mcp_lane_leave(job->server, job)) {
        end_job(job);
        return;
    }
    (void)pthread_mutex_lock(&job->lock);
    atomic_store(&job->cancelled, true);
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    (void)eventfd_write(job->wake, 1); /* cannot be full: it is written here only, and once */
}

/* No worker could be had for it. */
static void fail_job(struct tci_mcp_job *job, const struct tc_error *error)
{
    job->failure = calloc(1, sizeof *job->failure);
    if (job->failure)
        (void)tci_mcp_failed(job->failure, TCI_MCP_INTERNAL, "%s", error->message);
    end_job(job);
}

static void finish_job(void *context)
{
    struct tci_mcp_job *job = context;
    struct tci_mcp_server *server = job->server;
    struct tci_mcp_lane *lane = job->lane;
    end_job(job);
    tci_mcp_lane_done(server, lane);
}

/* In a worker. */
static void work(void *context)
{
    struct tci_mcp_job *job = context;
    if (!atomic_load(&job->cancelled))
        job->run(job);
    job->done = (struct tci_mcp_post){ .task = finish_job, .context = job };
    tci_mcp_loop_post(job->loop, &job->done);
}

/* ---- methods that read ------------------------------------------------------------------------ */

/* In a worker. It does not wait for a policy that is being loaded: what is read is of one that is in force, and
 * clients are told when there is another. */
static void run_reader(struct tci_mcp_job *job)
{
    tc_cleanup(tci_buf_free) struct tci_buf result = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_mcp_failure *failure = calloc(1, sizeof *failure);

    if (!failure)
        return; /* the loop says that there was no memory */
    job->engine = tci_mcp_engine_hold(job->server);
    if (job->read(job, &result, failure) == TCI_MCP_DONE) {
        if (tci_buf_check(&result, NULL) == 0) {
            tci_mcp_write_result(&job->answer, job->request->id, result.data);
            free(failure);
            return;
        }
        (void)tci_mcp_failed(failure, TCI_MCP_INTERNAL,
                             "the answer is larger than a message may be, or there is no memory "
                             "for it");
    }
    if (job->request->session->agent && tci_mcp_is_of_journal(failure->message))
        job->complaint = strdup(failure->message);
    tci_mcp_hide_text(NULL, job->request->session->agent, failure->message,
                      sizeof failure->message);
    job->failure = failure;
}

enum tci_mcp_outcome tci_mcp_job_read(struct tci_mcp_request *request, tci_mcp_reader *read,
                                      const char *tool, const char *arguments,
                                      struct tci_mcp_failure *failure)
{
    struct tci_mcp_work what = { .run = run_reader,
                                 .read = read,
                                 .is_reading = true,
                                 .tool = tool ? strdup(tool) : NULL,
                                 .arguments = arguments ? strdup(arguments) : NULL };
    if ((tool && !what.tool) || (arguments && !what.arguments)) {
        free(what.tool);
        free(what.arguments);
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "out of memory");
    }
    return tci_mcp_job_begin(request, &what, failure);
}

/* ---- its beginning -------------------------------------------------------------------------- */

static void fill_job(struct tci_mcp_job *job, struct tci_mcp_request *request,
                     const struct tci_mcp_work *what)
{
    struct tci_mcp_session *session = request->session;

    job->request = request;
    job->server = session->server;
    job->loop = session->server->loop;
    job->can_elicit = session->can_elicit && session->version >= TCI_MCP_2025_06_18;
    job->wants_progress = request->progress_token != NULL;
    job->failed = fail_job;
    job->run = what->run;
    job->tool = what->tool;
    job->arguments = what->arguments;
    job->read = what->read;
    job->reading = what->reading;
    job->is_reading = what->is_reading;
    job->work = (struct tci_mcp_post){ .task = work, .context = job };
}

enum tci_mcp_outcome tci_mcp_job_begin(struct tci_mcp_request *request,
                                       const struct tci_mcp_work *what,
                                       struct tci_mcp_failure *failure)
{
    struct tc_error error = { 0 };
    struct tci_mcp_job *job = new_job(&error);

    if (!job) {
        free(what->tool);
        free(what->arguments);
        tci_mcp_reading_free(what->reading);
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "%s", error.message);
    }
    fill_job(job, request, what);
    if (tci_mcp_lane_add(request->session, job, &error) < 0) {
        free_job(job);
        return tci_mcp_failed(failure,
                              error.code == TC_ERROR_TOO_LARGE ? TCI_MCP_BUSY : TCI_MCP_INTERNAL,
                              "%s", error.message);
    }
    request->cancel = cancel_job;
    request->context = job;
    return TCI_MCP_LATER;
}
