/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of a channel share. */
#ifndef TCI_MCP_CHANNEL_INTERNAL_H
#define TCI_MCP_CHANNEL_INTERNAL_H

#include <event2/event.h>
#include "mcp/channel.h"

/* A message that waits for the peer. */
struct tci_mcp_waiting {
    struct tci_mcp_waiting *next;
    size_t length, written;
    char *given; /* malloc'd; NULL: the text stands behind this */
    const char *text;
    char own[];
};

struct tci_mcp_channel {
    const struct tci_mcp_channel_calls *calls;
    void *context;
    size_t maximum;
    unsigned inside; /* callbacks */
    bool freed;

    int in;
    struct event *readable;
    bool is_file; /* which has always something, and which epoll does not take */
    bool paused, full, input_over, skipping;
    char *buffer;
    size_t length, seen, capacity; /* `seen`: without a line break */

    int out;
    int own_out;   /* opened anew; -1: `out` itself */
    int old_flags; /* to be set again; -1: not changed */
    bool is_socket, output_over;
    int output_error;
    struct event *writable, *gone;
    int gone_fd;
    struct tci_mcp_waiting *first, **last;
    size_t waiting;
};

/* channel.c: around callbacks: whoever is called may free the channel. */
void tci_mcp_channel_enter(struct tci_mcp_channel *channel);
void tci_mcp_channel_leave(struct tci_mcp_channel *channel);

/* channel_read.c */
void tci_mcp_channel_update_reading(struct tci_mcp_channel *channel);
void tci_mcp_channel_readable(evutil_socket_t fd, short what, void *context);

/* channel_write.c */
void tci_mcp_channel_break(struct tci_mcp_channel *channel, int error);
void tci_mcp_channel_drop(struct tci_mcp_channel *channel);
void tci_mcp_channel_writable(evutil_socket_t fd, short what, void *context);

#endif
