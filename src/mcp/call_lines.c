/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a client hears of a call while it runs: lines of stderr as log messages, and, with
 * call_progress.c, how far it is.
 *
 * The attack: a tool that floods. Lines are cut, counted by the second and bounded while they wait; the
 * loop has at most one post of a call before it, however much there is to tell; of progress only the
 * newest waits. What is left out is said. All of it is data: nothing in a line is ever interpreted
 * but a percentage.
 */
#include "mcp/job.h"

#include <stdio.h>
#include <string.h>
#include "base/clock.h"

enum { second = 1000 * 1000, ready_max = 2 * TCI_MCP_LINES_BYTES };

/* Before each line that is ready. */
struct head {
    enum tci_mcp_level level;
    size_t length;
};

/* ---- to the loop ---------------------------------------------------------------------------- */

static void flush(void *context)
{
    tci_mcp_lines_send(context);
}

void tci_mcp_lines_post(struct tci_mcp_job *job)
{
    if (job->lines.posted)
        return;
    job->lines.posted = true;
    job->flush = (struct tci_mcp_post){ .task = flush, .context = job };
    tci_mcp_loop_post(job->loop, &job->flush);
}

/* False: there is no room for it. */
static bool make_ready(struct tci_mcp_job *job, enum tci_mcp_level level, const char *text,
                       size_t length)
{
    struct tci_buf *ready = &job->lines.ready;
    struct head head = { .level = level, .length = length };
    bool fits;

    (void)pthread_mutex_lock(&job->lock);
    fits = ready->length + sizeof head + length <= TCI_MCP_LINES_BYTES && !ready->no_memory;
    if (fits) {
        tci_buf_append(ready, (const char *)&head, sizeof head);
        tci_buf_append(ready, text, length);
        fits = !ready->no_memory;
        tci_mcp_lines_post(job);
    }
    (void)pthread_mutex_unlock(&job->lock);
    return fits;
}

static void send_lines(struct tci_mcp_job *job, const struct tci_buf *ready)
{
    struct head head;
    for (size_t at = 0; at + sizeof head <= ready->length; at += sizeof head + head.length) {
        memcpy(&head, ready->data + at, sizeof head);
        if (head.length > ready->length - at - sizeof head)
            return; /* memory ran out in the middle of it */
        tci_mcp_log(job->request->session, job->request->stream, head.level, job->tool,
                    ready->data + at + sizeof head, head.length);
    }
}

void tci_mcp_lines_send(struct tci_mcp_job *job)
{
    tc_cleanup(tci_buf_free) struct tci_buf ready = TCI_BUF_INIT(0);
    struct tci_mcp_progress progress;

    (void)pthread_mutex_lock(&job->lock);
    ready = job->lines.ready;
    job->lines.ready = (struct tci_buf)TCI_BUF_INIT(ready_max);
    progress = job->lines.progress;
    job->lines.progress.is_set = false;
    job->lines.posted = false;
    (void)pthread_mutex_unlock(&job->lock);
    if (atomic_load(&job->cancelled))
        return;
    send_lines(job, &ready);
    if (progress.is_set)
        tci_mcp_progress_send(job, &progress);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Says how many lines were left out, if any were. */
static void tell_left_out(struct tci_mcp_job *job)
{
    struct tci_mcp_lines *lines = &job->lines;
    char text[128];
    int length;
    if (lines->left_out == 0)
        return;
    length = snprintf(text, sizeof text, "%llu more lines of stderr were left out here",
                      (unsigned long long)lines->left_out);
    if (make_ready(job, TCI_MCP_NOTICE, text, (size_t)length))
        lines->left_out = 0;
}

static void add_line(struct tci_mcp_job *job, const char *text, size_t length)
{
    struct tci_mcp_lines *lines = &job->lines;
    uint64_t now = tci_clock_us();

    if (now - lines->window >= second) {
        tell_left_out(job);
        lines->window = now;
        lines->in_window = 0;
    }
    if (lines->in_window >= TCI_MCP_LINES_RATE || !make_ready(job, TCI_MCP_INFO, text, length))
        lines->left_out++;
    else
        lines->in_window++;
}

static void end_line(struct tci_mcp_job *job)
{
    struct tci_mcp_lines *lines = &job->lines;

    if (lines->line.length == 0)
        return; /* an empty one, or between "\r" and "\n" */
    tci_mcp_progress_line(job, lines->line.data, lines->line.length);
    add_line(job, lines->line.data, lines->line.length);
    lines->line.length = 0;
}

static void add_bytes(struct tci_mcp_job *job, const char *bytes, size_t length)
{
    struct tci_buf *line = &job->lines.line;
    size_t room = TCI_MCP_LINE_MAX - line->length;
    if (length > 0)
        tci_buf_append(line, bytes, length < room ? length : room);
}

static size_t line_length(const char *bytes, size_t length)
{
    size_t i = 0;
    while (i < length && bytes[i] != '\n' && bytes[i] != '\r')
        i++;
    return i;
}

int tci_mcp_lines_output(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct tci_mcp_job *job = context;
    const char *at = bytes;

    if (stream != TC_STREAM_STDERR)
        return 0;
    while (length > 0) {
        size_t piece = line_length(at, length);
        add_bytes(job, at, piece);
        if (piece < length) {
            end_line(job);
            piece++;
        }
        at += piece;
        length -= piece;
    }
    return 0;
}

void tci_mcp_lines_begin(struct tci_mcp_job *job)
{
    struct tci_mcp_lines *lines = &job->lines;
    lines->line.maximum = TCI_MCP_LINE_MAX + 1;
    lines->ready.maximum = ready_max;
    lines->started = tci_clock_us();
    lines->newest = -1;
}

void tci_mcp_lines_end(struct tci_mcp_job *job)
{
    end_line(job);
    tell_left_out(job);
    tci_mcp_progress_end(job);
}

void tci_mcp_lines_free(struct tci_mcp_lines *lines)
{
    tci_buf_free(&lines->line);
    tci_buf_free(&lines->ready);
}
