/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the canonical form of JSON (RFC 8785): the same value always gives the same bytes, so that
 * a hash of it means something. Duplicate keys are refused: two readers would pick different ones.
 */
#ifndef TCI_JSON_CANONICAL_H
#define TCI_JSON_CANONICAL_H

#include "base/arena.h"
#include "base/error.h"

/* Reads JSON text (any value) and writes its canonical form into the arena.
 * On failure *reterr has code SYNTAX with line and column in the text, or NO_MEMORY. */
int tci_json_canonical(struct tci_arena *arena, const char *text, size_t length,
                       const char **ret_text, struct tc_error *reterr) tci_must_check;

#endif
