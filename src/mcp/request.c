/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests of clients from their arrival to their answer.
 * Invariant: every request is answered once, or cancelled and not answered at all.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "mcp/server.h"

enum tci_mcp_outcome tci_mcp_failed(struct tci_mcp_failure *failure, int code, const char *format,
                                    ...)
{
    va_list arguments;
    failure->code = code;
    va_start(arguments, format);
    (void)vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    return TCI_MCP_FAILED;
}

/* ---- answers ------------------------------------------------------------------------------ */

static bool is_over(const struct tci_mcp_session *session)
{
    return session->state == TCI_MCP_CLOSED;
}

/* One answer, as text; empty: there is none. Those of a batch go into its array. */
static void deliver(struct tci_mcp_session *session, uint64_t stream, struct tci_mcp_batch *batch,
                    const struct json_t *id, struct tci_buf *text)
{
    if (is_over(session))
        return;
    if (batch)
        tci_mcp_batch_add(batch, id, text);
    else if (text->length && session->transport.give)
        session->transport.give(session->transport.context, stream, text);
    else
        session->transport.send(session->transport.context, stream, true, text->data, text->length);
}

void tci_mcp_answer_error(struct tci_mcp_session *session, uint64_t stream,
                          struct tci_mcp_batch *batch, const struct json_t *id, int code,
                          const char *message)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    if (batch)
        tci_mcp_batch_asked(batch, false);
    tci_mcp_write_error(&text, id, code, message, NULL);
    deliver(session, stream, batch, id, &text);
    tci_buf_free(&text);
}

static void request_free(struct tci_mcp_request *request)
{
    struct tci_mcp_session *session = request->session;
    struct tci_mcp_request **at = &session->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    session->request_count--;
    if (request->batch)
        tci_mcp_batch_done(request->batch);
    json_decref(request->id);
    json_decref(request->progress_token);
    free(request);
    tci_mcp_session_release(session);
}

static void finish(struct tci_mcp_request *request, struct tci_buf *text)
{
    if (!request->cancelled && tci_buf_check(text, NULL) < 0) {
        tci_buf_free(text);
        *text = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
        tci_mcp_write_error(text, request->id, TCI_MCP_INTERNAL,
                            "the answer is larger than a message may be, or there is no memory "
                            "for it",
                            NULL);
    }
    deliver(request->session, request->stream, request->batch, request->id, text);
    tci_buf_free(text);
    request_free(request);
}

void tci_mcp_answer(struct tci_mcp_request *request, const char *result_json)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    if (!request->cancelled)
        tci_mcp_write_result(&text, request->id, result_json);
    finish(request, &text);
}

void tci_mcp_answer_message(struct tci_mcp_request *request, struct tci_buf *message)
{
    if (request->cancelled)
        tci_buf_free(message);
    finish(request, message);
}

void tci_mcp_fail(struct tci_mcp_request *request, const struct tci_mcp_failure *failure)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    if (!request->cancelled)
        tci_mcp_write_error(&text, request->id, failure->code ? failure->code : TCI_MCP_INTERNAL,
                            failure->message[0] ? failure->message : "internal error",
                            failure->data_json);
    finish(request, &text);
}

void tci_mcp_request_cancel(struct tci_mcp_request *request)
{
    if (request->cancelled)
        return;
    request->cancelled = true;
    if (request->cancel)
        request->cancel(request->context);
}

/* ---- methods ------------------------------------------------------------------------------ */

enum when { ANY, READY };

struct method {
    const char *name;
    tci_mcp_method *function;
    enum when when;
};

static const struct method *find_method(const char *name)
{
    static const struct method methods[] = {
#define X(name, function, when, capability) { name, function, when },
#include "mcp/methods.def"
#undef X
    };
    for (size_t i = 0; i < tci_array_size(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static bool is_under_way(const struct tci_mcp_session *session, const json_t *id)
{
    for (const struct tci_mcp_request *r = session->requests; r; r = r->next)
        if (json_equal(r->id, id))
            return true;
    return false;
}

/* Why it cannot even begin. 0: it can. */
static int refuse(const struct tci_mcp_session *session, const struct tci_mcp_message *message,
                  const struct method *method, const struct tci_mcp_batch *batch, char problem[256])
{
    char quoted[TCI_QUOTE_MAX];
    const char *text = NULL;
    int code = TCI_MCP_INVALID_REQUEST;
    /* Two with one id could not be told apart, neither by their answers nor when one is
     * cancelled. */
    if (is_under_way(session, message->id))
        text = "a request with this id is being answered";
    else if (!method) {
        (void)snprintf(problem, 256, "there is no method %s",
                       tci_quote(message->method, strlen(message->method), quoted));
        return TCI_MCP_NO_METHOD;
    } else if (method->when == READY && session->state == TCI_MCP_NEW)
        text = "the first request must be initialize";
    else if (method->function == tci_mcp_initialize && batch)
        text = "initialize must not be in a batch";
    else if ((text = tci_mcp_batch_refusal(batch)))
        code = TCI_MCP_BUSY;
    else if (session->request_count >= TCI_MCP_REQUESTS_MAX) {
        text = "too many requests are being answered; wait for one of them";
        code = TCI_MCP_BUSY;
    }
    if (!text)
        return 0;
    (void)snprintf(problem, 256, "%s", text);
    return code;
}

/* Text or a whole number, as ids; anything else could not be given back exactly, and is left
 * out. */
static json_t *progress_token(const json_t *params)
{
    json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");
    if (json_is_string(token))
        return json_string_length(token) <= TCI_MCP_ID_MAX ? json_incref(token) : NULL;
    return json_is_number(token) ? json_incref(token) : NULL;
}

static struct tci_mcp_request *request_new(struct tci_mcp_session *session,
                                           const struct tci_mcp_message *message, uint64_t stream,
                                           struct tci_mcp_batch *batch)
{
    struct tci_mcp_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    *request = (struct tci_mcp_request){
        .session = session,
        .next = session->requests,
        .id = json_incref(message->id),
        .stream = stream,
        .batch = batch,
        .progress_token = progress_token(message->params),
    };
    session->requests = request;
    session->request_count++;
    session->users++;
    if (batch)
        tci_mcp_batch_asked(batch, true);
    return request;
}

static void run(struct tci_mcp_request *request, const struct method *method, const json_t *params)
{
    struct tci_mcp_failure failure = { 0 };
    struct tci_buf result = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    enum tci_mcp_outcome outcome = method->function(request, params, &result, &failure);
    /* After LATER the request may be gone already. */
    if (outcome == TCI_MCP_DONE && tci_buf_check(&result, NULL) < 0)
        outcome = tci_mcp_failed(
            &failure, TCI_MCP_INTERNAL,
            "the answer is larger than a message may be, or there is no memory "
            "for it");
    if (outcome == TCI_MCP_DONE)
        tci_mcp_answer(request, result.length ? result.data : "{}");
    else if (outcome == TCI_MCP_FAILED)
        tci_mcp_fail(request, &failure);
    tci_buf_free(&result);
    free(failure.data_json);
}

void tci_mcp_request_begin(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                           uint64_t stream, struct tci_mcp_batch *batch)
{
    const struct method *method = find_method(message->method);
    struct tci_mcp_request *request;
    char problem[256];
    int code = refuse(session, message, method, batch, problem);
    if (code) {
        tci_mcp_answer_error(session, stream, batch, message->id, code, problem);
        return;
    }
    request = request_new(session, message, stream, batch);
    if (!request) {
        tci_mcp_answer_error(session, stream, batch, message->id, TCI_MCP_INTERNAL, "no memory");
        return;
    }
    run(request, method, message->params);
}
