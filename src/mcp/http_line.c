/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the line in which large messages wait to be read. A worker reads them, one at a time, and tokens take turns;
 * small ones are read by the loop, at once.
 * The attack: somebody who sends messages that take long to read (they are bounded, but there may be hundreds of
 * connections), so that nobody else gets even a ping through.
 */
#include <stdlib.h>
#include "mcp/http.h"

enum { small_max = 4096 }; /* bytes of a message that is read at once */

struct tci_mcp_line_reading {
    struct tci_mcp_post post;
    struct tci_mcp_http *http;
    struct tci_mcp_peer *peer; /* the loop's; NULL: it is gone */
    struct tci_buf body;       /* the worker's, as all that follows */
    struct tci_mcp_message message;
    int r;
};

/* Who came first, of those whose turn it is; NULL: nobody waits. */
static struct tci_mcp_peer *next_peer(const struct tci_mcp_http *http)
{
    struct tci_mcp_peer *first = NULL, *other = NULL;
    for (struct tci_mcp_peer *peer = http->peers; peer; peer = peer->next) {
        if (!peer->line || peer->state != TCI_MCP_PEER_WAITS)
            continue;
        if (!first || peer->line < first->line)
            first = peer;
        if (peer->token != http->line_token && (!other || peer->line < other->line))
            other = peer;
    }
    return other ? other : first;
}

static void begin_next(struct tci_mcp_http *http);

/* In the loop's thread. */
static void finish(void *context)
{
    struct tci_mcp_line_reading *reading = context;
    struct tci_mcp_http *http = reading->http;
    struct tci_mcp_peer *peer = reading->peer;

    http->reading = NULL;
    if (peer && peer->line && peer->state == TCI_MCP_PEER_WAITS) {
        peer->line = 0;
        tci_mcp_http_take(peer, &reading->message, reading->r);
    }
    tci_mcp_message_free(&reading->message);
    tci_mcp_loop_used(http->server->loop, reading->body.length);
    tci_buf_free(&reading->body);
    free(reading);
    begin_next(http);
}

/* In a worker. */
static void read_message(void *context)
{
    struct tci_mcp_line_reading *reading = context;
    struct tci_mcp_loop *loop = reading->http->server->loop;
    reading->r = tci_mcp_read(reading->body.data, reading->body.length, &reading->message, NULL);
    reading->post = (struct tci_mcp_post){ .task = finish, .context = reading };
    tci_mcp_loop_post(loop, &reading->post);
}

/* false: there is no memory, or no thread. */
static bool begin(struct tci_mcp_peer *peer)
{
    struct tci_mcp_http *http = peer->http;
    struct tci_mcp_line_reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return false;
    reading->http = http;
    reading->peer = peer;
    reading->post = (struct tci_mcp_post){ .task = read_message, .context = reading };
    reading->body = peer->body;
    if (tci_mcp_loop_work(http->server->loop, &reading->post, NULL) < 0) {
        free(reading);
        return false;
    }
    peer->body = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_MESSAGE_MAX);
    tci_mcp_peer_drop_body(peer); /* is not counted any more */
    http->reading = reading;
    return true;
}

static void begin_next(struct tci_mcp_http *http)
{
    struct tci_mcp_peer *peer;
    while (!http->reading && (peer = next_peer(http))) {
        http->line_token = peer->token;
        if (begin(peer))
            return;
        peer->line = 0;
        tci_mcp_http_read(peer);
    }
}

bool tci_mcp_line_add(struct tci_mcp_peer *peer)
{
    if (peer->body.length <= small_max)
        return false;
    peer->line = ++peer->http->line_last;
    begin_next(peer->http);
    return true;
}

void tci_mcp_line_leave(const struct tci_mcp_peer *peer)
{
    struct tci_mcp_line_reading *reading = peer->http->reading;
    if (reading && reading->peer == peer)
        reading->peer = NULL;
}
