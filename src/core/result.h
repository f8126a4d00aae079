/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what comes back from a call, and how it is written as JSON. */
#ifndef TCI_CORE_RESULT_H
#define TCI_CORE_RESULT_H

#include <stdbool.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "toolcage/toolcage.h"

enum { TCI_DENIALS_MAX = 256, TCI_SIGNAL_NAME_MAX = 16 };

/* A result and the memory of everything in it. The public part comes first. */
struct tci_result {
    struct tc_result public;
    struct tci_arena *arena;
    struct tci_buf output[2]; /* stdout, stderr, as kept */
    uint64_t output_room;     /* bytes of both that may still be kept; 0 in a new result */
    struct tc_denial *denials;
    uint64_t *denial_times;
    size_t denial_room; /* of both */
    char *json;         /* made when asked for */
};

/* A new one with a call id of its own, and with the caller's trace id or, for NULL, one of its own.
 * Its verdict is `error` until somebody knows better. NULL: no memory, or no random numbers. */
struct tci_result *tci_result_new(const char *trace_id) tci_must_check;

/* 32 hexadecimal digits that are not all zero. */
bool tci_trace_id_is_valid(const char *trace_id);

/* Sets verdict, reason and fix (NULL: none). Text that does not fit is cut between characters. */
void tci_result_verdict(struct tci_result *result, enum tc_verdict verdict, const char *fix,
                        const char *format, ...) tci_printf_like(4, 5);

/* Adds a denial, or counts it, if an equal one is there. A cage can be refused things without end:
 * beyond TCI_DENIALS_MAX there is one more entry, of kind "more", and no other, which counts the rest.
 * 0, or -1 without memory. */
int tci_result_deny(struct tci_result *result, const char *kind, const char *target,
                    const char *rule) tci_must_check;
/* The same for what happened several times. */
int tci_result_deny_times(struct tci_result *result, const char *kind, const char *target,
                          const char *rule, uint64_t times) tci_must_check;

/* Counts bytes that the cage printed, and keeps those for which there is room. 0; 1 when some of
 * them were not kept, now or before; -1 without memory. */
int tci_result_keep(struct tci_result *result, enum tc_stream stream, const char *bytes,
                    size_t length) tci_must_check;

/* The sentence of verdicts.def. */
const char *tci_verdict_sentence(enum tc_verdict verdict);

/* "SIGKILL", "SIGRTMIN+1". Returns `buffer`. */
const char *tci_signal_name(int signal, char buffer[TCI_SIGNAL_NAME_MAX]);

/* result_json.c: the whole object, with its hash. free() it; NULL: no memory. */
char *tci_result_write(const struct tc_result *result) tci_must_check;
/* The same in canonical form (RFC 8785) and without `mode`, `hash` and `state_hash`: what `hash` is
 * the SHA-256 of, and what the journal keeps. free() it; NULL: no memory. */
char *tci_result_canonical(const struct tc_result *result) tci_must_check;

#endif
