/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: lists of grants, for callers and for verify. */
#include "journal/grants.h"

#include <stdlib.h>
#include <string.h>

struct growing {
    struct tci_grant_row *rows;
    size_t count, capacity;
};

static void free_growing(struct growing *list)
{
    free(list->rows);
}

static struct tci_grant_row *next(struct growing *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        struct tci_grant_row *rows = reallocarray(list->rows, capacity, sizeof *rows);
        if (!rows)
            return NULL;
        list->rows = rows;
        list->capacity = capacity;
    }
    memset(&list->rows[list->count], 0, sizeof *list->rows);
    return &list->rows[list->count++];
}

int tci_journal_grant_list(struct tci_journal *journal, const char *agent, bool revoked,
                           struct tci_arena *arena, struct tci_grant_list *ret,
                           struct tc_error *reterr)
{
    tc_cleanup(free_growing) struct growing list = { 0 };
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_GRANTS, reterr);
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, agent);
    (void)sqlite3_bind_int(statement, 2, revoked);
    while ((r = tci_journal_step(journal, statement, reterr)) > 0) {
        struct tci_grant_row *row = next(&list);
        r = row ? tci_journal_grant_read(journal, statement, arena, row, reterr)
                : tci_error_no_memory(reterr);
        if (r < 0)
            break;
    }
    (void)sqlite3_reset(statement);
    if (r < 0)
        return -1;
    ret->rows = tci_arena_array(arena, list.count, sizeof *ret->rows);
    if (!ret->rows)
        return tci_error_no_memory(reterr);
    if (list.count)
        memcpy(ret->rows, list.rows, list.count * sizeof *ret->rows);
    ret->count = list.count;
    return 0;
}

/* Inside one read transaction: the table and its records are of one moment. */
static int list_checked(struct tci_journal *journal, const char *agent, bool revoked,
                        struct tci_arena *arena, struct tci_grant_list *ret,
                        struct tc_error *reterr)
{
    struct tci_revokes revokes = { 0 };
    const char *problem;
    /* Another process may have changed the schema since the file was opened. */
    if (tci_journal_check_objects(journal, reterr) < 0 ||
        tci_journal_grant_list(journal, agent, revoked, arena, ret, reterr) < 0)
        return -1;
    if (ret->count && tci_journal_revokes(journal, arena, &revokes, reterr) < 0)
        return -1;
    for (size_t i = 0; i < ret->count; i++) {
        if (tci_journal_grant_check(journal, &ret->rows[i], &revokes, arena, &problem, reterr) < 0)
            return -1;
        if (problem)
            return tci_journal_damaged(journal, reterr, "grant %s %s", ret->rows[i].grant.id,
                                       problem);
    }
    return 0;
}

int tci_journal_grants(struct tci_journal *journal, const char *agent, bool revoked,
                       struct tci_arena *arena, struct tci_journal_grant **ret, size_t *ret_count,
                       struct tc_error *reterr)
{
    struct tci_grant_list list = { 0 };
    struct tci_journal_grant *grants;
    bool own;
    int r;
    if (tci_journal_read_begin(journal, &own, reterr) < 0)
        return -1;
    r = list_checked(journal, agent, revoked, arena, &list, reterr);
    tci_journal_read_end(journal, own);
    if (r < 0)
        return -1;
    grants = tci_arena_array(arena, list.count, sizeof *grants);
    if (!grants)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < list.count; i++)
        grants[i] = list.rows[i].grant;
    *ret = grants;
    *ret_count = list.count;
    return 0;
}
