/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: pipes of a call, capture of output. The relay of input is in streams_input.c. */
#include "core/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/streams_internal.h"

static const struct tci_streams closed = {
    .epoll = -1,
    .cage = { -1, -1, -1 },
    .output = { -1, -1 },
    .input = { .fd = -1, .source = -1 },
};

void tci_streams_init(struct tci_streams *streams)
{
    *streams = closed;
}

int tci_event_add(int epoll, int fd, uint32_t events, enum tci_event event)
{
    struct epoll_event e = { .events = events, .data.u32 = event };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

/* A host may have closed its own 0, 1 or 2; a pipe in their place would be overwritten when the cage
 * gets its standard streams. */
int tci_above_standard(int *fd)
{
    int moved;
    if (*fd > STDERR_FILENO)
        return 0;
    moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    tci_close(*fd);
    *fd = moved;
    return moved < 0 ? -1 : 0;
}

static int make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    if (tci_pipe(ends, 0) < 0)
        return -1;
    *ret_read = ends[0];
    *ret_write = ends[1];
    return tci_above_standard(ret_read) < 0 || tci_above_standard(ret_write) < 0 ? -1 : 0;
}

static int open_outputs(struct tci_streams *streams)
{
    for (int i = 0; i < 2; i++)
        if (make_pipe(&streams->output[i], &streams->cage[i + 1]) < 0 ||
            fcntl(streams->output[i], F_SETFL, O_NONBLOCK) < 0) /* it has no other flags yet */
            return -1;
    return 0;
}

int tci_streams_open(struct tci_streams *streams, int epoll, const struct tc_request *request,
                     const void *bytes, size_t length, bool has_null, uint64_t limit,
                     struct tci_result *result, struct tc_error *reterr)
{
    bool has_input = length > 0 || request->input_fd > 0;

    *streams = closed;
    streams->epoll = epoll;
    streams->result = result;
    streams->room = result->output_room = limit;
    streams->keep = !(request->flags & TC_REQUEST_KEEP_NOTHING);
    streams->on_output = request->on_output;
    streams->context = request->context;
    if (request->flags & TC_REQUEST_TERMINAL)
        return 0;
    if (((has_input || !has_null) && make_pipe(&streams->cage[0], &streams->input.fd) < 0) ||
        open_outputs(streams) < 0)
        return tci_error_errno(reterr, errno, "cannot make pipes for the call");
    streams->buffer = malloc(TCI_CHUNK);
    if (!streams->buffer)
        return tci_error_no_memory(reterr);
    return tci_input_open(&streams->input, request, bytes, length, reterr);
}

static int add_output(const struct tci_streams *streams, int i)
{
    return tci_event_add(streams->epoll, streams->output[i], EPOLLIN,
                         i == 0 ? TCI_EVENT_STDOUT : TCI_EVENT_STDERR);
}

int tci_streams_begin(struct tci_streams *streams, struct tc_error *reterr)
{
    for (int i = 0; i < 2; i++) {
        streams->cage[i + 1] = tci_close(streams->cage[i + 1]);
        if (streams->output[i] >= 0 && add_output(streams, i) < 0)
            return tci_error_errno(reterr, errno, "cannot wait for output");
    }
    if (streams->input.is_watched)
        streams->cage[0] = tci_close(streams->cage[0]); /* or we would be a reader ourselves */
    if (streams->input.fd >= 0 && tci_input_begin(&streams->input, streams->epoll) < 0)
        return tci_error_errno(reterr, errno, "cannot wait for input");
    return 0;
}

/* Taken out of the epoll first: a child of another thread may have a copy until its execve, and then
 * closing alone would leave it in there, readable for ever. */
static void end_output(struct tci_streams *streams, int i)
{
    if (streams->output[i] >= 0)
        (void)epoll_ctl(streams->epoll, EPOLL_CTL_DEL, streams->output[i], NULL);
    streams->output[i] = tci_close(streams->output[i]);
}

/* Without keeping: counted like the rest. */
static void count(struct tc_result *public, int i, size_t length, bool cut)
{
    *(i == 0 ? &public->stdout_bytes : &public->stderr_bytes) += length;
    if (cut)
        *(i == 0 ? &public->stdout_truncated : &public->stderr_truncated) = 1;
}

/* Hands bytes to the caller and keeps them, as far as the limit allows. */
static enum tci_flow take(struct tci_streams *streams, int i, size_t length)
{
    enum tc_stream stream = i == 0 ? TC_STREAM_STDOUT : TC_STREAM_STDERR;
    size_t taken = length <= streams->room ? length : (size_t)streams->room;
    bool stop = false;

    streams->room -= taken;
    if (taken && streams->on_output)
        stop = streams->on_output(streams->context, stream, streams->buffer, taken) != 0;
    if (!streams->keep)
        count(&streams->result->public, i, length, taken < length);
    else if (tci_result_keep(streams->result, stream, streams->buffer, length) < 0)
        return TCI_FLOW_NO_MEMORY;
    if (stop) {
        streams->on_output = NULL; /* it has heard enough */
        return TCI_FLOW_STOPPED;
    }
    return taken == length ? TCI_FLOW_ON : TCI_FLOW_FULL;
}

/* Up to `budget` bytes, until the pipe is empty. */
static enum tci_flow read_output(struct tci_streams *streams, int i, size_t *budget)
{
    while (*budget && streams->output[i] >= 0 && !streams->held) {
        size_t wanted = *budget < TCI_CHUNK ? *budget : TCI_CHUNK;
        ssize_t n = tci_read_some(streams->output[i], streams->buffer, wanted);
        enum tci_flow flow;
        if (n < 0 && errno == EAGAIN)
            return TCI_FLOW_ON;
        if (n <= 0) {
            end_output(streams, i);
            return TCI_FLOW_ON;
        }
        *budget -= (size_t)n;
        flow = take(streams, i, (size_t)n);
        if (flow != TCI_FLOW_ON)
            return flow;
        if ((size_t)n < wanted)
            return TCI_FLOW_ON; /* empty: the next look would only say so */
    }
    return TCI_FLOW_ON;
}

enum tci_flow tci_streams_event(struct tci_streams *streams, enum tci_event event, size_t *budget)
{
    if (event == TCI_EVENT_STDOUT || event == TCI_EVENT_STDERR)
        return read_output(streams, event == TCI_EVENT_STDOUT ? 0 : 1, budget);
    tci_input_event(&streams->input, streams->epoll, event);
    return TCI_FLOW_ON;
}

enum tci_flow tci_streams_drain(struct tci_streams *streams)
{
    streams->held = false;
    streams->draining = true;
    for (int i = 0; i < 2; i++) {
        int left = 0;
        size_t budget;
        enum tci_flow flow;
        /* What is there now. A writing end that leaked out of the cage could go on for ever. */
        if (streams->output[i] < 0 || ioctl(streams->output[i], FIONREAD, &left) < 0)
            continue;
        budget = left > 0 ? (size_t)left : 0;
        flow = read_output(streams, i, &budget);
        end_output(streams, i);
        if (flow != TCI_FLOW_ON)
            return flow;
    }
    return TCI_FLOW_ON;
}

int tci_streams_hold(struct tci_streams *streams, bool hold)
{
    if (streams->held == hold || streams->draining)
        return 0;
    streams->held = hold;
    for (int i = 0; i < 2; i++) {
        if (streams->output[i] < 0)
            continue;
        /* Taken out and not only masked: a hang-up cannot be masked, and would wake us for ever. */
        if (hold && epoll_ctl(streams->epoll, EPOLL_CTL_DEL, streams->output[i], NULL) < 0)
            return -1;
        if (!hold && add_output(streams, i) < 0)
            return -1;
    }
    return 0;
}

void tci_streams_close(struct tci_streams *streams)
{
    for (int i = 0; i < 3; i++)
        streams->cage[i] = tci_close(streams->cage[i]);
    for (int i = 0; i < 2; i++)
        end_output(streams, i);
    tci_input_close(&streams->input);
    free(streams->buffer);
    streams->buffer = NULL;
}
