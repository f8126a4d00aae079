/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the Streamable HTTP transport: one endpoint, /mcp, with POST (a message), GET (listen) and DELETE (end
 * of the session). How its parts fit together is in http.h.
 * Trusts: nobody before http_head.c has let the request in.
 */
#include "mcp/http.h"

#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"

enum { beat_seconds = 20 };
#define IDLE_US (30ull * 60 * 1000 * 1000)

static void refuse(struct tci_mcp_peer *peer, int status, int code, const char *message)
{
    tci_mcp_peer_refuse(
        peer, &(struct tci_mcp_refusal){ .status = status, .code = code, .message = message });
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The session that the request names; NULL: it was answered. */
static struct tci_mcp_http_session *find_session(struct tci_mcp_peer *peer)
{
    struct tci_mcp_http_session *session = NULL;

    if (!peer->head.has_session)
        refuse(peer, 400, TCI_MCP_BUSY, "Mcp-Session-Id is missing: send initialize first");
    else if (peer->head.has_odd_version)
        refuse(peer, 400, TCI_MCP_BUSY,
               "MCP-Protocol-Version names a version that is not served here: there are "
               "2025-11-25, 2025-06-18 and 2025-03-26");
    else {
        session = tci_mcp_http_session_find(peer->http, peer->head.session, peer->head.token);
        if (!session)
            refuse(peer, 404, -32001, "this session is not known (any more): send initialize");
    }
    return session;
}

static void answer_invalid(struct tci_mcp_peer *peer, const struct tci_mcp_message *message)
{
    struct tci_buf body = TCI_BUF_INIT(4096);

    tci_mcp_write_error(&body, message->id, message->code, message->problem, NULL);
    tci_mcp_peer_reply(peer, 400, "", "application/json", body.data ? body.data : "",
                       body.data ? body.length : 0);
    tci_buf_free(&body);
}

/* Hands the message over. The answer may have been sent before this returns, and the stream be gone. */
static void take_message(struct tci_mcp_http_session *session, struct tci_mcp_peer *peer,
                         const struct tci_mcp_message *message, bool is_first)
{
    struct tci_mcp_stream *stream = tci_mcp_stream_new(session, peer);
    uint64_t number;

    if (!stream) {
        refuse(peer, 503, TCI_MCP_INTERNAL, "there is no memory for this message");
        return;
    }
    stream->is_first = is_first;
    number = stream->number;
    session->used_us = tci_clock_us();
    if (tci_mcp_session_take(session->session, message, number))
        return;
    stream = tci_mcp_stream_find(session, number);
    if (stream)
        tci_mcp_stream_accepted(stream);
}

static void start_session(struct tci_mcp_peer *peer, const struct tci_mcp_message *message)
{
    struct tci_mcp_http_session *session;
    struct tc_error error = { 0 };

    if (tci_mcp_http_session_open(peer->http, peer->head.token, &session, &error) < 0) {
        refuse(peer, 503, TCI_MCP_BUSY, error.message);
        return;
    }
    take_message(session, peer, message, true);
    if (session->session->state == TCI_MCP_NEW)
        tci_mcp_http_session_close(session, 400, "initialize did not succeed");
}

static void take_post(struct tci_mcp_peer *peer, const struct tci_mcp_message *message)
{
    struct tci_mcp_http_session *session;

    if (message->kind == TCI_MCP_INVALID) {
        answer_invalid(peer, message);
        return;
    }
    if (!peer->head.has_session && message->kind == TCI_MCP_REQUEST &&
        strcmp(message->method, "initialize") == 0) {
        start_session(peer, message);
        return;
    }
    session = find_session(peer);
    if (session)
        take_message(session, peer, message, false);
}

void tci_mcp_http_take(struct tci_mcp_peer *peer, const struct tci_mcp_message *message, int r)
{
    if (r < 0)
        refuse(peer, 503, TCI_MCP_INTERNAL, "there is no memory for this message");
    else
        take_post(peer, message);
}

void tci_mcp_http_read(struct tci_mcp_peer *peer)
{
    struct tci_mcp_message message;
    int r = tci_mcp_read(peer->body.data ? peer->body.data : "", peer->body.length, &message, NULL);
    tci_mcp_peer_drop_body(peer);
    tci_mcp_http_take(peer, &message, r);
    tci_mcp_message_free(&message);
}

void tci_mcp_http_request(struct tci_mcp_peer *peer)
{
    struct tci_mcp_http_session *session;

    if (peer->head.method == TCI_MCP_POST) {
        if (!tci_mcp_line_add(peer))
            tci_mcp_http_read(peer);
        return;
    }
    session = find_session(peer);
    if (!session)
        return;
    session->used_us = tci_clock_us();
    if (peer->head.method == TCI_MCP_GET) {
        tci_mcp_stream_listen(session, peer, &peer->head);
        return;
    }
    tci_mcp_http_session_close(session, 404, "the session was ended");
    tci_mcp_peer_reply(peer, 200, "", NULL, "", 0);
}

bool tci_mcp_http_head(struct tci_mcp_peer *peer, const char *text, size_t length)
{
    struct tci_mcp_refusal refusal;

    if (!tci_mcp_head_read(&peer->http->guard, text, length, &peer->head, &refusal)) {
        tci_mcp_peer_refuse(peer, &refusal);
        return false;
    }
    if (peer->http->ending) {
        refuse(peer, 503, TCI_MCP_BUSY, "the server is ending");
        return false;
    }
    /* GET and DELETE have no body. */
    if (peer->head.method != TCI_MCP_POST && peer->head.has_body) {
        refuse(peer, 400, TCI_MCP_INVALID_REQUEST, "only POST has a body");
        return false;
    }
    return true;
}

/* ---- the server ----------------------------------------------------------------------------- */

/* A listener whose machine went away without a word is found by writing to it. */
static void on_beat(int fd, short what, void *context)
{
    struct tci_mcp_http *http = context;

    (void)fd, (void)what;
    for (struct tci_mcp_peer *peer = http->peers; peer; peer = peer->next)
        if (peer->state == TCI_MCP_PEER_LISTENS && peer->stream)
            tci_mcp_peer_still_here(peer);
    /* A stream or call that has ended since the last beat was seen then. */
    tci_mcp_sessions_sweep(http, IDLE_US + beat_seconds * 1000000ull);
}

static int start(struct tci_mcp_http *http, struct tci_mcp_loop *loop, struct tc_error *reterr)
{
    static const struct timeval beat = { .tv_sec = beat_seconds };

    http->base = tci_mcp_loop_base(loop);
    if (tci_mcp_sessions_init(&http->sessions, reterr) < 0 ||
        tci_mcp_shares_init(&http->shares, http->options->token_count, reterr) < 0 ||
        tci_mcp_http_listen(http, reterr) < 0 ||
        tci_mcp_guard_init(&http->guard, http->options, http->port, reterr) < 0)
        return -1;
    http->beat = event_new(http->base, -1, EV_PERSIST, on_beat, http);
    if (!http->beat || event_add(http->beat, &beat) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}

static void stop(struct tci_mcp_http *http, struct tci_mcp_loop *loop)
{
    /* First: nobody comes any more, also not when accepting is to be tried again. */
    if (http->resume)
        event_free(http->resume);
    for (size_t i = 0; i < tci_array_size(http->listeners); i++)
        if (http->listeners[i])
            evconnlistener_free(http->listeners[i]);
    tci_mcp_http_end(http, loop);
    while (http->peers)
        tci_mcp_peer_free(http->peers);
    if (http->beat)
        event_free(http->beat);
    if (http->reading) /* it comes back to us */
        tci_mcp_loop_drain(loop);
    tci_mcp_guard_free(&http->guard);
    tci_mcp_shares_free(&http->shares);
    free(http);
}

static void tell_address(const struct tci_mcp_http *http)
{
    const char *address = http->options->address;
    char url[128];

    if (!http->options->listening)
        return;
    if (strcmp(address, "localhost") == 0 && !http->listeners[1])
        address = "127.0.0.1";
    snprintf(url, sizeof url, strchr(address, ':') ? "http://[%s]:%u/mcp" : "http://%s:%u/mcp",
             address, http->port);
    http->options->listening(http->options->context, url);
}

static int serve(const struct tci_mcp_options *options, struct tci_mcp_http *http,
                 struct tci_mcp_loop *loop, struct tc_error *reterr)
{
    if (start(http, loop, reterr) < 0 ||
        tci_mcp_server_new(options, loop, &http->server, reterr) < 0)
        return -1;
    tci_mcp_http_accept(http);
    tell_address(http);
    return tci_mcp_loop_run(loop, reterr);
}

int tci_mcp_serve_http(const struct tci_mcp_options *options,
                       const struct tci_mcp_http_options *options_http, struct tc_error *reterr)
{
    struct tci_mcp_http *http = calloc(1, sizeof *http);
    struct tci_mcp_loop *loop = NULL;
    struct tci_mcp_server *server;
    int r = -1;

    if (!http)
        return tci_error_no_memory(reterr);
    http->options = options_http;
    if (tci_mcp_loop_new(TCI_MCP_THREADS, true, &loop, reterr) == 0)
        r = serve(options, http, loop, reterr);
    server = http->server;
    stop(http, loop);
    tci_mcp_server_free(server);
    tci_mcp_loop_free(loop);
    return r;
}
