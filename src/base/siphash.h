/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a keyed hash for tables whose keys come from strangers. Not for signatures or records. */
#ifndef TCI_BASE_SIPHASH_H
#define TCI_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 of the bytes under a 128-bit key. */
uint64_t tci_siphash(const uint64_t key[2], const void *bytes, size_t length);

#endif
