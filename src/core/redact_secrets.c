/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what counts as a secret of a value that must not be stored: strings, keys and numbers in
 * it, in the spellings in which they may come back from a tool, from the gate or in our messages.
 * Invariant: the sum of all spellings is bounded. Beyond it nothing is left out silently: too_large
 * says so, and the record is made without texts.
 */
#include "core/redact.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"

enum {
    secret_min = 4,                /* shorter ones are in every text, by chance */
    secrets_max = 2 * 1024 * 1024, /* bytes of all spellings */
    spellings_max = 16,            /* of one value; more than there are */
};

static int keep(struct tci_collector *to, const char *text, size_t length)
{
    struct tci_secrets *s = to->secrets;
    if (length < secret_min || s->too_large)
        return 0;
    /* Most values have one spelling: it is among the last ones. */
    for (size_t i = s->count; i > 0 && s->count - i < spellings_max; i--)
        if (s->items[i - 1].length == length && memcmp(s->items[i - 1].text, text, length) == 0)
            return 0;
    if (length > secrets_max - to->bytes) {
        s->too_large = true;
        return 0;
    }
    if (s->count == to->room) {
        void *items = tci_arena_grow(to->arena, s->items, s->count, sizeof *s->items, &to->room);
        if (!items)
            return -1;
        s->items = items;
    }
    text = tci_arena_strndup(to->arena, text, length);
    if (!text)
        return -1;
    s->items[s->count++] = (struct tci_secret){ text, length };
    to->bytes += length;
    return 0;
}

/* ---- strings ------------------------------------------------------------------------------ */

/* How others may write a value that they were given, besides as it is. */
enum { JSON_ESCAPES = 1, ASCII_ONLY = 2, UPPER_CASE = 4, SLASHES = 8, QUOTED = 16, POINTER = 32 };

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
    if ((style & POINTER) && (c == '~' || c == '/'))
        tci_buf_string(out, c == '~' ? "~0" : "~1");
    else if (!(style & POINTER) && (c == '"' || c == '\\' || (c == '/' && (style & SLASHES))))
        tci_buf_append(out, (char[]){ '\\', (char)c }, 2);
    else if ((style & QUOTED) && (c < 0x20 || c == 0x7f))
        tci_buf_printf(out, "\\x%02x", c);
    else if (c >= 0x20 || (style & POINTER))
        tci_buf_char(out, (char)c);
    else if (c >= 8 && c <= 13 && c != 11)
        tci_buf_append(out, (char[]){ '\\', short_escapes[c - 8] }, 2);
    else
        spell_unit(out, c, style);
}

static int keep_spelling(struct tci_collector *to, const char *text, size_t length, unsigned style)
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

/* As the gate writes the name of a host or an address: in lower case, without the last dot. */
static int keep_host(struct tci_collector *to, const char *text, size_t length)
{
    static const int families[] = { AF_INET, AF_INET6 };
    tc_cleanup(tci_buf_free) struct tci_buf lower = TCI_BUF_INIT(SIZE_MAX / 4);
    unsigned char binary[sizeof(struct in6_addr)];
    char address[INET6_ADDRSTRLEN];

    while (length > 0 && text[length - 1] == '.')
        length--;
    if (length < secret_min)
        return 0;
    for (size_t i = 0; i < length; i++)
        tci_buf_char(&lower, text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i]);
    if (tci_buf_check(&lower, NULL) < 0 || keep(to, text, length) < 0 ||
        keep(to, lower.data, length) < 0)
        return -1;
    for (size_t i = 0; i < tci_array_size(families) && length < sizeof address; i++)
        if (inet_pton(families[i], lower.data, binary) == 1 &&
            inet_ntop(families[i], binary, address, sizeof address) &&
            keep(to, address, strlen(address)) < 0)
            return -1;
    return 0;
}

/* The host of "https://user@HOST:443/path": connections are recorded with it. */
static int keep_host_of_url(struct tci_collector *to, const char *text, size_t length)
{
    const char *end = text + length, *scheme = memmem(text, length, "://", 3), *port = NULL;

    if (!scheme)
        return 0;
    text = scheme + 3;
    for (const char *p = text; p < end; p++) {
        if (*p == '/' || *p == '?' || *p == '#')
            end = p;
        else if (*p == '@')
            text = p + 1;
    }
    if (text < end && *text == '[') {
        text++;
        port = memchr(text, ']', (size_t)(end - text));
    } else {
        port = memchr(text, ':', (size_t)(end - text));
    }
    return keep_host(to, text, (size_t)((port ? port : end) - text));
}

static int keep_string(struct tci_collector *to, const char *text, size_t length)
{
    static const unsigned styles[] = {
        JSON_ESCAPES,
        JSON_ESCAPES | SLASHES,
        JSON_ESCAPES | ASCII_ONLY,
        JSON_ESCAPES | ASCII_ONLY | SLASHES,
        JSON_ESCAPES | ASCII_ONLY | UPPER_CASE,
        JSON_ESCAPES | ASCII_ONLY | UPPER_CASE | SLASHES,
        QUOTED,  /* base/quote.h */
        POINTER, /* a key in a message about a schema */
    };
    if (length < secret_min)
        return 0;
    if (keep(to, text, length) < 0 || keep_host(to, text, length) < 0 ||
        keep_host_of_url(to, text, length) < 0)
        return -1;
    for (size_t i = 0; i < tci_array_size(styles) && !to->secrets->too_large; i++)
        if (keep_spelling(to, text, length, styles[i]) < 0)
            return -1;
    return 0;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Also without its sign, which is easily parted from it. */
static int keep_number_text(struct tci_collector *to, const char *text, size_t length)
{
    if (keep(to, text, length) < 0)
        return -1;
    return length > 0 && text[0] == '-' ? keep(to, text + 1, length - 1) : 0;
}

static int note_number(struct tci_collector *to, double value)
{
    if (to->number_count == to->number_room) {
        double *numbers = tci_arena_grow(to->arena, to->numbers, to->number_count, sizeof *numbers,
                                         &to->number_room);
        if (!numbers)
            return -1;
        to->numbers = numbers;
    }
    to->numbers[to->number_count++] = value;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The next number in a text that is JSON, and its length; 0: there is none. */
static size_t next_number(const char **text)
{
    const char *p = *text;
    for (; *p && *p != '-' && (*p < '0' || *p > '9'); p++) {
        if (*p != '"')
            continue;
        for (p++; *p && *p != '"'; p++)
            p += p[0] == '\\' && p[1];
        if (!*p)
            break;
    }
    *text = p;
    return strspn(p, "+-.0123456789eE");
}

/* Of a text as it was sent, only numbers that are noted count. A comma is no decimal point here. */
static int collect_numbers(struct tci_collector *to, const char *text, bool sent)
{
    locale_t locale = newlocale(LC_NUMERIC_MASK, "C", NULL);
    size_t length;
    int r = 0;

    if (!locale)
        return -1;
    for (; r == 0 && !to->secrets->too_large && (length = next_number(&text)) > 0; text += length) {
        double value = strtod_l(text, NULL, locale);
        if (!sent)
            r = note_number(to, value);
        else if (length < secret_min ||
                 !bsearch(&value, to->numbers, to->number_count, sizeof value, compare_numbers))
            continue;
        if (r == 0)
            r = keep_number_text(to, text, length);
    }
    freelocale(locale);
    return r;
}

int tci_collect_numbers(struct tci_collector *to, const char *canonical)
{
    return collect_numbers(to, canonical, false);
}

int tci_collect_sent(struct tci_collector *to, const char *text)
{
    if (to->number_count == 0)
        return 0;
    qsort(to->numbers, to->number_count, sizeof *to->numbers, compare_numbers);
    return collect_numbers(to, text, true);
}

/* ---- values ------------------------------------------------------------------------------- */

/* Recursion is bounded by the reader's limit on depth. */
int tci_collect_strings(struct tci_collector *to, json_t *value)
{
    if (json_is_string(value))
        return keep_string(to, json_string_value(value), json_string_length(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        if (tci_collect_strings(to, json_array_get(value, i)) < 0)
            return -1;
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i)) {
        const char *key = json_object_iter_key(i);
        if (keep_string(to, key, strlen(key)) < 0 ||
            tci_collect_strings(to, json_object_iter_value(i)) < 0)
            return -1;
    }
    return 0;
}
