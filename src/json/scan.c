/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the pass over JSON text that bounds what a parser would make of it.
 * Trusts: the parser with syntax; the pass only looks at what a valid text would mean.
 */
#include "json/scan.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* The digits of a number without zeros at both ends. */
struct digits {
    size_t count;
    char first[17]; /* of them, as text */
    long power;     /* of ten, of the last one */
};

static long read_exponent(const char *text, const char *end)
{
    bool negative = text < end && *text == '-';
    long value = 0;
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    for (; text < end && is_digit(*text) && value < 100000000; text++)
        value = 10 * value + (*text - '0');
    return negative ? -value : value;
}

static struct digits read_digits(const char *token, size_t length)
{
    const char *end = token + length;
    struct digits d = { .count = 0 };
    size_t zeros = 0; /* since the last digit that counts */
    bool fraction = false;

    for (; token < end && *token != 'e' && *token != 'E'; token++) {
        if (*token == '.')
            fraction = true;
        if (!is_digit(*token))
            continue;
        d.power -= fraction;
        if (*token == '0') {
            zeros += d.count > 0;
            continue;
        }
        for (; zeros > 0; zeros--, d.count++)
            if (d.count < 16)
                d.first[d.count] = '0';
        if (d.count < 16)
            d.first[d.count] = *token;
        d.count++;
    }
    d.power += (long)zeros + (token < end ? read_exponent(token + 1, end) : 0);
    return d;
}

/*
 * Numbers are doubles, here as in most readers of JSON. Fifteen digits survive that whatever they are,
 * and integers up to 2^53. Other integers are not rounded, but refused. What has a fraction is an
 * approximation in any case.
 */
static bool arrives_as_sent(const char *token, size_t length)
{
    struct digits d;
    if (length <= 15 && !memchr(token, 'e', length) && !memchr(token, 'E', length))
        return true; /* the common case */
    d = read_digits(token, length);
    if (d.count <= 15 || d.power < 0)
        return true;
    return d.count == 16 && d.power == 0 && strcmp(d.first, "9007199254740992") <= 0;
}

/* ---- the pass over the bytes --------------------------------------------------------------- */

/* Behind the end of the string that begins at `i`; at most `length`. */
static size_t skip_string(const char *text, size_t length, size_t i)
{
    for (i++; i < length && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i < length ? i + 1 : length;
}

static bool is_of_number(char c)
{
    return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static size_t number_at(const char *text, size_t length)
{
    size_t number = 0;
    while (number < length && is_of_number(text[number]))
        number++;
    return number;
}

enum tci_json_excess tci_json_scan(const char *text, size_t length,
                                   const struct tci_json_bounds *bounds,
                                   struct tci_json_scanned *ret)
{
    unsigned depth = 0;
    *ret = (struct tci_json_scanned){ .values = 1 };
    for (size_t i = 0; i < length;) {
        char c = text[i];
        size_t number;
        if (c == '"') {
            i = skip_string(text, length, i);
            continue;
        }
        number = number_at(text + i, length - i);
        if (number && bounds->exact && !ret->inexact.text && !arrives_as_sent(text + i, number))
            ret->inexact = (struct tci_json_part){ text + i, number };
        i += number ? number : 1;
        ret->values += c == ',' || c == '[' || c == '{';
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (bounds->depth && depth > bounds->depth)
            return TCI_JSON_TOO_DEEP;
        if (ret->values > bounds->values)
            return TCI_JSON_TOO_MANY;
    }
    return ret->inexact.text ? TCI_JSON_INEXACT : TCI_JSON_WITHIN;
}

/* ---- a member ------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blanks(const char *text, size_t length, size_t i)
{
    while (i < length && is_blank(text[i]))
        i++;
    return i;
}

/* Behind the plain value (a string, a number, a word) that begins at `i`; `i`: there is none. */
static size_t skip_plain(const char *text, size_t length, size_t i)
{
    if (i < length && text[i] == '"')
        return skip_string(text, length, i);
    while (i < length && (is_of_number(text[i]) || (text[i] >= 'a' && text[i] <= 'z')))
        i++;
    return i;
}

size_t tci_json_scan_member(const char *text, size_t length, const char *key,
                            struct tci_json_part *ret)
{
    const size_t key_length = strlen(key);
    size_t depth = 0, found = 0;
    for (size_t i = 0; i < length;) {
        const size_t start = i;
        if (text[i] != '"') {
            depth += text[i] == '[' || text[i] == '{';
            depth -= (text[i] == ']' || text[i] == '}') && depth > 0;
            i++;
            continue;
        }
        i = skip_string(text, length, i);
        if (depth != 1 || i - start != key_length + 2 ||
            memcmp(text + start + 1, key, key_length) != 0)
            continue;
        i = skip_blanks(text, length, i);
        if (i == length || text[i] != ':')
            continue; /* a value */
        i = skip_blanks(text, length, i + 1);
        if (found++ == 0)
            *ret = (struct tci_json_part){ text + i, skip_plain(text, length, i) - i };
    }
    return found;
}

/* ---- several members ----------------------------------------------------------------------- */

/* Behind the value that begins at `i`. */
static size_t skip_value(const char *text, size_t length, size_t i)
{
    size_t depth = 0;
    if (i == length || (text[i] != '[' && text[i] != '{'))
        return skip_plain(text, length, i);
    do {
        if (text[i] == '"') {
            i = skip_string(text, length, i);
            continue;
        }
        depth += text[i] == '[' || text[i] == '{';
        depth -= text[i] == ']' || text[i] == '}';
        i++;
    } while (depth && i < length);
    return i;
}

void tci_json_scan_members(const char *text, size_t length, const char *const *keys, size_t count,
                           struct tci_json_part *ret)
{
    size_t i = skip_blanks(text, length, 0);
    memset(ret, 0, count * sizeof *ret);
    if (i == length || text[i] != '{')
        return;
    for (i = skip_blanks(text, length, i + 1); i < length && text[i] == '"';) {
        const char *key = text + i + 1;
        size_t key_length, begin;
        i = skip_string(text, length, i);
        key_length = (size_t)(text + i - key) - 1;
        i = skip_blanks(text, length, i);
        if (i == length || text[i] != ':')
            return;
        begin = skip_blanks(text, length, i + 1);
        i = skip_value(text, length, begin);
        for (size_t k = 0; k < count; k++)
            if (strlen(keys[k]) == key_length && memcmp(keys[k], key, key_length) == 0)
                ret[k] = (struct tci_json_part){ text + begin, i - begin };
        i = skip_blanks(text, length, i);
        if (i == length || text[i] != ',')
            return;
        i = skip_blanks(text, length, i + 1);
    }
}
