/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading a whole file that somebody else may have written, or may still be writing; and judging
 * one that holds a secret. */
#ifndef TCI_BASE_FILE_H
#define TCI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
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

/* The same for a file that the caller has opened and judged. */
int tci_file_read_fd(struct tci_arena *arena, int fd, size_t maximum, char **ret_bytes,
                     size_t *ret_length, struct tc_error *reterr) tci_must_check;

/* The same for a file below a directory: no part of the path may be a symbolic link, so that nothing
 * outside is reached. `path` is relative to `directory`. */
int tci_file_read_beneath(struct tci_arena *arena, const char *directory, const char *path,
                          size_t maximum, char **ret_bytes, size_t *ret_length,
                          struct tc_error *reterr) tci_must_check;

/* Opens to read; a FIFO or a device in the file's place does not hold us up. -1 with errno. */
int tci_file_open(const char *path) tci_must_check;

/* What can be wrong with a file that holds a secret. */
enum {
    TCI_SECRET_NO_FILE = 1, /* not a regular file */
    TCI_SECRET_FOREIGN = 2, /* another user's, who knows what is in it and may change it */
    TCI_SECRET_EXPOSED = 4, /* its mode lets others read or write it */
};

/* All that is wrong with an open file of secrets, 0 if nothing is, or -1 with errno. By the
 * descriptor: the file cannot be exchanged between the check and the read. `root_too`: root's file is
 * as good as our own. */
int tci_file_judge_secret(int fd, bool root_too, struct stat *ret_stat) tci_must_check;

#endif
