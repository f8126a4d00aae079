/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: rules for arrays. */
#include "json/schema_run.h"

static inline bool check_item(struct tci_run *run, const struct tci_schema_node *schema,
                              const json_t *array, size_t index, const struct tci_where *where)
{
    const json_t *item = json_array_get(array, index);
    if (tci_is_plainly_valid(schema, item))
        return true;
    struct tci_where here = { where, NULL, index };
    return tci_check(run, schema, item, &here, NULL);
}

static bool check_rest(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                       size_t index, const struct tci_where *where)
{
    const struct tci_rules_array *rules = node->array;
    struct tci_where here = { where, NULL, index };
    if (rules->items->impossible)
        return tci_run_fail(run, node, rules->items_keyword, &here,
                            "is one item too many: there may be only %zu", rules->prefix.count);
    return check_item(run, rules->items, value, index, where);
}

static bool check_items(struct tci_run *run, const struct tci_schema_node *node,
                        const json_t *value, const struct tci_where *where,
                        struct tci_evaluated *evaluated)
{
    const struct tci_rules_array *rules = node->array;
    size_t size = json_array_size(value);
    size_t covered = rules->items ? size : rules->prefix.count;
    bool valid = true;

    for (size_t i = 0; i < size && i < covered; i++) {
        valid &= i < rules->prefix.count ? check_item(run, rules->prefix.items[i], value, i, where)
                                         : check_rest(run, node, value, i, where);
        if (!valid && !run->report)
            return false;
        if (evaluated)
            tci_evaluated_set(evaluated, i);
    }
    return valid;
}

/* How many items match decides, so errors in them are none. */
static bool check_contains(struct tci_run *run, const struct tci_schema_node *node,
                           const json_t *value, const struct tci_where *where,
                           struct tci_evaluated *evaluated)
{
    const struct tci_rules_array *rules = node->array;
    struct tci_schema_report *report = run->report;
    uint64_t count = 0;

    run->report = NULL;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!check_item(run, rules->contains, value, i, where))
            continue;
        count++;
        if (evaluated)
            tci_evaluated_set(evaluated, i);
        else if (count >= rules->min_contains && rules->max_contains == UINT64_MAX)
            break;
    }
    run->report = report;
    if (count < rules->min_contains)
        return tci_fail_count(run, node, "contains", where, rules->min_contains, count);
    if (count > rules->max_contains)
        return tci_fail_count(run, node, "maxContains", where, rules->max_contains, count);
    return true;
}

static bool check_unique(struct tci_run *run, const struct tci_schema_node *node,
                         const json_t *value, const struct tci_where *where)
{
    size_t equal[2];
    if (!tci_array_has_equal(value, run->program->hash_key, &run->budget, equal))
        return true;
    return tci_run_fail(run, node, "uniqueItems", where,
                        "must have no equal items, but items %zu and %zu (from 0) are equal",
                        equal[0], equal[1]);
}

bool tci_check_array(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                     const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_rules_array *rules = node->array;
    size_t size = json_array_size(value);
    bool valid = true;

    if (!tci_budget_take(&run->budget, size))
        return false;
    if (size < rules->min_items)
        valid = tci_fail_count(run, node, "minItems", where, rules->min_items, size);
    else if (size > rules->max_items)
        valid = tci_fail_count(run, node, "maxItems", where, rules->max_items, size);
    if (!valid && !run->report)
        return false;
    if (rules->items || rules->prefix.count)
        valid &= check_items(run, node, value, where, evaluated);
    if (rules->contains && (valid || run->report))
        valid &= check_contains(run, node, value, where, evaluated);
    if (rules->unique && (valid || run->report))
        valid &= check_unique(run, node, value, where);
    return valid;
}
