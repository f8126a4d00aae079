/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: paths as text. Normalises lexically, never touches the file system: what a path means on
 * the host is found out when it is opened, beneath a handle, and not here.
 */
#ifndef TCI_BASE_PATH_H
#define TCI_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include "base/attr.h"

enum {
    TCI_PATH_MAX = 4095,     /* bytes of a whole path */
    TCI_COMPONENT_MAX = 255, /* bytes between two slashes */
};

/* Why a path was refused, in the order in which they are looked for. */
enum tci_path_problem {
    TCI_PATH_OK,
    TCI_PATH_EMPTY,
    TCI_PATH_CONTROL_BYTE, /* NUL or another control character */
    TCI_PATH_TOO_LONG,     /* it, or `base` and it joined, before ".." shortens anything */
    TCI_PATH_COMPONENT_TOO_LONG,
    TCI_PATH_EMPTY_COMPONENT, /* "//" (one slash at the very end is allowed and dropped) */
    TCI_PATH_LEAVES_ROOT,     /* more ".." than there are components */
    TCI_PATH_RELATIVE,        /* not absolute and no base to be relative to */
};
/* A sentence fragment such as "contains an empty component (\"//\")". */
const char *tci_path_problem_text(enum tci_path_problem problem);

/* Writes the normal form of `path` to `buffer` (TCI_PATH_MAX + 1 bytes): absolute, no ".", "..",
 * or empty component, no slash at the end except for "/" itself. A relative path is taken below
 * `base`, which must be in normal form or NULL. With a problem, `buffer` is "". */
enum tci_path_problem tci_path_normalise(const char *base, const char *path, size_t length,
                                         char buffer[TCI_PATH_MAX + 1]) tci_must_check;

/* Both in normal form: is `path` equal to `directory` or below it? */
bool tci_path_is_within(const char *path, const char *directory);

/* Takes the first component off `left`, any text, into `name`. false: there is none, or it is too long. */
bool tci_path_take(char *left, char name[TCI_COMPONENT_MAX + 1]);

/* The number of components of a path in normal form; 0 for "/". */
unsigned tci_path_depth(const char *path);

#endif
