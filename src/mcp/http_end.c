/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the end of the HTTP server. Nobody listens any more when it begins.
 * Calls are killed; who waits for one is told so. What was sent, whole answers and streams of events, goes out
 * to its end, and then the connection is closed. Requests that still come are refused.
 * Attack: a reader that does not read, or a sender that does not end, and so keeps the server (and what its
 * owner wants to stop) from ending. All of them together get a few seconds.
 * Half an answer is never taken for a whole one: it lacks bytes of its length, or the last chunk.
 */
#include "mcp/http.h"

#include "mcp/http_peer.h"

enum { grace_ms = 3000 };

/* Those who had a request under way have their answer by now. */
static void dismiss(struct tci_mcp_peer *peer)
{
    static const struct tci_mcp_refusal ending = { .status = 503,
                                                   .code = TCI_MCP_BUSY,
                                                   .message = "the server is ending" };

    switch (peer->state) {
    case TCI_MCP_PEER_BODY:
        tci_mcp_peer_refuse(peer, &ending);
        break;
    case TCI_MCP_PEER_DRAIN:
        /* It has its answer, and sends nothing. */
        if (!tci_mcp_peer_has_sent(peer))
            tci_mcp_peer_gone(peer);
        break;
    case TCI_MCP_PEER_HEAD:
        if (peer->counted > 0 || peer->in.length > 0)
            tci_mcp_peer_leave(peer);
        else if (!tci_mcp_peer_has_sent(peer))
            tci_mcp_peer_gone(peer);
        /* Else its request is on the way, and is refused when it has been read. */
        break;
    case TCI_MCP_PEER_WAITS:
        if (peer->line) /* nobody has looked at its message yet */
            tci_mcp_peer_refuse(peer, &ending);
        else
            tci_mcp_peer_leave(peer);
        break;
    case TCI_MCP_PEER_LISTENS:
        tci_mcp_peer_leave(peer);
        break;
    case TCI_MCP_PEER_FLUSH:
    case TCI_MCP_PEER_GONE:
        break;
    }
}

void tci_mcp_http_end(struct tci_mcp_http *http, struct tci_mcp_loop *loop)
{
    http->ending = true;
    tci_mcp_sessions_close(http);
    for (struct tci_mcp_peer *peer = http->peers; peer; peer = peer->next)
        dismiss(peer);
    if (http->peers)
        tci_mcp_loop_run_for(loop, grace_ms);
}
