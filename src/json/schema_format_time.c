/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: dates, times and durations of RFC 3339. */
#include "json/schema_format.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool take(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* Exactly `count` digits, between the bounds. */
static bool number(struct cursor *c, unsigned count, int least, int most, int *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!is_digit(c))
            return false;
        *ret = *ret * 10 + (*c->at++ - '0');
    }
    return *ret >= least && *ret <= most;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (leap && month == 2);
}

static bool date(struct cursor *c)
{
    int year, month, day;
    return number(c, 4, 0, 9999, &year) && take(c, '-') && number(c, 2, 1, 12, &month) &&
           take(c, '-') && number(c, 2, 1, days_in(year, month), &day);
}

/* Minutes to add to reach UTC. */
static bool offset(struct cursor *c, int *ret)
{
    int hours, minutes;
    bool negative = c->at < c->end && *c->at == '-';

    *ret = 0;
    if (take(c, 'Z') || take(c, 'z'))
        return true;
    if (!take(c, '+') && !take(c, '-'))
        return false;
    if (!number(c, 2, 0, 23, &hours) || !take(c, ':') || !number(c, 2, 0, 59, &minutes))
        return false;
    *ret = (negative ? 1 : -1) * (hours * 60 + minutes);
    return true;
}

/* A leap second is the last one of a day in UTC. */
static bool time_of_day(struct cursor *c)
{
    int hour, minute, second, to_utc;
    if (!number(c, 2, 0, 23, &hour) || !take(c, ':') || !number(c, 2, 0, 59, &minute) ||
        !take(c, ':') || !number(c, 2, 0, 60, &second))
        return false;
    if (take(c, '.')) {
        if (!is_digit(c))
            return false;
        while (is_digit(c))
            c->at++;
    }
    if (!offset(c, &to_utc))
        return false;
    return second < 60 || (hour * 60 + minute + to_utc + 2 * 24 * 60) % (24 * 60) == 23 * 60 + 59;
}

bool tci_format_date(const char *text, size_t length, const struct tci_format_context *context)
{
    struct cursor c = { text, text + length };
    (void)context;
    return date(&c) && c.at == c.end;
}

bool tci_format_time(const char *text, size_t length, const struct tci_format_context *context)
{
    struct cursor c = { text, text + length };
    (void)context;
    return time_of_day(&c) && c.at == c.end;
}

bool tci_format_date_time(const char *text, size_t length, const struct tci_format_context *context)
{
    struct cursor c = { text, text + length };
    (void)context;
    return date(&c) && (take(&c, 'T') || take(&c, 't')) && time_of_day(&c) && c.at == c.end;
}

/* Numbers with units, each the next one in `units` after the one before. Empty is false. */
static bool parts(struct cursor *c, const char *units)
{
    const char *next = NULL;
    while (is_digit(c)) {
        while (is_digit(c))
            c->at++;
        if (c->at == c->end || !*c->at)
            return false;
        if (!next)
            next = strchr(units, *c->at);
        if (!next || !*next || *next != *c->at)
            return false;
        next++;
        c->at++;
    }
    return next != NULL;
}

bool tci_format_duration(const char *text, size_t length, const struct tci_format_context *context)
{
    struct cursor c = { text, text + length };
    (void)context;
    if (!take(&c, 'P'))
        return false;
    if (length > 2 && text[length - 1] == 'W')
        return parts(&c, "W") && c.at == c.end;
    if (is_digit(&c) && !parts(&c, "YMD"))
        return false;
    if (take(&c, 'T') && !parts(&c, "HMS"))
        return false;
    return c.at == c.end && length > 1;
}
