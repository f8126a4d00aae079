/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a signature says. A statement is canonical JSON that begins with nothing secret and names
 * its purpose:
 *
 *   {"journal":ID,"purpose":PURPOSE,"row":N,"signed_us":N,"state_hash":HEX}
 *
 * ID is the SHA-256 of the journal's salt behind a prefix: it names the journal and gives nothing away.
 */
#ifndef TCI_JOURNAL_STATEMENT_H
#define TCI_JOURNAL_STATEMENT_H

#include "journal/journal.h"
#include "journal/sign.h"

#define TCI_PURPOSE_HEAD    "toolcage journal head"
#define TCI_PURPOSE_RECEIPT "toolcage receipt"

enum { TCI_STATEMENT_MAX = 384 };

struct tci_statement {
    const char *purpose;
    char journal[TCI_SHA256_TEXT_MAX], state_hash[TCI_SHA256_TEXT_MAX];
    uint64_t row;
    int64_t signed_us;
};

struct tci_signature {
    char key[TCI_SIGN_KEY_TEXT_MAX];
    char signature[TCI_SIGNATURE_TEXT_MAX];
    char statement[TCI_STATEMENT_MAX];
};

void tci_journal_id(const struct tci_journal *journal, char ret[TCI_SHA256_TEXT_MAX]);

int tci_statement_sign(const struct tci_statement *statement, const struct tci_sign_key *key,
                       struct tci_signature *ret, struct tc_error *reterr) tci_must_check;
/* 0: the signature is good, for this purpose, and *ret is what it says; 1: it is not; -1: it could
 * not be checked. */
int tci_statement_check(const struct tci_signature *signature, const char *purpose,
                        struct tci_statement *ret, struct tc_error *reterr) tci_must_check;

#endif
