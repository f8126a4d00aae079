/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which grants were revoked. The attack: a record that revokes is good and signed, and an index
 * is changed so that nobody finds it. So the answer comes in two ways, over two indexes, with kind and
 * id from the rows themselves; where they differ, the file was changed. Whoever changes both is found
 * out by verify.
 */
#include "journal/grants.h"

#include <stdlib.h>
#include <string.h>

struct growing {
    struct tci_revoke *items;
    size_t count, capacity;
};

static void free_growing(struct growing *list)
{
    free(list->items);
}

static int by_id(const void *a, const void *b)
{
    const struct tci_revoke *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static int keep(struct growing *list, const char *id, uint64_t row, struct tc_error *reterr)
{
    if (strlen(id) >= sizeof list->items->id)
        return 0; /* no grant has such an id */
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        struct tci_revoke *items = reallocarray(list->items, capacity, sizeof *items);
        if (!items)
            return tci_error_no_memory(reterr);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count].row = row;
    memcpy(list->items[list->count++].id, id, strlen(id) + 1);
    return 0;
}

/* The row itself, by its number: a look-up that needs no index. */
static int look(struct tci_journal *journal, uint64_t row, struct growing *list,
                struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_KIND, reterr);
    const char *kind, *id;
    int r;
    if (!statement)
        return -1;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)row);
    r = tci_journal_step(journal, statement, reterr);
    if (r < 0)
        return -1;
    if (r == 0)
        return tci_journal_damaged(journal, reterr,
                                   "an index leads to row %llu, which is not there",
                                   (unsigned long long)row);
    kind = (const char *)sqlite3_column_text(statement, 0);
    id = (const char *)sqlite3_column_text(statement, 1);
    r = !kind || !id                  ? tci_error_no_memory(reterr)
        : strcmp(kind, "revoke") == 0 ? keep(list, id, row, reterr)
                                      : 0;
    (void)sqlite3_reset(statement);
    return r;
}

int tci_journal_revokes(struct tci_journal *journal, struct tci_arena *arena,
                        struct tci_revokes *ret, struct tc_error *reterr)
{
    tc_cleanup(free_growing) struct growing list = { 0 };
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_SPECIAL_ROWS, reterr);
    int r;
    if (!statement)
        return -1;
    while ((r = tci_journal_step(journal, statement, reterr)) > 0)
        if (look(journal, (uint64_t)sqlite3_column_int64(statement, 0), &list, reterr) < 0) {
            r = -1;
            break;
        }
    (void)sqlite3_reset(statement);
    if (r < 0)
        return -1;
    ret->items = tci_arena_array(arena, list.count, sizeof *ret->items);
    if (!ret->items)
        return tci_error_no_memory(reterr);
    if (list.count) {
        qsort(list.items, list.count, sizeof *list.items, by_id);
        memcpy(ret->items, list.items, list.count * sizeof *ret->items);
    }
    ret->count = list.count;
    return 0;
}

static uint64_t first_of(const struct tci_revokes *revokes, const char *id)
{
    size_t low = 0, high = revokes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(revokes->items[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < revokes->count && strcmp(revokes->items[low].id, id) == 0 ? revokes->items[low].row
                                                                           : 0;
}

int tci_journal_revoked_by(struct tci_journal *journal, const struct tci_revokes *revokes,
                           const char *id, uint64_t *ret, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_REVOKED, reterr);
    uint64_t row = 0;
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, id);
    r = tci_journal_step(journal, statement, reterr);
    if (r > 0)
        row = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    if (r < 0)
        return -1;
    *ret = first_of(revokes, id);
    if (row != *ret)
        return tci_journal_damaged(journal, reterr,
                                   "its indexes do not agree about who revoked grant %s", id);
    return 0;
}
