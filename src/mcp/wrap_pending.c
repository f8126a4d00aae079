/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the server was asked and has not answered. It gets ids of ours and never sees those of the
 * client: an answer to something that nobody asked finds nothing here, and neither does a second one.
 */
#include "mcp/wrap_internal.h"

#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "policy/units.h"

static size_t *counter_of(struct tci_wrap *wrap, enum tci_wrap_kind kind)
{
    return kind == TCI_WRAP_CALL        ? &wrap->call_count
           : kind == TCI_WRAP_PLAIN     ? &wrap->plain_count
           : kind == TCI_WRAP_ABANDONED ? &wrap->abandoned_count
                                        : NULL;
}

static void change_kind(struct tci_wrap_pending *pending, enum tci_wrap_kind kind)
{
    size_t *from = counter_of(pending->wrap, pending->kind);
    size_t *to = counter_of(pending->wrap, kind);
    if (from)
        --*from;
    if (to)
        ++*to;
    pending->kind = kind;
}

struct tci_wrap_pending *tci_wrap_pending_new(struct tci_wrap *wrap, enum tci_wrap_kind kind,
                                              const struct json_t *client_id, const char *method)
{
    struct tci_wrap_pending *pending = calloc(1, sizeof *pending);
    size_t *count = counter_of(wrap, kind);
    if (!pending)
        return NULL;
    pending->wrap = wrap;
    pending->kind = kind;
    pending->client_id = json_incref((json_t *)(uintptr_t)client_id);
    pending->method = method;
    pending->next = wrap->pending;
    wrap->pending = pending;
    if (count)
        ++*count;
    return pending;
}

/* They may be large, and somebody may cancel many calls: what nobody needs any more is not kept. */
static void drop_arguments(struct tci_wrap_pending *pending)
{
    json_decref(tc_take(pending->arguments));
    free(tc_take(pending->arguments_text));
}

void tci_wrap_pending_free(struct tci_wrap_pending *pending)
{
    struct tci_wrap *wrap = pending->wrap;
    struct tci_wrap_pending **link = &wrap->pending;
    size_t *count = counter_of(wrap, pending->kind);

    while (*link && *link != pending)
        link = &(*link)->next;
    if (*link)
        *link = pending->next;
    if (count)
        --*count;
    if (pending->timer)
        event_free(pending->timer);
    json_decref(pending->client_id);
    json_decref(pending->progress_token);
    drop_arguments(pending);
    free(pending);
}

struct tci_wrap_pending *tci_wrap_pending_of_client(const struct tci_wrap *wrap,
                                                    const struct json_t *id)
{
    struct tci_wrap_pending *pending = wrap->pending;
    while (pending && !(pending->client_id && pending->kind <= TCI_WRAP_CALL &&
                        json_equal(pending->client_id, id)))
        pending = pending->next;
    return pending;
}

struct tci_wrap_pending *tci_wrap_pending_of_server(const struct tci_wrap *wrap,
                                                    const struct json_t *id)
{
    struct tci_wrap_pending *pending = wrap->pending;
    char text[24];
    for (; pending; pending = pending->next) {
        (void)snprintf(text, sizeof text, "tc-%" PRIu64, pending->id);
        if (pending->id && json_is_string(id) && strcmp(text, json_string_value(id)) == 0)
            return pending;
    }
    return NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

void tci_wrap_notify_server(struct tci_wrap *wrap, const char *method, const char *params_json)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tci_mcp_write_notification(&text, method, params_json);
    tci_wrap_server_put(wrap, &text);
}

/* The server hangs if it does not answer a ping either: a call that takes long is not that. */
static void check_alive(struct tci_wrap *wrap)
{
    struct tci_wrap_pending *ping;
    for (ping = wrap->pending; ping; ping = ping->next)
        if (ping->kind == TCI_WRAP_PING)
            return;
    ping = tci_wrap_pending_new(wrap, TCI_WRAP_PING, NULL, "ping");
    if (ping)
        tci_wrap_send(ping, NULL,
                      wrap->tool->settings.timeout < 5000 ? wrap->tool->settings.timeout : 5000);
}

/* A client that cancels often must not fill the memory, nor have the server stopped. New ones are in front. */
static void forget_oldest(struct tci_wrap *wrap)
{
    struct tci_wrap_pending *oldest = NULL;
    for (struct tci_wrap_pending *pending = wrap->pending; pending; pending = pending->next)
        if (pending->kind == TCI_WRAP_ABANDONED)
            oldest = pending;
    if (!oldest)
        return;
    if (oldest->id > wrap->forgotten_id)
        wrap->forgotten_id = oldest->id;
    tci_wrap_pending_free(oldest);
}

void tci_wrap_abandon(struct tci_wrap_pending *pending, const char *reason)
{
    struct tci_wrap *wrap = pending->wrap;
    char params[128];

    (void)snprintf(params, sizeof params, "{\"requestId\":\"tc-%" PRIu64 "\",\"reason\":\"%s\"}",
                   pending->id, reason);
    tci_wrap_notify_server(wrap, "notifications/cancelled", params);
    if (tci_wrap_is_work(pending->method))
        pending->abandoned_us = tci_clock_us();
    change_kind(pending, TCI_WRAP_ABANDONED);
    if (pending->timer)
        event_free(tc_take(pending->timer));
    json_decref(tc_take(pending->client_id));
    json_decref(tc_take(pending->progress_token));
    drop_arguments(pending);
    if (wrap->abandoned_count > TCI_WRAP_ABANDONED_MAX)
        forget_oldest(wrap);
}

/* A server that does not answer what is cancelled does right: that counts no longer than a moment. */
size_t tci_wrap_busy(const struct tci_wrap *wrap)
{
    uint64_t now = tci_clock_us();
    size_t count = 0;
    for (const struct tci_wrap_pending *pending = wrap->pending; pending; pending = pending->next)
        count += pending->kind == TCI_WRAP_ABANDONED
                     ? pending->abandoned_us && now - pending->abandoned_us < TCI_WRAP_ABANDONED_US
                     : tci_wrap_is_work(pending->method);
    return count;
}

static void timed_out(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap_pending *pending = context;
    struct tci_wrap *wrap = pending->wrap;
    uint64_t ms = pending->call ? tci_relayed_timeout(pending->call) : wrap->tool->settings.timeout;
    char limit[TCI_UNIT_TEXT_MAX], reason[160];

    (void)fd, (void)what;
    if (wrap->is_failed)
        return; /* it is told why with all the others */
    (void)tci_duration_format(ms, limit);
    (void)snprintf(reason, sizeof reason, "the server did not answer %s within %s", pending->method,
                   limit);
    if (pending->kind == TCI_WRAP_PING) {
        tci_wrap_fail(wrap, "start it again; if it happens again, look at what it waits for",
                      "the server hangs: it answers neither a call nor a ping");
    } else if (pending->kind > TCI_WRAP_CALL) {
        tci_wrap_fail(wrap, "see what the server says on stderr, or raise \"timeout\"", "%s",
                      reason);
    } else {
        if (pending->kind == TCI_WRAP_CALL)
            tci_wrap_call_end(pending,
                              &(struct tci_relayed_end){ .verdict = TC_VERDICT_TIMEOUT,
                                                         .reason = reason,
                                                         .fix = "ask for less, or raise "
                                                                "\"timeout\" in the policy",
                                                         .exit_code = -1 },
                              true, false);
        else if (tci_wrap_read_end(pending,
                                   &(struct tci_relayed_end){ .verdict = TC_VERDICT_TIMEOUT,
                                                              .reason = reason,
                                                              .exit_code = -1 },
                                   true))
            tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_BUSY, reason,
                                  "raise \"timeout\" in the policy");
        tci_wrap_abandon(pending, "timeout");
        check_alive(wrap);
        tci_wrap_check_end(wrap);
    }
}

static const double whole_max = 9007199254740992.0; /* beyond it numbers are not exact */

struct json_t *tci_wrap_progress_token(const struct json_t *params)
{
    json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");
    double number = json_number_value(token);
    bool is_good = json_is_string(token) ? json_string_length(token) <= TCI_MCP_ID_MAX
                                         : json_is_number(token) && fabs(number) < whole_max &&
                                               trunc(number) == number;
    return is_good ? json_incref(token) : NULL;
}

/* Without _meta, in which clients and servers talk past us. */
static json_t *own_params(const struct tci_wrap_pending *pending, const json_t *params)
{
    json_t *own = params ? json_copy((json_t *)(uintptr_t)params) : NULL;
    if (own)
        (void)json_object_del(own, "_meta");
    if (!pending->progress_token)
        return own;
    if (!own)
        own = json_object();
    if (json_object_set_new(
            own, "_meta",
            json_pack("{s:o}", "progressToken", json_sprintf("tc-%" PRIu64, pending->id))) < 0) {
        json_decref(own);
        return NULL;
    }
    return own;
}

void tci_wrap_send(struct tci_wrap_pending *pending, const struct json_t *params,
                   uint64_t timeout_ms)
{
    struct tci_wrap *wrap = pending->wrap;
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    char id[24];
    json_t *own;

    pending->id = ++wrap->last_id;
    own = own_params(pending, params);
    if (own)
        tci_mcp_write_value(&written, own);
    json_decref(own);
    if (((params || pending->progress_token) && !own) || tci_buf_check(&written, NULL) < 0 ||
        (timeout_ms != TCI_UNLIMITED &&
         tci_wrap_timer(wrap, &pending->timer, timeout_ms, timed_out, pending) < 0)) {
        tci_wrap_fail(wrap, NULL, "there is not enough memory for a message");
        return;
    }
    (void)snprintf(id, sizeof id, "tc-%" PRIu64, pending->id);
    tci_mcp_write_request(&text, id, pending->method, own ? written.data : NULL);
    drop_arguments(pending);
    tci_wrap_server_put(wrap, &text);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* In the journal before anybody sees it. */
static bool record_answer(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer,
                          const struct tci_buf *result)
{
    tc_cleanup(tci_buf_free) struct tci_buf failure = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_relayed_end end = { .verdict = TC_VERDICT_OK,
                                   .output = result->data,
                                   .output_length = result->length };
    if (!answer->result) {
        tci_mcp_write_value(&failure, answer->failure);
        end = (struct tci_relayed_end){ .verdict = TC_VERDICT_FAILED,
                                        .reason = "the server answered with an error",
                                        .exit_code = 2,
                                        .output = failure.data,
                                        .output_length = failure.length };
    }
    return tci_wrap_read_end(pending, &end, true);
}

static void pass_on(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    const json_t *message = json_object_get(answer->failure, "message");
    const json_t *code = json_object_get(answer->failure, "code");

    if (answer->result && tci_wrap_has_result(pending->method))
        tci_mcp_write_value(&written, answer->result);
    else if (answer->result)
        tci_buf_string(&written, "{}"); /* no way for a server to answer what nobody looks at */
    if (pending->call && !record_answer(pending, answer, &written))
        return;
    if (answer->result) {
        if (tci_buf_check(&written, NULL) == 0)
            tci_mcp_write_result(&text, pending->client_id, written.data);
    } else {
        const json_t *data = json_object_get(answer->failure, "data");
        if (data)
            tci_mcp_write_value(&written, data);
        tci_mcp_write_error(&text, pending->client_id, tci_wrap_code(code),
                            json_is_string(message) ? json_string_value(message)
                                                    : "the server did not say why",
                            data && tci_buf_check(&written, NULL) == 0 ? written.data : NULL);
    }
    tci_wrap_client_answer(pending->wrap, pending->client_id, &text);
}

/* What is of our own asking must be answered with a result. */
static bool is_refused(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer)
{
    tc_cleanup(tci_buf_free) struct tci_buf shown = TCI_BUF_INIT(4096);
    const json_t *message = json_object_get(answer->failure, "message");
    if (answer->result || pending->kind == TCI_WRAP_PING || pending->kind == TCI_WRAP_SETTLE)
        return false; /* an error is an answer of somebody who lives */
    if (json_is_string(message))
        tci_wrap_show(&shown, json_string_value(message), json_string_length(message), 200);
    tci_wrap_fail(pending->wrap, "the server is at fault", "the server refused %s: %s",
                  pending->method, shown.data ? shown.data : "it does not say why");
    return true;
}

void tci_wrap_pending_answer(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer)
{
    struct tci_wrap *wrap = pending->wrap;
    enum tci_wrap_kind kind = pending->kind;

    if (kind == TCI_WRAP_CALL)
        tci_wrap_call_answer(pending, answer);
    else if (kind == TCI_WRAP_PLAIN)
        pass_on(pending, answer);
    else if (kind != TCI_WRAP_ABANDONED && is_refused(pending, answer))
        return;
    tci_wrap_pending_free(pending);
    if (kind == TCI_WRAP_INITIALIZE)
        tci_wrap_initialized(wrap, answer->result);
    else if (kind == TCI_WRAP_LIST)
        tci_wrap_list_page(wrap, answer->result);
    else if (kind == TCI_WRAP_SETTLE)
        tci_wrap_list_settled(wrap);
}

static void end_plain(struct tci_wrap_pending *pending)
{
    struct tci_wrap *wrap = pending->wrap;
    (void)tci_wrap_read_end(pending,
                            &(struct tci_relayed_end){ .verdict = TC_VERDICT_ERROR,
                                                       .reason = wrap->is_failed
                                                                     ? wrap->error.message
                                                                     : "the client went away",
                                                       .exit_code = -1 },
                            false);
    if (wrap->is_failed)
        tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL, wrap->error.message,
                              wrap->error.remedy);
}

void tci_wrap_pending_end_all(struct tci_wrap *wrap)
{
    struct tci_wrap_pending *next;
    for (struct tci_wrap_pending *pending = wrap->pending; pending; pending = next) {
        next = pending->next;
        if (pending->is_deciding) {
            if (!pending->is_cancelled && wrap->is_failed) {
                tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL,
                                      wrap->error.message, wrap->error.remedy);
                wrap->is_told = true;
            }
            pending->is_cancelled = true;
            continue; /* the worker brings it back */
        }
        if (pending->kind == TCI_WRAP_CALL)
            tci_wrap_call_end(pending,
                              &(struct tci_relayed_end){ .verdict = TC_VERDICT_ERROR,
                                                         .reason = wrap->is_failed
                                                                       ? wrap->error.message
                                                                       : "the client went away",
                                                         .fix = wrap->error.remedy,
                                                         .exit_code = -1 },
                              wrap->is_failed, true);
        else if (pending->kind == TCI_WRAP_PLAIN)
            end_plain(pending);
        wrap->is_told |= pending->kind <= TCI_WRAP_CALL;
        tci_wrap_pending_free(pending);
    }
}
