/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: sizes and durations as text: "128MB", "128MiB", "500ms", "1.5h". Pure functions. */
#ifndef TCI_POLICY_UNITS_H
#define TCI_POLICY_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum tci_unit_problem {
    TCI_UNIT_OK,
    TCI_UNIT_NO_NUMBER, /* "MB" */
    TCI_UNIT_NO_UNIT,   /* "128" */
    TCI_UNIT_UNKNOWN,   /* "128 parsecs" */
    TCI_UNIT_TOO_LARGE, /* does not fit */
    TCI_UNIT_FRACTION,  /* not a whole number of bytes or milliseconds */
};

enum { TCI_UNIT_TEXT_MAX = 32 };

/* Bytes: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). */
enum tci_unit_problem tci_size_parse(const char *text, size_t length, uint64_t *ret_bytes);
/* Milliseconds: ms, s, m, h. */
enum tci_unit_problem tci_duration_parse(const char *text, size_t length, uint64_t *ret_ms);

/* The shortest exact spelling, which parses to the same value. Returns `buffer`. */
const char *tci_size_format(uint64_t bytes, char buffer[TCI_UNIT_TEXT_MAX]);
const char *tci_duration_format(uint64_t ms, char buffer[TCI_UNIT_TEXT_MAX]);

#endif
