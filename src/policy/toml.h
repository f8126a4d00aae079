/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading TOML. Trusts nothing: any bytes give a tree or an error with a place, within
 * bounded memory (a small multiple of the input), depth and time (linear in the input).
 */
#ifndef TCI_POLICY_TOML_H
#define TCI_POLICY_TOML_H

#include "base/arena.h"
#include "base/error.h"
#include "policy/doc.h"

enum tci_toml_version { TCI_TOML_1_0, TCI_TOML_1_1 };

enum {
    TCI_TOML_DEPTH_MAX = 64, /* nested arrays, inline tables and dotted keys */
};

/* Reads `length` bytes into a tree in `arena`; *ret_root is the root table.
 * On failure *reterr has code SYNTAX (or TOO_LARGE for depth, or NO_MEMORY), line, column, a
 * message and where possible a remedy; the caller adds file and id. */
int tci_toml_parse(struct tci_arena *arena, const char *bytes, size_t length,
                   enum tci_toml_version version, struct tci_node **ret_root,
                   struct tc_error *reterr) tci_must_check;

#endif
