/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: an MCP server as a child process, and a client that does no more than it must. */
#ifndef BENCH_MCP_PEER_H
#define BENCH_MCP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mcp_peer {
    pid_t pid;
    int in, out;   /* its stdin and stdout; over HTTP: `out` is the connection, and `in` too */
    int kept;      /* its stderr, over HTTP: it must not find it closed */
    unsigned last; /* id of the last request */
    char session[128];
    char port[8];
    size_t length; /* of what is in `bytes` and not taken yet */
    char bytes[65536];
};

/* Starts it and shakes hands. 0, or -1. */
int mcp_peer_stdio(const char *const *words, struct mcp_peer *ret);
int mcp_peer_http(const char *const *words, struct mcp_peer *ret);
void mcp_peer_close(struct mcp_peer *peer);

/* tools/call of `tool`; returns when the answer is there. -1: no answer, or one without "isError":false
 * and with an error in it. */
int mcp_peer_call(struct mcp_peer *peer, const char *tool);
/* Over stdio: sends without waiting; waits for any one answer. */
int mcp_peer_post(struct mcp_peer *peer, const char *tool);
int mcp_peer_answer(struct mcp_peer *peer);

#endif
