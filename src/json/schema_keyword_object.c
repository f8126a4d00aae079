/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: keywords for objects: which members there are, must be, may be, and what they need. */
#include "json/schema_compile.h"

#include <string.h>

/* What is known about a name; it comes into being when it is first asked for. */
static struct tci_member *member_of(struct tci_compiler *c, struct tci_rules_object *rules,
                                    const char *name, size_t length)
{
    size_t before = rules->names.capacity;
    long index = tci_names_add(c->arena, &rules->names, name, length);
    if (index < 0) {
        tci_compile_no_memory(c);
        return NULL;
    }
    if (rules->names.capacity != before) {
        struct tci_member *members = tci_arena_new_array(c->arena, rules->names.capacity,
                                                         struct tci_member);
        if (!members) {
            tci_compile_no_memory(c);
            return NULL;
        }
        if (before)
            memcpy(members, rules->members, before * sizeof *members);
        rules->members = members;
    }
    return &rules->members[index];
}

int tci_keyword_properties(struct tci_compiler *c, struct tci_source *source,
                           const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    size_t count = 0;

    if (!rules)
        return -1;
    rules->suggestions = tci_arena_new_array(c->arena, json_object_size(value) + 1, const char *);
    if (!rules->suggestions)
        return tci_compile_no_memory(c);
    tci_object_foreach(at, value)
    {
        struct tci_member *member = member_of(c, rules, json_object_iter_key(at),
                                              json_object_iter_key_len(at));
        if (!member)
            return -1;
        member->schema = tci_child(c, source, keyword->name, json_object_iter_value(at));
        if (!member->schema)
            return -1;
        rules->suggestions[count++] = rules->names.items[member - rules->members].text;
    }
    return 0;
}

int tci_keyword_required(struct tci_compiler *c, struct tci_source *source,
                         const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    if (!rules)
        return -1;
    if (!json_is_array(value))
        return tci_compile_fail(c, source->node, keyword->name,
                                "must be an array of names, in the object's own schema");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *name = json_array_get(value, i);
        struct tci_member *member;
        if (!json_is_string(name))
            return tci_compile_fail(c, source->node, keyword->name, "must be an array of names");
        member = member_of(c, rules, json_string_value(name), json_string_length(name));
        if (!member)
            return -1;
        rules->required_count += !member->required;
        member->required = true;
    }
    return 0;
}

int tci_keyword_pattern_properties(struct tci_compiler *c, struct tci_source *source,
                                   const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    if (!rules)
        return -1;
    rules->patterns = tci_arena_new_array(c->arena, json_object_size(value),
                                          struct tci_pattern_member);
    if (!rules->patterns)
        return tci_compile_no_memory(c);
    tci_object_foreach(at, value)
    {
        struct tci_pattern_member *pattern = &rules->patterns[rules->pattern_count];
        pattern->schema = tci_child(c, source, keyword->name, json_object_iter_value(at));
        if (!pattern->schema ||
            tci_compile_pattern(c, source, keyword->name, json_object_iter_key(at),
                                json_object_iter_key_len(at), &pattern->regex) < 0)
            return -1;
        rules->pattern_count++;
    }
    return 0;
}

int tci_keyword_additional_properties(struct tci_compiler *c, struct tci_source *source,
                                      const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    if (!rules)
        return -1;
    rules->additional = tci_child(c, source, keyword->name, value);
    return rules->additional ? 0 : -1;
}

int tci_keyword_property_names(struct tci_compiler *c, struct tci_source *source,
                               const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    if (!rules)
        return -1;
    rules->property_names = tci_child(c, source, keyword->name, value);
    return rules->property_names ? 0 : -1;
}

/* ---- dependencies ----------------------------------------------------------------------------- */

static int read_needs(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                      const json_t *list, struct tci_dependent *dependent)
{
    size_t count = json_array_size(list);
    struct tci_name *needs = tci_arena_new_array(c->arena, count, struct tci_name);
    if (!needs)
        return tci_compile_no_memory(c);
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(list, i);
        if (!json_is_string(name))
            return tci_compile_fail(c, source->node, keyword, "must hold arrays of names");
        needs[i].length = json_string_length(name);
        needs[i].text = tci_arena_strndup(c->arena, json_string_value(name), needs[i].length);
        if (!needs[i].text)
            return tci_compile_no_memory(c);
    }
    dependent->needs = needs;
    dependent->need_count = count;
    return 0;
}

static int read_dependent(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                          const json_t *value, struct tci_dependent *dependent)
{
    bool may_be_names = strcmp(keyword, "dependentSchemas") != 0;
    bool may_be_schema = strcmp(keyword, "dependentRequired") != 0;
    if (may_be_names && json_is_array(value))
        return read_needs(c, source, keyword, value, dependent);
    if (!may_be_schema)
        return tci_compile_fail(c, source->node, keyword, "must hold arrays of names");
    dependent->schema = tci_child(c, source, keyword, value);
    return dependent->schema ? 0 : -1;
}

/* dependentRequired, dependentSchemas, and draft 7's dependencies, which is both. */
int tci_keyword_dependencies(struct tci_compiler *c, struct tci_source *source,
                             const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_object *rules = tci_rules_object(c, source->node);
    size_t before = rules ? rules->dependent_count : 0;
    struct tci_dependent *all;

    if (!rules)
        return -1;
    if (!json_is_object(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be an object");
    all = tci_arena_new_array(c->arena, before + json_object_size(value), struct tci_dependent);
    if (!all)
        return tci_compile_no_memory(c);
    if (before)
        memcpy(all, rules->dependents, before * sizeof *all);
    rules->dependents = all;
    tci_object_foreach(at, value)
    {
        struct tci_dependent *dependent = &all[rules->dependent_count];
        dependent->keyword = keyword->name;
        dependent->name_length = json_object_iter_key_len(at);
        dependent->name = tci_arena_strndup(c->arena, json_object_iter_key(at),
                                            dependent->name_length);
        if (!dependent->name)
            return tci_compile_no_memory(c);
        if (read_dependent(c, source, keyword->name, json_object_iter_value(at), dependent) < 0)
            return -1;
        rules->dependent_count++;
    }
    return 0;
}
