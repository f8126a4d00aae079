/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the client's side of the relay. What it asks is answered here, relayed (wrap_check.c says what
 * may be), or refused; nothing of it reaches the server as it came.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "mcp/hide.h"

void tci_wrap_client_put(struct tci_wrap *wrap, struct tci_buf *text)
{
    if (tci_buf_check(text, NULL) < 0)
        tci_wrap_fail(wrap, NULL, "there is not enough memory for a message");
    else if (wrap->client && !wrap->is_gone)
        tci_mcp_channel_send(wrap->client, text->data, text->length);
    tci_buf_free(text);
    tci_wrap_server_flow(wrap);
}

void tci_wrap_client_error(struct tci_wrap *wrap, const struct json_t *id, int code,
                           const char *message, const char *fix)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf data = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);
    struct tci_json json = { .out = &data };
    struct tc_error said = { 0 };

    (void)snprintf(said.message, sizeof said.message, "%s", message);
    (void)snprintf(said.remedy, sizeof said.remedy, "%s", fix ? fix : "");
    tci_mcp_hide_text(wrap->tool, wrap->options->agent, said.message, sizeof said.message);
    tci_mcp_hide_text(wrap->tool, wrap->options->agent, said.remedy, sizeof said.remedy);
    if (said.remedy[0]) {
        tci_json_object_begin(&json, NULL);
        tci_json_string(&json, "reason", said.message);
        tci_json_string(&json, "fix", said.remedy);
        tci_json_object_end(&json);
    }
    tci_mcp_write_error(&text, id, code, said.message,
                        data.length && tci_buf_check(&data, NULL) == 0 ? data.data : NULL);
    tci_wrap_client_answer(wrap, id, &text);
}

static void answer(struct tci_wrap *wrap, const json_t *id, struct tci_buf *result)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    if (tci_buf_check(result, NULL) == 0)
        tci_mcp_write_result(&text, id, result->data);
    else
        text.no_memory = true;
    tci_wrap_client_answer(wrap, id, &text);
}

/* Too much waits for the server: the client waits, too. */
void tci_wrap_client_flow(struct tci_wrap *wrap)
{
    if (wrap->client)
        tci_mcp_channel_pause(wrap->client,
                              wrap->to_server &&
                                  tci_mcp_channel_waiting(wrap->to_server) > TCI_WRAP_QUEUE_MAX);
}

/* ---- initialize and lists ------------------------------------------------------------------- */

static void put_value(struct tci_json *json, const char *key, const json_t *value)
{
    tci_json_raw(json, key, "");
    tci_mcp_write_value(json->out, value);
}

/* Clients show these texts to people, next to the names of other servers. */
static void put_info(struct tci_json *json, json_t *info)
{
    tci_json_object_begin(json, "serverInfo");
    for (void *at = json_object_iter(info); at; at = json_object_iter_next(info, at)) {
        const json_t *value = json_object_iter_value(at);
        tc_cleanup(tci_buf_free) struct tci_buf plain = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);
        tci_wrap_plain(&plain, json_string_value(value), json_string_length(value));
        tci_json_string(json, json_object_iter_key(at),
                        plain.data && tci_buf_check(&plain, NULL) == 0 ? plain.data : "");
    }
    tci_json_object_end(json);
}

static void answer_initialize(struct tci_wrap *wrap)
{
    tc_cleanup(tci_buf_free) struct tci_buf result = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &result };
    const struct tci_wrap_list *list = &wrap->list;

    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "protocolVersion", list->version);
    put_value(&json, "capabilities", list->capabilities);
    put_info(&json, list->server_info);
    if (list->instructions)
        tci_json_string(&json, "instructions", list->instructions);
    tci_json_object_end(&json);
    answer(wrap, wrap->initialize_id, &result);
    json_decref(tc_take(wrap->initialize_id));
    wrap->state = TCI_WRAP_READY;
}

/* A new version that says the same is no attack, but somebody may want to know. */
static void say_version(struct tci_wrap *wrap)
{
    const char *was = json_string_value(json_object_get(wrap->approved.server_info, "version"));
    const char *is = json_string_value(json_object_get(wrap->list.server_info, "version"));
    char quoted[2][TCI_QUOTE_MAX];
    if (was && is && strcmp(was, is) != 0)
        tci_wrap_say(wrap, "%s: the server has version %s; %s was pinned", wrap->tool->name,
                     tci_quote(is, strlen(is), quoted[0]), tci_quote(was, strlen(was), quoted[1]));
}

/* The list is there: at the start, or once more. */
void tci_wrap_client_listed(struct tci_wrap *wrap)
{
    /* What the server says of itself is read by a model as soon as the client has it: it must be what was
     * approved before that. The tools may still change until somebody looks at them. */
    if (wrap->initialize_id && wrap->has_pin && strcmp(wrap->approved.said, wrap->list.said) != 0) {
        (void)tci_wrap_list_show(wrap); /* who waits is told with the others, also what is held */
        return;
    }
    if (wrap->initialize_id && wrap->has_pin)
        say_version(wrap);
    if (wrap->initialize_id)
        answer_initialize(wrap);
    tci_wrap_held_release(wrap);
}

static void initialize(struct tci_wrap *wrap, const json_t *id, const json_t *params)
{
    const json_t *can = json_object_get(params, "capabilities");
    if (wrap->state != TCI_WRAP_NEW) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INVALID_REQUEST, "initialize came twice", NULL);
        return;
    }
    wrap->state = TCI_WRAP_STARTING;
    wrap->initialize_id = json_incref((json_t *)(uintptr_t)id);
    wrap->can_elicit = json_is_object(json_object_get(can, "elicitation"));
    wrap->can_sample = json_is_object(json_object_get(can, "sampling"));
    wrap->has_roots = json_is_object(json_object_get(can, "roots"));
    if (wrap->options->mode == TC_MODE_REPLAY)
        tci_wrap_client_listed(wrap);
    else
        tci_wrap_handshake(wrap, params);
}

static void list_tools(struct tci_wrap *wrap, const json_t *id)
{
    tc_cleanup(tci_buf_free) struct tci_buf result = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &result };
    tci_json_object_begin(&json, NULL);
    tci_json_array_begin(&json, "tools");
    for (size_t i = 0; i < wrap->list.count; i++)
        if (tci_wrap_is_visible(wrap, wrap->list.tools[i].name))
            put_value(&json, NULL, wrap->list.tools[i].definition);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    answer(wrap, id, &result);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* `own`: the params that the server gets. */
static void relay_own(struct tci_wrap *wrap, const json_t *id, const char *method,
                      const json_t *params, const json_t *own)
{
    struct tci_wrap_pending *pending;
    /* Some servers do things when a resource is read: it is no way around the limits for calls. */
    if (wrap->plain_count >= TCI_WRAP_REQUESTS_MAX ||
        (tci_wrap_is_work(method) && tci_wrap_busy(wrap) >= wrap->rules->calls)) {
        tci_wrap_client_error(wrap, id, TCI_MCP_BUSY, "too many requests are under way",
                              "wait until one is over, or raise \"mcp.calls\" in the policy");
        return;
    }
    if (wrap->rules->rate != TCI_UNLIMITED && !tci_wrap_bucket_take(&wrap->calls_a_minute)) {
        tci_wrap_client_error(wrap, id, TCI_MCP_BUSY,
                              "there were too many requests within a minute",
                              "wait a while, or raise \"mcp.rate\" in the policy");
        return;
    }
    pending = tci_wrap_pending_new(wrap, TCI_WRAP_PLAIN, id, method);
    if (!pending) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, "not enough memory", NULL);
        return;
    }
    pending->progress_token = tci_wrap_progress_token(params);
    if (!tci_wrap_read_begin(pending, own)) {
        tci_wrap_pending_free(pending);
        tci_wrap_check_end(wrap);
        return;
    }
    tci_wrap_send(pending, json_object_size(own) ? own : NULL,
                  pending->call ? tci_relayed_timeout(pending->call)
                                : wrap->tool->settings.timeout);
}

static void relay(struct tci_wrap *wrap, const json_t *id, const char *method, const json_t *params)
{
    char problem[160];
    json_t *own = tci_wrap_params(method, params, problem);
    if (own)
        relay_own(wrap, id, method, params, own);
    else
        tci_wrap_client_error(wrap, id, TCI_MCP_INVALID_PARAMS, problem, NULL);
    json_decref(own);
}

static void use_tools(struct tci_wrap *wrap, const json_t *id, const char *method,
                      const json_t *params)
{
    /* What it says at its start is not over; or the client is told why, with all the others. */
    if ((!wrap->is_shown && wrap->is_listing) || !tci_wrap_list_show(wrap)) {
        tci_wrap_hold(wrap, id, method, params);
        return;
    }
    if (strcmp(method, "tools/list") == 0)
        list_tools(wrap, id);
    else
        tci_wrap_call_begin(wrap, id, params);
}

void tci_wrap_client_request(struct tci_wrap *wrap, const struct json_t *id, const char *method,
                             const struct json_t *params)
{
    bool tools = strcmp(method, "tools/list") == 0 || strcmp(method, "tools/call") == 0;
    const char *known = tci_wrap_method(method);

    if (wrap->is_failed) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, wrap->error.message, wrap->error.remedy);
        wrap->is_told = true;
        tci_wrap_check_end(wrap);
    } else if (strcmp(method, "ping") == 0) {
        struct tci_buf text = TCI_BUF_INIT(4096);
        tci_mcp_write_result(&text, id, "{}");
        tci_wrap_client_answer(wrap, id, &text);
    } else if (strcmp(method, "initialize") == 0) {
        initialize(wrap, id, params);
    } else if (!tools && !(known && tci_wrap_may_pass(wrap, TCI_WRAP_CLIENT, true, method) &&
                           wrap->options->mode != TC_MODE_REPLAY)) {
        tci_wrap_client_error(wrap, id, TCI_MCP_NO_METHOD, "there is no such method", NULL);
    } else if (wrap->state == TCI_WRAP_NEW) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INVALID_REQUEST, "initialize comes first", NULL);
    } else if (wrap->state == TCI_WRAP_STARTING) { /* a client that does not wait for the answer */
        tci_wrap_hold(wrap, id, method, params);
    } else if (tci_wrap_pending_of_client(wrap, id)) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INVALID_REQUEST,
                              "a request with this id is under way", NULL);
    } else if (tools) {
        use_tools(wrap, id, method, params);
    } else {
        relay(wrap, id, known, params);
    }
}

/* ---- notifications -------------------------------------------------------------------------- */

static void cancel(struct tci_wrap *wrap, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");
    struct tci_wrap_pending *pending = id ? tci_wrap_pending_of_client(wrap, id) : NULL;

    tci_wrap_batch_drop(wrap, pending ? id : NULL);
    if (!pending) {
        tci_wrap_held_cancel(wrap, id);
        return;
    }
    if (pending->is_deciding) {
        pending->is_cancelled = true;
        tci_wrap_unask(pending);
        return;
    }
    if (pending->kind == TCI_WRAP_CALL)
        tci_wrap_call_end(pending,
                          &(struct tci_relayed_end){ .verdict = TC_VERDICT_ERROR,
                                                     .reason = "the client cancelled the call",
                                                     .exit_code = -1 },
                          false, false);
    else
        (void)tci_wrap_read_end(
            pending,
            &(struct tci_relayed_end){ .verdict = TC_VERDICT_ERROR,
                                       .reason = "the client cancelled the request",
                                       .exit_code = -1 },
            false);
    tci_wrap_abandon(pending, "cancelled");
    tci_wrap_check_end(wrap);
}

static void take_notification(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    if (strcmp(message->method, "notifications/cancelled") == 0)
        cancel(wrap, message->params);
    else if (wrap->state == TCI_WRAP_READY && !wrap->is_failed &&
             tci_wrap_may_pass(wrap, TCI_WRAP_CLIENT, false, message->method) &&
             tci_wrap_is_granted(wrap, message->method))
        tci_wrap_notify_server(wrap, message->method, NULL);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void take_message(struct tci_wrap *wrap, const struct tci_mcp_message *message);

/* Only one version of the protocol has them. */
static void take_batch(struct tci_wrap *wrap, const json_t *members)
{
    struct tci_mcp_message member;
    if (!wrap->has_list || strcmp(wrap->list.version, "2025-03-26") != 0 || wrap->batch_read) {
        tci_wrap_client_error(wrap, NULL, TCI_MCP_INVALID_REQUEST,
                              "this version of the protocol has no batches", NULL);
        return;
    }
    if (tci_wrap_batch_begin(wrap, members) < 0) {
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
        return;
    }
    for (size_t i = 0; i < json_array_size(members); i++) {
        if (tci_mcp_read_value(json_array_get(members, i), &member, NULL) == 0)
            take_message(wrap, &member);
        tci_mcp_message_free(&member);
    }
    tci_wrap_batch_end(wrap);
}

static void take_message(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    switch (message->kind) {
    case TCI_MCP_REQUEST:
        tci_wrap_client_request(wrap, message->id, message->method, message->params);
        return;
    case TCI_MCP_NOTIFICATION:
        take_notification(wrap, message);
        return;
    case TCI_MCP_RESPONSE:
        tci_wrap_asked_answer(wrap, message);
        return;
    case TCI_MCP_BATCH:
        take_batch(wrap, message->document);
        return;
    case TCI_MCP_INVALID:
        tci_wrap_client_error(wrap, message->id, message->code, message->problem, NULL);
        return;
    }
}

static void take_line(void *context, const char *text, size_t length)
{
    struct tci_wrap *wrap = context;
    struct tci_mcp_message message;
    struct tc_error error = { 0 };
    if (tci_mcp_read(text, length, &message, &error) < 0)
        tci_wrap_fail(wrap, NULL, "%s", error.message);
    else
        take_message(wrap, &message);
    tci_mcp_message_free(&message);
    tci_mcp_loop_used(wrap->loop, length);
    tci_wrap_client_flow(wrap);
}

static void too_long(void *context)
{
    tci_wrap_client_error(context, NULL, TCI_MCP_INVALID_REQUEST, "the message is too large", NULL);
}

static void at_end(void *context, int error)
{
    struct tci_wrap *wrap = context;
    (void)error;
    wrap->is_at_end = true;
    tci_wrap_asked_end(wrap);
    tci_wrap_check_end(wrap);
}

/* Nobody reads: what is under way has no use any more. */
static void broken(void *context, int error)
{
    struct tci_wrap *wrap = context;
    (void)error;
    wrap->is_gone = wrap->is_at_end = true;
    tci_wrap_asked_end(wrap);
    tci_wrap_pending_end_all(wrap);
    tci_wrap_check_end(wrap);
}

static void flushed(void *context)
{
    tci_wrap_server_flow(context);
    tci_wrap_check_end(context);
}

int tci_wrap_client_open(struct tci_wrap *wrap, int in, int out, struct tc_error *reterr)
{
    static const struct tci_mcp_channel_calls calls = {
        .line = take_line,
        .too_long = too_long,
        .ended = at_end,
        .broken = broken,
        .flushed = flushed,
    };
    return tci_mcp_channel_new(wrap->loop, in, out, TCI_MCP_MESSAGE_MAX, &calls, wrap,
                               &wrap->client, reterr);
}
