/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calendar dates as seconds since 1970, in UTC, without the C library's time zone. */
#ifndef TCI_BASE_MOMENT_H
#define TCI_BASE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TCI_MOMENT_TEXT_MAX = 32 };

/* Seconds since 1970-01-01T00:00:00Z of a date that exists in the Gregorian calendar. */
int64_t tci_moment(int year, int month, int day, int hour, int minute, int second,
                   int offset_minutes);

/* "2027-01-01" (its first moment, UTC) or RFC 3339 "2027-01-01T12:00:00Z" / "+02:00". */
bool tci_moment_parse(const char *text, size_t length, int64_t *ret);

/* RFC 3339 in UTC. Returns `buffer`. */
const char *tci_moment_format(int64_t moment, char buffer[TCI_MOMENT_TEXT_MAX]);

#endif
