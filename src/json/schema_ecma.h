/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: regular expressions of ECMA-262 (as with its flag u) in PCRE2's words. Every construct is
 * read here and written anew, so that nothing that only PCRE2 knows (verbs such as (*LIMIT_MATCH=),
 * recursion, callouts, \C) can be reached through a schema. Linear time, no recursion.
 *
 * Wider than the flag u in what cannot be misread: an escaped ASCII sign stands for itself, so do ]
 * and } alone, and a - beside a class such as \w within [ ].
 */
#ifndef TCI_JSON_SCHEMA_ECMA_H
#define TCI_JSON_SCHEMA_ECMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "json/schema_simple.h"

enum { TCI_ECMA_NAMES_MAX = 32, TCI_ECMA_NESTING_MAX = 100 };

struct tci_ecma_name {
    const char *text;
    size_t length;
    unsigned group;
};

/* A reading in progress. */
struct tci_ecma {
    const char *begin, *at, *end;
    struct tci_buf *out;       /* NULL: only checks */
    struct tci_simple *simple; /* gets the same expression, or gives up; may be NULL */
    const char *problem;       /* the first; NULL: none */
    unsigned group_count;      /* of the whole expression */
    struct tci_ecma_name names[TCI_ECMA_NAMES_MAX];
    size_t name_count;
};

/* Writes the expression for PCRE2 to `out` (NULL: only checks it), and to `simple` unless that is
 * NULL. 0, or -1 with what is wrong, as "a ) without its (", and the byte where. */
int tci_ecma_translate(const char *pattern, size_t length, struct tci_buf *out,
                       struct tci_simple *simple, const char **ret_problem,
                       size_t *ret_offset) tci_must_check;

/* ---- between its files ------------------------------------------------------------------------ */

/* What an escape stands for. */
enum tci_ecma_kind { TCI_ECMA_CHARACTER, TCI_ECMA_SET, TCI_ECMA_WORD_BOUNDARY, TCI_ECMA_BACKWARD };

struct tci_ecma_escape {
    enum tci_ecma_kind kind;
    uint32_t character; /* may be half of a surrogate pair: then it matches nothing */
    const char *set;    /* the inside of a class of PCRE2; "" has no member */
    char set_text[96];  /* `set` may point here */
    bool negated;       /* \B */
    unsigned group;     /* \1, \k<name> */
};

void tci_ecma_emit(struct tci_ecma *ecma, const char *text);
void tci_ecma_emit_character(struct tci_ecma *ecma, uint32_t character);
/* Notes the first problem; false. */
bool tci_ecma_fail(struct tci_ecma *ecma, const char *problem);
/* The character at `at`, which moves behind it; false at the end or when it is not UTF-8. */
bool tci_ecma_next(struct tci_ecma *ecma, uint32_t *ret);
bool tci_ecma_is_surrogate(uint32_t character);
/* Does the text come next? The second moves behind it if so. */
bool tci_ecma_is_next(const struct tci_ecma *ecma, const char *text);
bool tci_ecma_skip(struct tci_ecma *ecma, const char *text);

/* Behind the backslash. Within [ ], \b is a backspace and there are no references. */
bool tci_ecma_read_escape(struct tci_ecma *ecma, bool in_class, struct tci_ecma_escape *ret);
/* The set for the simple matcher; false: it is beyond that. */
bool tci_ecma_simple_set(const struct tci_ecma_escape *escape, struct tci_simple_set *set);
/* Behind [. Writes the class. */
bool tci_ecma_class(struct tci_ecma *ecma);
/* Behind \p or \P. */
bool tci_ecma_property(struct tci_ecma *ecma, bool negated, struct tci_ecma_escape *ret);
/* References may point forward, so groups are counted before anything else. */
bool tci_ecma_count_groups(struct tci_ecma *ecma);
/* At a (. `ret_looks`: it matches a place and cannot be repeated. */
bool tci_ecma_open_group(struct tci_ecma *ecma, bool *ret_looks);
/* At a <: the name up to >. */
bool tci_ecma_group_name(struct tci_ecma *ecma, struct tci_ecma_name *ret);

#endif
