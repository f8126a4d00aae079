/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the journal: one SQLite file in which every call leaves a record, each chained to the one
 * before it; grants that were made at run time; and how often each grant was used. Several processes
 * and threads may use one file. A record is there before the caller has its result.
 *
 * The chain. state_hash = SHA-256(state_hash of the session's record before || canonical record), 32
 * bytes of zero before the first. The canonical record (RFC 8785) names everything that a row holds,
 * texts by their hash, and the state_hash of the row before it in the whole file ("row_before"): so a
 * row that is changed, removed, swapped or put in shows at the first row that it makes wrong.
 */
#ifndef TCI_JOURNAL_JOURNAL_H
#define TCI_JOURNAL_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/uuid.h"

struct tci_journal;

enum tci_journal_flag {
    TCI_JOURNAL_CREATE = 1, /* the file and its directories (mode 0700, file 0600), if missing */
    TCI_JOURNAL_READ_ONLY = 2,
};

/* $XDG_STATE_HOME/toolcage/journal.db, else ~/.local/state/toolcage/journal.db. */
int tci_journal_default_path(char ret[TCI_PATH_MAX + 1], struct tc_error *reterr) tci_must_check;

/* Fails with a sentence and a remedy: not there, not a journal, of a newer version, locked for
 * longer than 5 s, read-only, no space. A handle may be used by many threads. */
int tci_journal_open(const char *path, unsigned flags, struct tci_journal **ret,
                     struct tc_error *reterr) tci_must_check;
void tci_journal_close(struct tci_journal *journal);
void tci_journal_closep(struct tci_journal **journal);

/* ---- records ------------------------------------------------------------------------------ */

/* What a caller hands in. Texts are never NULL unless it says so. */
struct tci_journal_entry {
    const char *kind;    /* "call", "grant", "revoke", "checkpoint" */
    const char *session; /* "": none; such records are a session of their own */
    const char *call_id, *tool, *agent, *verdict; /* "": none */
    int64_t started_us, ended_us;                 /* since 1970 */
    const char *request;                          /* canonical JSON; NULL: only its hash is kept */
    const char *result; /* canonical JSON without `mode` and `state_hash`; NULL: the same */
    char request_hash[TCI_SHA256_TEXT_MAX], result_hash[TCI_SHA256_TEXT_MAX];
    const char *policy_hash; /* "": none */
    const char *grants;      /* canonical JSON: a list of what allowed the call */
};

/* A record as it is in the file. Texts are in the arena that the reader was given. */
struct tci_journal_row {
    struct tci_journal_entry entry;
    uint64_t row;  /* place in the file, from 1, without holes */
    uint64_t step; /* place in the session, from 1, without holes */
    char row_before[TCI_SHA256_TEXT_MAX], previous[TCI_SHA256_TEXT_MAX];
    char state_hash[TCI_SHA256_TEXT_MAX];
};

/* Appends and commits. *ret_state_hash is the session's new state. */
int tci_journal_append(struct tci_journal *journal, const struct tci_journal_entry *entry,
                       char ret_state_hash[TCI_SHA256_TEXT_MAX],
                       struct tc_error *reterr) tci_must_check;

/* For who must not stand still: once it was locked for longer than 5 s, the next writes wait for a moment only, until
 * one gets through. Right after the handle is made. */
void tci_journal_be_impatient(struct tci_journal *journal);

/* Before something is done that must be recorded: can it be, with texts of so many bytes? In this
 * process (a fork), in the files that are at the journal's path, with 1 MiB of room besides, and is it not
 * locked by somebody who keeps it so? After the handle is made, and after a failure, it tries a write. */
int tci_journal_writable(struct tci_journal *journal, size_t bytes,
                         struct tc_error *reterr) tci_must_check;

/* Bytes that hashes of redacted values begin with; made with the file, never changed. */
const unsigned char *tci_journal_salt(const struct tci_journal *journal); /* 32 bytes */

/* Which rows. Zero and NULL: no condition. */
struct tci_journal_query {
    const char *session, *tool, *agent, *verdict, *call_id, *kind;
    uint64_t row_from, row_to; /* both included */
    uint64_t last;             /* only the last so many of what is left */
};

/* Calls `each` for every row, in the order of the file; texts live until it returns. A value other
 * than 0 ends it, and is returned. -1: an error. */
typedef int tci_journal_visitor(void *context, const struct tci_journal_row *row,
                                struct tc_error *reterr);
int tci_journal_each(struct tci_journal *journal, const struct tci_journal_query *query,
                     tci_journal_visitor *each, void *context, struct tc_error *reterr);

/* each_back.c: for who shares the handle with others that must not wait for what a visitor does: from the last row
 * back, the lock is free while `each` is called, and held for one row or one page of an index at most. Rows that are
 * appended meanwhile are not visited. Of the query: `session` or `call_id` must be there; `agent`, `kind` and `last`
 * may be; the others are not looked at. */
struct tci_journal_bounds {
    size_t result_bytes; /* of one result: a longer one is left out (NULL) */
    size_t
        results_bytes; /* of all together: from the one on that would be too much, they are left out */
    const atomic_bool *stop; /* may be NULL. True: as if there were no more rows */
};
int tci_journal_each_back(struct tci_journal *journal, const struct tci_journal_query *query,
                          const struct tci_journal_bounds *bounds, tci_journal_visitor *each,
                          void *context, struct tc_error *reterr);

/* record.c: the canonical record of a row, and what hashing it gives. */
struct tci_buf;
void tci_journal_canonical(const struct tci_journal_row *row, struct tci_buf *out);
int tci_journal_hash(const struct tci_journal_row *row, char ret[TCI_SHA256_TEXT_MAX],
                     struct tc_error *reterr) tci_must_check;
/* Does a row say the truth about itself: texts match their hashes, and state_hash follows? `scratch`
 * is reused. NULL, or what is wrong; *reterr is set when memory ran out (then NULL, too). */
const char *tci_journal_row_check(const struct tci_journal_row *row, struct tci_buf *scratch,
                                  struct tc_error *reterr);

/* ---- verify ------------------------------------------------------------------------------- */

struct tci_journal_report {
    bool good;
    uint64_t rows, sessions; /* looked at, and good */
    uint64_t last_row;       /* the number of the last good row */
    /* One behind the last: rows are missing at the end. 0: there is none, or (if not good) all rows are
     * good, and what is wrong stands beside them. */
    uint64_t bad_row;
    char bad_session[256];
    uint64_t bad_step;
    char problem[512];              /* one sentence */
    char head[TCI_SHA256_TEXT_MAX]; /* state_hash of the last row */
    uint64_t signatures;            /* of heads, checked and good */
};
/* Reads everything. `progress` (may be NULL) is called now and then with rows done and rows in all. */
int tci_journal_verify(struct tci_journal *journal, struct tci_journal_report *ret,
                       void (*progress)(void *context, uint64_t done, uint64_t all), void *context,
                       struct tc_error *reterr) tci_must_check;

/* ---- replay ------------------------------------------------------------------------------- */

/*
 * One reading of a session. A request takes the first record that is equal, is not taken yet, and
 * does not come after one that had ended before it began and is not taken yet: what ran one after
 * the other must be asked for in that order, what ran at the same time may come in any.
 */
struct tci_replay;

/* `resume`: go on where the file says that the last reading of this session stopped, and note there
 * what is taken. */
int tci_replay_open(struct tci_journal *journal, const char *session, bool resume,
                    struct tci_replay **ret, struct tc_error *reterr) tci_must_check;
void tci_replay_close(struct tci_replay *replay);
/* 0: *ret is the record; 1: diverged, and *ret is the record that was expected (row 0: the session
 * has no more). Texts are in `arena`. Thread-safe. */
int tci_replay_take(struct tci_replay *replay, const char *request_hash, struct tci_arena *arena,
                    struct tci_journal_row *ret, struct tc_error *reterr) tci_must_check;
/* Forgets where the last reading of a session stopped. */
int tci_replay_restart(struct tci_journal *journal, const char *session,
                       struct tc_error *reterr) tci_must_check;

/* ---- grants ------------------------------------------------------------------------------- */

struct tci_journal_grant {
    char id[TCI_UUID_TEXT_MAX];
    const char *agent, *tool;
    const char *text; /* canonical JSON of the grant's table, as a policy would have it */
    int64_t created_us, revoked_us; /* 0: not revoked */
    uint64_t calls;                 /* made under it */
};

/* Both leave a record in the chain, of kind "grant" and "revoke". */
int tci_journal_grant_add(struct tci_journal *journal, const char *agent, const char *tool,
                          const char *text, char ret_id[TCI_UUID_TEXT_MAX],
                          struct tc_error *reterr) tci_must_check;
/* 0; 1: there is no such grant, or it is revoked already. */
int tci_journal_grant_revoke(struct tci_journal *journal, const char *id,
                             struct tc_error *reterr) tci_must_check;
/* Of an agent (NULL: all), revoked ones too if asked for, in the order in which they were made. A row
 * of the table that does not say what its record in the chain says is an error, not a grant. */
int tci_journal_grants(struct tci_journal *journal, const char *agent, bool revoked,
                       struct tci_arena *arena, struct tci_journal_grant **ret, size_t *ret_count,
                       struct tc_error *reterr) tci_must_check;
/* Changes whenever a grant is added or revoked, by anybody: for those who keep a copy. */
int tci_journal_grants_version(struct tci_journal *journal, uint64_t *ret,
                               struct tc_error *reterr) tci_must_check;

/* Counts a call under every key, or under none: *ret_counted is false when one of them has had its `max`
 * already (0: none is counted; UINT64_MAX: no limit). One transaction: nobody comes between, two callers cannot
 * both have the last, and a call that one grant refuses uses up nothing of the others. */
int tci_journal_count_all(struct tci_journal *journal, const char *const *keys, const uint64_t *max,
                          size_t count, bool *ret_counted, struct tc_error *reterr) tci_must_check;
/* How many were made under a key. */
int tci_journal_counted(struct tci_journal *journal, const char *key, uint64_t *ret_calls,
                        struct tc_error *reterr) tci_must_check;

#endif
