/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the canonical form of JSON (RFC 8785): the same value always gives the same bytes, so that
 * a hash of it means something. Duplicate keys are refused: two readers would pick different ones.
 */
#ifndef TCI_JSON_CANONICAL_H
#define TCI_JSON_CANONICAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct json_t;

/*
 * Reads JSON text (any value); json_decref what it returns. Numbers are doubles: an integer beyond
 * 2^53 is rounded, as in JavaScript. NULL: *reterr has code SYNTAX with line and column in the text,
 * or NO_MEMORY. Use this and not jansson's own functions, which drop characters without memory.
 */
struct json_t *tci_json_read(const char *text, size_t length,
                             struct tc_error *reterr) tci_must_check;

/* The same for text that is canonical already: it is read once, and what was read must give the same
 * text again. The arena is for scratch. */
struct json_t *tci_json_read_canonical(struct tci_arena *arena, const char *text,
                                       struct tc_error *reterr) tci_must_check;

/* Reads JSON text in the same way and writes its canonical form into the arena. Fails like it, and
 * with TOO_LARGE. */
int tci_json_canonical(struct tci_arena *arena, const char *text, size_t length,
                       const char **ret_text, struct tc_error *reterr) tci_must_check;

/* Appends the canonical form of what was read. The arena is for scratch. -1 without memory. */
int tci_json_canonical_value(struct tci_arena *arena, struct tci_buf *out,
                             struct json_t *value) tci_must_check;

/* For those who write the canonical form from a tree of their own: the order of keys (for qsort, of
 * elements that begin with a `const char *` in UTF-8), and a string. Numbers: tci_json_number. */
int tci_json_compare_keys(const void *a, const void *b);
void tci_json_canonical_string(struct tci_buf *out, const char *text, size_t length);

#endif
