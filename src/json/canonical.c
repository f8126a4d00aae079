/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: RFC 8785. jansson reads (strict UTF-8, depth bounded by it), the writer escapes.
 * The order of keys is by UTF-16 code units, as the RFC wants, which differs from the order of the
 * UTF-8 bytes for characters beyond U+FFFF.
 */
#include "json/canonical.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/utf8.h"
#include "json/number.h"

enum { canonical_max = 16 * 1024 * 1024 };

/* Every number is a double, as the RFC has it: otherwise 2^62 and 2^62 written with a point would
 * be two texts, and 1e19 would become digits that do not fit an integer and cannot be read back. */
static const size_t read_flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL;

static void decref(json_t **value)
{
    json_decref(*value);
}

/* The UTF-16 code unit by which a code point sorts against others: its first one. */
static uint32_t sort_unit(uint32_t code_point)
{
    return code_point < 0x10000 ? code_point : 0xd800 + ((code_point - 0x10000) >> 10);
}

int tci_json_compare_keys(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    /* Back to the start of the character in which they differ. */
    while ((*x & 0xc0) == 0x80 || (*y & 0xc0) == 0x80) {
        x--;
        y--;
    }
    uint32_t c = 0, d = 0;
    tci_utf8_decode(x, strlen(x), &c);
    tci_utf8_decode(y, strlen(y), &d);
    if (sort_unit(c) != sort_unit(d))
        return sort_unit(c) < sort_unit(d) ? -1 : 1;
    return c < d ? -1 : c > d;
}

/* RFC 8785's escapes: only what must be escaped, and in one way. */
void tci_json_canonical_string(struct tci_buf *out, const char *text, size_t length)
{
    static const char short_escapes[] = "btn\0fr";
    size_t plain_from = 0, i;

    tci_buf_char(out, '"');
    for (i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        tci_buf_append(out, text + plain_from, i - plain_from);
        if (c >= 0x20)
            tci_buf_append(out, (char[]){ '\\', (char)c }, 2);
        else if (c >= 8 && c <= 13 && c != 11)
            tci_buf_append(out, (char[]){ '\\', short_escapes[c - 8] }, 2);
        else
            tci_buf_printf(out, "\\u%04x", c);
        plain_from = i + 1;
    }
    tci_buf_append(out, text + plain_from, i - plain_from);
    tci_buf_char(out, '"');
}

static int write_value(struct tci_arena *arena, struct tci_buf *out, json_t *value);

static int write_object(struct tci_arena *arena, struct tci_buf *out, json_t *object)
{
    const char **keys = tci_arena_new_array(arena, json_object_size(object), const char *);
    size_t count = 0;
    if (!keys)
        return -1;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        keys[count++] = json_object_iter_key(i);
    qsort(keys, count, sizeof *keys, tci_json_compare_keys);
    tci_buf_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i)
            tci_buf_char(out, ',');
        tci_json_canonical_string(out, keys[i], strlen(keys[i]));
        tci_buf_char(out, ':');
        if (write_value(arena, out, json_object_get(object, keys[i])) < 0)
            return -1;
    }
    tci_buf_char(out, '}');
    return 0;
}

static int write_array(struct tci_arena *arena, struct tci_buf *out, json_t *array)
{
    tci_buf_char(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i)
            tci_buf_char(out, ',');
        if (write_value(arena, out, json_array_get(array, i)) < 0)
            return -1;
    }
    tci_buf_char(out, ']');
    return 0;
}

/* Recursion is bounded by jansson's own limit on depth. */
static int write_value(struct tci_arena *arena, struct tci_buf *out, json_t *value)
{
    char number[TCI_JSON_NUMBER_MAX];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return write_object(arena, out, value);
    case JSON_ARRAY:
        return write_array(arena, out, value);
    case JSON_STRING:
        tci_json_canonical_string(out, json_string_value(value), json_string_length(value));
        return 0;
    case JSON_INTEGER: /* not with these flags */
    case JSON_REAL:
        tci_buf_string(out, tci_json_number(json_number_value(value), number));
        return 0;
    case JSON_TRUE:
        tci_buf_string(out, "true");
        return 0;
    case JSON_FALSE:
        tci_buf_string(out, "false");
        return 0;
    case JSON_NULL:
        tci_buf_string(out, "null");
        return 0;
    }
    return -1;
}

static int bad_json(const json_error_t *error, struct tc_error *reterr)
{
    /* jansson seldom says that memory ran out: then it names no reason, or blames the text. */
    if (errno == ENOMEM || !error->text[0] || json_error_code(error) == json_error_out_of_memory)
        return tci_error_no_memory(reterr);
    tci_error_set(reterr, TC_ERROR_SYNTAX, "%s", error->text);
    tci_error_place(reterr, NULL, (unsigned)error->line, (unsigned)error->column);
    return -1;
}

static json_t *load(const char *text, size_t length, json_error_t *error)
{
    errno = 0;
    return json_loadb(text, length, read_flags, error);
}

/*
 * jansson's lexer does not look whether its buffer could grow: when memory runs out inside a token,
 * it goes on without that character, and "/work/project" is read as "/work/proect". So everything
 * is read twice, and two readings that differ are no reading.
 */
json_t *tci_json_read(const char *text, size_t length, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *value = NULL, *again = NULL;
    json_error_t error;

    value = load(text, length, &error);
    if (!value) {
        bad_json(&error, reterr);
        return NULL;
    }
    again = load(text, length, &error);
    if (!again || !json_equal(value, again)) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    return tc_take(value);
}

json_t *tci_json_read_canonical(struct tci_arena *arena, const char *text, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(canonical_max);
    tc_cleanup(decref) json_t *value = NULL;
    json_error_t error;

    value = load(text, strlen(text), &error);
    if (!value) {
        bad_json(&error, reterr);
        return NULL;
    }
    if (write_value(arena, &out, value) < 0 || tci_buf_check(&out, NULL) < 0 ||
        strcmp(out.data, text) != 0) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    return tc_take(value);
}

int tci_json_canonical(struct tci_arena *arena, const char *text, size_t length,
                       const char **ret_text, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(canonical_max);
    tc_cleanup(decref) json_t *value = tci_json_read(text, length, reterr);
    const char *copy;

    if (!value)
        return -1;
    if (write_value(arena, &out, value) < 0)
        return tci_error_no_memory(reterr);
    if (tci_buf_check(&out, reterr) < 0)
        return -1;
    copy = tci_arena_strndup(arena, out.data, out.length);
    if (!copy)
        return tci_error_no_memory(reterr);
    *ret_text = copy;
    return 0;
}

int tci_json_canonical_value(struct tci_arena *arena, struct tci_buf *out, json_t *value)
{
    return write_value(arena, out, value);
}
