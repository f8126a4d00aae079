/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the TOML reader share, and nobody else may include.
 *
 * tci_toml_check_text() runs before anything else and establishes what all of them rely on: the
 * text is UTF-8, a CR is followed by an LF, tab and those two are the only control characters. So
 * NUL is not in the text and stands for its end, and a byte above 0x7f needs no further look.
 *
 * Scanners move only `at`. Lines and columns are counted by tci_toml_pos() when somebody asks, from
 * the last place that was asked for; as places are asked for in file order, all of it together is
 * one pass over the text.
 */
#ifndef TCI_POLICY_TOML_INTERNAL_H
#define TCI_POLICY_TOML_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include "policy/toml.h"

struct tci_toml {
    struct tci_arena *arena;
    struct tc_error *reterr;
    enum tci_toml_version version;
    const char *begin, *end; /* the text, without a byte order mark */
    const char *at;          /* what comes next; at <= end */
    const char *mark;        /* the last place that was asked for... */
    struct tci_pos mark_pos; /* ...and its line and column */
    struct tci_pos open;     /* the innermost bracket still open; line 0: none */
};

/* One part of a key. */
struct tci_toml_key {
    struct tci_text text;
    struct tci_pos pos;
};

/* How a table came to be (table.reader_flags). 0: a header named one of its children. */
enum {
    TCI_TOML_EXPLICIT = 1, /* the root, a [header], an element of [[header]] */
    TCI_TOML_DOTTED = 2,   /* a dotted key */
    TCI_TOML_INLINE = 4,   /* braces: complete, nothing may be added */
};

/* How an array came to be (array.reader_flags). 0: brackets, nothing may be added. */
enum {
    TCI_TOML_ARRAY_OF_TABLES = 1,
};

/* ---- toml_scan.c: the text --------------------------------------------------------------- */

/* Checks the encoding and steps over a byte order mark. */
int tci_toml_check_text(struct tci_toml *t) tci_must_check;

struct tci_pos tci_toml_pos(struct tci_toml *t, const char *at);

/* Steps over a line break; false when there is none. */
bool tci_toml_skip_newline(struct tci_toml *t);
/* Steps over a comment up to its line break; false when there is none. */
bool tci_toml_skip_comment(struct tci_toml *t);
/* Steps over blanks, comments and line breaks. */
void tci_toml_skip_space(struct tci_toml *t);

static inline char tci_toml_peek(const struct tci_toml *t)
{
    return t->at < t->end ? *t->at : '\0';
}

static inline void tci_toml_skip_blank(struct tci_toml *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
        t->at++;
}

static inline bool tci_toml_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* May this stand in a key without quotes? */
static inline bool tci_toml_is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || tci_toml_is_digit(c) || c == '_' ||
           c == '-';
}

/* ---- toml_message.c: errors for people --------------------------------------------------- */

/* A short piece of the input made safe to print; used as tci_toml_quoted(...).text in a call. */
struct tci_toml_excerpt {
    char text[112];
    bool whole; /* nothing was left out */
};

/* "text", as a TOML string on one line; shortened if long. */
struct tci_toml_excerpt tci_toml_quoted(struct tci_text text);
/* The same without the quotes. */
struct tci_toml_excerpt tci_toml_plain(struct tci_text text);
/* What is at this place: `a line break`, `"word"`, `'%'`, `U+200B`, `the end of the file`. */
struct tci_toml_excerpt tci_toml_found(const struct tci_toml *t, const char *at);

static inline struct tci_text tci_toml_text(const char *begin, const char *end)
{
    return (struct tci_text){ begin, (size_t)(end - begin) };
}

/* Both return -1. */
int tci_toml_fail(struct tci_toml *t, const char *at, const char *format, ...)
    tci_printf_like(3, 4);
int tci_toml_fail_pos(struct tci_toml *t, struct tci_pos pos, const char *format, ...)
    tci_printf_like(3, 4);
/* TOO_LARGE: deeper than TCI_TOML_DEPTH_MAX. */
int tci_toml_fail_deep(struct tci_toml *t, const char *at);
/* A value that would be a string if it had quotes; `at` is its start. */
int tci_toml_fail_unquoted(struct tci_toml *t, const char *at);

/* ---- toml_string.c, toml_number.c, toml_date.c: values without children ------------------ */

/* All of them start at t->at and leave it behind what they read. */

/* A string of any of the four kinds; t->at is at its first quote. */
int tci_toml_string(struct tci_toml *t, struct tci_text *ret) tci_must_check;
/* One of the two kinds that may be a key. */
int tci_toml_line_string(struct tci_toml *t, struct tci_text *ret) tci_must_check;

/* The end of what is written at `at` without quotes: a blank, a line break or one of ,]}#= */
const char *tci_toml_word_end(const struct tci_toml *t, const char *at);
/* An integer, a float or a boolean: sets the node's type and value. */
int tci_toml_number(struct tci_toml *t, struct tci_node *node) tci_must_check;
/* Is it written like a date or a time, if perhaps wrongly? */
bool tci_toml_is_date(const struct tci_toml *t);
/* One of the four kinds of date and time: sets the node's type and value. */
int tci_toml_date(struct tci_toml *t, struct tci_node *node) tci_must_check;

/* ---- toml_value.c, toml_key.c: the recursive part ---------------------------------------- */

/* `depth` is how many keys and array elements lead from the root to a node: 0 for the root. */

int tci_toml_value(struct tci_toml *t, unsigned depth, struct tci_node **ret) tci_must_check;

/* One part of a key. */
int tci_toml_key(struct tci_toml *t, struct tci_toml_key *ret) tci_must_check;
/* key = value, into a table at `depth`. */
int tci_toml_key_value(struct tci_toml *t, struct tci_node *table, unsigned depth) tci_must_check;

/* ---- toml_table.c: what may define and extend what --------------------------------------- */

/* Steps into the child table that a dotted key or a header names before its last part; makes it
 * if need be. A header steps into the last element of an array of tables, which is two levels. */
int tci_toml_enter_dotted(struct tci_toml *t, const struct tci_toml_key *key,
                          struct tci_node **table) tci_must_check;
int tci_toml_enter_header(struct tci_toml *t, const struct tci_toml_key *key,
                          struct tci_node **table, unsigned *depth) tci_must_check;

/* [header] and [[header]]: steps into the table that the last part defines. `pos` is the header's
 * place, `header` its text with the brackets. */
int tci_toml_define_table(struct tci_toml *t, const struct tci_toml_key *key, struct tci_pos pos,
                          struct tci_text header, struct tci_node **table) tci_must_check;
int tci_toml_define_element(struct tci_toml *t, const struct tci_toml_key *key, struct tci_pos pos,
                            struct tci_text header, struct tci_node **table) tci_must_check;

/* Refuses a key that the table has. */
int tci_toml_check_unset(struct tci_toml *t, const struct tci_node *table,
                         const struct tci_toml_key *key) tci_must_check;

#endif
