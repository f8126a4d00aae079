/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: sessions: what a client says, in the order in which it says it, and what we ask the client.
 * Invariants: after close nothing is sent; a session is freed when it is closed and nobody uses it:
 * its requests, its batches, and a message that is being taken.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/uuid.h"
#include "json/write.h"
#include "mcp/server.h"

/* A question of ours to the client. */
struct tci_mcp_asked {
    struct tci_mcp_asked *next;
    uint64_t number, stream;
    tci_mcp_answered *answered;
    void *context;
};

enum { notification_max = 1024 * 1024 };

/* ---- open and close ----------------------------------------------------------------------- */

static int set_name(struct tci_mcp_session *session, const char *name, struct tc_error *reterr)
{
    char uuid[TCI_UUID_TEXT_MAX];
    if (name) {
        if (strlen(name) >= sizeof session->name)
            return tci_error_set(reterr, TC_ERROR_USAGE,
                                 "the name of a session has at most %zu bytes",
                                 sizeof session->name - 1);
        (void)snprintf(session->name, sizeof session->name, "%s", name);
        return 0;
    }
    if (tci_uuid7(uuid) < 0)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "there are no random numbers");
    (void)snprintf(session->name, sizeof session->name, "mcp-%s", uuid);
    return 0;
}

int tci_mcp_session_open(struct tci_mcp_server *server, const char *agent,
                         const struct tci_mcp_transport *transport, struct tci_mcp_session **ret,
                         struct tc_error *reterr)
{
    struct tci_mcp_session *session;
    if (server->closing)
        return tci_error_set(reterr, TC_ERROR_USAGE, "the server is ending");
    if (server->session_count >= TCI_MCP_SESSIONS_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "there are %d sessions already",
                             TCI_MCP_SESSIONS_MAX);
    session = calloc(1, sizeof *session);
    if (!session)
        return tci_error_no_memory(reterr);
    session->agent = agent ? strdup(agent) : NULL;
    if (agent && !session->agent)
        tci_error_no_memory(reterr);
    if ((agent && !session->agent) || set_name(session, server->options->session, reterr) < 0) {
        free(session->agent);
        free(session);
        return -1;
    }
    session->server = server;
    session->transport = *transport;
    session->level = TCI_MCP_INFO;
    session->version = TCI_MCP_2025_11_25;
    session->users = 1; /* until it is closed */
    session->next = server->sessions;
    server->sessions = session;
    server->session_count++;
    *ret = session;
    return 0;
}

void tci_mcp_session_release(struct tci_mcp_session *session)
{
    if (--session->users)
        return;
    tci_mcp_files_free(session);
    for (size_t i = 0; i < session->subscribed_count; i++)
        free(session->subscribed[i]);
    free(session->agent);
    free(session);
}

/* A request that is cancelled may end at once, and others with it: so from the beginning each
 * time. */
static void cancel_all(struct tci_mcp_session *session)
{
    struct tci_mcp_request *request;
    do {
        request = session->requests;
        while (request && request->cancelled)
            request = request->next;
        if (request)
            tci_mcp_request_cancel(request);
    } while (request);
}

static struct tci_mcp_asked *take_asked(struct tci_mcp_session *session, uint64_t number)
{
    for (struct tci_mcp_asked **at = &session->asked; *at; at = &(*at)->next)
        if (!number || (*at)->number == number) {
            struct tci_mcp_asked *asked = *at;
            *at = asked->next;
            session->asked_count--;
            return asked;
        }
    return NULL;
}

void tci_mcp_session_hung_up(struct tci_mcp_session *session)
{
    struct tci_mcp_asked *asked;
    session->hung_up = true;
    while ((asked = take_asked(session, 0))) {
        asked->answered(asked->context, NULL);
        free(asked);
    }
}

void tci_mcp_session_close(struct tci_mcp_session *session)
{
    struct tci_mcp_session **at = &session->server->sessions;
    if (session->state == TCI_MCP_CLOSED)
        return;
    session->state = TCI_MCP_CLOSED;
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    session->server->session_count--;
    for (struct tci_mcp_request *r = session->requests; r; r = r->next)
        if (r->batch)
            tci_mcp_batch_forget(r->batch);
    tci_mcp_session_hung_up(session);
    cancel_all(session);
    tci_mcp_session_release(session);
}

size_t tci_mcp_session_busy(const struct tci_mcp_session *session)
{
    return session->request_count;
}

/* ---- what we send ------------------------------------------------------------------------- */

static void send_text(struct tci_mcp_session *session, uint64_t stream, struct tci_buf *text)
{
    if (session->state != TCI_MCP_CLOSED && tci_buf_check(text, NULL) == 0)
        session->transport.send(session->transport.context, stream, false, text->data,
                                text->length);
    tci_buf_free(text);
}

void tci_mcp_notify(struct tci_mcp_session *session, uint64_t stream, const char *method,
                    const char *params_json)
{
    struct tci_buf text = TCI_BUF_INIT(notification_max);
    if (session->state == TCI_MCP_CLOSED)
        return;
    tci_mcp_write_notification(&text, method, params_json);
    send_text(session, stream, &text);
}

void tci_mcp_log(struct tci_mcp_session *session, uint64_t stream, enum tci_mcp_level level,
                 const char *logger, const char *text, size_t length)
{
    struct tci_buf params = TCI_BUF_INIT(notification_max);
    struct tci_json json = { .out = &params };
    if (session->state == TCI_MCP_CLOSED || session->state == TCI_MCP_NEW || level < session->level)
        return;
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "level", tci_mcp_level_name(level));
    if (logger)
        tci_json_string(&json, "logger", logger);
    tci_json_bytes(&json, "data", text, length);
    tci_json_object_end(&json);
    if (tci_buf_check(&params, NULL) == 0)
        tci_mcp_notify(session, stream, "notifications/message", params.data);
    tci_buf_free(&params);
}

/* ---- what we ask -------------------------------------------------------------------------- */

uint64_t tci_mcp_ask(struct tci_mcp_session *session, uint64_t stream, const char *method,
                     const char *params_json, tci_mcp_answered *answered, void *context)
{
    struct tci_buf text = TCI_BUF_INIT(notification_max);
    struct tci_mcp_asked *asked;
    char id[32];
    uint64_t number;
    /* Nobody can answer any more: the call would wait in vain, and the server with it. */
    if (session->state == TCI_MCP_CLOSED || session->hung_up ||
        session->asked_count >= TCI_MCP_ASKED_MAX)
        return 0;
    asked = calloc(1, sizeof *asked);
    if (!asked)
        return 0;
    number = session->asked_last + 1;
    (void)snprintf(id, sizeof id, "tc-%" PRIu64, number);
    tci_mcp_write_request(&text, id, method, params_json);
    if (tci_buf_check(&text, NULL) < 0) {
        tci_buf_free(&text);
        free(asked);
        return 0;
    }
    *asked = (struct tci_mcp_asked){ .next = session->asked,
                                     .number = number,
                                     .stream = stream,
                                     .answered = answered,
                                     .context = context };
    session->asked = asked;
    session->asked_count++;
    session->asked_last = number;
    send_text(session, stream, &text);
    return number;
}

void tci_mcp_unask(struct tci_mcp_session *session, uint64_t question)
{
    struct tci_mcp_asked *asked = question ? take_asked(session, question) : NULL;
    char params[80];
    if (!asked)
        return;
    (void)snprintf(params, sizeof params, "{\"requestId\":\"tc-%" PRIu64 "\"}", question);
    tci_mcp_notify(session, asked->stream, "notifications/cancelled", params);
    free(asked);
}

/* Only a question that is open is answered, and only once: an answer to anything else means
 * nothing, be it late, guessed or repeated. */
static void take_response(struct tci_mcp_session *session, const struct tci_mcp_message *message)
{
    const char *id = json_string_value(message->id);
    struct tci_mcp_asked *asked;
    char again[32];
    uint64_t number;
    if (!id || strncmp(id, "tc-", 3) != 0)
        return;
    number = strtoull(id + 3, NULL, 10);
    (void)snprintf(again, sizeof again, "tc-%" PRIu64, number);
    if (!number || strcmp(again, id) != 0)
        return;
    asked = take_asked(session, number);
    if (!asked)
        return;
    asked->answered(asked->context, message->result);
    free(asked);
}

/* ---- what the client says ----------------------------------------------------------------- */

static void cancelled(struct tci_mcp_session *session, const json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");
    for (struct tci_mcp_request *r = session->requests; id && r; r = r->next)
        if (json_equal(r->id, id)) {
            tci_mcp_request_cancel(r);
            return;
        }
}

/* Those that mean nothing to us are not answered, as all notifications. */
static void take_notification(struct tci_mcp_session *session,
                              const struct tci_mcp_message *message)
{
    if (strcmp(message->method, "notifications/initialized") == 0) {
        if (session->state == TCI_MCP_INITIALIZED)
            session->state = TCI_MCP_READY;
    } else if (strcmp(message->method, "notifications/cancelled") == 0)
        cancelled(session, message->params);
}

static void take_one(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                     uint64_t stream, struct tci_mcp_batch *batch)
{
    switch (message->kind) {
    case TCI_MCP_REQUEST:
        tci_mcp_request_begin(session, message, stream, batch);
        return;
    case TCI_MCP_NOTIFICATION:
        take_notification(session, message);
        return;
    case TCI_MCP_RESPONSE:
        take_response(session, message);
        return;
    case TCI_MCP_INVALID:
    case TCI_MCP_BATCH:
        tci_mcp_answer_error(session, stream, batch, message->id, message->code, message->problem);
        return;
    }
}

static bool take_batch(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                       uint64_t stream)
{
    struct tci_mcp_batch *batch;
    /* Before initialize nothing is agreed on: a batch could only hold pings. */
    if (session->state == TCI_MCP_NEW || session->version != TCI_MCP_2025_03_26) {
        tci_mcp_answer_error(session, stream, NULL, NULL, TCI_MCP_INVALID_REQUEST,
                             "this version of the protocol has no batches");
        return true;
    }
    batch = tci_mcp_batch_new(session, stream, json_array_size(message->document));
    if (!batch) {
        tci_mcp_answer_error(session, stream, NULL, NULL, TCI_MCP_INTERNAL, "no memory");
        return true;
    }
    for (size_t i = 0; i < json_array_size(message->document); i++) {
        struct tci_mcp_message member;
        if (tci_mcp_read_value(json_array_get(message->document, i), &member, NULL) < 0)
            member.kind = TCI_MCP_INVALID;
        take_one(session, &member, stream, batch);
        tci_mcp_message_free(&member);
    }
    return tci_mcp_batch_taken(batch);
}

bool tci_mcp_session_take(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                          uint64_t stream)
{
    bool answered;
    if (session->state == TCI_MCP_CLOSED)
        return false;
    /* What it says may close it: its transport, when it cannot send. */
    session->users++;
    if (message->kind == TCI_MCP_BATCH)
        answered = take_batch(session, message, stream);
    else {
        answered = message->kind == TCI_MCP_REQUEST || message->kind == TCI_MCP_INVALID;
        take_one(session, message, stream, NULL);
    }
    tci_mcp_session_release(session);
    return answered;
}
