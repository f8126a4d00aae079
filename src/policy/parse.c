/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tools and grants from texts that a program has at run time.
 * Trusts nothing about the text: it has a maximum, and whatever is wrong with it is an error. Its
 * places are in no file of the policy (TCI_FILE_NONE).
 */
#include "policy/parse.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "json/canonical.h"
#include "policy/dump.h"
#include "policy/reader.h"
#include "policy/toml.h"

static int too_large(struct tc_error *reterr, const char *what, size_t maximum)
{
    tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the text of a %s has more than %zu bytes", what,
                  maximum);
    tci_error_id(reterr, "TC-P003");
    tci_error_remedy(reterr, "make it shorter");
    return -1;
}

/* The first finding as an error. */
static int fail(const struct tci_findings *findings, struct tc_error *reterr)
{
    if (tci_findings_error(findings, reterr) < 0)
        return -1;
    return tci_error_set(reterr, TC_ERROR_INTERNAL, "a value was refused without a reason");
}

/* ---- tools -------------------------------------------------------------------------------- */

static int parse_toml(struct tci_arena *arena, const char *toml, size_t length, const char *file,
                      struct tci_node **ret, struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    if (tci_toml_parse(arena, toml, length, TCI_TOML_1_1, ret, &error) == 0) {
        tci_node_set_file(*ret, TCI_FILE_NONE);
        return 0;
    }
    tci_error_set(reterr, error.code, "%s", error.message);
    tci_error_id(reterr, tci_finding_name(TCI_FINDING_SYNTAX));
    tci_error_place(reterr, file, error.line, error.column);
    tci_error_remedy(reterr, "%s", error.remedy[0] ? error.remedy : "see toolcage-policy(5)");
    return -1;
}

static int read_tool(struct tci_reader *reader, const struct tc_policy *policy, const char *name,
                     const struct tci_node *root, struct tci_tool **ret)
{
    struct tci_tool *tool = tci_arena_new_of(reader->arena, struct tci_tool);
    struct tci_text text = { .data = tci_arena_strdup(reader->arena, name),
                             .length = strlen(name) };
    struct tci_pos pos = { .line = 1, .column = 1, .file = TCI_FILE_NONE };

    if (!tool || !text.data)
        return tci_read_no_memory(reader);
    if (tci_read_tool(reader, text, pos, root, policy->defaults, tool) < 0)
        return -1;
    if (tci_policy_tool(policy, name))
        return tci_read_fail(reader, TCI_FINDING_DUPLICATE, pos, "choose another name",
                             "the policy has a tool named \"%s\" already", name);
    *ret = tool;
    return 0;
}

int tci_tool_parse(const struct tc_policy *policy, struct tci_arena *arena, const char *name,
                   const char *toml, size_t length, const char *file, struct tci_tool **ret,
                   struct tc_error *reterr)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = NULL;
    struct tci_reader reader = { .arena = arena, .directory = policy->directory };
    struct tci_node *root;
    char *copy;

    if (length > TCI_TOOL_TEXT_MAX)
        return too_large(reterr, "tool", TCI_TOOL_TEXT_MAX);
    reader.findings = findings = tci_findings_new(file ? file : "");
    copy = tci_arena_strndup(arena, toml, length); /* the tree points into it */
    if (!findings || !copy)
        return tci_error_no_memory(reterr);
    if (parse_toml(arena, copy, length, file, &root, reterr) < 0)
        return -1;
    return read_tool(&reader, policy, name, root, ret) < 0 ? fail(findings, reterr) : 0;
}

/* ---- grants ------------------------------------------------------------------------------- */

/* JSON, or TOML? The two differ behind the first key. A bare key is TOML, and so is "{}". */
static bool is_json(const char *text)
{
    static const char blank[] = " \t\r\n";
    text += strspn(text, blank);
    if (*text != '{')
        return false;
    text += 1 + strspn(text + 1, blank);
    if (*text != '"')
        return false;
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && text[1])
            text++;
    text += *text == '"';
    return text[strspn(text, blank)] == ':';
}

enum { depth_max = 8 }; /* a grant's table is shallow */

static struct tci_node *convert(struct tci_reader *reader, json_t *value, unsigned depth);

static int convert_items(struct tci_reader *reader, json_t *value, unsigned depth,
                         struct tci_node *node)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct tci_node *item = convert(reader, json_array_get(value, i), depth);
        if (!item)
            return -1;
        if (tci_array_add(reader->arena, node, item) < 0)
            return tci_read_no_memory(reader);
    }
    return 0;
}

static int convert_members(struct tci_reader *reader, json_t *value, unsigned depth,
                           struct tci_node *node)
{
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i)) {
        struct tci_node *item = convert(reader, json_object_iter_value(i), depth);
        struct tci_text key = { .length = json_object_iter_key_len(i) };
        if (!item)
            return -1;
        key.data = tci_arena_strndup(reader->arena, json_object_iter_key(i), key.length);
        if (!key.data || !tci_table_add(reader->arena, node, key, node->pos, item))
            return tci_read_no_memory(reader);
    }
    return 0;
}

static int set_number(double number, struct tci_node *node)
{
    if (number == floor(number) && fabs(number) < 9007199254740992.0) {
        node->type = TCI_NODE_INTEGER;
        node->integer = (int64_t)number;
    } else {
        node->type = TCI_NODE_FLOAT;
        node->number = number;
    }
    return 0;
}

static int set_string(struct tci_reader *reader, json_t *value, struct tci_node *node)
{
    size_t length = json_string_length(value);
    char *text = tci_arena_strndup(reader->arena, json_string_value(value), length);
    node->type = TCI_NODE_STRING;
    node->string = (struct tci_text){ text, length };
    return text ? 0 : tci_read_no_memory(reader);
}

/* The same tree as from TOML; NULL: a finding says why, or memory ran out. */
static struct tci_node *convert(struct tci_reader *reader, json_t *value, unsigned depth)
{
    const struct tci_pos pos = { .file = TCI_FILE_NONE };
    struct tci_node *node = tci_node_new(reader->arena, TCI_NODE_TABLE, pos);
    int r = 0;

    if (!node) {
        tci_read_no_memory(reader);
        return NULL;
    }
    if (json_is_object(value) && depth < depth_max) {
        r = convert_members(reader, value, depth + 1, node);
    } else if (json_is_array(value) && depth < depth_max) {
        node->type = TCI_NODE_ARRAY;
        r = convert_items(reader, value, depth + 1, node);
    } else if (json_is_string(value)) {
        r = set_string(reader, value, node);
    } else if (json_is_boolean(value)) {
        node->type = TCI_NODE_BOOLEAN;
        node->boolean = json_is_true(value);
    } else if (json_is_number(value)) {
        r = set_number(json_number_value(value), node);
    } else {
        r = tci_read_fail(reader, TCI_FINDING_WRONG_TYPE, pos, "remove it",
                          json_is_null(value) ? "a grant holds a null" : "a grant is too deep");
    }
    return r < 0 ? NULL : node;
}

static int read_json(struct tci_reader *reader, const char *text, size_t length,
                     struct tci_node **ret, struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    json_t *value = tci_json_read(text, length, &error);
    if (!value) {
        tci_error_set(reterr, error.code, "the grant is not valid JSON: %s", error.message);
        tci_error_id(reterr, tci_finding_name(TCI_FINDING_SYNTAX));
        tci_error_remedy(reterr, "write an object such as {\"tool\": \"NAME\"}");
        return -1;
    }
    *ret = convert(reader, value, 0);
    json_decref(value);
    return *ret ? 0 : fail(reader->findings, reterr);
}

static int not_one_table(struct tc_error *reterr, const char *problem)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "the grant %s", problem);
    tci_error_id(reterr, tci_finding_name(TCI_FINDING_SYNTAX));
    tci_error_remedy(reterr, "write { tool = \"NAME\" }");
    return -1;
}

/* The text becomes the value of a key. Its own line breaks must not let it add another key. */
static int read_toml(struct tci_reader *reader, const char *text, struct tci_node **ret,
                     struct tc_error *reterr)
{
    char *document = tci_arena_printf(reader->arena, "grant = %s", text + strspn(text, " \t\r\n"));
    struct tci_node *root;
    if (!document)
        return tci_error_no_memory(reterr);
    if (parse_toml(reader->arena, document, strlen(document), NULL, &root, reterr) < 0)
        return -1;
    *ret = root->table.first->value;
    if (root->table.count == 1 && (*ret)->type == TCI_NODE_TABLE)
        return 0;
    return not_one_table(reterr, "is not one table");
}

static int read_grant(struct tci_reader *reader, const struct tc_policy *policy,
                      const struct tci_node *table, struct tci_grant *grant)
{
    const struct tci_tool *tool;
    (void)snprintf(reader->where, sizeof reader->where, "the grant");
    if (tci_read_grant(reader, table, grant) < 0)
        return -1;
    tool = tci_policy_tool(policy, grant->tool);
    return tool ? tci_check_grant(reader, tool, grant) : 0;
}

int tci_grant_parse(const struct tc_policy *policy, struct tci_arena *arena, const char *text,
                    size_t length, struct tci_grant **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = NULL;
    struct tci_reader reader = { .arena = arena, .directory = policy->directory };
    struct tci_grant *grant = tci_arena_new_of(arena, struct tci_grant);
    struct tci_node *table = NULL;
    char *copy;
    int r;

    if (length > TCI_GRANT_TEXT_MAX)
        return too_large(reterr, "grant", TCI_GRANT_TEXT_MAX);
    reader.findings = findings = tci_findings_new("");
    copy = tci_arena_strndup(arena, text, length);
    if (!findings || !grant || !copy)
        return tci_error_no_memory(reterr);
    if (strlen(copy) != length)
        return not_one_table(reterr, "contains a NUL");
    r = is_json(copy) ? read_json(&reader, copy, length, &table, reterr)
                      : read_toml(&reader, copy, &table, reterr);
    if (r < 0 || !table)
        return -1;
    if (read_grant(&reader, policy, table, grant) < 0)
        return fail(findings, reterr);
    *ret = grant;
    return 0;
}

void tci_grant_write(const struct tci_grant *grant, struct tci_buf *out)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(tci_buf_free) struct tci_buf plain = TCI_BUF_INIT((size_t)4 * TCI_GRANT_TEXT_MAX);
    struct tci_json writer = { .out = &plain };
    struct tc_error error = { 0 };
    const char *text;

    tci_grant_write_table(&writer, grant);
    if (!arena || tci_buf_check(&plain, &error) < 0 ||
        tci_json_canonical(arena, plain.data, plain.length, &text, &error) < 0) {
        out->no_memory |= error.code != TC_ERROR_TOO_LARGE;
        out->too_large |= error.code == TC_ERROR_TOO_LARGE;
        return;
    }
    tci_buf_string(out, text);
}
