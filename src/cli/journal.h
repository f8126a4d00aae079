/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the verbs about the journal share. */
#ifndef TCI_CLI_JOURNAL_H
#define TCI_CLI_JOURNAL_H

#include "cli/cli.h"
#include "journal/journal.h"

/* The journal that is named: --journal, else $TOOLCAGE_JOURNAL; *ret is NULL when neither is. An exit
 * status, after a usage error has been reported. */
int cli_journal_named(const struct cli_call *call, const char **ret);

/* Opens the journal of `file` (may be NULL), --journal, $TOOLCAGE_JOURNAL or the default path. On
 * failure everything has been reported: the result is the exit status. 0: *ret is open. */
int cli_journal_open(const struct cli_call *call, const char *file, unsigned flags,
                     struct tci_journal **ret);

/* A number behind an option. false: it was reported. */
bool cli_number(const struct cli_call *call, enum cli_option_id id, uint64_t *ret);

/* Rows done of rows in all, on a terminal only; a tci_journal_progress without context. */
void cli_journal_progress(void *context, uint64_t done, uint64_t all);
/* Wipes the line of it. */
void cli_journal_progress_end(void);

/* journal_show.c: an exit status. */
int cli_journal_show(const struct cli_call *call, const char *call_id);

#endif
