/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: numbers as JSON Schema sees them: 1 and 1.0 are one number, comparisons are exact between
 * 64-bit integers and doubles, and a double stands for the shortest decimal that reads back as it,
 * so that 0.0075 is a multiple of 0.0001.
 */
#ifndef TCI_JSON_SCHEMA_NUMBER_H
#define TCI_JSON_SCHEMA_NUMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tci_number {
    bool is_integer;
    int64_t integer;
    double real; /* when it is no integer; never NaN or infinite, which JSON does not have */
};

/* digits * 10^exponent, greater than 0. */
struct tci_divisor {
    uint64_t digits;
    int exponent;
    int64_t integer; /* the same as an integer below 2^53; 0: it is none */
    double scale;    /* 10^-exponent if that is exact and useful; 0: it is not */
};

/* Of a JSON integer or real. */
static inline struct tci_number tci_number_of(const json_t *value)
{
    if (json_is_integer(value))
        return (struct tci_number){ .is_integer = true, .integer = json_integer_value(value) };
    return (struct tci_number){ .real = json_real_value(value) };
}

/* Less than, equal to or greater than 0, as for strcmp. */
int tci_number_compare(struct tci_number a, struct tci_number b);

/* Has it no fraction? Every double beyond 2^52 has none. */
bool tci_number_is_integral(double value);

/* `value` is greater than 0. */
struct tci_divisor tci_divisor_of(struct tci_number value);
bool tci_number_is_multiple(struct tci_number value, const struct tci_divisor *divisor);

#endif
