/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how often each grant was used, counted across all processes that use the file. */
#include "journal/journal_internal.h"

static int read_calls(struct tci_journal *journal, sqlite3_stmt *statement, bool *ret_found,
                      uint64_t *ret_calls, struct tc_error *reterr)
{
    int64_t calls = 0;
    int r = tci_journal_step(journal, statement, reterr);
    *ret_found = r > 0;
    if (r <= 0)
        return r;
    calls = sqlite3_column_int64(statement, 0);
    /* RETURNING: the change is done only when the statement is. */
    r = tci_journal_run(journal, statement, reterr);
    if (r == 0 && calls < 0)
        r = tci_journal_damaged(journal, reterr, "a grant was used %lld times", (long long)calls);
    *ret_calls = (uint64_t)calls;
    return r;
}

/* Inside lock. */
static int counted(struct tci_journal *journal, const char *key, uint64_t *ret_calls,
                   struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_COUNTED, reterr);
    bool found;
    if (!statement)
        return -1;
    *ret_calls = 0;
    tci_journal_bind_text(statement, 1, key);
    return read_calls(journal, statement, &found, ret_calls, reterr);
}

static int count(struct tci_journal *journal, const char *key, uint64_t max, bool *ret_counted,
                 uint64_t *ret_calls, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_COUNT_CALL, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, key);
    (void)sqlite3_bind_int64(statement, 2, max > INT64_MAX ? INT64_MAX : (int64_t)max);
    if (read_calls(journal, statement, ret_counted, ret_calls, reterr) < 0)
        return -1;
    return *ret_counted ? 0 : counted(journal, key, ret_calls, reterr);
}

int tci_journal_count(struct tci_journal *journal, const char *key, uint64_t max, bool *ret_counted,
                      uint64_t *ret_calls, struct tc_error *reterr)
{
    *ret_counted = false;
    if (max == 0)
        return tci_journal_counted(journal, key, ret_calls, reterr);
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    return tci_journal_end(journal, count(journal, key, max, ret_counted, ret_calls, reterr),
                           reterr);
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
