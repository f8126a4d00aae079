/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the lines of the peer. The input is read only when there is something, so it may block; its
 * flags are not touched: whoever started us may share it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "mcp/channel_internal.h"

enum { read_size = 64 * 1024, buffer_first = 16 * 1024 };

void tci_mcp_channel_update_reading(struct tci_mcp_channel *channel)
{
    bool read = !channel->paused && !channel->full && !channel->input_over;
    static const struct timeval now = { 0 };
    if (!channel->readable)
        return;
    if (!read)
        (void)event_del(channel->readable);
    else if (!event_pending(channel->readable, EV_READ | EV_TIMEOUT, NULL))
        (void)event_add(channel->readable, channel->is_file ? &now : NULL);
}

static void take_line(struct tci_mcp_channel *channel, const char *text, size_t length)
{
    if (channel->skipping) {
        channel->skipping = false;
        return;
    }
    if (length > channel->maximum) {
        if (channel->calls->too_long)
            channel->calls->too_long(channel->context);
        return;
    }
    if (length && text[length - 1] == '\r')
        length--;
    while (length && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    if (length)
        channel->calls->line(channel->context, text, length);
}

/* Every line of the buffer; what is left moves to its beginning. */
static void take_lines(struct tci_mcp_channel *channel)
{
    size_t from = 0;
    while (!channel->freed && !channel->paused) {
        char *at = memchr(channel->buffer + channel->seen, '\n', channel->length - channel->seen);
        size_t end;
        if (!at) {
            channel->seen = channel->length;
            break;
        }
        end = (size_t)(at - channel->buffer);
        channel->seen = end + 1;
        take_line(channel, channel->buffer + from, end - from);
        from = end + 1;
    }
    if (from)
        memmove(channel->buffer, channel->buffer + from, channel->length - from);
    channel->length -= from;
    channel->seen -= from;
}

/* The beginning of a line that is too long is dropped as it comes: nobody can make us keep it. */
static void bound_line(struct tci_mcp_channel *channel)
{
    bool first = !channel->skipping;
    if (first && channel->seen <= channel->maximum)
        return;
    channel->length -= channel->seen;
    memmove(channel->buffer, channel->buffer + channel->seen, channel->length);
    channel->seen = 0;
    channel->skipping = true;
    if (first && channel->calls->too_long)
        channel->calls->too_long(channel->context);
}

/* Room for what is read next. A large line leaves no large buffer behind. */
static int make_room(struct tci_mcp_channel *channel)
{
    size_t capacity = channel->capacity;
    char *buffer;
    if (!channel->length && capacity > read_size)
        capacity = 0;
    while (capacity < channel->length + buffer_first / 2)
        capacity = capacity ? 2 * capacity : buffer_first;
    if (capacity == channel->capacity)
        return 0;
    buffer = realloc(channel->buffer, capacity);
    if (!buffer)
        return -1;
    channel->buffer = buffer;
    channel->capacity = capacity;
    return 0;
}

static void end_input(struct tci_mcp_channel *channel, int error)
{
    channel->input_over = true;
    tci_mcp_channel_update_reading(channel);
    /* The last line may have no end. */
    if (!error && channel->length && !channel->skipping)
        take_line(channel, channel->buffer, channel->length);
    channel->length = channel->seen = 0;
    if (!channel->freed && channel->calls->ended)
        channel->calls->ended(channel->context, error);
}

/* Reads, when all lines of the buffer were taken. False: nothing more is to be done now. */
static bool read_more(struct tci_mcp_channel *channel)
{
    size_t room;
    ssize_t n;
    if (make_room(channel) < 0) {
        end_input(channel, ENOMEM);
        return false;
    }
    room = channel->capacity - channel->length;
    n = tci_read_some(channel->in, channel->buffer + channel->length,
                      room < read_size ? room : read_size);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        /* EIO: a terminal that went away. */
        end_input(channel, n < 0 && errno != EIO ? errno : 0);
        return false;
    }
    channel->length += (size_t)n;
    return true;
}

/* Is there something to look at for lines? What was read before a pause comes first: the end of the input must
 * not find lines that nobody has taken. */
static bool has_bytes(struct tci_mcp_channel *channel, short what)
{
    if (channel->paused)
        return false;
    if (channel->seen < channel->length)
        return true;
    /* A read without an event would block. */
    return !channel->full && (channel->is_file || (what & EV_READ)) && read_more(channel);
}

void tci_mcp_channel_readable(evutil_socket_t fd, short what, void *context)
{
    struct tci_mcp_channel *channel = context;
    (void)fd;
    tci_mcp_channel_enter(channel);
    if (has_bytes(channel, what)) {
        take_lines(channel);
        if (!channel->freed)
            bound_line(channel);
    }
    if (!channel->freed)
        tci_mcp_channel_update_reading(channel);
    tci_mcp_channel_leave(channel);
}

void tci_mcp_channel_pause(struct tci_mcp_channel *channel, bool pause)
{
    channel->paused = pause;
    tci_mcp_channel_update_reading(channel);
    /* Lines that were read before it paused are still there. */
    if (!pause && channel->readable && channel->length)
        event_active(channel->readable, EV_TIMEOUT, 0);
}
