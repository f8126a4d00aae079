/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: finding and loading the policy that a verb was asked to use. */
#include "cli/cli.h"

#include <stdlib.h>

const char *cli_policy_variable(void)
{
    const char *variable = getenv("TOOLCAGE_POLICY");
    return variable && *variable ? variable : NULL;
}

const char *cli_policy_path(const struct cli_call *call, bool from_argument)
{
    const char *option = call->values[CLI_POLICY], *variable = cli_policy_variable();
    const char *argument = from_argument ? call->argument : NULL;

    if (option && argument) {
        cli_usage("keep one of them", "two policies are given: --policy and an argument");
        return NULL;
    }
    if (option || argument)
        return option ? option : argument;
    if (variable)
        return variable;
    cli_usage("name it with --policy FILE or in $TOOLCAGE_POLICY", "no policy is given");
    return NULL;
}

int cli_load_policy(const struct cli_call *call, bool from_argument, struct tc_policy **ret)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = NULL;
    struct tc_error error = { 0 };
    const char *path = cli_policy_path(call, from_argument);

    if (!path)
        return CLI_EXIT_REFUSED;
    findings = tci_findings_new(path);
    if (!findings) {
        tci_error_no_memory(&error);
        return cli_fail(&error);
    }
    if (tci_policy_load(path, findings, ret, &error) == 0)
        return CLI_EXIT_OK;
    if (findings->first && !findings->no_memory)
        cli_print_findings(stderr, findings);
    else
        cli_fail(&error);
    return tc_error_exit_status(error.code);
}
