/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how the TOML reader words its errors. The input is hostile and messages go to terminals and
 * logs. Invariant: an excerpt of the input is short, on one line, and holds no character that is
 * invisible or changes how the text around it is shown.
 */
#include "policy/toml_internal.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/utf8.h"

enum { excerpt_characters = 60 };

/* Controls, spaces of other widths, invisible and direction-changing characters, private use:
 * U+202E in a key would let a file show a message that says something else. */
static bool is_printable(uint32_t code_point)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        { 0x0, 0x1f },        { 0x7f, 0xa0 },       { 0xad, 0xad },        { 0x34f, 0x34f },
        { 0x600, 0x605 },     { 0x61c, 0x61c },     { 0x6dd, 0x6dd },      { 0x70f, 0x70f },
        { 0x890, 0x891 },     { 0x8e2, 0x8e2 },     { 0x115f, 0x1160 },    { 0x1680, 0x1680 },
        { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x2000, 0x200f },    { 0x2028, 0x202f },
        { 0x205f, 0x206f },   { 0x3000, 0x3000 },   { 0x3164, 0x3164 },    { 0xe000, 0xf8ff },
        { 0xfdd0, 0xfdef },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },    { 0xffa0, 0xffa0 },
        { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0x110bd, 0x110cd },  { 0x13430, 0x1345f },
        { 0x1bca0, 0x1bcaf }, { 0x1d173, 0x1d17a }, { 0xe0000, 0x10ffff },
    };
    for (size_t i = 0; i < tci_array_size(hidden); i++)
        if (code_point >= hidden[i].first && code_point <= hidden[i].last)
            return false;
    return true;
}

/* One character as it would be written in a basic string; returns how many bytes that takes. */
static size_t write_character(char out[16], const char *bytes, size_t size, uint32_t code_point,
                              bool quoted)
{
    if (!is_printable(code_point))
        return (size_t)snprintf(out, 16, code_point > 0xffff ? "\\U%08X" : "\\u%04X", code_point);
    if (quoted && (code_point == '"' || code_point == '\\'))
        return (size_t)snprintf(out, 16, "\\%c", (char)code_point);
    memcpy(out, bytes, size);
    return size;
}

static struct tci_toml_excerpt make_excerpt(struct tci_text text, bool quoted)
{
    struct tci_toml_excerpt e = { .whole = true };
    static const char more[] = "...\"";
    size_t used = 0, done = 0;

    if (quoted)
        e.text[used++] = '"';
    for (unsigned count = 0; done < text.length; count++) {
        char piece[16];
        uint32_t code_point;
        size_t size = tci_utf8_decode(text.data + done, text.length - done, &code_point);
        size_t length = size ? write_character(piece, text.data + done, size, code_point, quoted)
                             : 0;

        e.whole = size && count < excerpt_characters &&
                  used + length + sizeof more <= sizeof e.text;
        if (!e.whole)
            break;
        memcpy(e.text + used, piece, length);
        used += length;
        done += size;
    }
    (void)snprintf(e.text + used, sizeof e.text - used, "%s%s", e.whole ? "" : "...",
                   quoted ? "\"" : "");
    return e;
}

struct tci_toml_excerpt tci_toml_quoted(struct tci_text text)
{
    return make_excerpt(text, true);
}

struct tci_toml_excerpt tci_toml_plain(struct tci_text text)
{
    return make_excerpt(text, false);
}

struct tci_toml_excerpt tci_toml_found(const struct tci_toml *t, const char *at)
{
    struct tci_toml_excerpt e = { .whole = true };
    const char *stop = at;
    uint32_t code_point = 0;
    size_t size;

    while (stop < t->end && tci_toml_is_bare(*stop))
        stop++;
    if (stop > at)
        return tci_toml_quoted(tci_toml_text(at, stop));
    size = tci_utf8_decode(at, (size_t)(t->end - at), &code_point);
    if (size == 0)
        (void)snprintf(e.text, sizeof e.text, "the end of the file");
    else if (*at == '\n' || *at == '\r')
        (void)snprintf(e.text, sizeof e.text, "a line break");
    else if (*at == '#')
        (void)snprintf(e.text, sizeof e.text, "a comment");
    else if (*at == '"' || *at == '\'')
        (void)snprintf(e.text, sizeof e.text, "a %s quote", *at == '"' ? "double" : "single");
    else if (is_printable(code_point))
        (void)snprintf(e.text, sizeof e.text, "'%.*s'", (int)size, at);
    else
        (void)snprintf(e.text, sizeof e.text, "U+%04X", code_point);
    return e;
}

static tci_printf_like(3, 0) void set_error(struct tci_toml *t, struct tci_pos pos,
                                            const char *format, va_list args)
{
    char message[sizeof t->reterr->message];
    (void)vsnprintf(message, sizeof message, format, args);
    tci_error_set(t->reterr, TC_ERROR_SYNTAX, "%s", message);
    tci_error_place(t->reterr, NULL, pos.line, pos.column);
}

int tci_toml_fail_pos(struct tci_toml *t, struct tci_pos pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(t, pos, format, args);
    va_end(args);
    return -1;
}

int tci_toml_fail(struct tci_toml *t, const char *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(t, tci_toml_pos(t, at), format, args);
    va_end(args);
    return -1;
}

int tci_toml_fail_deep(struct tci_toml *t, const char *at)
{
    struct tci_pos pos = tci_toml_pos(t, at);
    tci_error_set(t->reterr, TC_ERROR_TOO_LARGE, "nested more than %d levels deep",
                  TCI_TOML_DEPTH_MAX);
    tci_error_place(t->reterr, NULL, pos.line, pos.column);
    return -1;
}

/* ---- values without quotes --------------------------------------------------------------- */

static bool is_word(struct tci_text text, const char *const words[])
{
    for (; *words; words++)
        if (text.length == strlen(*words) && strncasecmp(text.data, *words, text.length) == 0)
            return true;
    return false;
}

/* What to do about a word that other formats know. */
static bool remedy_for_word(struct tci_toml *t, struct tci_text word)
{
    static const char *const true_words[] = { "true", "yes", "on", NULL };
    static const char *const false_words[] = { "false", "no", "off", NULL };
    static const char *const null_words[] = { "null", "nil", "none", "undefined", NULL };
    static const char *const numbers[] = { "inf", "nan", "+inf", "-inf", "+nan", "-nan", NULL };
    bool curly = word.length > 2 && memcmp(word.data, "\xe2\x80", 2) == 0 &&
                 (word.data[2] & 0xf8) == 0x98; /* U+2018 to U+201F */

    if (is_word(word, true_words) || is_word(word, false_words))
        tci_error_remedy(t->reterr, "write %s for the boolean, or put the text in quotes: %s",
                         is_word(word, true_words) ? "true" : "false", tci_toml_quoted(word).text);
    else if (is_word(word, null_words))
        tci_error_remedy(t->reterr,
                         "TOML has no null: leave the key out; or put the text in "
                         "quotes: %s",
                         tci_toml_quoted(word).text);
    else if (is_word(word, numbers))
        tci_error_remedy(t->reterr, "write inf and nan in lower case");
    else if (word.length && (curly || word.data[0] == '`'))
        tci_error_remedy(t->reterr, "use plain quotes: \" or '");
    else
        return false;
    return true;
}

/* The end of what the author took for the value: the rest of the line, or of the element. */
static const char *intended_end(const struct tci_toml *t, const char *at)
{
    const char *stop = at;
    while (stop < t->end && !strchr(t->open.line ? "\r\n#,]}" : "\r\n#", *stop))
        stop++;
    while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    return stop;
}

int tci_toml_fail_unquoted(struct tci_toml *t, const char *at)
{
    const char *stop = intended_end(t, at), *word_end = tci_toml_word_end(t, at), *next = word_end;
    struct tci_text word = tci_toml_text(at, word_end);

    while (next < t->end && (*next == ' ' || *next == '\t'))
        next++;
    if (next < t->end && *next == '=') {
        tci_toml_fail(t, at, "expected a value, found the key %s", tci_toml_quoted(word).text);
        if (t->open.line)
            tci_error_remedy(t->reterr, "close what was opened at line %u first", t->open.line);
        return -1;
    }
    tci_toml_fail(t, at, "expected a value, found %s without quotes",
                  tci_toml_quoted(tci_toml_text(at, stop)).text);
    if (!remedy_for_word(t, word)) {
        struct tci_toml_excerpt text = tci_toml_quoted(tci_toml_text(at, stop));
        tci_error_remedy(t->reterr, "put the value in quotes%s%s", text.whole ? ": " : "",
                         text.whole ? text.text : "");
    }
    return -1;
}
