/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is done once all schemas are compiled. Circles of references that stay at one value are
 * refused here: validation would never end, and its depth limit would blame the value. (Circles
 * through $dynamicRef depend on the value's path through the schema; those meet the depth limit.)
 */
#include "json/schema_compile.h"

#include <float.h>

enum { bytes_per_character = 4 }; /* at most, in UTF-8 */
static const double exact_max = 9007199254740992.0;

/* ---- circles ---------------------------------------------------------------------------------- */

/* The schema behind the edge `index`, NULL if none is there. False: there are no more edges. */
static bool list_edge(const struct tci_schema_list *list, size_t *index,
                      const struct tci_schema_node **ret)
{
    if (*index < list->count) {
        *ret = list->items[*index];
        return true;
    }
    *index -= list->count;
    return false;
}

static bool general_edge(const struct tci_rules_general *rules, size_t *index,
                         const struct tci_schema_node **ret)
{
    const struct tci_schema_node *single[] = { rules->reference, rules->not, rules->condition,
                                               rules->condition ? rules->then : NULL,
                                               rules->condition ? rules->otherwise : NULL };
    if (*index < tci_array_size(single)) {
        *ret = single[*index];
        return true;
    }
    *index -= tci_array_size(single);
    return list_edge(&rules->all, index, ret) || list_edge(&rules->any, index, ret) ||
           list_edge(&rules->one, index, ret);
}

/* Edges lead to the schemas that are applied to the same value. */
static bool edge(const struct tci_schema_node *node, size_t index,
                 const struct tci_schema_node **ret)
{
    if (node->general && general_edge(node->general, &index, ret))
        return true;
    if (!node->object || index >= node->object->dependent_count)
        return false;
    *ret = node->object->dependents[index].schema;
    return true;
}

enum { mark_none, mark_open, mark_done };

/* A search in depth with a stack of its own: a chain of 50,000 references is no reason to overflow
 * the caller's. */
struct step {
    struct tci_schema_node *node;
    size_t next_edge;
};

static int search_from(struct tci_compiler *c, struct tci_schema_node *start, struct step *stack)
{
    size_t depth = 0;
    stack[depth++] = (struct step){ start, 0 };
    start->mark = mark_open;
    while (depth > 0) {
        struct step *top = &stack[depth - 1];
        const struct tci_schema_node *found = NULL;
        struct tci_schema_node *next;
        if (!edge(top->node, top->next_edge++, &found)) {
            top->node->mark = mark_done;
            depth--;
            continue;
        }
        next = (struct tci_schema_node *)(uintptr_t)found; /* the program is still ours */
        if (!next)
            continue;
        if (next->mark == mark_open) {
            return tci_compile_fail(c, top->node, NULL,
                                    "leads back to itself without going into the value, so "
                                    "validation would never end");
        } else if (next->mark == mark_none) {
            next->mark = mark_open;
            stack[depth++] = (struct step){ next, 0 };
        }
    }
    return 0;
}

static struct tci_source *source_at(const struct tci_compiler *c, size_t index)
{
    return c->places.values[index];
}

static int refuse_circles(struct tci_compiler *c)
{
    size_t count = c->places.names.count;
    struct step *stack = tci_arena_new_array(c->scratch, count, struct step);
    if (!stack)
        return tci_compile_no_memory(c);
    for (size_t i = 0; i < count; i++)
        if (source_at(c, i)->node->mark == mark_none &&
            search_from(c, source_at(c, i)->node, stack) < 0)
            return -1;
    return 0;
}

/* ---- shortcuts -------------------------------------------------------------------------------- */

static bool has_no_rules(const struct tci_schema_node *node)
{
    return !node->object && !node->array && !node->string && !node->number &&
           !node->unevaluated_items && !node->unevaluated_properties;
}

static bool has_combinations_beside_reference(const struct tci_rules_general *rules)
{
    return rules->dynamic || rules->all.count || rules->any.count || rules->one.count ||
           rules->not || rules->condition;
}

static bool has_combinations(const struct tci_rules_general *rules)
{
    return rules->reference || has_combinations_beside_reference(rules);
}

/* A schema that is nothing but a reference within its resource stands for its target. Across
 * resources it must stay: entering the resource counts for $dynamicRef. */
static const struct tci_schema_node *only_reference(const struct tci_schema_node *node)
{
    const struct tci_rules_general *rules = node->general;
    if (!rules || !rules->reference || !has_no_rules(node) || node->types != TCI_TYPE_ANY ||
        rules->constant || rules->has_choices || has_combinations_beside_reference(rules))
        return NULL;
    return rules->reference->resource == node->resource ? rules->reference : NULL;
}

/* Is the bound a double below which every integer is one? */
static bool as_double(bool has, struct tci_number bound, double *ret)
{
    double value = bound.is_integer ? (double)bound.integer : bound.real;
    if (has)
        *ret = value;
    return !has || (value > -exact_max && value < exact_max);
}

/* Schemas of numbers between two bounds, of short and long strings, and of a few words are most of
 * all schemas: they get a test that is done in place. A number that is rounded to a bound when it
 * becomes a double is beyond 2^53, and the bounds are not. */
static void make_quick(struct tci_schema_node *node)
{
    const struct tci_rules_number *number = node->number;
    const struct tci_rules_string *string = node->string;
    const struct tci_rules_general *general = node->general;

    node->low = -DBL_MAX;
    node->high = DBL_MAX;
    node->longest = SIZE_MAX;
    node->quick = !node->object && !node->array && !node->impossible && !node->collects;
    if (number)
        node->quick &= !number->has_above && !number->has_below && !number->has_multiple &&
                       as_double(number->has_minimum, number->minimum, &node->low) &&
                       as_double(number->has_maximum, number->maximum, &node->high);
    if (string) {
        node->quick &= !string->pattern && !string->format &&
                       string->min_length <= SIZE_MAX / bytes_per_character;
        if (string->min_length > 0)
            node->shortest = (size_t)(string->min_length - 1) * bytes_per_character + 1;
        node->longest = (size_t)string->max_length;
    }
    if (general) {
        node->quick &= general->only_texts && !has_combinations(general) && !general->constant;
        node->texts = &general->texts;
    }
}

/* Every schema on the way gets the last one as its target, so that each is passed once only. */
static void shorten(struct tci_schema_node *node)
{
    const struct tci_schema_node *target = node, *next;

    node->only_type = !node->general && has_no_rules(node) && !node->impossible;
    make_quick(node);
    if (node->alias)
        return;
    while ((next = target->alias ? target->alias : only_reference(target)))
        target = next;
    for (const struct tci_schema_node *at = node; at != target; at = next) {
        next = at->alias ? at->alias : only_reference(at);
        ((struct tci_schema_node *)(uintptr_t)at)->alias = target;
    }
}

/* ---- pointers --------------------------------------------------------------------------------- */

static void resolve(const struct tci_schema_node **pointer)
{
    if (*pointer && (*pointer)->alias)
        *pointer = (*pointer)->alias;
}

static void resolve_list(struct tci_schema_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        resolve(&list->items[i]);
}

static void resolve_general(struct tci_rules_general *rules)
{
    resolve(&rules->reference);
    resolve(&rules->not );
    resolve(&rules->condition);
    resolve(&rules->then);
    resolve(&rules->otherwise);
    resolve_list(&rules->all);
    resolve_list(&rules->any);
    resolve_list(&rules->one);
    if (rules->dynamic)
        resolve(&rules->dynamic->otherwise);
}

static void resolve_object(struct tci_rules_object *rules)
{
    resolve(&rules->additional);
    resolve(&rules->property_names);
    for (size_t i = 0; i < rules->names.count; i++)
        resolve(&rules->members[i].schema);
    for (size_t i = 0; i < rules->pattern_count; i++)
        resolve(&rules->patterns[i].schema);
    for (size_t i = 0; i < rules->dependent_count; i++)
        resolve(&rules->dependents[i].schema);
}

/* The validator never meets an alias. */
static void resolve_aliases(struct tci_schema_node *node)
{
    resolve(&node->unevaluated_items);
    resolve(&node->unevaluated_properties);
    if (node->general)
        resolve_general(node->general);
    if (node->object)
        resolve_object(node->object);
    if (node->array) {
        resolve_list(&node->array->prefix);
        resolve(&node->array->items);
        resolve(&node->array->contains);
    }
}

static void resolve_targets(const struct tci_compiler *c)
{
    for (size_t i = 0; i < c->dynamic.names.count; i++) {
        struct tci_dynamic_anchor *anchor = c->dynamic.values[i];
        for (size_t j = 0; j < anchor->count; j++)
            resolve(&anchor->targets[j].schema);
    }
}

int tci_compile_finish(struct tci_compiler *c)
{
    if (refuse_circles(c) < 0)
        return -1;
    for (size_t i = 0; i < c->places.names.count; i++)
        shorten(source_at(c, i)->node);
    for (size_t i = 0; i < c->places.names.count; i++)
        resolve_aliases(source_at(c, i)->node);
    resolve_targets(c);
    resolve(&c->program->root);
    return 0;
}
