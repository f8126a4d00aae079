/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a person sees of a question that the wrapped server asks (`features` names elicitation).
 * The attack: words that clear the screen, hide or reorder what is around them, or look like a question of ours,
 * so that the person says yes to something else.
 */
#include "mcp/wrap_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include "base/utf8.h"

enum { form_depth = 16 };

void tci_wrap_plain(struct tci_buf *out, const char *text, size_t length)
{
    uint32_t c = 0;
    for (size_t i = 0, size; i < length; i += size) {
        size = tci_utf8_decode(text + i, length - i, &c);
        if (size && tci_utf8_is_plain(c)) {
            tci_buf_append(out, text + i, size);
            continue;
        }
        tci_buf_printf(out, "\\u{%" PRIx32 "}", size ? c : (unsigned char)text[i]);
        size = size ? size : 1;
    }
}

/* A person must see who asks: the server could use our own words for "may it run?", or push ours out of sight.
 * So its lines are marked, each of them, and empty ones are left out. */
static json_t *named_message(const struct tci_wrap *wrap, const json_t *message)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    const char *text = json_string_value(message), *end;
    tci_buf_printf(
        &out, "The MCP server \"%s\" asks (this is no question of toolcage's):", wrap->tool->name);
    for (; text && *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        if (strspn(text, " \t\r") >= (size_t)(end - text))
            continue;
        tci_buf_string(&out, "\n| ");
        tci_wrap_plain(&out, text, (size_t)(end - text));
    }
    return tci_buf_check(&out, NULL) < 0 ? NULL : json_stringn(out.data, out.length);
}

static bool make_plain(json_t *value, bool is_shown, unsigned depth);

static bool make_plain_text(json_t *value, bool is_shown)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tci_wrap_plain(&out, json_string_value(value), json_string_length(value));
    if (tci_buf_check(&out, NULL) < 0)
        return false;
    if (out.length == json_string_length(value)) /* an escape is longer */
        return true;
    return is_shown && json_string_setn(value, out.data, out.length) == 0;
}

static bool make_plain_members(json_t *object, unsigned depth)
{
    static const char *const shown[] = { "title", "description", "enumNames" };
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        json_t *name = json_string(json_object_iter_key(at));
        bool is_shown = false, is_good = name && make_plain_text(name, false);
        for (size_t i = 0; i < tci_array_size(shown); i++)
            is_shown |= strcmp(json_object_iter_key(at), shown[i]) == 0;
        json_decref(name);
        if (!is_good || !make_plain(json_object_iter_value(at), is_shown, depth + 1))
            return false;
    }
    return true;
}

/* The same for a form. What an answer is made of (names, values) cannot be written otherwise: false: there are
 * such characters in it. */
static bool make_plain(json_t *value, bool is_shown, unsigned depth)
{
    if (depth > form_depth)
        return false;
    if (json_is_string(value))
        return make_plain_text(value, is_shown);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!make_plain(json_array_get(value, i), is_shown, depth + 1))
            return false;
    return !json_is_object(value) || make_plain_members(value, depth);
}

bool tci_wrap_form(const struct tci_wrap *wrap, struct json_t *params)
{
    json_t *schema = json_deep_copy(json_object_get(params, "requestedSchema"));
    bool is_good = !schema || make_plain(schema, false, 0);
    if (schema)
        is_good &= json_object_set_new(params, "requestedSchema", schema) == 0;
    return json_object_set_new(params, "message",
                               named_message(wrap, json_object_get(params, "message"))) == 0 &&
           is_good;
}
