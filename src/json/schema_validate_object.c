/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: rules for objects. One pass over the members: each name is looked up once, and what is
 * required is counted on the way. */
#include "json/schema_run.h"

#include "base/quote.h"
#include "json/schema_regex.h"

/* A member of the object. */
struct member {
    const char *name;
    size_t length;
    const json_t *value;
};

static inline bool check_member(struct tci_run *run, const struct tci_schema_node *schema,
                                const struct member *member, const struct tci_where *where)
{
    if (tci_is_plainly_valid(schema, member->value))
        return true;
    struct tci_where here = { where, member->name, member->length };
    return tci_check(run, schema, member->value, &here, NULL);
}

static __attribute__((noinline)) bool check_patterns(struct tci_run *run,
                                                     const struct tci_schema_node *node,
                                                     const struct member *member,
                                                     const struct tci_where *where, bool *covered)
{
    const struct tci_rules_object *rules = node->object;
    bool valid = true;
    for (size_t i = 0; i < rules->pattern_count; i++) {
        const struct tci_pattern_member *pattern = &rules->patterns[i];
        if (!tci_regex_matches(pattern->regex, run->program->regex_limits, member->name,
                               member->length, &run->budget))
            continue;
        *covered = true;
        valid &= check_member(run, pattern->schema, member, where);
        if (!valid && !run->report)
            return false;
    }
    return valid;
}

/* `schema` wants a JSON string; one is made only when it has more than rules for text. */
static bool check_as_text(struct tci_run *run, const struct tci_schema_node *schema,
                          const struct member *member)
{
    json_t *text;
    bool valid;

    if (schema->impossible || !(schema->types & TCI_TYPE_BIT(JSON_STRING)))
        return false;
    if (!schema->general)
        return !schema->string || tci_check_text(run, schema, member->name, member->length, NULL);
    text = json_stringn_nocheck(member->name, member->length);
    if (!text)
        return tci_budget_end(&run->budget, TCI_EXHAUSTED_MEMORY);
    valid = tci_check(run, schema, text, NULL, NULL);
    json_decref(text);
    return valid;
}

static __attribute__((noinline)) bool check_name(struct tci_run *run,
                                                 const struct tci_schema_node *node,
                                                 const struct member *member,
                                                 const struct tci_where *where)
{
    struct tci_schema_report *report = run->report, own = { 0 };
    char quoted[TCI_QUOTE_MAX];
    bool valid;

    run->report = report && report->count < run->errors_max ? &own : NULL;
    valid = check_as_text(run, node->object->property_names, member);
    run->report = report;
    if (!valid && report)
        tci_run_fail(run, node, "propertyNames", where,
                     "has the property %s, whose name is not allowed: it %s",
                     tci_quote(member->name, member->length, quoted),
                     own.count ? own.errors[0].message : "is of the wrong type");
    tci_schema_report_free(&own);
    return valid;
}

static bool check_additional(struct tci_run *run, const struct tci_schema_node *node,
                             const struct member *member, const struct tci_where *where)
{
    const struct tci_schema_node *schema = node->object->additional;
    if (schema->impossible)
        return tci_fail_unknown_member(run, node, "additionalProperties", where, member->name,
                                       member->length);
    return check_member(run, schema, member, where);
}

static bool check_members(struct tci_run *run, const struct tci_schema_node *node,
                          const json_t *value, const struct tci_where *where,
                          struct tci_evaluated *evaluated)
{
    const struct tci_rules_object *rules = node->object;
    json_t *object = (json_t *)(uintptr_t)value;
    size_t required = 0, index = 0, guess = 0;
    bool valid = true;

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), index++) {
        struct member member = { json_object_iter_key(at), json_object_iter_key_len(at),
                                 json_object_iter_value(at) };
        long known = tci_names_find_from(&rules->names, member.name, member.length, guess);
        bool covered = false;
        if (known >= 0) {
            const struct tci_member *rule = &rules->members[known];
            guess = (size_t)known + 1;
            required += rule->required;
            covered = rule->schema != NULL;
            if (covered)
                valid &= check_member(run, rule->schema, &member, where);
        }
        if (rules->pattern_count)
            valid &= check_patterns(run, node, &member, where, &covered);
        if (!covered && rules->additional) {
            covered = true;
            valid &= check_additional(run, node, &member, where);
        }
        if (rules->property_names)
            valid &= check_name(run, node, &member, where);
        if (!valid && !run->report)
            return false;
        if (covered && evaluated)
            tci_evaluated_set(evaluated, index);
    }
    if (required < rules->required_count)
        return tci_fail_missing(run, node, value, where);
    return valid;
}

/* ---- dependencies ----------------------------------------------------------------------------- */

static bool check_dependent(struct tci_run *run, const struct tci_schema_node *node,
                            const struct tci_dependent *dependent, const json_t *value,
                            const struct tci_where *where, struct tci_evaluated *evaluated)
{
    char name[TCI_QUOTE_MAX], need[TCI_QUOTE_MAX];
    bool valid = true;

    if (!json_object_getn(value, dependent->name, dependent->name_length))
        return true;
    if (!tci_budget_take(&run->budget, dependent->need_count))
        return false;
    for (size_t i = 0; i < dependent->need_count; i++) {
        const struct tci_name *other = &dependent->needs[i];
        if (json_object_getn(value, other->text, other->length))
            continue;
        valid = false;
        if (!run->report)
            return false;
        tci_run_fail(run, node, dependent->keyword, where,
                     "has the property %s and therefore needs the property %s",
                     tci_quote(dependent->name, dependent->name_length, name),
                     tci_quote(other->text, other->length, need));
    }
    if (dependent->schema)
        valid &= tci_check(run, dependent->schema, value, where, evaluated);
    return valid;
}

static __attribute__((noinline)) bool
check_dependents(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                 const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_rules_object *rules = node->object;
    bool valid = true;
    if (!tci_budget_take(&run->budget, rules->dependent_count))
        return false;
    for (size_t i = 0; i < rules->dependent_count; i++) {
        valid &= check_dependent(run, node, &rules->dependents[i], value, where, evaluated);
        if (!valid && !run->report)
            return false;
    }
    return valid;
}

bool tci_check_object(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where, struct tci_evaluated *evaluated)
{
    const struct tci_rules_object *rules = node->object;
    size_t size = json_object_size(value);
    bool valid = true;

    if (!tci_budget_take(&run->budget, size))
        return false;
    if (size < rules->min_properties)
        valid = tci_fail_count(run, node, "minProperties", where, rules->min_properties, size);
    else if (size > rules->max_properties)
        valid = tci_fail_count(run, node, "maxProperties", where, rules->max_properties, size);
    if (!valid && !run->report)
        return false;
    if (rules->names.count || rules->pattern_count || rules->additional || rules->property_names)
        valid &= check_members(run, node, value, where, evaluated);
    if (rules->dependent_count && (valid || run->report))
        valid &= check_dependents(run, node, value, where, evaluated);
    return valid;
}
