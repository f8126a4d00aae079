/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the compiled schemas of an engine. Like a plan, a schema is compiled without the lock, and of
 * two threads that compile the same one the second throws its own away. Invariant: what is in the
 * table stays there until the engine is closed, so that it can be used without the lock.
 */
#include "core/contract.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json/canonical.h"

enum { bucket_count = 256 };

struct entry {
    const struct tci_tool *tool;
    enum tci_key key;
    struct tci_schema_program *program;
    struct entry *next;
};

struct tci_engine_schemas {
    struct entry *buckets[bucket_count];
};

static void free_entry(struct entry *entry)
{
    if (entry)
        tci_schema_free(entry->program);
    free(entry);
}

void tci_engine_schemas_free(struct tc_engine *engine)
{
    struct tci_engine_schemas *schemas = tc_take(engine->schemas);
    for (size_t i = 0; schemas && i < bucket_count; i++)
        for (struct entry *entry = schemas->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            free_entry(entry);
        }
    free(schemas);
}

static size_t bucket_of(const struct tci_tool *tool)
{
    uint64_t mixed = (uint64_t)(uintptr_t)tool * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> 56;
}

static struct entry *find(struct entry *first, const struct tci_tool *tool, enum tci_key key)
{
    while (first && (first->tool != tool || first->key != key))
        first = first->next;
    return first;
}

/* `format` decides on both sides: whoever writes it in a contract means it. */
static int compile(const char *json, struct tci_schema_program **ret, struct tc_error *reterr)
{
    static const struct tci_schema_options options = { .assert_formats = true };
    json_t *document = tci_json_read(json, strlen(json), reterr);
    int r;
    if (!document)
        return -1;
    r = tci_schema_compile(document, &options, ret, reterr);
    json_decref(document);
    return r;
}

/* Puts a new entry into the table, unless somebody was faster. NULL: no memory. */
static struct entry *keep(struct tc_engine *engine, struct entry *entry)
{
    struct entry **bucket, *found = NULL;
    (void)pthread_mutex_lock(&engine->lock);
    if (!engine->schemas)
        engine->schemas = calloc(1, sizeof *engine->schemas);
    if (engine->schemas) {
        bucket = &engine->schemas->buckets[bucket_of(entry->tool)];
        found = find(*bucket, entry->tool, entry->key);
        if (!found) {
            entry->next = *bucket;
            *bucket = found = tc_take(entry);
        }
    }
    (void)pthread_mutex_unlock(&engine->lock);
    free_entry(entry);
    return found;
}

static struct entry *look_up(struct tc_engine *engine, const struct tci_tool *tool,
                             enum tci_key key)
{
    struct entry *found = NULL;
    (void)pthread_mutex_lock(&engine->lock);
    if (engine->schemas)
        found = find(engine->schemas->buckets[bucket_of(tool)], tool, key);
    (void)pthread_mutex_unlock(&engine->lock);
    return found;
}

static const char *schema_of(const struct tci_tool *tool, enum tci_key key)
{
    return key == TCI_KEY_RETURNS ? tool->settings.returns.json : tool->settings.parameters.json;
}

static bool allows_everything(const char *schema)
{
    return !schema || strcmp(schema, "{}") == 0 || strcmp(schema, "true") == 0;
}

static int bad_schema(const struct tci_tool *tool, enum tci_key key, const struct tc_error *error,
                      struct tc_error *reterr)
{
    if (error->code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    tci_error_set(reterr, TC_ERROR_POLICY, "\"%s\" of tool \"%s\" is not a JSON Schema: %s",
                  tci_key_name(key), tool->name, error->message);
    tci_error_remedy(reterr, "mend the schema in the policy; see toolcage lint");
    return -1;
}

static const struct tci_schema_program *program_of(struct tc_engine *engine,
                                                   const struct tci_tool *tool, enum tci_key key,
                                                   struct tc_error *reterr)
{
    struct entry *entry = look_up(engine, tool, key);
    struct tc_error error = { 0 };
    if (entry)
        return entry->program;
    entry = calloc(1, sizeof *entry);
    if (!entry) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    entry->tool = tool;
    entry->key = key;
    if (compile(schema_of(tool, key), &entry->program, &error) < 0) {
        free_entry(entry);
        bad_schema(tool, key, &error, reterr);
        return NULL;
    }
    entry = keep(engine, entry);
    if (!entry)
        tci_error_no_memory(reterr);
    return entry ? entry->program : NULL;
}

/* The sentences of the report, as many as fit whole; of a single one that does not, the beginning. */
static void describe(const struct tci_schema_report *report, const char *name,
                     struct tci_contract_problem *problem)
{
    static const char more[] = "; and more";
    size_t room = sizeof problem->reason - sizeof more, length = 0;
    bool cut = false;
    for (size_t i = 0; i < report->count && !cut; i++) {
        int wanted = snprintf(problem->reason + length, room - length, "%s%s%s %s", i ? "; " : "",
                              name, report->errors[i].instance_path, report->errors[i].message);
        cut = wanted < 0 || (size_t)wanted >= room - length;
        if (cut && i > 0)
            problem->reason[length] = '\0';
        else
            length = strlen(problem->reason);
    }
    if (cut || report->more)
        (void)snprintf(problem->reason + length, sizeof problem->reason - length, "%s", more);
}

int tci_contract_check(struct tc_engine *engine, const struct tci_tool *tool, enum tci_key key,
                       const struct tci_contract_side *side, const struct json_t *value,
                       struct tci_contract_problem *problem, struct tc_error *reterr)
{
    struct tci_schema_report report = { 0 };
    const struct tci_schema_program *program;
    int r = 0;

    if (allows_everything(schema_of(tool, key)))
        return 0;
    program = program_of(engine, tool, key, reterr);
    if (!program)
        return -1;
    if (!tci_schema_validate(program, value, &report)) {
        r = report.no_memory ? tci_error_no_memory(reterr) : 1;
        describe(&report, side->name, problem);
        problem->fix[0] = '\0';
    }
    tci_schema_report_free(&report);
    return r;
}
