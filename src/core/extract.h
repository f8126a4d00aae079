/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: bringing files out of a cage. The attack: the tree under the handle was written by an enemy
 * and may still be written while we read (a granted host directory): links, magic links, devices,
 * FIFOs, files that grow, sparse files of terabytes, a million entries, names with line breaks.
 * Everything is opened beneath the handle, without following links, without blocking.
 */
#ifndef TCI_CORE_EXTRACT_H
#define TCI_CORE_EXTRACT_H

#include "backend/backend.h"
#include "base/arena.h"
#include "base/error.h"
#include "toolcage/toolcage.h"

struct tci_extract {
    /* In the cage: absolute, or relative to `cwd`; the language is in core/extract_glob.h. */
    const char *const *globs;
    size_t glob_count;
    const char *cwd; /* in normal form */
    uint64_t max_file, max_files;
    int out;              /* directory to save into; -1: only list */
    const char *out_path; /* its name, for `saved` */
    /*
     * Opens a directory of the cage (absolute path, in normal form) as the cage saw it, beneath the
     * cage's root and without following links. -1 with *reterr and errno; ENOENT and ENOTDIR mean
     * that it is not there, which is no error. Mounts below it are crossed: they are the cage's own,
     * since it cannot make any. (Those of the kernel, such as /proc, are not entered.)
     */
    int (*open_directory)(void *context, const char *path, struct tc_error *reterr);
    void *context;
    /* The attack: a tool that owns its directory, but not a secret in it, renames that to something which a pattern
     * names, and we, who are root, read it for the tool. */
    struct tci_file_reader reader;
};

/* What one extraction looks at, at most. Beyond it an entry in `skipped` says so. */
enum {
    TCI_EXTRACT_ENTRIES_MAX = 100000,
    TCI_EXTRACT_DEPTH_MAX = 64,                     /* directories below the pattern's own */
    TCI_EXTRACT_MATCH_BYTES_MAX = 16 * 1024 * 1024, /* of all paths that match */
    TCI_EXTRACT_SKIPPED_MAX = 256,
};

struct tci_extracted {
    struct tc_file *files; /* ordered by path */
    size_t count;
    struct tc_denial *skipped; /* what matched and was not taken: kind "output", target, reason */
    size_t skipped_count;
};

/*
 * Everything it returns is in the arena. Each file is saved whole under its path relative to `cwd`,
 * or, outside of it, under its absolute path, below `out`; or not at all. What is there already is
 * replaced, links below `out` are not followed. A pattern that matches nothing is no error.
 * Negative: memory ran out, `out` cannot be written, the cage's root is gone, or this kernel has no
 * openat2. *ret then holds what had been saved before.
 */
int tci_extract(const struct tci_extract *what, struct tci_arena *arena, struct tci_extracted *ret,
                struct tc_error *reterr);

#endif
