/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the compiler's run from a document to a program, its limits and its errors. The queue keeps
 * recursion out of it; only the walk over nested schemas recurses, under a limit.
 */
#include "json/schema_compile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/uuid.h"
#include "json/schema_regex.h"
#include "json/schema_report.h"

enum { all_vocabularies = 0xff };

/* ---- errors ----------------------------------------------------------------------------------- */

int tci_compile_no_memory(struct tci_compiler *c)
{
    return tci_error_no_memory(c->error);
}

int tci_compile_fail(struct tci_compiler *c, const struct tci_schema_node *node,
                     const char *keyword, const char *format, ...)
{
    tc_cleanup(tci_buf_free) struct tci_buf path = TCI_BUF_INIT(TCI_SCHEMA_PATH_MAX);
    char message[384];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    tci_schema_path(node, keyword, &path);
    return tci_error_set(c->error, TC_ERROR_SYNTAX, "%.300s: %s",
                         path.data && !path.no_memory ? path.data : "#", message);
}

int tci_compile_exhausted(struct tci_compiler *c)
{
    const struct tci_schema_limits *limits = &c->program->limits;
    if (c->budget.exhausted == TCI_EXHAUSTED_MEMORY)
        return tci_compile_no_memory(c);
    if (c->places.names.count > limits->schemas)
        return tci_error_set(c->error, TC_ERROR_TOO_LARGE, "more than %zu schemas",
                             limits->schemas);
    if (c->budget.exhausted == TCI_EXHAUSTED_STEPS)
        return tci_error_set(c->error, TC_ERROR_TOO_LARGE, "more than %zu values in the schema",
                             limits->values);
    return tci_error_set(c->error, TC_ERROR_TOO_LARGE, "the schema is nested more than %u deep",
                         limits->nesting);
}

/* ---- one schema ------------------------------------------------------------------------------- */

static int compile_keywords(struct tci_compiler *c, struct tci_source *source)
{
    const struct tci_dialect *dialect = &source->resource->dialect;
    const json_t *reference = json_object_get(source->json, "$ref");

    if (reference && dialect->draft == TCI_SCHEMA_DRAFT_7)
        return tci_keyword_reference(c, source, tci_keyword_find("$ref", dialect), reference);
    tci_object_foreach(at, source->json)
    {
        const struct tci_keyword *keyword = tci_keyword_find(json_object_iter_key(at), dialect);
        if (!keyword || !keyword->compile)
            continue;
        if (keyword->compile(c, source, keyword, json_object_iter_value(at)) < 0)
            return -1;
    }
    return 0;
}

static int compile_source(struct tci_compiler *c, struct tci_source *source)
{
    if (json_is_boolean(source->json)) {
        source->node->impossible = json_is_false(source->json);
        return 0;
    }
    return compile_keywords(c, source);
}

/* Compiling finds references, references find documents, documents have schemas. */
static int drain_queue(struct tci_compiler *c)
{
    while (c->queue) {
        struct tci_source *source = c->queue;
        c->queue = source->next;
        if (!c->queue)
            c->queue_end = &c->queue;
        if (compile_source(c, source) < 0)
            return -1;
        if (!c->queue && tci_dynamic_fill(c) < 0)
            return -1;
    }
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int compile_document(struct tci_compiler *c, const json_t *document)
{
    struct tci_dialect dialect = { c->options->draft, all_vocabularies, false };
    struct tci_source *root;
    const char *uri = c->options->base_uri ? c->options->base_uri : "";

    c->queue_all = true;
    if (tci_document_add(c, document, uri, &dialect, &root) < 0)
        return -1;
    c->queue_all = false;
    tci_queue(c, root);
    if (drain_queue(c) < 0)
        return -1;
    c->program->root = root->node;
    return tci_compile_finish(c);
}

static void set_limits(struct tci_schema_limits *limits)
{
#define DEFAULT(field, value)                                                                      \
    if (limits->field == 0)                                                                        \
    limits->field = (value)
    DEFAULT(schemas, 50000);
    DEFAULT(values, 500000);
    DEFAULT(nesting, 128);
    DEFAULT(pattern_bytes, 262144);
    DEFAULT(depth, 256);
    DEFAULT(steps, 10000000);
    DEFAULT(matches, 1000000);
    DEFAULT(errors, 8);
#undef DEFAULT
}

static struct tci_schema_program *new_program(const struct tci_schema_options *options)
{
    struct tci_schema_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->limits = options->limits;
    set_limits(&program->limits);
    program->arena = tci_arena_new();
    program->regex_limits = tci_regex_limits_new(program->limits.matches);
    if (!program->arena || !program->regex_limits ||
        tci_random(program->hash_key, sizeof program->hash_key) < 0) {
        tci_schema_free(program);
        return NULL;
    }
    return program;
}

int tci_schema_compile(const json_t *document, const struct tci_schema_options *options,
                       struct tci_schema_program **ret, struct tc_error *reterr)
{
    static const struct tci_schema_options defaults = { .draft = TCI_SCHEMA_2020_12 };
    const struct tci_schema_options *chosen = options ? options : &defaults;
    tc_cleanup(tci_schema_freep) struct tci_schema_program *program = new_program(chosen);
    tc_cleanup(tci_arena_freep) struct tci_arena *scratch = tci_arena_new();
    struct tci_owned owned[TCI_COMPILER_OWNED_MAX];
    struct tci_compiler c = { .options = chosen, .program = program, .error = reterr };
    int status;

    if (!program || !scratch)
        return tci_error_no_memory(reterr);
    c.arena = program->arena;
    c.scratch = scratch;
    c.owned = owned;
    c.queue_end = &c.queue;
    c.budget = (struct tci_schema_budget){ program->limits.values, program->limits.nesting, 0 };
    c.places.names.key = c.resources.names.key = c.anchors.names.key = c.dynamic.names.key =
        program->hash_key[0];
    status = compile_document(&c, document);
    for (size_t i = 0; i < c.owned_count; i++)
        json_decref(owned[i].document);
    if (status < 0)
        return -1;
    *ret = tc_take(program);
    return 0;
}

void tci_schema_free(struct tci_schema_program *program)
{
    if (!program)
        return;
    tci_regex_free_list(program->regexes);
    tci_regex_limits_free(program->regex_limits);
    tci_arena_free(program->arena);
    free(program);
}

void tci_schema_freep(struct tci_schema_program **program)
{
    tci_schema_free(*program);
    *program = NULL;
}
