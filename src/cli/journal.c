/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: finding and opening the journal for the verbs that are about it, and their progress line. */
#include "cli/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/quote.h"

int cli_journal_named(const struct cli_call *call, const char **ret)
{
    const char *variable = getenv("TOOLCAGE_JOURNAL");
    *ret = call->values[CLI_JOURNAL];
    if (*ret && !**ret)
        return cli_usage("write --journal FILE", "the name of the journal is empty");
    if (!*ret && variable && *variable)
        *ret = variable;
    return CLI_EXIT_OK;
}

int cli_journal_open(const struct cli_call *call, const char *file, unsigned flags,
                     struct tci_journal **ret)
{
    const char *path = file;
    char standard[TCI_PATH_MAX + 1];
    struct tc_error error = { 0 };
    int status = file ? CLI_EXIT_OK : cli_journal_named(call, &path);

    if (status != CLI_EXIT_OK)
        return status;
    if (!path) {
        if (tci_journal_default_path(standard, &error) < 0)
            return cli_fail(&error);
        path = standard;
    }
    if (tci_journal_open(path, flags, ret, &error) < 0)
        return cli_fail(&error);
    return CLI_EXIT_OK;
}

bool cli_number(const struct cli_call *call, enum cli_option_id id, uint64_t *ret)
{
    const char *text = call->values[id], *p = text;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9' && value <= INT64_MAX / 100; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    if (p == text || *p) {
        cli_usage("write a number, such as 100", "--%s is not a number of rows",
                  cli_options[id].name);
        return false;
    }
    *ret = value;
    return true;
}

void cli_journal_progress(void *context, uint64_t done, uint64_t all)
{
    (void)context;
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " rows\033[K", done, all);
}

void cli_journal_progress_end(void)
{
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}
