/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: lint of what a tool promises: its schemas, what the journal must not keep of its arguments,
 * and the built-in tools. Schemas are compiled here and not when a policy is loaded: a thousand of
 * them would take longer than the call that one of them is for.
 */
#include "policy/lint_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "json/canonical.h"
#include "json/schema.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

/* ---- schemas ------------------------------------------------------------------------------ */

/* Tools often share a schema, and a small policy could make lint compile a large one thousands of
 * times: what was found good is not looked at again. */
static bool is_known(const struct tci_node *good, const char *json)
{
    return good && tci_table_find(good, json, strlen(json));
}

static void remember(struct tci_lint *lint, struct tci_node **good, const char *json)
{
    struct tci_arena *arena = lint->findings->arena;
    struct tci_text text = { json, strlen(json) };
    if (!*good)
        *good = tci_node_new(arena, TCI_NODE_TABLE, tci_pos(0, 0));
    if (!*good || !tci_table_add(arena, *good, text, tci_pos(0, 0), *good))
        lint->findings->no_memory = true;
}

static void report_schema(struct tci_lint *lint, enum tci_key key, const struct tc_error *error)
{
    const char *remedy = "write a JSON Schema of draft 2020-12 or 7 that refers only to itself";
    if (error->code == TC_ERROR_NO_MEMORY) {
        lint->findings->no_memory = true;
        return;
    }
    if (error->code == TC_ERROR_TOO_LARGE)
        remedy = "make it smaller: docs/json-schema.md has the bounds";
    tci_lint_add(lint, TCI_FINDING_SCHEMA_INVALID, lint->tool->settings.pos[key],
                 error->remedy[0] ? error->remedy : remedy, "\"%s\": %.500s", tci_key_name(key),
                 error->message);
}

/* What every model's API asks of a tool's arguments. */
static bool lint_type(struct tci_lint *lint, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    const char *name = json_string_value(type);
    if (json_is_object(schema) && (!type || (name && strcmp(name, "object") == 0)))
        return true;
    tci_lint_add(lint, TCI_FINDING_NOT_AN_OBJECT, lint->tool->settings.pos[TCI_KEY_PARAMETERS],
                 "write type = \"object\", with the arguments in \"properties\"",
                 "\"parameters\" is not of type \"object\": no model's API takes such a tool");
    return false;
}

static bool compiles(struct tci_lint *lint, enum tci_key key, const json_t *document)
{
    tc_cleanup(tci_schema_freep) struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    if (tci_schema_compile(document, NULL, &program, &error) == 0)
        return true;
    report_schema(lint, key, &error);
    return false;
}

/* Should it be compiled now? */
static bool is_due(const struct tci_lint *lint, enum tci_key key, const struct tci_schema *schema,
                   const struct tci_node *good)
{
    return schema->json && tci_lint_wants(lint, key) && !is_known(good, schema->json) &&
           !tci_findings_full(lint->findings);
}

static void lint_parameters(struct tci_lint *lint, const struct tci_schema *schema)
{
    struct tci_node **good = &lint->good_schemas[0];
    const json_t *document;
    if (!is_due(lint, TCI_KEY_PARAMETERS, schema, *good))
        return;
    document = tci_lint_read_parameters(lint);
    if (document && compiles(lint, TCI_KEY_PARAMETERS, document) && lint_type(lint, document))
        remember(lint, good, schema->json);
}

static void lint_returns(struct tci_lint *lint, const struct tci_schema *schema)
{
    struct tci_node **good = &lint->good_schemas[1];
    tc_cleanup(decref) json_t *document = NULL;
    if (!is_due(lint, TCI_KEY_RETURNS, schema, *good))
        return;
    document = tci_json_read_canonical(lint->findings->arena, schema->json, NULL);
    if (!document)
        lint->findings->no_memory = true;
    else if (compiles(lint, TCI_KEY_RETURNS, document))
        remember(lint, good, schema->json);
}

/* ---- redact ------------------------------------------------------------------------------- */

/* The first token of a JSON Pointer, with ~1 as '/' and ~0 as '~'. */
static void first_token(const char *pointer, char *ret, size_t size)
{
    size_t length = 0;
    for (const char *p = pointer + 1; *p && *p != '/' && length + 1 < size; p++) {
        ret[length] = *p;
        if (*p == '~')
            ret[length] = *++p == '1' ? '/' : '~';
        length++;
    }
    ret[length] = '\0';
}

/* The attack is a slip: "/tokne" hides nothing, and the journal keeps the token. What [defaults]
 * says is meant for many tools, and need not fit all. */
static void lint_redact(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    const json_t *schema, *properties;

    if (s->redact.count == 0 || lint->tool->source[TCI_KEY_REDACT] != TCI_FROM_TOOL)
        return;
    schema = tci_lint_read_parameters(lint);
    properties = json_object_get(schema, "properties");
    if (!properties || json_object_get(schema, "patternProperties"))
        return;
    for (size_t i = 0; i < s->redact.count; i++) {
        char token[256];
        first_token(s->redact.items[i].text, token, sizeof token);
        if (!json_object_get(properties, token))
            tci_lint_add(lint, TCI_FINDING_REDACT_UNKNOWN, s->redact.items[i].pos,
                         "name a property of \"parameters\"",
                         "\"%.200s\" leads to no parameter: the journal would keep the value",
                         s->redact.items[i].text);
    }
}

/* ---- built-in tools ----------------------------------------------------------------------- */

static size_t count_paths(const struct tci_filesystem *fs, bool writable)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->count; i++)
        count += writable ? fs->rules[i].access == TCI_ACCESS_WRITABLE
                          : fs->rules[i].access != TCI_ACCESS_HIDDEN;
    return count;
}

static void lint_file_tool(struct tci_lint *lint, struct tci_pos pos)
{
    const struct tci_settings *s = &lint->tool->settings;
    const char *name = s->builtin->name;
    bool writes = strcmp(name, "write_file") == 0 || strcmp(name, "edit_file") == 0;
    if (!writes && (s->rootfs || s->image))
        return;
    if (count_paths(&s->filesystem, writes) == 0)
        tci_lint_add(lint, TCI_FINDING_USELESS_BUILTIN, pos,
                     writes ? "add filesystem = { writable = [\"DIRECTORY\"] }"
                            : "add filesystem = { readable = [\"DIRECTORY\"] }",
                     "\"%s\" is granted no %s path, and finds only an empty cage", name,
                     writes ? "writable" : "readable");
}

/* One finding at most for a tool that was chosen with open eyes: what it gives away. */
static void lint_builtin(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    struct tci_pos pos = s->pos[TCI_KEY_BUILTIN];
    switch (s->builtin->program) {
    case TCI_PROGRAM_NONE:
        tci_lint_add(lint, TCI_FINDING_CODE_BUILTIN, pos,
                     "grant the tool no more than any program may have; approval = \"ask\" lets a "
                     "person see each call",
                     "\"%s\" runs whatever it is given, with all that the tool has: network %s, "
                     "paths to read %zu, to write %zu",
                     s->builtin->name, tci_network_mode_name(s->network.mode),
                     count_paths(&s->filesystem, false), count_paths(&s->filesystem, true));
        break;
    case TCI_PROGRAM_FILES:
        lint_file_tool(lint, pos);
        break;
    case TCI_PROGRAM_LOADER:
        if (s->network.mode == TCI_NETWORK_NONE)
            tci_lint_add(lint, TCI_FINDING_USELESS_BUILTIN, pos,
                         "add network = [\"HOST:443\"], or network = \"public\"",
                         "\"%s\" is granted no network, and reaches nothing", s->builtin->name);
        break;
    }
}

void tci_lint_contract(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    lint_parameters(lint, &s->parameters);
    lint_returns(lint, &s->returns);
    lint_redact(lint);
    if (s->builtin)
        lint_builtin(lint);
}
