/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: dates and times (RFC 3339). Trusts nothing but the encoding of the text.
 * Invariant: what comes out exists: a day is one its month has. A 60th second is allowed, as leap
 * seconds are not known ahead.
 */
#include "policy/toml_internal.h"

#include <string.h>

/* The word being read and what it has given so far. */
struct date_word {
    struct tci_toml *t;
    const char *start, *at, *stop;
    struct tci_datetime value;
};

/* What follows the digits at `p`: '-' in a date, ':' in a time; NUL if there are no digits. */
static char behind_digits(const char *p, const char *stop)
{
    const char *start = p;
    while (p < stop && tci_toml_is_digit(*p))
        p++;
    return p > start && p < stop ? *p : '\0';
}

bool tci_toml_is_date(const struct tci_toml *t)
{
    char c = behind_digits(t->at, t->end);
    return c == '-' || c == ':';
}

static struct tci_toml_excerpt word_text(const struct date_word *w)
{
    return tci_toml_plain(tci_toml_text(w->start, w->stop));
}

static int fail_shape(struct date_word *w, const char *what, const char *expected)
{
    tci_toml_fail(w->t, w->start, "%s is not %s: expected %s", word_text(w).text, what, expected);
    tci_error_remedy(w->t->reterr, "put the value in quotes if text is meant");
    return -1;
}

static int fail_date(struct date_word *w)
{
    return fail_shape(w, "a date", "YYYY-MM-DD, such as 2026-03-01");
}

static int fail_time(struct date_word *w)
{
    return w->t->version >= TCI_TOML_1_1 ? fail_shape(w, "a time", "HH:MM or HH:MM:SS")
                                         : fail_shape(w, "a time", "HH:MM:SS, such as 08:30:00");
}

/* Exactly `count` digits. */
static bool take_digits(struct date_word *w, int count, int *ret)
{
    int value = 0;
    if (w->stop - w->at < count)
        return false;
    for (int i = 0; i < count; i++, w->at++) {
        if (!tci_toml_is_digit(*w->at))
            return false;
        value = value * 10 + (*w->at - '0');
    }
    *ret = value;
    return true;
}

static bool take_char(struct date_word *w, const char *any_of)
{
    if (w->at == w->stop || !strchr(any_of, *w->at))
        return false;
    w->at++;
    return true;
}

static int days_of(int year, int month)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static int take_date(struct date_word *w)
{
    int year, month, day;

    if (!take_digits(w, 4, &year) || !take_char(w, "-") || !take_digits(w, 2, &month) ||
        !take_char(w, "-") || !take_digits(w, 2, &day))
        return fail_date(w);
    if (month < 1 || month > 12)
        return tci_toml_fail(w->t, w->start, "there is no month %02d: %s", month,
                             word_text(w).text);
    if (day < 1 || day > days_of(year, month))
        return tci_toml_fail(w->t, w->start, "there is no day %02d in %04d-%02d, which has %d days",
                             day, year, month, days_of(year, month));
    w->value.year = (int16_t)year;
    w->value.month = (int8_t)month;
    w->value.day = (int8_t)day;
    return 0;
}

/* A part of a time: below `limit`. */
static int check_part(struct date_word *w, const char *name, int value, int limit)
{
    if (value < limit)
        return 0;
    return tci_toml_fail(w->t, w->start, "there is no %s %02d: %s", name, value, word_text(w).text);
}

/* Digits beyond nanoseconds are dropped, not rounded, as TOML asks. */
static int take_fraction(struct date_word *w)
{
    uint32_t nanosecond = 0, scale = 100000000;
    const char *first = w->at;

    for (; w->at < w->stop && tci_toml_is_digit(*w->at); w->at++) {
        nanosecond += (uint32_t)(*w->at - '0') * scale;
        scale /= 10;
    }
    if (w->at == first)
        return fail_time(w);
    w->value.nanosecond = nanosecond;
    return 0;
}

static int take_time(struct date_word *w)
{
    int hour, minute, second = 0;

    if (!take_digits(w, 2, &hour) || !take_char(w, ":") || !take_digits(w, 2, &minute))
        return fail_time(w);
    if (take_char(w, ":")) {
        if (!take_digits(w, 2, &second) || (take_char(w, ".") && take_fraction(w) < 0))
            return fail_time(w);
    } else if (w->t->version < TCI_TOML_1_1) {
        tci_toml_fail(w->t, w->start, "the time has no seconds: %s", word_text(w).text);
        tci_error_remedy(w->t->reterr, "add :00, or put the value in quotes if text is meant");
        return -1;
    }
    if (check_part(w, "hour", hour, 24) < 0 || check_part(w, "minute", minute, 60) < 0 ||
        check_part(w, "second", second, 61) < 0)
        return -1;
    w->value.hour = (int8_t)hour;
    w->value.minute = (int8_t)minute;
    w->value.second = (int8_t)second;
    return 0;
}

/* Z, +HH:MM or -HH:MM; 0 when there is none, 1 when there is one. */
static int take_offset(struct date_word *w)
{
    bool negative = w->at < w->stop && *w->at == '-';
    int hour, minute;

    if (take_char(w, "Zz"))
        return 1;
    if (!take_char(w, "+-"))
        return 0;
    if (!take_digits(w, 2, &hour) || !take_char(w, ":") || !take_digits(w, 2, &minute))
        return fail_shape(w, "a time", "an offset such as +01:00 or Z at the end");
    if (check_part(w, "hour", hour, 24) < 0 || check_part(w, "minute", minute, 60) < 0)
        return -1;
    w->value.offset_minutes = (int16_t)((hour * 60 + minute) * (negative ? -1 : 1));
    return 1;
}

/* Between a date and a time a blank may stand for the T: then the word goes on behind it. */
static const char *date_word_end(const struct tci_toml *t)
{
    const char *stop = tci_toml_word_end(t, t->at);
    if (stop - t->at == 10 && t->end - stop > 1 && *stop == ' ' && tci_toml_is_digit(stop[1]))
        stop = tci_toml_word_end(t, stop + 1);
    return stop;
}

static int take_all(struct date_word *w, enum tci_node_type *ret_type)
{
    int r;

    if (behind_digits(w->at, w->stop) == ':') {
        *ret_type = TCI_NODE_LOCAL_TIME;
        return take_time(w);
    }
    if (take_date(w) < 0)
        return -1;
    *ret_type = TCI_NODE_LOCAL_DATE;
    if (!take_char(w, "Tt "))
        return 0;
    if (take_time(w) < 0)
        return -1;
    r = take_offset(w);
    *ret_type = r > 0 ? TCI_NODE_DATETIME : TCI_NODE_LOCAL_DATETIME;
    return r < 0 ? -1 : 0;
}

int tci_toml_date(struct tci_toml *t, struct tci_node *node)
{
    struct date_word w = { .t = t, .start = t->at, .at = t->at, .stop = date_word_end(t) };

    if (take_all(&w, &node->type) < 0)
        return -1;
    if (w.at != w.stop)
        return node->type == TCI_NODE_LOCAL_DATE ? fail_date(&w) : fail_time(&w);
    node->datetime = w.value;
    t->at = w.stop;
    return 0;
}
