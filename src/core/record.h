/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a journal keeps of a call: the request in its canonical form, what is left out of it
 * because the policy says so, and the way back from a record to a result.
 */
#ifndef TCI_CORE_RECORD_H
#define TCI_CORE_RECORD_H

#include "base/sha256.h"
#include "core/call.h"

/* ---- redact.c ----------------------------------------------------------------------------- */

/* Texts that must not be stored: each value in all the spellings in which it may come back. */
struct tci_secret {
    const char *text;
    size_t length;
};

struct tci_secrets {
    struct tci_secret *items;
    size_t count;
    bool unread; /* the arguments could not be read: nothing that is said of them may be stored */
    bool too_large; /* not all secrets are here: nothing may be stored but hashes */
};

/* May the result itself not be stored? */
static inline bool tci_has_secrets(const struct tci_secrets *secrets)
{
    return secrets->count > 0 || secrets->unread || secrets->too_large;
}

/*
 * Writes the arguments in canonical form, with {"redacted":"sha256:..."} in place of every value that
 * a pointer (RFC 6901) names; a pointer to nothing is no error. The hash begins with the salt, so that
 * equal values show and cannot be guessed without the journal. Strings, numbers and names of members
 * in them become secrets. `sent`: the arguments as the caller wrote them, or NULL.
 */
int tci_redact_arguments(struct tci_arena *arena, const struct json_t *arguments, const char *sent,
                         const struct tci_strings *pointers, const unsigned char *salt,
                         struct tci_buf *out, struct tci_secrets *ret,
                         struct tc_error *reterr) tci_must_check;

/* The hash that stands in place of a value: its 64 digits. */
void tci_redact_hash(const unsigned char *salt, const char *text, size_t length,
                     char ret[TCI_SHA256_TEXT_MAX]);

/* redact_result.c: a copy of a result in which no text holds a secret. What did not change is shared
 * with it. */
int tci_redact_result(struct tci_arena *arena, const struct tc_result *result,
                      const struct tci_secrets *secrets, struct tc_result *ret,
                      struct tc_error *reterr) tci_must_check;

/* ---- request_text.c ----------------------------------------------------------------------- */

/* A call that leaves a record; in the arena of its result. */
struct tci_recorded {
    enum tci_record record; /* what is kept: never FALSE in a live call that was decided */
    bool without_request;   /* of the request only the hash, whatever `record` says */
    const char *text;       /* the request in its canonical form */
    char hash[TCI_SHA256_TEXT_MAX];
    struct tci_secrets secrets;
    int64_t began_us;     /* since 1970 */
    uint64_t began_clock; /* the same moment of tci_clock_us */
};

int tci_request_text(const struct tc_call *call, const struct tc_request *request,
                     const struct tci_settings *settings, const unsigned char *salt,
                     struct tci_recorded *ret, struct tc_error *reterr) tci_must_check;

/* Is it UTF-8? */
bool tci_is_utf8(const char *text, size_t length);

/* request_diff.c: where two canonical requests differ, as a sentence that is safe to show. */
void tci_request_diff(struct tci_arena *arena, const char *recorded, const char *asked,
                      struct tci_buf *out);

/* ---- result_read.c ------------------------------------------------------------------------ */

/* Fills a result from its canonical form: strictly, every member and nothing else. */
int tci_result_read(struct tci_result *result, const char *text,
                    struct tc_error *reterr) tci_must_check;

/* record_read.c: fills a new result from a record; its mode is the caller's. 1: it cannot be given; *ret_why and *ret_fix are
 * fragments of sentences about that. */
struct tci_journal_row;
int tci_record_read(const struct tci_journal_row *row, struct tci_result *result,
                    const char **ret_why, const char **ret_fix,
                    struct tc_error *reterr) tci_must_check;

#endif
