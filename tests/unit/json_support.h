/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of src/json share: the text of a buffer, and numbers that are the same in every run. */
#ifndef TCI_TESTS_JSON_SUPPORT_H
#define TCI_TESTS_JSON_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "json/write.h"

static char *finish(struct tci_buf *buf)
{
    struct tc_error error = { 0 };
    char *text = tci_buf_take(buf, &error);
    if (!text)
        fail_msg("%s", error.message);
    return text;
}

static inline double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t random_state;

/* xorshift64*: the same numbers in every run. */
static inline uint64_t next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dULL;
}

#endif
