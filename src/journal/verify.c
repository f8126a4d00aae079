/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading a whole journal and saying which row is the first that is not what was written.
 *
 * All of it is one moment of the file. First the rows in their order: each must follow the one before
 * it, and the one before it in its session. Then what stands beside them: heads (they show that rows
 * are missing at the end), indexes (they decide what a replay sees), grants, signatures.
 */
#include "journal/verify_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { progress_every = 8192 };

struct verify {
    struct tci_journal *journal;
    struct tci_journal_report *report;
    struct tci_verify_sessions sessions;
    struct tci_verify_sums sums;
    struct tci_buf scratch;
    char before[TCI_SHA256_TEXT_MAX]; /* state_hash of the row before */
    uint64_t next;                    /* the number of the row that comes next */
    uint64_t all;
    void (*progress)(void *context, uint64_t done, uint64_t all);
    void *context;
};

static void free_verify(struct verify *verify)
{
    tci_buf_free(&verify->scratch);
    tci_verify_sessions_free(&verify->sessions);
}

void tci_journal_finding(struct tci_journal_report *report, uint64_t row, const char *session,
                         uint64_t step, const char *format, ...)
{
    va_list args;
    if (report->problem[0])
        return;
    report->good = false;
    report->bad_row = row;
    (void)snprintf(report->bad_session, sizeof report->bad_session, "%s", session);
    report->bad_step = step;
    va_start(args, format);
    (void)vsnprintf(report->problem, sizeof report->problem, format, args);
    va_end(args);
}

/* Is this result code about the bytes of the file, and not about the system? */
static bool is_damage(int code)
{
    int kind = code & 0xff;
    return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || code == SQLITE_IOERR_SHORT_READ ||
           code == SQLITE_IOERR_CORRUPTFS;
}

int tci_verify_step(struct tci_journal *journal, sqlite3_stmt *statement,
                    struct tci_journal_report *report, uint64_t row, struct tc_error *reterr)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return 1;
    if (code == SQLITE_DONE)
        return 0;
    if (!is_damage(code))
        return tci_journal_fail(journal, code, reterr);
    tci_journal_finding(report, row, "", 0, "the file is damaged: what follows cannot be read (%s)",
                        sqlite3_errmsg(journal->db));
    return 0;
}

/* What is wrong with the place of a row in the chains; NULL: nothing. */
static const char *misplaced(const struct verify *verify, const struct tci_journal_row *row,
                             const struct tci_verify_session *session)
{
    if (strcmp(row->row_before, verify->before) != 0)
        return "its row_before is not the state_hash of the row before it";
    if (row->step != session->step + 1)
        return "it is not the next step of its session";
    if (strcmp(row->previous, session->state_hash) != 0)
        return "its previous is not the state_hash of the step before it";
    return NULL;
}

/* 0, or -1 with an error that is no finding. */
static int check_row(struct verify *verify, const struct tci_journal_row *row,
                     struct tc_error *reterr)
{
    struct tci_journal_report *report = verify->report;
    const struct tci_journal_entry *entry = &row->entry;
    struct tci_verify_session *session = tci_verify_session(&verify->sessions, entry->session);
    const uint64_t *key = verify->sessions.key;
    const char *problem;
    struct tc_error failed;

    if (!session)
        return tci_error_no_memory(reterr);
    if (row->row != verify->next) {
        tci_journal_finding(report, verify->next, "", 0, "row %llu is missing",
                            (unsigned long long)verify->next);
        return 0;
    }
    failed.code = TC_ERROR_NONE;
    problem = tci_journal_row_check(row, &verify->scratch, &failed);
    if (failed.code != TC_ERROR_NONE)
        return tci_error_no_memory(reterr);
    if (!problem)
        problem = misplaced(verify, row, session);
    if (problem) {
        tci_journal_finding(report, row->row, entry->session, row->step, "%s", problem);
        return 0;
    }
    session->step = row->step;
    session->row = row->row;
    memcpy(session->state_hash, row->state_hash, sizeof session->state_hash);
    memcpy(verify->before, row->state_hash, sizeof verify->before);
    tci_verify_sum(key, &verify->sums.session, entry->session, row->row, row->step);
    tci_verify_sum(key, &verify->sums.call, entry->call_id, row->row, 0);
    if (strcmp(entry->kind, "call") != 0) {
        tci_verify_sum(key, &verify->sums.special, entry->kind, row->row, 0);
        verify->sums.special_rows++;
    }
    verify->next++;
    report->rows++;
    return 0;
}

static int check_rows(struct verify *verify, sqlite3_stmt *statement, struct tc_error *reterr)
{
    struct tci_journal_report *report = verify->report;
    int more;
    while ((more = tci_verify_step(verify->journal, statement, report, verify->next, reterr)) > 0) {
        struct tci_journal_row row;
        const char *bad = tci_journal_row_read(statement, &row);
        if (bad && sqlite3_errcode(verify->journal->db) == SQLITE_NOMEM)
            return tci_error_no_memory(reterr);
        if (bad)
            tci_journal_finding(report, verify->next, "", 0, "its %s is not what it can be", bad);
        else if (check_row(verify, &row, reterr) < 0)
            return -1;
        if (!report->good)
            return 0;
        if (verify->progress && report->rows % progress_every == 0)
            verify->progress(verify->context, report->rows, verify->all);
    }
    return more;
}

/* ---- where the chain begins --------------------------------------------------------------- */

static int take_checkpoint(struct verify *verify, uint64_t first, uint64_t number,
                           struct tci_arena *arena, struct tc_error *reterr)
{
    struct tci_journal_checkpoint checkpoint = { 0 };
    struct tc_error bad = { 0 };
    if (tci_journal_checkpoint_last(verify->journal, arena, &checkpoint, &bad) != 0) {
        if (bad.code == TC_ERROR_NO_MEMORY)
            return tci_error_no_memory(reterr);
        tci_journal_finding(verify->report, number, "", 0,
                            "the checkpoint from which the chain goes on is not what was written");
        return 0;
    }
    if (checkpoint.rows != first - 1) {
        /* More rows are gone than it says, or it says too much. */
        tci_journal_finding(
            verify->report, checkpoint.rows < first - 1 ? checkpoint.rows + 1 : first, "", 0,
            "the checkpoint in row %llu goes on behind row %llu, not before row %llu",
            (unsigned long long)number, (unsigned long long)checkpoint.rows,
            (unsigned long long)first);
        return 0;
    }
    memcpy(verify->before, checkpoint.state_hash, sizeof verify->before);
    verify->next = first;
    for (size_t i = 0; i < checkpoint.session_count; i++) {
        const struct tci_journal_checkpoint_session *from = &checkpoint.sessions[i];
        struct tci_verify_session *session = tci_verify_session(&verify->sessions, from->name);
        if (!session)
            return tci_error_no_memory(reterr);
        session->step = from->step;
        session->row = checkpoint.rows;
        memcpy(session->state_hash, from->state_hash, sizeof session->state_hash);
    }
    return 0;
}

/* One number from SQL; 0 for NULL. Damage is a finding at row 1. */
static int number_of(struct verify *verify, const char *sql, uint64_t *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(verify->journal->db, sql, -1, &statement, NULL), more;
    *ret = 0;
    if (code != SQLITE_OK)
        return tci_journal_fail(verify->journal, code, reterr);
    more = tci_verify_step(verify->journal, statement, verify->report, 1, reterr);
    if (more > 0)
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return more < 0 ? -1 : 0;
}

static int find_start(struct verify *verify, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    uint64_t first, last, checkpoint;
    if (!arena)
        return tci_error_no_memory(reterr);
    memcpy(verify->before, tci_journal_no_state, sizeof verify->before);
    verify->next = 1;
    if (number_of(verify, "SELECT min(row) FROM record", &first, reterr) < 0 ||
        number_of(verify, "SELECT max(row) FROM record", &last, reterr) < 0 ||
        number_of(verify,
                  "SELECT max(row) FROM record WHERE kind = 'checkpoint' AND kind <> 'call'",
                  &checkpoint, reterr) < 0)
        return -1;
    verify->all = last >= first ? last - first + 1 : 0;
    if (first <= 1 || (int64_t)first < 0 || !verify->report->good)
        return 0;
    if (!checkpoint) {
        tci_journal_finding(verify->report, 1, "", 0, "row 1 is missing");
        return 0;
    }
    return take_checkpoint(verify, first, checkpoint, arena, reterr);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int scan(struct verify *verify, struct tc_error *reterr)
{
    static const char sql[] = "SELECT " TCI_JOURNAL_COLUMNS " FROM record ORDER BY row";
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(verify->journal->db, sql, -1, &statement, NULL), r;
    if (code != SQLITE_OK)
        return tci_journal_fail(verify->journal, code, reterr);
    r = check_rows(verify, statement, reterr);
    (void)sqlite3_finalize(statement);
    return r;
}

static int check_all(struct verify *verify, struct tc_error *reterr)
{
    struct tci_journal *journal = verify->journal;
    struct tci_journal_report *report = verify->report;
    if (tci_journal_check_objects(journal, reterr) < 0 || find_start(verify, reterr) < 0)
        return -1;
    if (report->good && scan(verify, reterr) < 0)
        return -1;
    report->sessions = verify->sessions.count;
    report->last_row = verify->next - 1;
    memcpy(report->head, verify->before, sizeof report->head);
    if (report->good && tci_verify_heads(journal, &verify->sessions, report, reterr) < 0)
        return -1;
    if (report->good &&
        tci_verify_indexes(journal, verify->sessions.key, &verify->sums, report, reterr) < 0)
        return -1;
    if (report->good && tci_journal_check_grants(journal, report, reterr) < 0)
        return -1;
    if (report->good && tci_journal_check_signatures(journal, report, reterr) < 0)
        return -1;
    if (report->good && tci_verify_pages(journal, report, reterr) < 0)
        return -1;
    if (verify->progress)
        verify->progress(verify->context, report->rows, verify->all);
    return 0;
}

int tci_journal_verify(struct tci_journal *journal, struct tci_journal_report *ret,
                       void (*progress)(void *context, uint64_t done, uint64_t all), void *context,
                       struct tc_error *reterr)
{
    tc_cleanup(
        free_verify) struct verify verify = { .journal = journal,
                                              .report = ret,
                                              .progress = progress,
                                              .context = context,
                                              .scratch = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX) };
    bool own;
    int r;
    *ret = (struct tci_journal_report){ .good = true };
    if (tci_verify_sessions_init(&verify.sessions, reterr) < 0 ||
        tci_journal_read_begin(journal, &own, reterr) < 0)
        return -1;
    r = check_all(&verify, reterr);
    tci_journal_read_end(journal, own);
    return r;
}
