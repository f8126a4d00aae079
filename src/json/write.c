/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: JSON syntax on the way out. Invariant: what was written so far is a prefix of valid JSON. */
#include "json/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "json/number.h"

static void new_line(struct tci_json *json)
{
    if (!json->pretty)
        return;
    tci_buf_char(json->out, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        tci_buf_append(json->out, "  ", 2);
}

/* \uXXXX; beyond U+FFFF JSON wants a pair of surrogates, TOML one long escape. */
static void write_escape(struct tci_buf *out, enum tci_syntax syntax, uint32_t code_point)
{
    static const char digits[] = "0123456789abcdef";
    /* A tool may print megabytes of controls: this is as fast as other text. */
    if (code_point < 0x10000)
        tci_buf_append(out,
                       (char[]){ '\\', 'u', digits[code_point >> 12], digits[code_point >> 8 & 15],
                                 digits[code_point >> 4 & 15], digits[code_point & 15] },
                       6);
    else if (syntax == TCI_SYNTAX_TOML)
        tci_buf_printf(out, "\\U%08" PRIx32, code_point);
    else
        tci_buf_printf(out, "\\u%04" PRIx32 "\\u%04" PRIx32,
                       0xd800 + ((code_point - 0x10000) >> 10),
                       0xdc00 + ((code_point - 0x10000) & 0x3ff));
}

static void write_string(struct tci_buf *out, enum tci_syntax syntax, const char *value,
                         size_t length)
{
    size_t plain_from = 0, i = 0;

    tci_buf_char(out, '"');
    while (i < length) {
        unsigned char c = (unsigned char)value[i];
        uint32_t code_point;
        size_t size;
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            i++;
            continue;
        }
        size = tci_utf8_decode(value + i, length - i, &code_point);
        /* Terminals act on C1 controls and DEL, and people are deceived by what they cannot see.
         * U+FFFD has one spelling, wherever it comes from: what is read back gives the same bytes. */
        if (size > 1 && code_point > 0x9f && code_point != 0xfffd &&
            !tci_utf8_is_deceptive(code_point)) {
            i += size;
            continue;
        }
        tci_buf_append(out, value + plain_from, i - plain_from);
        if (size == 0)
            tci_buf_string(out, "\\ufffd");
        else if (c == '"' || c == '\\')
            tci_buf_append(out, (char[]){ '\\', (char)c }, 2);
        else if (c == '\n')
            tci_buf_append(out, "\\n", 2);
        else if (c == '\t')
            tci_buf_append(out, "\\t", 2);
        else if (c == '\r')
            tci_buf_append(out, "\\r", 2);
        else
            write_escape(out, syntax, code_point);
        i += size ? size : 1;
        plain_from = i;
    }
    tci_buf_append(out, value + plain_from, i - plain_from);
    tci_buf_char(out, '"');
}

static bool is_bare_key(const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    return *key && !key[strspn(key, allowed)];
}

static void write_key(struct tci_json *json, const char *key)
{
    if (json->syntax == TCI_SYNTAX_TOML) {
        if (is_bare_key(key))
            tci_buf_string(json->out, key);
        else
            write_string(json->out, json->syntax, key, strlen(key));
        tci_buf_string(json->out, " = ");
        return;
    }
    write_string(json->out, json->syntax, key, strlen(key));
    tci_buf_string(json->out, json->pretty ? ": " : ":");
}

/* Everything that stands before a value: comma, line break, key. */
static void begin_value(struct tci_json *json, const char *key)
{
    if (json->after_value)
        tci_buf_string(json->out, json->syntax == TCI_SYNTAX_TOML ? ", " : ",");
    if (json->depth)
        new_line(json);
    if (key)
        write_key(json, key);
    json->after_value = true;
}

static void begin_container(struct tci_json *json, const char *key, char open)
{
    begin_value(json, key);
    tci_buf_char(json->out, open);
    if (json->syntax == TCI_SYNTAX_TOML && open == '{')
        tci_buf_char(json->out, ' ');
    json->depth++;
    json->after_value = false;
}

static void end_container(struct tci_json *json, char close)
{
    json->depth--;
    if (json->after_value)
        new_line(json);
    if (json->syntax == TCI_SYNTAX_TOML && close == '}')
        tci_buf_char(json->out, ' ');
    tci_buf_char(json->out, close);
    json->after_value = true;
}

void tci_json_object_begin(struct tci_json *json, const char *key)
{
    begin_container(json, key, '{');
}

void tci_json_object_end(struct tci_json *json)
{
    end_container(json, '}');
}

void tci_json_array_begin(struct tci_json *json, const char *key)
{
    begin_container(json, key, '[');
}

void tci_json_array_end(struct tci_json *json)
{
    end_container(json, ']');
}

void tci_json_bytes(struct tci_json *json, const char *key, const char *value, size_t length)
{
    begin_value(json, key);
    write_string(json->out, json->syntax, value, length);
}

void tci_json_string(struct tci_json *json, const char *key, const char *value)
{
    if (value)
        tci_json_bytes(json, key, value, strlen(value));
    else
        tci_json_null(json, key);
}

void tci_json_printf(struct tci_json *json, const char *key, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tci_json_string(json, key, text);
}

void tci_json_unsigned(struct tci_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    tci_buf_printf(json->out, "%" PRIu64, value);
}

void tci_json_integer(struct tci_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    tci_buf_printf(json->out, "%" PRId64, value);
}

void tci_json_double(struct tci_json *json, const char *key, double value)
{
    char text[TCI_JSON_NUMBER_MAX];
    tci_json_raw(json, key, isfinite(value) ? tci_json_number(value, text) : "null");
}

void tci_json_bool(struct tci_json *json, const char *key, bool value)
{
    tci_json_raw(json, key, value ? "true" : "false");
}

void tci_json_null(struct tci_json *json, const char *key)
{
    tci_json_raw(json, key, "null");
}

void tci_json_raw(struct tci_json *json, const char *key, const char *value)
{
    begin_value(json, key);
    tci_buf_string(json->out, value);
}

void tci_json_value(struct tci_json *json, const char *key, const char *value)
{
    size_t length = strlen(value), plain_from = 0, i = 0;
    begin_value(json, key);
    while (i < length) {
        uint32_t code_point = 0;
        size_t size = tci_utf8_decode(value + i, length - i, &code_point);
        bool shown = size && !(code_point >= 0x7f && code_point <= 0x9f) &&
                     !tci_utf8_is_deceptive(code_point);
        if (!shown) {
            tci_buf_append(json->out, value + plain_from, i - plain_from);
            write_escape(json->out, TCI_SYNTAX_JSON, size ? code_point : 0xfffd);
            plain_from = i + (size ? size : 1);
        }
        i += size ? size : 1;
    }
    tci_buf_append(json->out, value + plain_from, i - plain_from);
}
