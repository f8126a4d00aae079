/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the events of a session that a client may ask for again.
 * Invariant: bounded in number and bytes for a session, and in bytes for all; the oldest of a session goes
 * first. A stream knows the newest event that it lost, so that a client is told when something is missing and
 * never gets a gap.
 * Attack: somebody with a token who lets large answers be kept until those of others are not kept any more, and
 * a broken connection costs them their answer. So what goes is of the token that has most.
 */
#include "mcp/http.h"

#include <stdlib.h>
#include <string.h>

/* So much of one session goes before it is asked again who has most: not a search for each small event. */
enum { drop_bytes = 64 * 1024 };

static void drop_first(struct tci_mcp_http_session *session)
{
    struct tci_mcp_events *events = &session->events;
    struct tci_mcp_event *event = events->first;

    events->first = event->next;
    if (!events->first)
        events->last = NULL;
    events->count--;
    events->bytes -= event->length;
    tci_mcp_share_change(&session->http->shares, TCI_MCP_SHARE_EVENTS, session->token,
                         event->length, 0);
    tci_mcp_stream_forget(event->stream, event->number);
    free(event);
}

static bool is_full(const struct tci_mcp_http *http, size_t length)
{
    return http->shares.all.of[TCI_MCP_SHARE_EVENTS] + length > TCI_MCP_EVENTS_ALL_MAX;
}

/* The newest may be larger than what a session may have, then it is alone: an answer is the last that should
 * get lost. */
static void make_room_here(struct tci_mcp_http_session *session, size_t length)
{
    const struct tci_mcp_events *events = &session->events;

    while (events->first && (events->count >= TCI_MCP_EVENTS_MAX ||
                             events->bytes + length > TCI_MCP_EVENT_BYTES_MAX))
        drop_first(session);
}

/* false: it would be larger than what any other token has kept, and this one has nothing else. */
static bool make_room_of_all(struct tci_mcp_http_session *session, size_t length)
{
    struct tci_mcp_http *http = session->http;

    while (is_full(http, length)) {
        int greediest = tci_mcp_share_greediest(&http->shares, TCI_MCP_SHARE_EVENTS, session->token,
                                                length);
        struct tci_mcp_http_session *fullest = tci_mcp_sessions_fullest(http, greediest);
        size_t before = fullest ? fullest->events.bytes : 0;
        if (!fullest)
            return false;
        while (is_full(http, length) && fullest->events.first &&
               before - fullest->events.bytes < drop_bytes)
            drop_first(fullest);
    }
    return true;
}

uint64_t tci_mcp_events_add(struct tci_mcp_stream *stream, const char *text, size_t length)
{
    struct tci_mcp_http_session *session = stream->session;
    struct tci_mcp_events *events = &session->events;
    struct tci_mcp_event *event = NULL;
    uint64_t number = ++events->newest;

    /* Counted first: a stream of which nothing is kept would be freed below us. */
    stream->kept++;
    make_room_here(session, length);
    if (make_room_of_all(session, length))
        event = malloc(sizeof *event + length + 1);
    if (!event) {
        stream->kept--;
        stream->lost = number;
        return number;
    }
    *event = (struct tci_mcp_event){ .number = number, .stream = stream, .length = length };
    memcpy(event->text, text, length);
    event->text[length] = '\0';
    if (events->last)
        events->last->next = event;
    else
        events->first = event;
    events->last = event;
    events->count++;
    events->bytes += length;
    tci_mcp_share_change(&session->http->shares, TCI_MCP_SHARE_EVENTS, session->token, 0, length);
    return number;
}

void tci_mcp_events_free(struct tci_mcp_http_session *session)
{
    while (session->events.first)
        drop_first(session);
}
