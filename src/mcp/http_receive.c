/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a connection to the HTTP server receives: one request after the other.
 * Trusts: nothing that comes in. Attacks: slow heads and bodies (a deadline for the whole of each, not for a
 * pause in it), endless heads, bodies without an end, requests sent ahead.
 */
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include "mcp/http_peer.h"

enum {
    body_seconds = 30, /* for a whole body */
    drain_max = 32 * 1024 * 1024,
    /* Framing of chunks may at most double a message. */
    raw_max = 2 * TCI_MCP_MESSAGE_MAX + 65536,
};

static void consume(struct tci_mcp_peer *peer, size_t length)
{
    peer->in.length -= length;
    memmove(peer->in.data, peer->in.data + length, peer->in.length);
    peer->searched = 0;
}

/* Where the head ends: behind the first empty line; 0: not yet. Looks at no byte twice. */
static size_t find_head_end(struct tci_mcp_peer *peer)
{
    const char *data = peer->in.data;

    for (size_t i = peer->searched; i < peer->in.length; i++) {
        if (data[i] != '\n')
            continue;
        if ((i >= 1 && data[i - 1] == '\n') ||
            (i >= 2 && data[i - 1] == '\r' && data[i - 2] == '\n'))
            return i + 1;
    }
    peer->searched = peer->in.length;
    return 0;
}

static void refuse(struct tci_mcp_peer *peer, int status, const char *message)
{
    tci_mcp_peer_refuse(peer, &(struct tci_mcp_refusal){ .status = status,
                                                         .code = TCI_MCP_INVALID_REQUEST,
                                                         .message = message,
                                                         .hang_up = true });
}

/* true: there may be more to do. */
static bool take_head(struct tci_mcp_peer *peer)
{
    size_t length;

    /* One empty line before a request is allowed; clients of old send it behind a body. */
    if (peer->in.length >= 2 && peer->searched == 0 && memcmp(peer->in.data, "\r\n", 2) == 0)
        consume(peer, 2);
    length = find_head_end(peer);
    if (length > TCI_MCP_HEAD_MAX || (length == 0 && peer->in.length > TCI_MCP_HEAD_MAX)) {
        refuse(peer, 431, "the head of the request is larger than 32 KiB");
        return false;
    }
    if (length == 0)
        return false;
    if (!tci_mcp_http_head(peer, peer->in.data, length)) {
        consume(peer, length);
        return true;
    }
    consume(peer, length);
    tci_mcp_peer_is_known(peer);
    if (peer->state == TCI_MCP_PEER_GONE)
        return false;
    peer->raw = 0;
    tci_mcp_peer_drop_body(peer);
    tci_http_body_start(&peer->framing, &peer->head.framing);
    peer->state = TCI_MCP_PEER_BODY;
    tci_mcp_peer_deadline(peer, body_seconds);
    if (peer->head.wants_continue && peer->in.length == 0)
        tci_mcp_peer_continue(peer);
    return true;
}

/* One run of content, or one byte of framing. *ret_used: bytes of `in` from `start`. */
static enum tci_http_body_says take_part(struct tci_mcp_peer *peer, size_t start, size_t *ret_used,
                                         const char **problem)
{
    uint64_t content = tci_http_body_content(&peer->framing);
    size_t there = peer->in.length - start;
    size_t part = content == 0 ? (there > 0 ? 1 : 0) : content < there ? (size_t)content : there;

    if (content > 0)
        tci_buf_append(&peer->body, peer->in.data + start, part);
    return tci_http_body_feed(&peer->framing, (const uint8_t *)peer->in.data + start, part,
                              ret_used, problem);
}

static bool take_body(struct tci_mcp_peer *peer)
{
    enum tci_http_body_says says;
    const char *problem = NULL;
    size_t at = 0, used;

    do {
        says = take_part(peer, at, &used, &problem);
        at += used;
    } while (says == TCI_HTTP_BODY_MORE && at < peer->in.length);
    peer->raw += at;
    consume(peer, at);
    if (says == TCI_HTTP_BODY_BAD)
        refuse(peer, 400, "the chunks of the body are not well-formed");
    else if (peer->body.too_large || peer->raw > raw_max)
        refuse(peer, 413, "the message is larger than 4 MiB");
    else if (!tci_mcp_peer_may_send(peer))
        refuse(peer, 503,
               "too much is being sent at the same time: send fewer large messages at once");
    else if (peer->body.no_memory)
        refuse(peer, 503, "there is no memory for this message");
    else if (says == TCI_HTTP_BODY_DONE) {
        peer->state = TCI_MCP_PEER_WAITS;
        tci_mcp_peer_deadline(peer, 0);
        tci_mcp_http_request(peer);
    } else
        return false;
    return true;
}

/* Requests that are whole, one after the other: the next is looked at when its forerunner is answered. */
static void advance(struct tci_mcp_peer *peer)
{
    bool more = true;

    if (peer->advancing)
        return;
    peer->advancing = true;
    while (more) {
        if (peer->state == TCI_MCP_PEER_HEAD && peer->in.length > 0)
            more = take_head(peer);
        else if (peer->state == TCI_MCP_PEER_BODY)
            more = take_body(peer);
        else
            more = false;
    }
    peer->advancing = false;
    if (peer->half_closed && (peer->state == TCI_MCP_PEER_HEAD || peer->state == TCI_MCP_PEER_BODY))
        tci_mcp_peer_leave(peer);
}

/* It sends no more. Somebody who waits for an answer may still read it; somebody who listens does not. */
static void hear_end(struct tci_mcp_peer *peer)
{
    peer->half_closed = true;
    event_del(peer->read);
    if (peer->state == TCI_MCP_PEER_HEAD || peer->state == TCI_MCP_PEER_BODY)
        tci_mcp_peer_leave(peer);
    else if (peer->state == TCI_MCP_PEER_DRAIN ||
             (peer->state == TCI_MCP_PEER_LISTENS && peer->head.method == TCI_MCP_GET))
        tci_mcp_peer_gone(peer);
}

/* Who waits for an answer sends nothing; what it sends ahead stays with the kernel. */
static void look_for_end(struct tci_mcp_peer *peer)
{
    char byte;
    ssize_t r = recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (r == 0)
        hear_end(peer);
    else if (r > 0)
        event_del(peer->read);
    else if (errno != EAGAIN && errno != EINTR)
        tci_mcp_peer_gone(peer);
}

bool tci_mcp_peer_has_sent(const struct tci_mcp_peer *peer)
{
    char byte;
    return !peer->half_closed && recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void drain(struct tci_mcp_peer *peer, size_t length)
{
    peer->drained += length;
    if (peer->drained > drain_max)
        tci_mcp_peer_gone(peer);
}

static void receive(struct tci_mcp_peer *peer)
{
    struct tci_mcp_http *http = peer->http;
    ssize_t r = recv(peer->fd, http->scratch, sizeof http->scratch, MSG_DONTWAIT);

    if (r == 0) {
        hear_end(peer);
        return;
    }
    if (r < 0) {
        if (errno != EAGAIN && errno != EINTR)
            tci_mcp_peer_gone(peer);
        return;
    }
    if (peer->state == TCI_MCP_PEER_DRAIN) {
        drain(peer, (size_t)r);
        return;
    }
    /* The deadline of a head begins with its first byte and is not moved by the next ones. */
    if (peer->state == TCI_MCP_PEER_HEAD && peer->in.length == 0 && peer->known)
        tci_mcp_peer_deadline(peer, TCI_MCP_HEAD_SECONDS);
    tci_buf_append(&peer->in, http->scratch, (size_t)r);
    if (peer->in.no_memory || peer->in.too_large)
        tci_mcp_peer_gone(peer);
    else
        advance(peer);
}

void tci_mcp_peer_readable(int fd, short what, void *context)
{
    struct tci_mcp_peer *peer = context;

    (void)fd, (void)what;
    if (peer->state == TCI_MCP_PEER_HEAD && peer->in.length > 0)
        advance(peer); /* what was sent ahead */
    if (peer->half_closed)
        return;
    if (peer->state == TCI_MCP_PEER_HEAD || peer->state == TCI_MCP_PEER_BODY ||
        peer->state == TCI_MCP_PEER_DRAIN)
        receive(peer);
    else if (peer->state == TCI_MCP_PEER_WAITS || peer->state == TCI_MCP_PEER_LISTENS)
        look_for_end(peer);
    else
        event_del(peer->read);
}
