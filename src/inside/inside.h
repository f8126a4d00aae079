/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the built-in tools share. They are programs that run inside a cage: unlike the library
 * they print and exit. The cage is the wall; nothing here keeps a secret or guards a path.
 *
 * A tool reads one JSON object from standard input. It prints one JSON object and exits with 0, or
 * it prints one sentence that a model can act on to standard error and exits with 1.
 * The schema has checked the arguments already. They are checked again: whoever can start the
 * program may have left the schema out.
 */
#ifndef TCI_INSIDE_INSIDE_H
#define TCI_INSIDE_INSIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/attr.h"
#include "base/buf.h"
#include "json/write.h"

#define tci_no_return __attribute__((__noreturn__))

enum {
    TCI_INSIDE_ARGUMENTS_MAX = 16 << 20, /* bytes of the arguments */
    /* Bytes of an answer: the default `output` of a policy is a million, and the answer must fit. */
    TCI_INSIDE_ANSWER_MAX = 950 * 1000,
};

/* Prints the sentence with a line end and exits with 1. */
tci_no_return void tci_inside_fail(const char *format, ...) tci_printf_like(1, 2);
/* The same for a path and the errno of what was tried, such as "be read". */
tci_no_return void tci_inside_fail_path(int errnum, const char *path, const char *what);
tci_no_return void tci_inside_no_memory(void);

/* The text in double quotes: what controls or deceives a reader becomes \xNN. Lives for ever. */
const char *tci_inside_shown(const char *text, size_t length);
/* As a name in an answer: bytes that are not UTF-8 become \xNN. True when there are such bytes. */
bool tci_inside_name(struct tci_buf *out, const char *name, size_t length);

/* The arguments, from standard input. */
json_t *tci_inside_arguments(void);
/* A string, or NULL when it is absent (which fails when `required`). It may hold NULs. */
const char *tci_inside_string(const json_t *arguments, const char *key, bool required,
                              size_t *ret_length);
/* A path: not empty, no NUL in it, not longer than the kernel takes. */
const char *tci_inside_path(const json_t *arguments, const char *key, const char *otherwise);
bool tci_inside_bool(const json_t *arguments, const char *key, bool otherwise);
/* Fails unless it is an integer (1.0 is one) from `least` to `most`. */
int64_t tci_inside_integer(const json_t *arguments, const char *key, int64_t least, int64_t most,
                           int64_t otherwise);

/* Memory that is freed when the program ends; never NULL. */
void *tci_inside_alloc(size_t size);

/* Prints the answer with a line end; fails when it is not whole. */
void tci_inside_answer(const struct tci_buf *answer);

#endif
