/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading off the rows that are left where each session goes on. */
#include "journal/bases.h"

#include <stdlib.h>
#include <string.h>

struct list {
    struct tci_journal_checkpoint_session *sessions;
    size_t count, capacity;
    bool has_unnamed; /* the session "" */
};

static void free_list(struct list *list)
{
    free(list->sessions);
}

static int add(struct list *list, struct tci_arena *arena, const char *name, uint64_t step,
               const char *state_hash, struct tc_error *reterr)
{
    struct tci_journal_checkpoint_session *session;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        void *grown = reallocarray(list->sessions, capacity, sizeof *list->sessions);
        if (!grown)
            return tci_error_no_memory(reterr);
        list->sessions = grown;
        list->capacity = capacity;
    }
    session = &list->sessions[list->count];
    *session = (struct tci_journal_checkpoint_session){ .step = step };
    session->name = tci_arena_strdup(arena, name);
    if (!session->name)
        return tci_error_no_memory(reterr);
    memcpy(session->state_hash, state_hash, sizeof session->state_hash);
    list->count++;
    return 0;
}

static bool is_hash(const char *text)
{
    return text && strlen(text) == TCI_SHA256_TEXT_MAX - 1;
}

static int from_rows(struct tci_journal *journal, uint64_t rows, struct tci_arena *arena,
                     struct list *list, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_BASES, reterr);
    int more;
    if (!statement)
        return -1;
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)rows);
    while ((more = tci_journal_step(journal, statement, reterr)) > 0) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *previous = (const char *)sqlite3_column_text(statement, 2);
        sqlite3_int64 step = sqlite3_column_int64(statement, 1);
        if (!name || !is_hash(previous) || step < 1) {
            (void)sqlite3_reset(statement);
            return tci_journal_damaged(journal, reterr, "a session begins nowhere");
        }
        list->has_unnamed |= !*name;
        if (step > 1 && add(list, arena, name, (uint64_t)step - 1, previous, reterr) < 0) {
            (void)sqlite3_reset(statement);
            return -1;
        }
    }
    return more;
}

/* The checkpoint itself will be in the session "": it follows the head that this has now. */
static int from_head(struct tci_journal *journal, struct tci_arena *arena, struct list *list,
                     struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_SESSION, reterr);
    const char *state_hash;
    int more, r = 0;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, "");
    more = tci_journal_step(journal, statement, reterr);
    if (more <= 0)
        return more;
    state_hash = (const char *)sqlite3_column_text(statement, 1);
    if (!is_hash(state_hash))
        r = tci_journal_damaged(journal, reterr, "the head of a session is not one");
    else
        r = add(list, arena, "", (uint64_t)sqlite3_column_int64(statement, 0), state_hash, reterr);
    (void)sqlite3_reset(statement);
    return r;
}

int tci_journal_bases(struct tci_journal *journal, uint64_t rows, struct tci_arena *arena,
                      struct tci_journal_checkpoint *ret, struct tc_error *reterr)
{
    tc_cleanup(free_list) struct list list = { 0 };
    if (from_rows(journal, rows, arena, &list, reterr) < 0 ||
        (!list.has_unnamed && from_head(journal, arena, &list, reterr) < 0))
        return -1;
    ret->sessions = tci_arena_array(arena, list.count ? list.count : 1, sizeof *ret->sessions);
    if (!ret->sessions)
        return tci_error_no_memory(reterr);
    if (list.count)
        memcpy(ret->sessions, list.sessions, list.count * sizeof *list.sessions);
    ret->session_count = list.count;
    return 0;
}
