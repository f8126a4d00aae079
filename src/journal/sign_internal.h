/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of keys need of libcrypto. */
#ifndef TCI_JOURNAL_SIGN_INTERNAL_H
#define TCI_JOURNAL_SIGN_INTERNAL_H

#include "journal/sign.h"

/* Fills in the public half of a private key. */
int tci_sign_key_derive(struct tci_sign_key *key, struct tc_error *reterr) tci_must_check;

#endif
