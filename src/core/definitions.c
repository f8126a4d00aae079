/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tool definitions in the forms that model APIs take. They differ in names and nesting, and all
 * want arguments that are an object: a schema that leaves that open is completed, never widened.
 * Trusts: the policy's texts as little as any: what controls terminals is escaped.
 */
#include "core/engine_runtime.h"
#include "core/engine_tools.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"
#include "json/write.h"
#include "policy/value.h"

enum { definitions_max = 64 * 1024 * 1024 };

/* One list while it is written. */
struct list {
    struct tc_engine *engine;
    const char *agent;       /* NULL: the policy's owner */
    struct tci_arena *arena; /* of one tool's texts */
    struct tci_json json;
    const struct format *format;
    struct tc_error *reterr;
    size_t first, count; /* of a page: tools before `first` are left out; `count` 0: no end */
    size_t seen;         /* offered so far, also those that are left out */
    bool no_outputs;     /* for clients that do not know outputSchema */
};

struct format {
    const char *name;
    bool plain_names;   /* letters, digits, "_" and "-" only */
    bool callable_only; /* else also tools that only `toolcage exec --tool` can run */
    int (*write)(struct list *list, const struct tci_tool *tool);
};

/* Does it have something to run? An MCP server of others has tools of its own instead. */
static bool is_callable(const struct tci_tool *tool)
{
    return tool->settings.command.count > 0 && !tool->settings.mcp.given;
}

/* ---- schemas ------------------------------------------------------------------------------ */

static bool is_object_word(const json_t *type)
{
    return json_is_string(type) && strcmp(json_string_value(type), "object") == 0;
}

/* `type` of a schema: absent, a word, or a list of words. */
static bool allows_objects(const json_t *type)
{
    for (size_t i = 0; i < json_array_size(type); i++)
        if (is_object_word(json_array_get(type, i)))
            return true;
    return !type || is_object_word(type);
}

/* {"type":"object","properties":{...}} and whatever else it says. Arguments are objects in any case:
 * "type" adds nothing to what the tool takes. One that takes nothing at all keeps that. */
static json_t *complete(const char *schema, struct tc_error *reterr)
{
    json_t *document = tci_json_read(schema, strlen(schema), reterr), *whole;
    bool never;
    if (!document)
        return NULL;
    never = json_is_false(document) || !allows_objects(json_object_get(document, "type"));
    whole = json_is_object(document) ? document : json_object();
    if (whole != document)
        json_decref(document);
    if (!whole || json_object_set_new(whole, "type", json_string("object")) < 0 ||
        (!json_object_get(whole, "properties") &&
         json_object_set_new(whole, "properties", json_object()) < 0) ||
        (never && json_object_set_new(whole, "not", json_object()) < 0)) {
        json_decref(whole);
        tci_error_no_memory(reterr);
        return NULL;
    }
    return whole;
}

/* A schema for arguments under the name that the format has for it. */
static int put_schema(struct list *list, const char *key, const char *schema)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(definitions_max);
    json_t *whole = complete(schema ? schema : "true", list->reterr);
    int r;
    if (!whole)
        return -1;
    r = tci_json_canonical_value(list->arena, &text, whole);
    json_decref(whole);
    if (r < 0)
        return tci_error_no_memory(list->reterr);
    if (tci_buf_check(&text, list->reterr) < 0)
        return -1;
    tci_json_value(&list->json, key, text.data);
    return 0;
}

/* 1: it is for objects; 0: it may be for others; -1: no memory. */
static int is_object_schema(struct list *list, const char *schema)
{
    json_t *document = tci_json_read_canonical(list->arena, schema, list->reterr);
    bool is = is_object_word(json_object_get(document, "type"));
    int r = !document ? -1 : is ? 1 : 0;
    json_decref(document);
    return r;
}

/* ---- the forms ---------------------------------------------------------------------------- */

static const char *description_of(const struct tci_tool *tool)
{
    return tool->settings.description ? tool->settings.description : "";
}

static int write_openai(struct list *list, const struct tci_tool *tool)
{
    int r;
    tci_json_object_begin(&list->json, NULL);
    tci_json_string(&list->json, "type", "function");
    tci_json_object_begin(&list->json, "function");
    tci_json_string(&list->json, "name", tool->name);
    tci_json_string(&list->json, "description", description_of(tool));
    r = put_schema(list, "parameters", tool->settings.parameters.json);
    tci_json_object_end(&list->json);
    tci_json_object_end(&list->json);
    return r;
}

static int write_anthropic(struct list *list, const struct tci_tool *tool)
{
    int r;
    tci_json_object_begin(&list->json, NULL);
    tci_json_string(&list->json, "name", tool->name);
    tci_json_string(&list->json, "description", description_of(tool));
    r = put_schema(list, "input_schema", tool->settings.parameters.json);
    tci_json_object_end(&list->json);
    return r;
}

/*
 * What a client may show or skip a question for, so it must be true whatever the tool is: only what the
 * policy makes impossible counts, never what a description promises. The attack: a tool that calls
 * itself harmless, and a client that therefore runs it unasked.
 */
static void put_annotations(struct list *list, const struct tci_settings *s)
{
    bool network = s->network.mode != TCI_NETWORK_NONE, writes = false;
    for (size_t i = 0; i < s->filesystem.count; i++)
        writes |= s->filesystem.rules[i].access == TCI_ACCESS_WRITABLE;
    tci_json_object_begin(&list->json, "annotations");
    tci_json_bool(&list->json, "readOnlyHint", !writes && !network);
    tci_json_bool(&list->json, "destructiveHint", writes || network);
    tci_json_bool(&list->json, "idempotentHint", !writes && !network);
    tci_json_bool(&list->json, "openWorldHint", network);
    tci_json_object_end(&list->json);
}

/* MCP has outputs that are objects only: another `returns` is not told, and holds all the same. */
static int write_mcp(struct list *list, const struct tci_tool *tool)
{
    const char *returns = tool->settings.returns.json;
    int r;
    tci_json_object_begin(&list->json, NULL);
    tci_json_string(&list->json, "name", tool->name);
    tci_json_string(&list->json, "description", description_of(tool));
    r = put_schema(list, "inputSchema", tool->settings.parameters.json);
    if (r == 0 && returns && !list->no_outputs)
        r = is_object_schema(list, returns);
    if (r > 0)
        r = put_schema(list, "outputSchema", returns);
    put_annotations(list, &tool->settings);
    tci_json_object_end(&list->json);
    return r;
}

/* Our own: schemas/tools.json. */
static int write_json(struct list *list, const struct tci_tool *tool)
{
    struct tci_json *json = &list->json;
    const struct tci_settings *s = &tool->settings;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "name", tool->name);
    tci_json_string(json, "description", s->description);
    tci_json_string(json, "backend", tci_backend_kind_name(s->backend));
    tci_value_write(json, "parameters", s, TCI_KEY_PARAMETERS);
    if (tci_value_is_set(s, TCI_KEY_RETURNS))
        tci_value_write(json, "returns", s, TCI_KEY_RETURNS);
    tci_json_bool(json, "callable", is_callable(tool));
    tci_json_array_begin(json, "agents");
    for (const struct tci_granted *g = tool->granted; g; g = g->next)
        tci_json_string(json, NULL, g->agent->name);
    tci_json_array_end(json);
    tci_json_object_end(json);
    return 0;
}

static const struct format formats[] = {
    { .name = "openai", .plain_names = true, .callable_only = true, .write = write_openai },
    { .name = "anthropic", .plain_names = true, .callable_only = true, .write = write_anthropic },
    { .name = "mcp", .callable_only = true, .write = write_mcp },
    { .name = "json", .write = write_json },
};

/* ---- the list ----------------------------------------------------------------------------- */

/* A name that an API does not take cannot be changed here: the model would call another one. */
static int check_name(const struct list *list, const char *name)
{
    char quoted[TCI_QUOTE_MAX];
    if (!list->format->plain_names || !strchr(name, '.'))
        return 0;
    tci_error_set(list->reterr, TC_ERROR_UNSUPPORTED,
                  "the tool %s cannot be offered in the form \"%s\", whose names have no \".\"",
                  tci_quote(name, strlen(name), quoted), list->format->name);
    tci_error_remedy(list->reterr, "rename it, or list the tools of an agent that may not call it");
    return -1;
}

static int write_tool(void *context, const struct tci_tool *tool)
{
    struct list *list = context;
    bool offered = !list->format->callable_only || is_callable(tool);
    int r;
    if (offered && list->agent &&
        tci_engine_is_granted_known(list->engine, list->agent, tool->name, &offered, list->reterr) <
            0)
        return -1;
    if (!offered || list->seen++ < list->first)
        return 0;
    if (list->count && list->seen > list->first + list->count)
        return 1; /* one more: there is another page */
    if (check_name(list, tool->name) < 0)
        return -1;
    list->arena = tci_arena_new();
    if (!list->arena)
        return tci_error_no_memory(list->reterr);
    r = list->format->write(list, tool);
    tci_arena_free(list->arena);
    return r;
}

/* The journal is asked once, not for each tool. */
static int write_tools(struct list *list)
{
    if (list->agent && tci_engine_refresh(list->engine, list->reterr) < 0)
        return -1;
    return tci_engine_each_tool(list->engine, write_tool, list);
}

static int write_all(struct list *list)
{
    bool in_object = list->format->write == write_json || list->format->write == write_mcp;
    if (in_object)
        tci_json_object_begin(&list->json, NULL);
    if (list->format->write == write_json)
        tci_json_string(&list->json, "file", list->engine->policy->file);
    tci_json_array_begin(&list->json, in_object ? "tools" : NULL);
    if (write_tools(list) < 0)
        return -1;
    tci_json_array_end(&list->json);
    if (in_object)
        tci_json_object_end(&list->json);
    return 0;
}

static const struct format *find_format(const char *name, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    for (size_t i = 0; i < tci_array_size(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    tci_error_set(reterr, TC_ERROR_USAGE, "there is no form %s for tool definitions",
                  tci_quote(name, strlen(name), quoted));
    tci_error_remedy(reterr, "use openai, anthropic, mcp or json");
    return NULL;
}

int tc_engine_tools(struct tc_engine *engine, const char *agent, const char *format,
                    char **ret_json, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(definitions_max);
    struct list list = {
        .engine = engine, .agent = agent, .json = { .out = &out, .pretty = true }, .reterr = reterr
    };
    char *text;

    tci_error_clear(reterr);
    list.format = find_format(format, reterr);
    if (!list.format || write_all(&list) < 0)
        return -1;
    text = tci_buf_take(&out, reterr);
    if (!text)
        return -1;
    *ret_json = text;
    return 0;
}

int tci_engine_tools_page(struct tc_engine *engine, const char *agent,
                          const struct tci_tools_page *page, struct tci_buf *out,
                          struct tc_error *reterr)
{
    struct list list = { .engine = engine,
                         .agent = agent,
                         .json = { .out = out },
                         .reterr = reterr,
                         .first = page->first,
                         .count = page->count,
                         .no_outputs = page->no_outputs };
    int r;

    list.format = find_format("mcp", reterr);
    tci_json_array_begin(&list.json, NULL);
    r = write_tools(&list);
    tci_json_array_end(&list.json);
    if (r >= 0 && tci_buf_check(out, reterr) < 0)
        return -1;
    return r;
}
