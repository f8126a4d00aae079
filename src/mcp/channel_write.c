/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the lines for the peer, and those of them that wait. One write a message, as long as the
 * peer reads.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/clock.h"
#include "mcp/channel_internal.h"

enum {
    write_parts = 64,
    /* At the end: half a line is of no use to anybody who still reads. */
    stalled_ms = 500, /* without a byte that went */
    finish_ms = 5000,
};

static void free_waiting(struct tci_mcp_waiting *waiting)
{
    free(waiting->given);
    free(waiting);
}

void tci_mcp_channel_drop(struct tci_mcp_channel *channel)
{
    while (channel->first) {
        struct tci_mcp_waiting *first = channel->first;
        channel->first = first->next;
        free_waiting(first);
    }
    channel->last = &channel->first;
    channel->waiting = 0;
}

/* Says so from the loop, not from within whoever is sending. */
void tci_mcp_channel_break(struct tci_mcp_channel *channel, int error)
{
    if (channel->output_over)
        return;
    channel->output_over = true;
    channel->output_error = error;
    tci_mcp_channel_drop(channel);
    event_active(channel->writable, EV_WRITE, 0);
}

/* Bytes, or a negative errno. */
static ssize_t write_parts_of(struct tci_mcp_channel *channel, struct iovec *parts, size_t count)
{
    ssize_t n;
    do {
        if (channel->is_socket) {
            struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
            n = sendmsg(channel->out, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else {
            n = writev(channel->own_out >= 0 ? channel->own_out : channel->out, parts, (int)count);
        }
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* With the line break. `given`: the buffer that the text is in; NULL: it is copied. */
static void keep(struct tci_mcp_channel *channel, const char *text, size_t length,
                 struct tci_buf *given)
{
    struct tci_mcp_waiting *waiting;
    /* A peer that asks and does not read would make us keep everything. */
    if (channel->waiting && channel->waiting + length > TCI_MCP_QUEUE_MAX) {
        tci_mcp_channel_break(channel, ENOBUFS);
        return;
    }
    waiting = malloc(sizeof *waiting + (given ? 0 : length));
    if (!waiting) {
        tci_mcp_channel_break(channel, ENOMEM);
        return;
    }
    *waiting = (struct tci_mcp_waiting){ .length = length };
    if (given) {
        waiting->given = given->data;
        waiting->text = text;
        given->data = NULL;
    } else {
        memcpy(waiting->own, text, length - 1);
        waiting->own[length - 1] = '\n';
        waiting->text = waiting->own;
    }
    *channel->last = waiting;
    channel->last = &waiting->next;
    channel->waiting += length;
    if (channel->waiting > TCI_MCP_QUEUE_PAUSE && !channel->full) {
        channel->full = true;
        tci_mcp_channel_update_reading(channel);
    }
    if (!event_pending(channel->writable, EV_WRITE, NULL) && event_add(channel->writable, NULL) < 0)
        tci_mcp_channel_break(channel, EIO);
}

/* As far as it goes now: how many bytes of it went. */
static size_t write_now(struct tci_mcp_channel *channel, const char *text, size_t length)
{
    struct iovec parts[2] = { { (void *)(uintptr_t)text, length },
                              { (void *)(uintptr_t) "\n", 1 } };
    ssize_t n = channel->first ? 0 : write_parts_of(channel, parts, 2);
    if (n < 0 && n != -EAGAIN)
        tci_mcp_channel_break(channel, (int)-n);
    return n < 0 ? 0 : (size_t)n;
}

static bool is_open(const struct tci_mcp_channel *channel)
{
    return !channel->freed && !channel->output_over && channel->out >= 0;
}

void tci_mcp_channel_send(struct tci_mcp_channel *channel, const char *text, size_t length)
{
    size_t written = is_open(channel) ? write_now(channel, text, length) : 0;
    if (is_open(channel) && written <= length)
        keep(channel, text + written, length + 1 - written, NULL);
}

void tci_mcp_channel_give(struct tci_mcp_channel *channel, struct tci_buf *text)
{
    size_t length = text->length;
    size_t written = is_open(channel) ? write_now(channel, text->data, length) : 0;
    if (is_open(channel) && written <= length) {
        text->maximum = length + 1;
        tci_buf_char(text, '\n');
        if (tci_buf_check(text, NULL) < 0)
            tci_mcp_channel_break(channel, ENOMEM);
        else
            keep(channel, text->data + written, length + 1 - written, text);
    }
    tci_buf_free(text);
}

/* Takes what was written out of the line. */
static void advance(struct tci_mcp_channel *channel, size_t written)
{
    channel->waiting -= written;
    while (written && channel->first) {
        struct tci_mcp_waiting *first = channel->first;
        size_t left = first->length - first->written;
        if (written < left) {
            first->written += written;
            return;
        }
        written -= left;
        channel->first = first->next;
        if (!channel->first)
            channel->last = &channel->first;
        free_waiting(first);
    }
}

static void write_waiting(struct tci_mcp_channel *channel)
{
    while (channel->first) {
        struct iovec parts[write_parts];
        size_t count = 0;
        ssize_t n;
        for (struct tci_mcp_waiting *w = channel->first; w && count < write_parts; w = w->next)
            parts[count++] = (struct iovec){ (void *)(uintptr_t)(w->text + w->written),
                                             w->length - w->written };
        n = write_parts_of(channel, parts, count);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            tci_mcp_channel_break(channel, (int)-n);
            return;
        }
        advance(channel, (size_t)n);
    }
}

void tci_mcp_channel_finish(struct tci_mcp_channel *channel)
{
    uint64_t end = tci_clock_us() + finish_ms * 1000ULL, stalled = 0;
    struct pollfd peer = { .events = POLLOUT };
    while (channel && is_open(channel) && channel->first) {
        size_t before = channel->waiting;
        uint64_t now = tci_clock_us();
        write_waiting(channel);
        if (channel->waiting != before || !stalled)
            stalled = now + stalled_ms * 1000ULL;
        if (now >= end || now >= stalled)
            return;
        peer.fd = channel->own_out >= 0 ? channel->own_out : channel->out;
        if (channel->first && poll(&peer, 1, (int)((stalled - now) / 1000) + 1) < 0 &&
            errno != EINTR)
            return;
    }
}

void tci_mcp_channel_writable(evutil_socket_t fd, short what, void *context)
{
    struct tci_mcp_channel *channel = context;
    bool had = channel->first;
    (void)fd, (void)what;
    tci_mcp_channel_enter(channel);
    if (!channel->output_over)
        write_waiting(channel);
    if (channel->full && channel->waiting <= TCI_MCP_QUEUE_PAUSE / 2) {
        channel->full = false;
        tci_mcp_channel_update_reading(channel);
    }
    if (!channel->first)
        (void)event_del(channel->writable);
    if (channel->output_over) {
        int error = channel->output_error;
        channel->output_error = 0;
        if (channel->gone)
            (void)event_del(channel->gone);
        if (error && channel->calls->broken)
            channel->calls->broken(channel->context, error);
    } else if (had && !channel->first && channel->calls->flushed) {
        channel->calls->flushed(channel->context);
    }
    tci_mcp_channel_leave(channel);
}
