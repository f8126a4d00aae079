/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: counting one call under several grants at once. */
#ifndef TCI_JOURNAL_COUNT_ALL_H
#define TCI_JOURNAL_COUNT_ALL_H

#include "journal/journal.h"

/* Counts a call under every key, or under none: *ret_counted is false when one of them has had its
 * `max` already. One transaction: nobody comes between, and a call that one grant refuses uses up
 * nothing of the others. */
int tci_journal_count_all(struct tci_journal *journal, const char *const *keys, const uint64_t *max,
                          size_t count, bool *ret_counted, struct tc_error *reterr) tci_must_check;

#endif
