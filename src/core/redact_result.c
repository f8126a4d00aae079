/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the search of a result for values that must not be stored. Names of tool, agent and session, and
 * ids, are not searched: they do not come from the arguments.
 * Invariant: what is stored is as valid as before; `output` is searched string by string, since a
 * value may look like JSON's own syntax.
 */
#include "core/record.h"

#include <jansson.h>
#include <string.h>
#include "base/utf8.h"
#include "json/canonical.h"

static const char mark[] = "[redacted]";

/* Of a value that a message shows only in part, so much gives it away. */
enum { part_min = 4 };

static void decref(json_t **value)
{
    json_decref(*value);
}

struct search {
    struct tci_arena *arena;
    const struct tci_secrets *secrets;
    bool first[256]; /* bytes with which a secret begins */
    bool no_memory;
};

static size_t common_length(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t n = 0;
    while (n < a_length && n < b_length && a[n] == b[n])
        n++;
    return n;
}

/* Was the text cut behind these bytes: at its own end, or by base/quote.h? */
static bool is_cut(const char *rest, size_t length, bool cut_at_end)
{
    static const char quote[] = "...\"";
    return length == 0 ? cut_at_end
                       : length >= sizeof quote - 1 && memcmp(rest, quote, sizeof quote - 1) == 0;
}

/* How many bytes here belong to a secret. */
static size_t match(const struct search *search, const char *text, size_t length, bool cut_at_end)
{
    if (!search->first[(unsigned char)text[0]])
        return 0;
    for (size_t i = 0; i < search->secrets->count; i++) {
        const struct tci_secret *secret = &search->secrets->items[i];
        size_t n = common_length(text, length, secret->text, secret->length);
        if (n == secret->length || (n >= part_min && is_cut(text + n, length - n, cut_at_end)))
            return n;
    }
    return 0;
}

/* The text without secrets: itself if it has none. */
static const char *clean(struct search *search, const char *text, size_t *length, bool cut_at_end)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    size_t from = 0, i = 0, n;
    const char *copy;

    while (i < *length) {
        n = match(search, text + i, *length - i, cut_at_end);
        if (n) {
            tci_buf_append(&out, text + from, i - from);
            tci_buf_string(&out, mark);
            from = i + n;
        }
        i += n ? n : 1;
    }
    if (from == 0)
        return text;
    tci_buf_append(&out, text + from, *length - from);
    copy = out.no_memory ? NULL : tci_arena_strndup(search->arena, out.data, out.length);
    if (!copy) {
        search->no_memory = true;
        return text;
    }
    *length = out.length;
    return copy;
}

static const char *clean_text(struct search *search, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    return text ? clean(search, text, &length, false) : NULL;
}

/* A field of fixed size: it may have been cut there. */
static void clean_field(struct search *search, char *field, size_t size)
{
    size_t length = strlen(field);
    const char *text = clean(search, field, &length, true);
    uint32_t code_point;
    size_t n = 0, step;

    if (text == field)
        return;
    while (n < length && (step = tci_utf8_decode(text + n, length - n, &code_point)) != 0 &&
           n + step < size)
        n += step;
    memcpy(field, text, n);
    field[n] = '\0';
}

static void clean_files(struct search *search, struct tc_result *result)
{
    struct tc_file *files = tci_arena_new_array(search->arena, result->file_count, struct tc_file);
    if (!files) {
        search->no_memory = true;
        return;
    }
    for (size_t i = 0; i < result->file_count; i++) {
        files[i] = result->files[i];
        files[i].path = clean_text(search, files[i].path);
        files[i].saved = clean_text(search, files[i].saved);
    }
    result->files = files;
}

static void clean_denials(struct search *search, struct tc_result *result)
{
    struct tc_denial *denials = tci_arena_new_array(search->arena, result->denial_count,
                                                    struct tc_denial);
    if (!denials) {
        search->no_memory = true;
        return;
    }
    for (size_t i = 0; i < result->denial_count; i++) {
        denials[i] = result->denials[i];
        denials[i].target = clean_text(search, denials[i].target);
        denials[i].rule = clean_text(search, denials[i].rule);
    }
    result->denials = denials;
}

static void clean_connections(struct search *search, struct tc_result *result)
{
    struct tc_connection *list = tci_arena_new_array(search->arena, result->connection_count,
                                                     struct tc_connection);
    if (!list) {
        search->no_memory = true;
        return;
    }
    for (size_t i = 0; i < result->connection_count; i++) {
        list[i] = result->connections[i];
        list[i].name = clean_text(search, list[i].name);
        list[i].rule = clean_text(search, list[i].rule);
        list[i].note = clean_text(search, list[i].note);
        list[i].error = clean_text(search, list[i].error);
    }
    result->connections = list;
}

/* ---- output ------------------------------------------------------------------------------- */

/* A new value without secrets, in keys neither; NULL without memory. */
static json_t *clean_value(struct search *search, json_t *value)
{
    json_t *copy;

    if (json_is_string(value)) {
        size_t length = json_string_length(value);
        const char *text = clean(search, json_string_value(value), &length, false);
        return json_stringn(text, length);
    }
    if (!json_is_array(value) && !json_is_object(value))
        return json_incref(value);
    copy = json_is_array(value) ? json_array() : json_object();
    for (size_t i = 0; i < json_array_size(value); i++)
        if (json_array_append_new(copy, clean_value(search, json_array_get(value, i))) < 0)
            search->no_memory = true;
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i))
        if (json_object_set_new(copy, clean_text(search, json_object_iter_key(i)),
                                clean_value(search, json_object_iter_value(i))) < 0)
            search->no_memory = true;
    return copy;
}

static void clean_output(struct search *search, struct tc_result *result)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    tc_cleanup(decref) json_t *value = NULL, *copy = NULL;

    value = tci_json_read(result->output_json, strlen(result->output_json), NULL);
    copy = value ? clean_value(search, value) : NULL;
    if (!copy || tci_json_canonical_value(search->arena, &out, copy) < 0 || out.no_memory ||
        !(result->output_json = tci_arena_strndup(search->arena, out.data, out.length)))
        search->no_memory = true;
}

int tci_redact_result(struct tci_arena *arena, const struct tc_result *result,
                      const struct tci_secrets *secrets, struct tc_result *ret,
                      struct tc_error *reterr)
{
    struct search search = { .arena = arena, .secrets = secrets };

    *ret = *result;
    for (size_t i = 0; i < secrets->count; i++)
        search.first[(unsigned char)secrets->items[i].text[0]] = true;
    clean_field(&search, ret->reason, sizeof ret->reason);
    clean_field(&search, ret->fix, sizeof ret->fix);
    ret->stdout_data = clean(&search, ret->stdout_data, &ret->stdout_length,
                             result->stdout_truncated);
    ret->stderr_data = clean(&search, ret->stderr_data, &ret->stderr_length,
                             result->stderr_truncated);
    clean_files(&search, ret);
    clean_denials(&search, ret);
    clean_connections(&search, ret);
    if (ret->output_json)
        clean_output(&search, ret);
    return search.no_memory ? tci_error_no_memory(reterr) : 0;
}
