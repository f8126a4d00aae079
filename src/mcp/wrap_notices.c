/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a client gets of a notification of the wrapped server's: the members that are known, and words that are
 * fit to be shown. The attack: clients print progress and logs. Words that clear the screen, hide or reorder what is
 * around them, or come under the name of toolcage, would let a person believe what the server wants.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <string.h>

enum {
    words_max = 4096,  /* bytes of a progress message */
    logger_max = 256,  /* of the name that the server gives a logger */
    notice_depth = 64, /* levels of what is logged */
};

static void put(struct tci_wrap *wrap, const char *method, struct tci_buf *params)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    if (tci_buf_check(params, NULL) < 0)
        return; /* with escapes it is larger than a message may be */
    tci_mcp_write_notification(&text, method, params->length ? params->data : NULL);
    tci_wrap_client_put(wrap, &text);
}

static void put_plain(struct tci_json *json, const char *name, const char *text, size_t length)
{
    tc_cleanup(tci_buf_free) struct tci_buf plain = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tci_wrap_plain(&plain, text, length);
    if (tci_buf_check(&plain, NULL) == 0)
        tci_json_string(json, name, plain.data ? plain.data : "");
}

void tci_wrap_progress(struct tci_wrap *wrap, const struct json_t *params)
{
    const struct tci_wrap_pending *pending = tci_wrap_pending_of_server(
        wrap, json_object_get(params, "progressToken"));
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);
    struct tci_json json = { .out = &written };
    const json_t *value = json_object_get(params, "progress");
    const json_t *total = json_object_get(params, "total");
    const json_t *message = json_object_get(params, "message");

    /* It may come late: then nobody waits for it any more. */
    if (!pending || !pending->progress_token || !json_is_number(value))
        return;
    tci_json_object_begin(&json, NULL);
    tci_json_raw(&json, "progressToken", "");
    tci_mcp_write_value(&written, pending->progress_token);
    tci_json_double(&json, "progress", json_number_value(value));
    if (json_is_number(total))
        tci_json_double(&json, "total", json_number_value(total));
    if (json_is_string(message) && json_string_length(message) <= words_max)
        put_plain(&json, "message", json_string_value(message), json_string_length(message));
    tci_json_object_end(&json);
    put(wrap, "notifications/progress", &written);
}

/* ---- logs ----------------------------------------------------------------------------------- */

/* Lines stay lines, and are marked: one could look like the next message, of somebody else. */
static json_t *plain_text(const char *text, size_t length)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    const char *end = text + length, *line;
    while ((line = memchr(text, '\n', (size_t)(end - text)))) {
        tci_wrap_plain(&out, text, (size_t)(line - text));
        tci_buf_string(&out, "\n| ");
        text = line + 1;
    }
    tci_wrap_plain(&out, text, (size_t)(end - text));
    return tci_buf_check(&out, NULL) < 0 ? NULL
                                         : json_stringn(out.data ? out.data : "", out.length);
}

static json_t *plain_value(json_t *value, unsigned depth);

static json_t *plain_object(json_t *value, unsigned depth)
{
    json_t *own = json_object();
    for (void *at = json_object_iter(value); own && at; at = json_object_iter_next(value, at)) {
        const char *name = json_object_iter_key(at);
        json_t *key = plain_text(name, strlen(name));
        if (!key || json_object_set_new(own, json_string_value(key),
                                        plain_value(json_object_iter_value(at), depth)) < 0)
            json_decref(tc_take(own));
        json_decref(key);
    }
    return own;
}

/* A copy in which all texts are fit to be shown; NULL: there is none. */
static json_t *plain_value(json_t *value, unsigned depth)
{
    json_t *own;
    if (depth == 0)
        return NULL;
    if (json_is_string(value))
        return plain_text(json_string_value(value), json_string_length(value));
    if (json_is_object(value))
        return plain_object(value, depth - 1);
    if (!json_is_array(value))
        return json_incref(value);
    own = json_array();
    for (size_t i = 0; own && i < json_array_size(value); i++)
        if (json_array_append_new(own, plain_value(json_array_get(value, i), depth - 1)) < 0)
            json_decref(tc_take(own));
    return own;
}

/* By the policy's name for the server, whatever it calls itself. */
static void put_logger(struct tci_json *json, const struct tci_wrap *wrap, const json_t *logger)
{
    tc_cleanup(tci_buf_free) struct tci_buf name = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);
    tci_buf_string(&name, wrap->tool->name);
    if (json_is_string(logger) && json_string_length(logger) <= logger_max) {
        tci_buf_string(&name, ": ");
        tci_wrap_plain(&name, json_string_value(logger), json_string_length(logger));
    }
    if (tci_buf_check(&name, NULL) == 0)
        tci_json_string(json, "logger", name.data);
}

bool tci_wrap_is_level(const char *level)
{
    static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                          "error", "critical", "alert",  "emergency" };
    for (size_t i = 0; level && i < tci_array_size(levels); i++)
        if (strcmp(levels[i], level) == 0)
            return true;
    return false;
}

static void pass_log(struct tci_wrap *wrap, const char *method, const json_t *params)
{
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &written };
    const char *level = json_string_value(json_object_get(params, "level"));
    json_t *data = plain_value(json_object_get(params, "data"), notice_depth);

    if (tci_wrap_is_level(level) && data) {
        tci_json_object_begin(&json, NULL);
        tci_json_string(&json, "level", level);
        put_logger(&json, wrap, json_object_get(params, "logger"));
        tci_json_raw(&json, "data", "");
        tci_mcp_write_value(&written, data);
        tci_json_object_end(&json);
        put(wrap, method, &written);
    }
    json_decref(data);
}

/* ---- the others ----------------------------------------------------------------------------- */

void tci_wrap_pass_notice(struct tci_wrap *wrap, const char *method, const struct json_t *params)
{
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &written };
    const json_t *uri = json_object_get(params, "uri");

    if (strcmp(method, "notifications/message") == 0) {
        pass_log(wrap, method, params);
        return;
    }
    /* The address is the client's word for what it has subscribed to: as it is. */
    if (strcmp(method, "notifications/resources/updated") == 0) {
        if (!json_is_string(uri))
            return;
        tci_json_object_begin(&json, NULL);
        tci_json_raw(&json, "uri", "");
        tci_mcp_write_value(&written, uri);
        tci_json_object_end(&json);
    }
    put(wrap, method, &written);
}
