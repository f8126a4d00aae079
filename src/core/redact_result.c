/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the search of a result for values that must not be stored. Names of tool, agent and session, and
 * ids, are not searched: they do not come from the arguments.
 * Invariant: what is stored is as valid as before; `output` is searched string by string, since a
 * value may look like JSON's own syntax.
 */
#include "core/redact.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "json/canonical.h"
#include "json/number.h"

static const char mark[] = "[redacted]";

/* Of a value that is shown only in part, so much gives it away: where the text says that it was
 * cut, and where it does not. */
enum { part_min = 4, unmarked_part_min = 8 };

struct search {
    struct tci_arena *arena;
    struct tci_search *secrets;
    bool no_memory;
};

enum {
    CUT_AT_END = 1,
    MESSAGE = 2, /* of ours: it may show a part of a value anywhere */
};

static void decref(json_t **value)
{
    json_decref(*value);
}

/* Was the text cut behind these bytes: at its end, by base/quote.h, by the reader of JSON? */
static bool is_cut(const char *rest, size_t length, unsigned flags)
{
    static const char quote[] = "...\"";
    if (length == 0)
        return flags & CUT_AT_END;
    return (length >= sizeof quote - 1 && memcmp(rest, quote, sizeof quote - 1) == 0) ||
           ((flags & MESSAGE) && rest[0] == '\'');
}

/* How many bytes before `rest` belong to a secret. */
static uint32_t found_before(const struct search *search, uint32_t state, const char *rest,
                             size_t length, unsigned flags)
{
    uint32_t part = tci_search_part(search->secrets, state);
    if (part >= ((flags & MESSAGE) ? unmarked_part_min : UINT32_MAX) ||
        (part >= part_min && is_cut(rest, length, flags)))
        return part;
    return tci_search_whole(search->secrets, state);
}

/* For each byte, how many bytes up to it belong to a secret that ends there; NULL: none does. */
static uint32_t *find(struct search *search, const char *text, size_t length, unsigned flags)
{
    uint32_t *ends = NULL, state = 0, found;
    for (size_t i = 0; i < length; i++) {
        state = tci_search_step(search->secrets, state, (unsigned char)text[i]);
        if (!state)
            continue;
        found = found_before(search, state, text + i + 1, length - i - 1, flags);
        if (found && !ends && !(ends = calloc(length, sizeof *ends))) {
            search->no_memory = true;
            return NULL;
        }
        if (found)
            ends[i] = found;
    }
    return ends;
}

/* The text without secrets: itself if it has none. Every byte that any secret covers goes, so that
 * two that overlap leave nothing of each other; what goes in one piece becomes one mark. */
static const char *clean(struct search *search, const char *text, size_t *length, unsigned flags)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    uint32_t *ends = find(search, text, *length, flags), covered = 0;
    const char *copy;

    if (!ends)
        return text;
    for (size_t i = *length; i-- > 0;) { /* from now on: is this byte covered? */
        covered = ends[i] > covered ? ends[i] : covered;
        ends[i] = covered;
        covered -= covered > 0;
    }
    for (size_t i = 0, n; i < *length; i += n) {
        for (n = 1; i + n < *length && !ends[i + n] == !ends[i];)
            n++;
        tci_buf_append(&out, ends[i] ? mark : text + i, ends[i] ? sizeof mark - 1 : n);
    }
    free(ends);
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
    return text ? clean(search, text, &length, 0) : NULL;
}

/* A field of fixed size: it may have been cut there. */
static void clean_field(struct search *search, char *field, size_t size)
{
    size_t length = strlen(field);
    const char *text = clean(search, field, &length, CUT_AT_END | MESSAGE);
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
        list[i].address = clean_text(search, list[i].address);
        list[i].name = clean_text(search, list[i].name);
        list[i].rule = clean_text(search, list[i].rule);
        list[i].note = clean_text(search, list[i].note);
        list[i].error = clean_text(search, list[i].error);
    }
    result->connections = list;
}

/* ---- output ------------------------------------------------------------------------------- */

/* A number that is a secret, or has one in its digits, becomes a text. */
static json_t *clean_number(struct search *search, json_t *value)
{
    char number[TCI_JSON_NUMBER_MAX];
    size_t length = strlen(tci_json_number(json_number_value(value), number));
    const char *text = clean(search, number, &length, 0);
    return text == number ? json_incref(value) : json_stringn(text, length);
}

/* A new value without secrets, in keys neither; NULL without memory. */
static json_t *clean_value(struct search *search, json_t *value)
{
    json_t *copy;

    if (json_is_string(value)) {
        size_t length = json_string_length(value);
        const char *text = clean(search, json_string_value(value), &length, 0);
        return json_stringn(text, length);
    }
    if (json_is_number(value))
        return clean_number(search, value);
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

/* ---- the result --------------------------------------------------------------------------- */

/* A path that was cut at its front, "arguments...EY must be": this may be the end of a secret. */
static bool shows_an_end(const char *reason)
{
    for (const char *cut = reason; (cut = strstr(cut, "...")) != NULL; cut += 3)
        if (cut > reason && cut[-1] != ' ' && cut[3] && cut[3] != '"')
            return true;
    return false;
}

static void hide_reason(struct tc_result *result, const char *why)
{
    (void)snprintf(result->reason, sizeof result->reason, "the reason is not recorded: %s", why);
    (void)snprintf(result->fix, sizeof result->fix, "make the call again without replay to see it");
}

/* Only its hash will be stored; nor must that be one of secrets, which could be guessed. */
static void hide_all(struct tc_result *result)
{
    if (result->reason[0])
        hide_reason(result, "the values that \"redact\" names are too large");
    result->stdout_data = result->stderr_data = "";
    result->stdout_length = result->stderr_length = 0;
    result->file_count = result->denial_count = result->connection_count = 0;
    result->output_json = NULL;
}

static void clean_result(struct search *search, struct tc_result *result)
{
    bool contract = result->verdict == TC_VERDICT_INVALID_INPUT ||
                    result->verdict == TC_VERDICT_INVALID_OUTPUT;

    if (contract && shows_an_end(result->reason))
        hide_reason(result, "the tool has \"redact\", and the reason was cut");
    clean_field(search, result->reason, sizeof result->reason);
    clean_field(search, result->fix, sizeof result->fix);
    result->layers = clean_text(search, result->layers);
    result->stdout_data = clean(search, result->stdout_data, &result->stdout_length,
                                result->stdout_truncated ? CUT_AT_END : 0);
    result->stderr_data = clean(search, result->stderr_data, &result->stderr_length,
                                result->stderr_truncated ? CUT_AT_END : 0);
    clean_files(search, result);
    clean_denials(search, result);
    clean_connections(search, result);
    if (result->output_json)
        clean_output(search, result);
}

int tci_redact_result(struct tci_arena *arena, const struct tc_result *result,
                      const struct tci_secrets *secrets, struct tc_result *ret,
                      struct tc_error *reterr)
{
    struct search search = { .arena = arena };

    *ret = *result;
    if (secrets->too_large) {
        hide_all(ret);
        return 0;
    }
    /* The reader of JSON shows the place of an error, and with it what stands there. */
    if (secrets->unread && result->verdict != TC_VERDICT_DENIED)
        hide_reason(ret, "the arguments could not be read, and the tool has \"redact\"");
    if (!secrets->count)
        return 0;
    search.secrets = tci_search_new(secrets);
    if (!search.secrets)
        return tci_error_no_memory(reterr);
    clean_result(&search, ret);
    tci_search_free(search.secrets);
    return search.no_memory ? tci_error_no_memory(reterr) : 0;
}
