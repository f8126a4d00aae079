/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: values of `const` and `enum`, copied out of the schema document; equality as JSON Schema has
 * it (numbers by value, objects without order); and whether the items of an array are all different.
 */
#ifndef TCI_JSON_SCHEMA_VALUE_H
#define TCI_JSON_SCHEMA_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "json/schema_number.h"

struct tci_value {
    json_type type;
    struct tci_number number;
    const char *text; /* of a string */
    size_t length;    /* bytes, items or members */
    const struct tci_value *items;
    const struct tci_value_key *keys; /* of members, beside `items` */
};

struct tci_value_key {
    const char *text;
    size_t length;
};

enum tci_exhausted {
    TCI_EXHAUSTED_NOT,
    TCI_EXHAUSTED_STEPS,
    TCI_EXHAUSTED_DEPTH,
    TCI_EXHAUSTED_MATCH, /* one regular expression */
    TCI_EXHAUSTED_MEMORY,
};

/* What one validation, or the compiler, may still do. Once exhausted, it stays so. */
struct tci_schema_budget {
    uint64_t steps;
    unsigned depth;
    enum tci_exhausted exhausted;
};

/* The first reason stays; false. */
static inline bool tci_budget_end(struct tci_schema_budget *budget, enum tci_exhausted why)
{
    if (!budget->exhausted)
        budget->exhausted = why;
    return false;
}

/* Takes steps; false when there are too few. */
static inline bool tci_budget_take(struct tci_schema_budget *budget, uint64_t steps)
{
    if (__builtin_expect(budget->steps < steps, 0)) {
        budget->steps = 0;
        return tci_budget_end(budget, TCI_EXHAUSTED_STEPS);
    }
    budget->steps -= steps;
    return true;
}

/* Copies a JSON value into the arena. Takes one step of the budget for each value and one of its
 * depth for each level. False: the budget is exhausted (see there why). */
bool tci_value_copy(struct tci_arena *arena, const json_t *from, struct tci_schema_budget *budget,
                    struct tci_value *ret) tci_must_check;

bool tci_value_equals(const struct tci_value *value, const json_t *instance,
                      struct tci_schema_budget *budget);

/* As JSON, cut with "..." after about `maximum` bytes; for messages. */
void tci_schema_value_write(const struct tci_value *value, size_t maximum, struct tci_buf *out);

/* Are two items of the array equal? Then their indices. Arrays of more than 16 items are sorted by a
 * hash under the key. When the budget is exhausted: false. */
bool tci_array_has_equal(const json_t *array, const uint64_t key[2],
                         struct tci_schema_budget *budget, size_t ret_indices[2]);

#endif
