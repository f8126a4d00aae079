/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: SHA-256 (FIPS 180-4). Our own: a library for it would be loaded by every `toolcage exec`,
 * and loading it takes longer than all that a call hashes.
 */
#ifndef TCI_BASE_SHA256_H
#define TCI_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TCI_SHA256_SIZE = 32, TCI_SHA256_TEXT_MAX = 65 };

struct tci_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
};

void tci_sha256_begin(struct tci_sha256 *hash);
void tci_sha256_add(struct tci_sha256 *hash, const void *bytes, size_t length);
/* Ends it: begin again before more is added. */
void tci_sha256_end(struct tci_sha256 *hash, unsigned char ret[TCI_SHA256_SIZE]);
/* The same as 64 lower-case hexadecimal digits. */
void tci_sha256_end_text(struct tci_sha256 *hash, char ret[TCI_SHA256_TEXT_MAX]);

/* All at once. */
void tci_sha256_text(const void *bytes, size_t length, char ret[TCI_SHA256_TEXT_MAX]);

#endif
