/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one call from the command line, for `exec` and `call`: the loop that carries its streams, and
 * what is said at its end.
 *
 * Signals arrive on a descriptor: none interrupts anything, and the user's terminal is given back on
 * every way out. What ends this program ends the cage first, and waits until it is gone.
 */
#include "cli/exec.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/fd.h"
#include "json/write.h"

enum { exit_broken_pipe = 128 + SIGPIPE };

/* ---- signals ------------------------------------------------------------------------------ */

/* Those that end us, unless whoever started us (nohup, a shell's background) has them ignored:
 * blocked, they would arrive all the same. */
static int open_signals(struct tc_error *reterr)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
    struct sigaction action;
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < tci_array_size(wanted); i++)
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)sigaddset(&set, wanted[i]);
    (void)signal(SIGPIPE, SIG_IGN); /* a write says so, too, and does not end us before the cage */
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? tci_error_errno(reterr, errno, "cannot wait for signals") : fd;
}

static void take_signals(struct exec_run *exec)
{
    struct signalfd_siginfo info;
    while (read(exec->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGWINCH) {
            if (exec->terminal)
                exec_terminal_resize(exec->terminal);
            continue;
        }
        if (!exec->ended_by)
            exec->ended_by = (int)info.ssi_signo;
        tc_call_cancel(exec->call);
    }
}

/* ---- streams ------------------------------------------------------------------------------ */

static bool is_behind(const struct exec_run *exec)
{
    return exec_writer_is_behind(&exec->out[0]) || exec_writer_is_behind(&exec->out[1]);
}

static bool is_broken(const struct exec_run *exec)
{
    return exec->out[0].problem || exec->out[1].problem;
}

static int pass_on(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct exec_run *exec = context;
    /* Of a tool with `returns`, only what was checked gets to standard output. */
    if (exec->is_checked && stream == TC_STREAM_STDOUT)
        return 0;
    if (exec_writer_write(&exec->out[stream - TC_STREAM_STDOUT], bytes, length) < 0)
        return 1;
    if (is_behind(exec) && !exec->held)
        exec->held = tci_call_hold(exec->call, true) == 0;
    return 0;
}

/* What cannot be written ends the command, but not from in here: the cage is in the middle of a step. */
static void pass_on_network(void *context, const struct tc_network_event *event)
{
    struct exec_run *exec = context;
    exec_net_log(&exec->net_log, event);
    if (is_behind(exec) && !exec->held)
        exec->held = tci_call_hold(exec->call, true) == 0;
}

static void flush(struct exec_run *exec)
{
    if (exec_writer_flush(&exec->out[0]) < 0 || exec_writer_flush(&exec->out[1]) < 0)
        tc_call_cancel(exec->call);
    if (exec->held && !is_behind(exec))
        exec->held = tci_call_hold(exec->call, false) < 0;
}

enum { WAIT_CALL, WAIT_SIGNALS, WAIT_STDOUT, WAIT_STDERR, WAIT_INPUT, WAIT_MASTER, WAIT_COUNT };

static void choose_waits(const struct exec_run *exec, struct pollfd fds[WAIT_COUNT])
{
    const struct exec_terminal *terminal = exec->terminal;
    bool to_master = terminal && terminal->done < terminal->length;
    for (int i = 0; i < WAIT_COUNT; i++)
        fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    fds[WAIT_SIGNALS].fd = exec->signals;
    for (int i = 0; i < 2; i++) {
        if (exec_writer_is_behind(&exec->out[i]))
            fds[WAIT_STDOUT + i] = (struct pollfd){ .fd = exec->out[i].fd, .events = POLLOUT };
    }
    if (exec->result)
        return;
    fds[WAIT_CALL].fd = tc_call_fd(exec->call);
    if (!terminal)
        return;
    if (!to_master)
        fds[WAIT_INPUT].fd = terminal->input;
    fds[WAIT_MASTER].events = (short)((is_behind(exec) ? 0 : POLLIN) | (to_master ? POLLOUT : 0));
    if (fds[WAIT_MASTER].events)
        fds[WAIT_MASTER].fd = terminal->master;
}

/* One round of waiting and doing. */
static int run_once(struct exec_run *exec, struct tc_error *reterr)
{
    struct pollfd fds[WAIT_COUNT];
    choose_waits(exec, fds);
    if (poll(fds, WAIT_COUNT, -1) < 0 && errno != EINTR)
        return tci_error_errno(reterr, errno, "cannot wait");
    if (fds[WAIT_SIGNALS].revents)
        take_signals(exec);
    if (fds[WAIT_STDOUT].revents || fds[WAIT_STDERR].revents)
        flush(exec);
    if (exec->terminal) {
        exec_terminal_relay(exec->terminal, fds[WAIT_INPUT].revents != 0);
        if (exec_terminal_show(exec->terminal, exec->call, &exec->out[0]) < 0)
            tc_call_cancel(exec->call);
    }
    if (!fds[WAIT_CALL].revents || exec->result)
        return 0;
    if (tc_call_step(exec->call, &exec->result, reterr) < 0)
        return -1;
    if (!exec->result && is_broken(exec))
        tc_call_cancel(exec->call);
    if (exec->result)
        exec_net_log_end(&exec->net_log);
    /* The last words of a terminal are in it, not in the call. */
    if (exec->result && exec->terminal)
        (void)exec_terminal_show(exec->terminal, exec->call, &exec->out[0]);
    return 0;
}

/* Until there is a result and everything that belongs to it was written. A reader who never comes
 * back can be left by a signal. */
static int run(struct exec_run *exec, struct tc_error *reterr)
{
    while (!exec->result || (is_behind(exec) && !exec->ended_by && !is_broken(exec)))
        if (run_once(exec, reterr) < 0)
            return -1;
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* The cage is gone: nothing is lost if nobody reads this. */
static int print_last(struct tci_buf *out, int status)
{
    (void)signal(SIGPIPE, SIG_DFL);
    return cli_output(out, false, status);
}

static int print_json(struct tc_result *result, int status)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    const char *json = tc_result_json(result);
    if (!json)
        out.no_memory = true;
    else
        tci_buf_string(&out, json);
    tci_buf_char(&out, '\n');
    return print_last(&out, status);
}

/* What was checked, and therefore not shown while it ran. */
static int print_output(const struct tc_result *result, int status)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tci_json json = { .out = &out };
    if (!result->output_json)
        return status;
    tci_json_value(&json, NULL, result->output_json);
    tci_buf_char(&out, '\n');
    return print_last(&out, status);
}

static int cannot_write(const struct exec_run *exec)
{
    int i = exec->out[0].problem ? 0 : 1, problem = exec->out[i].problem;
    struct tc_error error = { 0 };
    if (problem == EPIPE)
        return exit_broken_pipe;
    tci_error_errno(&error, problem, "cannot write to standard %s", i == 0 ? "output" : "error");
    tci_error_remedy(&error, "check where the output goes");
    return cli_fail(&error);
}

/* Says what there is to say, and which status to exit with. */
static int conclude(const struct exec_run *exec)
{
    const struct tc_result *result = exec->result;
    bool json = cli_given(exec->cli, CLI_JSON);
    bool lacks_something = exec->call->refused == TC_ERROR_UNSUPPORTED &&
                           tci_backend_for(exec->call->tool->settings.backend);
    int status = tc_result_exit_status(result);

    if (is_broken(exec))
        return cannot_write(exec);
    if (exec->ended_by)
        status = 128 + exec->ended_by;
    else if (json && !cli_given(exec->cli, CLI_EXIT_CODE))
        status = CLI_EXIT_OK;
    if (json)
        return print_json(exec->result, status);
    if (!exec->ended_by)
        exec_report(result,
                    cli_given(exec->cli, CLI_EXPLAIN_DENIALS) || cli_given(exec->cli, CLI_OUT) ||
                        !(result->verdict == TC_VERDICT_OK || result->verdict == TC_VERDICT_DENIED),
                    lacks_something ? exec->call->tool : NULL);
    return exec->is_checked ? print_output(result, status) : status;
}

/* ---- the whole ---------------------------------------------------------------------------- */

int exec_request(struct exec_run *exec, struct tc_request *ret)
{
    const struct cli_call *cli = exec->cli;
    bool json = cli_given(cli, CLI_JSON);
    *ret = (struct tc_request){
        .agent = cli->values[CLI_AGENT],
        .session = cli->values[CLI_SESSION],
        .out_directory = cli->values[CLI_OUT],
        .on_output = json ? NULL : pass_on,
        .context = exec,
        .flags = (json || exec->is_call ? 0U : TC_REQUEST_KEEP_NOTHING) |
                 (exec->terminal ? TC_REQUEST_TERMINAL : 0U) |
                 (cli_given(cli, CLI_EXPLAIN_DENIALS) ? TC_REQUEST_EXPLAIN_DENIALS : 0U),
        .on_network = cli_given(cli, CLI_NET_LOG) ? pass_on_network : NULL,
        .network_context = exec,
    };
    return exec_limits(cli, &ret->limits);
}

static int start(struct exec_run *exec, struct tc_engine *engine, struct tc_request *request,
                 struct tc_error *reterr)
{
    exec->signals = open_signals(reterr);
    if (exec->signals < 0)
        return -1;
    if (exec->terminal) {
        if (exec_terminal_open(exec->terminal, reterr) < 0)
            return -1;
        request->terminal = exec->terminal->slave;
    }
    return tc_call_start(engine, request, &exec->call, reterr);
}

static int run_with(struct exec_run *exec, struct tc_engine *engine, struct tc_request *request)
{
    struct tc_error error = { 0 };
    int status = 0;

    exec_writer_init(&exec->out[0], STDOUT_FILENO);
    exec_writer_init(&exec->out[1], STDERR_FILENO);
    exec->net_log = (struct exec_net_log){ .out = &exec->out[1],
                                           .terminal = exec->terminal,
                                           .colours = cli_colours(stderr) };
    exec->signals = -1;
    if (start(exec, engine, request, &error) < 0 || run(exec, &error) < 0)
        status = -1;
    if (exec->terminal)
        exec_terminal_close(exec->terminal);
    status = status < 0 ? cli_fail(&error) : conclude(exec);
    tc_call_free(exec->call);
    tc_result_free(exec->result);
    tci_close(exec->signals);
    for (int i = 0; i < 2; i++)
        tci_buf_free(&exec->out[i].pending);
    return status;
}

int exec_run(struct exec_run *exec, struct tc_request *request)
{
    struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    int status = exec_open_engine(exec->cli, &policy, &engine);
    const struct tci_tool *tool = NULL;
    if (status == CLI_EXIT_OK && exec->is_call && policy)
        tool = tci_policy_tool(policy, request->tool);
    exec->is_checked = tool && tool->settings.returns.json;
    if (status == CLI_EXIT_OK)
        status = run_with(exec, engine, request);
    tc_engine_close(engine);
    tc_policy_free(policy);
    return status;
}
