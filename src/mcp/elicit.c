/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the question to a person, through the client. It is asked by the worker that makes the call, sent
 * by the loop, and answered in the loop; the worker waits, no longer than the policy lets the person think.
 *
 * The attack: a model that approves itself. Only the client's answer to this very question counts, and
 * only `accept` with approve = true in it. What is shown: elicit_text.c.
 */
#include "mcp/job.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "core/approval.h"
#include "json/write.h"

enum { params_max = 8 * TCI_APPROVAL_SHOWN_MAX };

static _Thread_local struct tci_mcp_job *current;

void tci_mcp_elicit_for(struct tci_mcp_job *job)
{
    current = job;
}

/* ---- what is asked -------------------------------------------------------------------------- */

/* NULL: *ret_length says how long the question would be, or there is no memory. */
static char *write_params(const struct tci_mcp_job *job, const struct tc_approval *approval,
                          size_t *ret_length)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_APPROVAL_SHOWN_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(params_max);
    struct tci_json json = { .out = &out };

    *ret_length = tci_mcp_elicit_text(&text, approval);
    if (tci_buf_check(&text, NULL) < 0)
        return NULL;
    tci_json_object_begin(&json, NULL);
    if (job->request->session->version >= TCI_MCP_2025_11_25)
        tci_json_string(&json, "mode", "form");
    tci_json_string(&json, "message", text.data);
    tci_json_raw(&json, "requestedSchema",
                 "{\"type\":\"object\",\"properties\":{\"approve\":{\"type\":\"boolean\","
                 "\"title\":\"Run it?\"}},\"required\":[\"approve\"]}");
    tci_json_object_end(&json);
    return tci_buf_take(&out, NULL);
}

/* ---- in the loop's thread ------------------------------------------------------------------- */

static void set_answer(struct tci_mcp_job *job, int approval)
{
    (void)pthread_mutex_lock(&job->lock);
    job->approval = approval;
    job->is_answered = true;
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
}

static void answered(void *context, const struct json_t *result)
{
    struct tci_mcp_job *job = context;
    const json_t *action = json_object_get(result, "action");
    const json_t *content = json_object_get(result, "content");
    bool accepted = json_is_string(action) && strcmp(json_string_value(action), "accept") == 0 &&
                    json_is_true(json_object_get(content, "approve"));
    job->question_number = 0;
    if (tci_mcp_lane_answered(job->server, job, !accepted))
        set_answer(job, accepted ? 1 : 0);
}

static void go(struct tci_mcp_job *job)
{
    set_answer(job, 1);
}

static void ask(void *context)
{
    struct tci_mcp_job *job = context;
    /* A question that nobody answers must not keep others from their calls. */
    job->go = go;
    tci_mcp_lane_ask(job->server, job);
    if (!atomic_load(&job->cancelled))
        job->question_number = tci_mcp_ask(job->request->session, job->request->stream,
                                           "elicitation/create", job->question, answered, job);
    if (job->question_number == 0) { /* nobody could be asked */
        (void)tci_mcp_lane_answered(job->server, job, true);
        set_answer(job, -1);
    }
}

static void unask(void *context)
{
    struct tci_mcp_job *job = context;
    if (job->question_number)
        tci_mcp_unask(job->request->session, job->question_number);
    job->question_number = 0;
    (void)tci_mcp_lane_answered(job->server, job, true);
}

/* ---- in the worker -------------------------------------------------------------------------- */

/* Waits with the lock held, and lets the client know once a second that it waits. */
static void await_answer(struct tci_mcp_job *job, uint64_t until)
{
    uint64_t now;
    while (!job->is_answered && !atomic_load(&job->cancelled) && (now = tci_clock_us()) < until) {
        int next = tci_mcp_progress_timeout(job);
        uint64_t tick = next < 0 ? UINT64_MAX : now + (uint64_t)next * 1000;
        tci_mcp_job_wait(job, tick < until ? tick : until);
        (void)pthread_mutex_unlock(&job->lock);
        tci_mcp_progress_tick(job);
        (void)pthread_mutex_lock(&job->lock);
    }
}

int tci_mcp_approve(void *context, const struct tc_approval *approval)
{
    struct tci_mcp_job *job = current;
    uint64_t now = tci_clock_us(), until;
    size_t length = 0;
    bool is_open;
    int answer;

    if (!job || !job->can_elicit || job->question)
        return -1;
    job->question = write_params(job, approval, &length);
    if (!job->question)
        return length > TCI_APPROVAL_SHOWN_MAX ? tci_approval_too_long(length) : -1;
    /* A little longer: whoever asks us measures too, and says that nobody answered in time. */
    until = approval->timeout_ms < (UINT64_MAX - now) / 2000
                ? now + approval->timeout_ms * 1000 + 2000
                : UINT64_MAX;
    job->is_asking = true;
    job->ask = (struct tci_mcp_post){ .task = ask, .context = job };
    job->unask = (struct tci_mcp_post){ .task = unask, .context = job };
    tci_mcp_loop_post(job->loop, &job->ask);
    (void)pthread_mutex_lock(&job->lock);
    await_answer(job, until);
    is_open = !job->is_answered;
    answer = is_open ? 0 : job->approval;
    (void)pthread_mutex_unlock(&job->lock);
    job->is_asking = false;
    job->lines.asked = tci_clock_us() - now;
    if (is_open)
        tci_mcp_loop_post(job->loop, &job->unask);
    /* The owner may be changing the policy at this moment: whether that concerns this call is known when
     * it is loaded (core/call_approve.c looks). */
    return answer == 1 && !tci_mcp_policy_await(context) ? 0 : answer;
}
