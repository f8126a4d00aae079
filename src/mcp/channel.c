/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the descriptors of a channel. The output must not block the loop: pipes and terminals are
 * opened anew without blocking, sockets are asked with each message not to block, files never do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "mcp/channel_internal.h"

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

static void free_now(struct tci_mcp_channel *channel)
{
    free_event(channel->readable);
    free_event(channel->writable);
    free_event(channel->gone);
    (void)tci_close(channel->gone_fd);
    (void)tci_close(channel->own_out);
    if (channel->old_flags >= 0)
        (void)fcntl(channel->out, F_SETFL, channel->old_flags);
    tci_mcp_channel_drop(channel);
    free(channel->buffer);
    free(channel);
}

void tci_mcp_channel_enter(struct tci_mcp_channel *channel)
{
    channel->inside++;
}

void tci_mcp_channel_leave(struct tci_mcp_channel *channel)
{
    if (--channel->inside == 0 && channel->freed)
        free_now(channel);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void on_gone(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    tci_mcp_channel_break(context, EPIPE);
}

/* Files and some devices have always something to read, and no events. */
static bool has_events(int fd)
{
    tc_cleanup(tci_closep) int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    return epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno != EPERM;
}

static int open_input(struct tci_mcp_channel *channel, struct event_base *base)
{
    if (fcntl(channel->in, F_GETFD) < 0)
        return -1;
    channel->is_file = !has_events(channel->in);
    channel->readable = channel->is_file
                            ? event_new(base, -1, EV_PERSIST, tci_mcp_channel_readable, channel)
                            : event_new(base, channel->in, EV_READ | EV_PERSIST,
                                        tci_mcp_channel_readable, channel);
    if (!channel->readable)
        return -1;
    tci_mcp_channel_update_reading(channel);
    return 0;
}

/* A pipe that is opened anew shares nothing with who has the other end of our descriptor's file:
 * not to block would be seen by everybody who has it. Where that is not possible, it is changed
 * and set back. */
static int stop_blocking(struct tci_mcp_channel *channel, mode_t type)
{
    char path[32];
    channel->is_socket = S_ISSOCK(type);
    if (!S_ISFIFO(type) && !S_ISCHR(type))
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", channel->out);
    channel->own_out = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (channel->own_out >= 0)
        return 0;
    channel->old_flags = fcntl(channel->out, F_GETFL);
    return channel->old_flags < 0 ||
                   fcntl(channel->out, F_SETFL, channel->old_flags | O_NONBLOCK) < 0
               ? -1
               : 0;
}

/* Who reads may go away while we have nothing to say: the call that it waits for is not worth
 * running to its end. An epoll that wants nothing hears of that alone. Files have nobody who
 * could go. */
static void watch_reader(struct tci_mcp_channel *channel, struct event_base *base, int fd)
{
    struct epoll_event nothing = { 0 };
    channel->gone_fd = epoll_create1(EPOLL_CLOEXEC);
    if (channel->gone_fd < 0)
        return;
    if (epoll_ctl(channel->gone_fd, EPOLL_CTL_ADD, fd, &nothing) == 0)
        channel->gone = event_new(base, channel->gone_fd, EV_READ, on_gone, channel);
    if (channel->gone)
        (void)event_add(channel->gone, NULL);
}

static int open_output(struct tci_mcp_channel *channel, struct event_base *base)
{
    struct stat status;
    int fd;
    if (fstat(channel->out, &status) < 0 || stop_blocking(channel, status.st_mode & S_IFMT) < 0)
        return -1;
    fd = channel->own_out >= 0 ? channel->own_out : channel->out;
    channel->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, tci_mcp_channel_writable,
                                  channel);
    if (!channel->writable)
        return -1;
    watch_reader(channel, base, fd);
    return 0;
}

int tci_mcp_channel_new(struct tci_mcp_loop *loop, int in, int out, size_t maximum,
                        const struct tci_mcp_channel_calls *calls, void *context,
                        struct tci_mcp_channel **ret, struct tc_error *reterr)
{
    struct event_base *base = tci_mcp_loop_base(loop);
    struct tci_mcp_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return tci_error_no_memory(reterr);
    *channel = (struct tci_mcp_channel){ .calls = calls,
                                         .context = context,
                                         .maximum = maximum,
                                         .in = in,
                                         .out = out,
                                         .own_out = -1,
                                         .old_flags = -1,
                                         .gone_fd = -1 };
    channel->last = &channel->first;
    errno = 0;
    if (out >= 0 && open_output(channel, base) < 0) {
        tci_error_errno(reterr, errno ? errno : ENOMEM, "the output cannot be used");
        free_now(channel);
        return -1;
    }
    if (in >= 0 && open_input(channel, base) < 0) {
        tci_error_errno(reterr, errno ? errno : ENOMEM, "the input cannot be read");
        free_now(channel);
        return -1;
    }
    *ret = channel;
    return 0;
}

void tci_mcp_channel_free(struct tci_mcp_channel *channel)
{
    if (!channel)
        return;
    channel->freed = true;
    if (!channel->inside)
        free_now(channel);
}

size_t tci_mcp_channel_waiting(const struct tci_mcp_channel *channel)
{
    return channel->waiting;
}
