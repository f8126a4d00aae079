/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: Punycode (RFC 3492), without the "xn--" before it. Fixed memory; texts are short. */
#ifndef TCI_JSON_SCHEMA_PUNYCODE_H
#define TCI_JSON_SCHEMA_PUNYCODE_H

#include <stdbool.h>
#include <stddef.h>

/* To UTF-8. False: not Punycode, or it does not fit. */
bool tci_punycode_decode(const char *text, size_t length, char *ret, size_t size,
                         size_t *ret_length);
/* From UTF-8. */
bool tci_punycode_encode(const char *text, size_t length, char *ret, size_t size,
                         size_t *ret_length);

#endif
