/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: ECMAScript's Number::toString for finite numbers. */
#include "json/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct decimal {
    char digits[20];
    int count, exponent; /* value = 0.DIGITS * 10^exponent */
};

/* The shortest decimal that reads back as `value` (which is positive and finite). */
static struct decimal shortest(double value)
{
    struct decimal d = { .count = 0 };
    char text[40];
    const char *p;

    for (int precision = 0; precision < 17; precision++) {
        (void)snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* Only digits are taken, so that the locale's decimal point does not matter. */
    for (p = text; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && d.count < (int)sizeof d.digits - 1)
            d.digits[d.count++] = *p;
    while (d.count > 1 && d.digits[d.count - 1] == '0')
        d.count--;
    d.exponent = (int)strtol(p + 1, NULL, 10) + 1;
    return d;
}

static char *put(char *out, const char *bytes, int count)
{
    memcpy(out, bytes, (size_t)count);
    return out + count;
}

static char *put_zeros(char *out, int count)
{
    memset(out, '0', (size_t)count);
    return out + count;
}

static char *put_scientific(char *out, const struct decimal *d)
{
    *out++ = d->digits[0];
    if (d->count > 1) {
        *out++ = '.';
        out = put(out, d->digits + 1, d->count - 1);
    }
    return out + sprintf(out, "e%+d", d->exponent - 1);
}

const char *tci_json_number(double value, char buffer[TCI_JSON_NUMBER_MAX])
{
    struct decimal d;
    char *out = buffer;

    if (value == 0) /* also -0 */
        return memcpy(buffer, "0", 2);
    if (value < 0)
        *out++ = '-';
    d = shortest(value < 0 ? -value : value);
    if (d.exponent >= d.count && d.exponent <= 21) {
        out = put(out, d.digits, d.count);
        out = put_zeros(out, d.exponent - d.count);
    } else if (d.exponent > 0 && d.exponent <= 21) {
        out = put(out, d.digits, d.exponent);
        *out++ = '.';
        out = put(out, d.digits + d.exponent, d.count - d.exponent);
    } else if (d.exponent > -6 && d.exponent <= 0) {
        out = put(out, "0.", 2);
        out = put_zeros(out, -d.exponent);
        out = put(out, d.digits, d.count);
    } else {
        out = put_scientific(out, &d);
    }
    *out = '\0';
    return buffer;
}
