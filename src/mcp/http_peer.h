/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what http_peer.c and http_reply.c share of a connection. */
#ifndef TCI_MCP_HTTP_PEER_H
#define TCI_MCP_HTTP_PEER_H

#include "mcp/http.h"

enum { TCI_MCP_HEAD_SECONDS = 10 }; /* for a whole head, and for a stranger's first one */

/* 0: none. */
void tci_mcp_peer_deadline(struct tci_mcp_peer *peer, int seconds);
/* Is freed soon; until then nothing is sent or received. */
void tci_mcp_peer_gone(struct tci_mcp_peer *peer);
/* Its request is answered: waits for the next one, or goes. */
void tci_mcp_peer_next(struct tci_mcp_peer *peer);
/* Goes when it has all that it was sent. */
void tci_mcp_peer_leave(struct tci_mcp_peer *peer);
/* All that it was sent is with the kernel, and it is to go. */
void tci_mcp_peer_flushed(struct tci_mcp_peer *peer);

/* http_receive.c: the callback of its read event. */
void tci_mcp_peer_readable(int fd, short what, void *context);
/* Has it sent something that was not received yet? */
bool tci_mcp_peer_has_sent(const struct tci_mcp_peer *peer);

/* http_share.c: it has shown a good token (or none is asked for), and its head says which. Another one may
 * have to go for it. */
void tci_mcp_peer_is_known(struct tci_mcp_peer *peer);
/* Before something is added: a reader that lets too much wait is hung up on. Its events are kept, it may come
 * back for them. */
bool tci_mcp_peer_has_room(struct tci_mcp_peer *peer, size_t length);
/* What waits for it has changed. */
void tci_mcp_peer_count(struct tci_mcp_peer *peer);
/* Its body has grown: false if it has to go, because there is no room for the bodies of all. Another one may have to
 * go for it. */
bool tci_mcp_peer_may_send(struct tci_mcp_peer *peer);
/* It takes nothing of its token's share any more; what waits for it is thrown away. */
void tci_mcp_peer_uncount(struct tci_mcp_peer *peer);

/* http_reply.c */
void tci_mcp_peer_flush(struct tci_mcp_peer *peer);
void tci_mcp_peer_continue(struct tci_mcp_peer *peer); /* 100: send the body */

#endif
