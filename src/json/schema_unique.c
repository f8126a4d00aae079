/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: uniqueItems. Few items are compared in pairs; many are sorted by a hash first, because an
 * array of 100,000 items from a stranger must not cost 5,000,000,000 comparisons.
 * Recursion follows the instance, under the budget's depth.
 */
#include "json/schema_value.h"

#include <stdlib.h>
#include <string.h>
#include "base/siphash.h"

enum { pairs_max = 16 };

static bool values_equal(const json_t *a, const json_t *b, struct tci_schema_budget *budget);

static bool arrays_equal(const json_t *a, const json_t *b, struct tci_schema_budget *budget)
{
    size_t count = json_array_size(a);
    if (json_array_size(b) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!values_equal(json_array_get(a, i), json_array_get(b, i), budget))
            return false;
    return true;
}

static bool objects_equal(const json_t *a, const json_t *b, struct tci_schema_budget *budget)
{
    json_t *object = (json_t *)(uintptr_t)a;
    if (json_object_size(a) != json_object_size(b))
        return false;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const json_t *other = json_object_getn(b, json_object_iter_key(at),
                                               json_object_iter_key_len(at));
        if (!other || !values_equal(json_object_iter_value(at), other, budget))
            return false;
    }
    return true;
}

/* One level deeper, unless that is too deep. */
static bool enter(struct tci_schema_budget *budget)
{
    if (budget->depth == 0 || budget->exhausted)
        return tci_budget_end(budget, TCI_EXHAUSTED_DEPTH);
    budget->depth--;
    return true;
}

static bool values_equal(const json_t *a, const json_t *b, struct tci_schema_budget *budget)
{
    bool equal;
    if (!tci_budget_take(budget, 1))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return tci_number_compare(tci_number_of(a), tci_number_of(b)) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_string(a))
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    if (!json_is_array(a) && !json_is_object(a))
        return true;
    if (!enter(budget))
        return false;
    equal = json_is_array(a) ? arrays_equal(a, b, budget) : objects_equal(a, b, budget);
    budget->depth++;
    return equal;
}

/* ---- many items ------------------------------------------------------------------------------- */

struct hasher {
    const uint64_t *key;
    struct tci_schema_budget *budget;
};

static uint64_t hash_value(const struct hasher *hasher, const json_t *value);

static uint64_t combine(const struct hasher *hasher, uint64_t a, uint64_t b, uint64_t kind)
{
    uint64_t parts[3] = { a, b, kind };
    return tci_siphash(hasher->key, parts, sizeof parts);
}

/* Integers and reals that are equal have the same hash. */
static uint64_t hash_number(const struct hasher *hasher, const json_t *value)
{
    double real = json_number_value(value);
    uint64_t bits;
    if (real == 0)
        real = 0; /* -0 too */
    memcpy(&bits, &real, sizeof bits);
    return combine(hasher, bits, 0, JSON_REAL);
}

static uint64_t hash_text(const struct hasher *hasher, const char *text, size_t length)
{
    tci_budget_take(hasher->budget, length / 64);
    return combine(hasher, tci_siphash(hasher->key, text, length), length, JSON_STRING);
}

static uint64_t hash_container(const struct hasher *hasher, const json_t *value)
{
    json_t *object = (json_t *)(uintptr_t)value;
    uint64_t hash = 0;

    if (!enter(hasher->budget))
        return 0;
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            hash = combine(hasher, hash, hash_value(hasher, json_array_get(value, i)), JSON_ARRAY);
    } else {
        /* A sum does not depend on the order. */
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
            hash += combine(
                hasher, hash_text(hasher, json_object_iter_key(at), json_object_iter_key_len(at)),
                hash_value(hasher, json_object_iter_value(at)), JSON_OBJECT);
    }
    hasher->budget->depth++;
    return combine(hasher, hash, 0, (uint64_t)json_typeof(value));
}

static uint64_t hash_value(const struct hasher *hasher, const json_t *value)
{
    if (!tci_budget_take(hasher->budget, 1))
        return 0;
    if (json_is_number(value))
        return hash_number(hasher, value);
    if (json_is_string(value))
        return hash_text(hasher, json_string_value(value), json_string_length(value));
    if (json_is_array(value) || json_is_object(value))
        return hash_container(hasher, value);
    return combine(hasher, 0, 0, (uint64_t)json_typeof(value));
}

struct hashed {
    uint64_t hash;
    size_t index;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool pair_is_equal(const json_t *array, size_t i, size_t j, struct tci_schema_budget *budget,
                          size_t ret_indices[2])
{
    if (!values_equal(json_array_get(array, i), json_array_get(array, j), budget))
        return false;
    ret_indices[0] = i;
    ret_indices[1] = j;
    return !budget->exhausted;
}

/* Among items that hash alike, each is compared with each: with a secret key there are few, except
 * for integers that are one double. */
static bool many_have_equal(const json_t *array, size_t count, const struct hasher *hasher,
                            size_t ret_indices[2])
{
    struct tci_schema_budget *budget = hasher->budget;
    struct hashed *items = calloc(count, sizeof *items);
    bool found = false;

    if (!items)
        return tci_budget_end(budget, TCI_EXHAUSTED_MEMORY);
    for (size_t i = 0; i < count && !budget->exhausted; i++)
        items[i] = (struct hashed){ hash_value(hasher, json_array_get(array, i)), i };
    qsort(items, count, sizeof *items, compare_hashed);
    for (size_t i = 0; i < count && !found && !budget->exhausted; i++)
        for (size_t j = i + 1; j < count && items[j].hash == items[i].hash && !found; j++)
            found = pair_is_equal(array, items[i].index, items[j].index, budget, ret_indices);
    free(items);
    return found;
}

bool tci_array_has_equal(const json_t *array, const uint64_t key[2],
                         struct tci_schema_budget *budget, size_t ret_indices[2])
{
    size_t count = json_array_size(array);
    if (count > pairs_max)
        return many_have_equal(array, count, &(struct hasher){ key, budget }, ret_indices);
    for (size_t j = 1; j < count; j++)
        for (size_t i = 0; i < j; i++)
            if (pair_is_equal(array, i, j, budget, ret_indices))
                return true;
    return false;
}
