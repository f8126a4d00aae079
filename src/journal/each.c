/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: questions about rows. One statement is one moment of the file, whoever writes meanwhile.
 * Within a session the order of steps is that of rows, and steps have an index: the last page of a long
 * journal is found from its end.
 * Indexes lead to rows, and are not trusted: a row must be one that was asked for, and follow the one
 * that came before it. Whether its texts fit its hashes is for the caller to check, and what an index
 * hides is for verify to find.
 */
#include "journal/journal_internal.h"

#include <stdio.h>
#include <string.h>

enum { conditions_max = 8 };

struct question {
    char where[256];
    size_t length;
    int count;
    struct value {
        const char *text; /* NULL: the number */
        uint64_t number;
    } values[conditions_max];
};

static void add(struct question *question, const char *condition, const char *text, uint64_t number)
{
    int written = snprintf(question->where + question->length,
                           sizeof question->where - question->length, "%s%s ?%d",
                           question->count ? " AND " : " WHERE ", condition, question->count + 1);
    question->length += written > 0 ? (size_t)written : 0;
    question->values[question->count++] = (struct value){ text, number };
}

static void collect(const struct tci_journal_query *query, struct question *question)
{
    const struct {
        const char *condition, *text;
    } texts[] = { { "session =", query->session }, { "tool =", query->tool },
                  { "agent =", query->agent },     { "verdict =", query->verdict },
                  { "call_id =", query->call_id }, { "kind =", query->kind } };
    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (texts[i].text)
            add(question, texts[i].condition, texts[i].text, 0);
    if (query->row_from)
        add(question, "row >=", NULL, query->row_from);
    if (query->row_to)
        add(question, "row <=", NULL, query->row_to);
}

static sqlite3_stmt *prepare(struct tci_journal *journal, const struct tci_journal_query *query,
                             struct tc_error *reterr)
{
    struct question question = { .where = "" };
    const char *order = query->session ? "step" : "row";
    sqlite3_stmt *statement = NULL;
    char sql[1024];
    int code;

    collect(query, &question);
    if (query->last)
        (void)snprintf(sql, sizeof sql,
                       "SELECT " TCI_JOURNAL_COLUMNS " FROM record%s%s%s >= (SELECT min(%s) FROM "
                       "(SELECT %s FROM record%s ORDER BY %s DESC LIMIT %llu)) ORDER BY %s",
                       question.where, question.count ? " AND " : " WHERE ", order, order, order,
                       question.where, order,
                       (unsigned long long)(query->last > INT64_MAX ? INT64_MAX : query->last),
                       order);
    else
        (void)snprintf(sql, sizeof sql, "SELECT " TCI_JOURNAL_COLUMNS " FROM record%s ORDER BY %s",
                       question.where, order);
    code = sqlite3_prepare_v2(journal->db, sql, -1, &statement, NULL);
    if (code != SQLITE_OK) {
        tci_journal_fail(journal, code, reterr);
        return NULL;
    }
    for (int i = 0; i < question.count; i++) {
        const struct value *value = &question.values[i];
        if (value->text)
            tci_journal_bind_text(statement, i + 1, value->text);
        else
            (void)sqlite3_bind_int64(
                statement, i + 1, value->number > INT64_MAX ? INT64_MAX : (int64_t)value->number);
    }
    return statement;
}

bool tci_journal_is_asked_for(const struct tci_journal_query *query,
                              const struct tci_journal_row *row)
{
    const struct tci_journal_entry *entry = &row->entry;
    return (!query->session || strcmp(query->session, entry->session) == 0) &&
           (!query->call_id || strcmp(query->call_id, entry->call_id) == 0) &&
           (!query->agent || strcmp(query->agent, entry->agent) == 0) &&
           (!query->kind || strcmp(query->kind, entry->kind) == 0);
}

const char *tci_journal_misplaced(const struct tci_journal_query *query,
                                  const struct tci_journal_last *last,
                                  const struct tci_journal_row *row)
{
    if (query->session ? row->step <= last->step : row->row <= last->row)
        return TCI_JOURNAL_MISLED;
    if (last->row && row->row == last->row + 1 && strcmp(row->row_before, last->state_hash) != 0)
        return "its row_before is not the state_hash of the row before it";
    if (last->row && query->session && row->step == last->step + 1 &&
        strcmp(row->previous, last->state_hash) != 0)
        return "its previous is not the state_hash of the step before it";
    return NULL;
}

struct tci_journal_last tci_journal_last_of(const struct tci_journal_row *row)
{
    struct tci_journal_last last = { .row = row->row, .step = row->step };
    memcpy(last.state_hash, row->state_hash, sizeof last.state_hash);
    return last;
}

static int visit(struct tci_journal *journal, const struct tci_journal_query *query,
                 sqlite3_stmt *statement, tci_journal_visitor *each, void *context,
                 struct tc_error *reterr)
{
    struct tci_journal_last last = { 0 };
    int r;
    while ((r = tci_journal_step(journal, statement, reterr)) > 0) {
        struct tci_journal_row row;
        const char *problem;
        if (tci_journal_row_take(journal, statement, &row, reterr) < 0)
            return -1;
        problem = tci_journal_is_asked_for(query, &row) ? tci_journal_misplaced(query, &last, &row)
                                                        : TCI_JOURNAL_MISLED;
        if (problem)
            return tci_journal_damaged(journal, reterr, "row %llu: %s", (unsigned long long)row.row,
                                       problem);
        last = tci_journal_last_of(&row);
        r = each(context, &row, reterr);
        if (r != 0)
            return r;
    }
    return r;
}

int tci_journal_each(struct tci_journal *journal, const struct tci_journal_query *query,
                     tci_journal_visitor *each, void *context, struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    int r;
    if (tci_journal_lock(journal, reterr) < 0)
        return -1;
    statement = prepare(journal, query, reterr);
    r = statement ? visit(journal, query, statement, each, context, reterr) : -1;
    (void)sqlite3_finalize(statement);
    tci_journal_unlock(journal);
    return r;
}
