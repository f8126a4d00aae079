/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: integers, floats and booleans.
 * Trusts nothing but the encoding of the text. Invariant: a number is converted only after its
 * whole word has matched TOML's grammar, and only if its type can hold it.
 */
#include "policy/toml_internal.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool ends_word(char c)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
    case ',':
    case ']':
    case '}':
    case '#':
    case '=':
        return true;
    default:
        return false;
    }
}

const char *tci_toml_word_end(const struct tci_toml *t, const char *at)
{
    while (at < t->end && !ends_word(*at))
        at++;
    return at;
}

static bool is_digit_of(char c, int base)
{
    if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
        return true;
    return c >= '0' && c < '0' + (base < 10 ? base : 10);
}

/* The end of the digits at `p`, single underscores between them included; `p` if there are none. */
static const char *skip_digits(const char *p, const char *stop, int base)
{
    const char *end = p;
    while (p < stop && is_digit_of(*p, base)) {
        end = ++p;
        if (p < stop && *p == '_')
            p++;
    }
    return end;
}

/* ---- what is wrong with a number --------------------------------------------------------- */

static int fail_leading_zero(struct tci_toml *t, const char *start, const char *digits,
                             const char *stop)
{
    const char *rest = digits;
    struct tci_text text = tci_toml_text(start, stop);

    while (stop - rest > 1 && (*rest == '0' || *rest == '_') && rest[1] != '.')
        rest++;
    tci_toml_fail(t, start, "a number must not start with 0: %s", tci_toml_plain(text).text);
    if (start == digits && skip_digits(digits, stop, 8) == stop && digits[1] != '_')
        tci_error_remedy(t->reterr,
                         "write 0o%s for an octal number, %s for a decimal one, or %s "
                         "for text",
                         tci_toml_plain(tci_toml_text(rest, stop)).text,
                         tci_toml_plain(tci_toml_text(rest, stop)).text,
                         tci_toml_quoted(text).text);
    else
        tci_error_remedy(t->reterr, "leave the zeros out, or put text in quotes: %s",
                         tci_toml_quoted(text).text);
    return -1;
}

/* The word starts like a number. If it holds nothing but what numbers are made of, say which rule
 * it breaks; otherwise it is a text whose quotes are missing ("30s"). */
static int fail_number(struct tci_toml *t, const char *start, const char *stop)
{
    const char *digits = start + (*start == '+' || *start == '-');
    struct tci_toml_excerpt text = tci_toml_plain(tci_toml_text(start, stop));
    bool prefixed = stop - digits > 2 && *digits == '0' && strchr("xobXOB", digits[1]);
    bool dot = false, underscore = false;

    if (prefixed && digits > start)
        return tci_toml_fail(t, start, "a number with a prefix has no sign: %s", text.text);
    if (prefixed && digits[1] < 'a')
        return tci_toml_fail(t, start, "the prefix of a number is in lower case: %s", text.text);
    for (const char *p = digits; p < stop; p++) {
        bool before = p > digits && tci_toml_is_digit(p[-1]);
        bool after = stop - p > 1 && tci_toml_is_digit(p[1]);
        if (!tci_toml_is_digit(*p) && !strchr("_.eE+-", *p) && !prefixed)
            return tci_toml_fail_unquoted(t, start);
        dot |= *p == '.' && !(before && after);
        underscore |= *p == '_' && !(before && after);
    }
    if (stop - digits > 1 && *digits == '0' && (tci_toml_is_digit(digits[1]) || digits[1] == '_'))
        return fail_leading_zero(t, start, digits, stop);
    if (underscore && !prefixed)
        return tci_toml_fail(t, start, "an underscore in a number stands between two digits: %s",
                             text.text);
    if (dot && !prefixed)
        return tci_toml_fail(t, start, "a decimal point stands between two digits: %s", text.text);
    tci_toml_fail(t, start, "%s is not a number", text.text);
    tci_error_remedy(t->reterr, "put the value in quotes if text is meant");
    return -1;
}

/* ---- conversion -------------------------------------------------------------------------- */

static int fail_range(struct tci_toml *t, const char *start, const char *stop)
{
    tci_toml_fail(t, start, "the integer %s does not fit into 64 bits",
                  tci_toml_plain(tci_toml_text(start, stop)).text);
    tci_error_remedy(t->reterr, "integers go from -9223372036854775808 to 9223372036854775807");
    return -1;
}

/* Counts downwards, because the smallest integer has no positive counterpart. */
static int set_integer(struct tci_toml *t, const char *start, const char *digits, const char *stop,
                       int base, struct tci_node *node)
{
    int64_t value = 0;

    for (const char *p = digits; p < stop; p++) {
        int digit = *p - '0';
        if (*p == '_')
            continue;
        if (*p > '9')
            digit = (*p | 0x20) - 'a' + 10;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return fail_range(t, start, stop);
    }
    if (*start != '-' && __builtin_sub_overflow(0, value, &value))
        return fail_range(t, start, stop);
    node->type = TCI_NODE_INTEGER;
    node->integer = value;
    return 0;
}

/* strtod() would read the decimal point of the program's locale. In glibc the "C" locale is a
 * constant: asking for it allocates nothing. */
static int convert(struct tci_toml *t, const char *digits, double *ret)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return tci_error_no_memory(t->reterr);
    *ret = strtod_l(digits, NULL, c_locale);
    freelocale(c_locale);
    return 0;
}

static int set_float(struct tci_toml *t, const char *start, const char *stop, struct tci_node *node)
{
    char small[64];
    size_t length = (size_t)(stop - start);
    char *copy = length < sizeof small ? small : tci_arena_alloc(t->arena, length + 1);
    char *out = copy;

    if (!copy)
        return tci_error_no_memory(t->reterr);
    for (const char *p = start; p < stop; p++)
        if (*p != '_')
            *out++ = *p;
    *out = '\0';
    node->type = TCI_NODE_FLOAT;
    if (convert(t, copy, &node->number) < 0)
        return -1;
    if (isinf(node->number)) { /* a limit must not become "no limit" by a slip in its exponent */
        tci_toml_fail(t, start, "the number %s is too large for a float",
                      tci_toml_plain(tci_toml_text(start, stop)).text);
        tci_error_remedy(t->reterr, "write inf if infinity is meant");
        return -1;
    }
    return 0;
}

/* true, false, inf and nan; false when the word is none of them. */
static bool set_word(const char *start, const char *stop, struct tci_node *node)
{
    struct tci_text word = tci_toml_text(start, stop);
    bool negative = *start == '-', sign = negative || *start == '+';

    node->type = TCI_NODE_BOOLEAN;
    node->boolean = tci_text_is(word, "true");
    if (node->boolean || tci_text_is(word, "false"))
        return true;
    word.data += sign;
    word.length -= sign;
    node->type = TCI_NODE_FLOAT;
    node->number = tci_text_is(word, "inf") ? HUGE_VAL : (double)NAN;
    if (negative)
        node->number = -node->number;
    return tci_text_is(word, "inf") || tci_text_is(word, "nan");
}

/* How far the text at `p` is a decimal number without its sign; `p` if it is none. */
static const char *skip_decimal(const char *p, const char *stop, bool *ret_float)
{
    const char *start = p, *integer_end = skip_digits(p, stop, 10), *part;

    if (integer_end == start || (*start == '0' && integer_end - start > 1))
        return start;
    p = integer_end;
    if (p < stop && *p == '.') {
        part = p + 1;
        p = skip_digits(part, stop, 10);
        if (p == part)
            return start;
    }
    if (p < stop && (*p == 'e' || *p == 'E')) {
        part = p + 1;
        part += part < stop && (*part == '+' || *part == '-');
        p = skip_digits(part, stop, 10);
        if (p == part)
            return start;
    }
    *ret_float = p > integer_end;
    return p;
}

int tci_toml_number(struct tci_toml *t, struct tci_node *node)
{
    const char *start = t->at, *stop = tci_toml_word_end(t, start);
    const char *digits = start + (*start == '+' || *start == '-');
    bool is_float = false;

    t->at = stop;
    if (!tci_toml_is_digit(*start)) {
        if (set_word(start, stop, node))
            return 0;
        if (digits == start && *start != '.')
            return tci_toml_fail_unquoted(t, start);
    }
    if (stop - start > 2 && *start == '0' && strchr("xob", start[1])) {
        int base = start[1] == 'x' ? 16 : start[1] == 'o' ? 8 : 2;
        if (skip_digits(start + 2, stop, base) != stop)
            return fail_number(t, start, stop);
        return set_integer(t, start, start + 2, stop, base, node);
    }
    if (digits == stop || skip_decimal(digits, stop, &is_float) != stop)
        return fail_number(t, start, stop);
    return is_float ? set_float(t, start, stop, node)
                    : set_integer(t, start, digits, stop, 10, node);
}
