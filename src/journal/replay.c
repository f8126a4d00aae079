/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one reading of a session.
 *
 * Asked for in the order of the file, every request looks at one step. Only a request that matches
 * nothing reads to the end of the session.
 *
 * With `resume`, the file says what is taken: every take reads it, takes and writes it in one
 * transaction, so that several processes may read one session together.
 */
#include "journal/replay_internal.h"

#include <stdlib.h>
#include <string.h>
#include "base/quote.h"

/* ---- taking ------------------------------------------------------------------------------- */

/* Moves `low` over what is taken, as far as the window goes. */
static void advance(struct tci_replay *replay)
{
    while (replay->low < replay->base + replay->count &&
           replay->steps[replay->low - replay->base].taken)
        replay->low++;
}

/* The step that a request takes, 0: none may be. *ret_expected: the first that is not taken, 0: all
 * are. */
static int find(struct tci_replay *replay, const char *request_hash, uint64_t *ret,
                uint64_t *ret_expected, struct tc_error *reterr)
{
    int64_t first_end = INT64_MAX;
    *ret = *ret_expected = 0;
    for (uint64_t number = replay->low;; number++) {
        bool failed;
        struct tci_replay_step *step = tci_replay_step(replay, number, &failed, reterr);
        if (!step)
            return failed ? -1 : 0;
        if (number < replay->base)
            number = replay->base;
        if (step->taken)
            continue;
        if (!*ret_expected)
            *ret_expected = number;
        if (step->started_us <= first_end &&
            memcmp(step->request_hash, request_hash, sizeof step->request_hash) == 0) {
            *ret = number;
            return 0;
        }
        if (step->ended_us < first_end)
            first_end = step->ended_us;
    }
}

static int get_row(struct tci_replay *replay, uint64_t number, struct tci_arena *arena,
                   struct tci_journal_row *ret, struct tc_error *reterr)
{
    int r = tci_journal_row_get(replay->journal, replay->steps[number - replay->base].row, arena,
                                ret, reterr);
    if (r < 0)
        return -1;
    /* The index led here: does the row agree? */
    if (r > 0 || ret->step != number || strcmp(ret->entry.session, replay->session) != 0)
        return tci_replay_damaged(replay, number, reterr);
    return 0;
}

static int take(struct tci_replay *replay, const char *request_hash, struct tci_arena *arena,
                struct tci_journal_row *ret, struct tc_error *reterr)
{
    uint64_t number, expected;
    if (replay->resume && tci_replay_cursor_read(replay, reterr) < 0)
        return -1;
    if (find(replay, request_hash, &number, &expected, reterr) < 0)
        return -1;
    if (!number) {
        memset(ret, 0, sizeof *ret);
        if (expected && get_row(replay, expected, arena, ret, reterr) < 0)
            return -1;
        return 1;
    }
    if (get_row(replay, number, arena, ret, reterr) < 0)
        return -1;
    /* The list of steps said so; the row, which was checked, must say the same. */
    if (strcmp(ret->entry.request_hash, request_hash) != 0)
        return tci_replay_damaged(replay, number, reterr);
    replay->steps[number - replay->base].taken = true;
    if (number >= replay->high)
        replay->high = number + 1;
    advance(replay);
    return replay->resume ? tci_replay_cursor_write(replay, reterr) : 0;
}

int tci_replay_take(struct tci_replay *replay, const char *request_hash, struct tci_arena *arena,
                    struct tci_journal_row *ret, struct tc_error *reterr)
{
    bool own = false;
    int r;
    if (strlen(request_hash) != TCI_SHA256_TEXT_MAX - 1)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "the hash of a request is no hash");
    if (replay->resume ? tci_journal_begin(replay->journal, reterr) < 0
                       : tci_journal_read_begin(replay->journal, &own, reterr) < 0)
        return -1;
    /* The lock of the journal is ours as well: it is what all threads of a replay pass. */
    r = take(replay, request_hash, arena, ret, reterr);
    if (!replay->resume) {
        tci_journal_read_end(replay->journal, own);
        return r;
    }
    /* Whatever fails: the file knows what is taken, and is asked again. */
    replay->stale = true;
    r = tci_journal_end(replay->journal, r, reterr);
    if (r >= 0)
        replay->stale = false;
    return r;
}

/* ---- from open to close ------------------------------------------------------------------- */

static int check_session(struct tci_replay *replay, struct tc_error *reterr)
{
    char name[TCI_QUOTE_MAX];
    sqlite3_stmt *statement = tci_journal_statement(replay->journal, TCI_SQL_SESSION, reterr);
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, replay->session);
    r = tci_journal_step(replay->journal, statement, reterr);
    (void)sqlite3_reset(statement);
    if (r != 0)
        return r < 0 ? -1 : 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "there is no session %s in journal %s",
                  tci_quote(replay->session, strlen(replay->session), name), replay->journal->path);
    tci_error_remedy(reterr,
                     "'toolcage journal show' names the session of each call; --journal names "
                     "another file");
    return -1;
}

int tci_replay_open(struct tci_journal *journal, const char *session, bool resume,
                    struct tci_replay **ret, struct tc_error *reterr)
{
    struct tci_replay *replay = calloc(1, sizeof *replay);
    int r;
    if (!replay)
        return tci_error_no_memory(reterr);
    *replay = (struct tci_replay){ .journal = journal,
                                   .session = strdup(session),
                                   .resume = resume,
                                   .stale = resume,
                                   .low = 1,
                                   .base = 1,
                                   .high = 1,
                                   .page = TCI_REPLAY_PAGE };
    if (!replay->session) {
        free(replay);
        return tci_error_no_memory(reterr);
    }
    r = tci_journal_lock(journal, reterr);
    if (r == 0) {
        r = check_session(replay, reterr);
        if (r == 0 && resume && journal->read_only)
            r = tci_journal_fail(journal, SQLITE_READONLY, reterr);
        tci_journal_unlock(journal);
    }
    if (r < 0) {
        tci_replay_close(replay);
        return -1;
    }
    *ret = replay;
    return 0;
}

void tci_replay_close(struct tci_replay *replay)
{
    if (!replay)
        return;
    free(replay->steps);
    free(replay->session);
    free(replay);
}

static int forget(struct tci_journal *journal, const char *session, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(journal, TCI_SQL_CURSOR_FORGET, reterr);
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, session);
    return tci_journal_run(journal, statement, reterr);
}

int tci_replay_restart(struct tci_journal *journal, const char *session, struct tc_error *reterr)
{
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    return tci_journal_end(journal, forget(journal, session, reterr), reterr);
}
