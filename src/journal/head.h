/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: signatures of heads, in the journal's own table. A signature of a head covers every row up to
 * it, since the head's hash follows from all of them.
 */
#ifndef TCI_JOURNAL_HEAD_H
#define TCI_JOURNAL_HEAD_H

#include "journal/journal.h"
#include "journal/statement.h"

struct tci_head {
    uint64_t row;
    char state_hash[TCI_SHA256_TEXT_MAX];
};

/* Verifies the whole journal; an error, with the reason in its remedy, when it is not good. */
int tci_journal_require_good(struct tci_journal *journal, const char *why,
                             struct tc_error *reterr) tci_must_check;

/* Signs the present head, of a journal that verifies. A second signature of a head by the same key replaces the first. */
int tci_head_sign(struct tci_journal *journal, const struct tci_sign_key *key, struct tci_head *ret,
                  struct tc_error *reterr) tci_must_check;
/* The same inside a transaction of the caller's. */
int tci_head_sign_within(struct tci_journal *journal, const struct tci_sign_key *key,
                         struct tci_head *ret, struct tc_error *reterr) tci_must_check;

/* After a verify that was good: up to which row did this key sign? None at all is a finding, and so is
 * a checkpoint behind it: that rows were removed must be signed off, too. */
int tci_head_signed_by(struct tci_journal *journal, const struct tci_sign_key *key,
                       struct tci_journal_report *report, uint64_t *ret_row,
                       struct tc_error *reterr) tci_must_check;

/* Puts a signature of an import in, inside a transaction, when it is a good one of a row that is
 * there. 0; 1: it is not. */
int tci_head_insert(struct tci_journal *journal, const struct tci_signature *signature,
                    struct tc_error *reterr) tci_must_check;

/* All of them, in the order of rows. A value other than 0 ends it, and is returned. */
typedef int tci_head_visitor(void *context, uint64_t row, const char *state_hash,
                             const struct tci_signature *signature, struct tc_error *reterr);
int tci_head_each(struct tci_journal *journal, tci_head_visitor *each, void *context,
                  struct tc_error *reterr) tci_must_check;

#endif
