/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: where each session goes on behind a row: what a checkpoint must say. */
#ifndef TCI_JOURNAL_BASES_H
#define TCI_JOURNAL_BASES_H

#include "journal/journal_internal.h"

/* Fills in `sessions` of a checkpoint for the rows behind `rows`, from those rows themselves: each
 * session whose first one is not step 1, with the step and the hash that it follows; and the session ""
 * from its head, when it has no row there. Inside lock; `rows` are still in the file or gone already. */
int tci_journal_bases(struct tci_journal *journal, uint64_t rows, struct tci_arena *arena,
                      struct tci_journal_checkpoint *ret, struct tc_error *reterr) tci_must_check;

#endif
