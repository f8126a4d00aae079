/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading and writing numbers with units. Integer arithmetic only: no rounding, no locale. */
#include "policy/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/attr.h"

__extension__ typedef unsigned __int128 wide;

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    { "TiB", 1ULL << 40 }, { "TB", 1000000000000ULL },
    { "GiB", 1ULL << 30 }, { "GB", 1000000000 },
    { "MiB", 1ULL << 20 }, { "MB", 1000000 },
    { "KiB", 1ULL << 10 }, { "kB", 1000 },
    { "KB", 1000 },        { "B", 1 },
};

static const struct unit duration_units[] = {
    { "h", 3600000 },
    { "m", 60000 },
    { "s", 1000 },
    { "ms", 1 },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "DIGITS[.DIGITS][space]UNIT" -> value in the smallest unit. */
static enum tci_unit_problem parse(const char *text, size_t length, const struct unit *units,
                                   size_t unit_count, uint64_t *ret)
{
    uint64_t whole = 0, fraction = 0, scale = 1;
    size_t i = 0;

    if (i == length || !is_digit(text[i]))
        return TCI_UNIT_NO_NUMBER;
    for (; i < length && is_digit(text[i]); i++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
            return TCI_UNIT_TOO_LARGE;
    }
    if (i + 1 < length && text[i] == '.' && is_digit(text[i + 1])) {
        for (i++; i < length && is_digit(text[i]); i++) {
            if (scale > 100000000)
                return TCI_UNIT_FRACTION;
            fraction = fraction * 10 + (uint64_t)(text[i] - '0');
            scale *= 10;
        }
    }
    if (i < length && text[i] == ' ')
        i++;
    if (i == length)
        return TCI_UNIT_NO_UNIT;
    for (size_t u = 0; u < unit_count; u++) {
        uint64_t factor = units[u].factor;
        wide parts;
        if (strlen(units[u].name) != length - i || memcmp(units[u].name, text + i, length - i) != 0)
            continue;
        parts = (wide)fraction * factor; /* up to 10^9 * 2^40 */
        if (__builtin_mul_overflow(whole, factor, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(parts / scale), &whole) || whole == UINT64_MAX)
            return TCI_UNIT_TOO_LARGE;
        if (parts % scale)
            return TCI_UNIT_FRACTION;
        *ret = whole;
        return TCI_UNIT_OK;
    }
    return TCI_UNIT_UNKNOWN;
}

enum tci_unit_problem tci_size_parse(const char *text, size_t length, uint64_t *ret_bytes)
{
    return parse(text, length, size_units, tci_array_size(size_units), ret_bytes);
}

enum tci_unit_problem tci_duration_parse(const char *text, size_t length, uint64_t *ret_ms)
{
    return parse(text, length, duration_units, tci_array_size(duration_units), ret_ms);
}

/* The largest unit that divides the value. */
static const char *format(uint64_t value, const struct unit *units, size_t unit_count,
                          char buffer[TCI_UNIT_TEXT_MAX])
{
    const struct unit *unit = &units[unit_count - 1];
    for (size_t i = 0; value && i < unit_count; i++) {
        if (value % units[i].factor == 0) {
            unit = &units[i];
            break;
        }
    }
    (void)snprintf(buffer, TCI_UNIT_TEXT_MAX, "%" PRIu64 "%s", value / unit->factor, unit->name);
    return buffer;
}

const char *tci_size_format(uint64_t bytes, char buffer[TCI_UNIT_TEXT_MAX])
{
    return format(bytes, size_units, tci_array_size(size_units), buffer);
}

const char *tci_duration_format(uint64_t ms, char buffer[TCI_UNIT_TEXT_MAX])
{
    return format(ms, duration_units, tci_array_size(duration_units), buffer);
}
