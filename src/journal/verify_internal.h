/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of verify share. */
#ifndef TCI_JOURNAL_VERIFY_INTERNAL_H
#define TCI_JOURNAL_VERIFY_INTERNAL_H

#include "journal/journal_internal.h"

/* Where a session stands while its rows go by. */
struct tci_verify_session {
    uint64_t hash; /* of the name */
    uint64_t step, row;
    char state_hash[TCI_SHA256_TEXT_MAX];
    char name[];
};

/* A table of them. Names come from strangers: the hash has a key. */
struct tci_verify_sessions {
    uint64_t key[2];
    struct tci_verify_session **slots, *last; /* the one that was found last */
    size_t count, capacity;                   /* capacity: a power of two */
};

int tci_verify_sessions_init(struct tci_verify_sessions *sessions,
                             struct tc_error *reterr) tci_must_check;
void tci_verify_sessions_free(struct tci_verify_sessions *sessions);
/* Finds it, or makes it with step 0 and no state. NULL without memory. */
struct tci_verify_session *tci_verify_session(struct tci_verify_sessions *sessions,
                                              const char *name) tci_must_check;
/* NULL: there is none. */
struct tci_verify_session *tci_verify_session_find(struct tci_verify_sessions *sessions,
                                                   const char *name);

/* What an index must hold, summed up so that the order does not matter. */
struct tci_verify_sums {
    uint64_t session, call, special, special_rows;
};
void tci_verify_sum(const uint64_t key[2], uint64_t *sum, const char *text, uint64_t a, uint64_t b);

/* 1 a row, 0 no more, -1 an error. Damage of the file is a finding at `row`, and then 0. */
int tci_verify_step(struct tci_journal *journal, sqlite3_stmt *statement,
                    struct tci_journal_report *report, uint64_t row,
                    struct tc_error *reterr) tci_must_check;

/* verify_indexes.c. A statement; NULL with an error. */
sqlite3_stmt *tci_verify_prepare(struct tci_journal *journal, const char *sql,
                                 struct tc_error *reterr) tci_must_check;
/* A column that is a text without a NUL inside, behind which more could hide; NULL: it is not. */
const char *tci_verify_text(sqlite3_stmt *statement, int column) tci_must_check;
/* The first column, if it is a text that comes behind the one `before`, whose place it takes; `count`
 * were before it. NULL: it is not, or before->no_memory. */
const char *tci_verify_next_key(sqlite3_stmt *statement, uint64_t count,
                                struct tci_buf *before) tci_must_check;

/* verify_heads.c, verify_indexes.c: each for when all rows are good. */
int tci_verify_heads(struct tci_journal *journal, struct tci_verify_sessions *sessions,
                     struct tci_journal_report *report, struct tc_error *reterr) tci_must_check;
int tci_verify_indexes(struct tci_journal *journal, const uint64_t key[2],
                       const struct tci_verify_sums *sums, struct tci_journal_report *report,
                       struct tc_error *reterr) tci_must_check;

/* SQLite's own look at its pages: lists of free ones, and such as belong to two tables or to none. Rows
 * can be good, and the next one that is written destroys them. */
int tci_verify_pages(struct tci_journal *journal, struct tci_journal_report *report,
                     struct tc_error *reterr) tci_must_check;

#endif
