/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what verify checks beside the rows: heads, indexes, grants. Heads show that rows are missing at
 * the end. Indexes decide which rows a replay and a list of grants see: an entry that is missing or leads
 * elsewhere would hide a row that is there.
 */
#include "journal/verify_internal.h"

#include <string.h>
#include "base/siphash.h"
#include "journal/grants.h"

static void finalize(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}

static sqlite3_stmt *prepare(struct tci_journal *journal, const char *sql, struct tc_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        tci_journal_fail(journal, code, reterr);
    return statement;
}

/* Never NULL, and never a text with a NUL inside that looks like a shorter one. */
static const char *text_at(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text && strlen(text) == (size_t)sqlite3_column_bytes(statement, column) ? text : "\x01";
}

/* ---- heads -------------------------------------------------------------------------------- */

static int check_head(struct tci_journal *journal, struct tci_journal_report *report,
                      struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = prepare(
        journal, "SELECT rows, state_hash FROM head ORDER BY one", reterr);
    uint64_t rows, last;
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
    if (rows > last)
        tci_journal_finding(report, last + 1, "", 0,
                            "rows are missing at the end: there were %llu, and the last is %llu",
                            (unsigned long long)rows, (unsigned long long)last);
    else if (rows < last)
        tci_journal_finding(report, rows + 1, "", 0,
                            "row %llu was put in behind the end that the head of the file knows",
                            (unsigned long long)rows + 1);
    else if (sqlite3_column_type(statement, 0) != SQLITE_INTEGER ||
             strcmp(text_at(statement, 1), report->head) != 0)
        tci_journal_finding(report, last, "", 0,
                            "the head of the file is not the state_hash of the last row");
    return 0;
}

static void check_session(sqlite3_stmt *statement, struct tci_verify_sessions *sessions,
                          struct tci_journal_report *report)
{
    const char *name = text_at(statement, 0);
    const struct tci_verify_session *session = tci_verify_session_find(sessions, name);
    uint64_t step = (uint64_t)sqlite3_column_int64(statement, 1);
    if (!session)
        tci_journal_finding(report, report->last_row + 1, name, step,
                            "the rows of a session are missing that has a head");
    else if (step > session->step)
        tci_journal_finding(report, report->last_row + 1, name, session->step + 1,
                            "steps are missing at the end of a session");
    else if (step < session->step || strcmp(text_at(statement, 2), session->state_hash) != 0)
        tci_journal_finding(report, session->row, name, session->step,
                            "the head of its session is not its state_hash");
}

static int check_session_heads(struct tci_journal *journal, struct tci_verify_sessions *sessions,
                               struct tci_journal_report *report, struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = prepare(
        journal, "SELECT session, step, state_hash FROM session_head", reterr);
    size_t count = 0;
    int more;
    if (!statement)
        return -1;
    while ((more = tci_verify_step(journal, statement, report, report->last_row + 1, reterr)) > 0) {
        check_session(statement, sessions, report);
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
    return report->good ? check_session_heads(journal, sessions, report, reterr) : 0;
}

/* ---- indexes ------------------------------------------------------------------------------ */

void tci_verify_sum(const uint64_t key[2], uint64_t *sum, const char *text, uint64_t a, uint64_t b)
{
    const uint64_t parts[3] = { tci_siphash(key, text, strlen(text)), a, b };
    *sum += tci_siphash(key, parts, sizeof parts);
}

static int check_index(struct tci_journal *journal, const uint64_t key[2], const char *name,
                       const char *sql, uint64_t rows, uint64_t expected,
                       struct tci_journal_report *report, struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = prepare(journal, sql, reterr);
    uint64_t sum = 0, count = 0;
    int more;
    if (!statement)
        return -1;
    while ((more = tci_verify_step(journal, statement, report, 0, reterr)) > 0) {
        tci_verify_sum(key, &sum, text_at(statement, 0),
                       (uint64_t)sqlite3_column_int64(statement, 1),
                       (uint64_t)sqlite3_column_int64(statement, 2));
        count++;
    }
    if (more == 0 && (count != rows || sum != expected))
        tci_journal_finding(report, 0, "", 0,
                            "the index %s does not fit the rows, which are good themselves", name);
    return more;
}

int tci_verify_indexes(struct tci_journal *journal, const uint64_t key[2],
                       const struct tci_verify_sums *sums, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    if (check_index(journal, key, "record_session",
                    "SELECT session, row, step FROM record INDEXED BY record_session "
                    "ORDER BY session, step",
                    report->rows, sums->session, report, reterr) < 0 ||
        check_index(journal, key, "record_call",
                    "SELECT call_id, row, 0 FROM record INDEXED BY record_call ORDER BY call_id",
                    report->rows, sums->call, report, reterr) < 0)
        return -1;
    return check_index(journal, key, "record_special",
                       "SELECT kind, row, 0 FROM record INDEXED BY record_special "
                       "WHERE kind <> 'call' ORDER BY kind",
                       sums->special_rows, sums->special, report, reterr);
}

/* ---- grants ------------------------------------------------------------------------------- */

/* Records of grants that the table does not have. One that was revoked may be gone with the rows
 * before a checkpoint, while the record that revoked it is still there. */
static const char missing_sql[] =
    "SELECT row, call_id FROM record AS r WHERE kind <> 'call' AND "
    "(kind = 'grant' AND NOT EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id AND "
    "g.row = r.row) OR "
    "kind = 'revoke' AND NOT EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id AND "
    "g.revoked_row = r.row) AND (EXISTS (SELECT 1 FROM run_grant AS g WHERE g.id = r.call_id) OR "
    "(SELECT min(row) FROM record) = 1)) ORDER BY row LIMIT 1";

static int check_missing(struct tci_journal *journal, struct tci_journal_report *report,
                         struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = prepare(journal, missing_sql, reterr);
    int more;
    if (!statement)
        return -1;
    more = tci_verify_step(journal, statement, report, 0, reterr);
    if (more > 0)
        tci_journal_finding(report, (uint64_t)sqlite3_column_int64(statement, 0), "", 0,
                            "the table of grants does not have the grant %.36s as this row has it",
                            text_at(statement, 1));
    return more < 0 ? -1 : 0;
}

static int check_table(struct tci_journal *journal, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_grant_list list = { 0 };
    const char *problem;
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_grant_list(journal, NULL, true, arena, &list, reterr) < 0)
        return -1;
    for (size_t i = 0; i < list.count && report->good; i++) {
        if (tci_journal_grant_check(journal, &list.rows[i], arena, &problem, reterr) < 0)
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
    return report->good ? check_missing(journal, report, reterr) : 0;
}
