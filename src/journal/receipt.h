/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: receipts: one record of a journal, with what is needed to recompute its hash, on its own.
 * A receipt without a signature shows only that it is whole; with one, that the holder of the key
 * says so.
 */
#ifndef TCI_JOURNAL_RECEIPT_H
#define TCI_JOURNAL_RECEIPT_H

#include "base/buf.h"
#include "journal/journal.h"
#include "journal/sign.h"

enum { TCI_RECEIPT_MAX = 64 * 1024 * 1024 };

struct tci_receipt_report {
    bool good;
    bool is_signed, by_given_key;
    bool has_request, has_result;    /* texts are there and are those of the record */
    char key[TCI_SIGN_KEY_TEXT_MAX]; /* who signed; "": nobody */
    char call_id[256], tool[256], agent[256], verdict[256], session[256]; /* longer ones are cut */
    int64_t started_us, signed_us;
    char state_hash[TCI_SHA256_TEXT_MAX];
    char problem[512]; /* one sentence, when it is not good */
};

/* Writes the receipt of a call as one line of JSON. 0; 1: the journal has no such call. */
int tci_receipt_write(struct tci_journal *journal, const char *call_id, bool texts,
                      const struct tci_sign_key *key /* may be NULL */, struct tci_buf *out,
                      struct tc_error *reterr) tci_must_check;

/* Checks a receipt without a journal. A receipt that is wrong is an answer, not an error. `key`: who
 * must have signed it; NULL: anybody, or nobody. */
int tci_receipt_check(const char *text, size_t length, const struct tci_sign_key *key,
                      struct tci_receipt_report *ret, struct tc_error *reterr) tci_must_check;

#endif
