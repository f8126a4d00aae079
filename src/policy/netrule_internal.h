/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what netrule.c (rules), netrule_host.c (hosts) and netrule_name.c (names) share, and nobody
 * else uses.
 */
#ifndef TCI_POLICY_NETRULE_INTERNAL_H
#define TCI_POLICY_NETRULE_INTERNAL_H

#include <string.h>
#include "policy/netrule.h"

/* A piece of somebody's text: not NUL-terminated, and any byte may be in it. */
struct tci_span {
    const char *at;
    size_t length;
};

/* A piece as it may be shown: printable ASCII, quoted, cut when long. */
struct tci_excerpt {
    char text[100];
};
const char *tci_span_excerpt(struct tci_span span, struct tci_excerpt *excerpt);

/* Fill in the two halves of a problem. Returns -1, so that a refusal ends with it. */
void tci_problem_message(struct tci_netrule_problem *problem, const char *format, ...)
    tci_printf_like(2, 3);
int tci_problem_remedy(struct tci_netrule_problem *problem, const char *format, ...)
    tci_printf_like(2, 3);

/* Refuses the empty text and every byte that no rule and no host may contain. */
int tci_span_check_bytes(struct tci_span span, struct tci_netrule_problem *problem) tci_must_check;

/* A decimal number up to `max` without sign or leading zero. */
bool tci_span_number(struct tci_span span, unsigned max, unsigned *ret);

/* Lower-cases, drops one dot at the end and checks. `reserved` bytes stood in front ("*."). Sets
 * ret->name. 0, or -1 with *problem. */
int tci_name_parse(struct tci_span text, size_t reserved, struct tci_host *ret,
                   struct tci_netrule_problem *problem) tci_must_check;

static inline struct tci_span tci_span_from(struct tci_span span, size_t start)
{
    return (struct tci_span){ span.at + start, span.length - start };
}

static inline struct tci_span tci_span_until(struct tci_span span, size_t end)
{
    return (struct tci_span){ span.at, end };
}

/* Where the byte first stands, or span.length. */
static inline size_t tci_span_find(struct tci_span span, char wanted)
{
    const char *found = span.length > 0 ? memchr(span.at, wanted, span.length) : NULL;
    return found ? (size_t)(found - span.at) : span.length;
}

static inline bool tci_span_has(struct tci_span span, char wanted)
{
    return tci_span_find(span, wanted) < span.length;
}

static inline char tci_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Does the span start with this lower-case ASCII text, in any case? */
static inline bool tci_span_starts_with(struct tci_span span, const char *lower_case)
{
    size_t length = strlen(lower_case);
    if (span.length < length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (tci_lower(span.at[i]) != lower_case[i])
            return false;
    return true;
}

#endif
