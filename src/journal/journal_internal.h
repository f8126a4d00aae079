/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of this folder share: the handle, its statements, transactions, and the form of
 * a checkpoint.
 *
 * Trust: whoever can write the file can write any row. So everything that is read from it is checked
 * (types, lengths, hashes) before it is believed, and no SQL of the file's own is ever run: triggers
 * and views are off, and a schema that is not ours is refused.
 */
#ifndef TCI_JOURNAL_JOURNAL_INTERNAL_H
#define TCI_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>
#include "base/buf.h"
#include "journal/journal.h"

enum {
    TCI_JOURNAL_APPLICATION = 0x54436a31, /* PRAGMA application_id: "TCj1" */
    TCI_JOURNAL_VERSION = 1,              /* PRAGMA user_version */
    TCI_JOURNAL_TIMEOUT_MS = 5000,
    TCI_JOURNAL_MOMENT = 50,     /* milliseconds, for the impatient */
    TCI_JOURNAL_LOG_PAGES = 500, /* of SQLite's log, after which it goes into the file */
    TCI_JOURNAL_SALT_SIZE = 32,
    TCI_JOURNAL_FILES = 3,                   /* SQLite's: the file, its log, its shared memory */
    TCI_JOURNAL_NAME_MAX = 1024,             /* bytes of a session, tool, agent, call id, verdict */
    TCI_JOURNAL_TEXT_MAX = 64 * 1024 * 1024, /* bytes of a request, a result, a list of grants */
    /* Bytes of a canonical record: grants with every byte escaped, and some names. */
    TCI_JOURNAL_RECORD_MAX = 8 * TCI_JOURNAL_TEXT_MAX
};

/* JSON numbers are doubles: integers beyond this are not exact, and are refused. */
#define TCI_JOURNAL_INTEGER_MAX 9007199254740991

/* state_hash before the first record: 32 bytes of zero. */
extern const char tci_journal_no_state[TCI_SHA256_TEXT_MAX];

/* The columns of `record` in the order in which tci_journal_row_read wants them. */
#define TCI_JOURNAL_COLUMNS_WITH(result)                                                           \
    "row, session, step, kind, call_id, tool, agent, verdict, started_us, ended_us, request, "     \
    "request_hash, " result ", result_hash, policy_hash, grants, row_before, previous, state_hash"
#define TCI_JOURNAL_COLUMNS      TCI_JOURNAL_COLUMNS_WITH("result")
#define TCI_JOURNAL_COLUMNS_BARE TCI_JOURNAL_COLUMNS_WITH("NULL")

/* statements.def: SQL that is prepared once and kept. */
enum tci_journal_sql {
#define X(name, sql) TCI_SQL_##name,
#include "journal/statements.def"
#undef X
    TCI_SQL_COUNT /* how many there are */
};

struct tci_journal_file {
    char *path;
    dev_t device;
    ino_t inode;
};

struct tci_journal {
    sqlite3 *db;
    sqlite3_stmt *statements[TCI_SQL_COUNT];
    /* Recursive: a visitor may use the journal that it visits. */
    pthread_mutex_t lock;
    /* A forked child that used the connection would share its place in the file with the parent. */
    pid_t owner;
    bool read_only;
    bool unfinished; /* a transaction that could not be rolled back yet */
    bool placed;     /* `files` are known */
    bool proven;     /* the last attempt to write went well */
    struct tci_journal_file files[TCI_JOURNAL_FILES];
    int timeout; /* for other processes, in milliseconds */
    /* Who uses it cannot wait again and again; and the last attempt found it locked. */
    bool is_impatient, is_locked;
    /* Pages in SQLite's log after the last commit, and from how many on it is to be emptied. */
    int log_pages, log_limit;
    char *path;
    unsigned char salt[TCI_JOURNAL_SALT_SIZE];
};

/* ---- journal.c ---------------------------------------------------------------------------- */

/* Every use of `db` is between these two. Fails in a forked child. */
int tci_journal_lock(struct tci_journal *journal, struct tc_error *reterr) tci_must_check;
void tci_journal_unlock(struct tci_journal *journal);

/* Lock and BEGIN IMMEDIATE; fails, unlocked, on a journal that is open for reading only, and on one that
 * is not at its path any more. */
int tci_journal_begin(struct tci_journal *journal, struct tc_error *reterr) tci_must_check;
/* COMMIT if `result` is not negative, else ROLLBACK; unlocks. Returns `result`, or -1 if COMMIT failed
 * (then nothing was changed). */
int tci_journal_end(struct tci_journal *journal, int result,
                    struct tc_error *reterr) tci_must_check;
/* Ends one in which nothing was written, as if it had not been. */
void tci_journal_abandon(struct tci_journal *journal);

/* Lock and one moment of the file for all that is read; inside a transaction that there is already,
 * nothing more is begun (*ret_own false). */
int tci_journal_read_begin(struct tci_journal *journal, bool *ret_own,
                           struct tc_error *reterr) tci_must_check;
void tci_journal_read_end(struct tci_journal *journal, bool own);

/* A kept statement, reset and without values; NULL with an error. */
sqlite3_stmt *tci_journal_statement(struct tci_journal *journal, enum tci_journal_sql which,
                                    struct tc_error *reterr) tci_must_check;
/* Runs a statement that gives no rows, and resets it. */
int tci_journal_run(struct tci_journal *journal, sqlite3_stmt *statement,
                    struct tc_error *reterr) tci_must_check;
/* sqlite3_step: 1 a row, 0 no more (and the statement is reset), -1 an error (the same). */
int tci_journal_step(struct tci_journal *journal, sqlite3_stmt *statement,
                     struct tc_error *reterr) tci_must_check;
/* SQL without values. */
int tci_journal_exec(struct tci_journal *journal, const char *sql,
                     struct tc_error *reterr) tci_must_check;
/* Binds text that lives until the statement is reset; NULL binds NULL. For sqlite3_step to report. */
void tci_journal_bind_text(sqlite3_stmt *statement, int index, const char *text);

/* Called by SQLite with the pages in its log; see tci_journal_end. */
int tci_journal_log_grew(void *journal, sqlite3 *db, const char *name, int pages);

/* How long to wait for other processes. For tests. */
void tci_journal_set_timeout(struct tci_journal *journal, int milliseconds);

/* place.c: notes which files a journal has that is open for writing; fails when they are others than
 * those, inside lock. `writing`: in a transaction that writes. */
int tci_journal_place_keep(struct tci_journal *journal, struct tc_error *reterr) tci_must_check;
void tci_journal_place_forget(struct tci_journal *journal);
int tci_journal_place_check(struct tci_journal *journal, bool writing,
                            struct tc_error *reterr) tci_must_check;

#define TCI_JOURNAL_NO_SPACE "there is no space left for it"

/* fail.c: a result code of SQLite as an error with a remedy. Returns -1. */
int tci_journal_fail(const struct tci_journal *journal, int code, struct tc_error *reterr);
/* A row that is not what it must be. Returns -1. */
int tci_journal_damaged(const struct tci_journal *journal, struct tc_error *reterr,
                        const char *format, ...) tci_printf_like(3, 4);

/* schema.c: makes the tables in an empty file, or checks that a file has them and no others. */
int tci_journal_schema(struct tci_journal *journal, bool create,
                       struct tc_error *reterr) tci_must_check;

/* The second part of it alone, for a handle that is open while another process changes the file. */
int tci_journal_check_objects(struct tci_journal *journal, struct tc_error *reterr) tci_must_check;

/* ---- record.c, append.c ------------------------------------------------------------------- */

/* The row on which a statement stands (SELECT of the columns above). Texts are SQLite's: they live
 * until the next step. NULL, or what is wrong with it ("the type of column agent"). */
const char *tci_journal_row_read(sqlite3_stmt *statement, struct tci_journal_row *ret);
/* The same, with an error. */
int tci_journal_row_take(struct tci_journal *journal, sqlite3_stmt *statement,
                         struct tci_journal_row *ret, struct tc_error *reterr) tci_must_check;
/* Texts that live longer: copies in the arena. -1: no memory. */
int tci_journal_row_copy(struct tci_arena *arena, struct tci_journal_row *row) tci_must_check;
/* record_links.c: do its neighbours in the chain know it? A row that was written anew fits itself, and not them. */
int tci_journal_row_linked(struct tci_journal *journal, const struct tci_journal_row *row,
                           struct tc_error *reterr) tci_must_check;
/* each.c: is it one that was asked for? */
bool tci_journal_is_asked_for(const struct tci_journal_query *query,
                              const struct tci_journal_row *row);
/* Where a row of an answer stood (row 0: there was none), and NULL or what is wrong with the place of the one that
 * follows it. */
struct tci_journal_last {
    uint64_t row, step;
    char state_hash[TCI_SHA256_TEXT_MAX];
};
struct tci_journal_last tci_journal_last_of(const struct tci_journal_row *row);
const char *tci_journal_misplaced(const struct tci_journal_query *query,
                                  const struct tci_journal_last *last,
                                  const struct tci_journal_row *row);
#define TCI_JOURNAL_MISLED "an index leads to it that should not"
/* Reads a row by its number, checks it, and copies it into the arena. 0; 1: there is none. */
int tci_journal_row_get(struct tci_journal *journal, uint64_t number, struct tci_arena *arena,
                        struct tci_journal_row *ret, struct tc_error *reterr) tci_must_check;

/* The same as tci_journal_append inside a transaction of the caller's. `ret` (may be NULL) is the
 * row that was made; its texts are the entry's. */
int tci_journal_append_row(struct tci_journal *journal, const struct tci_journal_entry *entry,
                           struct tci_journal_row *ret, struct tc_error *reterr) tci_must_check;
/* Is an entry one that can be recorded? */
int tci_journal_entry_check(const struct tci_journal_entry *entry,
                            struct tc_error *reterr) tci_must_check;
/* Puts a whole row in as it is, chain and all (import); the heads follow it. */
int tci_journal_insert_row(struct tci_journal *journal, const struct tci_journal_row *row,
                           struct tc_error *reterr) tci_must_check;

/* Microseconds since 1970, for records. */
int64_t tci_journal_now(void);

/* ---- checkpoints (prune) ------------------------------------------------------------------ */

/*
 * Rows 1 to K may be removed when a record of kind "checkpoint" and session "" is appended, in the
 * same transaction, whose `request` is this canonical JSON:
 *
 *   {"rows":K,"sessions":{NAME:{"state_hash":HEX,"step":N},...},"state_hash":HEX}
 *
 * state_hash is that of row K; `sessions` has the last step and state_hash up to row K of every
 * session that goes on behind it (rows behind K, or a row in session_head). The chain goes on from
 * there: rows behind K keep their numbers and hashes, and the session "" in which the checkpoint
 * itself is counts too. A session that is not named starts again at step 1: prune removes its
 * session_head.
 *
 * Rule of verify: if the first row is K + 1 > 1, the last checkpoint of the file must have
 * "rows":K. A checkpoint may itself be the first row that is left.
 *
 * Grants: after the checkpoint, in the same transaction, prune calls tci_journal_grants_carry,
 * which records again those grants whose record is removed, and forgets those that were revoked.
 */
struct tci_journal_checkpoint {
    uint64_t rows;
    char state_hash[TCI_SHA256_TEXT_MAX];
    size_t session_count;
    struct tci_journal_checkpoint_session {
        const char *name;
        uint64_t step;
        char state_hash[TCI_SHA256_TEXT_MAX];
    } * sessions;
};
/* checkpoint.c: writes the text into the arena; sorts `sessions`. */
int tci_journal_checkpoint_write(struct tci_journal_checkpoint *checkpoint, struct tci_arena *arena,
                                 const char **ret_text, struct tc_error *reterr) tci_must_check;
/* The last checkpoint of the file. 0; 1: there is none. Inside lock. */
int tci_journal_checkpoint_last(struct tci_journal *journal, struct tci_arena *arena,
                                struct tci_journal_checkpoint *ret,
                                struct tc_error *reterr) tci_must_check;

/* grants_carry.c: see above; rows up to `rows` are about to go. Inside the transaction, after the
 * checkpoint was appended. *ret_carried: how many were recorded again. */
int tci_journal_grants_carry(struct tci_journal *journal, uint64_t rows, uint64_t *ret_carried,
                             struct tc_error *reterr) tci_must_check;
/* Fills the table of grants, which must be empty, from the records (import). Inside a transaction. */
int tci_journal_grants_rebuild(struct tci_journal *journal, struct tc_error *reterr) tci_must_check;

/* ---- verify ------------------------------------------------------------------------------- */

/* Fills in a finding, unless there is one already. */
void tci_journal_finding(struct tci_journal_report *report, uint64_t row, const char *session,
                         uint64_t step, const char *format, ...) tci_printf_like(5, 6);

/* sign.c, called by verify when all rows are good, inside lock and a read transaction: counts good
 * signatures in report->signatures; a bad one is a finding. -1 only for errors that are none. */
int tci_journal_check_signatures(struct tci_journal *journal, struct tci_journal_report *report,
                                 struct tc_error *reterr) tci_must_check;
/* verify_grants.c: the table of grants against the records. As above. */
int tci_journal_check_grants(struct tci_journal *journal, struct tci_journal_report *report,
                             struct tc_error *reterr) tci_must_check;

#endif
