/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: forgetting old rows. What is removed is removed from the file and its log, not only from the
 * table; what is left still verifies, from a checkpoint record that says where the chain begins now.
 */
#ifndef TCI_JOURNAL_PRUNE_H
#define TCI_JOURNAL_PRUNE_H

#include "journal/journal.h"
#include "journal/sign.h"

struct tci_prune {
    int64_t before_us;              /* rows that ended before; 0: by `keep` */
    uint64_t keep;                  /* how many of the last rows stay; UINT64_MAX: by `before_us` */
    const struct tci_sign_key *key; /* signs the checkpoint; NULL: nobody does */
};

struct tci_prune_report {
    uint64_t removed, left, grants; /* left: with the checkpoint; grants: that stay in force */
    uint64_t first_row;             /* that is left */
};

/* Refuses a journal that does not verify: a checkpoint would make what is wrong with it look right.
 * Removes nothing, and writes no checkpoint, when no row is old enough. */
int tci_journal_prune(struct tci_journal *journal, const struct tci_prune *options,
                      struct tci_prune_report *ret, struct tc_error *reterr) tci_must_check;

#endif
