/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: keywords that apply other schemas, to the value itself or to the items of an array. */
#include "json/schema_compile.h"

#include <string.h>

const struct tci_schema_node *tci_child(struct tci_compiler *c, struct tci_source *source,
                                        const char *keyword, const json_t *json)
{
    struct tci_source *child = tci_place_known(c, json, source->resource);
    if (!child) {
        tci_compile_fail(c, source->node, keyword, "must be a schema");
        return NULL;
    }
    tci_queue(c, child);
    return child->node;
}

static int child_list(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                      const json_t *list, struct tci_schema_list *ret)
{
    size_t count = json_array_size(list);
    ret->items = tci_arena_new_array(c->arena, count, const struct tci_schema_node *);
    if (!ret->items)
        return tci_compile_no_memory(c);
    for (size_t i = 0; i < count; i++) {
        ret->items[i] = tci_child(c, source, keyword, json_array_get(list, i));
        if (!ret->items[i])
            return -1;
    }
    ret->count = count;
    return 0;
}

/* ---- the value itself ------------------------------------------------------------------------- */

int tci_keyword_reference(struct tci_compiler *c, struct tci_source *source,
                          const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    struct tci_source *target;
    if (!rules || tci_reference_resolve(c, source, keyword->name, value, &target) < 0)
        return -1;
    rules->reference = target->node;
    return 0;
}

/* It is dynamic only if it leads to a $dynamicAnchor by name; else it is a $ref. */
int tci_keyword_dynamic_reference(struct tci_compiler *c, struct tci_source *source,
                                  const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    struct tci_dynamic_reference *dynamic = tci_arena_new_of(c->arena,
                                                             struct tci_dynamic_reference);
    struct tci_source *target;
    const char *fragment;

    if (!rules || !dynamic)
        return tci_compile_no_memory(c);
    if (tci_reference_resolve(c, source, keyword->name, value, &target) < 0)
        return -1;
    rules->dynamic = dynamic;
    dynamic->otherwise = target->node;
    fragment = strchr(json_string_value(value), '#');
    if (!fragment || !target->dynamic_anchor || strcmp(fragment + 1, target->dynamic_anchor) != 0)
        return 0;
    dynamic->anchor = tci_dynamic_anchor(c, target->dynamic_anchor);
    return dynamic->anchor ? 0 : -1;
}

static int nonempty_list(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                         const json_t *value, struct tci_schema_list *ret)
{
    if (json_array_size(value) == 0)
        return tci_compile_fail(c, source->node, keyword, "must have at least one schema");
    return child_list(c, source, keyword, value, ret);
}

int tci_keyword_all(struct tci_compiler *c, struct tci_source *source,
                    const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    return rules ? nonempty_list(c, source, keyword->name, value, &rules->all) : -1;
}

int tci_keyword_any(struct tci_compiler *c, struct tci_source *source,
                    const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    return rules ? nonempty_list(c, source, keyword->name, value, &rules->any) : -1;
}

int tci_keyword_one(struct tci_compiler *c, struct tci_source *source,
                    const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    return rules ? nonempty_list(c, source, keyword->name, value, &rules->one) : -1;
}

int tci_keyword_not(struct tci_compiler *c, struct tci_source *source,
                    const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    if (!rules)
        return -1;
    rules->not = tci_child(c, source, keyword->name, value);
    return rules->not ? 0 : -1;
}

/* if, then, else: the last two mean nothing without the first, which the validator sees to. */
int tci_keyword_condition(struct tci_compiler *c, struct tci_source *source,
                          const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    const struct tci_schema_node *child = tci_child(c, source, keyword->name, value);
    if (!rules || !child)
        return -1;
    switch (keyword->name[0]) {
    case 'i':
        rules->condition = child;
        break;
    case 't':
        rules->then = child;
        break;
    default:
        rules->otherwise = child;
        break;
    }
    return 0;
}

int tci_keyword_unevaluated(struct tci_compiler *c, struct tci_source *source,
                            const struct tci_keyword *keyword, const json_t *value)
{
    const struct tci_schema_node *child = tci_child(c, source, keyword->name, value);
    if (!child)
        return -1;
    source->node->collects = true;
    if (strcmp(keyword->name, "unevaluatedItems") == 0)
        source->node->unevaluated_items = child;
    else
        source->node->unevaluated_properties = child;
    return 0;
}

/* ---- arrays ----------------------------------------------------------------------------------- */

int tci_keyword_prefix(struct tci_compiler *c, struct tci_source *source,
                       const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_array *rules = tci_rules_array(c, source->node);
    return rules ? child_list(c, source, keyword->name, value, &rules->prefix) : -1;
}

/* An array of schemas is draft 7's way to write prefixItems. */
int tci_keyword_items(struct tci_compiler *c, struct tci_source *source,
                      const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_array *rules = tci_rules_array(c, source->node);
    if (!rules)
        return -1;
    if (json_is_array(value))
        return child_list(c, source, keyword->name, value, &rules->prefix);
    rules->items = tci_child(c, source, keyword->name, value);
    rules->items_keyword = "items";
    return rules->items ? 0 : -1;
}

/* Means something only beside an array of schemas in `items`. */
int tci_keyword_additional_items(struct tci_compiler *c, struct tci_source *source,
                                 const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_array *rules;
    if (!json_is_array(json_object_get(source->json, "items")))
        return 0;
    rules = tci_rules_array(c, source->node);
    if (!rules)
        return -1;
    rules->items = tci_child(c, source, keyword->name, value);
    rules->items_keyword = "additionalItems";
    return rules->items ? 0 : -1;
}

int tci_keyword_contains(struct tci_compiler *c, struct tci_source *source,
                         const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_array *rules = tci_rules_array(c, source->node);
    if (!rules)
        return -1;
    rules->contains = tci_child(c, source, keyword->name, value);
    return rules->contains ? 0 : -1;
}
