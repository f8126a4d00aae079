/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the compiler share. It works in two steps: a walk finds every schema of a
 * document with its base URI and its anchors (schema_place.c); then each schema that is used is
 * compiled (schema_keyword*.c), where references may bring in further documents.
 */
#ifndef TCI_JSON_SCHEMA_COMPILE_H
#define TCI_JSON_SCHEMA_COMPILE_H

#include "json/schema_program.h"
#include "json/schema_uri.h"

enum tci_vocabulary {
    TCI_VOCABULARY_CORE,
    TCI_VOCABULARY_APPLICATOR,
    TCI_VOCABULARY_VALIDATION,
    TCI_VOCABULARY_UNEVALUATED,
    TCI_VOCABULARY_FORMAT,
    TCI_VOCABULARY_CONTENT,
};

/* What $schema decides. */
struct tci_dialect {
    enum tci_schema_draft draft;
    unsigned vocabularies; /* bits: 1 << enum tci_vocabulary */
    bool assert_formats;
};

/* A schema with an absolute URI of its own. */
struct tci_resource {
    uint32_t number;
    const char *uri; /* without fragment; "" for a document that has none */
    struct tci_dialect dialect;
    struct tci_source *root;
};

/* A schema in a document. */
struct tci_source {
    const json_t *json;
    struct tci_resource *resource;
    struct tci_schema_node *node;
    const char *dynamic_anchor; /* NULL: none */
    bool queued;
    struct tci_source *next; /* in the queue */
};

/* A built-in document that was read. */
struct tci_owned {
    const char *text;
    json_t *document;
};

struct tci_compiler {
    const struct tci_schema_options *options;
    struct tci_schema_program *program;
    struct tci_arena *arena;   /* the program's */
    struct tci_arena *scratch; /* until the compiler returns */
    struct tc_error *error;
    struct tci_schema_budget budget; /* values looked at */
    size_t pattern_bytes;

    struct tci_name_map places;    /* a value and the resource around it: struct tci_source */
    struct tci_name_map resources; /* URIs; several may mean one struct tci_resource */
    struct tci_name_map anchors;   /* "uri#name": struct tci_source */
    uint32_t resource_count;
    struct tci_source *queue, **queue_end;
    bool queue_all; /* every schema that the walk finds: in the document that is compiled */
    struct tci_name_map dynamic; /* anchors that a $dynamicRef names: struct tci_dynamic_anchor */
    struct tci_owned *owned;     /* documents of ours, to be released */
    size_t owned_count;
};

enum { TCI_COMPILER_OWNED_MAX = 16 }; /* there are fewer */

/* How a keyword holds schemas. */
enum tci_shape {
    TCI_SHAPE_NONE,
    TCI_SHAPE_ONE,
    TCI_SHAPE_LIST,
    TCI_SHAPE_MAP,
    TCI_SHAPE_ONE_OR_LIST,
    TCI_SHAPE_MAP_OR_NAMES, /* `dependencies`: values may be lists of names */
};

struct tci_keyword;
typedef int tci_keyword_function(struct tci_compiler *c, struct tci_source *source,
                                 const struct tci_keyword *keyword, const json_t *value);

struct tci_keyword {
    const char *name;
    unsigned drafts; /* bits: 1 << enum tci_schema_draft */
    enum tci_vocabulary vocabulary;
    enum tci_shape shape;
    tci_keyword_function *compile; /* NULL: holds schemas, says nothing itself */
};

/* The keyword, if this dialect has it; else NULL. */
const struct tci_keyword *tci_keyword_find(const char *name, const struct tci_dialect *dialect);

tci_keyword_function tci_keyword_reference, tci_keyword_dynamic_reference, tci_keyword_all,
    tci_keyword_any, tci_keyword_one, tci_keyword_not, tci_keyword_condition, tci_keyword_prefix,
    tci_keyword_items, tci_keyword_additional_items, tci_keyword_contains, tci_keyword_properties,
    tci_keyword_pattern_properties, tci_keyword_additional_properties, tci_keyword_property_names,
    tci_keyword_dependencies, tci_keyword_unevaluated, tci_keyword_type, tci_keyword_constant,
    tci_keyword_choices, tci_keyword_bound, tci_keyword_multiple, tci_keyword_count,
    tci_keyword_pattern, tci_keyword_unique, tci_keyword_required, tci_keyword_format;

/* ---- errors ----------------------------------------------------------------------------------- */

/* "#/properties/a/minLength: <message>"; -1. `keyword` may be NULL. */
int tci_compile_fail(struct tci_compiler *c, const struct tci_schema_node *node,
                     const char *keyword, const char *format, ...) tci_printf_like(4, 5);
int tci_compile_no_memory(struct tci_compiler *c);
/* Why the budget has run out; -1. */
int tci_compile_exhausted(struct tci_compiler *c);

/* ---- places (schema_place.c) ------------------------------------------------------------------ */

/* The schema `json`, which stands in `around`; the walk goes on below it. `token` leads from the
 * parent to it. NULL: an error was set. */
struct tci_source *tci_place(struct tci_compiler *c, const json_t *json,
                             struct tci_resource *around, const struct tci_schema_node *parent,
                             const char *token) tci_must_check;
/* The place of `json` in `around` if the walk has been there; else NULL. */
struct tci_source *tci_place_known(const struct tci_compiler *c, const json_t *json,
                                   const struct tci_resource *around);
/* It will be compiled. */
void tci_queue(struct tci_compiler *c, struct tci_source *source);

/* ---- documents and references (schema_document.c, schema_reference.c) ------------------------- */

/* A document under its URI: finds its dialect, its id and its schemas. */
int tci_document_add(struct tci_compiler *c, const json_t *json, const char *uri,
                     const struct tci_dialect *otherwise, struct tci_source **ret) tci_must_check;
/* A document that is built in or that the caller has; NULL in *ret: nobody has it. */
int tci_document_find(struct tci_compiler *c, const char *uri, const json_t **ret) tci_must_check;
int tci_dialect_read(struct tci_compiler *c, const json_t *schema,
                     const struct tci_dialect *otherwise, struct tci_dialect *ret) tci_must_check;
struct tci_resource *tci_resource_new(struct tci_compiler *c, const char *uri,
                                      const struct tci_dialect *dialect) tci_must_check;
int tci_resource_name(struct tci_compiler *c, struct tci_resource *resource,
                      const char *uri) tci_must_check;
struct tci_resource *tci_resource_find(const struct tci_compiler *c, const char *uri);
int tci_anchor_add(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                   const char *name, size_t length, bool dynamic) tci_must_check;

/* The schema that a reference names, from the resource of `source`. An error names the reference. */
int tci_reference_resolve(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                          const json_t *value, struct tci_source **ret) tci_must_check;
/* The anchor that a $dynamicRef names; NULL: error set. Its targets are filled by the other, which
 * queues them; to be called again when more schemas were found. */
struct tci_dynamic_anchor *tci_dynamic_anchor(struct tci_compiler *c,
                                              const char *name) tci_must_check;
int tci_dynamic_fill(struct tci_compiler *c) tci_must_check;

/* Our own text of a meta-schema; NULL: not one of them. */
const char *tci_metaschema_text(const char *uri);

/* ---- after all schemas were compiled (schema_finish.c) ---------------------------------------- */

/* Refuses circles that never go into the value, then takes the shortcuts. */
int tci_compile_finish(struct tci_compiler *c) tci_must_check;

/* ---- helpers of keywords (schema_keyword.c) --------------------------------------------------- */

struct tci_rules_general *tci_rules_general(struct tci_compiler *c, struct tci_schema_node *node);
struct tci_rules_object *tci_rules_object(struct tci_compiler *c, struct tci_schema_node *node);
struct tci_rules_array *tci_rules_array(struct tci_compiler *c, struct tci_schema_node *node);
struct tci_rules_string *tci_rules_string(struct tci_compiler *c, struct tci_schema_node *node);
struct tci_rules_number *tci_rules_number(struct tci_compiler *c, struct tci_schema_node *node);

/* The schema below `source` that the walk has found at `json`; it is queued. NULL: error set. */
const struct tci_schema_node *tci_child(struct tci_compiler *c, struct tci_source *source,
                                        const char *keyword, const json_t *json) tci_must_check;
int tci_compile_pattern(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                        const char *text, size_t length,
                        const struct tci_regex **ret) tci_must_check;

/* Walks the members of an object: tci_object_foreach(at, object) { ... }. */
#define tci_object_foreach(at, object)                                                             \
    for (void *at = json_object_iter((json_t *)(uintptr_t)(object)); at;                           \
         at = json_object_iter_next((json_t *)(uintptr_t)(object), at))

#endif
