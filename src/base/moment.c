/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calendar arithmetic for years 1 to 9999. */
#include "base/moment.h"

#include <stdio.h>
#include <string.h>

enum { day_seconds = 86400 };

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1970-01-01, by whole 400-year cycles that begin in March. */
static int64_t days_from_epoch(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

int64_t tci_moment(int year, int month, int day, int hour, int minute, int second,
                   int offset_minutes)
{
    return days_from_epoch(year, month, day) * day_seconds + (int64_t)hour * 3600 +
           (int64_t)minute * 60 + second - (int64_t)offset_minutes * 60;
}

/* Exactly `count` digits at *cursor. */
static bool take_number(const char **cursor, const char *end, int count, int *ret)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (*cursor == end || **cursor < '0' || **cursor > '9')
            return false;
        value = value * 10 + (*(*cursor)++ - '0');
    }
    *ret = value;
    return true;
}

static bool take_byte(const char **cursor, const char *end, const char *any_of)
{
    if (*cursor == end || !**cursor || !strchr(any_of, **cursor))
        return false;
    (*cursor)++;
    return true;
}

static bool take_offset(const char **cursor, const char *end, int *ret_minutes)
{
    int hours, minutes, sign = *cursor < end && **cursor == '-' ? -1 : 1;
    if (take_byte(cursor, end, "Zz")) {
        *ret_minutes = 0;
        return true;
    }
    if (!take_byte(cursor, end, "+-") || !take_number(cursor, end, 2, &hours) ||
        !take_byte(cursor, end, ":") || !take_number(cursor, end, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

bool tci_moment_parse(const char *text, size_t length, int64_t *ret)
{
    const char *p = text, *end = text + length;
    int year, month, day, hour = 0, minute = 0, second = 0, offset = 0;

    if (!take_number(&p, end, 4, &year) || !take_byte(&p, end, "-") ||
        !take_number(&p, end, 2, &month) || !take_byte(&p, end, "-") ||
        !take_number(&p, end, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    if (p < end) {
        if (!take_byte(&p, end, "Tt ") || !take_number(&p, end, 2, &hour) ||
            !take_byte(&p, end, ":") || !take_number(&p, end, 2, &minute) ||
            !take_byte(&p, end, ":") || !take_number(&p, end, 2, &second) ||
            !take_offset(&p, end, &offset))
            return false;
        if (hour > 23 || minute > 59 || second > 60 || p != end)
            return false;
    }
    *ret = tci_moment(year, month, day, hour, minute, second, offset);
    return true;
}

const char *tci_moment_format(int64_t moment, char buffer[TCI_MOMENT_TEXT_MAX])
{
    int64_t days = moment / day_seconds, rest = moment % day_seconds;
    if (rest < 0) {
        rest += day_seconds;
        days--;
    }
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    int64_t year = year_of_era + era * 400 + (month <= 2);

    (void)snprintf(buffer, TCI_MOMENT_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02dZ",
                   (int)(year % 10000), (int)month, (int)day, (int)(rest / 3600),
                   (int)(rest / 60 % 60), (int)(rest % 60));
    return buffer;
}
