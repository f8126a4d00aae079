/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the tables of a journal, made in one transaction. A file whose tables are not exactly these is
 * refused: a trigger, a view or a looser table is how a stranger's file would make us do other things
 * than we believe.
 */
#include "journal/journal_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/quote.h"

static const struct object {
    const char *name, *sql;
} objects[] = {
    { "record",
      "CREATE TABLE record (row INTEGER PRIMARY KEY, session TEXT NOT NULL, step INTEGER NOT NULL, "
      "kind TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, agent TEXT NOT NULL, "
      "verdict TEXT NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, "
      "request TEXT, request_hash TEXT NOT NULL, result TEXT, result_hash TEXT NOT NULL, "
      "policy_hash TEXT NOT NULL, grants TEXT NOT NULL, row_before TEXT NOT NULL, "
      "previous TEXT NOT NULL, state_hash TEXT NOT NULL) STRICT" },
    { "record_session", "CREATE UNIQUE INDEX record_session ON record (session, step)" },
    { "record_call", "CREATE INDEX record_call ON record (call_id)" },
    /* Grants and checkpoints are few among many calls. */
    { "record_special", "CREATE INDEX record_special ON record (kind, row) WHERE kind <> 'call'" },
    { "head", "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, "
              "state_hash TEXT NOT NULL) STRICT" },
    { "session_head", "CREATE TABLE session_head (session TEXT PRIMARY KEY, step INTEGER NOT NULL, "
                      "state_hash TEXT NOT NULL) STRICT, WITHOUT ROWID" },
    { "origin", "CREATE TABLE origin (one INTEGER PRIMARY KEY CHECK (one = 1), salt BLOB NOT NULL, "
                "created_us INTEGER NOT NULL) STRICT" },
    { "run_grant", "CREATE TABLE run_grant (id TEXT PRIMARY KEY, row INTEGER NOT NULL, "
                   "agent TEXT NOT NULL, tool TEXT NOT NULL, text TEXT NOT NULL, "
                   "created_us INTEGER NOT NULL, revoked_us INTEGER NOT NULL, "
                   "revoked_row INTEGER NOT NULL) STRICT, WITHOUT ROWID" },
    { "grant_count", "CREATE TABLE grant_count (key TEXT PRIMARY KEY, calls INTEGER NOT NULL) "
                     "STRICT, WITHOUT ROWID" },
    { "replay_cursor",
      "CREATE TABLE replay_cursor (session TEXT PRIMARY KEY, low INTEGER NOT NULL, "
      "taken BLOB NOT NULL) STRICT, WITHOUT ROWID" },
    { "signature", "CREATE TABLE signature (row INTEGER NOT NULL, state_hash TEXT NOT NULL, "
                   "public_key TEXT NOT NULL, statement TEXT NOT NULL, signature TEXT NOT NULL, "
                   "PRIMARY KEY (row, public_key)) STRICT, WITHOUT ROWID" },
};

static int pragma_integer(struct tci_journal *journal, const char *sql, int64_t *ret,
                          struct tc_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : tci_journal_fail(journal, code, reterr);
}

static const struct object *find(const char *name)
{
    for (size_t i = 0; name && i < tci_array_size(objects); i++)
        if (strcmp(objects[i].name, name) == 0)
            return &objects[i];
    return NULL;
}

static const char *column(sqlite3_stmt *statement, int index)
{
    const char *text = (const char *)sqlite3_column_text(statement, index);
    return text ? text : "";
}

/* Is it one of ours, under its own name, of its kind and for its table? */
static bool is_ours(sqlite3_stmt *statement)
{
    const char *table = "CREATE TABLE ";
    const struct object *object = find(column(statement, 0));
    bool is_table = object && strncmp(object->sql, table, strlen(table)) == 0;
    return object && strcmp(object->sql, column(statement, 1)) == 0 &&
           strcmp(column(statement, 2), is_table ? "table" : "index") == 0 &&
           strcmp(column(statement, 3), is_table ? object->name : "record") == 0;
}

/* The objects of the file: how many of ours it has as we make them, and the first that is not
 * ours. */
static int compare_objects(struct tci_journal *journal, sqlite3_stmt *statement, size_t *ret_same,
                           char ret_strange[TCI_QUOTE_MAX], struct tc_error *reterr)
{
    int more;
    while ((more = tci_journal_step(journal, statement, reterr)) > 0) {
        const char *name = column(statement, 0);
        if (is_ours(statement))
            (*ret_same)++;
        else if (!ret_strange[0])
            (void)tci_quote(name, strlen(name), ret_strange);
    }
    return more;
}

static int refuse(struct tci_journal *journal, const char *strange, struct tc_error *reterr)
{
    static const char statistics[] = "\"sqlite_stat";
    if (strncmp(strange, statistics, sizeof statistics - 1) != 0)
        return tci_journal_damaged(journal, reterr,
                                   "%s is not a part of a journal as toolcage makes it", strange);
    /* The one that may be there by mistake: somebody ran ANALYZE. */
    tci_error_set(reterr, TC_ERROR_IO,
                  "journal %s has the table %s, which is not a part of a journal", journal->path,
                  strange);
    tci_error_remedy(reterr, "remove it: sqlite3 %s 'DROP TABLE %s'", journal->path, strange);
    return -1;
}

/* Every object counts, also those whose names SQLite keeps for itself. The attacks: an index with such
 * a name that holds other values than the table, and from which SQLite then reads; statistics
 * (sqlite_stat1) that lead SQLite to one index rather than another. We need none of them: tables with
 * a key of their own have no index beside them. */
int tci_journal_check_objects(struct tci_journal *journal, struct tc_error *reterr)
{
    static const char sql[] = "SELECT name, sql, type, tbl_name FROM sqlite_schema";
    char strange[TCI_QUOTE_MAX] = "";
    sqlite3_stmt *statement = NULL;
    size_t same = 0;
    int code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL), r;
    if (code != SQLITE_OK)
        return tci_journal_fail(journal, code, reterr);
    r = compare_objects(journal, statement, &same, strange, reterr);
    (void)sqlite3_finalize(statement);
    if (r < 0)
        return -1;
    if (strange[0])
        return refuse(journal, strange, reterr);
    if (same != tci_array_size(objects))
        return tci_journal_damaged(journal, reterr, "%zu of its tables and indexes are missing",
                                   tci_array_size(objects) - same);
    return 0;
}

static int read_salt(struct tci_journal *journal, struct tc_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(journal->db, "SELECT salt FROM origin WHERE one = 1", -1,
                                  &statement, NULL);
    bool found = false;
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_BLOB &&
        sqlite3_column_bytes(statement, 0) == TCI_JOURNAL_SALT_SIZE) {
        const void *salt = sqlite3_column_blob(statement, 0);
        found = salt != NULL;
        if (salt)
            memcpy(journal->salt, salt, TCI_JOURNAL_SALT_SIZE);
    }
    (void)sqlite3_finalize(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return tci_journal_fail(journal, code, reterr);
    return found ? 0 : tci_journal_damaged(journal, reterr, "its salt is missing");
}

static int insert_origin(struct tci_journal *journal, struct tc_error *reterr)
{
    static const char sql[] = "INSERT INTO origin (one, salt, created_us) VALUES (1, ?1, ?2)";
    unsigned char salt[TCI_JOURNAL_SALT_SIZE];
    sqlite3_stmt *statement = NULL;
    int code;
    if (tci_random(salt, sizeof salt) < 0)
        return tci_error_errno(reterr, errno, "random numbers");
    code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_blob(statement, 1, salt, sizeof salt, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 2, tci_journal_now());
        code = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : tci_journal_fail(journal, code, reterr);
}

static int make_tables(struct tci_journal *journal, struct tc_error *reterr)
{
    char sql[160];
    for (size_t i = 0; i < tci_array_size(objects); i++)
        if (tci_journal_exec(journal, objects[i].sql, reterr) < 0)
            return -1;
    (void)snprintf(sql, sizeof sql, "INSERT INTO head (one, rows, state_hash) VALUES (1, 0, '%s')",
                   tci_journal_no_state);
    if (tci_journal_exec(journal, sql, reterr) < 0 || insert_origin(journal, reterr) < 0)
        return -1;
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                   TCI_JOURNAL_APPLICATION, TCI_JOURNAL_VERSION);
    return tci_journal_exec(journal, sql, reterr);
}

/* 1: a journal; 0: a database without anything in it; -1: neither. */
static int identify(struct tci_journal *journal, struct tc_error *reterr)
{
    int64_t application = 0, version = 0, pages = 0;
    if (pragma_integer(journal, "PRAGMA application_id", &application, reterr) < 0 ||
        pragma_integer(journal, "PRAGMA user_version", &version, reterr) < 0 ||
        pragma_integer(journal, "SELECT count(*) FROM sqlite_schema", &pages, reterr) < 0)
        return -1;
    if (application == 0 && version == 0 && pages == 0)
        return 0;
    if (application != TCI_JOURNAL_APPLICATION) {
        tci_error_set(reterr, TC_ERROR_USAGE, "%s is a database of another program, not a journal",
                      journal->path);
        tci_error_remedy(reterr, "name another file with --journal or in TOOLCAGE_JOURNAL");
        return -1;
    }
    if (version > TCI_JOURNAL_VERSION) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "the journal %s has version %lld, and this toolcage knows versions up to %d",
                      journal->path, (long long)version, TCI_JOURNAL_VERSION);
        tci_error_remedy(reterr, "use the toolcage that made it or a newer one, or name another "
                                 "file with --journal");
        return -1;
    }
    if (version < 1)
        return tci_journal_damaged(journal, reterr, "it has no version");
    return 1;
}

/* The same in one moment of the file: while another process makes it, one number would be of before
 * and the next of after. */
static int identify_at_once(struct tci_journal *journal, struct tc_error *reterr)
{
    int found;
    if (tci_journal_exec(journal, "BEGIN", reterr) < 0)
        return -1;
    found = identify(journal, reterr);
    (void)sqlite3_exec(journal->db, "ROLLBACK", NULL, NULL, NULL);
    return found;
}

/* Outside of a transaction, and kept by the file. SQLite does not wait here for another process that
 * does the same: it could wait for ever. */
static int use_log(struct tci_journal *journal, struct tc_error *reterr)
{
    static const struct timespec moment = { .tv_nsec = 5000000 };
    int code;
    for (int waited = 0;; waited += 5) {
        code = sqlite3_exec(journal->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if ((code & 0xff) != SQLITE_BUSY || waited >= journal->timeout)
            break;
        (void)nanosleep(&moment, NULL);
    }
    return code == SQLITE_OK ? 0 : tci_journal_fail(journal, code, reterr);
}

static int create(struct tci_journal *journal, struct tc_error *reterr)
{
    int made;
    if (use_log(journal, reterr) < 0 || tci_journal_begin(journal, reterr) < 0)
        return -1;
    /* Another process may have been faster. */
    made = identify(journal, reterr);
    return tci_journal_end(journal, made == 0 ? make_tables(journal, reterr) : made, reterr);
}

int tci_journal_schema(struct tci_journal *journal, bool may_create, struct tc_error *reterr)
{
    int found = identify_at_once(journal, reterr);
    if (found == 0 && !may_create) {
        tci_error_set(reterr, TC_ERROR_USAGE, "%s is empty, not a journal", journal->path);
        tci_error_remedy(reterr, "record a call with --journal %s first, or name another file",
                         journal->path);
        return -1;
    }
    if (found == 0)
        found = create(journal, reterr);
    if (found < 0 || tci_journal_check_objects(journal, reterr) < 0)
        return -1;
    return read_salt(journal, reterr);
}
