/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: numbers as JSON text. */
#ifndef TCI_JSON_NUMBER_H
#define TCI_JSON_NUMBER_H

enum { TCI_JSON_NUMBER_MAX = 32 };

/* A finite number in the form of RFC 8785 (ECMAScript's): the fewest digits that read back as the
 * same value, whatever the locale. Returns `buffer`. */
const char *tci_json_number(double value, char buffer[TCI_JSON_NUMBER_MAX]);

#endif
