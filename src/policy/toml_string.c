/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: TOML strings of all four kinds.
 * Trusts: that the text is UTF-8 (toml_scan.c). Invariant: what comes out is UTF-8 too, and never
 * longer than what was written, so that one allocation of that size is enough.
 * Line breaks come out as LF, so that a policy means the same after a checkout with CRLF.
 */
#include "policy/toml_internal.h"

#include <string.h>

/* ---- escapes ----------------------------------------------------------------------------- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char *put_code_point(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (char)(0xe0 | c >> 12);
        } else {
            *out++ = (char)(0xf0 | c >> 18);
            *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (c & 0x3f));
    return out;
}

/* \xHH, \uHHHH, \UHHHHHHHH; `p` is at the backslash. Returns the place behind it, or NULL. */
static const char *code_escape(struct tci_toml *t, const char *p, const char *stop, int digits,
                               char **out)
{
    const char *q = p + 2;
    uint32_t c = 0;

    for (int i = 0; i < digits; i++, q++) {
        int value = q < stop ? hex_value(*q) : -1;
        if (value < 0) {
            tci_toml_fail(t, p, "\\%c needs %d hexadecimal digits, found %d", p[1], digits, i);
            tci_error_remedy(t->reterr, "write \\\\ if a backslash is meant, or use 'single "
                                        "quotes'");
            return NULL;
        }
        c = c << 4 | (uint32_t)value;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        tci_toml_fail(t, p, "U+%04X is not a character", c);
        if (c >= 0xd800 && c <= 0xdfff)
            tci_error_remedy(t->reterr, "write the character itself, or one \\U instead of a pair "
                                        "of \\u");
        return NULL;
    }
    *out = put_code_point(*out, c);
    return q;
}

static const char *fail_escape(struct tci_toml *t, const char *p, const char *stop)
{
    char c = p + 1 < stop ? p[1] : '\0';

    if (c == 'e' || c == 'x')
        tci_toml_fail(t, p, "\\%c is an escape of TOML 1.1, and this file is read as TOML 1.0", c);
    else if (c == ' ' || c == '\t')
        tci_toml_fail(t, p, "a backslash before a blank is not an escape");
    else
        tci_toml_fail(t, p, "a backslash followed by %s is not an escape",
                      tci_toml_found(t, p + 1).text);
    if (c == 'e')
        tci_error_remedy(t->reterr, "write \\u001B");
    else if (c == 'x')
        tci_error_remedy(t->reterr, "write \\u00 and two hexadecimal digits");
    else
        tci_error_remedy(t->reterr, "write \\\\ if a backslash is meant, or use 'single quotes'");
    return NULL;
}

/* A backslash at the end of a line: it, and all space up to the next visible character, go. */
static const char *joined_lines(struct tci_toml *t, const char *p, const char *stop)
{
    const char *q = p + 1;
    bool newline = false;

    for (; q < stop && strchr(" \t\r\n", *q); q++)
        newline |= *q == '\n';
    /* What lies between a backslash and its line break is blanks only, so the first line break
     * found is the right one. */
    return newline ? q : fail_escape(t, p, stop);
}

static const char *escape(struct tci_toml *t, const char *p, const char *stop, char **out)
{
    static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    char c = p + 1 < stop ? p[1] : '\0';
    const char *simple = c ? strchr(names, c) : NULL;

    if (simple) {
        *(*out)++ = values[simple - names];
        return p + 2;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
        return joined_lines(t, p, stop);
    if (c == 'u' || c == 'U')
        return code_escape(t, p, stop, c == 'u' ? 4 : 8, out);
    if (c == 'x' && t->version >= TCI_TOML_1_1)
        return code_escape(t, p, stop, 2, out);
    if (c == 'e' && t->version >= TCI_TOML_1_1) {
        *(*out)++ = '\x1b';
        return p + 2;
    }
    return fail_escape(t, p, stop);
}

/* Copies what stands between the quotes; `plain`: there is nothing to replace in it. */
static int take(struct tci_toml *t, const char *p, const char *stop, bool plain, bool escapes,
                struct tci_text *ret)
{
    char *data = tci_arena_alloc(t->arena, (size_t)(stop - p) + 1), *out = data;

    if (!data)
        return tci_error_no_memory(t->reterr);
    if (plain) {
        memcpy(data, p, (size_t)(stop - p));
        out += stop - p;
        p = stop;
    }
    while (p < stop) {
        if (*p == '\\' && escapes) {
            p = escape(t, p, stop, &out);
            if (!p)
                return -1;
        } else if (*p == '\r') {
            p++;
        } else {
            *out++ = *p++;
        }
    }
    *out = '\0';
    *ret = (struct tci_text){ data, (size_t)(out - data) };
    return 0;
}

/* ---- on one line ------------------------------------------------------------------------- */

static int fail_line(struct tci_toml *t, const char *open, const char *stop)
{
    char other = *open == '"' ? '\'' : '"';
    bool wrong_quote;

    while (stop > open + 1 && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    wrong_quote = stop > open + 1 && stop[-1] == other;
    tci_toml_fail(t, open, "the string opened here has no closing %c on its line", *open);
    if (wrong_quote)
        tci_error_remedy(t->reterr, "close the string with %c, as it was opened, not with %c",
                         *open, other);
    else if (*open == '"' && stop - open > 2 && stop[-1] == '"' && stop[-2] == '\\')
        tci_error_remedy(t->reterr, "\\\" does not close a string: write \\\\ for a backslash, or "
                                    "use 'single quotes'");
    else
        tci_error_remedy(t->reterr,
                         "add the closing %c; text of several lines goes between "
                         "%c%c%c and %c%c%c",
                         *open, *open, *open, *open, *open, *open, *open);
    return -1;
}

int tci_toml_line_string(struct tci_toml *t, struct tci_text *ret)
{
    const char *open = t->at, *p = open + 1;
    bool escapes = *open == '"', plain = true;

    for (; p < t->end && *p != *open && *p != '\n'; p++) {
        if (*p == '\\' && escapes) {
            plain = false;
            if (t->end - p > 1 && p[1] != '\n')
                p++;
        }
    }
    if (p == t->end || *p == '\n')
        return fail_line(t, open, p);
    t->at = p + 1;
    return take(t, open + 1, p, plain, escapes, ret);
}

/* ---- on several lines -------------------------------------------------------------------- */

/* The closing quotes: three, and up to two more before them that belong to the text. Returns the
 * end of the text and puts t->at behind the quotes; NULL when there are none. */
static const char *find_close(struct tci_toml *t, const char *p, char quote, bool *plain)
{
    while (p < t->end) {
        ptrdiff_t run = 0;
        if (*p == '\\' && quote == '"') {
            *plain = false;
            p += t->end - p > 1 ? 2 : 1;
            continue;
        }
        if (*p == '\r')
            *plain = false;
        if (*p != quote) {
            p++;
            continue;
        }
        while (run < 5 && run < t->end - p && p[run] == quote)
            run++;
        if (run >= 3) {
            t->at = p + run;
            return p + run - 3;
        }
        p += run;
    }
    return NULL;
}

static int multi_line_string(struct tci_toml *t, struct tci_text *ret)
{
    const char *open = t->at, *stop;
    bool plain = true;

    t->at = open + 3;
    (void)tci_toml_skip_newline(t); /* right behind the quotes it does not count */
    const char *start = t->at;
    stop = find_close(t, start, *open, &plain);
    if (!stop) {
        tci_toml_fail(t, open, "the string opened here is never closed");
        tci_error_remedy(t->reterr, "add the closing %c%c%c", *open, *open, *open);
        return -1;
    }
    return take(t, start, stop, plain, *open == '"', ret);
}

int tci_toml_string(struct tci_toml *t, struct tci_text *ret)
{
    const char *p = t->at;
    bool three = t->end - p >= 3 && p[1] == *p && p[2] == *p;
    return three ? multi_line_string(t, ret) : tci_toml_line_string(t, ret);
}
