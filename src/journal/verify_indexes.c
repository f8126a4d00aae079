/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the indexes against the rows, which are good themselves. Indexes decide which rows a replay, a
 * question and a list of grants see. The attacks: an entry that is gone or leads elsewhere; one whose
 * text has become a blob of the same bytes, which no look-up finds; two entries that changed places,
 * between which a search goes astray.
 * Trusts: the sums, which were made of the rows. An index that holds exactly what the rows say, of the
 * right types and in strict order, finds every row.
 */
#include "journal/verify_internal.h"

#include <string.h>
#include "base/siphash.h"

struct index {
    const char *name;
    const char *sql; /* text, row, step: in the order of the index */
    bool steps;      /* within a text: by step; else by row */
    uint64_t rows, sum;
};

static void finalize(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}

sqlite3_stmt *tci_verify_prepare(struct tci_journal *journal, const char *sql,
                                 struct tc_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        tci_journal_fail(journal, code, reterr);
    return statement;
}

const char *tci_verify_text(sqlite3_stmt *statement, int column)
{
    const char *text;
    /* Before the text is asked for: SQLite would make one of a blob. */
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return NULL;
    text = (const char *)sqlite3_column_text(statement, column);
    return text && strlen(text) == (size_t)sqlite3_column_bytes(statement, column) ? text : NULL;
}

const char *tci_verify_next_key(sqlite3_stmt *statement, uint64_t count, struct tci_buf *before)
{
    const char *text = tci_verify_text(statement, 0);
    /* SQLite compares bytes, as strcmp does. */
    if (!text || (count && strcmp(before->data, text) >= 0))
        return NULL;
    before->length = 0;
    tci_buf_append(before, text, strlen(text));
    return tci_buf_check(before, NULL) < 0 ? NULL : text;
}

void tci_verify_sum(const uint64_t key[2], uint64_t *sum, const char *text, uint64_t a, uint64_t b)
{
    const uint64_t parts[3] = { tci_siphash(key, text, strlen(text)), a, b };
    *sum += tci_siphash(key, parts, sizeof parts);
}

/* Where an entry stands, to compare the next one with. */
struct entry {
    struct tci_buf text;
    int64_t number;
};

static void free_entry(struct entry *entry)
{
    tci_buf_free(&entry->text);
}

/* Does an entry come behind the one before it? Then it takes its place. */
static bool follows(struct entry *before, uint64_t count, const char *text, int64_t number)
{
    int order = count ? strcmp(before->text.data, text) : -1;
    if (order > 0 || (order == 0 && before->number >= number))
        return false;
    before->number = number;
    if (order == 0)
        return true;
    before->text.length = 0;
    tci_buf_append(&before->text, text, strlen(text));
    return tci_buf_check(&before->text, NULL) == 0;
}

static int check_index(struct tci_journal *journal, const uint64_t key[2],
                       const struct index *index, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *statement = tci_verify_prepare(journal, index->sql, reterr);
    tc_cleanup(free_entry) struct entry before = { .text = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX) };
    uint64_t sum = 0, count = 0;
    bool good = true;
    int more = 0;
    if (!statement)
        return -1;
    while (good && (more = tci_verify_step(journal, statement, report, 0, reterr)) > 0) {
        const char *text = tci_verify_text(statement, 0);
        int64_t row = sqlite3_column_int64(statement, 1), step = sqlite3_column_int64(statement, 2);
        good = text && sqlite3_column_type(statement, 2) == SQLITE_INTEGER &&
               follows(&before, count, text, index->steps ? step : row);
        if (good)
            tci_verify_sum(key, &sum, text, (uint64_t)row, (uint64_t)step);
        count++;
    }
    if (before.text.no_memory || (!good && sqlite3_errcode(journal->db) == SQLITE_NOMEM))
        return tci_error_no_memory(reterr);
    if (!good || (more == 0 && (count != index->rows || sum != index->sum)))
        tci_journal_finding(report, 0, "", 0,
                            "the index %s does not fit the rows, which are good themselves",
                            index->name);
    return good ? more : 0;
}

/* record_special has the number of a row twice: as a column, by which is searched, and as the way to
 * the row, which is what SQL shows. So each entry must be found by the one and lead to the other. */
static int check_special(struct tci_journal *journal, struct tci_journal_report *report,
                         struct tc_error *reterr)
{
    tc_cleanup(finalize) sqlite3_stmt *all = tci_verify_prepare(
        journal, "SELECT kind, row FROM record INDEXED BY record_special WHERE kind <> 'call'",
        reterr);
    tc_cleanup(finalize) sqlite3_stmt *one = NULL;
    int more = -1;
    if (!all || !(one = tci_verify_prepare(journal,
                                           "SELECT row FROM record INDEXED BY record_special "
                                           "WHERE kind <> 'call' AND kind = ?1 AND row = ?2",
                                           reterr)))
        return -1;
    while (report->good && (more = tci_verify_step(journal, all, report, 0, reterr)) > 0) {
        tci_journal_bind_text(one, 1, tci_verify_text(all, 0));
        (void)sqlite3_bind_int64(one, 2, sqlite3_column_int64(all, 1));
        more = tci_verify_step(journal, one, report, 0, reterr);
        if (more < 0)
            return -1;
        if (more == 0)
            tci_journal_finding(report, 0, "", 0,
                                "the index record_special does not fit the rows, which are good "
                                "themselves");
        (void)sqlite3_reset(one);
    }
    return more < 0 ? -1 : 0;
}

int tci_verify_pages(struct tci_journal *journal, struct tci_journal_report *report,
                     struct tc_error *reterr)
{
    tc_cleanup(finalize)
        sqlite3_stmt *statement = tci_verify_prepare(journal, "PRAGMA quick_check(1)", reterr);
    int more = statement ? tci_verify_step(journal, statement, report, 0, reterr) : -1;
    const char *text = more > 0 ? tci_verify_text(statement, 0) : NULL;
    if (more < 0)
        return -1;
    if (!text && sqlite3_errcode(journal->db) == SQLITE_NOMEM)
        return tci_error_no_memory(reterr);
    if (more > 0 && (!text || strcmp(text, "ok") != 0))
        tci_journal_finding(report, 0, "", 0, "the file is damaged: %.200s", text ? text : "");
    return 0;
}

int tci_verify_indexes(struct tci_journal *journal, const uint64_t key[2],
                       const struct tci_verify_sums *sums, struct tci_journal_report *report,
                       struct tc_error *reterr)
{
    const struct index indexes[] = {
        { "record_session",
          "SELECT session, row, step FROM record INDEXED BY record_session ORDER BY session, step",
          true, report->rows, sums->session },
        { "record_call",
          "SELECT call_id, row, 0 FROM record INDEXED BY record_call ORDER BY call_id, row", false,
          report->rows, sums->call },
        { "record_special",
          "SELECT kind, row, 0 FROM record INDEXED BY record_special WHERE kind <> 'call' "
          "ORDER BY kind, row",
          false, sums->special_rows, sums->special },
    };
    for (size_t i = 0; i < tci_array_size(indexes) && report->good; i++)
        if (check_index(journal, key, &indexes[i], report, reterr) < 0)
            return -1;
    return report->good ? check_special(journal, report, reterr) : 0;
}
