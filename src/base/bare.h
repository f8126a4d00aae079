/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what programs of ours without a C library share besides calls.h. */
#ifndef TCI_BASE_BARE_H
#define TCI_BASE_BARE_H

#include <stddef.h>

/* The compiler writes calls of these two, also into a program without a C library. */
void *memset(void *to, int value, size_t length);
void *memcpy(void *restrict to, const void *restrict from, size_t length);

/* Starts a program as a shell does it: the first in PATH that can be started; "not allowed" is remembered
 * over "not there". An empty element of PATH is no directory: what lies in the working directory is not
 * started by accident. Returns a negative errno, or not at all. */
long tci_bare_start(const char *name, char **arguments, char **environment);

#endif
