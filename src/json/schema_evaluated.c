/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: unevaluatedItems and unevaluatedProperties. A schema that has one of them gets a set of bits
 * of its own; every schema below it that is applied to the same value adds to that set, unless it
 * turns out invalid in a place where that is no error: then its own set is dropped.
 */
#include "json/schema_run.h"

#include <stdlib.h>
#include <string.h>

static size_t words_for(size_t count)
{
    return (count + 63) / 64;
}

bool tci_evaluated_begin(struct tci_run *run, size_t count, struct tci_evaluated *ret)
{
    size_t words = words_for(count);
    ret->count = count;
    ret->on_heap = words > TCI_RUN_WORDS - run->words_used;
    if (!ret->on_heap) {
        ret->bits = run->words + run->words_used;
        run->words_used += words;
        memset(ret->bits, 0, words * sizeof *ret->bits);
        return true;
    }
    if (!tci_budget_take(&run->budget, words))
        return false;
    ret->bits = calloc(words, sizeof *ret->bits);
    return ret->bits || tci_budget_end(&run->budget, TCI_EXHAUSTED_MEMORY);
}

void tci_evaluated_end(struct tci_run *run, struct tci_evaluated *evaluated)
{
    if (evaluated->on_heap)
        free(evaluated->bits);
    else
        run->words_used -= words_for(evaluated->count);
}

void tci_evaluated_add(struct tci_evaluated *to, const struct tci_evaluated *from)
{
    for (size_t i = 0; i < words_for(to->count); i++)
        to->bits[i] |= from->bits[i];
}

static void fill(struct tci_evaluated *evaluated)
{
    for (size_t i = 0; i < words_for(evaluated->count); i++)
        evaluated->bits[i] = UINT64_MAX;
}

/* ---- the keywords ----------------------------------------------------------------------------- */

static bool check_members(struct tci_run *run, const struct tci_schema_node *node,
                          const json_t *value, const struct tci_where *where,
                          const struct tci_evaluated *evaluated)
{
    json_t *object = (json_t *)(uintptr_t)value;
    bool valid = true;
    size_t i = 0;

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), i++) {
        struct tci_where here = { where, json_object_iter_key(at), json_object_iter_key_len(at) };
        if (tci_evaluated_has(evaluated, i))
            continue;
        if (node->unevaluated_properties->impossible)
            valid = tci_fail_unknown_member(run, node, "unevaluatedProperties", where, here.key,
                                            here.number);
        else
            valid &= tci_check(run, node->unevaluated_properties, json_object_iter_value(at), &here,
                               NULL);
        if (!valid && !run->report)
            return false;
    }
    return valid;
}

static bool check_items(struct tci_run *run, const struct tci_schema_node *node,
                        const json_t *value, const struct tci_where *where,
                        const struct tci_evaluated *evaluated)
{
    bool valid = true;
    for (size_t i = 0; i < evaluated->count; i++) {
        struct tci_where here = { where, NULL, i };
        if (tci_evaluated_has(evaluated, i))
            continue;
        if (node->unevaluated_items->impossible)
            valid = tci_run_fail(run, node, "unevaluatedItems", &here,
                                 "is an item that no rule allows");
        else
            valid &= tci_check(run, node->unevaluated_items, json_array_get(value, i), &here, NULL);
        if (!valid && !run->report)
            return false;
    }
    return valid;
}

bool tci_check_unevaluated(struct tci_run *run, const struct tci_schema_node *node,
                           const json_t *value, const struct tci_where *where,
                           struct tci_evaluated *outer)
{
    bool members = json_is_object(value) && node->unevaluated_properties;
    bool items = json_is_array(value) && node->unevaluated_items, valid;
    struct tci_evaluated own;

    if (!members && !items)
        return tci_check_rules(run, node, value, where, outer);
    if (!tci_evaluated_begin(run, members ? json_object_size(value) : json_array_size(value), &own))
        return false;
    valid = tci_check_rules(run, node, value, where, &own);
    /* After another error, what counts as evaluated is not known: a second one would mislead. */
    if (valid && members)
        valid = check_members(run, node, value, where, &own);
    else if (valid)
        valid = check_items(run, node, value, where, &own);
    tci_evaluated_end(run, &own);
    if (valid && outer)
        fill(outer);
    return valid;
}
