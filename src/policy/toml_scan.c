/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the text of a TOML document: its encoding, places in it, and the space between its parts.
 * Trusts nothing. Invariant: once tci_toml_check_text() has succeeded, the text is UTF-8 without
 * control characters other than tab, LF, and CR before LF.
 */
#include "policy/toml_internal.h"

#include <string.h>
#include "base/utf8.h"

/* Eight bytes at once. Each test below gives 0x80 or 0x01 in the lanes where it holds. */
static const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;

static uint64_t load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Are all eight printable ASCII? A borrow between lanes only ever follows a lane that is not. */
static bool all_printable(uint64_t word)
{
    uint64_t below_space = (word - ones * ' ') & ~word;
    uint64_t is_delete = ((word ^ ones * 0x7f) - ones) & ~(word ^ ones * 0x7f);
    return !((word | below_space | is_delete) & highs);
}

/* How many of the eight are continuation bytes of UTF-8 (10xxxxxx)? */
static unsigned count_continuations(uint64_t word)
{
    uint64_t lanes = (word >> 7) & (~word >> 6) & ones;
    return (unsigned)(lanes * ones >> 56);
}

static bool starts_with(const struct tci_toml *t, const char *bytes, size_t length)
{
    return (size_t)(t->end - t->begin) >= length && memcmp(t->begin, bytes, length) == 0;
}

/* Text in UTF-16 or UTF-32 gets one clear message instead of one about its first odd byte. */
static int check_mark(struct tci_toml *t)
{
    const char *encoding = NULL;

    if (starts_with(t, "\xff\xfe\0\0", 4) || starts_with(t, "\0\0\xfe\xff", 4))
        encoding = "UTF-32";
    else if (starts_with(t, "\xff\xfe", 2) || starts_with(t, "\xfe\xff", 2))
        encoding = "UTF-16";
    if (encoding) {
        tci_toml_fail(t, t->begin, "the file is %s: it starts with that encoding's byte order mark",
                      encoding);
        tci_error_remedy(t->reterr, "save the file as UTF-8");
        return -1;
    }
    if (starts_with(t, "\xef\xbb\xbf", 3))
        t->begin = t->at = t->mark = t->begin + 3;
    return 0;
}

static int fail_utf8(struct tci_toml *t, const char *at)
{
    tci_toml_fail(t, at, "the byte \\x%02X is not UTF-8 here", (unsigned char)*at);
    tci_error_remedy(t->reterr, "save the file as UTF-8");
    return -1;
}

static int fail_control(struct tci_toml *t, const char *at)
{
    unsigned code = (unsigned char)*at;

    if (code == '\r') {
        tci_toml_fail(t, at, "a carriage return (U+000D) without a line feed");
        tci_error_remedy(t->reterr, "save the file with LF or CRLF line ends; in a string write "
                                    "\\r");
    } else if (code == 0) {
        tci_toml_fail(t, at, "a NUL character (U+0000) is not allowed");
        tci_error_remedy(t->reterr, "save the file as UTF-8 if it is UTF-16; in a string write "
                                    "\\u0000");
    } else {
        tci_toml_fail(t, at, "the control character U+%04X is not allowed", code);
        tci_error_remedy(t->reterr, "remove it, or in a \"string\" write \\u%04X", code);
    }
    return -1;
}

int tci_toml_check_text(struct tci_toml *t)
{
    const char *p;

    if (check_mark(t) < 0)
        return -1;
    for (p = t->begin; p < t->end;) {
        unsigned char c = (unsigned char)*p;
        uint32_t code_point;
        size_t size = 1;

        if (t->end - p >= 8 && all_printable(load8(p))) {
            size = 8;
        } else if (c > 0x7f) {
            size = tci_utf8_decode(p, (size_t)(t->end - p), &code_point);
            if (size == 0)
                return fail_utf8(t, p);
        } else if (c < ' ' || c == 0x7f) {
            bool crlf = c == '\r' && t->end - p > 1 && p[1] == '\n';
            if (c != '\n' && c != '\t' && !crlf)
                return fail_control(t, p);
        }
        p += size;
    }
    return 0;
}

struct tci_pos tci_toml_pos(struct tci_toml *t, const char *at)
{
    struct tci_pos pos = t->mark_pos;
    const char *p = t->mark, *newline;

    if (at < p) { /* only an error looks back, and there is only one error */
        p = t->begin;
        pos = tci_pos(1, 1);
    }
    while ((newline = memchr(p, '\n', (size_t)(at - p)))) {
        p = newline + 1;
        pos.line++;
        pos.column = 1;
    }
    for (; at - p >= 8; p += 8)
        pos.column += 8 - count_continuations(load8(p));
    for (; p < at; p++)
        pos.column += ((unsigned char)*p & 0xc0) != 0x80;
    t->mark = at;
    t->mark_pos = pos;
    return pos;
}

bool tci_toml_skip_newline(struct tci_toml *t)
{
    if (tci_toml_peek(t) == '\r')
        t->at++;
    if (tci_toml_peek(t) != '\n')
        return false;
    t->at++;
    return true;
}

bool tci_toml_skip_comment(struct tci_toml *t)
{
    const char *newline;

    if (tci_toml_peek(t) != '#')
        return false;
    newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
    t->at = newline ? newline : t->end;
    return true;
}

void tci_toml_skip_space(struct tci_toml *t)
{
    do
        tci_toml_skip_blank(t);
    while (tci_toml_skip_newline(t) || tci_toml_skip_comment(t));
}
