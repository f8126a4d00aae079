/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the table of grants when rows come and go in bulk: prune and import. */
#include "journal/grants.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "json/canonical.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

static int forget(struct tci_journal *journal, const char *id, struct tc_error *reterr)
{
    sqlite3_stmt *grant = tci_journal_statement(journal, TCI_SQL_GRANT_FORGET, reterr);
    sqlite3_stmt *count = grant ? tci_journal_statement(journal, TCI_SQL_COUNT_FORGET, reterr)
                                : NULL;
    if (!count)
        return -1;
    tci_journal_bind_text(grant, 1, id);
    tci_journal_bind_text(count, 1, id);
    return tci_journal_run(journal, grant, reterr) < 0 ? -1
                                                       : tci_journal_run(journal, count, reterr);
}

static int move(struct tci_journal *journal, const struct tci_journal_grant *grant,
                struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    uint64_t row;
    if (tci_journal_grant_record(journal, "grant", grant, &row, reterr) < 0)
        return -1;
    statement = tci_journal_statement(journal, TCI_SQL_GRANT_MOVE, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, grant->id);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)row);
    return tci_journal_run(journal, statement, reterr);
}

int tci_journal_grants_carry(struct tci_journal *journal, uint64_t rows, uint64_t *ret_carried,
                             struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_grant_list list = { 0 };
    *ret_carried = 0;
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_journal_grant_list(journal, NULL, true, arena, &list, reterr) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const struct tci_grant_row *row = &list.rows[i];
        if (row->row > rows)
            continue;
        if (row->revoked_row) {
            if (forget(journal, row->grant.id, reterr) < 0)
                return -1;
            continue;
        }
        if (move(journal, &row->grant, reterr) < 0)
            return -1;
        ++*ret_carried;
    }
    return 0;
}

/* ---- import ------------------------------------------------------------------------------- */

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t time_member(const json_t *object, const char *key)
{
    double number = json_number_value(json_object_get(object, key));
    return number >= 0 && number <= (double)TCI_JOURNAL_INTEGER_MAX ? (int64_t)number : 0;
}

static int rebuild_grant(struct tci_journal *journal, const json_t *object, uint64_t row,
                         struct tci_arena *arena, struct tc_error *reterr)
{
    struct tci_journal_grant grant = { .agent = member(object, "agent"),
                                       .tool = member(object, "tool"),
                                       .created_us = time_member(object, "created_us") };
    const char *id = member(object, "id");
    json_t *value = json_object_get(object, "grant");
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_JOURNAL_TEXT_MAX);
    if (!value || strlen(id) >= sizeof grant.id)
        return tci_journal_damaged(journal, reterr, "row %llu is not the record of a grant",
                                   (unsigned long long)row);
    memcpy(grant.id, id, strlen(id) + 1);
    if (tci_json_canonical_value(arena, &text, value) < 0)
        return tci_error_no_memory(reterr);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    grant.text = text.data;
    return tci_journal_grant_insert(journal, &grant, row, reterr);
}

static int rebuild_row(struct tci_journal *journal, uint64_t number, struct tci_arena *arena,
                       struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = NULL;
    struct tci_journal_row row;
    int r = tci_journal_row_get(journal, number, arena, &row, reterr);
    if (r < 0)
        return -1;
    if (r > 0 || !row.entry.request)
        return tci_journal_damaged(journal, reterr, "row %llu has no text",
                                   (unsigned long long)number);
    object = tci_json_read(row.entry.request, strlen(row.entry.request), reterr);
    if (!object)
        return -1;
    if (strcmp(row.entry.kind, "grant") == 0)
        return rebuild_grant(journal, object, number, arena, reterr);
    return tci_journal_grant_mark(journal, row.entry.call_id, time_member(object, "revoked_us"),
                                  number, reterr);
}

int tci_journal_grants_rebuild(struct tci_journal *journal, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    uint64_t after = 0;
    if (!arena)
        return tci_error_no_memory(reterr);
    for (;;) {
        sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_NEXT_GRANT, reterr);
        int r;
        if (!statement)
            return -1;
        (void)sqlite3_bind_int64(statement, 1, (int64_t)after);
        r = tci_journal_step(journal, statement, reterr);
        if (r < 0)
            return -1;
        after = (uint64_t)sqlite3_column_int64(statement, 0);
        (void)sqlite3_reset(statement);
        if (after == 0)
            return 0;
        if (rebuild_row(journal, after, arena, reterr) < 0)
            return -1;
    }
}
