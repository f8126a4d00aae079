/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: PCRE2, and the bounds on what one match may cost. The attack: a pattern such as (a+)+$ and a
 * text of 40 letters keep a naive matcher busy for years.
 */
#ifndef TCI_JSON_SCHEMA_REGEX_H
#define TCI_JSON_SCHEMA_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "json/schema_value.h"

struct tci_regex; /* immutable; shared by threads */

/* Limits, and memory for matches that threads borrow. */
struct tci_regex_limits;

/* `matches` as in struct tci_schema_limits. NULL: no memory. */
struct tci_regex_limits *tci_regex_limits_new(uint32_t matches) tci_must_check;
void tci_regex_limits_free(struct tci_regex_limits *limits);

/* An expression of ECMA-262. Fails with SYNTAX (what is wrong, and at which byte), TOO_LARGE or
 * NO_MEMORY. It is put before `*list`, which tci_regex_free_list frees. */
int tci_regex_compile(const char *pattern, size_t length, struct tci_regex **list,
                      const struct tci_regex **ret, struct tc_error *reterr) tci_must_check;
/* The same for an expression that is PCRE2's already. */
int tci_regex_compile_raw(const char *pattern, struct tci_regex **list,
                          const struct tci_regex **ret, struct tc_error *reterr) tci_must_check;
void tci_regex_free_list(struct tci_regex *list);

/* Does it match anywhere in the text? False also when the budget is or becomes exhausted. A text that
 * is not UTF-8 matches nothing. */
bool tci_regex_matches(const struct tci_regex *regex, struct tci_regex_limits *limits,
                       const char *text, size_t length, struct tci_schema_budget *budget);

/* Is the text an expression of ECMA-262? Allocates nothing. */
bool tci_regex_is_valid(const char *pattern, size_t length);

#endif
