/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: verbs that have parts ("toolcage journal verify"): which one is meant, and what it takes. */
#ifndef TCI_CLI_PARTS_H
#define TCI_CLI_PARTS_H

#include "cli/cli.h"

struct cli_part {
    const char *name;
    const char *no_word; /* NULL: a word may stand behind it; else what to do about one */
    uint64_t options;    /* bit per cli_option_id */
    int (*run)(const struct cli_call *call, const char *word); /* NULL: no word was given */
};

struct cli_parts {
    const struct cli_part *items;
    size_t count;
    uint64_t options; /* that every part takes */
    /* The messages where no part is named, and where there is no such part: "toolcage VERB" comes before
     * the last, and the wrong word behind it. */
    const char *missing, *missing_remedy;
    const char *unknown, *unknown_remedy;
};

/* Runs the part that the call names. An exit status. */
int cli_run_part(const struct cli_call *call, const struct cli_parts *parts);

#endif
