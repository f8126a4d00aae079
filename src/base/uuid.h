/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: ids that nobody can guess and that no two calls share, in any thread, process or host. */
#ifndef TCI_BASE_UUID_H
#define TCI_BASE_UUID_H

#include <stddef.h>
#include "base/attr.h"

enum { TCI_UUID_TEXT_MAX = 37, TCI_RANDOM_HEX_MAX = 32 };

/* `size` bytes of the kernel's random numbers. 0, or -1 with errno (ENOSYS before Linux 3.17). */
int tci_random(void *bytes, size_t size) tci_must_check;

/* UUID version 7 (RFC 9562): sorts by the millisecond in which it was made; 74 bits are random. */
int tci_uuid7(char ret[TCI_UUID_TEXT_MAX]) tci_must_check;

/* `size` random bytes (at most TCI_RANDOM_HEX_MAX) as 2 * size hexadecimal digits and a NUL. */
int tci_random_hex(size_t size, char *ret) tci_must_check;

/* Bytes as lower-case hexadecimal digits and a NUL. */
void tci_hex(const void *bytes, size_t size, char *ret);

#endif
