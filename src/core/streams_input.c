/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way of input into a cage. At most one chunk is on its way: the next is read when the
 * pipe has taken it, so that a cage that reads slowly slows the source down.
 *
 * The caller's descriptor is never handed to the cage: it could be a terminal (whose input a cage
 * could then forge) or a file of the host. Its flags are left alone, since others share them; it is
 * read only after the kernel has said that there is something. Waiting for it is armed for one event
 * at a time: a source at its end reports that again and again.
 */
#include "core/streams_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/sigpipe.h"

enum { write_max = 4 * TCI_CHUNK };

int tci_input_open(struct tci_input *input, const struct tc_request *request, const void *bytes,
                   size_t length, struct tc_error *reterr)
{
    input->bytes = bytes;
    input->length = bytes ? length : 0;
    if (request->input_fd <= 0)
        return 0;
    input->source = request->input_fd;
    input->buffer = malloc(TCI_CHUNK);
    return input->buffer ? 0 : tci_error_no_memory(reterr);
}

static void end_source(struct tci_input *input, int epoll)
{
    if (input->source_waits)
        (void)epoll_ctl(epoll, EPOLL_CTL_DEL, input->source, NULL);
    input->source = -1;
    input->source_waits = false;
}

static void end_input(struct tci_input *input, int epoll)
{
    if (input->source >= 0)
        end_source(input, epoll);
    input->fd = tci_close(input->fd);
    input->length = 0;
}

void tci_input_close(struct tci_input *input)
{
    input->fd = tci_close(input->fd);
    input->source = -1;
    free(input->buffer);
    input->buffer = NULL;
}

/* Has everybody who could read it closed it? */
static bool is_broken(const struct tci_input *input)
{
    struct pollfd reader = { .fd = input->fd };
    return input->is_watched && poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR);
}

/* Without a reader of our own the kernel sends SIGPIPE. */
static ssize_t write_watched(int fd, const void *bytes, size_t length)
{
    struct tci_sigpipe held;
    ssize_t n;
    tci_sigpipe_hold(&held);
    n = write(fd, bytes, length);
    tci_sigpipe_release(&held, n != (ssize_t)length);
    return n;
}

/* As much as the pipe takes at once: a cage that reads as fast as we write must not keep the caller's
 * event loop here. False: not everything. */
static bool write_pending(struct tci_input *input)
{
    size_t wanted = input->length < write_max ? input->length : write_max;
    ssize_t n;
    if (!wanted)
        return true;
    do
        n = input->is_watched ? write_watched(input->fd, input->bytes, wanted)
                              : write(input->fd, input->bytes, wanted);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        /* Nothing that we know of; no input is better than half of it again and again. */
        input->is_refused = input->is_watched && n < 0 && errno == EPIPE;
        input->length = 0;
        return true;
    }
    input->bytes += n;
    input->length -= (size_t)n;
    return input->length == 0;
}

static void arm(int epoll, int fd, uint32_t events, enum tci_event event)
{
    struct epoll_event e = { .events = events | EPOLLONESHOT, .data.u32 = event };
    (void)epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e);
}

/* Reads the next chunk. False: there is none, and never will be. */
static bool read_source(struct tci_input *input)
{
    ssize_t n = tci_read_some(input->source, input->buffer, TCI_CHUNK);
    if (n < 0 && errno == EAGAIN)
        return true;
    if (n <= 0)
        return false;
    input->bytes = input->buffer;
    input->length = (size_t)n;
    return true;
}

void tci_input_event(struct tci_input *input, int epoll, enum tci_event event)
{
    if (input->fd < 0)
        return;
    if (is_broken(input)) {
        input->is_refused = true;
        end_input(input, epoll);
        return;
    }
    if (event == TCI_EVENT_SOURCE || (input->source >= 0 && !input->source_waits && !input->length))
        if (input->source >= 0 && !input->length && !read_source(input))
            end_source(input, epoll);
    if (!write_pending(input)) {
        arm(epoll, input->fd, EPOLLOUT, TCI_EVENT_STDIN);
        return;
    }
    if (input->source < 0 || input->is_refused) {
        end_input(input, epoll);
    } else if (input->source_waits) {
        /* Which has disarmed it: the end of the reader must still be heard. */
        if (event == TCI_EVENT_STDIN)
            arm(epoll, input->fd, 0, TCI_EVENT_STDIN);
        arm(epoll, input->source, EPOLLIN, TCI_EVENT_SOURCE);
    } else {
        arm(epoll, input->fd, EPOLLOUT, TCI_EVENT_STDIN); /* a file: one chunk each time */
    }
}

int tci_input_begin(struct tci_input *input, int epoll)
{
    /* Nothing to say: the end is visible from the beginning, without an event. */
    if (input->source < 0 && !input->length) {
        input->fd = tci_close(input->fd);
        return 0;
    }
    if (tci_set_nonblocking(input->fd) < 0 ||
        tci_event_add(epoll, input->fd, EPOLLONESHOT, TCI_EVENT_STDIN) < 0)
        return -1;
    if (input->source >= 0) {
        input->source_waits = tci_event_add(epoll, input->source, EPOLLIN | EPOLLONESHOT,
                                            TCI_EVENT_SOURCE) == 0;
        /* Files cannot be waited for and need not be. */
        if (!input->source_waits && errno != EPERM)
            return -1;
    }
    if (!input->source_waits)
        tci_input_event(input, epoll, TCI_EVENT_STDIN);
    return 0;
}
