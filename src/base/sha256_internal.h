/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the two ways to compress blocks of SHA-256. They give the same. */
#ifndef TCI_BASE_SHA256_INTERNAL_H
#define TCI_BASE_SHA256_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t tci_sha256_constants[64];

/* `count` blocks of 64 bytes each, with C alone. */
void tci_sha256_compress(uint32_t state[8], const unsigned char *blocks, size_t count);

/* With the processor's own instructions, several times as fast; false, and nothing done, where
 * the processor or the build has none. */
bool tci_sha256_compress_fast(uint32_t state[8], const unsigned char *blocks, size_t count);

#endif
