/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: where references lead: to a resource by its URI, then by JSON Pointer or anchor. */
#include "json/schema_compile.h"

#include <stdio.h>
#include <string.h>
#include "base/quote.h"

struct reference {
    struct tci_source *from;
    const char *keyword, *text;
};

static int unknown(struct tci_compiler *c, const struct reference *reference, const char *problem)
{
    char quoted[TCI_QUOTE_MAX];
    tci_compile_fail(c, reference->from->node, reference->keyword,
                     "the reference %s cannot be resolved: %s",
                     tci_quote(reference->text, strlen(reference->text), quoted), problem);
    if (c->error && c->error->code == TC_ERROR_SYNTAX)
        tci_error_remedy(c->error,
                         "put what it refers to into \"$defs\" of the same schema; nothing "
                         "is fetched");
    return -1;
}

/* ---- JSON Pointers ---------------------------------------------------------------------------- */

/* Cuts the next token off and unescapes it in place. False: a ~ that is no escape. */
static bool next_token(char **at, const char *end, char **ret_token, size_t *ret_length)
{
    char *from = *at + 1, *to = from;
    *ret_token = from;
    while (from < end && *from != '/') {
        if (*from == '~') {
            if (end - from < 2 || (from[1] != '0' && from[1] != '1'))
                return false;
            *to++ = from[1] == '0' ? '~' : '/';
            from += 2;
        } else {
            *to++ = *from++;
        }
    }
    *ret_length = (size_t)(to - *ret_token);
    *at = from;
    return true;
}

static const json_t *item_at(const json_t *array, const char *token, size_t length)
{
    size_t index = 0;
    if (length == 0 || length > 9 || (token[0] == '0' && length > 1))
        return NULL;
    for (size_t i = 0; i < length; i++) {
        if (token[i] < '0' || token[i] > '9')
            return NULL;
        index = index * 10 + (size_t)(token[i] - '0');
    }
    return json_array_get(array, index);
}

static const json_t *step(const json_t *json, const char *token, size_t length)
{
    if (json_is_object(json))
        return json_object_getn(json, token, length);
    return json_is_array(json) ? item_at(json, token, length) : NULL;
}

/* From the root of a resource, through values that are schemas (which may begin resources) and
 * others. A target that the walk did not find is a schema where the draft has none. */
static int follow_pointer(struct tci_compiler *c, const struct reference *reference,
                          struct tci_resource *resource, char *pointer, size_t length,
                          struct tci_source **ret)
{
    struct tci_source *place = resource->root;
    const struct tci_schema_node *root = place->node;
    const json_t *json = place->json;
    char *at = pointer, *end = pointer + length, *token;
    const char *whole = tci_arena_strndup(c->arena, pointer, length);
    size_t token_length;

    if (!whole)
        return tci_compile_no_memory(c);
    while (at < end) {
        if (!next_token(&at, end, &token, &token_length))
            return unknown(c, reference, "its JSON Pointer has a ~ without 0 or 1");
        json = step(json, token, token_length);
        if (!json)
            return unknown(c, reference, "there is nothing at its JSON Pointer");
        place = tci_place_known(c, json, resource);
        if (place)
            resource = place->resource;
    }
    if (!place) {
        if (!json_is_object(json) && !json_is_boolean(json))
            return unknown(c, reference, "what is there is no schema");
        place = tci_place(c, json, resource, root, whole);
    }
    *ret = place;
    return place ? 0 : -1;
}

/* ---- references ------------------------------------------------------------------------------- */

static int find_resource(struct tci_compiler *c, const struct reference *reference, const char *uri,
                         struct tci_resource **ret)
{
    struct tci_source *root;
    const json_t *document;
    bool queue_all = c->queue_all;
    unsigned depth = c->budget.depth;
    int status;

    *ret = tci_resource_find(c, uri);
    if (*ret)
        return 0;
    if (tci_document_find(c, uri, &document) < 0)
        return -1;
    if (!document)
        return unknown(c, reference, "no such document is known");
    c->queue_all = false;
    c->budget.depth = c->program->limits.nesting;
    status = tci_document_add(c, document, uri, &reference->from->resource->dialect, &root);
    c->budget.depth = depth;
    c->queue_all = queue_all;
    if (status < 0)
        return -1;
    *ret = root->resource;
    return 0;
}

static int find_anchor(struct tci_compiler *c, const struct reference *reference,
                       const struct tci_resource *resource, const char *name,
                       struct tci_source **ret)
{
    char *key = tci_arena_printf(c->scratch, "%s#%s", resource->uri, name);
    if (!key)
        return tci_compile_no_memory(c);
    *ret = tci_name_map_get(&c->anchors, key, strlen(key));
    return *ret ? 0 : unknown(c, reference, "there is no such anchor");
}

int tci_reference_resolve(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                          const json_t *value, struct tci_source **ret)
{
    struct reference reference = { source, keyword, json_string_value(value) };
    struct tci_resource *resource;
    char *uri, *fragment;
    size_t length;
    bool malformed;
    int status;

    if (!reference.text || strlen(reference.text) != json_string_length(value))
        return tci_compile_fail(c, source->node, keyword, "must be a string without NUL");
    uri = tci_uri_resolve(c->scratch, source->resource->uri, reference.text,
                          strlen(reference.text));
    if (!uri)
        return tci_compile_no_memory(c);
    fragment = tci_uri_fragment(c->scratch, reference.text, strlen(reference.text), &length,
                                &malformed);
    if (!fragment)
        return tci_compile_no_memory(c);
    if (malformed)
        return unknown(c, &reference, "its fragment has a % without two digits");
    if (find_resource(c, &reference, uri, &resource) < 0)
        return -1;
    if (length == 0) {
        *ret = resource->root;
        status = 0;
    } else if (fragment[0] == '/') {
        status = follow_pointer(c, &reference, resource, fragment, length, ret);
    } else {
        status = find_anchor(c, &reference, resource, fragment, ret);
    }
    if (status == 0)
        tci_queue(c, *ret);
    return status;
}

/* ---- $dynamicRef ------------------------------------------------------------------------------ */

struct tci_dynamic_anchor *tci_dynamic_anchor(struct tci_compiler *c, const char *name)
{
    struct tci_dynamic_anchor *anchor = tci_name_map_get(&c->dynamic, name, strlen(name));
    if (anchor)
        return anchor;
    anchor = tci_arena_new_of(c->arena, struct tci_dynamic_anchor);
    if (!anchor || !tci_name_map_put(c->scratch, &c->dynamic, name, strlen(name), anchor)) {
        tci_compile_no_memory(c);
        return NULL;
    }
    c->program->has_dynamic = true;
    return anchor;
}

/* The anchor of the schema at `index`, if a $dynamicRef names it. */
static struct tci_dynamic_anchor *wanted_anchor(const struct tci_compiler *c, size_t index)
{
    const char *name = ((const struct tci_source *)c->places.values[index])->dynamic_anchor;
    return name ? tci_name_map_get(&c->dynamic, name, strlen(name)) : NULL;
}

int tci_dynamic_fill(struct tci_compiler *c)
{
    for (size_t i = 0; i < c->dynamic.names.count; i++)
        ((struct tci_dynamic_anchor *)c->dynamic.values[i])->count = 0;
    for (size_t i = 0; i < c->places.names.count; i++) {
        struct tci_dynamic_anchor *anchor = wanted_anchor(c, i);
        if (anchor)
            anchor->count++;
    }
    for (size_t i = 0; i < c->dynamic.names.count; i++) {
        struct tci_dynamic_anchor *anchor = c->dynamic.values[i];
        anchor->targets = tci_arena_new_array(c->arena, anchor->count, struct tci_dynamic_target);
        if (!anchor->targets)
            return tci_compile_no_memory(c);
        anchor->count = 0;
    }
    for (size_t i = 0; i < c->places.names.count; i++) {
        struct tci_dynamic_anchor *anchor = wanted_anchor(c, i);
        struct tci_source *source = c->places.values[i];
        if (!anchor)
            continue;
        anchor->targets[anchor->count++] = (struct tci_dynamic_target){ source->resource->number,
                                                                        source->node };
        tci_queue(c, source);
    }
    return 0;
}
