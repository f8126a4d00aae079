/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: values of arguments that a journal must not hold: found by JSON pointer (RFC 6901), replaced by
 * their salted hash, and remembered as secrets, so that the result can be searched for them.
 * The attack that it stops: somebody who reads a journal, or a copy of it, learns a password that a
 * tool was called with. What a tool makes of a value (its base64, its reverse) is not found.
 */
#include "core/record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "json/canonical.h"

/* Shorter ones are in every text, by chance. */
enum { secret_min = 4 };

static void decref(json_t **value)
{
    json_decref(*value);
}

void tci_redact_hash(const unsigned char *salt, const char *text, size_t length,
                     char ret[TCI_SHA256_TEXT_MAX])
{
    struct tci_sha256 hash;
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, salt, 32);
    tci_sha256_add(&hash, text, length);
    tci_sha256_end_text(&hash, ret);
}

/* ---- pointers ----------------------------------------------------------------------------- */

/* The next part of a pointer, unescaped. False: it is not a pointer. */
static bool next_part(struct tci_buf *part, const char **pointer)
{
    const char *p = *pointer;
    part->length = 0;
    tci_buf_append(part, "", 0);
    if (*p++ != '/')
        return false;
    for (; *p && *p != '/'; p++) {
        if (*p == '~' && (p[1] == '0' || p[1] == '1'))
            tci_buf_char(part, *++p == '0' ? '~' : '/');
        else
            tci_buf_char(part, *p);
    }
    *pointer = p;
    return true;
}

/* "0", "17": no sign, no leading zero. "-" is the place behind the last one, where nothing is. */
static bool index_of(const char *text, size_t *ret)
{
    size_t value = 0, digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] || (text[0] == '0' && digits > 1))
        return false;
    for (; *text; text++)
        value = value * 10 + (size_t)(*text - '0');
    *ret = value;
    return true;
}

static json_t *child_of(const json_t *value, const char *name)
{
    size_t index;
    if (json_is_object(value))
        return json_object_get(value, name);
    return json_is_array(value) && index_of(name, &index) ? json_array_get(value, index) : NULL;
}

/* Puts `new` in place of what the pointer names, if that is there. Takes `new` over. */
static int replace(json_t **root, const char *pointer, json_t *new)
{
    tc_cleanup(tci_buf_free) struct tci_buf part = TCI_BUF_INIT(SIZE_MAX / 4);
    tc_cleanup(decref) json_t *owned = new;
    json_t *at = *root, *next;
    size_t index;

    if (!new)
        return -1;
    if (!*pointer) {
        json_decref(*root);
        *root = tc_take(owned);
        return 0;
    }
    while (*pointer) {
        if (!next_part(&part, &pointer) || tci_buf_check(&part, NULL) < 0)
            return part.no_memory ? -1 : 0;
        next = child_of(at, part.data);
        if (!next)
            return 0;
        if (*pointer)
            at = next;
    }
    if (json_is_object(at))
        return json_object_set(at, part.data, owned);
    return index_of(part.data, &index) ? json_array_set(at, index, owned) : 0;
}

static int resolve(json_t *root, const char *pointer, json_t **ret)
{
    tc_cleanup(tci_buf_free) struct tci_buf part = TCI_BUF_INIT(SIZE_MAX / 4);
    while (root && *pointer) {
        if (!next_part(&part, &pointer))
            root = NULL;
        else if (tci_buf_check(&part, NULL) < 0)
            return -1;
        else
            root = child_of(root, part.data);
    }
    *ret = root;
    return 0;
}

/* ---- secrets ------------------------------------------------------------------------------ */

struct collector {
    struct tci_arena *arena;
    struct tci_secrets *secrets;
    size_t room;
};

static int keep(struct collector *to, const char *text, size_t length)
{
    struct tci_secrets *s = to->secrets;
    if (length < secret_min)
        return 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].length == length && memcmp(s->items[i].text, text, length) == 0)
            return 0;
    if (s->count == to->room) {
        size_t room = to->room ? 2 * to->room : 16;
        struct tci_secret *items = tci_arena_new_array(to->arena, room, struct tci_secret);
        if (!items)
            return -1;
        if (s->count)
            memcpy(items, s->items, s->count * sizeof *items);
        s->items = items;
        to->room = room;
    }
    text = tci_arena_strndup(to->arena, text, length);
    if (!text)
        return -1;
    s->items[s->count++] = (struct tci_secret){ text, length };
    return 0;
}

/* How others may write a value that they were given, besides as it is. */
enum { JSON_ESCAPES = 1, ASCII_ONLY = 2, UPPER_CASE = 4, SLASHES = 8, QUOTED = 16 };

static void spell_unit(struct tci_buf *out, uint32_t unit, unsigned style)
{
    if (style & UPPER_CASE)
        tci_buf_printf(out, "\\u%04X", unit);
    else
        tci_buf_printf(out, "\\u%04x", unit);
}

static void spell_wide(struct tci_buf *out, const char *text, size_t size, uint32_t code_point,
                       unsigned style)
{
    if (style & QUOTED) {
        for (size_t i = 0; i < size; i++)
            tci_buf_printf(out, "\\x%02x", (unsigned char)text[i]);
    } else if (!(style & ASCII_ONLY)) {
        tci_buf_append(out, text, size);
    } else if (code_point < 0x10000) {
        spell_unit(out, code_point, style);
    } else {
        spell_unit(out, 0xd800 + ((code_point - 0x10000) >> 10), style);
        spell_unit(out, 0xdc00 + ((code_point - 0x10000) & 0x3ff), style);
    }
}

static void spell_byte(struct tci_buf *out, unsigned char c, unsigned style)
{
    static const char short_escapes[] = "btn\0fr";
    if (c == '"' || c == '\\' || (c == '/' && (style & SLASHES)))
        tci_buf_append(out, (char[]){ '\\', (char)c }, 2);
    else if ((style & QUOTED) && (c < 0x20 || c == 0x7f))
        tci_buf_printf(out, "\\x%02x", c);
    else if (c >= 0x20)
        tci_buf_char(out, (char)c);
    else if (c >= 8 && c <= 13 && c != 11)
        tci_buf_append(out, (char[]){ '\\', short_escapes[c - 8] }, 2);
    else
        spell_unit(out, c, style);
}

static int keep_spelling(struct collector *to, const char *text, size_t length, unsigned style)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    for (size_t i = 0; i < length;) {
        uint32_t code_point;
        size_t size = tci_utf8_decode(text + i, length - i, &code_point);
        if (size > 1)
            spell_wide(&out, text + i, size, code_point, style);
        else
            spell_byte(&out, (unsigned char)text[i], style);
        i += size ? size : 1;
    }
    return tci_buf_check(&out, NULL) < 0 ? -1 : keep(to, out.data, out.length);
}

static int keep_string(struct collector *to, const char *text, size_t length)
{
    static const unsigned styles[] = {
        JSON_ESCAPES,
        JSON_ESCAPES | SLASHES,
        JSON_ESCAPES | ASCII_ONLY,
        JSON_ESCAPES | ASCII_ONLY | SLASHES,
        JSON_ESCAPES | ASCII_ONLY | UPPER_CASE,
        JSON_ESCAPES | ASCII_ONLY | UPPER_CASE | SLASHES,
        QUOTED, /* base/quote.h */
    };
    if (length < secret_min)
        return 0;
    if (keep(to, text, length) < 0)
        return -1;
    for (size_t i = 0; i < tci_array_size(styles); i++)
        if (keep_spelling(to, text, length, styles[i]) < 0)
            return -1;
    return 0;
}

/* Every string in a value. Recursion is bounded by the reader's limit on depth. */
static int keep_strings(struct collector *to, json_t *value)
{
    if (json_is_string(value))
        return keep_string(to, json_string_value(value), json_string_length(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        if (keep_strings(to, json_array_get(value, i)) < 0)
            return -1;
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i))
        if (keep_strings(to, json_object_iter_value(i)) < 0)
            return -1;
    return 0;
}

static int longest_first(const void *a, const void *b)
{
    const struct tci_secret *x = a, *y = b;
    return x->length < y->length ? 1 : x->length > y->length ? -1 : 0;
}

/* ---- arguments ---------------------------------------------------------------------------- */

/* Hash and secrets are those of the value as it was given, also where another pointer leads into it. */
static int redact_one(struct collector *to, json_t *original, json_t **copy, const char *pointer,
                      const unsigned char *salt)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(SIZE_MAX / 4);
    char hash[TCI_SHA256_TEXT_MAX], marked[sizeof "sha256:" + TCI_SHA256_TEXT_MAX];
    json_t *value;

    if (resolve(original, pointer, &value) < 0)
        return -1;
    if (!value)
        return 0;
    if (tci_json_canonical_value(to->arena, &text, value) < 0 || tci_buf_check(&text, NULL) < 0 ||
        keep_strings(to, value) < 0)
        return -1;
    tci_redact_hash(salt, text.data, text.length, hash);
    (void)snprintf(marked, sizeof marked, "sha256:%s", hash);
    return replace(copy, pointer, json_pack("{s:s}", "redacted", marked));
}

int tci_redact_arguments(struct tci_arena *arena, const json_t *arguments,
                         const struct tci_strings *pointers, const unsigned char *salt,
                         struct tci_buf *out, struct tci_secrets *ret, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *copy = json_deep_copy(arguments);
    tc_cleanup(decref) json_t *original = json_incref((json_t *)(uintptr_t)arguments);
    struct collector to = { .arena = arena, .secrets = ret };

    if (!copy)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < pointers->count; i++)
        if (redact_one(&to, original, &copy, pointers->items[i].text, salt) < 0)
            return tci_error_no_memory(reterr);
    if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, longest_first);
    if (tci_json_canonical_value(arena, out, copy) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}
