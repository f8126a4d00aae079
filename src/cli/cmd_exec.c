/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage exec`: a command of the user's, with the user's streams. */
#include "cli/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"

/* -1: reported. */
static int check_options(const struct cli_call *cli)
{
    if (!cli->command) {
        cli_usage("write it behind the options: toolcage exec -- COMMAND", "a command is missing");
        return -1;
    }
    if (cli_given(cli, CLI_JSON) && cli_given(cli, CLI_TTY)) {
        cli_usage("leave one of them out", "--tty shows what --json would keep");
        return -1;
    }
    return 0;
}

int cli_run_exec(const struct cli_call *cli)
{
    struct exec_terminal terminal = { .master = -1, .slave = -1 };
    struct exec_run exec = { .cli = cli, .terminal = cli_given(cli, CLI_TTY) ? &terminal : NULL };
    struct tc_request request;
    int status;

    if (check_options(cli) < 0 || exec_request(&exec, &request) < 0)
        return CLI_EXIT_REFUSED;
    request.tool = cli->values[CLI_TOOL];
    request.argv = (const char *const *)cli->command;
    if (!exec.terminal) {
        request.input_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (request.input_fd < 0) {
            struct tc_error error = { 0 };
            tci_error_errno(&error, errno, "cannot use standard input");
            return cli_fail(&error);
        }
    }
    status = exec_run(&exec, &request);
    if (request.input_fd > 0)
        tci_close(request.input_fd);
    return status;
}
