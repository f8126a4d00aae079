/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage call`: a tool of the policy, with arguments as JSON. */
#include "cli/exec.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "core/contract.h"

/* Standard input whole, up to one byte more than arguments may have: the call itself says that they
 * are too large, to those who may know that the tool exists. */
static int read_input(struct tci_buf *out, struct tc_error *reterr)
{
    char bytes[65536];
    while (out->length <= TCI_ARGUMENTS_MAX) {
        size_t room = TCI_ARGUMENTS_MAX + 1 - out->length;
        ssize_t n = read(STDIN_FILENO, bytes, room < sizeof bytes ? room : sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tci_error_errno(reterr, errno, "cannot read arguments from standard input");
        if (n == 0)
            break;
        tci_buf_append(out, bytes, (size_t)n);
    }
    /* A NUL would end the text early, and what is behind it would not be looked at. */
    if (out->data && memchr(out->data, '\0', out->length)) {
        tci_error_set(reterr, TC_ERROR_SYNTAX, "the arguments on standard input contain a NUL");
        tci_error_remedy(reterr, "send one JSON object as UTF-8 text");
        return -1;
    }
    return tci_buf_check(out, reterr);
}

/* The arguments: a word, standard input for "-", or, without a word, what is piped in. -1: reported. */
static int find_arguments(const struct cli_call *cli, struct tci_buf *input, const char **ret)
{
    struct tc_error error = { 0 };
    const char *word = cli->more[0];
    bool given = word && strcmp(word, "-") != 0;
    if (given || (!word && isatty(STDIN_FILENO))) {
        *ret = given ? word : "{}";
        return 0;
    }
    if (strcmp(cli_policy_path(cli, false), "-") == 0) {
        cli_usage("write the arguments behind the tool's name",
                  "standard input cannot be both the policy and the arguments");
        return -1;
    }
    if (read_input(input, &error) < 0) {
        cli_fail(&error);
        return -1;
    }
    /* Nothing was piped in, as from /dev/null: no arguments. Asked for, nothing is not JSON. */
    *ret = input->length ? input->data : word ? "" : "{}";
    return 0;
}

int cli_run_call(const struct cli_call *cli)
{
    struct exec_run exec = { .cli = cli, .is_call = true };
    tc_cleanup(tci_buf_free) struct tci_buf input = TCI_BUF_INIT(TCI_ARGUMENTS_MAX + 1);
    struct tc_request request;

    if (!cli->argument)
        return cli_usage("write toolcage call TOOL JSON", "the tool's name is missing");
    if (exec_request(&exec, &request) < 0)
        return CLI_EXIT_REFUSED;
    if (!cli_policy_path(cli, false)) /* reported; and nothing was read from a pipe in vain */
        return CLI_EXIT_REFUSED;
    request.tool = cli->argument;
    if (find_arguments(cli, &input, &request.arguments_json) < 0)
        return CLI_EXIT_REFUSED;
    return exec_run(&exec, &request);
}
