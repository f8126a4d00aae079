/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `format`: which strings are dates, addresses, names and the like. Each check is linear in the
 * length of the text and allocates nothing. Texts are UTF-8 of any length and may contain NUL. */
#ifndef TCI_JSON_SCHEMA_FORMAT_H
#define TCI_JSON_SCHEMA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"
#include "base/error.h"

struct tci_regex;
struct tci_regex_limits;
struct tci_schema_budget;
struct tci_idna;

/* What a check may need. */
struct tci_format_context {
    const struct tci_idna *idna; /* only if the format `needs_names` */
    struct tci_regex_limits *limits;
    struct tci_schema_budget *budget;
};

typedef bool tci_format_function(const char *text, size_t length,
                                 const struct tci_format_context *context);

struct tci_schema_format {
    const char *name, *words; /* "must be <words>" */
    tci_format_function *check;
    bool needs_names;
};

/* NULL: unknown. */
const struct tci_schema_format *tci_schema_format_find(const char *name);

tci_format_function tci_format_date_time, tci_format_date, tci_format_time, tci_format_duration;
tci_format_function tci_format_ipv4, tci_format_ipv6, tci_format_hostname, tci_format_idn_hostname;
tci_format_function tci_format_email, tci_format_idn_email;
tci_format_function tci_format_uri_template;

/* ---- internationalized names (schema_idna.c) --------------------------------------------------- */

enum { TCI_LABEL_MAX = 63, TCI_HOSTNAME_MAX = 253 };

/* The rules of IDNA 2008 (RFC 5891, 5892, 5893), compiled. NULL: error set. */
const struct tci_idna *tci_idna_new(struct tci_arena *arena, struct tci_regex **list,
                                    struct tc_error *reterr) tci_must_check;

/* What is known about a label that passed. */
struct tci_label {
    size_t ascii_length;    /* of its form for the wire: as it is, or "xn--" and its Punycode */
    bool has_right_to_left; /* a letter or digit of a script that runs so */
    bool keeps_bidi_rule;   /* RFC 5893; matters when any label of the name runs right to left */
};

/* Is it a label in Unicode form, or one in ASCII that decodes to one? */
bool tci_idna_label(const struct tci_format_context *context, const char *label, size_t length,
                    struct tci_label *ret);

#endif
