/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: JSON-RPC 2.0 as MCP uses it: what a message is. How one is written: message_write.c.
 * Trusts nothing that is read.
 */
#include "mcp/message.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"
#include "json/scan.h"

/* ---- reading ------------------------------------------------------------------------------ */

static int tci_printf_like(3, 4)
    invalid(struct tci_mcp_message *message, int code, const char *format, ...)
{
    va_list arguments;
    message->kind = TCI_MCP_INVALID;
    message->code = code;
    va_start(arguments, format);
    (void)vsnprintf(message->problem, sizeof message->problem, format, arguments);
    va_end(arguments);
    return 0;
}

/* Ids come back exactly as they were. A number that a double does not hold exactly would come
 * back as another one, and the answer would belong to nobody, or to somebody else. */
static bool is_id(const json_t *id)
{
    double number;
    if (json_is_string(id))
        return json_string_length(id) <= TCI_MCP_ID_MAX;
    if (!json_is_number(id))
        return false;
    number = json_number_value(id);
    return fabs(number) < 9007199254740992.0 && trunc(number) == number;
}

/* Recursion is bounded by jansson's own limit when it read the value. */
static bool is_deeper(const json_t *value, unsigned levels)
{
    if (json_is_object(value)) {
        json_t *object = (json_t *)(uintptr_t)value;
        if (!levels)
            return true;
        for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
            if (is_deeper(json_object_iter_value(i), levels - 1))
                return true;
    } else if (json_is_array(value)) {
        if (!levels)
            return true;
        for (size_t i = 0; i < json_array_size(value); i++)
            if (is_deeper(json_array_get(value, i), levels - 1))
                return true;
    }
    return false;
}

/* Without a method. It has no id for an answer of ours: the client would take that for an answer
 * to a request of its own that has the same id by chance. */
static int read_response(json_t *value, json_t *id, struct tci_mcp_message *ret)
{
    json_t *result = json_object_get(value, "result"), *failure = json_object_get(value, "error");
    if (!result && !failure) {
        ret->id = id;
        return invalid(ret, TCI_MCP_INVALID_REQUEST,
                       "a message needs a method, a result or an error");
    }
    if (result && failure)
        return invalid(ret, TCI_MCP_INVALID_REQUEST,
                       "a response has a result or an error, not both");
    if (result ? !json_is_object(result) : !json_is_object(failure))
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "the %s of a response must be an object",
                       result ? "result" : "error");
    if (!id && result)
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "a response needs the id of its request");
    ret->kind = TCI_MCP_RESPONSE;
    ret->id = id;
    ret->result = result;
    ret->failure = failure;
    return 0;
}

static int read_call(json_t *value, json_t *id, json_t *method, struct tci_mcp_message *ret)
{
    json_t *params = json_object_get(value, "params");
    ret->id = id;
    if (!json_is_string(method) || !json_string_length(method))
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "the method must be a text");
    if (json_object_get(value, "result") || json_object_get(value, "error"))
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "a request has no result and no error");
    /* Some clients write null for what they leave out. */
    if (params && !json_is_object(params) && !json_is_null(params))
        return invalid(ret, TCI_MCP_INVALID_PARAMS, "params must be an object");
    ret->kind = id ? TCI_MCP_REQUEST : TCI_MCP_NOTIFICATION;
    ret->method = json_string_value(method);
    ret->params = json_is_object(params) ? params : NULL;
    return 0;
}

static int read_object(json_t *value, struct tci_mcp_message *ret)
{
    json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");
    json_t *version = json_object_get(value, "jsonrpc");
    bool null_id = json_is_null(id);

    if (id && !is_id(id)) {
        /* Who could not read an id of ours says so with null. */
        if (null_id && !method)
            id = NULL;
        else
            return invalid(ret, TCI_MCP_INVALID_REQUEST,
                           "an id must be a text of at most %d bytes, or a whole number between "
                           "-2^53 and 2^53",
                           TCI_MCP_ID_MAX);
    }
    if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0) {
        ret->id = method ? id : NULL;
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    }
    if (is_deeper(value, TCI_MCP_DEPTH_MAX)) {
        ret->id = method ? id : NULL;
        return invalid(ret, TCI_MCP_INVALID_REQUEST,
                       "arrays and objects are more than %d deep in one another",
                       TCI_MCP_DEPTH_MAX);
    }
    return method ? read_call(value, id, method, ret) : read_response(value, id, ret);
}

int tci_mcp_read_value(struct json_t *value, struct tci_mcp_message *ret, struct tc_error *reterr)
{
    (void)reterr;
    *ret = (struct tci_mcp_message){ .document = json_incref(value) };
    if (json_is_object(value))
        return read_object(value, ret);
    return invalid(ret, TCI_MCP_INVALID_REQUEST, "a message must be an object");
}

static int read_batch(json_t *array, struct tci_mcp_message *ret)
{
    size_t count = json_array_size(array);
    if (!count)
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "a batch must not be empty");
    if (count > TCI_MCP_BATCH_MAX)
        return invalid(ret, TCI_MCP_INVALID_REQUEST, "a batch has at most %d messages",
                       TCI_MCP_BATCH_MAX);
    ret->kind = TCI_MCP_BATCH;
    return 0;
}

/* Text that the reader refuses for a NUL in a string is JSON all the same: with its id the
 * client learns which of its requests was refused, and does not wait for ever. */
static bool find_id(const char *text, size_t length, struct tci_mcp_message *ret)
{
    json_t *value = json_loadb(
        text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    json_t *id = json_is_object(value) ? json_object_get(value, "id") : NULL;
    ret->document = value;
    if (id && is_id(id) && json_object_get(value, "method"))
        ret->id = id;
    return value;
}

/* ---- before the parser ---------------------------------------------------------------------- */

enum { id_text_max = 8 * TCI_MCP_ID_MAX }; /* with escapes */

/* Which request is refused? Only if that is beyond doubt: an answer to something else confuses its client. */
static void scan_id(const char *text, size_t length, struct tci_mcp_message *ret)
{
    struct tci_json_part id, ignored;
    if (tci_json_scan_member(text, length, "id", &id) != 1 || id.length > id_text_max ||
        tci_json_scan_member(text, length, "method", &ignored) != 1)
        return;
    ret->document = tci_json_read(id.text, id.length, NULL);
    if (ret->document && is_id(ret->document))
        ret->id = ret->document;
}

/* One small message must not become hundreds of megabytes, and hold the loop for seconds, before anybody looks
 * at it. 0; 1: it was refused. */
static int scan(const char *text, size_t length, size_t values, struct tci_mcp_message *ret,
                struct tci_json_scanned *scanned)
{
    const struct tci_json_bounds bounds = { .values = values, .exact = true };
    enum tci_json_excess excess = tci_json_scan(text, length, &bounds, scanned);
    ret->values = scanned->values;
    if (excess != TCI_JSON_TOO_MANY)
        return 0;
    scan_id(text, length, ret);
    (void)invalid(ret, TCI_MCP_INVALID_REQUEST,
                  "the message has more than %zu JSON values: send fewer at a time", values);
    return 1;
}

/* ---- whole messages ------------------------------------------------------------------------- */

static int read_text(const char *text, size_t length, struct tci_mcp_message *ret,
                     struct tc_error *reterr)
{
    struct tc_error why = { 0 };
    char quoted[TCI_QUOTE_MAX];

    ret->document = tci_json_read(text, length, &why);
    if (!ret->document) {
        if (why.code == TC_ERROR_NO_MEMORY) {
            (void)invalid(ret, TCI_MCP_INTERNAL, "no memory");
            return tci_error_no_memory(reterr);
        }
        /* The reader's sentence repeats the text, which may hold anything. */
        (void)invalid(ret, TCI_MCP_PARSE_ERROR, "not JSON (column %u): %s", why.column,
                      tci_quote(why.message, strlen(why.message), quoted));
        if (find_id(text, length, ret))
            return invalid(ret, TCI_MCP_INVALID_REQUEST,
                           "a text must not have a NUL character in it");
        return 0;
    }
    if (json_is_object(ret->document))
        return read_object(ret->document, ret);
    if (json_is_array(ret->document))
        return read_batch(ret->document, ret);
    return invalid(ret, TCI_MCP_INVALID_REQUEST, "a message must be an object");
}

int tci_mcp_read(const char *text, size_t length, struct tci_mcp_message *ret,
                 struct tc_error *reterr)
{
    struct tci_json_scanned scanned;
    char quoted[TCI_QUOTE_MAX];

    *ret = (struct tci_mcp_message){ 0 };
    if (scan(text, length, TCI_MCP_VALUES_MAX, ret, &scanned))
        return 0;
    if (read_text(text, length, ret, reterr) < 0)
        return -1;
    /* From here on it would be rounded: a tool would get another id than the one that was meant. */
    if (scanned.inexact.text && (ret->kind == TCI_MCP_REQUEST || ret->kind == TCI_MCP_BATCH))
        return invalid(ret, ret->id ? TCI_MCP_INVALID_PARAMS : TCI_MCP_INVALID_REQUEST,
                       "an integer is too large to be exact, write it as a text: %s",
                       tci_quote(scanned.inexact.text, scanned.inexact.length, quoted));
    return 0;
}

int tci_mcp_read_server(const char *text, size_t length, struct tci_mcp_message *ret,
                        struct tc_error *reterr)
{
    struct tci_json_scanned scanned;

    *ret = (struct tci_mcp_message){ 0 };
    if (scan(text, length, TCI_MCP_SERVER_VALUES_MAX, ret, &scanned))
        return 0;
    return read_text(text, length, ret, reterr);
}

void tci_mcp_message_free(struct tci_mcp_message *message)
{
    json_decref(message->document);
    *message = (struct tci_mcp_message){ 0 };
}
