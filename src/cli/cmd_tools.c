/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage tools`. */
#include "cli/cli.h"

#include "policy/explain.h"

int cli_run_tools(const struct cli_call *call)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tci_buf out = TCI_BUF_INIT(TCI_EXPLAIN_MAX);
    bool json = cli_given(call, CLI_JSON);
    int status = cli_load_policy(call, false, &policy);
    if (status != CLI_EXIT_OK)
        return status;
    if (json)
        tci_tools_json(policy, &out);
    else
        tci_tools_text(policy, &out);
    return cli_output(&out, !json, CLI_EXIT_OK);
}
