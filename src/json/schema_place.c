/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the walk over a document. It finds each schema, the resource that it is part of, and anchors.
 * It goes only where the draft says that schemas are: an "$id" inside of `enum` is data.
 * Invariant: one place for each value and the resource around it, so a tree that holds one value
 * twice is walked twice only if its base URI differs.
 */
#include "json/schema_compile.h"

#include <string.h>
#include "base/quote.h"

/* What identifies a place: these bytes are its name in a table. */
struct place_key {
    const json_t *json;
    uintptr_t resource;
};

struct tci_source *tci_place_known(const struct tci_compiler *c, const json_t *json,
                                   const struct tci_resource *around)
{
    struct place_key key = { json, around->number };
    return tci_name_map_get(&c->places, (const char *)&key, sizeof key);
}

void tci_queue(struct tci_compiler *c, struct tci_source *source)
{
    if (source->queued)
        return;
    source->queued = true;
    *c->queue_end = source;
    c->queue_end = &source->next;
}

static struct tci_source *no_source(struct tci_compiler *c)
{
    tci_compile_no_memory(c);
    return NULL;
}

static bool remember(struct tci_compiler *c, struct tci_source *source,
                     const struct tci_resource *around)
{
    struct place_key key = { source->json, around->number };
    return tci_name_map_put(c->scratch, &c->places, (const char *)&key, sizeof key, source);
}

static struct tci_source *new_source(struct tci_compiler *c, const json_t *json,
                                     struct tci_resource *around,
                                     const struct tci_schema_node *parent, const char *token)
{
    struct tci_source *source = tci_arena_new_of(c->scratch, struct tci_source);
    struct tci_schema_node *node = tci_arena_new_of(c->arena, struct tci_schema_node);
    if (!source || !node)
        return no_source(c);
    *node = (struct tci_schema_node){
        .types = TCI_TYPE_ANY, .resource = around->number, .parent = parent, .token = token
    };
    *source = (struct tci_source){ .json = json, .resource = around, .node = node };
    return remember(c, source, around) ? source : no_source(c);
}

/* ---- tokens ----------------------------------------------------------------------------------- */

/* "/token" in the arena, escaped for a JSON Pointer; NULL: no memory (an error was set). */
static const char *make_token(struct tci_compiler *c, const char *keyword, const char *name,
                              size_t length)
{
    size_t keyword_length = strlen(keyword);
    char *token = tci_arena_alloc(c->arena, keyword_length + 2 * length + 3), *to = token;

    if (!token) {
        tci_compile_no_memory(c);
        return NULL;
    }
    *to++ = '/';
    memcpy(to, keyword, keyword_length);
    to += keyword_length;
    if (name)
        *to++ = '/';
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '~' || name[i] == '/') {
            *to++ = '~';
            *to++ = name[i] == '~' ? '0' : '1';
        } else {
            *to++ = name[i];
        }
    }
    *to = '\0';
    return token;
}

static const char *make_token_index(struct tci_compiler *c, const char *keyword, size_t index)
{
    char *token = tci_arena_printf(c->arena, "/%s/%zu", keyword, index);
    if (!token)
        tci_compile_no_memory(c);
    return token;
}

/* ---- identifiers ------------------------------------------------------------------------------ */

/* The text of a keyword, NULL if it is not there. -1: it is no string. */
static int get_text(struct tci_compiler *c, const struct tci_source *source, const char *keyword,
                    const json_t **ret)
{
    const json_t *value = json_object_get(source->json, keyword);
    *ret = value;
    if (value && !json_is_string(value))
        return tci_compile_fail(c, source->node, keyword, "must be a string");
    return 0;
}

static int enter_resource(struct tci_compiler *c, struct tci_source *source, const char *uri)
{
    struct tci_dialect dialect;
    struct tci_resource *resource;
    char quoted[TCI_QUOTE_MAX];

    if (tci_resource_find(c, uri))
        return tci_compile_fail(c, source->node, "$id", "another schema has the id %s already",
                                tci_quote(uri, strlen(uri), quoted));
    if (tci_dialect_read(c, source->json, &source->resource->dialect, &dialect) < 0)
        return -1;
    resource = tci_resource_new(c, uri, &dialect);
    if (!resource || tci_resource_name(c, resource, uri) < 0)
        return -1;
    resource->root = source;
    source->resource = resource;
    source->node->resource = resource->number;
    source->node->parent = NULL;
    source->node->token = tci_arena_strdup(c->arena, uri);
    return source->node->token ? 0 : tci_compile_no_memory(c);
}

/* $id: a new base URI. In draft 7, "#name" is an anchor instead, and beside $ref it means nothing. */
static int read_id(struct tci_compiler *c, struct tci_source *source)
{
    bool old = source->resource->dialect.draft == TCI_SCHEMA_DRAFT_7;
    const json_t *id;
    const char *text, *hash;
    char *uri;

    if (old && json_object_get(source->json, "$ref"))
        return 0;
    if (get_text(c, source, "$id", &id) < 0)
        return -1;
    if (!id)
        return 0;
    text = json_string_value(id);
    hash = strchr(text, '#');
    if (hash && hash[1] && !old)
        return tci_compile_fail(c, source->node, "$id", "must have no fragment; use \"$anchor\"");
    if (hash && hash[1]) {
        if (tci_anchor_add(c, source, "$id", hash + 1, strlen(hash + 1), false) < 0)
            return -1;
        if (hash == text)
            return 0;
    }
    if (source->resource->root == source)
        return 0; /* of a document: its id is known already */
    if (text[0] == '\0' || text[0] == '#')
        return 0; /* the same base as before */
    uri = tci_uri_resolve(c->scratch, source->resource->uri, text, strlen(text));
    if (!uri)
        return tci_compile_no_memory(c);
    return enter_resource(c, source, uri);
}

static int read_anchors(struct tci_compiler *c, struct tci_source *source)
{
    static const char *const keywords[] = { "$anchor", "$dynamicAnchor" };
    if (source->resource->dialect.draft == TCI_SCHEMA_DRAFT_7)
        return 0;
    for (size_t i = 0; i < tci_array_size(keywords); i++) {
        const json_t *name;
        if (get_text(c, source, keywords[i], &name) < 0)
            return -1;
        if (name && tci_anchor_add(c, source, keywords[i], json_string_value(name),
                                   json_string_length(name), i == 1) < 0)
            return -1;
    }
    return 0;
}

/* ---- the walk --------------------------------------------------------------------------------- */

static int walk_below(struct tci_compiler *c, struct tci_source *source, const json_t *json,
                      const char *token)
{
    return token && tci_place(c, json, source->resource, source->node, token) ? 0 : -1;
}

static int walk_list(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                     const json_t *list)
{
    if (!json_is_array(list))
        return tci_compile_fail(c, source->node, keyword, "must be an array of schemas");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (walk_below(c, source, json_array_get(list, i), make_token_index(c, keyword, i)) < 0)
            return -1;
    return 0;
}

static int walk_map(struct tci_compiler *c, struct tci_source *source,
                    const struct tci_keyword *keyword, const json_t *map)
{
    if (!json_is_object(map))
        return tci_compile_fail(c, source->node, keyword->name, "must be an object of schemas");
    tci_object_foreach(at, map)
    {
        const json_t *value = json_object_iter_value(at);
        if (keyword->shape == TCI_SHAPE_MAP_OR_NAMES && json_is_array(value))
            continue;
        if (walk_below(c, source, value,
                       make_token(c, keyword->name, json_object_iter_key(at),
                                  json_object_iter_key_len(at))) < 0)
            return -1;
    }
    return 0;
}

static int walk_keyword(struct tci_compiler *c, struct tci_source *source,
                        const struct tci_keyword *keyword, const json_t *value)
{
    switch (keyword->shape) {
    case TCI_SHAPE_NONE:
        return 0;
    case TCI_SHAPE_ONE_OR_LIST:
        if (json_is_array(value))
            return walk_list(c, source, keyword->name, value);
        break;
    case TCI_SHAPE_LIST:
        return walk_list(c, source, keyword->name, value);
    case TCI_SHAPE_MAP:
    case TCI_SHAPE_MAP_OR_NAMES:
        return walk_map(c, source, keyword, value);
    case TCI_SHAPE_ONE:
        break;
    }
    return walk_below(c, source, value, make_token(c, keyword->name, NULL, 0));
}

/* In draft 7, what stands beside $ref is ignored; definitions there can still be referred to. */
static int walk_object(struct tci_compiler *c, struct tci_source *source)
{
    bool only_definitions = source->resource->dialect.draft == TCI_SCHEMA_DRAFT_7 &&
                            json_object_get(source->json, "$ref");
    tci_object_foreach(at, source->json)
    {
        const struct tci_keyword *keyword = tci_keyword_find(json_object_iter_key(at),
                                                             &source->resource->dialect);
        if (!tci_budget_take(&c->budget, 1))
            return tci_compile_exhausted(c);
        if (!keyword || (only_definitions && keyword->compile))
            continue;
        if (walk_keyword(c, source, keyword, json_object_iter_value(at)) < 0)
            return -1;
    }
    return 0;
}

struct tci_source *tci_place(struct tci_compiler *c, const json_t *json,
                             struct tci_resource *around, const struct tci_schema_node *parent,
                             const char *token)
{
    struct tci_source *source = tci_place_known(c, json, around);
    int status;

    if (source)
        return source;
    source = new_source(c, json, around, parent, token);
    if (!source)
        return NULL;
    if (!around->root)
        around->root = source;
    if (c->places.names.count > c->program->limits.schemas || c->budget.depth == 0) {
        tci_budget_end(&c->budget, TCI_EXHAUSTED_DEPTH);
        tci_compile_exhausted(c);
        return NULL;
    }
    if (c->queue_all)
        tci_queue(c, source);
    if (json_is_boolean(json))
        return source;
    if (!json_is_object(json)) {
        tci_compile_fail(c, source->node, NULL, "a schema is an object or a boolean");
        return NULL;
    }
    c->budget.depth--;
    status = read_id(c, source) < 0 || read_anchors(c, source) < 0 || walk_object(c, source) < 0;
    c->budget.depth++;
    return status ? NULL : source;
}
