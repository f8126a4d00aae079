/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage exec`: from the command line to a call, and the loop that carries its streams.
 *
 * Signals arrive on a descriptor: none interrupts anything, and the user's terminal is given back on
 * every way out. What ends this program ends the cage first, and waits until it is gone.
 */
#include "cli/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/fd.h"

enum { exit_broken_pipe = 128 + SIGPIPE };

struct exec {
    const struct cli_call *cli;
    struct tc_call *call;
    struct tc_result *result;
    int signals;  /* a signalfd */
    int ended_by; /* signal that we got; 0: none */
    bool held;    /* the command waits for our readers */
    struct exec_writer out[2];
    struct exec_terminal *terminal; /* NULL: none */
    struct exec_net_log net_log;
};

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

static void take_signals(struct exec *exec)
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

static bool is_behind(const struct exec *exec)
{
    return exec_writer_is_behind(&exec->out[0]) || exec_writer_is_behind(&exec->out[1]);
}

static bool is_broken(const struct exec *exec)
{
    return exec->out[0].problem || exec->out[1].problem;
}

static int pass_on(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct exec *exec = context;
    if (exec_writer_write(&exec->out[stream - TC_STREAM_STDOUT], bytes, length) < 0)
        return 1;
    if (is_behind(exec) && !exec->held)
        exec->held = tci_call_hold(exec->call, true) == 0;
    return 0;
}

/* What cannot be written ends the command, but not from in here: the cage is in the middle of a step. */
static void pass_on_network(void *context, const struct tc_network_event *event)
{
    struct exec *exec = context;
    exec_net_log(&exec->net_log, event);
    if (is_behind(exec) && !exec->held)
        exec->held = tci_call_hold(exec->call, true) == 0;
}

static void flush(struct exec *exec)
{
    if (exec_writer_flush(&exec->out[0]) < 0 || exec_writer_flush(&exec->out[1]) < 0)
        tc_call_cancel(exec->call);
    if (exec->held && !is_behind(exec))
        exec->held = tci_call_hold(exec->call, false) < 0;
}

enum { WAIT_CALL, WAIT_SIGNALS, WAIT_STDOUT, WAIT_STDERR, WAIT_INPUT, WAIT_MASTER, WAIT_COUNT };

static void choose_waits(const struct exec *exec, struct pollfd fds[WAIT_COUNT])
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
static int run_once(struct exec *exec, struct tc_error *reterr)
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
static int run(struct exec *exec, struct tc_error *reterr)
{
    while (!exec->result || (is_behind(exec) && !exec->ended_by && !is_broken(exec)))
        if (run_once(exec, reterr) < 0)
            return -1;
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------ */

static int print_json(struct tc_result *result, int status)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    const char *json = tc_result_json(result);
    (void)signal(SIGPIPE, SIG_DFL); /* the cage is gone: nothing is lost if nobody reads this */
    if (!json)
        out.no_memory = true;
    else
        tci_buf_string(&out, json);
    tci_buf_char(&out, '\n');
    return cli_output(&out, false, status);
}

static int cannot_write(const struct exec *exec)
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
static int conclude(const struct exec *exec)
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
    return status;
}

/* ---- the beginning ------------------------------------------------------------------------ */

static int open_engine(const struct cli_call *cli, struct tc_policy **ret_policy,
                       struct tc_engine **ret_engine)
{
    struct tc_error error = { 0 };
    if (cli_given(cli, CLI_POLICY) || cli_policy_variable()) {
        int status = cli_load_policy(cli, false, ret_policy);
        if (status != CLI_EXIT_OK)
            return status;
    }
    if (tc_engine_open(&(struct tc_engine_options){ .policy = *ret_policy }, ret_engine, &error) <
        0)
        return cli_fail(&error);
    return CLI_EXIT_OK;
}

/* Fills in the request; -1: reported. */
static int make_request(const struct cli_call *cli, struct exec *exec, struct tc_request *request)
{
    bool json = cli_given(cli, CLI_JSON);
    if (!cli->command) {
        cli_usage("write it behind the options: toolcage exec -- COMMAND", "a command is missing");
        return -1;
    }
    if (json && exec->terminal) {
        cli_usage("leave one of them out", "--tty shows what --json would keep");
        return -1;
    }
    *request = (struct tc_request){
        .tool = cli->values[CLI_TOOL],
        .agent = cli->values[CLI_AGENT],
        .argv = (const char *const *)cli->command,
        .out_directory = cli->values[CLI_OUT],
        .on_output = json ? NULL : pass_on,
        .context = exec,
        .flags = (json ? 0U : TC_REQUEST_KEEP_NOTHING) |
                 (exec->terminal ? TC_REQUEST_TERMINAL : 0U) |
                 (cli_given(cli, CLI_EXPLAIN_DENIALS) ? TC_REQUEST_EXPLAIN_DENIALS : 0U),
        .on_network = cli_given(cli, CLI_NET_LOG) ? pass_on_network : NULL,
        .network_context = exec,
    };
    return exec_limits(cli, &request->limits);
}

/* Standard input, or the terminal in its place. */
static int open_input(struct exec *exec, struct tc_request *request, struct tc_error *reterr)
{
    if (exec->terminal) {
        if (exec_terminal_open(exec->terminal, reterr) < 0)
            return -1;
        request->terminal = exec->terminal->slave;
        return 0;
    }
    request->input_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return request->input_fd < 0 ? tci_error_errno(reterr, errno, "cannot use standard input") : 0;
}

static int run_call(struct exec *exec, struct tc_engine *engine, struct tc_request *request)
{
    struct tc_error error = { 0 };
    int status = 0;

    exec_writer_init(&exec->out[0], STDOUT_FILENO);
    exec_writer_init(&exec->out[1], STDERR_FILENO);
    exec->net_log = (struct exec_net_log){ .out = &exec->out[1],
                                           .terminal = exec->terminal,
                                           .colours = cli_colours(stderr) };
    exec->signals = open_signals(&error);
    if (exec->signals < 0 || open_input(exec, request, &error) < 0 ||
        tc_call_start(engine, request, &exec->call, &error) < 0 || run(exec, &error) < 0)
        status = -1;
    if (exec->terminal)
        exec_terminal_close(exec->terminal);
    status = status < 0 ? cli_fail(&error) : conclude(exec);
    tc_call_free(exec->call);
    tc_result_free(exec->result);
    tci_close(exec->signals);
    if (request->input_fd > 0)
        tci_close(request->input_fd);
    for (int i = 0; i < 2; i++)
        tci_buf_free(&exec->out[i].pending);
    return status;
}

int cli_run_exec(const struct cli_call *cli)
{
    struct exec_terminal terminal = { .master = -1, .slave = -1 };
    struct exec exec = { .cli = cli,
                         .signals = -1,
                         .terminal = cli_given(cli, CLI_TTY) ? &terminal : NULL };
    struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    struct tc_request request;
    int status;

    if (make_request(cli, &exec, &request) < 0)
        return CLI_EXIT_REFUSED;
    status = open_engine(cli, &policy, &engine);
    if (status == CLI_EXIT_OK)
        status = run_call(&exec, engine, &request);
    tc_engine_close(engine);
    tc_policy_free(policy);
    return status;
}
