/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how far a call is: what it says itself, as percentages on stderr, or the seconds that it has run.
 * Only the newest is kept for the client, and it always grows. A percentage is all that is ever read from
 * what a tool prints, and a wrong one misleads nobody but those who watch.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/utf8.h"
#include "json/write.h"
#include "mcp/job.h"
#include "policy/model.h"

enum { second = 1000 * 1000, params_max = 64 * 1024 };

void tci_mcp_progress_send(struct tci_mcp_job *job, const struct tci_mcp_progress *progress)
{
    tc_cleanup(tci_buf_free) struct tci_buf params = TCI_BUF_INIT(params_max);
    struct tci_json json = { .out = &params };

    tci_json_object_begin(&json, NULL);
    tci_json_raw(&json, "progressToken", "");
    tci_mcp_write_value(&params, job->request->progress_token);
    tci_json_double(&json, "progress", progress->value);
    if (progress->has_total)
        tci_json_unsigned(&json, "total", 100);
    tci_json_string(&json, "message", progress->message);
    tci_json_object_end(&json);
    if (tci_buf_check(&params, NULL) == 0)
        tci_mcp_notify(job->request->session, job->request->stream, "notifications/progress",
                       params.data);
}

/* ---- to the client ------------------------------------------------------------------------------- */

/* The length of a sequence that colours text or moves the cursor; 0: there is none. */
static size_t sequence_length(const char *text, size_t length)
{
    size_t i = 2;
    if (length < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (i < length && (unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x40)
        i++;
    return i < length ? i + 1 : 0;
}

/* What controls terminals or hides text is left out: a client may show it as it is. */
static void copy_shown(char to[TCI_MCP_PROGRESS_TEXT + 1], const char *text, size_t length)
{
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t sequence = sequence_length(text + i, length - i);
        size_t size = sequence ? 0 : tci_utf8_decode(text + i, length - i, &c);
        if (size && c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !tci_utf8_is_deceptive(c)) {
            if (written + size > TCI_MCP_PROGRESS_TEXT)
                break;
            memcpy(to + written, text + i, size);
            written += size;
        }
        i += sequence ? sequence : size ? size : 1;
    }
    to[written] = '\0';
}

static void give_progress(struct tci_mcp_job *job, uint64_t now)
{
    struct tci_mcp_lines *lines = &job->lines;
    lines->last = now;
    (void)pthread_mutex_lock(&job->lock);
    lines->progress = lines->waiting;
    tci_mcp_lines_post(job);
    (void)pthread_mutex_unlock(&job->lock);
    lines->waiting.is_set = false;
}

/* It has to grow: MCP says so, and clients stop listening otherwise. */
static void add_progress(struct tci_mcp_job *job, double value, bool has_total, const char *text,
                         size_t length)
{
    struct tci_mcp_lines *lines = &job->lines;
    uint64_t now = tci_clock_us();

    if (value <= lines->newest)
        return;
    lines->newest = value;
    lines->waiting =
        (struct tci_mcp_progress){ .is_set = true, .has_total = has_total, .value = value };
    copy_shown(lines->waiting.message, text, length);
    if (now - lines->last >= TCI_MCP_PROGRESS_GAP)
        give_progress(job, now);
}

/* The first number from 0 to 100 that stands before a "%"; -1: none. */
static double find_percentage(const char *text, size_t length)
{
    const char *sign = text, *end = text + length;

    for (; (sign = memchr(sign, '%', (size_t)(end - sign))) != NULL; sign++) {
        const char *from = sign;
        char number[16] = "", *rest;
        double value;
        while (from > text && sign - from < 15 &&
               (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
            from--;
        if (from == sign || !isdigit((unsigned char)*from) ||
            (from > text && strchr("-.,0123456789", from[-1])))
            continue;
        memcpy(number, from, (size_t)(sign - from));
        value = strtod(number, &rest);
        if (!*rest && value >= 0 && value <= 100)
            return value;
    }
    return -1;
}

void tci_mcp_progress_line(struct tci_mcp_job *job, const char *text, size_t length)
{
    double percentage = job->wants_progress ? find_percentage(text, length) : -1;
    if (percentage < 0)
        return;
    job->lines.has_percent = true;
    add_progress(job, percentage, true, text, length);
}

/* ---- the clock ------------------------------------------------------------------------------ */

static void tell_seconds(struct tci_mcp_job *job, uint64_t seconds)
{
    char text[128];
    uint64_t asked = job->lines.asked / second;
    unsigned long long running = seconds - asked;
    int length;

    job->lines.seconds = seconds;
    if (job->is_asking)
        length = snprintf(text, sizeof text, "waiting for approval for %llu s",
                          (unsigned long long)seconds);
    else if (job->timeout_ms == TCI_UNLIMITED)
        length = snprintf(text, sizeof text, "running for %llu s", running);
    else
        length = snprintf(text, sizeof text, "running for %llu s of at most %g s", running,
                          (double)job->timeout_ms / 1000);
    add_progress(job, (double)seconds, false, text, (size_t)length);
}

/* A tool that counts itself is not counted by the clock as well. */
static bool counts_seconds(const struct tci_mcp_job *job)
{
    return job->wants_progress && !job->lines.has_percent;
}

void tci_mcp_progress_tick(struct tci_mcp_job *job)
{
    struct tci_mcp_lines *lines = &job->lines;
    uint64_t now, seconds;

    if (!job->wants_progress)
        return;
    now = tci_clock_us();
    seconds = (now - lines->started) / second;
    if (counts_seconds(job) && seconds > lines->seconds)
        tell_seconds(job, seconds);
    if (lines->waiting.is_set && now - lines->last >= TCI_MCP_PROGRESS_GAP)
        give_progress(job, now);
}

int tci_mcp_progress_timeout(const struct tci_mcp_job *job)
{
    const struct tci_mcp_lines *lines = &job->lines;
    uint64_t now, next = UINT64_MAX;

    if (!job->wants_progress)
        return -1;
    now = tci_clock_us();
    if (counts_seconds(job))
        next = lines->started + (lines->seconds + 1) * second;
    if (lines->waiting.is_set && lines->last + TCI_MCP_PROGRESS_GAP < next)
        next = lines->last + TCI_MCP_PROGRESS_GAP;
    if (next == UINT64_MAX)
        return -1;
    return next > now ? (int)((next - now) / 1000) + 1 : 0;
}

void tci_mcp_progress_end(struct tci_mcp_job *job)
{
    if (job->lines.waiting.is_set)
        give_progress(job, tci_clock_us());
}
