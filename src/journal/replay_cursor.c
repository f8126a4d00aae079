/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is taken of a session, in the file: the lowest step that is not, and a bit for each step
 * from there to the highest that is. Asked for in order, there are no bits. */
#include "journal/replay_internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_bit(const unsigned char *bits, size_t length, uint64_t at)
{
    return at / 8 < length && bits[at / 8] >> (at % 8) & 1;
}

/* Begins again at `low`, with the steps taken that `bits` has; bit 0 is step `low`. */
static int apply_cursor(struct tci_replay *replay, uint64_t low, const unsigned char *bits,
                        size_t length, struct tc_error *reterr)
{
    bool failed;
    replay->low = replay->base = replay->high = low;
    replay->count = 0;
    replay->page = TCI_REPLAY_PAGE;
    for (uint64_t i = 0; i < (uint64_t)length * 8; i++) {
        struct tci_replay_step *step;
        if (!is_bit(bits, length, i))
            continue;
        step = tci_replay_step(replay, low + i, &failed, reterr);
        if (failed)
            return -1;
        if (!step || replay->base != low)
            break; /* of rows that are gone */
        step->taken = true;
        replay->high = low + i + 1;
    }
    replay->stale = false;
    return 0;
}

/* The bits for what is taken from `low` on; NULL without memory. free() it. */
static unsigned char *cursor_bits(const struct tci_replay *replay, size_t *ret_length)
{
    uint64_t span = replay->high > replay->low ? replay->high - replay->low : 0;
    size_t length = (size_t)(span + 7) / 8;
    unsigned char *bits = calloc(length ? length : 1, 1);
    if (!bits)
        return NULL;
    for (uint64_t i = 0; i < span; i++)
        if (replay->steps[replay->low + i - replay->base].taken)
            bits[i / 8] |= (unsigned char)(1U << (i % 8));
    *ret_length = length;
    return bits;
}

int tci_replay_cursor_read(struct tci_replay *replay, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(replay->journal, TCI_SQL_CURSOR, reterr);
    unsigned char *ours, *theirs = NULL;
    size_t our_length = 0, length = 0;
    int64_t low = 1;
    int r;
    if (!statement)
        return -1;
    tci_journal_bind_text(statement, 1, replay->session);
    r = tci_journal_step(replay->journal, statement, reterr);
    if (r < 0)
        return -1;
    if (r > 0) {
        const void *blob = sqlite3_column_blob(statement, 1);
        low = sqlite3_column_int64(statement, 0);
        length = blob ? (size_t)sqlite3_column_bytes(statement, 1) : 0;
        theirs = malloc(length ? length : 1);
        if (theirs && blob)
            memcpy(theirs, blob, length);
    } else
        theirs = calloc(1, 1);
    (void)sqlite3_reset(statement);
    ours = cursor_bits(replay, &our_length);
    if (!ours || !theirs)
        r = tci_error_no_memory(reterr);
    else if (low < 1 || low > TCI_JOURNAL_INTEGER_MAX)
        r = tci_journal_damaged(replay->journal, reterr, "a replay stopped at step %lld",
                                (long long)low);
    else if (replay->stale || (uint64_t)low != replay->low || length != our_length ||
             memcmp(ours, theirs, length) != 0)
        r = apply_cursor(replay, (uint64_t)low, theirs, length, reterr);
    else
        r = 0;
    free(ours);
    free(theirs);
    return r < 0 ? -1 : 0;
}

int tci_replay_cursor_write(struct tci_replay *replay, struct tc_error *reterr)
{
    sqlite3_stmt *statement = tci_journal_statement(replay->journal, TCI_SQL_CURSOR_SET, reterr);
    size_t length = 0;
    unsigned char *bits;
    int r;
    if (!statement)
        return -1;
    bits = cursor_bits(replay, &length);
    if (!bits)
        return tci_error_no_memory(reterr);
    tci_journal_bind_text(statement, 1, replay->session);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)replay->low);
    (void)sqlite3_bind_blob(statement, 3, bits, (int)length, SQLITE_STATIC);
    r = tci_journal_run(replay->journal, statement, reterr);
    (void)sqlite3_clear_bindings(statement);
    free(bits);
    return r;
}
