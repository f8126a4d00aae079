/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the wrapped server says on stdout. One JSON message a line and nothing else; answers to what
 * it was asked, once each; of the rest, what the policy lets pass, and not without end. Everything else
 * stops it: a server that gets this wrong is broken or hostile, and its next answer may be a forged one.
 */
#include "mcp/wrap_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"

enum { value_cost = 32 }; /* a JSON value takes as long to read as so many bytes of text */

static void show_id(const json_t *id, char ret[TCI_QUOTE_MAX])
{
    if (json_is_string(id))
        (void)tci_quote(json_string_value(id), json_string_length(id), ret);
    else if (json_is_number(id))
        (void)snprintf(ret, TCI_QUOTE_MAX, "%.17g", json_number_value(id));
    else
        (void)snprintf(ret, TCI_QUOTE_MAX, "null");
}

/* Bytes and values that the client has not asked for: a few hundred large messages would keep this process, which
 * no limit of the cage holds for, from everything else. False: there were too many. */
static bool take_work(struct tci_wrap *wrap)
{
    bool small = !wrap->line_work ||
                 tci_wrap_bucket_take_many(&wrap->unasked_work, (double)wrap->line_work);
    wrap->line_work = 0;
    return small;
}

/* Counts a message that nobody asked for; false: the server is stopped. */
static bool take_unasked(struct tci_wrap *wrap)
{
    bool few = tci_wrap_bucket_take(&wrap->unasked);
    bool small = take_work(wrap);
    if (!few || !small)
        tci_wrap_fail(wrap, "the server is at fault",
                      "the server floods: it sent too %s that nobody asked for",
                      few ? "much" : "many messages");
    return few && small;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Asked, cancelled, and so long ago that it was forgotten: nobody waits for it, and nobody gets it. */
static bool is_forgotten(const struct tci_wrap *wrap, const json_t *id)
{
    const char *text = json_is_string(id) ? json_string_value(id) : "";
    char again[24];
    uint64_t number = strncmp(text, "tc-", 3) == 0 ? strtoull(text + 3, NULL, 10) : 0;
    (void)snprintf(again, sizeof again, "tc-%" PRIu64, number);
    return number && number <= wrap->forgotten_id && strcmp(text, again) == 0;
}

/* We ask for its list as often as the server says that it has changed: it is as if nobody had asked. */
static bool is_of_list(const struct tci_wrap_pending *pending)
{
    return pending->kind == TCI_WRAP_LIST || pending->kind == TCI_WRAP_SETTLE ||
           pending->kind == TCI_WRAP_PING;
}

static void take_answer(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    struct tci_wrap_pending *pending = tci_wrap_pending_of_server(wrap, message->id);
    char id[TCI_QUOTE_MAX];
    if (pending && is_of_list(pending) && !take_work(wrap)) {
        tci_wrap_fail(wrap, "the server is at fault",
                      "the server floods: its list of tools is too much to read, again and again");
        return;
    }
    if (pending) {
        tci_wrap_pending_answer(pending, message);
        return;
    }
    if (is_forgotten(wrap, message->id)) {
        (void)take_unasked(wrap);
        return;
    }
    show_id(message->id, id);
    tci_wrap_fail(wrap, "the server is at fault: it must answer each request once",
                  "the server answered a request that nobody made, or the same one twice: id %s",
                  id);
}

static void refuse_answer(struct tci_wrap_pending *pending, const char *problem)
{
    static const char reason[] = "the server's answer is not valid";
    if (tci_wrap_read_end(pending,
                          &(struct tci_relayed_end){ .verdict = TC_VERDICT_INVALID_OUTPUT,
                                                     .reason = reason,
                                                     .fix = problem,
                                                     .exit_code = -1 },
                          true))
        tci_wrap_client_error(pending->wrap, pending->client_id, TCI_MCP_INTERNAL, reason, problem);
}

/* An answer that cannot be used, to something that was asked: the one who asked is told. */
static bool take_unusable(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    const json_t *id = json_object_get(message->document, "id");
    struct tci_wrap_pending *pending = tci_wrap_pending_of_server(wrap, id);
    if (!pending || json_object_get(message->document, "method"))
        return false;
    if (pending->kind == TCI_WRAP_CALL)
        tci_wrap_call_answer(pending, message);
    else if (pending->kind == TCI_WRAP_PLAIN)
        refuse_answer(pending, message->problem);
    else if (pending->kind != TCI_WRAP_ABANDONED)
        return false;
    tci_wrap_pending_free(pending);
    return true;
}

/* ---- what nobody asked for ------------------------------------------------------------------ */

static void take_notification(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    if (strcmp(message->method, "notifications/tools/list_changed") == 0)
        tci_wrap_list_again(wrap);
    else if (strcmp(message->method, "notifications/progress") == 0)
        tci_wrap_progress(wrap, message->params);
    else if (strcmp(message->method, "notifications/cancelled") == 0)
        tci_wrap_asked_cancel(wrap, json_object_get(message->params, "requestId"));
    else if (wrap->state == TCI_WRAP_READY &&
             tci_wrap_may_pass(wrap, TCI_WRAP_SERVER, false, message->method))
        tci_wrap_pass_notice(wrap, message->method, message->params);
}

static void refuse(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    struct tci_buf text = TCI_BUF_INIT(4096);
    char quoted[TCI_QUOTE_MAX];
    tci_mcp_write_error(&text, message->id, TCI_MCP_NO_METHOD,
                        "the client does not take this request, or a policy does not let it pass",
                        NULL);
    tci_wrap_server_put(wrap, &text);
    if (tci_wrap_bucket_take(&wrap->refusals))
        tci_wrap_say(wrap, "%s: denied: the server asked the client for %s", wrap->tool->name,
                     tci_quote(message->method, strlen(message->method), quoted));
}

static void take_request(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    struct tci_buf text = TCI_BUF_INIT(4096);
    const json_t *mode = json_object_get(message->params, "mode");
    bool is_form = !mode || (json_is_string(mode) && strcmp(json_string_value(mode), "form") == 0);
    bool has = strcmp(message->method, "sampling/createMessage") == 0 ? wrap->can_sample
               : strcmp(message->method, "roots/list") == 0           ? wrap->has_roots
                                                                      : wrap->can_elicit;

    if (strcmp(message->method, "ping") == 0) {
        tci_mcp_write_result(&text, message->id, "{}");
        tci_wrap_server_put(wrap, &text);
        return;
    }
    /* Another mode than a form sends the person to an address of the server's. */
    if (!has || wrap->state != TCI_WRAP_READY || !is_form ||
        !tci_wrap_may_pass(wrap, TCI_WRAP_SERVER, true, message->method) ||
        !tci_wrap_ask(wrap, message->id, message->method, message->params))
        refuse(wrap, message);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void take_message(struct tci_wrap *wrap, const struct tci_mcp_message *message)
{
    struct tci_mcp_message member;
    if (message->kind == TCI_MCP_RESPONSE) {
        take_answer(wrap, message);
        return;
    }
    if (message->kind == TCI_MCP_BATCH) {
        for (size_t i = 0; !wrap->is_failed && i < json_array_size(message->document); i++) {
            if (tci_mcp_read_value(json_array_get(message->document, i), &member, NULL) == 0)
                take_message(wrap, &member);
            tci_mcp_message_free(&member);
        }
        return;
    }
    if (message->kind == TCI_MCP_INVALID) {
        if (!take_unusable(wrap, message))
            tci_wrap_fail(wrap, "the server is at fault", "the server sent what is no message: %s",
                          message->problem);
        return;
    }
    if (!take_unasked(wrap))
        return;
    if (message->kind == TCI_MCP_NOTIFICATION)
        take_notification(wrap, message);
    else
        take_request(wrap, message);
}

int tci_wrap_server_line(void *context, const char *line, size_t length)
{
    struct tci_wrap *wrap = context;
    struct tci_mcp_message message;
    struct tc_error error = { 0 };

    if (length && line[length - 1] == '\r')
        length--;
    if (!length)
        return 0;
    if (tci_mcp_read_server(line, length, &message, &error) < 0) {
        tci_wrap_fail(wrap, NULL, "%s", error.message);
    } else if (!message.document && message.code == TCI_MCP_PARSE_ERROR) {
        tc_cleanup(tci_buf_free) struct tci_buf shown = TCI_BUF_INIT(4096);
        tci_wrap_show(&shown, line, length, 200);
        tci_wrap_fail(
            wrap,
            "a server must write nothing but messages to stdout: let it print banners and "
            "logs to stderr",
            "the server wrote something to stdout that is not JSON: %s",
            shown.data ? shown.data : "");
    } else {
        wrap->line_work = length + value_cost * message.values;
        take_message(wrap, &message);
    }
    tci_mcp_message_free(&message);
    tci_mcp_loop_used(wrap->loop, length);
    return wrap->is_failed ? 2 : 0;
}
