/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is known of a session's steps. It begins at the lowest step that is not taken and grows,
 * page by page, as far as requests look. Invariant: steps[i] is step base + i, without holes: a step
 * that is missing in the file is an error here, not a shorter session.
 */
#include "journal/replay_internal.h"

#include <stdlib.h>
#include <string.h>
#include "base/quote.h"

/* Forgets steps before `low` once they are more than half: each is moved at most once on
 * average. */
static void drop_taken(struct tci_replay *replay)
{
    size_t done = (size_t)(replay->low - replay->base);
    if (done < TCI_REPLAY_PAGE || done * 2 < replay->count)
        return;
    replay->count -= done;
    memmove(replay->steps, replay->steps + done, replay->count * sizeof *replay->steps);
    replay->base = replay->low;
}

static int make_room(struct tci_replay *replay, struct tc_error *reterr)
{
    size_t wanted = replay->count + replay->page;
    struct tci_replay_step *steps;
    if (wanted <= replay->capacity)
        return 0;
    wanted = wanted < 2 * replay->capacity ? 2 * replay->capacity : wanted;
    steps = reallocarray(replay->steps, wanted, sizeof *steps);
    if (!steps)
        return tci_error_no_memory(reterr);
    replay->steps = steps;
    replay->capacity = wanted;
    return 0;
}

int tci_replay_damaged(struct tci_replay *replay, uint64_t step, struct tc_error *reterr)
{
    char name[TCI_QUOTE_MAX];
    return tci_journal_damaged(replay->journal, reterr, "step %llu of session %s is missing",
                               (unsigned long long)step,
                               tci_quote(replay->session, strlen(replay->session), name));
}

/* Steps before the first that is there may only be missing because they were pruned. */
static int begin_at(struct tci_replay *replay, uint64_t step, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal_checkpoint checkpoint = { 0 };
    int r;
    if (!arena)
        return tci_error_no_memory(reterr);
    r = tci_journal_checkpoint_last(replay->journal, arena, &checkpoint, reterr);
    if (r != 0)
        return r < 0 ? -1 : tci_replay_damaged(replay, replay->low, reterr);
    replay->low = replay->base = step;
    return 0;
}

static int add_step(struct tci_replay *replay, sqlite3_stmt *statement, struct tc_error *reterr)
{
    uint64_t number = (uint64_t)sqlite3_column_int64(statement, 0);
    const char *hash = (const char *)sqlite3_column_text(statement, 4);
    const char *kind = (const char *)sqlite3_column_text(statement, 5);
    struct tci_replay_step *step = &replay->steps[replay->count];
    bool first = replay->count == 0 && number > replay->base;
    if (!hash || !kind)
        return tci_error_no_memory(reterr);
    if (first && begin_at(replay, number, reterr) < 0)
        return -1;
    if (number != replay->base + replay->count)
        return tci_replay_damaged(replay, replay->base + replay->count, reterr);
    memset(step, 0, sizeof *step);
    if (strlen(hash) == sizeof step->request_hash)
        memcpy(step->request_hash, hash, sizeof step->request_hash);
    step->taken = strcmp(kind, "call") != 0;
    step->row = (uint64_t)sqlite3_column_int64(statement, 1);
    step->started_us = sqlite3_column_int64(statement, 2);
    step->ended_us = sqlite3_column_int64(statement, 3);
    replay->count++;
    return 0;
}

/* The session's head says how many steps there must be. */
static int check_end(struct tci_replay *replay, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(replay->journal, TCI_SQL_SESSION, reterr);
    uint64_t last = 0;
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, replay->session);
    r = tci_journal_step(replay->journal, statement, reterr);
    if (r > 0)
        last = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    if (r < 0)
        return -1;
    return last >= replay->base + replay->count
               ? tci_replay_damaged(replay, replay->base + replay->count, reterr)
               : 0;
}

/* Reads one page more. *ret_more: there was something. */
static int load_page(struct tci_replay *replay, bool *ret_more, struct tc_error *reterr)
{
    sqlite3_stmt *statement;
    size_t before;
    int r;
    drop_taken(replay);
    before = replay->count;
    if (make_room(replay, reterr) < 0)
        return -1;
    statement = tci_journal_statement(replay->journal, TCI_SQL_REPLAY_PAGE, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, replay->session);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)(replay->base + replay->count));
    (void)sqlite3_bind_int64(statement, 3, replay->page);
    while ((r = tci_journal_step(replay->journal, statement, reterr)) > 0)
        if (add_step(replay, statement, reterr) < 0) {
            r = -1;
            break;
        }
    (void)sqlite3_reset(statement);
    if (r < 0)
        return -1;
    *ret_more = replay->count > before;
    replay->page = replay->page < TCI_REPLAY_PAGE_MAX ? replay->page * 2 : TCI_REPLAY_PAGE_MAX;
    return *ret_more ? 0 : check_end(replay, reterr);
}

struct tci_replay_step *tci_replay_step(struct tci_replay *replay, uint64_t number,
                                        bool *ret_failed, struct tc_error *reterr)
{
    *ret_failed = false;
    while (number >= replay->base + replay->count) {
        bool more = false;
        if (load_page(replay, &more, reterr) < 0) {
            *ret_failed = true;
            return NULL;
        }
        if (!more)
            return NULL;
        if (number < replay->base) /* the session begins later */
            number = replay->base;
    }
    return &replay->steps[number - replay->base];
}
