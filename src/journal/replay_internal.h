/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of replay share: the window on a session's steps, and what is taken of it. */
#ifndef TCI_JOURNAL_REPLAY_INTERNAL_H
#define TCI_JOURNAL_REPLAY_INTERNAL_H

#include "journal/journal_internal.h"

enum { TCI_REPLAY_PAGE = 64, TCI_REPLAY_PAGE_MAX = 8192 };

struct tci_replay_step {
    char request_hash[TCI_SHA256_TEXT_MAX - 1];
    bool taken; /* or no call: then nobody asks for it */
    uint64_t row;
    int64_t started_us, ended_us;
};

struct tci_replay {
    struct tci_journal *journal;
    char *session;
    bool resume;
    bool stale; /* what is taken must be read again, whatever it looks like */

    uint64_t low;  /* the lowest step that is not taken, or one behind the last */
    uint64_t base; /* the step of steps[0]; at most `low` */
    uint64_t high; /* one behind the highest step that is taken */
    struct tci_replay_step *steps;
    size_t count, capacity;
    unsigned page; /* how many steps are read at once next time */
};

/* replay_window.c: the step, or NULL behind the last one (or with an error: *ret_failed). What it
 * gave before is not valid any more. */
struct tci_replay_step *tci_replay_step(struct tci_replay *replay, uint64_t number,
                                        bool *ret_failed, struct tc_error *reterr);
/* A step that should be there is not. Returns -1. */
int tci_replay_damaged(struct tci_replay *replay, uint64_t step, struct tc_error *reterr);

/* replay_cursor.c: what is taken, from the file and to it. Inside a transaction. */
int tci_replay_cursor_read(struct tci_replay *replay, struct tc_error *reterr) tci_must_check;
int tci_replay_cursor_write(struct tci_replay *replay, struct tc_error *reterr) tci_must_check;

#endif
