/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage dump`. */
#include "cli/cli.h"

#include "policy/dump.h"

int cli_run_dump(const struct cli_call *call)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tci_buf out = TCI_BUF_INIT(TCI_DUMP_MAX);
    int status = cli_load_policy(call, true, &policy);
    if (status != CLI_EXIT_OK)
        return status;
    tci_policy_dump(policy, &out);
    return cli_output(&out, false, CLI_EXIT_OK);
}
