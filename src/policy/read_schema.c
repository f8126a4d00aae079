/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading `parameters` and `returns`. A schema is a table in the policy, JSON text, or a
 * file's path; it is kept as canonical JSON text. Whether it is a good JSON Schema is for
 * the schema compiler; here it must be JSON, an object or a boolean, and within bounds.
 */
#include "policy/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/file.h"
#include "base/path.h"
#include "json/canonical.h"
#include "json/write.h"

static int bad_schema(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      const char *remedy, const char *problem)
{
    return tci_read_fail(reader, TCI_FINDING_BAD_SCHEMA, value->pos, remedy, "\"%s\" in %s: %s",
                         name, reader->where, problem);
}

/* The tree as JSON text. Depth is bounded by the readers of TOML and YAML. */
static int write_node(struct tci_reader *reader, const char *name, struct tci_json *json,
                      const char *key, const struct tci_node *node)
{
    int status = 0;
    switch (node->type) {
    case TCI_NODE_TABLE:
        tci_json_object_begin(json, key);
        tci_table_foreach (entry, node) {
            if (memchr(entry->key.data, '\0', entry->key.length))
                return bad_schema(reader, name, entry->value, "remove the NUL", "NUL in a key");
            status |= write_node(reader, name, json, entry->key.data, entry->value);
        }
        tci_json_object_end(json);
        return status;
    case TCI_NODE_ARRAY:
        tci_json_array_begin(json, key);
        for (size_t i = 0; i < node->array.count; i++)
            status |= write_node(reader, name, json, NULL, node->array.items[i]);
        tci_json_array_end(json);
        return status;
    case TCI_NODE_STRING:
        if (memchr(node->string.data, '\0', node->string.length))
            return bad_schema(reader, name, node, "remove the NUL", "NUL in a string");
        tci_json_bytes(json, key, node->string.data, node->string.length);
        return 0;
    case TCI_NODE_INTEGER:
        tci_json_integer(json, key, node->integer);
        return 0;
    case TCI_NODE_FLOAT:
        if (!isfinite(node->number))
            break;
        tci_json_double(json, key, node->number);
        return 0;
    case TCI_NODE_BOOLEAN:
        tci_json_bool(json, key, node->boolean);
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
    struct tci_json json = { .out = &out };
    struct tc_error error = { 0 };

    if (write_node(reader, name, &json, NULL, value) < 0)
        return -1;
    if (tci_buf_check(&out, &error) < 0)
        return error.code == TC_ERROR_NO_MEMORY
                   ? tci_read_no_memory(reader)
                   : bad_schema(reader, name, value, "make it shorter", "larger than 256 KiB");
    return canonical(reader, name, value, out.data, out.length, false, schema);
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
