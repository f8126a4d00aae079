/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the HTTP server sends: heads, answers, events, and the queue before a slow reader.
 * Invariants: no CORS field, ever: no web page is meant to read this. What is queued is bounded for each
 * reader and for all (http_share.c). An event is one message; a line break in it cannot end it.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "mcp/http_peer.h"

enum { stall_seconds = 30, vectors = 16 };

/* ---- sending -------------------------------------------------------------------------------- */

/* false: the kernel takes no more now, or the peer is gone. */
static bool send_some(struct tci_mcp_peer *peer)
{
    static const struct timeval stall = { .tv_sec = stall_seconds };
    struct evbuffer_iovec parts[vectors];
    struct iovec list[vectors];
    int count = evbuffer_peek(peer->out, -1, NULL, parts, vectors);
    struct msghdr message = { .msg_iov = list };
    ssize_t sent;

    if (count > vectors)
        count = vectors;
    for (int i = 0; i < count; i++)
        list[i] = (struct iovec){ parts[i].iov_base, parts[i].iov_len };
    message.msg_iovlen = (size_t)count;
    sent = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
        evbuffer_drain(peer->out, (size_t)sent);
        return true;
    }
    if (errno == EINTR)
        return true;
    if (errno == EAGAIN)
        event_add(peer->write, &stall);
    else
        tci_mcp_peer_gone(peer);
    return false;
}

void tci_mcp_peer_flush(struct tci_mcp_peer *peer)
{
    bool waits;

    if (peer->state == TCI_MCP_PEER_GONE)
        return;
    waits = event_pending(peer->write, EV_WRITE, NULL);
    while (!waits && evbuffer_get_length(peer->out) > 0)
        waits = !send_some(peer);
    tci_mcp_peer_count(peer);
    if (peer->counted == 0 && peer->state == TCI_MCP_PEER_FLUSH)
        tci_mcp_peer_flushed(peer);
}

static void add(struct tci_mcp_peer *peer, const char *text, size_t length)
{
    if (evbuffer_add(peer->out, text, length) < 0)
        tci_mcp_peer_gone(peer);
}

static void add_text(struct tci_mcp_peer *peer, const char *text)
{
    add(peer, text, strlen(text));
}

/* ---- whole answers -------------------------------------------------------------------------- */

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        { 200, "OK" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 409, "Conflict" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 503, "Service Unavailable" },
    };
    for (size_t i = 0; i < tci_array_size(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Unknown";
}

static const char *connection(const struct tci_mcp_peer *peer)
{
    return peer->head.wants_close || peer->http->ending ? "Connection: close\r\n" : "";
}

void tci_mcp_peer_reply(struct tci_mcp_peer *peer, int status, const char *fields, const char *type,
                        const char *body, size_t length)
{
    char head[512], of_body[48] = "";
    int size;

    if (status != 204) /* which has none, by its meaning */
        (void)snprintf(of_body, sizeof of_body, "Content-Length: %zu\r\n", length);
    size = snprintf(head, sizeof head,
                    "HTTP/1.1 %d %s\r\n%s%s%s%s"
                    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%s\r\n",
                    status, reason(status), type ? "Content-Type: " : "", type ? type : "",
                    type ? "\r\n" : "", of_body, fields, connection(peer));
    if (tci_mcp_peer_has_room(peer, (size_t)size + length)) {
        add(peer, head, (size_t)size);
        add(peer, body, length);
        tci_mcp_peer_flush(peer);
    }
    tci_mcp_peer_next(peer);
}

void tci_mcp_peer_refuse(struct tci_mcp_peer *peer, const struct tci_mcp_refusal *refusal)
{
    struct tci_buf body = TCI_BUF_INIT(4096);
    const char *fields = "";

    if (refusal->status == 401)
        fields = "WWW-Authenticate: Bearer realm=\"toolcage\"\r\n";
    else if (refusal->status == 405)
        fields = "Allow: GET, POST, DELETE\r\n";
    else if (refusal->status == 503)
        fields = "Retry-After: 1\r\n";
    peer->has_rest = peer->state == TCI_MCP_PEER_BODY ||
                     (peer->state == TCI_MCP_PEER_HEAD && peer->head.has_body);
    /* A body that was not read would be taken for the next request. */
    if (refusal->hang_up || peer->has_rest ||
        (peer->state == TCI_MCP_PEER_HEAD && refusal->status == 400))
        peer->head.wants_close = true;
    tci_mcp_write_error(&body, NULL, refusal->code, refusal->message, NULL);
    tci_mcp_peer_reply(peer, refusal->status, fields, "application/json",
                       body.data ? body.data : "", body.data ? body.length : 0);
    tci_buf_free(&body);
}

void tci_mcp_peer_continue(struct tci_mcp_peer *peer)
{
    add_text(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    tci_mcp_peer_flush(peer);
}

/* ---- events --------------------------------------------------------------------------------- */

void tci_mcp_peer_events_begin(struct tci_mcp_peer *peer)
{
    peer->state = peer->state == TCI_MCP_PEER_GONE ? TCI_MCP_PEER_GONE : TCI_MCP_PEER_LISTENS;
    if (!tci_mcp_peer_has_room(peer, 0))
        return;
    /* Without chunks, the end of the connection is the end of the stream. */
    if (peer->head.is_1_0)
        peer->head.wants_close = true;
    add_text(peer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                   "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n");
    if (!peer->head.is_1_0)
        add_text(peer, "Transfer-Encoding: chunked\r\n");
    add_text(peer, connection(peer));
    add_text(peer, "\r\n");
    tci_mcp_peer_flush(peer);
}

static void add_chunk(struct tci_mcp_peer *peer, const char *head, const char *text, size_t length,
                      const char *tail)
{
    char size[32];

    if (!tci_mcp_peer_has_room(peer, length))
        return;
    snprintf(size, sizeof size, "%zx\r\n", strlen(head) + length + strlen(tail));
    if (!peer->head.is_1_0)
        add_text(peer, size);
    add_text(peer, head);
    add(peer, text, length);
    add_text(peer, tail);
    if (!peer->head.is_1_0)
        add_text(peer, "\r\n");
    tci_mcp_peer_flush(peer);
}

void tci_mcp_peer_event(struct tci_mcp_peer *peer, uint64_t stream, uint64_t number,
                        const char *text, size_t length)
{
    char head[96];

    snprintf(head, sizeof head, "id: %" PRIu64 "-%" PRIu64 "\nevent: message\ndata: ", stream,
             number);
    add_chunk(peer, head, text, length, "\n\n");
}

void tci_mcp_peer_event_first(struct tci_mcp_peer *peer, uint64_t stream, uint64_t number)
{
    char text[96];
    snprintf(text, sizeof text, "id: %" PRIu64 "-%" PRIu64 "\nretry: 1000\ndata: \n\n", stream,
             number);
    add_chunk(peer, text, "", 0, "");
}

void tci_mcp_peer_still_here(struct tci_mcp_peer *peer)
{
    add_chunk(peer, ": still here\n\n", "", 0, "");
}

void tci_mcp_peer_events_end(struct tci_mcp_peer *peer)
{
    if (peer->state != TCI_MCP_PEER_GONE && !peer->head.is_1_0)
        add_text(peer, "0\r\n\r\n");
    tci_mcp_peer_flush(peer);
    tci_mcp_peer_next(peer);
}
