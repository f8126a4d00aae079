/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how internal code fills a struct tc_error. A NULL reterr is allowed everywhere. */
#ifndef TCI_BASE_ERROR_H
#define TCI_BASE_ERROR_H

#include "toolcage/toolcage.h"
#include "base/attr.h"

/* No error. Public functions begin with it: a caller's struct may hold anything. */
void tci_error_clear(struct tc_error *reterr);

/* Sets code and message; returns -1, so that callers write `return tci_error_set(...)`.
 * If *reterr holds an error already, the first cause wins and nothing changes. */
int tci_error_set(struct tc_error *reterr, enum tc_error_code code, const char *format, ...)
    tci_printf_like(3, 4);

/* The same for a failed system call: appends ": " and the text of `errnum`. */
int tci_error_errno(struct tc_error *reterr, int errnum, const char *format, ...)
    tci_printf_like(3, 4);

/* An allocation failed. */
int tci_error_no_memory(struct tc_error *reterr);

/* Adds the stable id and one sentence on what to do, unless the error has them already. */
void tci_error_id(struct tc_error *reterr, const char *id);
void tci_error_remedy(struct tc_error *reterr, const char *format, ...) tci_printf_like(2, 3);

/* Says where, unless it has been said: a file (may be NULL), a line and a column (0: unknown). */
void tci_error_place(struct tc_error *reterr, const char *file, unsigned line, unsigned column);

/* Puts "context: " before the message; returns -1. */
int tci_error_wrap(struct tc_error *reterr, const char *format, ...) tci_printf_like(2, 3);

#endif
