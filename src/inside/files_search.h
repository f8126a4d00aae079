/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the state of one search: what is looked for, what was found, and what is left of its bounds. */
#ifndef TCI_INSIDE_FILES_SEARCH_H
#define TCI_INSIDE_FILES_SEARCH_H

#include "inside/files.h"

enum {
    TCI_SEARCH_FIRST = 64 << 10, /* bytes of a file that are read first */
    TCI_SEARCH_WINDOW = 4 << 20, /* and at a time from then on */
};

struct tci_matcher;

struct tci_search {
    const char *pattern;
    size_t pattern_length;
    struct tci_matcher *matcher;
    struct tci_files_glob *glob;
    size_t context; /* lines before and after */
    bool hidden;
    struct tci_json json;
    struct tci_buf out;
    char *window;        /* where files are read to */
    int64_t matches;     /* that may still be found */
    int64_t bytes;       /* that may still be read */
    int64_t deadline;    /* nanoseconds of the monotonic clock */
    uint64_t files;      /* searched */
    uint64_t skipped;    /* binary, or not to be read */
    const char *stopped; /* why the search ended early; NULL: it did not */
};

/* Compiles what is looked for; fails with a sentence when it cannot be. */
struct tci_matcher *tci_matcher_new(const char *pattern, size_t length, bool literal,
                                    bool case_sensitive);
/* Where the first match in the line begins, or -1. Fails when the pattern takes too many steps. */
int64_t tci_matcher_find(const struct tci_matcher *matcher, const char *line, size_t length,
                         const char *path, uint64_t number);

/* Searches an open regular file. `path` is for the answer. Closes it. */
void tci_search_file(struct tci_search *search, int fd, const char *path);

/* Has a bound been reached? Remembers which. */
bool tci_search_is_over(struct tci_search *search);

#endif
