/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the life of a connection to the HTTP server. What it receives is http_receive.c's, what it is sent
 * http_reply.c's.
 * Attacks: readers that do not read, peers that vanish at any moment, many connections of somebody without a
 * token (theirs are the first to go).
 * Invariant: a peer is freed only by its own callbacks, and by accepting, which none of them calls, since a new
 * connection needs its place and its descriptor at once. Others mark it as gone.
 * Why not libevent's evhttp (2.1): it knows no deadline for a request as a whole, takes a request with both a length
 * and chunks, does not see a client leave while its answer is held back, and takes one that closed its half for
 * one that is gone.
 */
#include "mcp/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "mcp/http_peer.h"

enum { idle_seconds = 120, drain_seconds = 5 }; /* idle: between two requests of somebody known */

/* ---- life ----------------------------------------------------------------------------------- */

void tci_mcp_peer_deadline(struct tci_mcp_peer *peer, int seconds)
{
    struct timeval time = { .tv_sec = seconds };
    if (peer->state == TCI_MCP_PEER_GONE)
        return; /* its end is under way by the same event */
    event_del(peer->timer);
    if (seconds > 0)
        event_add(peer->timer, &time);
}

void tci_mcp_peer_gone(struct tci_mcp_peer *peer)
{
    peer->state = TCI_MCP_PEER_GONE;
    tci_mcp_peer_uncount(peer);
    event_del(peer->read);
    event_del(peer->write);
    event_active(peer->timer, EV_TIMEOUT, 0);
}

void tci_mcp_peer_free(struct tci_mcp_peer *peer)
{
    struct tci_mcp_http *http = peer->http;

    if (peer->stream)
        tci_mcp_stream_detach(peer->stream);
    tci_mcp_line_leave(peer);
    *(peer->next ? &peer->next->previous : &http->oldest) = peer->previous;
    *(peer->previous ? &peer->previous->next : &http->peers) = peer->next;
    http->peer_count--;
    tci_mcp_peer_uncount(peer);
    if (peer->read)
        event_free(peer->read);
    if (peer->write)
        event_free(peer->write);
    if (peer->timer)
        event_free(peer->timer);
    if (peer->out)
        evbuffer_free(peer->out);
    tci_buf_free(&peer->in);
    tci_close(peer->fd);
    free(peer);
    /* Nobody is left to wait for. */
    if (http->ending && !http->peers)
        tci_mcp_loop_stop(http->server->loop);
}

/* Goes when it has all that it was sent. A reader that stalls is noticed by the write event. */
void tci_mcp_peer_leave(struct tci_mcp_peer *peer)
{
    peer->state = TCI_MCP_PEER_FLUSH;
    tci_mcp_peer_drop_body(peer);
    event_del(peer->read);
    tci_mcp_peer_deadline(peer, 0);
    tci_mcp_peer_flush(peer);
}

/* ---- its events ------------------------------------------------------------------------------ */

static void on_writable(int fd, short what, void *context)
{
    struct tci_mcp_peer *peer = context;

    (void)fd;
    /* It has read nothing for a while: what it missed is kept, if it was an event. */
    if (what & EV_TIMEOUT)
        tci_mcp_peer_gone(peer);
    else
        tci_mcp_peer_flush(peer);
}

/* A deadline has passed, or it was marked as gone. Only who still reads its last answer may be idle for longer. */
static void on_time(int fd, short what, void *context)
{
    struct tci_mcp_peer *peer = context;

    (void)fd, (void)what;
    if (peer->state == TCI_MCP_PEER_HEAD && peer->known && peer->in.length == 0 &&
        peer->counted > 0)
        tci_mcp_peer_deadline(peer, idle_seconds);
    else
        tci_mcp_peer_free(peer);
}

/* ---- between requests ----------------------------------------------------------------------- */

void tci_mcp_peer_next(struct tci_mcp_peer *peer)
{
    peer->stream = NULL;
    tci_mcp_peer_drop_body(peer);
    if (peer->state == TCI_MCP_PEER_GONE)
        return;
    if (peer->head.wants_close || peer->http->ending ||
        (peer->half_closed && peer->in.length == 0)) {
        tci_mcp_peer_leave(peer);
        return;
    }
    peer->state = TCI_MCP_PEER_HEAD;
    tci_mcp_peer_deadline(peer, peer->known && peer->in.length == 0 ? idle_seconds
                                                                    : TCI_MCP_HEAD_SECONDS);
    if (!peer->half_closed)
        event_add(peer->read, NULL);
    if (peer->in.length > 0 && !peer->advancing)
        event_active(peer->read, EV_READ, 0);
}

/* Everything is out. The rest of what it sends must be read: else the kernel would reset the connection, and
 * our answer would be lost with it. At our own end nobody is waited for who has no rest to send. */
void tci_mcp_peer_flushed(struct tci_mcp_peer *peer)
{
    bool owes = !peer->http->ending || peer->has_rest || tci_mcp_peer_has_sent(peer);

    if (peer->half_closed || !owes || shutdown(peer->fd, SHUT_WR) < 0) {
        tci_mcp_peer_gone(peer);
        return;
    }
    peer->state = TCI_MCP_PEER_DRAIN;
    tci_mcp_peer_deadline(peer, drain_seconds);
    event_add(peer->read, NULL);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static bool is_stranger(const struct tci_mcp_peer *peer)
{
    return !peer->known || peer->state == TCI_MCP_PEER_DRAIN;
}

static bool is_between(const struct tci_mcp_peer *peer)
{
    return peer->state == TCI_MCP_PEER_HEAD && peer->in.length == 0 && peer->counted == 0;
}

/* Freed, not marked: the place is needed now. Below a callback of the listener only. */
static bool drop_oldest(struct tci_mcp_http *http, bool (*matches)(const struct tci_mcp_peer *peer))
{
    struct tci_mcp_peer *peer = http->oldest;

    while (peer && !matches(peer))
        peer = peer->previous;
    if (peer)
        tci_mcp_peer_free(peer);
    return peer != NULL;
}

/* All places are taken: the one that has been a stranger for longest gives up its own, or somebody who is
 * between two requests. */
static void make_place(struct tci_mcp_http *http)
{
    if (!drop_oldest(http, is_stranger))
        (void)drop_oldest(http, is_between);
}

int tci_mcp_peer_new(struct tci_mcp_http *http, int fd)
{
    static const int on = 1;
    struct tci_mcp_peer *peer;

    if (http->peer_count >= http->peers_max)
        make_place(http);
    peer = http->peer_count < http->peers_max ? calloc(1, sizeof *peer) : NULL;
    if (!peer) {
        tci_close(fd);
        return -1;
    }
    *peer = (struct tci_mcp_peer){ .http = http,
                                   .fd = fd,
                                   .token = -1,
                                   .next = http->peers,
                                   .in = TCI_BUF_INIT(TCI_MCP_HEAD_MAX + 2 * sizeof http->scratch),
                                   .body = TCI_BUF_INIT(TCI_MCP_MESSAGE_MAX) };
    *(http->peers ? &http->peers->previous : &http->oldest) = peer;
    http->peers = peer;
    http->peer_count++;
    peer->out = evbuffer_new();
    peer->read = event_new(http->base, fd, EV_READ | EV_PERSIST, tci_mcp_peer_readable, peer);
    peer->write = event_new(http->base, fd, EV_WRITE, on_writable, peer);
    peer->timer = event_new(http->base, -1, 0, on_time, peer);
    if (!peer->out || !peer->read || !peer->write || !peer->timer ||
        event_add(peer->read, NULL) < 0) {
        tci_mcp_peer_free(peer);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tci_mcp_peer_deadline(peer, TCI_MCP_HEAD_SECONDS);
    return 0;
}
