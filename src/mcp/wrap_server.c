/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the server's cage: its start, its pipes, what it says on stderr, and its end.
 * Trusts nothing that comes out of it: a line is bounded by the policy's `mcp.message`, and stderr goes
 * to people escaped, cut and not too often: it could draw anything on their terminal otherwise.
 */
#include "mcp/wrap_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/call.h"
#include "policy/template.h"
#include "policy/units.h"

enum { stderr_line_max = 500, stderr_part_max = 1000 };

/* ---- output --------------------------------------------------------------------------------- */

static int say_line(void *context, const char *line, size_t length)
{
    struct tci_wrap *wrap = context;
    tc_cleanup(tci_buf_free) struct tci_buf shown = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);

    if (length && line[length - 1] == '\r')
        length--;
    if (!length)
        return 0;
    if (!tci_wrap_bucket_take(&wrap->stderr_lines)) {
        wrap->stderr_left_out++;
        return 0;
    }
    if (wrap->stderr_left_out) {
        tci_wrap_say(wrap, "%s: %" PRIu64 " lines were left out", wrap->tool->name,
                     wrap->stderr_left_out);
        wrap->stderr_left_out = 0;
    }
    tci_wrap_show(&shown, line, length, stderr_line_max);
    if (tci_buf_check(&shown, NULL) == 0)
        tci_wrap_say(wrap, "%s: %s", wrap->tool->name, shown.data);
    return 0;
}

/* A line that is too long for the buffer is said in pieces. */
static void take_stderr(struct tci_wrap *wrap, const char *bytes, size_t length)
{
    while (length) {
        size_t piece = length < stderr_line_max ? length : stderr_line_max;
        struct tci_wrap_lines *lines = &wrap->server_stderr;
        if (lines->part.length + piece > lines->part.maximum) {
            (void)say_line(wrap, lines->part.data, lines->part.length);
            lines->part.length = 0;
        }
        (void)tci_wrap_lines_add(lines, bytes, piece, say_line, wrap);
        bytes += piece;
        length -= piece;
    }
}

static int take_output(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct tci_wrap *wrap = context;
    char limit[TCI_UNIT_TEXT_MAX];
    if (stream == TC_STREAM_STDERR) {
        take_stderr(wrap, bytes, length);
        return 0;
    }
    if (wrap->is_failed)
        return 1;
    if (wrap->is_ending)
        return 0; /* nobody waits for it any more */
    if (tci_wrap_lines_add(&wrap->from_server, bytes, length, tci_wrap_server_line, wrap) == 1 &&
        !wrap->is_failed)
        tci_wrap_fail(wrap, "raise \"mcp.message\" in the policy if the server needs it",
                      "the server sent a message of more than %s",
                      tci_size_format(wrap->rules->message, limit));
    return wrap->is_failed ? 1 : 0;
}

/* A client that reads slowly slows the server down. */
void tci_wrap_server_flow(struct tci_wrap *wrap)
{
    bool hold = wrap->client && !wrap->is_gone &&
                tci_mcp_channel_waiting(wrap->client) > TCI_WRAP_QUEUE_MAX;
    if (!wrap->call || hold == wrap->is_held)
        return;
    if (tci_call_hold(wrap->call, hold) == 0)
        wrap->is_held = hold;
}

/* ---- input ---------------------------------------------------------------------------------- */

void tci_wrap_server_put(struct tci_wrap *wrap, struct tci_buf *text)
{
    if (tci_buf_check(text, NULL) < 0)
        tci_wrap_fail(wrap, NULL, "there is not enough memory for a message");
    else if (wrap->to_server)
        tci_mcp_channel_send(wrap->to_server, text->data, text->length);
    tci_buf_free(text);
}

static void close_input(struct tci_wrap *wrap)
{
    tci_mcp_channel_free(tc_take(wrap->to_server));
    wrap->server_in[1] = tci_close(wrap->server_in[1]);
}

/* It has all that was for it. */
static void flushed(void *context)
{
    struct tci_wrap *wrap = context;
    if (wrap->is_ending)
        close_input(wrap);
    else
        tci_wrap_client_flow(wrap);
}

/* What waits for it is dropped: calls would wait for their whole time. */
static void broken(void *context, int error)
{
    struct tci_wrap *wrap = context;
    if (wrap->is_ending || !wrap->call)
        return;
    if (error == ENOBUFS)
        tci_wrap_fail(wrap, "the server is at fault",
                      "the server reads nothing, and %d bytes wait for it", TCI_MCP_QUEUE_MAX);
    else if (error == EPIPE)
        tci_wrap_fail(wrap, "the server is at fault: it must read its requests as long as it runs",
                      "the server has closed its standard input, and can be asked nothing more");
    else
        tci_wrap_fail(wrap, NULL, "the server's input cannot be written: %s",
                      strerrordesc_np(error));
}

static void deaf_for_long(evutil_socket_t fd, short what, void *context);

/* One that ends closes its input first, and is better told from one that goes on: it has a moment. */
static void watch_input(struct tci_wrap *wrap)
{
    if (!wrap->call || wrap->deaf || wrap->is_ending || wrap->is_failed ||
        !tci_server_is_deaf(wrap->call))
        return;
    if (tci_wrap_timer(wrap, &wrap->deaf, TCI_WRAP_DEAF_MS, deaf_for_long, wrap) < 0)
        broken(wrap, EPIPE);
}

static void no_line(void *context, const char *text, size_t length)
{
    (void)context, (void)text, (void)length; /* nothing is read there */
}

/* ---- the end -------------------------------------------------------------------------------- */

static void say_denials(struct tci_wrap *wrap, const struct tc_result *result)
{
    enum { said_max = 20 };
    for (size_t i = 0; i < result->denial_count; i++) {
        const struct tc_denial *denial = &result->denials[i];
        tc_cleanup(tci_buf_free) struct tci_buf shown = TCI_BUF_INIT(8192);
        if (i == said_max) {
            tci_wrap_say(wrap, "%s: and %zu more, which are in the journal", wrap->tool->name,
                         result->denial_count - i);
            return;
        }
        tci_wrap_show(&shown, denial->target, strlen(denial->target), 200);
        tci_wrap_say(wrap, "%s: denied %" PRIu64 " times: %s %s (%s)", wrap->tool->name,
                     result->denial_times ? result->denial_times[i] : 1, denial->kind,
                     shown.data ? shown.data : "", denial->rule);
    }
}

/* The server is gone. Was it told to? */
static void ended(struct tci_wrap *wrap, const struct tc_result *result)
{
    if (wrap->server_stderr.part.length)
        (void)say_line(wrap, wrap->server_stderr.part.data, wrap->server_stderr.part.length);
    if (wrap->stderr_left_out)
        tci_wrap_say(wrap, "%s: %" PRIu64 " lines were left out", wrap->tool->name,
                     wrap->stderr_left_out);
    if (!wrap->is_ending && !wrap->is_failed)
        tci_wrap_fail(wrap, result->fix[0] ? result->fix : "see what it says on stderr",
                      "the server ended: %s",
                      result->reason[0] ? result->reason : "it exited with status 0");
    say_denials(wrap, result);
}

static void leave(struct tci_wrap *wrap)
{
    if (wrap->call_event)
        event_free(tc_take(wrap->call_event));
    close_input(wrap);
    tc_call_free(tc_take(wrap->call));
    wrap->server_in[0] = tci_close(wrap->server_in[0]);
    if (wrap->grace)
        event_free(tc_take(wrap->grace));
    if (wrap->deaf)
        event_free(tc_take(wrap->deaf));
}

static void step(struct tci_wrap *wrap)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    int r;

    wrap->in_step = true;
    r = tc_call_step(wrap->call, &result, &error);
    wrap->in_step = false;
    if (r == 0 && !result)
        return;
    if (r < 0)
        tci_wrap_fail(wrap, error.remedy, "the server's cage broke: %s", error.message);
    else
        ended(wrap, result);
    tc_result_free(result);
    leave(wrap);
}

static void ready(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    (void)fd, (void)what;
    step(wrap);
    watch_input(wrap);
    tci_wrap_server_flow(wrap);
    tci_wrap_check_end(wrap);
}

/* It may have ended at this moment: then that is why. */
static void deaf_for_long(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    ready(fd, what, wrap);
    broken(wrap, EPIPE);
}

void tci_wrap_server_kill(struct tci_wrap *wrap)
{
    if (wrap->call && !wrap->in_step)
        tc_call_cancel(wrap->call);
}

static void grace_over(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    tci_wrap_server_kill(context);
}

void tci_wrap_server_end(struct tci_wrap *wrap)
{
    if (wrap->is_ending || !wrap->call)
        return;
    wrap->is_ending = true;
    if (wrap->to_server && !tci_mcp_channel_waiting(wrap->to_server))
        close_input(wrap);
    if (tci_wrap_timer(wrap, &wrap->grace, TCI_WRAP_GRACE_MS, grace_over, wrap) < 0)
        tci_wrap_server_kill(wrap);
}

void tci_wrap_server_wait(struct tci_wrap *wrap)
{
    uint64_t until = tci_clock_us() + (uint64_t)TCI_WRAP_GRACE_MS * 1000;
    wrap->is_ending = true;
    tci_wrap_server_kill(wrap);
    while (wrap->call && tci_clock_us() < until) {
        struct pollfd wait = { .fd = tc_call_fd(wrap->call), .events = POLLIN };
        if (poll(&wait, 1, 100) > 0)
            step(wrap);
    }
    leave(wrap);
}

/* ---- the start ------------------------------------------------------------------------------ */

/* The tool's `command`, with doubled braces as single ones. */
static const char **own_command(const struct tci_tool *tool, struct tci_arena *arena,
                                struct tc_error *reterr)
{
    const struct tci_strings *command = &tool->settings.command;
    const char **argv = tci_arena_new_array(arena, command->count + 1, const char *);
    if (!command->count) {
        tci_error_set(reterr, TC_ERROR_USAGE, "tool \"%s\" has no command", tool->name);
        tci_error_remedy(reterr, "name the server behind --, or in the tool's \"command\"");
        return NULL;
    }
    for (size_t i = 0; argv && i < command->count; i++) {
        tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_LONG_MAX);
        const char *cursor = command->items[i].text;
        struct tci_template_part part;
        tci_buf_append(&text, "", 0);
        while (tci_template_next(&cursor, &part) > 0) {
            if (part.is_placeholder) {
                tci_error_set(reterr, TC_ERROR_USAGE,
                              "the command of tool \"%s\" has a placeholder, and an MCP server is "
                              "started without arguments",
                              tool->name);
                tci_error_remedy(reterr, "write the argument itself");
                return NULL;
            }
            tci_buf_append(&text, part.text, part.length);
        }
        argv[i] = tci_buf_check(&text, NULL) == 0
                      ? tci_arena_strndup(arena, text.data ? text.data : "", text.length)
                      : NULL;
        if (!argv[i])
            argv = NULL;
    }
    if (!argv)
        tci_error_no_memory(reterr);
    return argv;
}

static int start(struct tci_wrap *wrap, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    const char *const *argv = wrap->options->command;
    struct tc_request request = {
        .tool = wrap->options->tool,
        .agent = wrap->options->agent,
        .session = wrap->server_session,
        .input_fd = wrap->server_in[0],
        .on_output = take_output,
        .context = wrap,
        .flags = TC_REQUEST_KEEP_NOTHING |
                 (wrap->options->explain_denials ? TC_REQUEST_EXPLAIN_DENIALS : 0U),
    };
    if (!arena)
        return tci_error_no_memory(reterr);
    if (!argv)
        argv = own_command(wrap->tool, arena, reterr);
    if (!argv)
        return -1;
    request.argv = argv;
    return tci_server_start(wrap->engine, &request, &wrap->call, reterr);
}

int tci_wrap_server_open_input(struct tci_wrap *wrap, struct tc_error *reterr)
{
    static const struct tci_mcp_channel_calls calls = { .line = no_line,
                                                        .broken = broken,
                                                        .flushed = flushed };
    return tci_mcp_channel_new(wrap->loop, -1, wrap->server_in[1], TCI_MCP_ANSWER_MAX, &calls, wrap,
                               &wrap->to_server, reterr);
}

int tci_wrap_server_start(struct tci_wrap *wrap, struct tc_error *reterr)
{
    wrap->from_server.part = (struct tci_buf)TCI_BUF_INIT(wrap->rules->message);
    wrap->server_stderr.part = (struct tci_buf)TCI_BUF_INIT(stderr_part_max);
    if (tci_pipe(wrap->server_in, 0) < 0)
        return tci_error_errno(reterr, errno, "cannot make a pipe for the server");
    if (start(wrap, reterr) < 0)
        return -1;
    if (tci_wrap_server_open_input(wrap, reterr) < 0)
        return -1;
    wrap->call_event = event_new(wrap->base, tc_call_fd(wrap->call), EV_READ | EV_PERSIST, ready,
                                 wrap);
    if (!wrap->call_event || event_add(wrap->call_event, NULL) < 0)
        return tci_error_set(reterr, TC_ERROR_NO_MEMORY, "cannot wait for the server");
    return 0;
}
