/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: messages as lines over two descriptors: MCP's stdio transport, from either side.
 * Trusts nothing about the peer: a line is bounded, and so is what waits for a peer that does not
 * read; neither can block the loop.
 */
#ifndef TCI_MCP_CHANNEL_H
#define TCI_MCP_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/error.h"
#include "mcp/loop.h"

enum {
    /* Bytes that wait for the peer; one message may be larger. */
    TCI_MCP_QUEUE_MAX = 64 * 1024 * 1024,
    /* Above this nothing more is read from it. */
    TCI_MCP_QUEUE_PAUSE = 16 * 1024 * 1024,
};

/* All in the loop's thread; each may free the channel. Any may be NULL but `line`. */
struct tci_mcp_channel_calls {
    /* One line without its end. Empty ones are left out. */
    void (*line)(void *context, const char *text, size_t length);
    /* A line is longer than the maximum: it is skipped to its end. */
    void (*too_long)(void *context);
    /* The input is over. `error`: an errno; 0: its end. */
    void (*ended)(void *context, int error);
    /* The peer does not take anything any more; what waits for it is dropped. `error`: an errno
     * (EPIPE: it is gone); ENOBUFS: it does not read, and too much waits. Never called by
     * tci_mcp_channel_send. */
    void (*broken)(void *context, int error);
    /* Everything that waited has been written. */
    void (*flushed)(void *context);
};

/* Of lines with at most `maximum` bytes. `in` or `out` may be -1: none. They stay the caller's,
 * and must stay open until tci_mcp_channel_free. */
struct tci_mcp_channel;
int tci_mcp_channel_new(struct tci_mcp_loop *loop, int in, int out, size_t maximum,
                        const struct tci_mcp_channel_calls *calls, void *context,
                        struct tci_mcp_channel **ret, struct tc_error *reterr) tci_must_check;
void tci_mcp_channel_free(struct tci_mcp_channel *channel);

/* Sends the text and a line break; now, as far as it goes. */
void tci_mcp_channel_send(struct tci_mcp_channel *channel, const char *text, size_t length);
/* The same, without a copy of what has to wait: takes what is in the buffer. */
void tci_mcp_channel_give(struct tci_mcp_channel *channel, struct tci_buf *text);
/* At the end, after the loop: waits for the peer to take what waits for it, as long as it does. NULL: nothing. */
void tci_mcp_channel_finish(struct tci_mcp_channel *channel);
/* Bytes that wait. */
size_t tci_mcp_channel_waiting(const struct tci_mcp_channel *channel);
/* Reads on, or does not. At first it reads. */
void tci_mcp_channel_pause(struct tci_mcp_channel *channel, bool pause);

#endif
