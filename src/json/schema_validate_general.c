/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: rules for values of every type: constants, references, and combinations of schemas. */
#include "json/schema_run.h"

#include <stdio.h>

static bool is_choice(struct tci_run *run, const struct tci_rules_general *rules,
                      const json_t *value)
{
    if (rules->only_texts)
        return json_is_string(value) && tci_names_find(&rules->texts, json_string_value(value),
                                                       json_string_length(value)) >= 0;
    if (!tci_budget_take(&run->budget, rules->choice_count))
        return false;
    for (size_t i = 0; i < rules->choice_count; i++)
        if (tci_value_equals(&rules->choices[i], value, &run->budget))
            return true;
    return false;
}

static bool check_constants(struct tci_run *run, const struct tci_schema_node *node,
                            const json_t *value, const struct tci_where *where)
{
    const struct tci_rules_general *rules = node->general;
    if (rules->has_choices && !is_choice(run, rules, value))
        return tci_fail_choice(run, node, where);
    if (rules->constant && !tci_value_equals(rules->constant, value, &run->budget))
        return tci_fail_choice(run, node, where);
    return true;
}

/* The outermost resource on the way here that has the anchor. */
static const struct tci_schema_node *dynamic_target(struct tci_run *run,
                                                    const struct tci_dynamic_reference *reference)
{
    const struct tci_schema_node *found = reference->otherwise;
    if (!reference->anchor)
        return found;
    for (const struct tci_scope *scope = run->scope; scope; scope = scope->outer) {
        if (!tci_budget_take(&run->budget, 1 + reference->anchor->count / 8))
            break;
        for (size_t i = 0; i < reference->anchor->count; i++)
            if (reference->anchor->targets[i].resource == scope->resource)
                found = reference->anchor->targets[i].schema;
    }
    return found;
}

/* ---- trying ----------------------------------------------------------------------------------- */

static size_t size_of(const json_t *value)
{
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

/* Checks without an error if it is not valid; then nothing counts as evaluated either. */
static bool try_schema(struct tci_run *run, const struct tci_schema_node *schema,
                       const json_t *value, const struct tci_where *where,
                       struct tci_evaluated *evaluated)
{
    struct tci_schema_report *report = run->report;
    struct tci_evaluated own;
    bool valid;

    if (evaluated && !tci_evaluated_begin(run, size_of(value), &own))
        return false;
    run->report = NULL;
    valid = tci_check(run, schema, value, where, evaluated ? &own : NULL);
    run->report = report;
    if (evaluated) {
        if (valid)
            tci_evaluated_add(evaluated, &own);
        tci_evaluated_end(run, &own);
    }
    return valid;
}

static bool check_all(struct tci_run *run, const struct tci_schema_list *list, const json_t *value,
                      const struct tci_where *where, struct tci_evaluated *evaluated)
{
    bool valid = true;
    for (size_t i = 0; i < list->count; i++) {
        valid &= tci_check(run, list->items[i], value, where, evaluated);
        if (!valid && !run->report)
            return false;
    }
    return valid;
}

/* The first that matches will do, unless what all of them evaluate matters. */
static bool check_any(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_schema_list *list = &node->general->any;
    bool valid = false;
    for (size_t i = 0; i < list->count && (!valid || evaluated); i++)
        valid |= try_schema(run, list->items[i], value, where, evaluated);
    return valid || tci_fail_alternatives(run, node, "anyOf", list, value, where);
}

static bool check_one(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_schema_list *list = &node->general->one;
    size_t first = 0, count = 0;
    for (size_t i = 0; i < list->count && count < 2; i++) {
        if (!try_schema(run, list->items[i], value, where, evaluated))
            continue;
        if (++count == 2)
            return tci_run_fail(run, node, "oneOf", where,
                                "must match exactly one of %zu alternatives, but matches both "
                                "number %zu and number %zu",
                                list->count, first + 1, i + 1);
        first = i;
    }
    return count == 1 || tci_fail_alternatives(run, node, "oneOf", list, value, where);
}

static bool check_not(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where)
{
    if (!try_schema(run, node->general->not, value, where, NULL))
        return true;
    return tci_run_fail(run, node, "not", where, "must not match what the schema excludes");
}

static bool check_condition(struct tci_run *run, const struct tci_rules_general *rules,
                            const json_t *value, const struct tci_where *where,
                            struct tci_evaluated *evaluated)
{
    const struct tci_schema_node *next;
    if (!rules->then && !rules->otherwise && !evaluated)
        return true;
    next = try_schema(run, rules->condition, value, where, evaluated) ? rules->then
                                                                      : rules->otherwise;
    return !next || tci_check(run, next, value, where, evaluated);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static bool check_references(struct tci_run *run, const struct tci_rules_general *rules,
                             const json_t *value, const struct tci_where *where,
                             struct tci_evaluated *evaluated)
{
    bool valid = true;
    if (rules->reference)
        valid = tci_check(run, rules->reference, value, where, evaluated);
    if (rules->dynamic && (valid || run->report))
        valid &= tci_check(run, dynamic_target(run, rules->dynamic), value, where, evaluated);
    if (rules->all.count && (valid || run->report))
        valid &= check_all(run, &rules->all, value, where, evaluated);
    return valid;
}

bool tci_check_general(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                       const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_rules_general *rules = node->general;
    bool valid = check_constants(run, node, value, where);

    if (valid || run->report)
        valid &= check_references(run, rules, value, where, evaluated);
    if (rules->any.count && (valid || run->report))
        valid &= check_any(run, node, value, where, evaluated);
    if (rules->one.count && (valid || run->report))
        valid &= check_one(run, node, value, where, evaluated);
    if (rules->not &&(valid || run->report))
        valid &= check_not(run, node, value, where);
    if (rules->condition && (valid || run->report))
        valid &= check_condition(run, rules, value, where, evaluated);
    return valid;
}
