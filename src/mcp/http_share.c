/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how much each token has of what is bounded for all together, and who has to go when there are too many
 * connections, too much waits for slow readers, or too much was sent by slow writers. (Sessions and kept events:
 * http_session.c, http_events.c.)
 * The attack: somebody with a token who opens connections, or asks for large answers and does not read, or sends all
 * but the end of large messages, until nobody else gets in or all memory is taken. What goes is always of the token that has most of it, and who
 * has a connection and reads gets its answers.
 * Invariant: a measure of a token is the sum over what it has now; who is gone has nothing.
 */
#include "mcp/http.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include "mcp/http_peer.h"

/* ---- the table ------------------------------------------------------------------------------ */

int tci_mcp_shares_init(struct tci_mcp_shares *shares, size_t tokens, struct tc_error *reterr)
{
    *shares = (struct tci_mcp_shares){ .tokens = calloc(tokens + 1, sizeof *shares->tokens),
                                       .count = tokens + 1 };
    return shares->tokens ? 0 : tci_error_no_memory(reterr);
}

void tci_mcp_shares_free(struct tci_mcp_shares *shares)
{
    free(shares->tokens);
    *shares = (struct tci_mcp_shares){ 0 };
}

void tci_mcp_share_change(struct tci_mcp_shares *shares, enum tci_mcp_measure measure, int token,
                          size_t before, size_t now)
{
    size_t *of = &shares->tokens[token + 1].of[measure];
    *of = *of - before + now;
    shares->all.of[measure] = shares->all.of[measure] - before + now;
}

size_t tci_mcp_share_of(const struct tci_mcp_shares *shares, enum tci_mcp_measure measure,
                        int token)
{
    return shares->tokens[token + 1].of[measure];
}

int tci_mcp_share_greediest(const struct tci_mcp_shares *shares, enum tci_mcp_measure measure,
                            int token, size_t more)
{
    int greediest = token;
    size_t most = tci_mcp_share_of(shares, measure, token) + more;

    for (size_t i = 0; i < shares->count; i++)
        if (shares->tokens[i].of[measure] > most) {
            most = shares->tokens[i].of[measure];
            greediest = (int)i - 1;
        }
    return greediest;
}

/* ---- of a connection ------------------------------------------------------------------------ */

static void change(struct tci_mcp_peer *peer, enum tci_mcp_measure measure, size_t before,
                   size_t now)
{
    tci_mcp_share_change(&peer->http->shares, measure, peer->token, before, now);
}

void tci_mcp_peer_count(struct tci_mcp_peer *peer)
{
    size_t length = evbuffer_get_length(peer->out);
    change(peer, TCI_MCP_SHARE_WAITING, peer->counted, length);
    peer->counted = length;
}

static void count_body(struct tci_mcp_peer *peer)
{
    change(peer, TCI_MCP_SHARE_BODIES, peer->body_counted, peer->body.length);
    peer->body_counted = peer->body.length;
}

void tci_mcp_peer_drop_body(struct tci_mcp_peer *peer)
{
    tci_buf_free(&peer->body);
    peer->body = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_MESSAGE_MAX);
    count_body(peer);
}

void tci_mcp_peer_uncount(struct tci_mcp_peer *peer)
{
    change(peer, TCI_MCP_SHARE_PEERS, peer->known, 0);
    peer->known = false;
    change(peer, TCI_MCP_SHARE_WAITING, peer->counted, 0);
    peer->counted = 0;
    tci_mcp_peer_drop_body(peer);
    if (peer->out)
        (void)evbuffer_drain(peer->out, evbuffer_get_length(peer->out));
}

/* Each request may show another token. */
static void take_token(struct tci_mcp_peer *peer)
{
    change(peer, TCI_MCP_SHARE_PEERS, peer->known, 0);
    change(peer, TCI_MCP_SHARE_WAITING, peer->counted, 0);
    change(peer, TCI_MCP_SHARE_BODIES, peer->body_counted, 0);
    peer->token = peer->head.token;
    peer->known = true;
    change(peer, TCI_MCP_SHARE_PEERS, 0, 1);
    change(peer, TCI_MCP_SHARE_WAITING, 0, peer->counted);
    change(peer, TCI_MCP_SHARE_BODIES, 0, peer->body_counted);
}

/* ---- connections ---------------------------------------------------------------------------- */

/* So many are kept for those who have not shown a token yet. */
static size_t reserve(const struct tci_mcp_http *http)
{
    return http->peers_max / 8 < 16 ? http->peers_max / 8 : 16;
}

/* What it has missed is kept, and its calls go on: it may come back. */
static struct tci_mcp_peer *oldest_of(const struct tci_mcp_http *http, int token,
                                      const struct tci_mcp_peer *newcomer)
{
    struct tci_mcp_peer *found = NULL;
    for (struct tci_mcp_peer *peer = http->oldest; peer; peer = peer->previous) {
        if (!peer->known || peer->token != token || peer == newcomer)
            continue;
        /* Who only listens, or says nothing, loses least. */
        if (peer->state == TCI_MCP_PEER_HEAD || peer->state == TCI_MCP_PEER_LISTENS)
            return peer;
        if (!found)
            found = peer;
    }
    return found;
}

void tci_mcp_peer_is_known(struct tci_mcp_peer *peer)
{
    const struct tci_mcp_http *http = peer->http;
    struct tci_mcp_peer *oldest;
    bool was_known = peer->known;

    take_token(peer);
    if (was_known || http->shares.all.of[TCI_MCP_SHARE_PEERS] <= http->peers_max - reserve(http))
        return;
    oldest = oldest_of(
        http, tci_mcp_share_greediest(&http->shares, TCI_MCP_SHARE_PEERS, peer->token, 0), peer);
    tci_mcp_peer_gone(oldest ? oldest : peer);
}

/* ---- what waits ----------------------------------------------------------------------------- */

static struct tci_mcp_peer *slowest_of(const struct tci_mcp_http *http, int token)
{
    struct tci_mcp_peer *slowest = NULL;
    for (struct tci_mcp_peer *peer = http->oldest; peer; peer = peer->previous)
        if (peer->token == token && peer->counted > (slowest ? slowest->counted : 0))
            slowest = peer;
    return slowest;
}

bool tci_mcp_peer_has_room(struct tci_mcp_peer *peer, size_t length)
{
    const struct tci_mcp_http *http = peer->http;
    const struct tci_mcp_shares *shares = &http->shares;

    if (peer->counted > TCI_MCP_PEER_QUEUE_MAX)
        tci_mcp_peer_gone(peer);
    /* What comes now is not counted for who gets it: it may well be read at once. */
    while (peer->state != TCI_MCP_PEER_GONE && shares->all.of[TCI_MCP_SHARE_WAITING] > 0 &&
           shares->all.of[TCI_MCP_SHARE_WAITING] + length > TCI_MCP_PEER_QUEUES_MAX) {
        struct tci_mcp_peer *slowest = slowest_of(
            http, tci_mcp_share_greediest(shares, TCI_MCP_SHARE_WAITING, peer->token, 0));
        tci_mcp_peer_gone(slowest ? slowest : peer);
    }
    return peer->state != TCI_MCP_PEER_GONE;
}

/* ---- what is received ----------------------------------------------------------------------- */

static struct tci_mcp_peer *largest_of(const struct tci_mcp_http *http, int token,
                                       enum tci_mcp_peer_state state)
{
    struct tci_mcp_peer *largest = NULL;
    for (struct tci_mcp_peer *peer = http->oldest; peer; peer = peer->previous)
        if (peer->token == token && peer->state == state &&
            peer->body_counted > (largest ? largest->body_counted : 0))
            largest = peer;
    return largest;
}

bool tci_mcp_peer_may_send(struct tci_mcp_peer *peer)
{
    const struct tci_mcp_http *http = peer->http;
    const struct tci_mcp_shares *shares = &http->shares;

    count_body(peer);
    while (shares->all.of[TCI_MCP_SHARE_BODIES] > TCI_MCP_BODIES_MAX) {
        int token = tci_mcp_share_greediest(shares, TCI_MCP_SHARE_BODIES, peer->token, 0);
        struct tci_mcp_peer *largest = largest_of(http, token, TCI_MCP_PEER_BODY);
        /* None is unfinished: then one that is whole and waits to be read. */
        if (!largest)
            largest = largest_of(http, token, TCI_MCP_PEER_WAITS);
        if (!largest || largest == peer)
            return false;
        tci_mcp_peer_gone(largest);
    }
    return true;
}
