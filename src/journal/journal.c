/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the handle: opening, locking, transactions, kept statements.
 *
 * Invariants: every use of the connection is between lock and unlock, and in the process that opened
 * it. After a failure nothing is left of a transaction, so that the handle can be used again.
 */
#include "journal/journal_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "journal/grants.h"

const char tci_journal_no_state[TCI_SHA256_TEXT_MAX] =
    "0000000000000000000000000000000000000000000000000000000000000000";

static const char *const statements[TCI_SQL_COUNT] = {
#define X(name, sql) [TCI_SQL_##name] = sql,
#include "journal/statements.def"
#undef X
};

int64_t tci_journal_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

const unsigned char *tci_journal_salt(const struct tci_journal *journal)
{
    return journal->salt;
}

int tci_journal_lock(struct tci_journal *journal, struct tc_error *reterr)
{
    /* Before the mutex: a thread that is not in the child may have held it when it was forked. */
    if (getpid() != journal->owner) {
        tci_error_set(reterr, TC_ERROR_USAGE, "journal %s was opened before a fork", journal->path);
        tci_error_remedy(reterr, "open the journal, or the engine, in the child");
        return -1;
    }
    (void)pthread_mutex_lock(&journal->lock);
    return 0;
}

void tci_journal_unlock(struct tci_journal *journal)
{
    (void)pthread_mutex_unlock(&journal->lock);
}

sqlite3_stmt *tci_journal_statement(struct tci_journal *journal, enum tci_journal_sql which,
                                    struct tc_error *reterr)
{
    sqlite3_stmt **statement = &journal->statements[which];
    int code;
    if (*statement) {
        (void)sqlite3_reset(*statement);
        (void)sqlite3_clear_bindings(*statement);
        return *statement;
    }
    code = sqlite3_prepare_v3(journal->db, statements[which], -1, SQLITE_PREPARE_PERSISTENT,
                              statement, NULL);
    if (code != SQLITE_OK)
        tci_journal_fail(journal, code, reterr);
    return *statement;
}

int tci_journal_step(struct tci_journal *journal, sqlite3_stmt *statement, struct tc_error *reterr)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        tci_journal_fail(journal, code, reterr);
    (void)sqlite3_reset(statement);
    return code == SQLITE_DONE ? 0 : -1;
}

int tci_journal_run(struct tci_journal *journal, sqlite3_stmt *statement, struct tc_error *reterr)
{
    int r = tci_journal_step(journal, statement, reterr);
    if (r > 0)
        (void)sqlite3_reset(statement);
    return r < 0 ? -1 : 0;
}

int tci_journal_exec(struct tci_journal *journal, const char *sql, struct tc_error *reterr)
{
    int code = sqlite3_exec(journal->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : tci_journal_fail(journal, code, reterr);
}

void tci_journal_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    /* A failure to bind shows when the hash of the row is wrong, or a NOT NULL column is NULL; with
     * static text it can only be a wrong index. */
    if (text)
        (void)sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(statement, index);
}

static int run_kept(struct tci_journal *journal, enum tci_journal_sql which,
                    struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, which, reterr);
    return statement ? tci_journal_run(journal, statement, reterr) : -1;
}

/* Some errors have rolled back already (a full disk); others leave the transaction open. */
static void roll_back(struct tci_journal *journal)
{
    if (!sqlite3_get_autocommit(journal->db))
        (void)run_kept(journal, TCI_SQL_ROLLBACK, NULL);
    journal->unfinished = !sqlite3_get_autocommit(journal->db);
}

/* Before a transaction, what ends it is made ready: without memory it could be begun and never
 * ended. */
static int make_ready(struct tci_journal *journal, struct tc_error *reterr)
{
    if (journal->unfinished)
        roll_back(journal);
    return tci_journal_statement(journal, TCI_SQL_ROLLBACK, reterr) ? 0 : -1;
}

/* Others of this process that wait hold the mutex for as long as SQLite waits for another process: what one has waited
 * for them counts, so that many wait no longer than one. */
static int begin_within(struct tci_journal *journal, uint64_t since, struct tc_error *reterr)
{
    const uint64_t waited = (tci_clock_us() - since) / 1000;
    const int timeout = journal->timeout;
    int most = waited < (uint64_t)timeout ? timeout - (int)waited : 1, r;
    if (journal->is_impatient && journal->is_locked && most > TCI_JOURNAL_MOMENT)
        most = TCI_JOURNAL_MOMENT;
    if (most != timeout)
        (void)sqlite3_busy_timeout(journal->db, most);
    r = run_kept(journal, TCI_SQL_BEGIN, reterr);
    journal->is_locked = r < 0 && (sqlite3_errcode(journal->db) & 0xff) == SQLITE_BUSY;
    if (most != timeout)
        (void)sqlite3_busy_timeout(journal->db, timeout);
    return r;
}

int tci_journal_begin(struct tci_journal *journal, struct tc_error *reterr)
{
    const uint64_t since = tci_clock_us();
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    if (journal->read_only)
        tci_journal_fail(journal, SQLITE_READONLY, reterr);
    else if (make_ready(journal, reterr) == 0 && begin_within(journal, since, reterr) == 0) {
        if (tci_journal_place_check(journal, true, reterr) == 0)
            return 0;
        roll_back(journal);
    }
    tci_journal_unlock(journal);
    return -1;
}

int tci_journal_log_grew(void *journal, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct tci_journal *)journal)->log_pages = pages;
    return SQLITE_OK;
}

/*
 * Empties the log into the file. SQLite's own way (PRAGMA wal_autocheckpoint) leaves the log to the
 * process that writes next in the same life of the shared memory: with processes that make one call
 * each there is none, every one of them would write everything again, and the log would grow for
 * ever.
 *
 * What fails here has no bearing on the record, which is safe in the log. It waits for nobody: with
 * a reader at work it is tried again after as many pages.
 */
static void empty_log(struct tci_journal *journal)
{
    (void)sqlite3_busy_timeout(journal->db, 0);
    if (sqlite3_wal_checkpoint_v2(journal->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ==
        SQLITE_OK)
        journal->log_limit = TCI_JOURNAL_LOG_PAGES;
    else
        journal->log_limit = journal->log_pages + TCI_JOURNAL_LOG_PAGES;
    journal->log_pages = 0;
    (void)sqlite3_busy_timeout(journal->db, journal->timeout);
}

int tci_journal_end(struct tci_journal *journal, int result, struct tc_error *reterr)
{
    if (result >= 0 && run_kept(journal, TCI_SQL_COMMIT, reterr) < 0)
        result = -1;
    else if (result >= 0 && journal->log_pages >= journal->log_limit)
        empty_log(journal);
    if (result < 0)
        roll_back(journal);
    journal->proven = result >= 0;
    tci_journal_unlock(journal);
    return result;
}

void tci_journal_abandon(struct tci_journal *journal)
{
    roll_back(journal);
    tci_journal_unlock(journal);
}

int tci_journal_read_begin(struct tci_journal *journal, bool *ret_own, struct tc_error *reterr)
{
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    if (make_ready(journal, reterr) == 0) {
        *ret_own = sqlite3_get_autocommit(journal->db);
        if (!*ret_own || run_kept(journal, TCI_SQL_BEGIN_READ, reterr) == 0)
            return 0;
    }
    tci_journal_unlock(journal);
    return -1;
}

void tci_journal_read_end(struct tci_journal *journal, bool own)
{
    if (own)
        roll_back(journal);
    tci_journal_unlock(journal);
}

void tci_journal_set_timeout(struct tci_journal *journal, int milliseconds)
{
    journal->timeout = milliseconds;
    (void)sqlite3_busy_timeout(journal->db, milliseconds);
}

void tci_journal_be_impatient(struct tci_journal *journal)
{
    journal->is_impatient = true;
}

void tci_journal_close(struct tci_journal *journal)
{
    if (!journal)
        return;
    /* In a forked child the connection stays as it is: to close it would end the log that the parent
     * still writes. */
    if (getpid() == journal->owner) {
        for (size_t i = 0; i < TCI_SQL_COUNT; i++)
            (void)sqlite3_finalize(journal->statements[i]);
        (void)sqlite3_close_v2(journal->db);
        (void)pthread_mutex_destroy(&journal->lock);
    }
    tci_journal_place_forget(journal);
    free(journal->path);
    free(journal);
}

void tci_journal_closep(struct tci_journal **journal)
{
    tci_journal_close(*journal);
    *journal = NULL;
}
