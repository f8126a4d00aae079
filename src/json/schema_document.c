/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: documents, the resources in them, and the dialects that they are written in. Documents come
 * from the caller or are built in; nothing is ever fetched. The attack: a schema whose $ref makes
 * this host ask a server of the schema's author, or one that only this host can reach.
 */
#include "json/schema_compile.h"

#include <errno.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"

enum { metaschema_depth = 4, all_vocabularies = 0xff };

static const char new_uri[] = "https://json-schema.org/draft/2020-12/schema";
static const char seven_uri[] = "http://json-schema.org/draft-07/schema";

/* ---- documents -------------------------------------------------------------------------------- */

int tci_document_find(struct tci_compiler *c, const char *uri, const json_t **ret)
{
    const char *text = tci_metaschema_text(uri);
    json_t *document;

    *ret = NULL;
    if (!text) {
        if (c->options->lookup)
            *ret = c->options->lookup(c->options->lookup_context, uri);
        return 0;
    }
    for (size_t i = 0; i < c->owned_count; i++) {
        if (c->owned[i].text == text) {
            *ret = c->owned[i].document;
            return 0;
        }
    }
    if (c->owned_count == TCI_COMPILER_OWNED_MAX)
        return tci_error_set(c->error, TC_ERROR_INTERNAL, "too many built-in schemas");
    document = tci_json_read(text, strlen(text), c->error);
    if (!document)
        return -1;
    c->owned[c->owned_count++] = (struct tci_owned){ text, document };
    *ret = document;
    return 0;
}

/* Is there an $id that names the whole document? */
static const char *own_id(const json_t *json, const struct tci_dialect *dialect)
{
    const char *id = json_string_value(json_object_get(json, "$id"));
    if (!id || id[0] == '#' || !*id)
        return NULL;
    if (dialect->draft == TCI_SCHEMA_DRAFT_7 && json_object_get(json, "$ref"))
        return NULL;
    return id;
}

int tci_document_add(struct tci_compiler *c, const json_t *json, const char *uri,
                     const struct tci_dialect *otherwise, struct tci_source **ret)
{
    struct tci_dialect dialect = *otherwise;
    struct tci_resource *resource;
    const char *id, *own = uri, *token;

    if (tci_dialect_read(c, json, otherwise, &dialect) < 0)
        return -1;
    id = own_id(json, &dialect);
    if (id && !(own = tci_uri_resolve(c->scratch, uri, id, strlen(id))))
        return tci_compile_no_memory(c);
    resource = tci_resource_find(c, own);
    if (resource) {
        *ret = resource->root;
        return tci_resource_name(c, resource, uri);
    }
    resource = tci_resource_new(c, own, &dialect);
    token = tci_arena_strdup(c->arena, own);
    if (!resource || !token)
        return tci_compile_no_memory(c);
    if (tci_resource_name(c, resource, own) < 0 || tci_resource_name(c, resource, uri) < 0)
        return -1;
    *ret = tci_place(c, json, resource, NULL, token);
    return *ret ? 0 : -1;
}

/* ---- resources -------------------------------------------------------------------------------- */

struct tci_resource *tci_resource_new(struct tci_compiler *c, const char *uri,
                                      const struct tci_dialect *dialect)
{
    struct tci_resource *resource = tci_arena_new_of(c->scratch, struct tci_resource);
    if (!resource) {
        tci_compile_no_memory(c);
        return NULL;
    }
    *resource =
        (struct tci_resource){ .number = c->resource_count++, .uri = uri, .dialect = *dialect };
    return resource;
}

int tci_resource_name(struct tci_compiler *c, struct tci_resource *resource, const char *uri)
{
    if (!tci_name_map_put(c->scratch, &c->resources, uri, strlen(uri), resource))
        return tci_compile_no_memory(c);
    return 0;
}

struct tci_resource *tci_resource_find(const struct tci_compiler *c, const char *uri)
{
    return tci_name_map_get(&c->resources, uri, strlen(uri));
}

static bool is_anchor(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char ch = name[i];
        bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
        if (!letter &&
            (i == 0 || !((ch >= '0' && ch <= '9') || ch == '-' || ch == '.' || ch == ':')))
            return false;
    }
    return length > 0;
}

int tci_anchor_add(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                   const char *name, size_t length, bool dynamic)
{
    char quoted[TCI_QUOTE_MAX], *key;
    const struct tci_source *known;

    if (!is_anchor(name, length))
        return tci_compile_fail(c, source->node, keyword, "%s is not a name for an anchor",
                                tci_quote(name, length, quoted));
    key = tci_arena_printf(c->scratch, "%s#%s", source->resource->uri, name);
    if (!key)
        return tci_compile_no_memory(c);
    known = tci_name_map_get(&c->anchors, key, strlen(key));
    if (known && known != source)
        return tci_compile_fail(c, source->node, keyword, "another schema has the anchor %s",
                                tci_quote(name, length, quoted));
    if (!tci_name_map_put(c->scratch, &c->anchors, key, strlen(key), source))
        return tci_compile_no_memory(c);
    if (dynamic)
        source->dynamic_anchor = name;
    return 0;
}

/* ---- dialects --------------------------------------------------------------------------------- */

struct vocabulary_name {
    const char *name;
    unsigned bit;
};

/* Behind https://json-schema.org/draft/2020-12/vocab/ */
static const struct vocabulary_name vocabulary_names[] = {
    { "core", 1U << TCI_VOCABULARY_CORE },
    { "applicator", 1U << TCI_VOCABULARY_APPLICATOR },
    { "validation", 1U << TCI_VOCABULARY_VALIDATION },
    { "unevaluated", 1U << TCI_VOCABULARY_UNEVALUATED },
    { "format-annotation", 1U << TCI_VOCABULARY_FORMAT },
    { "format-assertion", 1U << TCI_VOCABULARY_FORMAT },
    { "content", 1U << TCI_VOCABULARY_CONTENT },
    { "meta-data", 0 },
};

static int add_vocabulary(struct tci_compiler *c, const char *uri, bool needed,
                          struct tci_dialect *dialect)
{
    static const char prefix[] = "https://json-schema.org/draft/2020-12/vocab/";
    char quoted[TCI_QUOTE_MAX];

    if (strncmp(uri, prefix, sizeof prefix - 1) == 0) {
        const char *name = uri + sizeof prefix - 1;
        for (size_t i = 0; i < tci_array_size(vocabulary_names); i++) {
            if (strcmp(name, vocabulary_names[i].name) == 0) {
                dialect->vocabularies |= vocabulary_names[i].bit;
                dialect->assert_formats |= strcmp(name, "format-assertion") == 0;
                return 0;
            }
        }
    }
    if (!needed)
        return 0;
    return tci_error_set(c->error, TC_ERROR_UNSUPPORTED, "the vocabulary %s is not known",
                         tci_quote(uri, strlen(uri), quoted));
}

static int read_dialect(struct tci_compiler *c, const char *uri, unsigned depth,
                        struct tci_dialect *ret);

/* A meta-schema of somebody else: its own $schema says which draft, $vocabulary which keywords. */
static int read_foreign(struct tci_compiler *c, const char *uri, unsigned depth,
                        struct tci_dialect *ret)
{
    const json_t *metaschema, *vocabularies;
    const char *base;
    char quoted[TCI_QUOTE_MAX];

    if (tci_document_find(c, uri, &metaschema) < 0)
        return -1;
    if (!metaschema) {
        tci_error_set(c->error, TC_ERROR_UNSUPPORTED, "\"$schema\" names %s, which is not known",
                      tci_quote(uri, strlen(uri), quoted));
        tci_error_remedy(c->error, "use %s or %s#", new_uri, seven_uri);
        return -1;
    }
    base = json_string_value(json_object_get(metaschema, "$schema"));
    if (!base || depth == 0)
        return tci_error_set(c->error, TC_ERROR_UNSUPPORTED,
                             "the meta-schema %s does not say which draft it belongs to",
                             tci_quote(uri, strlen(uri), quoted));
    if (read_dialect(c, base, depth - 1, ret) < 0)
        return -1;
    vocabularies = json_object_get(metaschema, "$vocabulary");
    if (ret->draft == TCI_SCHEMA_DRAFT_7 || !json_is_object(vocabularies))
        return 0;
    ret->vocabularies = 0;
    tci_object_foreach(at, vocabularies)
    {
        if (add_vocabulary(c, json_object_iter_key(at), json_is_true(json_object_iter_value(at)),
                           ret) < 0)
            return -1;
    }
    return 0;
}

static int read_dialect(struct tci_compiler *c, const char *uri, unsigned depth,
                        struct tci_dialect *ret)
{
    size_t length = strlen(uri);
    char *plain = tci_arena_strndup(c->scratch, uri, length);
    if (!plain)
        return tci_compile_no_memory(c);
    if (length > 0 && plain[length - 1] == '#')
        plain[length - 1] = '\0';
    *ret = (struct tci_dialect){ TCI_SCHEMA_2020_12, all_vocabularies, false };
    if (strcmp(plain, new_uri) == 0)
        return 0;
    if (strcmp(plain, seven_uri) == 0 ||
        strcmp(plain, "https://json-schema.org/draft-07/schema") == 0) {
        ret->draft = TCI_SCHEMA_DRAFT_7;
        return 0;
    }
    return read_foreign(c, plain, depth, ret);
}

int tci_dialect_read(struct tci_compiler *c, const json_t *schema,
                     const struct tci_dialect *otherwise, struct tci_dialect *ret)
{
    const json_t *uri = json_object_get(schema, "$schema");
    *ret = *otherwise;
    if (!uri)
        return 0;
    if (!json_is_string(uri))
        return tci_error_set(c->error, TC_ERROR_SYNTAX, "\"$schema\" must be a string");
    return read_dialect(c, json_string_value(uri), metaschema_depth, ret);
}
