/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the client is asked: by the server, where the policy lets it, and by us, for `approval`.
 * The attack: a server that answers our question in place of the person, or asks one that looks like
 * ours. Ids are ours alone, and never seen by the server; what the server may ask is a feature that the
 * policy names (wrap_check.c).
 */
#include "mcp/wrap_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "core/approval.h"

/* Of a worker, in its stack: it stays until the loop has let go of it. */
struct tci_wrap_question {
    struct tci_wrap *wrap;
    struct tci_wrap_pending *pending; /* the call that it is about */
    char *params;
    struct tci_mcp_post ask, unask;
    bool is_asked; /* the loop's: it is in the table */
    /* Under the lock. */
    bool is_answered, is_released;
    int answer;
};

static _Thread_local struct tci_wrap_pending *current; /* a worker's: the call that it decides */

static struct tci_wrap_asked *add(struct tci_wrap *wrap)
{
    struct tci_wrap_asked *asked;
    if (wrap->asked_count == TCI_WRAP_ASKED_MAX || wrap->is_gone || wrap->is_at_end)
        return NULL;
    asked = calloc(1, sizeof *asked);
    if (!asked)
        return NULL;
    asked->id = ++wrap->last_asked;
    asked->next = wrap->asked;
    wrap->asked = asked;
    wrap->asked_count++;
    return asked;
}

static void removed(struct tci_wrap *wrap, struct tci_wrap_asked **link)
{
    struct tci_wrap_asked *asked = *link;
    *link = asked->next;
    wrap->asked_count--;
    json_decref(asked->server_id);
    free(asked);
}

static void put_question(struct tci_wrap *wrap, const struct tci_wrap_asked *asked,
                         const char *method, const char *params)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    char id[32];
    (void)snprintf(id, sizeof id, "tc-%" PRIu64, asked->id);
    tci_mcp_write_request(&text, id, method, params);
    tci_wrap_client_put(wrap, &text);
}

static void take_back(struct tci_wrap *wrap, const struct tci_wrap_asked *asked)
{
    struct tci_buf text = TCI_BUF_INIT(4096);
    char params[64];
    (void)snprintf(params, sizeof params, "{\"requestId\":\"tc-%" PRIu64 "\"}", asked->id);
    tci_mcp_write_notification(&text, "notifications/cancelled", params);
    tci_wrap_client_put(wrap, &text);
}

/* ---- our own -------------------------------------------------------------------------------- */

static void set_answer(struct tci_wrap_question *question, int answer)
{
    struct tci_wrap *wrap = question->wrap;
    (void)pthread_mutex_lock(&wrap->lock);
    question->answer = answer;
    question->is_answered = true;
    (void)pthread_cond_broadcast(&wrap->answered);
    (void)pthread_mutex_unlock(&wrap->lock);
}

static void ask(void *context)
{
    struct tci_wrap_question *question = context;
    struct tci_wrap *wrap = question->wrap;
    bool is_wanted = wrap->can_elicit && !wrap->is_failed &&
                     !(question->pending && question->pending->is_cancelled);
    struct tci_wrap_asked *asked = is_wanted ? add(wrap) : NULL;
    if (!asked) {
        set_answer(question, -1);
        return;
    }
    asked->question = question;
    question->is_asked = true;
    put_question(wrap, asked, "elicitation/create", question->params);
}

static void unask(void *context)
{
    struct tci_wrap_question *question = context;
    struct tci_wrap *wrap = question->wrap;
    struct tci_wrap_asked **link = &wrap->asked;
    while (*link && (*link)->question != question)
        link = &(*link)->next;
    if (*link) {
        take_back(wrap, *link);
        removed(wrap, link);
    }
    (void)pthread_mutex_lock(&wrap->lock);
    question->is_released = true;
    (void)pthread_cond_broadcast(&wrap->answered);
    (void)pthread_mutex_unlock(&wrap->lock);
}

static void show_name(struct tci_buf *out, const json_t *name)
{
    tci_buf_string(out, "Tool of the MCP server: ");
    tci_wrap_show(out, json_string_value(name), json_string_length(name), TCI_WRAP_NAME_MAX);
    tci_buf_char(out, '\n');
}

static char *write_params(const struct tc_approval *approval, size_t *ret_length)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_LONG_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &out };

    /* First, whatever is in the arguments: in their JSON it stands behind them. */
    if (current && current->arguments)
        show_name(&text, json_object_get(current->arguments, "name"));
    *ret_length = text.length;
    *ret_length += tci_mcp_elicit_text(&text, approval);
    if (*ret_length > TCI_APPROVAL_SHOWN_MAX || tci_buf_check(&text, NULL) < 0)
        return NULL;
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "message", text.data);
    tci_json_raw(&json, "requestedSchema",
                 "{\"type\":\"object\",\"properties\":{\"approve\":{\"type\":\"boolean\","
                 "\"title\":\"Run it?\"}},\"required\":[\"approve\"]}");
    tci_json_object_end(&json);
    return tci_buf_take(&out, NULL);
}

static const uint64_t timeout_max = 86400000; /* a day */

/* In the worker, with the lock. */
static void await_answer(struct tci_wrap *wrap, const struct tci_wrap_question *question,
                         uint64_t timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > timeout_max)
        timeout_ms = timeout_max;
    /* A little longer: whoever asked us measures too, and says that nobody answered in time. */
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000 + 2000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (!question->is_answered && !wrap->is_closing)
        if (pthread_cond_timedwait(&wrap->answered, &wrap->lock, &until) == ETIMEDOUT)
            return;
}

void tci_wrap_ask_for(struct tci_wrap_pending *pending)
{
    current = pending;
}

int tci_wrap_approve(void *context, const struct tc_approval *approval)
{
    struct tci_wrap *wrap = context;
    size_t length = 0;
    struct tci_wrap_question question = { .wrap = wrap,
                                          .pending = current,
                                          .params = write_params(approval, &length) };
    int answer;

    if (!question.params)
        return length > TCI_APPROVAL_SHOWN_MAX ? tci_approval_too_long(length) : -1;
    question.ask = (struct tci_mcp_post){ .task = ask, .context = &question };
    question.unask = (struct tci_mcp_post){ .task = unask, .context = &question };
    tci_mcp_loop_post(wrap->loop, &question.ask);
    (void)pthread_mutex_lock(&wrap->lock);
    await_answer(wrap, &question, approval->timeout_ms);
    answer = question.is_answered ? question.answer : 0;
    (void)pthread_mutex_unlock(&wrap->lock);
    tci_mcp_loop_post(wrap->loop, &question.unask);
    (void)pthread_mutex_lock(&wrap->lock);
    while (!question.is_released)
        (void)pthread_cond_wait(&wrap->answered, &wrap->lock);
    (void)pthread_mutex_unlock(&wrap->lock);
    free(question.params);
    return answer;
}

/* In the loop. Whoever has answered is no longer in the table. */
void tci_wrap_unask(struct tci_wrap_pending *pending)
{
    struct tci_wrap *wrap = pending->wrap;
    for (struct tci_wrap_asked **link = &wrap->asked; *link; link = &(*link)->next)
        if ((*link)->question && (*link)->question->pending == pending) {
            struct tci_wrap_question *question = (*link)->question;
            take_back(wrap, *link);
            removed(wrap, link);
            set_answer(question, 0);
            return;
        }
}

/* ---- the server's --------------------------------------------------------------------------- */

/* What of a question is passed on. "_meta" and addresses are not: clients would follow them, unseen. Nor is
 * "includeContext": without it a client adds nothing; with it the server would have the model read what other
 * servers said, and answer it. */
static const struct {
    const char *method, *members[8];
} known_members[] = {
    { "sampling/createMessage",
      { "messages", "modelPreferences", "systemPrompt", "temperature", "maxTokens", "stopSequences",
        "metadata" } },
    { "elicitation/create", { "message", "requestedSchema" } },
};

static json_t *own_params(const struct tci_wrap *wrap, const char *method, const json_t *params)
{
    json_t *own = json_object();
    for (size_t i = 0; own && i < tci_array_size(known_members); i++)
        for (size_t j = 0; strcmp(known_members[i].method, method) == 0 && j < 8; j++) {
            const char *name = known_members[i].members[j];
            json_t *value = name ? json_object_get(params, name) : NULL;
            if (value)
                (void)json_object_set(own, name, value);
        }
    if (own && strcmp(method, "elicitation/create") == 0 && !tci_wrap_form(wrap, own)) {
        json_decref(own);
        return NULL;
    }
    return own;
}

bool tci_wrap_ask(struct tci_wrap *wrap, const struct json_t *server_id, const char *method,
                  const struct json_t *params)
{
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_wrap_asked *asked;
    json_t *own = own_params(wrap, method, params);
    if (own)
        tci_mcp_write_value(&written, own);
    json_decref(own);
    if (!own || tci_buf_check(&written, NULL) < 0)
        return false;
    asked = add(wrap);
    if (!asked)
        return false;
    asked->server_id = json_incref((json_t *)(uintptr_t)server_id);
    put_question(wrap, asked, method, written.data);
    return true;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void pass_on(struct tci_wrap *wrap, const struct tci_wrap_asked *asked,
                    const struct tci_mcp_message *answer)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    const char *message = json_string_value(json_object_get(answer->failure, "message"));
    const json_t *code = json_object_get(answer->failure, "code");

    if (answer->result)
        tci_mcp_write_value(&written, answer->result);
    if (answer->result && tci_buf_check(&written, NULL) == 0)
        tci_mcp_write_result(&text, asked->server_id, written.data);
    else
        tci_mcp_write_error(&text, asked->server_id, tci_wrap_code(code),
                            message ? message : "the client refused", NULL);
    tci_wrap_server_put(wrap, &text);
}

void tci_wrap_asked_answer(struct tci_wrap *wrap, const struct tci_mcp_message *answer)
{
    struct tci_wrap_asked **link = &wrap->asked;
    char id[32];
    for (; *link; link = &(*link)->next) {
        (void)snprintf(id, sizeof id, "tc-%" PRIu64, (*link)->id);
        if (json_is_string(answer->id) && strcmp(id, json_string_value(answer->id)) == 0)
            break;
    }
    if (!*link)
        return; /* taken back, or never asked */
    if ((*link)->question) {
        const json_t *action = json_object_get(answer->result, "action");
        const json_t *content = json_object_get(answer->result, "content");
        bool yes = json_is_string(action) && strcmp(json_string_value(action), "accept") == 0 &&
                   json_is_true(json_object_get(content, "approve"));
        set_answer((*link)->question, yes ? 1 : 0);
    } else {
        pass_on(wrap, *link, answer);
    }
    removed(wrap, link);
}

void tci_wrap_asked_cancel(struct tci_wrap *wrap, const struct json_t *server_id)
{
    for (struct tci_wrap_asked **link = &wrap->asked; *link; link = &(*link)->next)
        if ((*link)->server_id && json_equal((*link)->server_id, server_id)) {
            take_back(wrap, *link);
            removed(wrap, link);
            return;
        }
}

void tci_wrap_asked_end(struct tci_wrap *wrap)
{
    const struct tci_mcp_message nobody = { 0 };
    while (wrap->asked) {
        if (wrap->asked->question)
            set_answer(wrap->asked->question, -1);
        else
            pass_on(wrap, wrap->asked, &nobody);
        removed(wrap, &wrap->asked);
    }
}

void tci_wrap_asked_free(struct tci_wrap *wrap)
{
    (void)pthread_mutex_lock(&wrap->lock);
    wrap->is_closing = true;
    (void)pthread_cond_broadcast(&wrap->answered);
    (void)pthread_mutex_unlock(&wrap->lock);
    while (wrap->asked)
        removed(wrap, &wrap->asked);
}
