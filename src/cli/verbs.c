/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the tables of verbs and options, from which parsing, help and completion are made. */
#include "cli/cli.h"

#include <string.h>

const struct cli_option cli_options[CLI_OPTION_COUNT] = {
#define X(id, name, letter, argument, completes, help)                                             \
    [CLI_##id] = { name, letter, argument, CLI_COMPLETES_##completes, help },
#include "cli/options.def"
#undef X
};

#define O(id) cli_option_bit(CLI_##id)
const struct cli_verb cli_verbs[] = {
#define X(name, arguments, completes, options, summary, text)                                      \
    { #name, arguments,     CLI_COMPLETES_##completes, (options) | O(HELP), summary,               \
      text,  cli_run_##name },
#include "cli/verbs.def"
#undef X
    { .name = NULL },
};
#undef O

const struct cli_verb *cli_find_verb(const char *name)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}
