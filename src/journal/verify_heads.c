/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what verify checks beside the rows: heads and grants. Heads show that rows are missing at the
 * end. Tables with a key of their own are read in the order of that key, which must be one: in a table
 * out of order a look-up misses what is there. Grants come after the indexes, by which they are found.
 */
#include "journal/verify_internal.h"

#include <string.h>
#include "journal/grants.h"

static void finalize(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}

/* ---- heads -------------------------------------------------------------------------------- */

/* A table of one row: a second one would be read by some and not by others. */
static int check_single(struct tci_journal *journal, const char *name, const char *sql,
                        struct tci_journal_report *report, struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(journal, sql, reterr);
    uint64_t last = report->last_row;
    int more = statement ? tci_verify_step(journal, statement, report, last + 1, reterr) : -1;
    if (more > 0 &&
        (sqlite3_column_int64(statement, 0) != 1 || sqlite3_column_int64(statement, 1) != 1))
        tci_journal_finding(report, last + 1, "", 0, "the table %s has another row than its one",
                            name);
    return more < 0 ? -1 : 0;
}

static int check_head(struct tci_journal *journal, struct tci_journal_report *report,
                      struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(
        journal, "SELECT rows, state_hash FROM head ORDER BY one", reterr);
    uint64_t rows, last;
    const char *hash;
    int more;
    if (!statement)
        return -1;
    /* Rows that are gone by a checkpoint count. */
    last = report->last_row;
    more = tci_verify_step(journal, statement, report, last + 1, reterr);
    if (more < 0 || !report->good)
        return more;
    if (!more) {
        tci_journal_finding(report, last + 1, "", 0, "the head of the file is missing");
        return 0;
    }
    rows = (uint64_t)sqlite3_column_int64(statement, 0);
    hash = tci_verify_text(statement, 1);
    if (rows > last)
        tci_journal_finding(report, last + 1, "", 0,
                            "rows are missing at the end: there were %llu, and the last is %llu",
                            (unsigned long long)rows, (unsigned long long)last);
    else if (rows < last)
        tci_journal_finding(report, rows + 1, "", 0,
                            "row %llu was put in behind the end that the head of the file knows",
                            (unsigned long long)rows + 1);
    else if (sqlite3_column_type(statement, 0) != SQLITE_INTEGER || !hash ||
             strcmp(hash, report->head) != 0)
        tci_journal_finding(report, last, "", 0,
                            "the head of the file is not the state_hash of the last row");
    return 0;
}

static void check_session(sqlite3_stmt *statement, const char *name,
                          struct tci_verify_sessions *sessions, struct tci_journal_report *report)
{
    const struct tci_verify_session *session = tci_verify_session_find(sessions, name);
    const char *hash = tci_verify_text(statement, 2);
    uint64_t step = (uint64_t)sqlite3_column_int64(statement, 1);
    if (!session)
        tci_journal_finding(report, report->last_row + 1, name, step,
                            "the rows of a session are missing that has a head");
    else if (step > session->step)
        tci_journal_finding(report, report->last_row + 1, name, session->step + 1,
                            "steps are missing at the end of a session");
    else if (step < session->step || !hash || strcmp(hash, session->state_hash) != 0 ||
             sqlite3_column_type(statement, 1) != SQLITE_INTEGER)
        tci_journal_finding(report, session->row, name, session->step,
                            "the head of its session is not its state_hash");
}

static int check_session_heads(struct tci_journal *journal, struct tci_verify_sessions *sessions,
                               struct tci_journal_report *report, struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(
        journal, "SELECT session, step, state_hash FROM session_head ORDER BY session", reterr);
    tc_cleanup(tci_buf_free) struct tci_buf before = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX);
    size_t count = 0;
    int more;
    if (!statement)
        return -1;
    while ((more = tci_verify_step(journal, statement, report, report->last_row + 1, reterr)) > 0) {
        const char *name = tci_verify_next_key(statement, count, &before);
        if (name)
            check_session(statement, name, sessions, report);
        else if (before.no_memory)
            return tci_error_no_memory(reterr);
        else
            tci_journal_finding(report, report->last_row + 1, "", 0,
                                "the heads of sessions are not in order");
        count++;
        if (!report->good)
            return 0;
    }
    if (more == 0 && report->good && count != sessions->count)
        tci_journal_finding(report, report->last_row + 1, "", 0,
                            "the heads of %zu sessions are missing", sessions->count - count);
    return more;
}

int tci_verify_heads(struct tci_journal *journal, struct tci_verify_sessions *sessions,
                     struct tci_journal_report *report, struct tc_error *reterr)
{
    if (check_head(journal, report, reterr) < 0)
        return -1;
    if (report->good &&
        check_single(journal, "head", "SELECT count(*), max(one) FROM head", report, reterr) < 0)
        return -1;
    if (report->good && check_single(journal, "origin", "SELECT count(*), max(one) FROM origin",
                                     report, reterr) < 0)
        return -1;
    return report->good ? check_session_heads(journal, sessions, report, reterr) : 0;
}

/* ---- grants ------------------------------------------------------------------------------- */

/* Records of grants that the table does not have. One that was revoked may be gone with the rows
 * before a checkpoint, while the record that revoked it is still there. */
static const char missing_sql[] =
    "SELECT row, call_id FROM record AS r INDEXED BY record_special WHERE kind <> 'call' AND "
    "(kind = 'grant' AND NOT EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id AND "
    "g.row = r.row) OR "
    "kind = 'revoke' AND NOT EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id AND "
    "g.revoked_row = r.row) AND (EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id) OR "
    "(SELECT min(row) FROM record) = 1)) ORDER BY row LIMIT 1";

static int check_missing(struct tci_journal *journal, struct tci_journal_report *report,
                         struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(journal, missing_sql, reterr);
    const char *id;
    int more;
    if (!statement)
        return -1;
    more = tci_verify_step(journal, statement, report, 0, reterr);
    id = more > 0 ? tci_verify_text(statement, 1) : NULL;
    if (more > 0)
        tci_journal_finding(report, (uint64_t)sqlite3_column_int64(statement, 0), "", 0,
                            "the table of grants does not have the grant %.36s as this row has it",
                            id ? id : "");
    return more < 0 ? -1 : 0;
}

/* By their ids they are found. */
static int check_order(struct tci_journal *journal, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(
        journal, "SELECT id FROM run_grant ORDER BY id", reterr);
    tc_cleanup(tci_buf_free) struct tci_buf before = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX);
    int more;
    if (!statement)
        return -1;
    for (uint64_t i = 0;
         (more = tci_verify_step(journal, statement, report, 0, reterr)) > 0 && report->good; i++) {
        if (tci_verify_next_key(statement, i, &before))
            continue;
        if (before.no_memory)
            return tci_error_no_memory(reterr);
        tci_journal_finding(report, 0, "", 0, "the table of grants is not in order");
    }
    return more < 0 ? -1 : 0;
}

static int check_table(struct tci_journal *journal, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_grant_list list = { 0 };
    struct tci_revokes revokes = { 0 };
    const char *problem;
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_grant_list(journal, NULL, true, arena, &list, reterr) < 0 ||
        tci_journal_revokes(journal, arena, &revokes, reterr) < 0)
        return -1;
    for (size_t i = 0; i < list.count && report->good; i++) {
        if (tci_journal_grant_check(journal, &list.rows[i], &revokes, arena, &problem, reterr) < 0)
            return -1;
        if (problem)
            tci_journal_finding(report, list.rows[i].row, "", 0, "grant %s %s",
                                list.rows[i].grant.id, problem);
    }
    return 0;
}

int tci_journal_check_grants(struct tci_journal *journal, struct tci_journal_report *report,
                             struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    int r = check_table(journal, report, &error);
    if (r < 0 && error.code == TC_ERROR_IO && report->good) {
        /* All rows are good: what cannot be read is the table. */
        tci_journal_finding(report, 0, "", 0, "the table of grants cannot be read: %.300s",
                            error.message);
        return 0;
    }
    if (r < 0 && reterr && reterr->code == TC_ERROR_NONE)
        *reterr = error;
    if (r < 0)
        return -1;
    if (report->good && check_order(journal, report, reterr) < 0)
        return -1;
    return report->good ? check_missing(journal, report, reterr) : 0;
}
