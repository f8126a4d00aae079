/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of network rules share: names as long as names may be, and reading a text that ends
 * where it ends. */
#ifndef TCI_TESTS_NETRULE_SUPPORT_H
#define TCI_TESTS_NETRULE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "policy/netrule.h"

/* Labels of 63 and 61 bytes, names of 253 and 251. */
#define L63  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define N253 L63 "." L63 "." L63 "." L61
#define N251 L61 "." L63 "." L63 "." L61

/* A copy that ends where the text does, so that the sanitizer sees a byte read too many. */
static char *exact_copy(const char *text, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static inline int parse_rule(const char *text, struct tci_netrule *ret,
                             struct tci_netrule_problem *problem)
{
    char *copy = exact_copy(text, strlen(text));
    int r = tci_netrule_parse(copy, strlen(text), ret, problem);
    free(copy);
    return r;
}

static inline int parse_destination(const char *text, struct tci_host *ret,
                                    struct tci_netrule_problem *problem)
{
    char *copy = exact_copy(text, strlen(text));
    int r = tci_destination_parse(copy, strlen(text), ret, problem);
    free(copy);
    return r;
}

#endif
