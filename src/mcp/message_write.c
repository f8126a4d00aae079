/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how a message of JSON-RPC is written.
 * Invariant: what is written is one line: in JSON a line break can only stand between values, and
 * there it becomes a space. So no result, whoever made it, can end a message early and begin a
 * forged one.
 */
#include <jansson.h>
#include <string.h>
#include "json/write.h"
#include "mcp/message.h"

static void write_tree(struct tci_json *json, const char *key, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: {
        json_t *object = (json_t *)(uintptr_t)value;
        tci_json_object_begin(json, key);
        for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
            write_tree(json, json_object_iter_key(i), json_object_iter_value(i));
        tci_json_object_end(json);
        return;
    }
    case JSON_ARRAY:
        tci_json_array_begin(json, key);
        for (size_t i = 0; i < json_array_size(value); i++)
            write_tree(json, NULL, json_array_get(value, i));
        tci_json_array_end(json);
        return;
    case JSON_STRING:
        tci_json_bytes(json, key, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        tci_json_integer(json, key, json_integer_value(value));
        return;
    case JSON_REAL:
        tci_json_double(json, key, json_real_value(value));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        tci_json_bool(json, key, json_is_true(value));
        return;
    case JSON_NULL:
        tci_json_null(json, key);
        return;
    }
}

/* The common case, and an answer may be large: no copy of the text is made. */
static void write_json(struct tci_json *json, const char *key, const char *value)
{
    const char *at = value, *end = value + strlen(value);
    tci_json_raw(json, key, "");
    while (at < end) {
        size_t plain = strcspn(at, "\r\n");
        tci_buf_append(json->out, at, plain);
        at += plain;
        if (at < end) {
            tci_buf_char(json->out, ' ');
            at++;
        }
    }
}

static void begin(struct tci_json *json)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "jsonrpc", "2.0");
}

static void write_id(struct tci_json *json, const struct json_t *id)
{
    if (id)
        write_tree(json, "id", id);
    else
        tci_json_null(json, "id");
}

void tci_mcp_write_result_begin(struct tci_json *json, const struct json_t *id)
{
    begin(json);
    write_id(json, id);
}

void tci_mcp_write_result(struct tci_buf *out, const struct json_t *id, const char *result_json)
{
    struct tci_json json = { .out = out };
    tci_mcp_write_result_begin(&json, id);
    write_json(&json, "result", result_json);
    tci_json_object_end(&json);
}

void tci_mcp_write_error(struct tci_buf *out, const struct json_t *id, int code,
                         const char *message, const char *data_json)
{
    struct tci_json json = { .out = out };
    begin(&json);
    write_id(&json, id);
    tci_json_object_begin(&json, "error");
    tci_json_integer(&json, "code", code);
    tci_json_string(&json, "message", message);
    if (data_json)
        write_json(&json, "data", data_json);
    tci_json_object_end(&json);
    tci_json_object_end(&json);
}

void tci_mcp_write_notification(struct tci_buf *out, const char *method, const char *params_json)
{
    struct tci_json json = { .out = out };
    begin(&json);
    tci_json_string(&json, "method", method);
    if (params_json)
        write_json(&json, "params", params_json);
    tci_json_object_end(&json);
}

void tci_mcp_write_request(struct tci_buf *out, const char *id, const char *method,
                           const char *params_json)
{
    struct tci_json json = { .out = out };
    begin(&json);
    tci_json_string(&json, "id", id);
    tci_json_string(&json, "method", method);
    if (params_json)
        write_json(&json, "params", params_json);
    tci_json_object_end(&json);
}

void tci_mcp_write_value(struct tci_buf *out, const struct json_t *value)
{
    struct tci_json json = { .out = out };
    write_tree(&json, NULL, value);
}
