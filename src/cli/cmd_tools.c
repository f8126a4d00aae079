/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage tools`. */
#include "cli/journal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/quote.h"
#include "policy/explain.h"

/* Run-time grants of an agent are in the journal, if there is one: it is read, and nothing else. An
 * exit status; free *ret_memory after the engine was opened. */
static int find_journal(const struct cli_call *call, struct tc_engine_options *ret,
                        char **ret_memory)
{
    struct tc_error error = { 0 };
    const char *path;
    int status = cli_journal_named(call, &path);
    if (status != CLI_EXIT_OK)
        return status;
    if (!path) {
        if (tc_journal_default_path(ret_memory, &error) < 0)
            return cli_fail(&error);
        path = access(*ret_memory, F_OK) == 0 ? *ret_memory : NULL;
    }
    ret->journal_path = path;
    ret->mode = path ? TC_MODE_REPLAY : TC_MODE_LIVE; /* which opens it for reading only */
    return CLI_EXIT_OK;
}

/* Definitions, from an engine: as a host of the library gets them. */
static int print_definitions(const struct cli_call *call, const struct tc_policy *policy,
                             const char *format)
{
    const char *agent = call->values[CLI_AGENT];
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tc_engine_options options = { .policy = policy };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    char *memory = NULL, *text = NULL;
    int status = agent ? find_journal(call, &options, &memory) : CLI_EXIT_OK;

    if (status == CLI_EXIT_OK && (tc_engine_open(&options, &engine, &error) < 0 ||
                                  tc_engine_tools(engine, agent, format, &text, &error) < 0))
        status = cli_fail(&error);
    tc_engine_close(engine);
    free(memory);
    if (status != CLI_EXIT_OK)
        return status;
    tci_buf_string(&out, text);
    tci_buf_char(&out, '\n');
    free(text);
    return cli_output(&out, false, CLI_EXIT_OK);
}

int cli_run_tools(const struct cli_call *call)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tci_buf out = TCI_BUF_INIT(TCI_EXPLAIN_MAX);
    const char *format = call->values[CLI_FORMAT];
    int status;

    if (format && cli_given(call, CLI_JSON))
        return cli_usage("leave one of them out", "--json and --format both say what to print");
    if (cli_given(call, CLI_JSON))
        format = "json";
    if (format && strcmp(format, "human") == 0)
        format = NULL;
    if (cli_given(call, CLI_AGENT) && !format)
        return cli_usage("add --json, or --format openai, anthropic or mcp",
                         "--agent is for definitions, and a list for people shows every agent");
    status = cli_load_policy(call, false, &policy);
    if (status != CLI_EXIT_OK)
        return status;
    if (format)
        return print_definitions(call, policy, format);
    tci_tools_text(policy, &out);
    if (out.length == 0)
        tci_buf_string(&out, "the policy has no tools; [tool.NAME] defines one\n");
    return cli_output(&out, true, CLI_EXIT_OK);
}
