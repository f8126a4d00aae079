/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a journal as JSON Lines: a header, every row with all its columns, every signature. Each line
 * is canonical JSON, so that two exports of one journal are the same bytes. docs/receipts.md has the
 * format.
 */
#ifndef TCI_JOURNAL_TRANSFER_H
#define TCI_JOURNAL_TRANSFER_H

#include "journal/journal.h"

/* Called now and then with what is done and what there is in all. */
typedef void tci_journal_progress(void *context, uint64_t done, uint64_t all);

struct tci_transfer {
    bool salt;                      /* export: also what the hashes of redacted values begin with */
    tci_journal_progress *progress; /* may be NULL */
    void *context;
};

struct tci_transfer_report {
    uint64_t rows, grants, signatures;
    char head[TCI_SHA256_TEXT_MAX];
};

/* Writes one moment of the journal, however long it takes. A row that is not what was recorded is an
 * error; the chain from row to row is verified by the reader. */
int tci_journal_export(struct tci_journal *journal, int fd, const struct tci_transfer *options,
                       struct tci_transfer_report *ret, struct tc_error *reterr) tci_must_check;

/* Reads an export into a journal that has no rows yet. The chain is checked line by line; all of it
 * comes in, or nothing. A wrong line is named by its number, in reterr->line too. */
int tci_journal_import(struct tci_journal *journal, int fd, const struct tci_transfer *options,
                       struct tci_transfer_report *ret, struct tc_error *reterr) tci_must_check;

#endif
