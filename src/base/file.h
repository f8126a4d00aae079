/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading a whole file that somebody else may have written, or may still be writing. */
#ifndef TCI_BASE_FILE_H
#define TCI_BASE_FILE_H

#include <stddef.h>
#include "base/arena.h"
#include "base/error.h"

/*
 * Reads a regular file, or standard input for "-", into the arena with a NUL behind it.
 * Refused with a reason and a remedy: anything that is not a regular file (a directory; a FIFO or
 * device, which could block or never end), more than `maximum` bytes (without reading them), and a
 * file that changed while it was read: half of an old and half of a new policy is no policy.
 */
int tci_file_read(struct tci_arena *arena, const char *path, size_t maximum, char **ret_bytes,
                  size_t *ret_length, struct tc_error *reterr) tci_must_check;

/* The same for a file below a directory: no part of the path may be a symbolic link, so that nothing
 * outside is reached. `path` is relative to `directory`. */
int tci_file_read_beneath(struct tci_arena *arena, const char *directory, const char *path,
                          size_t maximum, char **ret_bytes, size_t *ret_length,
                          struct tc_error *reterr) tci_must_check;

#endif
