/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a row among its neighbours. The attack: a row is written anew, with hashes that fit it. The rows
 * beside it, found by their numbers and without an index, still name the old one. Whoever writes all that
 * follow anew is found out by a signature.
 */
#include "journal/journal_internal.h"

#include <string.h>

/* Is a column of a row (0: row_before, 1: state_hash) this hash? There may be no such row. */
static int has_link(struct tci_journal *journal, uint64_t number, int column, const char *hash,
                    bool *ret_same, bool *ret_found, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_LINK, reterr);
    const char *text;
    int r;
    if (!statement)
        return -1;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)number);
    r = tci_journal_step(journal, statement, reterr);
    if (r < 0)
        return -1;
    *ret_found = r > 0;
    text = r > 0 ? (const char *)sqlite3_column_text(statement, column) : NULL;
    *ret_same = text && strcmp(text, hash) == 0;
    (void)sqlite3_reset(statement);
    return 0;
}

int tci_journal_row_linked(struct tci_journal *journal, const struct tci_journal_row *row,
                           struct tc_error *reterr)
{
    bool before, after, found_before, found_after;
    if (has_link(journal, row->row - 1, 1, row->row_before, &before, &found_before, reterr) < 0 ||
        has_link(journal, row->row + 1, 0, row->state_hash, &after, &found_after, reterr) < 0)
        return -1;
    /* The first one that is left may follow a row that was pruned. */
    if ((found_before && !before) || (found_after && !after))
        return tci_journal_damaged(
            journal, reterr, "row %llu and the one %s it do not follow each other",
            (unsigned long long)row->row, found_before && !before ? "before" : "after");
    return 0;
}
