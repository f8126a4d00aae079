/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: applying a schema to a value. tci_check is entered for every schema and every value, so it
 * does little: types, the budget, then whatever rules there are. Recursion is bounded by the
 * program's depth, whatever the value or the schema looks like: no caller's stack overflows.
 */
#include "json/schema_run.h"

#include "json/schema_format.h"
#include "json/schema_regex.h"

/* ---- strings and numbers ---------------------------------------------------------------------- */

/* Every code point has one byte that is no continuation. */
static size_t count_code_points(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (text[i] & 0xc0) != 0x80;
    return count;
}

static bool check_length(struct tci_run *run, const struct tci_schema_node *node, const char *text,
                         size_t length, const struct tci_where *where)
{
    const struct tci_rules_string *rules = node->string;
    size_t count;

    /* A code point has 1 to 4 bytes: often the bytes tell enough. */
    if (length <= rules->max_length && length / 4 + (length % 4 > 0) >= rules->min_length)
        return true;
    if (!tci_budget_take(&run->budget, length / 64))
        return false;
    count = count_code_points(text, length);
    if (count < rules->min_length)
        return tci_fail_count(run, node, "minLength", where, rules->min_length, count);
    if (count > rules->max_length)
        return tci_fail_count(run, node, "maxLength", where, rules->max_length, count);
    return true;
}

static bool fail_pattern(struct tci_run *run, const struct tci_schema_node *node,
                         const struct tci_where *where)
{
    return tci_run_fail(run, node, "pattern", where, "must match the regular expression %.200s",
                        node->string->pattern_text);
}

bool tci_check_text(struct tci_run *run, const struct tci_schema_node *node, const char *text,
                    size_t length, const struct tci_where *where)
{
    const struct tci_rules_string *rules = node->string;
    bool valid = check_length(run, node, text, length, where);

    if (!valid && !run->report)
        return false;
    if (rules->pattern &&
        !tci_regex_matches(rules->pattern, run->program->regex_limits, text, length, &run->budget))
        valid = fail_pattern(run, node, where);
    if (!valid && !run->report)
        return false;
    if (rules->format) {
        struct tci_format_context context = { run->program->idna, run->program->regex_limits,
                                              &run->budget };
        if (!tci_budget_take(&run->budget, length / 16) ||
            !rules->format->check(text, length, &context))
            valid = tci_run_fail(run, node, "format", where, "must be %s", rules->format->words);
    }
    return valid;
}

static bool check_number(struct tci_run *run, const struct tci_schema_node *node,
                         const json_t *value, const struct tci_where *where)
{
    const struct tci_rules_number *rules = node->number;
    struct tci_number number = tci_number_of(value);

    if (rules->has_minimum && tci_number_compare(number, rules->minimum) < 0)
        return tci_fail_bound(run, node, "minimum", where, "at least", rules->minimum, value);
    if (rules->has_maximum && tci_number_compare(number, rules->maximum) > 0)
        return tci_fail_bound(run, node, "maximum", where, "at most", rules->maximum, value);
    if (rules->has_above && tci_number_compare(number, rules->above) <= 0)
        return tci_fail_bound(run, node, "exclusiveMinimum", where, "greater than", rules->above,
                              value);
    if (rules->has_below && tci_number_compare(number, rules->below) >= 0)
        return tci_fail_bound(run, node, "exclusiveMaximum", where, "less than", rules->below,
                              value);
    if (rules->has_multiple && !tci_number_is_multiple(number, &rules->multiple))
        return tci_fail_bound(run, node, "multipleOf", where, "a multiple of",
                              rules->multiple_number, value);
    return true;
}

/* ---- one schema ------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) bool
check_by_type(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
              const struct tci_where *where, struct tci_evaluated *evaluated)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return !node->object || tci_check_object(run, node, value, where, evaluated);
    case JSON_ARRAY:
        return !node->array || tci_check_array(run, node, value, where, evaluated);
    case JSON_STRING:
        return !node->string || tci_check_text(run, node, json_string_value(value),
                                               json_string_length(value), where);
    case JSON_INTEGER:
    case JSON_REAL:
        return !node->number || check_number(run, node, value, where);
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        break;
    }
    return true;
}

bool tci_check_rules(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                     const struct tci_where *where, struct tci_evaluated *evaluated)
{
    bool valid = check_by_type(run, node, value, where, evaluated);
    if (node->general && (valid || run->report))
        valid &= tci_check_general(run, node, value, where, evaluated);
    return valid;
}

/* Cold: schemas with unevaluated*, and those in another resource than where we come from. */
static __attribute__((noinline)) bool
check_scoped(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
             const struct tci_where *where, struct tci_evaluated *evaluated)
{
    struct tci_scope scope = { run->scope, node->resource };
    bool valid;

    if (!run->scope || run->scope->resource != node->resource)
        run->scope = &scope;
    valid = node->collects ? tci_check_unevaluated(run, node, value, where, evaluated)
                           : tci_check_rules(run, node, value, where, evaluated);
    run->scope = scope.outer;
    return valid;
}

static bool needs_scope(const struct tci_run *run, const struct tci_schema_node *node)
{
    return node->collects ||
           (run->program->has_dynamic && (!run->scope || run->scope->resource != node->resource));
}

bool tci_check(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
               const struct tci_where *where, struct tci_evaluated *evaluated)
{
    bool valid;

    if (__builtin_expect(!tci_type_is_allowed(node, value), 0))
        return tci_fail_type(run, node, value, where);
    if (node->only_type)
        return true;
    if (__builtin_expect(node->impossible, 0))
        return tci_run_fail(run, node, NULL, where, "is not allowed here");
    if (__builtin_expect(run->budget.depth == 0 || run->budget.exhausted, 0))
        return tci_budget_end(&run->budget, TCI_EXHAUSTED_DEPTH);
    if (!tci_budget_take(&run->budget, 1))
        return false;
    run->budget.depth--;
    valid = needs_scope(run, node) ? check_scoped(run, node, value, where, evaluated)
                                   : tci_check_rules(run, node, value, where, evaluated);
    run->budget.depth++;
    return valid;
}

bool tci_schema_validate(const struct tci_schema_program *program, const json_t *instance,
                         struct tci_schema_report *ret)
{
    struct tci_run run __attribute__((uninitialized)); /* `words` are cleared where they are used */
    bool valid;

    run.program = program;
    run.budget = (struct tci_schema_budget){ program->limits.steps, program->limits.depth, 0 };
    run.report = ret;
    run.scope = NULL;
    run.explaining = false;
    run.errors_max = program->limits.errors;
    run.words_used = 0;
    valid = tci_check(&run, program->root, instance, NULL, NULL);
    if (__builtin_expect(run.budget.exhausted, 0)) {
        run.report = ret;
        tci_run_exhausted(&run);
        return false;
    }
    return valid;
}
