/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading `parameters` and `returns`. A schema is a table in the policy, JSON text, or a
 * file's path; it is kept as canonical JSON text. Whether it is a good JSON Schema is for
 * the schema compiler; here it must be JSON, an object or a boolean, and within bounds.
 */
#include "policy/reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/file.h"
#include "base/path.h"
#include "json/canonical.h"
#include "json/number.h"

static int bad_schema(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      const char *remedy, const char *problem)
{
    return tci_read_fail(reader, TCI_FINDING_BAD_SCHEMA, value->pos, remedy, "\"%s\" in %s: %s",
                         name, reader->where, problem);
}

static int write_node(struct tci_reader *reader, const char *name, struct tci_buf *out,
                      const struct tci_node *node);

static int write_text(struct tci_reader *reader, const char *name, struct tci_buf *out,
                      struct tci_text text, const struct tci_node *node)
{
    if (memchr(text.data, '\0', text.length))
        return bad_schema(reader, name, node, "remove the NUL", "NUL in a text");
    tci_json_canonical_string(out, text.data, text.length);
    return 0;
}

/* A key and its value; begins with the key's text, by which members are sorted. */
struct member {
    const char *key;
    const struct tci_entry *entry;
};

static int write_table(struct tci_reader *reader, const char *name, struct tci_buf *out,
                       const struct tci_node *table)
{
    struct member *members = tci_arena_new_array(reader->arena, table->table.count, struct member);
    size_t count = 0;
    int status = 0;

    if (!members)
        return tci_read_no_memory(reader);
    tci_table_foreach (entry, table)
        members[count++] = (struct member){ entry->key.data, entry };
    qsort(members, count, sizeof *members, tci_json_compare_keys);
    tci_buf_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        const struct tci_entry *entry = members[i].entry;
        if (i)
            tci_buf_char(out, ',');
        status |= write_text(reader, name, out, entry->key, entry->value);
        tci_buf_char(out, ':');
        status |= write_node(reader, name, out, entry->value);
    }
    tci_buf_char(out, '}');
    return status;
}

static int write_array(struct tci_reader *reader, const char *name, struct tci_buf *out,
                       const struct tci_node *array)
{
    int status = 0;
    tci_buf_char(out, '[');
    for (size_t i = 0; i < array->array.count; i++) {
        if (i)
            tci_buf_char(out, ',');
        status |= write_node(reader, name, out, array->array.items[i]);
    }
    tci_buf_char(out, ']');
    return status;
}

/* The tree as canonical JSON. Its depth is bounded by the readers of TOML and YAML. */
static int write_node(struct tci_reader *reader, const char *name, struct tci_buf *out,
                      const struct tci_node *node)
{
    char number[TCI_JSON_NUMBER_MAX];
    double value = node->type == TCI_NODE_INTEGER ? (double)node->integer : node->number;

    switch (node->type) {
    case TCI_NODE_TABLE:
        return write_table(reader, name, out, node);
    case TCI_NODE_ARRAY:
        return write_array(reader, name, out, node);
    case TCI_NODE_STRING:
        return write_text(reader, name, out, node->string, node);
    case TCI_NODE_BOOLEAN:
        tci_buf_string(out, node->boolean ? "true" : "false");
        return 0;
    case TCI_NODE_INTEGER:
    case TCI_NODE_FLOAT:
        if (!isfinite(value))
            break;
        tci_buf_string(out, tci_json_number(value, number));
        return 0;
    case TCI_NODE_DATETIME:
    case TCI_NODE_LOCAL_DATETIME:
    case TCI_NODE_LOCAL_DATE:
    case TCI_NODE_LOCAL_TIME:
        break;
    }
    return bad_schema(reader, name, node, "write it as a string",
                      "JSON has no dates, no infinity and no NaN");
}

/* Text within the bound is made canonical, which may be a little longer: the bound holds for both. */
static int canonical(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     const char *text, size_t length, bool from_file, struct tci_schema *schema)
{
    struct tc_error error = { 0 };
    char problem[256];
    if (tci_json_canonical(reader->arena, text, length, &schema->json, &error) < 0) {
        if (error.code == TC_ERROR_NO_MEMORY)
            return tci_read_no_memory(reader);
        (void)snprintf(problem, sizeof problem, "not valid JSON at line %u, column %u%s%.150s",
                       error.line, error.column, from_file ? "" : ": ",
                       from_file ? "" : error.message);
        return bad_schema(reader, name, value, "mend the JSON", problem);
    }
    if (strlen(schema->json) > TCI_SCHEMA_BYTES_MAX)
        return bad_schema(reader, name, value, "make it shorter", "larger than 256 KiB");
    if (schema->json[0] != '{' && strcmp(schema->json, "true") != 0 &&
        strcmp(schema->json, "false") != 0)
        return bad_schema(reader, name, value, "write an object such as { type = \"object\" }",
                          "a JSON Schema is an object or a boolean");
    return 0;
}

static int read_inline(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       struct tci_schema *schema)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_SCHEMA_BYTES_MAX);
    struct tc_error error = { 0 };

    if (write_node(reader, name, &out, value) < 0)
        return -1;
    if (tci_buf_check(&out, &error) < 0)
        return error.code == TC_ERROR_NO_MEMORY
                   ? tci_read_no_memory(reader)
                   : bad_schema(reader, name, value, "make it shorter", "larger than 256 KiB");
    schema->json = tci_arena_strndup(reader->arena, out.data, out.length);
    return schema->json ? 0 : tci_read_no_memory(reader);
}

/*
 * A schema is handed to models as part of a tool's definition. The attack: `parameters` names a
 * file with credentials, and they are published. So a schema file lies below the policy's
 * directory, is reached without a link, is called *.json, and its text is never quoted.
 */
static int check_file(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      const char *path)
{
    size_t length = strlen(path);
    if (length < 6 || strcmp(path + length - 5, ".json") != 0)
        return bad_schema(reader, name, value,
                          "give a table, JSON text that begins with {, or the path of a .json file",
                          "the name of a schema file ends in .json");
    if (!reader->directory || !tci_path_is_within(path, reader->directory))
        return bad_schema(reader, name, value, "put the file beside the policy",
                          "a schema file lies in the policy's directory or below it");
    return 0;
}

static int load_file(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     struct tci_schema *schema)
{
    const char *below = schema->file + strlen(reader->directory);
    struct tc_error error = { 0 };
    char problem[256];
    char *text;
    size_t length;

    if (tci_file_read_beneath(reader->arena, reader->directory, below + strspn(below, "/"),
                              TCI_SCHEMA_BYTES_MAX, &text, &length, &error) < 0) {
        if (error.code == TC_ERROR_NO_MEMORY)
            return tci_read_no_memory(reader);
        (void)snprintf(problem, sizeof problem, "%.120s: %.100s", schema->file, error.message);
        return bad_schema(reader, name, value, "name a readable file; links are not followed",
                          problem);
    }
    tci_hash_file(reader, "schema", below, text, length);
    return canonical(reader, name, value, text, length, true, schema);
}

/* Tools often share a schema: each file is read once. */
static int read_file(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     struct tci_schema *schema)
{
    struct tci_text key;
    const struct tci_entry *known;
    struct tci_node *text;

    if (tci_read_path(reader, name, value, &schema->file) < 0 ||
        check_file(reader, name, value, schema->file) < 0)
        return -1;
    key = (struct tci_text){ schema->file, strlen(schema->file) };
    if (!reader->schemas)
        reader->schemas = tci_node_new(reader->arena, TCI_NODE_TABLE, value->pos);
    if (!reader->schemas)
        return tci_read_no_memory(reader);
    known = tci_table_find(reader->schemas, key.data, key.length);
    if (known) {
        schema->json = known->value->string.data;
        return 0;
    }
    if (load_file(reader, name, value, schema) < 0)
        return -1;
    text = tci_node_new(reader->arena, TCI_NODE_STRING, value->pos);
    if (!text || !tci_table_add(reader->arena, reader->schemas, key, value->pos, text))
        return tci_read_no_memory(reader);
    text->string = (struct tci_text){ schema->json, strlen(schema->json) };
    return 0;
}

int tci_read_schema(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    void *field)
{
    struct tci_schema *schema = field;
    *schema = (struct tci_schema){ .json = NULL };
    if (value->type == TCI_NODE_TABLE || value->type == TCI_NODE_BOOLEAN)
        return read_inline(reader, name, value, schema);
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING,
                        "a table, JSON text or the path of a file") < 0)
        return -1;
    if (value->string.data[strspn(value->string.data, " \t\r\n")] == '{')
        return canonical(reader, name, value, value->string.data, value->string.length, false,
                         schema);
    return read_file(reader, name, value, schema);
}
