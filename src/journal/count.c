/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how often each grant was used, counted across all processes that use the file. */
#include "journal/journal_internal.h"

/* Inside the transaction. 0; 1: it has had its maximum. */
static int count_one(struct tci_journal *journal, const char *key, uint64_t max,
                     struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    int r;

    if (max == 0)
        return 1; /* the statement could not refuse a first call */
    statement = tci_journal_statement(journal, TCI_SQL_COUNT_CALL, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, key);
    (void)sqlite3_bind_int64(statement, 2, max > INT64_MAX ? INT64_MAX : (int64_t)max);
    r = tci_journal_step(journal, statement, reterr);
    if (r < 0)
        return -1;
    if (r == 0)
        return 1;
    return tci_journal_run(journal, statement, reterr);
}

int tci_journal_count_all(struct tci_journal *journal, const char *const *keys, const uint64_t *max,
                          size_t count, bool *ret_counted, struct tc_error *reterr)
{
    int r = 0;

    *ret_counted = false;
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = count_one(journal, keys[i], max[i], reterr);
    if (r > 0) {
        struct tc_error unwanted = { 0 };
        /* Takes back what was counted before it. */
        int ended = tci_journal_end(journal, -1, &unwanted);
        (void)ended;
        return 0;
    }
    r = tci_journal_end(journal, r, reterr);
    *ret_counted = r == 0;
    return r;
}

/* Inside lock. */
static int counted(struct tci_journal *journal, const char *key, uint64_t *ret_calls,
                   struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_COUNTED, reterr);
    int64_t calls;
    int r;

    *ret_calls = 0;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, key);
    r = tci_journal_step(journal, statement, reterr);
    if (r <= 0)
        return r;
    calls = sqlite3_column_int64(statement, 0);
    r = tci_journal_run(journal, statement, reterr);
    if (r == 0 && calls < 0)
        r = tci_journal_damaged(journal, reterr, "a grant was used %lld times", (long long)calls);
    *ret_calls = (uint64_t)calls;
    return r;
}

int tci_journal_counted(struct tci_journal *journal, const char *key, uint64_t *ret_calls,
                        struct tc_error *reterr)
{
    int r;
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    r = counted(journal, key, ret_calls, reterr);
    tci_journal_unlock(journal);
    return r;
}
