/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the extraction share. */
#ifndef TCI_CORE_EXTRACT_INTERNAL_H
#define TCI_CORE_EXTRACT_INTERNAL_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/extract.h"

/* A path that a pattern names. Nothing is known about it but that it is no directory. */
struct tci_match {
    const char *path;     /* absolute, in the cage; first, for sorting */
    size_t static_length; /* of it: the directory that open_directory opens; 0: the root */
};

/* One extraction. */
struct tci_extraction {
    const struct tci_extract *what;
    struct tci_arena *arena;
    struct tci_extracted *ret;
    struct tc_error *reterr;
    struct tci_match *matches;
    size_t match_count, match_room;
    size_t match_bytes;
    unsigned entries; /* that were looked at */
    bool root_seen;   /* the cage's root can be opened */
};

/* Opens below `directory` without following any link; again when a signal or a rename came between.
 * -1 with errno. */
int tci_extract_open(int directory, const char *path, int flags) tci_must_check;

/* The same for a directory of the cage, from its root on; each one on the way must be the command's to pass. As
 * open_directory. */
int tci_extract_directory(const struct tci_extract *what, const char *path,
                          struct tc_error *reterr) tci_must_check;

/* Could the command read it, list it, pass it: S_IROTH and S_IXOTH? What it owned it could give itself. `fd` may be of
 * O_PATH, and then lists of access are not looked at. */
bool tci_extract_may(const struct tci_extract *what, int fd, const struct stat *st, mode_t wanted);

/* An errno of it that concerns more than one file: *reterr is set, and the extraction ends. */
bool tci_extract_is_fatal(int errnum, struct tc_error *reterr);

/* Adds to `skipped`. The path is shown with \xNN for everything that is not clean. -1: no memory. */
int tci_extract_skip(struct tci_extraction *x, const char *path, const char *format,
                     ...) tci_must_check tci_printf_like(3, 4);

/* May a file of this path be taken: UTF-8, nothing in it that controls or deceives a terminal? */
bool tci_extract_is_clean(const char *path);

/* What a file that is none is called: "a symbolic link". */
const char *tci_extract_kind(mode_t mode);

/* extract_walk.c: finds what the patterns name, into x->matches, in any order and perhaps twice. */
int tci_extract_walk(struct tci_extraction *x) tci_must_check;

/* extract_save.c: a file on its way into `out`. Nothing of it is to be seen before it is complete. */
struct tci_saving {
    int directory;      /* `out`: not ours */
    int fd;             /* -1: nothing is saved, only listed */
    char temporary[48]; /* its name while it has one; "" otherwise */
};

/* 0, or -1 with errno. */
int tci_saving_begin(struct tci_saving *saving, int directory) tci_must_check;
/* Puts it to its place below `out`, making the directories on the way. -1 with errno. */
int tci_saving_publish(struct tci_saving *saving, const char *path) tci_must_check;
/* Closes it, and removes what was not published. */
void tci_saving_end(struct tci_saving *saving);

#endif
