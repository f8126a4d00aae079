/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: where messages for an HTTP client go: into the answer to the POST that they belong to, or into the
 * session's own stream (GET).
 * An answer is held back until the first message for it is known. When that is the answer itself, it goes as
 * JSON; when it is another one, or nothing has come for a while, it becomes a stream of events, and from then
 * on a client can break off and come back. A broken connection is no cancellation: the work goes on.
 * Invariants: after a client came back it has every event of its stream once, or is told that some are lost.
 */
#include "mcp/http.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { patience_seconds = 5 };

/* ---- life ----------------------------------------------------------------------------------- */

/* It is in no list any more. */
static void dispose(struct tci_mcp_stream *stream)
{
    if (stream->peer)
        stream->peer->stream = NULL;
    if (stream->patience)
        event_free(stream->patience);
    free(stream);
}

static void free_stream(struct tci_mcp_stream *stream)
{
    struct tci_mcp_stream **at = &stream->session->streams;

    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    dispose(stream);
}

/* Nobody listens, nothing will come, nothing is kept. */
static void free_if_over(struct tci_mcp_stream *stream)
{
    if (stream->number > 0 && stream->ended && !stream->peer && stream->kept == 0)
        free_stream(stream);
}

void tci_mcp_stream_forget(struct tci_mcp_stream *stream, uint64_t number)
{
    stream->lost = number;
    stream->kept--;
    free_if_over(stream);
}

void tci_mcp_stream_detach(struct tci_mcp_stream *stream)
{
    stream->peer = NULL;
    if (stream->patience)
        event_del(stream->patience);
    free_if_over(stream);
}

static void attach(struct tci_mcp_stream *stream, struct tci_mcp_peer *peer)
{
    stream->peer = peer;
    peer->stream = stream;
}

/* Takes the peer off its stream: it gets its answer now. */
static struct tci_mcp_peer *release(struct tci_mcp_stream *stream)
{
    struct tci_mcp_peer *peer = stream->peer;

    if (peer)
        peer->stream = NULL;
    stream->peer = NULL;
    return peer;
}

struct tci_mcp_stream *tci_mcp_stream_find(struct tci_mcp_http_session *session, uint64_t number)
{
    struct tci_mcp_stream *stream = session->streams;

    while (stream && stream->number != number)
        stream = stream->next;
    return stream;
}

/* ---- held back, or events ------------------------------------------------------------------- */

/* Clients of older versions take an event without data for a broken message. */
static void greet(struct tci_mcp_stream *stream, uint64_t number)
{
    if (stream->session->session->version >= TCI_MCP_2025_11_25)
        tci_mcp_peer_event_first(stream->peer, stream->number, number);
}

static void become_events(struct tci_mcp_stream *stream)
{
    if (stream->patience)
        event_del(stream->patience);
    stream->has_events = true;
    tci_mcp_peer_events_begin(stream->peer);
    greet(stream, stream->session->events.newest);
}

static void on_patience(int fd, short what, void *context)
{
    struct tci_mcp_stream *stream = context;

    (void)fd, (void)what;
    if (stream->peer && !stream->has_events)
        become_events(stream);
}

struct tci_mcp_stream *tci_mcp_stream_new(struct tci_mcp_http_session *session,
                                          struct tci_mcp_peer *peer)
{
    static const struct timeval patience = { .tv_sec = patience_seconds };
    struct tci_mcp_stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->session = session;
    if (peer) {
        stream->patience = event_new(session->http->base, -1, 0, on_patience, stream);
        if (!stream->patience || event_add(stream->patience, &patience) < 0) {
            if (stream->patience)
                event_free(stream->patience);
            free(stream);
            return NULL;
        }
        stream->number = ++session->streams_last;
        attach(stream, peer);
    } else
        stream->has_events = true; /* the session's own */
    stream->next = session->streams;
    session->streams = stream;
    return stream;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Held back until now, and this is all of it. No text: the client does not want it any more. */
static void answer_whole(struct tci_mcp_stream *stream, const char *text, size_t length)
{
    struct tci_mcp_http_session *session = stream->session;
    struct tci_mcp_peer *peer = release(stream);
    char fields[96] = "";

    if (stream->is_first && session->session->state != TCI_MCP_NEW) {
        (void)snprintf(fields, sizeof fields, "Mcp-Session-Id: %s\r\n", session->id);
    }
    free_stream(stream);
    if (peer && text)
        tci_mcp_peer_reply(peer, 200, fields, "application/json", text, length);
    else if (peer)
        tci_mcp_peer_reply(peer, 202, "", NULL, "", 0);
}

/* To its peer, which may be gone, or go with it: then it is for the next one. */
static void deliver(struct tci_mcp_stream *stream, uint64_t number, const char *text, size_t length)
{
    tci_mcp_peer_event(stream->peer, stream->number, number, text, length);
    if (stream->peer->state == TCI_MCP_PEER_LISTENS)
        stream->delivered = number;
}

static void send_event(struct tci_mcp_stream *stream, const char *text, size_t length)
{
    uint64_t number = tci_mcp_events_add(stream, text, length);

    if (stream->peer)
        deliver(stream, number, text, length);
}

static void end_events(struct tci_mcp_stream *stream)
{
    struct tci_mcp_peer *peer = release(stream);

    stream->ended = true;
    free_if_over(stream);
    if (peer)
        tci_mcp_peer_events_end(peer);
}

static void send_line(struct tci_mcp_stream *stream, bool last, const char *text, size_t length)
{
    if (!stream->has_events && last) {
        answer_whole(stream, text, length);
        return;
    }
    if (!stream->has_events) {
        /* Nobody has seen an id of this stream: nobody can come back for it. */
        if (!stream->peer)
            return;
        become_events(stream);
    }
    if (text)
        send_event(stream, text, length);
    if (last)
        end_events(stream);
}

void tci_mcp_stream_send(void *context, uint64_t number, bool last, const char *text, size_t length)
{
    struct tci_mcp_stream *stream = tci_mcp_stream_find(context, number);
    char *line;

    if (!stream)
        return;
    /* A line break between two tokens of JSON is a blank, but it would end the event: what follows could
     * be an event that a tool has made up. */
    if (!text || (!memchr(text, '\n', length) && !memchr(text, '\r', length))) {
        send_line(stream, last && number > 0, text, length);
        return;
    }
    line = malloc(length);
    for (size_t i = 0; line && i < length; i++)
        line[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    send_line(stream, last && number > 0, line, length);
    free(line);
}

void tci_mcp_stream_accepted(struct tci_mcp_stream *stream)
{
    answer_whole(stream, NULL, 0);
}

/* ---- listening ------------------------------------------------------------------------------ */

static void refuse(struct tci_mcp_peer *peer, int status, const char *message)
{
    tci_mcp_peer_refuse(peer, &(struct tci_mcp_refusal){
                                  .status = status, .code = TCI_MCP_BUSY, .message = message });
}

static bool has_after(const struct tci_mcp_stream *stream, uint64_t number)
{
    const struct tci_mcp_event *event = stream->session->events.first;

    while (event && (event->stream != stream || event->number <= number))
        event = event->next;
    return event != NULL;
}

static void replay(struct tci_mcp_stream *stream, uint64_t number)
{
    for (const struct tci_mcp_event *event = stream->session->events.first; event;
         event = event->next)
        if (event->stream == stream && event->number > number)
            deliver(stream, event->number, event->text, event->length);
}

/* The client comes back. Whoever still listens is its own connection that it has given up. */
static void listen_again(struct tci_mcp_http_session *session, struct tci_mcp_peer *peer,
                         const struct tci_mcp_head *head)
{
    struct tci_mcp_stream *stream = tci_mcp_stream_find(session, head->last_stream);
    struct tci_mcp_peer *before;

    /* Not 404: that would say that the session is gone, and a client would begin a new one. */
    if (!stream || !stream->has_events || head->last_event > session->events.newest) {
        refuse(peer, 400, "Last-Event-ID names a stream that is not kept (any more)");
        return;
    }
    if (head->last_event < stream->lost) {
        refuse(peer, 400, "events after this Last-Event-ID are not kept any more");
        return;
    }
    /* It has all of it. This is what tells a reader of events not to come back again. */
    if (stream->ended && !has_after(stream, head->last_event)) {
        tci_mcp_peer_reply(peer, 204, "", NULL, "", 0);
        return;
    }
    before = release(stream);
    if (before)
        tci_mcp_peer_events_end(before);
    attach(stream, peer);
    tci_mcp_peer_events_begin(peer);
    replay(stream, head->last_event);
    if (stream->ended)
        end_events(stream);
}

void tci_mcp_stream_listen(struct tci_mcp_http_session *session, struct tci_mcp_peer *peer,
                           const struct tci_mcp_head *head)
{
    struct tci_mcp_stream *own;

    if (head->has_last_event) {
        listen_again(session, peer, head);
        return;
    }
    own = tci_mcp_stream_find(session, 0);
    if (own->peer && own->peer->state == TCI_MCP_PEER_LISTENS) {
        refuse(peer, 409, "this session has a stream of its own already");
        return;
    }
    if (own->peer)
        release(own);
    attach(own, peer);
    tci_mcp_peer_events_begin(peer);
    greet(own, own->delivered);
    replay(own, own->delivered);
}

void tci_mcp_streams_end(struct tci_mcp_http_session *session, int status, const char *message)
{
    tci_mcp_events_free(session);
    while (session->streams) {
        struct tci_mcp_stream *stream = session->streams;
        struct tci_mcp_peer *peer = release(stream);
        bool has_events = stream->has_events;
        session->streams = stream->next;
        dispose(stream);
        if (peer && has_events)
            tci_mcp_peer_events_end(peer);
        else if (peer)
            refuse(peer, status, message);
    }
}
