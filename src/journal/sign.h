/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: Ed25519 keys and signatures. The arithmetic is libcrypto's, which is opened when the first
 * signature is made or checked and never before: `exec` does not pay for it, and a host without it
 * can do everything but sign.
 *
 * What is signed is always a text that begins with its purpose, so that a signature made for one
 * thing (the head of a journal) cannot be shown as one for another (a receipt).
 */
#ifndef TCI_JOURNAL_SIGN_H
#define TCI_JOURNAL_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"
#include "base/error.h"

enum {
    TCI_SIGN_KEY_SIZE = 32,
    TCI_SIGN_KEY_TEXT_MAX = 2 * TCI_SIGN_KEY_SIZE + 1,
    TCI_SIGNATURE_SIZE = 64,
    TCI_SIGNATURE_TEXT_MAX = 2 * TCI_SIGNATURE_SIZE + 1,
};

struct tci_sign_key {
    unsigned char public_key[TCI_SIGN_KEY_SIZE];
    unsigned char seed[TCI_SIGN_KEY_SIZE]; /* what makes it private */
    bool is_private;
};

/* Makes a pair: the private key in `path` (PKCS#8, PEM, mode 0600) and the public one in `path`.pub.
 * Never overwrites, and follows no link at the end of either path. */
int tci_sign_key_make(const char *path, char ret_public[TCI_SIGN_KEY_TEXT_MAX],
                      struct tc_error *reterr) tci_must_check;

/* Refuses a key that others may read: what they can read they can sign with. */
int tci_sign_key_read_private(const char *path, struct tci_sign_key *ret,
                              struct tc_error *reterr) tci_must_check;
int tci_sign_key_read_public(const char *path, struct tci_sign_key *ret,
                             struct tc_error *reterr) tci_must_check;
/* The public key in hexadecimal digits; false: it is none. */
bool tci_sign_key_from_text(const char *text, struct tci_sign_key *ret);
/* Overwrites the private part. */
void tci_sign_key_forget(struct tci_sign_key *key);

/* Signatures as lower-case hexadecimal digits. */
int tci_sign(const struct tci_sign_key *key, const char *text, size_t length,
             char ret[TCI_SIGNATURE_TEXT_MAX], struct tc_error *reterr) tci_must_check;
/* 0: good; 1: not a signature of this text by this key; -1: could not be checked. */
int tci_sign_check(const struct tci_sign_key *key, const char *text, size_t length,
                   const char *signature, struct tc_error *reterr) tci_must_check;

/* `size` bytes from exactly 2 * size lower-case hexadecimal digits. */
bool tci_unhex(const char *text, unsigned char *ret, size_t size);

#endif
