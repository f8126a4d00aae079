/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the file tools share. The program `toolcage-files` is static: it needs nothing from the
 * cage, not even a C library, and starts in a fraction of a millisecond.
 *
 * Everything is bounded: bytes read, names sorted, depth, time. Nothing but regular files is opened
 * for reading or writing: a FIFO would block for ever, a device may do anything.
 */
#ifndef TCI_INSIDE_FILES_H
#define TCI_INSIDE_FILES_H

#include <sys/stat.h>
#include "base/arena.h"
#include "inside/inside.h"

/* The tools. Each prints its answer or fails. */
void tci_files_read(const json_t *arguments);
void tci_files_write(const json_t *arguments);
void tci_files_edit(const json_t *arguments);
void tci_files_list(const json_t *arguments);
void tci_files_search(const json_t *arguments);

/* Opens a regular file for reading, following links; fails otherwise. */
int tci_files_open(const char *path, struct stat *ret_status);
/* Reads up to `size` bytes at `offset`; fewer only at the end. Fails when it cannot. */
size_t tci_files_pread(int fd, const char *path, char *buffer, size_t size, int64_t offset);

/* What "directory", "file", "symlink", "other" stands for. */
const char *tci_files_type(mode_t mode);

/* Where a path leads once all links are followed: the links stay, what they lead to is written. A
 * path that does not exist is itself. False when it does not exist. */
bool tci_files_resolve(const char *path, char **ret_resolved, struct stat *ret_status);

/* How a file is put in place. */
enum tci_files_place { TCI_FILES_NEW, TCI_FILES_REPLACE };

/* Writes the file so that whoever reads it sees the old content or the new one, never a part. `old`
 * is the file that is there (REPLACE), whose mode is kept; `path` must be resolved. `shown` is the
 * path for messages. Fails when it cannot. */
void tci_files_put(const char *path, const char *shown, const char *bytes, size_t length,
                   enum tci_files_place place, const struct stat *old);

/* The names in a directory, sorted by their bytes. */
struct tci_files_names {
    const char **names;
    size_t count;
    size_t hidden; /* names with a dot that were left out */
    bool truncated;
};
/* Reads an open directory. 0, or an errno. */
int tci_files_names(struct tci_arena *arena, int directory, bool hidden,
                    struct tci_files_names *ret);
/* Opens a directory below another; links are not followed, nor what is no place for files (/proc,
 * /sys) entered. A descriptor, or -1 with errno. */
int tci_files_enter(int directory, const char *name);

/* One name of a path, for files that a search may open. NULL: every file. */
struct tci_files_glob;
/* "*.c" is compared with the name, "src" + "/" + "*.c" with the path below the searched directory. */
struct tci_files_glob *tci_files_glob_compile(const char *text, size_t length);
bool tci_files_glob_matches(const struct tci_files_glob *glob, const char *path, const char *name);

#endif
