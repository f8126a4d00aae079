/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a server says of itself and its tools, and a hash of it. The attack is the rug pull: a server
 * that was looked at once, and later tells the model something else. So everything that a model or a client
 * reads of it is in the hash. What is passed on and not in the hash has no room for words: its version
 * (wrap_list.c), that of the protocol, and flags of its capabilities.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"

/* Members of a tool that clients get. "_meta" and "icons" are not among them: addresses in there would
 * be fetched by the client, which is in no cage. */
static const char *const members[] = { "name",        "title",        "description",
                                       "inputSchema", "outputSchema", "annotations" };

/* Members of serverInfo that are compared. */
static const char *const info_members[] = { "name", "title" };

static void free_tool(struct tci_wrap_tool *tool)
{
    free(tool->name);
    json_decref(tool->definition);
    tci_schema_free(tool->input);
    tci_schema_free(tool->output);
}

void tci_wrap_list_free(struct tci_wrap_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_tool(&list->tools[i]);
    free(list->tools);
    free(list->instructions);
    json_decref(list->server_info);
    json_decref(list->capabilities);
    *list = (struct tci_wrap_list){ 0 };
}

/* ---- one tool ------------------------------------------------------------------------------- */

/* What MCP allows since 2025-11-25, with "/" and ":", which servers use. Two names that look the same, one
 * with a letter that nobody sees or a Cyrillic one, would let a person approve what is another tool. */
static bool is_name(const json_t *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-./:";
    const char *text = json_string_value(name);
    size_t length = json_string_length(name);
    return text && length && length <= TCI_WRAP_NAME_MAX && strspn(text, allowed) == length;
}

static const char *problem_of(const json_t *tool)
{
    const json_t *schema = json_object_get(tool, "inputSchema");
    const json_t *type = json_object_get(schema, "type");
    const json_t *output = json_object_get(tool, "outputSchema");
    const json_t *notes = json_object_get(tool, "annotations");
    const json_t *description = json_object_get(tool, "description");
    const json_t *title = json_object_get(tool, "title");

    if (!json_is_object(tool) || !is_name(json_object_get(tool, "name")))
        return "a name is not 1 to 128 letters (A-Z, a-z), digits and _-./:";
    if (!json_is_string(type) || strcmp(json_string_value(type), "object") != 0)
        return "its inputSchema is not one for an object";
    if (output && !json_is_object(output))
        return "its outputSchema is not an object";
    if (notes && !json_is_object(notes))
        return "its annotations are not an object";
    if ((description && !json_is_string(description)) || (title && !json_is_string(title)))
        return "its description or title is not a text";
    return NULL;
}

static json_t *definition_of(const json_t *tool)
{
    json_t *definition = json_object();
    for (size_t i = 0; definition && i < tci_array_size(members); i++) {
        json_t *value = json_object_get(tool, members[i]);
        if (value && json_object_set(definition, members[i], value) < 0) {
            json_decref(definition);
            return NULL;
        }
    }
    return definition;
}

/* 1: the list is too large. Pages of it would fill our memory, which is in no cage. */
static int count_bytes(struct tci_wrap_list *list, const json_t *definition)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_LIST_MAX - list->bytes);
    tci_mcp_write_value(&text, definition);
    if (tci_buf_check(&text, NULL) < 0)
        return 1;
    list->bytes += text.length;
    return 0;
}

int tci_wrap_list_add(struct tci_wrap_list *list, const struct json_t *tool, char problem[256],
                      struct tc_error *reterr)
{
    const char *wrong = problem_of(tool);
    struct tci_wrap_tool made = { 0 };
    char quoted[TCI_QUOTE_MAX] = "";

    if (!wrong && list->count == TCI_WRAP_TOOLS_MAX)
        wrong = "the server has more than 1000 tools";
    if (wrong) {
        json_t *name = json_object_get(tool, "name");
        if (json_is_string(name))
            (void)tci_quote(json_string_value(name), json_string_length(name), quoted);
        (void)snprintf(problem, 256, "tool %s: %s", quoted, wrong);
        return 1;
    }
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct tci_wrap_tool *larger = realloc(list->tools, room * sizeof *larger);
        if (!larger)
            return tci_error_no_memory(reterr);
        list->tools = larger;
        list->room = room;
    }
    made.name = strdup(json_string_value(json_object_get(tool, "name")));
    made.definition = definition_of(tool);
    if (!made.name || !made.definition) {
        free_tool(&made);
        return tci_error_no_memory(reterr);
    }
    if (count_bytes(list, made.definition) > 0) {
        free_tool(&made);
        (void)snprintf(problem, 256, "it has more than %d bytes", TCI_WRAP_LIST_MAX);
        return 1;
    }
    list->tools[list->count++] = made;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    const struct tci_wrap_tool *one = a, *other = b;
    return strcmp(one->name, other->name);
}

static int hash_value(json_t *value, struct tci_sha256 *all, char ret[TCI_SHA256_TEXT_MAX],
                      struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(SIZE_MAX / 4);
    if (!arena || tci_json_canonical_value(arena, &text, value) < 0)
        return tci_error_no_memory(reterr);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    tci_sha256_text(text.data, text.length, ret);
    tci_sha256_add(all, ret, strlen(ret));
    return 0;
}

/* What the server says of itself, as clients pass it on to models and people. Its version is not among it:
 * a new one that says the same is fine. Capabilities by their names: a server that now has prompts brings
 * texts that nobody has seen. */
static int hash_said(struct tci_wrap_list *list, struct tci_sha256 *all, struct tc_error *reterr)
{
    json_t *said = json_object(), *names = json_object();
    int r = said && names ? 0 : -1;
    for (void *i = json_object_iter(list->capabilities); r == 0 && i;
         i = json_object_iter_next(list->capabilities, i))
        r = json_object_set_new(names, json_object_iter_key(i), json_true());
    for (size_t i = 0; r == 0 && i < tci_array_size(info_members); i++) {
        json_t *value = json_object_get(list->server_info, info_members[i]);
        r = value ? json_object_set(said, info_members[i], value) : 0;
    }
    if (r == 0 && list->instructions)
        r = json_object_set_new(said, "instructions", json_string(list->instructions));
    if (r == 0)
        r = json_object_set(said, "capabilities", names);
    r = r == 0 ? hash_value(said, all, list->said, reterr) : tci_error_no_memory(reterr);
    json_decref(names);
    json_decref(said);
    return r;
}

/* Of all: SHA-256 of the hashes of the tools in the order of their names, then of what the server says of
 * itself, each as its 64 digits. */
int tci_wrap_list_complete(struct tci_wrap_list *list, char problem[256], struct tc_error *reterr)
{
    struct tci_sha256 all;
    char quoted[TCI_QUOTE_MAX];

    if (list->count)
        qsort(list->tools, list->count, sizeof *list->tools, compare_names);
    tci_sha256_begin(&all);
    for (size_t i = 0; i < list->count; i++) {
        struct tci_wrap_tool *tool = &list->tools[i];
        if (i && strcmp(tool->name, tool[-1].name) == 0) {
            (void)snprintf(problem, 256, "tool %s is in the list twice",
                           tci_quote(tool->name, strlen(tool->name), quoted));
            return 1;
        }
        if (hash_value(tool->definition, &all, tool->hash, reterr) < 0)
            return -1;
    }
    if (hash_said(list, &all, reterr) < 0)
        return -1;
    tci_sha256_end_text(&all, list->hash);
    return 0;
}

struct tci_wrap_tool *tci_wrap_list_find(const struct tci_wrap_list *list, const char *name)
{
    struct tci_wrap_tool key = { .name = (char *)(uintptr_t)name };
    return list->count ? bsearch(&key, list->tools, list->count, sizeof key, compare_names) : NULL;
}

/* ---- differences ---------------------------------------------------------------------------- */

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
    const json_t *one = json_object_get(a, key), *other = json_object_get(b, key);
    return one == other || json_equal(one, other);
}

static void compare_tools(const struct tci_wrap_tool *was, const struct tci_wrap_tool *is,
                          struct tci_buf *out)
{
    char quoted[TCI_QUOTE_MAX];
    const char *comma = " ";
    tci_buf_printf(out, "tool %s has another", tci_quote(is->name, strlen(is->name), quoted));
    for (size_t i = 0; i < tci_array_size(members); i++) {
        if (is_same(was->definition, is->definition, members[i]))
            continue;
        tci_buf_printf(out, "%s%s", comma, members[i]);
        comma = ", ";
    }
    tci_buf_char(out, '\n');
}

static void list_missing(const struct tci_wrap_list *from, const struct tci_wrap_list *in,
                         const char *what, struct tci_buf *out)
{
    char quoted[TCI_QUOTE_MAX];
    for (size_t i = 0; i < from->count; i++)
        if (!tci_wrap_list_find(in, from->tools[i].name))
            tci_buf_printf(out, "tool %s is %s\n",
                           tci_quote(from->tools[i].name, strlen(from->tools[i].name), quoted),
                           what);
}

static void list_capabilities(const struct tci_wrap_list *from, const struct tci_wrap_list *in,
                              const char *what, struct tci_buf *out)
{
    for (void *i = json_object_iter(from->capabilities); i;
         i = json_object_iter_next(from->capabilities, i))
        if (!json_object_get(in->capabilities, json_object_iter_key(i)))
            tci_buf_printf(out, "the capability \"%.40s\" is %s\n", json_object_iter_key(i), what);
}

/* Of itself. */
static void compare_said(const struct tci_wrap_list *was, const struct tci_wrap_list *is,
                         struct tci_buf *out)
{
    const char *before = was->instructions ? was->instructions : "";
    for (size_t i = 0; i < tci_array_size(info_members); i++)
        if (!is_same(was->server_info, is->server_info, info_members[i]))
            tci_buf_printf(out, "the server has another %s\n", info_members[i]);
    if (strcmp(before, is->instructions ? is->instructions : "") != 0)
        tci_buf_string(out, "the server has other instructions for the model\n");
    list_capabilities(is, was, "new", out);
    list_capabilities(was, is, "gone", out);
}

void tci_wrap_list_compare(const struct tci_wrap_list *was, const struct tci_wrap_list *is,
                           struct tci_buf *out)
{
    if (strcmp(was->hash, is->hash) == 0)
        return;
    for (size_t i = 0; i < is->count; i++) {
        const struct tci_wrap_tool *old = tci_wrap_list_find(was, is->tools[i].name);
        if (old && strcmp(old->hash, is->tools[i].hash) != 0)
            compare_tools(old, &is->tools[i], out);
    }
    list_missing(is, was, "new", out);
    list_missing(was, is, "gone", out);
    compare_said(was, is, out);
}

/* ---- schemas -------------------------------------------------------------------------------- */

/* A stranger's schema may be made to take long: what a person's needs is enough. */
static const struct tci_schema_options options = {
    .draft = TCI_SCHEMA_2020_12,
    .limits = { .schemas = 5000, .values = 100000, .steps = 1000000, .matches = 100000 },
};

bool tci_wrap_tool_compile(struct tci_wrap_tool *tool)
{
    const json_t *output = json_object_get(tool->definition, "outputSchema");
    struct tc_error why = { 0 };

    if (tool->compiled)
        return !tool->problem[0];
    tool->compiled = true;
    if (tci_schema_compile(json_object_get(tool->definition, "inputSchema"), &options, &tool->input,
                           &why) == 0 &&
        (!output || tci_schema_compile(output, &options, &tool->output, &why) == 0))
        return true;
    (void)snprintf(tool->problem, sizeof tool->problem, "the server's %s cannot be used: %.150s",
                   tool->input ? "outputSchema" : "inputSchema", why.message);
    return false;
}
