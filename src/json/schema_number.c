/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: exact comparison and divisibility. No step of it depends on the rounding of a quotient, and
 * none needs the library of mathematical functions, which the command would have to load. */
#include "json/schema_number.h"

#include <math.h>
#include <stdlib.h>
#include "json/number.h"

static const double two_to_53 = 9007199254740992.0, two_to_63 = 9223372036854775808.0;

__extension__ typedef unsigned __int128 wide;

/* digits * 10^exponent; digits do not end in 0. */
struct decimal {
    uint64_t digits;
    int exponent;
};

static int compare_integer_real(int64_t integer, double real)
{
    int64_t whole;
    if (real >= two_to_63)
        return -1;
    if (real < -two_to_63)
        return 1;
    whole = (int64_t)real; /* exact: within the range, and cut towards 0 */
    if (integer != whole)
        return integer < whole ? -1 : 1;
    return (double)whole < real ? -1 : (double)whole > real;
}

int tci_number_compare(struct tci_number a, struct tci_number b)
{
    if (a.is_integer && b.is_integer)
        return a.integer < b.integer ? -1 : a.integer > b.integer;
    if (a.is_integer)
        return compare_integer_real(a.integer, b.real);
    if (b.is_integer)
        return -compare_integer_real(b.integer, a.real);
    return a.real < b.real ? -1 : a.real > b.real;
}

bool tci_number_is_integral(double value)
{
    if (value > -two_to_53 && value < two_to_53)
        return (double)(int64_t)value == value;
    return isfinite(value);
}

static uint64_t magnitude(int64_t integer)
{
    return integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
}

static struct decimal without_zeros(struct decimal d)
{
    while (d.digits && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

/* The magnitude of a number. A double has at most 17 digits in its shortest form. */
static struct decimal decimal_of(struct tci_number value)
{
    char text[TCI_JSON_NUMBER_MAX];
    struct decimal d = { 0, 0 };
    bool in_fraction = false;

    if (value.is_integer)
        return without_zeros((struct decimal){ magnitude(value.integer), 0 });
    tci_json_number(fabs(value.real), text);
    for (const char *p = text; *p; p++) {
        if (*p == '.') {
            in_fraction = true;
        } else if (*p == 'e') {
            d.exponent += (int)strtol(p + 1, NULL, 10);
            break;
        } else if (d.digits < UINT64_MAX / 10 - 1) {
            d.digits = d.digits * 10 + (uint64_t)(*p - '0');
            d.exponent -= in_fraction;
        } else {
            d.exponent += !in_fraction; /* only zeros are left of 21 digits before a point */
        }
    }
    return without_zeros(d);
}

struct tci_divisor tci_divisor_of(struct tci_number value)
{
    struct decimal d = decimal_of(value);
    struct tci_divisor divisor = { .digits = d.digits, .exponent = d.exponent };
    double real = value.is_integer ? (double)value.integer : value.real;

    if (real < two_to_53 && tci_number_is_integral(real))
        divisor.integer = (int64_t)real;
    if (d.exponent < 0 && d.exponent >= -15) {
        divisor.scale = 1;
        for (int i = d.exponent; i < 0; i++)
            divisor.scale *= 10;
    }
    return divisor;
}

static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((wide)a * b % modulus);
}

static uint64_t power_of_ten_modulo(unsigned exponent, uint64_t modulus)
{
    uint64_t result = 1 % modulus, base = 10 % modulus;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = multiply_modulo(result, base, modulus);
        base = multiply_modulo(base, base, modulus);
    }
    return result;
}

/* With whole numbers only: digits * 10^n must leave nothing when divided by the divisor's digits. */
static bool is_decimal_multiple(struct decimal value, const struct tci_divisor *divisor)
{
    int shift = value.exponent - divisor->exponent;
    wide scaled = divisor->digits;

    if (value.digits == 0)
        return true;
    if (shift >= 0)
        return multiply_modulo(value.digits % divisor->digits,
                               power_of_ten_modulo((unsigned)shift, divisor->digits),
                               divisor->digits) == 0;
    for (; shift < 0 && scaled <= value.digits; shift++)
        scaled *= 10;
    return scaled <= value.digits && value.digits % (uint64_t)scaled == 0;
}

bool tci_number_is_multiple(struct tci_number value, const struct tci_divisor *divisor)
{
    double real = value.is_integer ? (double)value.integer : value.real;
    bool is_exact = fabs(real) < two_to_53;

    if (divisor->integer && is_exact)
        return tci_number_is_integral(real) && (int64_t)real % divisor->integer == 0;
    if (divisor->scale > 0 && fabs(real) * divisor->scale < 1e15) {
        /* Decimals of up to 15 digits and doubles correspond one to one, and the quotient of two
         * exact numbers is the double nearest to it: equal means that this is the decimal. */
        double scaled = real * divisor->scale;
        int64_t whole = (int64_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
        return (double)whole / divisor->scale == real && whole % (int64_t)divisor->digits == 0;
    }
    return is_decimal_multiple(decimal_of(value), divisor);
}
