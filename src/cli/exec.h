/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of `toolcage exec` and `toolcage call` share. One command, one thread, one loop
 * around poll(). */
#ifndef TCI_CLI_EXEC_H
#define TCI_CLI_EXEC_H

#include <signal.h>
#include <termios.h>
#include "cli/cli.h"
#include "core/call.h"

/* ---- exec_options.c ----------------------------------------------------------------------- */

/* The limits on the command line. -1 after a usage error has been reported. */
int exec_limits(const struct cli_call *cli, struct tc_limits *ret);

/* ---- exec_writer.c ------------------------------------------------------------------------ */

/* Standard output or error. Its flags are not ours to change: others share them. */
struct exec_writer {
    int fd;
    bool waits;             /* it may be full: a pipe, a terminal, a socket */
    struct tci_buf pending; /* what did not fit */
    size_t done;            /* of it */
    int problem;            /* errno of the write that failed; 0: none */
};

void exec_writer_init(struct exec_writer *writer, int fd);
/* Writes what it takes now and keeps the rest. -1: it is broken; `problem` says why. */
int exec_writer_write(struct exec_writer *writer, const void *bytes, size_t length);
int exec_writer_flush(struct exec_writer *writer);
bool exec_writer_is_behind(const struct exec_writer *writer);

/* ---- exec_terminal.c ---------------------------------------------------------------------- */

/* A pseudo terminal between the user's streams and the command. */
struct exec_terminal {
    int master, slave;
    int user;  /* the user's own terminal, for its size; -1: none */
    int input; /* standard input; -1: at its end */
    bool raw;
    struct termios saved;
    char bytes[4096]; /* from input, not yet written */
    size_t length, done;
    bool after_line; /* the last byte was the end of a line */
};

int exec_terminal_open(struct exec_terminal *terminal, struct tc_error *reterr);
/* Gives the user's terminal back as it was. */
void exec_terminal_close(struct exec_terminal *terminal);
void exec_terminal_resize(const struct exec_terminal *terminal);
/* From standard input to the command, as far as it takes it. */
void exec_terminal_relay(struct exec_terminal *terminal, bool readable);
/* From the command to `out`, as much as the call may print. 0, or -1 when `out` is broken. */
int exec_terminal_show(struct exec_terminal *terminal, struct tc_call *call,
                       struct exec_writer *out);

/* ---- exec_net_log.c ----------------------------------------------------------------------- */

struct exec_net_log {
    struct exec_writer *out;
    const struct exec_terminal *terminal; /* NULL: none */
    bool colours;
    uint64_t lost; /* lines that there was no room for, and nobody was told of */
};

/* The line of an event, without its end. */
void exec_net_line(FILE *stream, const struct tc_network_event *event, bool with_colours);
void exec_net_log(struct exec_net_log *log, const struct tc_network_event *event);
/* Says how many lines were lost, if any were. */
void exec_net_log_end(struct exec_net_log *log);

/* ---- exec_report.c ------------------------------------------------------------------------ */

/* Says on standard error what the command's own output does not: verdict, fix, denials. With a tool,
 * also what this host lacks for it. */
void exec_report(const struct tc_result *result, bool all_denials, const struct tci_tool *lacking);

/* ---- exec_engine.c ------------------------------------------------------------------------ */

/* The policy, if one is named, and an engine for it, as the command line says. An exit status; what is
 * wrong has been reported. Free both, whatever it is. */
int exec_open_engine(const struct cli_call *cli, struct tc_policy **ret_policy,
                     struct tc_engine **ret_engine);

/* ---- exec_journal.c ----------------------------------------------------------------------- */

/* The journal and the mode, into the options of an engine. An exit status; what is wrong has been
 * reported. *ret_path is set to memory that the options use, if they do: free it after the engine was
 * opened. */
int exec_journal(const struct cli_call *cli, struct tc_engine_options *ret, char **ret_path);

/* ---- exec_run.c --------------------------------------------------------------------------- */

struct exec_run {
    const struct cli_call *cli;
    bool is_call;                   /* a tool by its contract; else a command of the user's */
    bool is_checked;                /* its output, against `returns` */
    struct exec_terminal *terminal; /* NULL: none */
    struct tc_call *call;
    struct tc_result *result;
    int signals;  /* a signalfd */
    int ended_by; /* signal that we got; 0: none */
    bool held;    /* the command waits for our readers */
    struct exec_writer out[2];
    struct exec_net_log net_log;
};

/* What the request of every verb has from the command line. -1 after a usage error was reported. */
int exec_request(struct exec_run *exec, struct tc_request *ret);
/* Opens the engine, runs the call, passes its streams on and reports. An exit status. */
int exec_run(struct exec_run *exec, struct tc_request *request);

#endif
