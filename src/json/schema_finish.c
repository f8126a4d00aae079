/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is done once all schemas are compiled. Circles of references that stay at one value are
 * refused here: validation would never end, and its depth limit would blame the value. (Circles
 * through $dynamicRef depend on the value's path through the schema; those meet the depth limit.)
 */
#include "json/schema_compile.h"

/* ---- circles ---------------------------------------------------------------------------------- */

static const struct tci_schema_node *list_item(const struct tci_schema_list *list, size_t *index)
{
    if (*index < list->count)
        return list->items[*index];
    *index -= list->count;
    return NULL;
}

static const struct tci_schema_node *general_edge(const struct tci_rules_general *rules,
                                                  size_t *index)
{
    const struct tci_schema_node *single[] = { rules->reference, rules->not, rules->condition,
                                               rules->condition ? rules->then : NULL,
                                               rules->condition ? rules->otherwise : NULL };
    const struct tci_schema_list *lists[] = { &rules->all, &rules->any, &rules->one };
    const struct tci_schema_node *found;

    for (size_t i = 0; i < tci_array_size(single); i++) {
        if (!single[i])
            continue;
        if (*index == 0)
            return single[i];
        --*index;
    }
    for (size_t i = 0; i < tci_array_size(lists); i++) {
        found = list_item(lists[i], index);
        if (found)
            return found;
    }
    return NULL;
}

/* The schemas that are applied to the same value, by index; NULL behind the last. */
static const struct tci_schema_node *edge(const struct tci_schema_node *node, size_t index)
{
    const struct tci_schema_node *found =
        node->general ? general_edge(node->general, &index) : NULL;
    if (found || !node->object)
        return found;
    for (size_t i = 0; i < node->object->dependent_count; i++) {
        if (!node->object->dependents[i].schema)
            continue;
        if (index == 0)
            return node->object->dependents[i].schema;
        index--;
    }
    return NULL;
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
        const struct tci_schema_node *found = edge(top->node, top->next_edge++);
        struct tci_schema_node *next = (struct tci_schema_node *)(uintptr_t)found;
        if (!next) {
            top->node->mark = mark_done;
            depth--;
        } else if (next->mark == mark_open) {
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

/* A schema that is nothing but a reference within its resource stands for its target. Across
 * resources it must stay: entering the resource counts for $dynamicRef. */
static const struct tci_schema_node *only_reference(const struct tci_schema_node *node)
{
    const struct tci_rules_general *rules = node->general;
    if (!rules || !rules->reference || !has_no_rules(node) || node->types != TCI_TYPE_ANY ||
        rules->constant || rules->has_choices || rules->dynamic || rules->all.count ||
        rules->any.count || rules->one.count || rules->not|| rules->condition)
        return NULL;
    return rules->reference->resource == node->resource ? rules->reference : NULL;
}

static void shorten(struct tci_schema_node *node)
{
    const struct tci_schema_node *target = only_reference(node);
    node->only_type = !node->general && has_no_rules(node) && !node->impossible;
    if (!target)
        return;
    for (const struct tci_schema_node *next; (next = only_reference(target));)
        target = next;
    node->alias = target;
}

int tci_compile_finish(struct tci_compiler *c)
{
    if (refuse_circles(c) < 0)
        return -1;
    for (size_t i = 0; i < c->places.names.count; i++)
        shorten(source_at(c, i)->node);
    return 0;
}
