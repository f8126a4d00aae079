/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing JSON. A streaming writer over struct tci_buf: no tree is built, separators and
 * indentation are kept by the writer, and every string is escaped here and nowhere else.
 * Bytes that are not UTF-8 become U+FFFD: the output is always valid JSON.
 */
#ifndef TCI_JSON_WRITE_H
#define TCI_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

/* A TOML inline value differs from JSON only in how keys are written: the same writer does both,
 * since every string that it writes is a TOML basic string too. */
enum tci_syntax { TCI_SYNTAX_JSON, TCI_SYNTAX_TOML };

struct tci_json {
    struct tci_buf *out;
    enum tci_syntax syntax;
    bool pretty;      /* one member a line, two spaces a level */
    bool after_value; /* a comma is due before the next value */
    unsigned depth;
};

/* Every value function takes the member's key; NULL inside an array or at the top. */
void tci_json_object_begin(struct tci_json *json, const char *key);
void tci_json_object_end(struct tci_json *json);
void tci_json_array_begin(struct tci_json *json, const char *key);
void tci_json_array_end(struct tci_json *json);
void tci_json_string(struct tci_json *json, const char *key, const char *value); /* NULL: null */
void tci_json_bytes(struct tci_json *json, const char *key, const char *value, size_t length);
void tci_json_printf(struct tci_json *json, const char *key, const char *format, ...)
    tci_printf_like(3, 4); /* a string of at most 1 KiB */
void tci_json_unsigned(struct tci_json *json, const char *key, uint64_t value);
void tci_json_integer(struct tci_json *json, const char *key, int64_t value);
void tci_json_double(struct tci_json *json, const char *key, double value); /* not finite: null */
void tci_json_bool(struct tci_json *json, const char *key, bool value);
void tci_json_null(struct tci_json *json, const char *key);
/* Text that is JSON already and goes in unchanged. */
void tci_json_raw(struct tci_json *json, const char *key, const char *value);
/* The same for text of strangers: what deceives or controls terminals becomes an escape, which in
 * valid JSON can only stand in strings. */
void tci_json_value(struct tci_json *json, const char *key, const char *value);

#endif
