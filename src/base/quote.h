/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: showing bytes of strangers in messages. */
#ifndef TCI_BASE_QUOTE_H
#define TCI_BASE_QUOTE_H

#include <stddef.h>

enum { TCI_QUOTE_MAX = 80 };

/* The text in double quotes, every byte outside printable ASCII as \xNN, quotes and backslashes
 * escaped, cut at 60 bytes: safe for terminals, logs and models. Returns `buffer`. */
const char *tci_quote(const char *text, size_t length, char buffer[TCI_QUOTE_MAX]);

#endif
