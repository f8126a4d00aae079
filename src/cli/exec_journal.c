/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which journal a verb that runs something has, and in which mode. `call` records always, unless
 * told not to; `exec` when a journal or a session is named.
 */
#include "cli/exec.h"

#include <string.h>
#include "base/quote.h"
#include "cli/journal.h"

/* -1: reported. */
static int read_mode(const struct cli_call *cli, struct tc_engine_options *ret)
{
    const char *mode = cli->values[CLI_MODE];
    char quoted[TCI_QUOTE_MAX];
    if (!mode || strcmp(mode, "live") == 0)
        return 0;
    if (strcmp(mode, "replay") != 0) {
        cli_usage("write --mode live or --mode replay", "there is no mode %s",
                  tci_quote(mode, strlen(mode), quoted));
        return -1;
    }
    ret->mode = TC_MODE_REPLAY;
    /* Every command is a process of its own, and goes on where the one before stopped. */
    ret->flags |= TC_ENGINE_REPLAY_RESUME;
    return 0;
}

/* The option that --no-journal takes the meaning from; NULL: none is given. */
static const char *needs_journal(const struct cli_call *cli,
                                 const struct tc_engine_options *options)
{
    return cli_given(cli, CLI_JOURNAL)       ? "--journal"
           : cli_given(cli, CLI_SESSION)     ? "--session"
           : options->mode == TC_MODE_REPLAY ? "--mode replay"
                                             : NULL;
}

int exec_journal(const struct cli_call *cli, struct tc_engine_options *ret, char **ret_path)
{
    const char *why;
    struct tc_error error = { 0 };
    int status;

    if (read_mode(cli, ret) < 0)
        return CLI_EXIT_REFUSED;
    why = needs_journal(cli, ret);
    if (cli_given(cli, CLI_NO_JOURNAL))
        return why ? cli_usage("leave one of them out",
                               "%s needs a journal, and --no-journal says no", why)
                   : CLI_EXIT_OK;
    status = cli_journal_named(cli, &ret->journal_path);
    if (status != CLI_EXIT_OK || ret->journal_path ||
        !(why || cli_takes(cli->verb, CLI_NO_JOURNAL)))
        return status;
    if (tc_journal_default_path(ret_path, &error) < 0)
        return cli_fail(&error);
    ret->journal_path = *ret_path;
    return CLI_EXIT_OK;
}
