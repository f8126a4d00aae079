/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: URIs and IRIs as text (RFC 3986, RFC 3987): which strings are some, and references within
 * a schema. Nothing here opens anything.
 */
#ifndef TCI_JSON_SCHEMA_URI_H
#define TCI_JSON_SCHEMA_URI_H

#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"

/* A part that is not there has the text NULL; a path is always there. */
struct tci_uri_part {
    const char *text;
    size_t length;
};

struct tci_uri {
    struct tci_uri_part scheme, authority, path, query, fragment;
};

/* Cuts any text into parts; does not check their characters. */
struct tci_uri tci_uri_split(const char *text, size_t length);

/* The reference seen from the base (RFC 3986, section 5.2), without its fragment. A base that is ""
 * leaves the reference as it is. NULL: no memory. */
char *tci_uri_resolve(struct tci_arena *arena, const char *base, const char *reference,
                      size_t length) tci_must_check;

/* The fragment with %XX decoded; "" when there is none. NULL: no memory. A % without two digits is
 * left as it is, and noted. */
char *tci_uri_fragment(struct tci_arena *arena, const char *reference, size_t length,
                       size_t *ret_length, bool *ret_malformed) tci_must_check;

/* Is it a URI or, with `relative`, a reference? With `international`: IRI. */
bool tci_uri_is_valid(const char *text, size_t length, bool relative, bool international);

#endif
