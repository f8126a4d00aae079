/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the stdio transport: one client, one session, one message a line. The end of the input is
 * the end of questions, not of answers: calls under way are finished as long as somebody reads. A
 * signal, or a reader that is gone, ends them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include "mcp/channel.h"
#include "mcp/server.h"

struct stdio {
    struct tci_mcp_loop *loop;
    struct tci_mcp_server *server;
    struct tci_mcp_session *session;
    struct tci_mcp_channel *channel;
    struct tci_mcp_post look;
    bool input_over, looking;
    int input_error, error; /* errnos; `error` is the output's */
};

static void stop_when_done(struct stdio *stdio)
{
    if (stdio->input_over && stdio->session && !tci_mcp_session_busy(stdio->session) &&
        !tci_mcp_channel_waiting(stdio->channel))
        tci_mcp_loop_stop(stdio->loop);
}

/* ---- to the client ------------------------------------------------------------------------ */

static void look_again(void *context)
{
    struct stdio *stdio = context;
    stdio->looking = false;
    stop_when_done(stdio);
}

static void send_message(void *context, uint64_t stream, bool last, const char *text, size_t length)
{
    struct stdio *stdio = context;
    (void)stream;
    if (text)
        tci_mcp_channel_send(stdio->channel, text, length);
    /* The request that this answers is still counted. */
    if (last && stdio->input_over && !stdio->looking) {
        stdio->looking = true;
        stdio->look = (struct tci_mcp_post){ .task = look_again, .context = stdio };
        tci_mcp_loop_post(stdio->loop, &stdio->look);
    }
}

static void give_message(void *context, uint64_t stream, struct tci_buf *text)
{
    struct stdio *stdio = context;
    tci_mcp_channel_give(stdio->channel, text);
    send_message(context, stream, true, NULL, 0); /* that was the last */
}

static void flushed(void *context)
{
    stop_when_done(context);
}

static void broken(void *context, int error)
{
    struct stdio *stdio = context;
    stdio->error = error;
    tci_mcp_loop_stop(stdio->loop);
}

/* ---- from the client ---------------------------------------------------------------------- */

static void take_line(void *context, const char *text, size_t length)
{
    struct stdio *stdio = context;
    struct tci_mcp_message message;
    /* Without memory it is an invalid message, and says so. */
    if (tci_mcp_read(text, length, &message, NULL) < 0)
        message.kind = TCI_MCP_INVALID;
    (void)tci_mcp_session_take(stdio->session, &message, 0);
    tci_mcp_message_free(&message);
    tci_mcp_loop_used(stdio->loop, length);
}

static void too_long(void *context)
{
    struct stdio *stdio = context;
    struct tci_mcp_message message = { .kind = TCI_MCP_INVALID, .code = TCI_MCP_INVALID_REQUEST };
    (void)snprintf(message.problem, sizeof message.problem, "a message has at most %d bytes",
                   TCI_MCP_MESSAGE_MAX);
    (void)tci_mcp_session_take(stdio->session, &message, 0);
}

static void ended(void *context, int error)
{
    struct stdio *stdio = context;
    stdio->input_over = true;
    stdio->input_error = error;
    tci_mcp_session_hung_up(stdio->session);
    stop_when_done(stdio);
}

static const struct tci_mcp_channel_calls calls = {
    .line = take_line,
    .too_long = too_long,
    .ended = ended,
    .broken = broken,
    .flushed = flushed,
};

/* ---- the transport ------------------------------------------------------------------------ */

static int outcome(const struct stdio *stdio, struct tc_error *reterr)
{
    if (!stdio->error && stdio->input_error)
        return tci_error_errno(reterr, stdio->input_error, "the input cannot be read");
    if (!stdio->error || stdio->error == EPIPE)
        return 0;
    if (stdio->error != ENOBUFS)
        return tci_error_errno(reterr, stdio->error, "the answers cannot be written");
    tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                  "the client does not read its answers: %d bytes are waiting for it",
                  TCI_MCP_QUEUE_MAX);
    tci_error_remedy(reterr, "read the standard output of this program while calls are running");
    return -1;
}

static int serve(struct stdio *stdio, const char *agent, int in, int out, struct tc_error *reterr)
{
    struct tci_mcp_transport transport = { .send = send_message,
                                           .give = give_message,
                                           .context = stdio };
    if (tci_mcp_session_open(stdio->server, agent, &transport, &stdio->session, reterr) < 0)
        return -1;
    if (tci_mcp_channel_new(stdio->loop, in, out, TCI_MCP_MESSAGE_MAX, &calls, stdio,
                            &stdio->channel, reterr) < 0)
        return -1;
    if (tci_mcp_loop_run(stdio->loop, reterr) < 0)
        return -1;
    return outcome(stdio, reterr);
}

int tci_mcp_serve_stdio(const struct tci_mcp_options *options, const char *agent, int in, int out,
                        struct tc_error *reterr)
{
    struct stdio stdio = { 0 };
    int r = -1;
    /* Before anything else is opened: it would get the number of one that is closed. */
    if (fcntl(in, F_GETFD) < 0 || fcntl(out, F_GETFD) < 0)
        return tci_error_errno(reterr, errno, "standard input and output must be open");
    if (tci_mcp_loop_new(TCI_MCP_THREADS, true, &stdio.loop, reterr) == 0 &&
        tci_mcp_server_new(options, stdio.loop, &stdio.server, reterr) == 0)
        r = serve(&stdio, agent, in, out, reterr);
    if (stdio.session)
        tci_mcp_session_close(tc_take(stdio.session));
    tci_mcp_server_free(stdio.server);
    tci_mcp_channel_finish(stdio.channel);
    tci_mcp_channel_free(stdio.channel);
    tci_mcp_loop_free(stdio.loop);
    return r;
}
