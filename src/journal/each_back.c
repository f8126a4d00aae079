/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading rows while others use the same handle.
 * The attack: an agent whose records are many and long asks for them, and every other call of the process
 * waits for the journal until they are all looked at. So the lock is held for one page of an index, or for
 * copying one row; others come between.
 * Records are never changed, so rows that are read one after the other are still those of one moment. Those
 * that somebody prunes meanwhile are the oldest, and the answer ends there.
 */
#include "journal/journal_internal.h"

#include <string.h>

enum { page_rows = 256 };

struct back {
    struct tci_journal *journal;
    const struct tci_journal_query *query;
    const struct tci_journal_bounds *bounds;
    tci_journal_visitor *each;
    void *context;
    uint64_t left;                /* rows that may still be visited */
    size_t bytes;                 /* of results that may still be looked at */
    bool is_bare;                 /* no more results */
    uint64_t before;              /* rows or steps from there on were looked at */
    struct tci_journal_row later; /* the last that was visited; only its numbers and hashes */
    size_t count;
    uint64_t page[page_rows]; /* rows that are asked for */
};

static bool is_stopped(const struct back *back)
{
    return back->bounds->stop && atomic_load(back->bounds->stop);
}

/* ---- a page of an index --------------------------------------------------------------------- */

static bool is_text(sqlite3_stmt *statement, int column, const char *text)
{
    const char *found = (const char *)sqlite3_column_text(statement, column);
    return !text || (found && strcmp(found, text) == 0);
}

/* How many were looked at; -1: an error. */
static int look(struct back *back, sqlite3_stmt *statement, struct tc_error *reterr)
{
    const struct tci_journal_query *query = back->query;
    int looked = 0, r;
    (void)sqlite3_bind_int64(statement, 2, (int64_t)back->before);
    (void)sqlite3_bind_int64(statement, 3, page_rows);
    back->count = 0;
    while ((r = tci_journal_step(back->journal, statement, reterr)) > 0 && looked < page_rows) {
        const uint64_t row = (uint64_t)sqlite3_column_int64(statement, 0);
        back->before = query->call_id ? row : (uint64_t)sqlite3_column_int64(statement, 1);
        looked++;
        if (is_text(statement, 2, query->session) && is_text(statement, 3, query->agent) &&
            is_text(statement, 4, query->kind))
            back->page[back->count++] = row;
    }
    (void)sqlite3_reset(statement);
    return r < 0 ? -1 : looked;
}

static int next_page(struct back *back, struct tc_error *reterr)
{
    const struct tci_journal_query *query = back->query;
    sqlite3_stmt *statement;
    int r = -1;
    if (tci_journal_lock(back->journal, reterr) < 0)
        return -1;
    statement = tci_journal_statement(
        back->journal, query->call_id ? TCI_SQL_BACK_CALLS : TCI_SQL_BACK_STEPS, reterr);
    if (statement) {
        tci_journal_bind_text(statement, 1, query->call_id ? query->call_id : query->session);
        r = look(back, statement, reterr);
        (void)sqlite3_clear_bindings(statement);
    }
    tci_journal_unlock(back->journal);
    return r;
}

/* ---- a row ---------------------------------------------------------------------------------- */

static int copy(struct back *back, sqlite3_stmt *statement, uint64_t number,
                struct tci_arena *arena, struct tci_journal_row *ret, struct tc_error *reterr)
{
    size_t bytes;
    int r;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)number);
    r = tci_journal_step(back->journal, statement, reterr);
    if (r <= 0)
        return r < 0 ? -1 : 1;
    if (tci_journal_row_take(back->journal, statement, ret, reterr) < 0)
        return -1;
    bytes = ret->entry.result ? strlen(ret->entry.result) : 0;
    if (bytes > back->bytes)
        back->is_bare = true;
    else
        back->bytes -= bytes; /* of one that is left out, too: it was read */
    if (back->is_bare || bytes > back->bounds->result_bytes)
        ret->entry.result = NULL;
    return tci_journal_row_copy(arena, ret) < 0 ? tci_error_no_memory(reterr) : 0;
}

/* 0; 1: it is not there any more. */
static int read_row(struct back *back, uint64_t number, struct tci_arena *arena,
                    struct tci_journal_row *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    int r = -1;
    if (tci_journal_lock(back->journal, reterr) < 0)
        return -1;
    statement = tci_journal_statement(back->journal, back->is_bare ? TCI_SQL_ROW_BARE : TCI_SQL_ROW,
                                      reterr);
    if (statement) {
        r = copy(back, statement, number, arena, ret, reterr);
        (void)sqlite3_reset(statement);
    }
    tci_journal_unlock(back->journal);
    return r;
}

static int check(const struct back *back, const struct tci_journal_row *row,
                 struct tc_error *reterr)
{
    const struct tci_journal_last last = tci_journal_last_of(row);
    const char *problem;
    if (!tci_journal_is_asked_for(back->query, row))
        return tci_journal_damaged(back->journal, reterr, "row %llu: " TCI_JOURNAL_MISLED,
                                   (unsigned long long)row->row);
    problem = back->later.row ? tci_journal_misplaced(back->query, &last, &back->later) : NULL;
    return problem ? tci_journal_damaged(back->journal, reterr, "row %llu: %s",
                                         (unsigned long long)back->later.row, problem)
                   : 0;
}

/* 1: there are no more; *ret_result: what the visitor said. */
static int visit(struct back *back, uint64_t number, int *ret_result, struct tc_error *reterr)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_journal_row row = { .row = 0 };
    int r = arena ? read_row(back, number, arena, &row, reterr) : tci_error_no_memory(reterr);
    if (r == 0)
        r = check(back, &row, reterr);
    if (r == 0) {
        back->later = row;
        back->left--;
        *ret_result = back->each(back->context, &row, reterr);
        r = *ret_result != 0;
    }
    tci_arena_free(arena);
    return r;
}

int tci_journal_each_back(struct tci_journal *journal, const struct tci_journal_query *query,
                          const struct tci_journal_bounds *bounds, tci_journal_visitor *each,
                          void *context, struct tc_error *reterr)
{
    struct back back = { .journal = journal,
                         .query = query,
                         .bounds = bounds,
                         .each = each,
                         .context = context,
                         .left = query->last ? query->last : UINT64_MAX,
                         .bytes = bounds->results_bytes,
                         .before = INT64_MAX };
    int result = 0, r = 0;
    if (!query->session && !query->call_id)
        return tci_error_set(reterr, TC_ERROR_USAGE, "rows of which session, or of which call?");
    while (r == 0 && back.left && !is_stopped(&back)) {
        const int looked = next_page(&back, reterr);
        if (looked <= 0)
            return looked;
        for (size_t i = 0; i < back.count && r == 0 && back.left && !is_stopped(&back); i++)
            r = visit(&back, back.page[i], &result, reterr);
    }
    return r < 0 ? -1 : result;
}
