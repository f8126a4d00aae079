/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a matcher for the simplest regular expressions, which are most of those in schemas: from ^ on
 * a row of characters or classes, each with a count, such as ^[a-z][a-z0-9_-]*$. It never goes back,
 * so its time is that of reading the text once. What it cannot say for certain is PCRE2's.
 */
#ifndef TCI_JSON_SCHEMA_SIMPLE_H
#define TCI_JSON_SCHEMA_SIMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TCI_SIMPLE_PARTS_MAX = 16 };

/* Characters beyond ASCII are all in or all out, but for "." which lacks two of them. */
enum tci_simple_others { TCI_OTHERS_OUT, TCI_OTHERS_IN, TCI_OTHERS_BUT_SEPARATORS };

struct tci_simple_set {
    uint64_t ascii[2];
    enum tci_simple_others others;
};

struct tci_simple_part {
    struct tci_simple_set set;
    uint32_t least, most;
};

struct tci_simple {
    bool given_up;
    bool begins, ends; /* with ^, with $ */
    size_t count;
    struct tci_simple_part parts[TCI_SIMPLE_PARTS_MAX];
};

/* ---- while an expression is read; `simple` may be NULL ----------------------------------------- */

void tci_simple_give_up(struct tci_simple *simple);
void tci_simple_begin(struct tci_simple *simple);
void tci_simple_end(struct tci_simple *simple);
void tci_simple_add(struct tci_simple *simple, const struct tci_simple_set *set);
void tci_simple_repeat(struct tci_simple *simple, uint32_t least, uint32_t most);

void tci_simple_set_range(struct tci_simple_set *set, uint32_t first, uint32_t last);
void tci_simple_set_invert(struct tci_simple_set *set);

/* ---- afterwards ------------------------------------------------------------------------------- */

/* Is the greedy way the only way? Only then may tci_simple_matches be asked. */
bool tci_simple_is_certain(const struct tci_simple *simple);
bool tci_simple_matches(const struct tci_simple *simple, const char *text, size_t length);

#endif
