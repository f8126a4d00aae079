/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage mcp`: which part of it is meant, and the parts that put somebody else's server into a
 * cage. */
#include "cli/mcp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/quote.h"
#include "cli/exec.h"
#include "cli/journal.h"
#include "cli/parts.h"
#include "mcp/wrap.h"

/* ---- what all parts need ------------------------------------------------------------------ */

void mcp_setup_free(struct mcp_setup *setup)
{
    free(setup->memory);
    tci_policy_freep(&setup->policy);
}

/* Does the journal have a grant for it, made at run time? */
static bool is_granted_something(const char *journal_path, const char *agent)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant *grants;
    struct tc_error error = { 0 };
    size_t count = 0;
    if (arena && tci_journal_open(journal_path, TCI_JOURNAL_READ_ONLY, &journal, &error) == 0 &&
        tci_journal_grants(journal, agent, false, arena, &grants, &count, &error) < 0)
        count = 0;
    tci_arena_free(arena);
    return count > 0;
}

int mcp_check_agent(const struct mcp_setup *setup, const char *agent, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    if (!agent || tci_policy_agent(setup->policy, agent) ||
        (setup->journal_path && is_granted_something(setup->journal_path, agent)))
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "the policy has no agent %s",
                  tci_quote(agent, strlen(agent), quoted));
    tci_error_remedy(reterr, "add [agent.NAME] with its grants to the policy, or correct the name");
    return -1;
}

/* One that is there, for the grants in it: what is only written down for a client needs none. */
static int find_journal(const struct cli_call *cli, const char **ret, char **ret_memory)
{
    struct tc_error error = { 0 };
    int status = cli_journal_named(cli, ret);
    if (status == CLI_EXIT_OK && !*ret && tc_journal_default_path(ret_memory, &error) == 0)
        *ret = *ret_memory;
    return status;
}

int mcp_setup(const struct cli_call *cli, bool without_journal, struct mcp_setup *ret)
{
    struct tc_engine_options options = { 0 };
    struct tc_error error = { 0 };
    int status;

    ret->policy_path = cli_policy_path(cli, false);
    if (!ret->policy_path)
        return CLI_EXIT_REFUSED;
    /* It is read again when it changes; and standard input is the client's. */
    if (strcmp(ret->policy_path, "-") == 0)
        return cli_usage("write the policy to a file and name it",
                         "\"toolcage mcp\" cannot read its policy from standard input");
    status = cli_load_policy(cli, false, &ret->policy);
    if (status == CLI_EXIT_OK && !without_journal)
        status = exec_journal(cli, &options, &ret->memory);
    else if (status == CLI_EXIT_OK)
        status = find_journal(cli, &options.journal_path, &ret->memory);
    ret->journal_path = options.journal_path;
    ret->mode = options.mode;
    if (status == CLI_EXIT_OK && mcp_check_agent(ret, cli->values[CLI_AGENT], &error) < 0)
        status = cli_fail(&error);
    return status;
}

void mcp_say(void *context, const char *line)
{
    (void)context;
    (void)fputs("toolcage: ", stderr);
    cli_print_line(stderr, line);
    (void)fputc('\n', stderr);
}

/* ---- wrap, pin ---------------------------------------------------------------------------- */

static int wrap_options(const struct cli_call *cli, struct mcp_setup *setup,
                        struct tci_mcp_wrap_options *ret)
{
    const char *tool = cli->values[CLI_TOOL];
    char quoted[TCI_QUOTE_MAX];
    int status;

    if (!tool)
        return cli_usage("name the tool of the policy whose cage it gets: --tool NAME",
                         "\"toolcage mcp %s\" needs --tool", cli->argument);
    status = mcp_setup(cli, false, setup);
    if (status != CLI_EXIT_OK)
        return status;
    if (!tci_policy_tool(setup->policy, tool))
        return cli_usage("see toolcage tools for those that it has", "the policy has no tool %s",
                         tci_quote(tool, strlen(tool), quoted));
    *ret = (struct tci_mcp_wrap_options){
        .policy_path = setup->policy_path,
        .tool = tool,
        .command = (const char *const *)cli->command,
        .agent = cli->values[CLI_AGENT],
        .journal_path = setup->journal_path,
        .session = cli->values[CLI_SESSION],
        .pin_path = cli->values[CLI_PIN],
        .explain_denials = cli_given(cli, CLI_EXPLAIN_DENIALS),
        .mode = setup->mode,
        .say = mcp_say,
    };
    return CLI_EXIT_OK;
}

static int run_wrap(const struct cli_call *cli, const char *word)
{
    tc_cleanup(mcp_setup_free) struct mcp_setup setup = { 0 };
    struct tci_mcp_wrap_options options;
    struct tc_error error = { 0 };
    int status = wrap_options(cli, &setup, &options);
    (void)word;
    if (status != CLI_EXIT_OK)
        return status;
    if (tci_mcp_wrap(&options, STDIN_FILENO, STDOUT_FILENO, &error) < 0)
        return cli_fail(&error);
    return CLI_EXIT_OK;
}

static int run_pin(const struct cli_call *cli, const char *word)
{
    tc_cleanup(mcp_setup_free) struct mcp_setup setup = { 0 };
    struct tci_mcp_wrap_options options;
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tc_error error = { 0 };
    char *text = NULL;
    int status = wrap_options(cli, &setup, &options);
    (void)word;
    if (status != CLI_EXIT_OK)
        return status;
    if (tci_mcp_pin(&options, &text, &error) < 0)
        return cli_fail(&error);
    tci_buf_string(&out, text);
    free(text);
    return cli_output(&out, true, CLI_EXIT_OK);
}

/* ---- which part --------------------------------------------------------------------------- */

#define O(id)     cli_option_bit(CLI_##id)
#define O_JOURNAL O(JOURNAL) | O(NO_JOURNAL) | O(SESSION) | O(MODE)
static const struct cli_part items[] = {
    { "serve", "remove it",
      O(HTTP) | O(TOKEN_FILE) | O(NO_TOKEN) | O(ALLOW_HOST) | O(ALLOW_REMOTE) | O_JOURNAL,
      mcp_run_serve },
    { "wrap", "remove it", O(TOOL) | O(PIN) | O(EXPLAIN_DENIALS) | O_JOURNAL, run_wrap },
    { "pin", "remove it", O(TOOL) | O(PIN), run_pin },
    { "config", "remove it", O(CLIENT) | O(HTTP) | O(TOOL) | O(PIN), mcp_run_config },
};

static const struct cli_parts parts = {
    .items = items,
    .count = tci_array_size(items),
    .options = O(POLICY) | O(AGENT),
    .unknown = "has no part",
    .unknown_remedy = "see toolcage mcp --help",
};
#undef O_JOURNAL
#undef O

int cli_run_mcp(const struct cli_call *cli)
{
    struct cli_call call = *cli;
    if (!call.argument)
        call.argument = items[0].name;
    return cli_run_part(&call, &parts);
}
