/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a plain YAML scalar means, by the core schema of YAML 1.2, and dates as in TOML.
 * Trusts: nothing about the text but the NUL behind it.
 * Invariants: a spelling that YAML 1.1 and 1.2 read as different values (yes, 010, 1:30, 1e3) is
 * refused, not guessed: a policy that two programs read differently protects nobody. What YAML 1.1
 * makes of a scalar is taken from its type repository (yaml.org/type) and, where that has slips,
 * from PyYAML. Two things are kept although 1.1 has them: y and n are text (see below), and so is
 * 1.2.3, which 1.1's pattern for floats matches by mistake. A text that looks like a number or a
 * date but is none (too large, 30 February) is refused too, and never a string.
 * The locale has no say.
 */
#include "policy/yaml_internal.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Longer numbers are a mistake or an attack; any double or int64 fits several times. */
    number_length_max = 128,
    /* How much of a scalar a message shows. All texts that are refused here are plain ASCII. */
    shown_max = 40,
};

static int shown(struct tci_text text)
{
    return text.length < shown_max ? (int)text.length : shown_max;
}

static bool is_one_of(struct tci_text text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tci_text_is(text, words[i]))
            return true;
    return false;
}

#define is_any(text, ...)                                                                          \
    is_one_of((text), (const char *const[]){ __VA_ARGS__ },                                        \
              tci_array_size(((const char *const[]){ __VA_ARGS__ })))

bool tci_yaml_is_null(struct tci_text text)
{
    return !text.length || is_any(text, "~", "null", "Null", "NULL");
}

/* ---- words ------------------------------------------------------------------------------ */

/* The booleans of YAML 1.1 that are strings in 1.2, in the spellings that 1.1 lists; not its y and
 * n, which hardly any reader took over: they are the names of too many things. */
static const char *const old_true[] = { "yes", "Yes", "YES", "on", "On", "ON" };
static const char *const old_false[] = { "no", "No", "NO", "off", "Off", "OFF" };

static int refuse_old_boolean(struct tci_text text, bool meaning, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX,
                  "%.*s is a boolean to some YAML readers and text to others", shown(text),
                  text.data);
    tci_error_remedy(reterr, "write %s, or \"%.*s\" in quotes if it is text",
                     meaning ? "true" : "false", shown(text), text.data);
    return -1;
}

static int refuse_disputed(struct tci_text text, const char *what, const char *remedy,
                           struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "%s is %s to some YAML readers and text to others",
                  tci_yaml_excerpt(text).text, what);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

/* 1: a word with a meaning, 0: not, -1: refused. */
static int type_word(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    bool is_true = is_any(text, "true", "True", "TRUE");
    if (is_true || is_any(text, "false", "False", "FALSE")) {
        node->type = TCI_NODE_BOOLEAN;
        node->boolean = is_true;
        return 1;
    }
    if (is_one_of(text, old_true, tci_array_size(old_true)))
        return refuse_old_boolean(text, true, reterr);
    if (is_one_of(text, old_false, tci_array_size(old_false)))
        return refuse_old_boolean(text, false, reterr);
    if (is_any(text, "=", "<<"))
        return refuse_disputed(text, "a sign with a meaning", "put it in quotes", reterr);

    if (is_any(text, ".nan", ".NaN", ".NAN")) {
        node->type = TCI_NODE_FLOAT;
        node->number = (double)NAN;
        return 1;
    }
    bool negative = text.length && text.data[0] == '-';
    if (negative || (text.length && text.data[0] == '+'))
        text = (struct tci_text){ text.data + 1, text.length - 1 };
    if (is_any(text, ".inf", ".Inf", ".INF")) {
        node->type = TCI_NODE_FLOAT;
        node->number = negative ? -(double)INFINITY : (double)INFINITY;
        return 1;
    }
    return 0;
}

/* ---- numbers ---------------------------------------------------------------------------- */

#define DIGITS "0123456789"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Goes over `least` to `most` characters of a set, as many as there are; or stays, false. */
static bool take(struct tci_text text, size_t *at, const char *set, size_t least, size_t most)
{
    size_t count = strspn(text.data + *at, set);
    if (count < least)
        return false;
    *at += count < most ? count : most;
    return true;
}

/* ( [eE] [-+]? [0-9]+ )?; `ret_agreed`: there is none, or it has the sign that YAML 1.1 wants. */
static void take_exponent(struct tci_text text, size_t *at, bool *ret_agreed)
{
    size_t begin = *at;
    *ret_agreed = true;
    if (!take(text, at, "eE", 1, 1))
        return;
    *ret_agreed = take(text, at, "-+", 1, 1);
    if (!take(text, at, DIGITS, 1, SIZE_MAX))
        *at = begin;
}

/* (: [0-5]? [0-9])+ ( \. [0-9_]* )? up to the end: a number in base 60. */
static bool is_sexagesimal(struct tci_text text, size_t at)
{
    size_t groups = 0;
    while (take(text, &at, ":", 1, 1)) {
        bool two = take(text, &at, "012345", 1, 1);
        if (!take(text, &at, DIGITS, 1, 1) && !two)
            return false;
        groups++;
    }
    if (groups && take(text, &at, ".", 1, 1))
        (void)take(text, &at, DIGITS "_", 0, SIZE_MAX);
    return groups && at == text.length;
}

/*
 * Is it a number to YAML 1.1 or to 1.2, but not to both, or not the same? Both agree on decimal
 * integers, on hexadecimal ones without a sign, and on floats that have a point, a digit before it
 * if there is a sign, and a sign in the exponent. Leading zeros are looked at elsewhere.
 */
static bool is_disputed_number(struct tci_text text)
{
    bool underscore = memchr(text.data, '_', text.length), point, exponent_agreed;
    size_t at = 0, after;
    bool sign = take(text, &at, "-+", 1, 1), whole;

    after = at + 2;
    if (strncmp(text.data + at, "0b", 2) == 0)
        return take(text, &after, "01_", 1, SIZE_MAX) && after == text.length;
    if (strncmp(text.data + at, "0o", 2) == 0) /* 1.2 alone has it, and without a sign */
        return !sign && take(text, &after, "01234567", 1, SIZE_MAX) && after == text.length;
    if (strncmp(text.data + at, "0x", 2) == 0)
        return take(text, &after, DIGITS "abcdefABCDEF_", 1, SIZE_MAX) && after == text.length &&
               (sign || underscore);

    whole = text.data[at] != '_' && take(text, &at, DIGITS "_", 1, SIZE_MAX);
    if (whole && is_sexagesimal(text, at))
        return true;
    after = at;
    point = take(text, &at, ".", 1, 1);
    if (point && (whole || is_digit(text.data[at])))
        (void)take(text, &at, DIGITS "_", 0, SIZE_MAX);
    if (!whole && at <= after + 1)
        return false;
    after = at;
    take_exponent(text, &at, &exponent_agreed);
    if (at != text.length)
        return false;
    return underscore || (!whole && sign) || (at != after && !(point && exponent_agreed));
}

static int type_disputed_number(struct tci_text text, struct tci_node *node,
                                struct tc_error *reterr)
{
    (void)node;
    if (!is_disputed_number(text))
        return 0;
    return refuse_disputed(text, "a number",
                           "put it in quotes if it is text; write a number like 12, 0x1F, 0.5 or "
                           "1.0e+3",
                           reterr);
}

/* The value of a digit in bases up to 16; 16 for what is none. */
static unsigned digit_value(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

/* How many digits of that base there are from `at` on. */
static size_t count_digits(struct tci_text text, size_t at, unsigned base)
{
    size_t count = 0;
    while (at + count < text.length && digit_value(text.data[at + count]) < base)
        count++;
    return count;
}

static int refuse_range(struct tci_text text, const char *what, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "the number %.*s%s %s", shown(text), text.data,
                  text.length > shown_max ? "..." : "", what);
    tci_error_remedy(reterr, "write a smaller number, or put it in quotes if it is text");
    return -1;
}

/* All of text from `at` on is digits of that base. */
static int read_integer(struct tci_text text, size_t at, unsigned base, struct tci_node *node,
                        struct tc_error *reterr)
{
    bool negative = text.data[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0), value = 0;

    for (size_t i = at; i < text.length; i++) {
        unsigned digit = digit_value(text.data[i]);
        if (value > (limit - digit) / base)
            return refuse_range(text, "does not fit into 64 bits", reterr);
        value = value * base + digit;
    }
    node->type = TCI_NODE_INTEGER;
    /* INT64_MIN has no positive counterpart: negate as unsigned, then convert. */
    node->integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 1;
}

static int refuse_leading_zero(struct tci_text text, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX,
                  "%.*s is octal to some YAML readers and decimal to others", shown(text),
                  text.data);
    tci_error_remedy(reterr,
                     "leave out the leading zeros for a decimal number, or put it in quotes "
                     "if it is text");
    return -1;
}

/* 1: an integer, 0: not, -1: refused. */
static int type_integer(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    size_t at = text.length && (text.data[0] == '-' || text.data[0] == '+') ? 1 : 0;

    if (text.length > 2 && text.data[0] == '0' && text.data[1] == 'x' &&
        count_digits(text, 2, 16) == text.length - 2)
        return read_integer(text, 2, 16, node, reterr);
    if (at == text.length || count_digits(text, at, 10) != text.length - at)
        return 0;
    if (text.data[at] == '0' && text.length > at + 1)
        return refuse_leading_zero(text, reterr);
    return read_integer(text, at, 10, node, reterr);
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool looks_like_float(struct tci_text text)
{
    size_t at = text.length && (text.data[0] == '-' || text.data[0] == '+') ? 1 : 0;
    size_t whole = count_digits(text, at, 10), fraction = 0;

    at += whole;
    if (at < text.length && text.data[at] == '.') {
        fraction = count_digits(text, at + 1, 10);
        at += 1 + fraction;
    }
    if (!whole && !fraction)
        return false;
    if (at < text.length && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        if (at < text.length && (text.data[at] == '-' || text.data[at] == '+'))
            at++;
        size_t exponent = count_digits(text, at, 10);
        if (!exponent)
            return false;
        at += exponent;
    }
    return at == text.length;
}

static void free_locale(locale_t *locale)
{
    if (*locale)
        freelocale(*locale);
}

/* 1: a float, 0: not, -1: refused. */
static int type_float(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    if (!looks_like_float(text))
        return 0;
    if (text.length > number_length_max)
        return refuse_range(text, "is too long", reterr);
    /* strtod alone would expect the decimal comma of a German host. */
    tc_cleanup(free_locale) locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL);
    if (!c_locale)
        return tci_error_no_memory(reterr);
    double number = strtod_l(text.data, NULL, c_locale);
    if (isinf(number))
        return refuse_range(text, "is too large", reterr);
    node->type = TCI_NODE_FLOAT;
    node->number = number;
    return 1;
}

/* ---- dates ------------------------------------------------------------------------------ */

/* Does text begin with the shape? '0' stands for any digit, T also for its small letter and for a
 * space, the rest for itself. */
static bool has_shape(struct tci_text text, size_t at, const char *shape)
{
    for (; *shape; shape++, at++) {
        char c = at < text.length ? text.data[at] : '\0';
        bool fits = *shape == '0'   ? is_digit(c)
                    : *shape == 'T' ? c == 'T' || c == 't' || c == ' '
                                    : c == *shape;
        if (!fits)
            return false;
    }
    return true;
}

static int number_at(struct tci_text text, size_t at, size_t digits)
{
    int value = 0;
    for (size_t i = at; i < at + digits; i++)
        value = value * 10 + (text.data[i] - '0');
    return value;
}

static int days_in_month(int year, int month)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool date_is_valid(const struct tci_datetime *d)
{
    return d->month >= 1 && d->month <= 12 && d->day >= 1 &&
           d->day <= days_in_month(d->year, d->month);
}

/* 60: RFC 3339 and TOML allow the leap second. */
static bool time_is_valid(const struct tci_datetime *d)
{
    return d->hour <= 23 && d->minute <= 59 && d->second <= 60;
}

/* "T23:59:59.999" at `at`; returns where it ends, 0 when there is no such thing. */
static size_t read_time(struct tci_text text, size_t at, struct tci_datetime *d)
{
    if (!has_shape(text, at, "T00:00:00"))
        return 0;
    d->hour = (int8_t)number_at(text, at + 1, 2);
    d->minute = (int8_t)number_at(text, at + 4, 2);
    d->second = (int8_t)number_at(text, at + 7, 2);
    at += 9;
    if (!has_shape(text, at, ".0"))
        return at;
    size_t digits = count_digits(text, at + 1, 10);
    /* Digits beyond the nanosecond are cut, as in TOML. */
    for (size_t i = 0; i < 9; i++)
        d->nanosecond = d->nanosecond * 10 +
                        (i < digits ? (uint32_t)(text.data[at + 1 + i] - '0') : 0);
    return at + 1 + digits;
}

/* "Z" or "+05:30" at `at`, up to the end of the text. False: not an offset, or out of range with
 * *ret_valid false. */
static bool read_offset(struct tci_text text, size_t at, struct tci_datetime *d, bool *ret_valid)
{
    *ret_valid = true;
    if (has_shape(text, at, "Z"))
        return at + 1 == text.length;
    if (!(has_shape(text, at, "+00:00") || has_shape(text, at, "-00:00")) || at + 6 != text.length)
        return false;
    int hours = number_at(text, at + 1, 2), minutes = number_at(text, at + 4, 2);
    *ret_valid = hours <= 23 && minutes <= 59;
    d->offset_minutes = (int16_t)((text.data[at] == '-' ? -1 : 1) * (hours * 60 + minutes));
    return true;
}

static int refuse_date(struct tci_text text, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "%.*s looks like a date, but there is no such %s",
                  shown(text), text.data, text.length > 10 ? "date and time" : "day");
    tci_error_remedy(reterr, "correct it, or put it in quotes if it is text");
    return -1;
}

/* The timestamps of YAML 1.1 and the small z of RFC 3339, of which read_date() takes but those
 * that are written like TOML's. */
static bool looks_like_timestamp(struct tci_text text)
{
    size_t at = 0;
    if (!take(text, &at, DIGITS, 4, 4) || !take(text, &at, "-", 1, 1) ||
        !take(text, &at, DIGITS, 1, 2) || !take(text, &at, "-", 1, 1) ||
        !take(text, &at, DIGITS, 1, 2) ||
        !(take(text, &at, "Tt", 1, 1) || take(text, &at, " \t", 1, SIZE_MAX)) ||
        !take(text, &at, DIGITS, 1, 2) || !take(text, &at, ":", 1, 1) ||
        !take(text, &at, DIGITS, 2, 2) || !take(text, &at, ":", 1, 1) ||
        !take(text, &at, DIGITS, 2, 2))
        return false;
    if (take(text, &at, ".", 1, 1))
        (void)take(text, &at, DIGITS, 0, SIZE_MAX);
    (void)take(text, &at, " \t", 0, SIZE_MAX);
    if (!take(text, &at, "Zz", 1, 1) && take(text, &at, "-+", 1, 1) &&
        (!take(text, &at, DIGITS, 1, 2) ||
         (take(text, &at, ":", 1, 1) && !take(text, &at, DIGITS, 2, 2))))
        return false;
    return at == text.length;
}

/* 1: a date or a date and time, 0: not, -1: refused. */
static int read_date(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    struct tci_datetime d = { 0 };
    enum tci_node_type type = TCI_NODE_LOCAL_DATE;
    bool offset_valid = true;

    if (!has_shape(text, 0, "0000-00-00"))
        return 0;
    d.year = (int16_t)number_at(text, 0, 4);
    d.month = (int8_t)number_at(text, 5, 2);
    d.day = (int8_t)number_at(text, 8, 2);
    if (text.length > 10) {
        size_t end = read_time(text, 10, &d);
        if (!end)
            return 0;
        type = end == text.length ? TCI_NODE_LOCAL_DATETIME : TCI_NODE_DATETIME;
        if (type == TCI_NODE_DATETIME && !read_offset(text, end, &d, &offset_valid))
            return 0;
    }
    if (!date_is_valid(&d) || !time_is_valid(&d) || !offset_valid)
        return refuse_date(text, reterr);
    node->type = type;
    node->datetime = d;
    return 1;
}

static int type_date(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    int r = read_date(text, node, reterr);
    if (r || !looks_like_timestamp(text))
        return r;
    return refuse_disputed(text, "a date",
                           "put it in quotes if it is text; write a date like 2027-01-31T12:00:00Z "
                           "or 2027-01-31T12:00:00.5-05:00",
                           reterr);
}

int tci_yaml_type_plain(struct tci_text text, struct tci_node *node, struct tc_error *reterr)
{
    static int (*const types[])(struct tci_text, struct tci_node *,
                                struct tc_error *) = { type_word, type_disputed_number,
                                                       type_integer, type_float, type_date };
    for (size_t i = 0; i < tci_array_size(types); i++) {
        int r = types[i](text, node, reterr);
        if (r)
            return r < 0 ? -1 : 0;
    }
    node->type = TCI_NODE_STRING;
    node->string = text;
    return 0;
}
