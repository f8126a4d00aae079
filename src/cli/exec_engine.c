/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the engine of a verb that runs something: which policy and which journal it has. */
#include "cli/exec.h"

#include <stdlib.h>
#include "cli/approve.h"

int exec_open_engine(const struct cli_call *cli, struct tc_policy **ret_policy,
                     struct tc_engine **ret_engine)
{
    struct tc_engine_options options = { .on_approval = cli_approve };
    struct tc_error error = { 0 };
    char *journal = NULL;
    int status = exec_journal(cli, &options, &journal);

    if (status == CLI_EXIT_OK && (cli_given(cli, CLI_POLICY) || cli_policy_variable()))
        status = cli_load_policy(cli, false, ret_policy);
    options.policy = *ret_policy;
    if (status == CLI_EXIT_OK && tc_engine_open(&options, ret_engine, &error) < 0)
        status = cli_fail(&error);
    free(journal);
    return status;
}
