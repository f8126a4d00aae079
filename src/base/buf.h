/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a growing byte buffer with a stated maximum. Failure sticks: append as often as you like
 * and ask once at the end. A failed buffer never holds a silently shortened text.
 */
#ifndef TCI_BASE_BUF_H
#define TCI_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

struct tci_buf {
    char *data; /* NUL-terminated once anything was appended */
    size_t length, capacity, maximum;
    bool no_memory, too_large;
};

#define TCI_BUF_INIT(max)                                                                          \
    {                                                                                              \
        .maximum = (max)                                                                           \
    }

void tci_buf_free(struct tci_buf *buf);
void tci_buf_append(struct tci_buf *buf, const char *bytes, size_t length);
void tci_buf_string(struct tci_buf *buf, const char *text);
void tci_buf_char(struct tci_buf *buf, char c);
void tci_buf_printf(struct tci_buf *buf, const char *format, ...) tci_printf_like(2, 3);

/* 0, or -1 with the reason why the buffer does not hold all that was appended. */
int tci_buf_check(const struct tci_buf *buf, struct tc_error *reterr) tci_must_check;

/* Hands the text over (free() it); "" when nothing was appended; NULL when the buffer failed. */
char *tci_buf_take(struct tci_buf *buf, struct tc_error *reterr) tci_must_check;

#endif
