/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the parts of one gate wait for: descriptors and deadlines, in one epoll that the caller
 * waits for. Used by one thread. A step handles what is ready and never blocks.
 *
 * Invariant: a source or timer that was removed is never called again, also not by the step in which
 * it was removed: its memory may be freed at once. tci_loop_bury() is for memory that functions on the
 * stack still look at.
 */
#ifndef TCI_GATE_LOOP_H
#define TCI_GATE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct tci_loop;
struct tci_source;
struct tci_timer;

typedef void tci_source_ready(struct tci_source *source, uint32_t events);
typedef void tci_timer_due(struct tci_timer *timer);

/* Part of whatever waits; zeroed before its first use. */
struct tci_source {
    tci_source_ready *ready;
    void *data;
    int fd;          /* -1: not in the loop, once it was */
    uint32_t events; /* as registered */
    bool in_loop;    /* loop.c keeps it */
};

struct tci_timer {
    tci_timer_due *due;
    void *data;
    uint64_t deadline; /* tci_clock_us; 0: not set */
    struct tci_timer *next, **link;
};

/* Part of what is buried, so that a burial needs no memory of its own. */
struct tci_grave {
    struct tci_grave *next;
    void *memory;
};

int tci_loop_new(struct tci_loop **ret, struct tc_error *reterr);
void tci_loop_free(struct tci_loop *loop);
/* Readable when tci_loop_step() has something to do. */
int tci_loop_fd(const struct tci_loop *loop);
/* Bounded work; what is left keeps the descriptor readable. Does nothing inside of itself. */
void tci_loop_step(struct tci_loop *loop);

/* EPOLLIN and so on, level-triggered. 0 or a negative errno. The descriptor stays the caller's. */
int tci_loop_add(struct tci_loop *loop, struct tci_source *source, int fd, uint32_t events);
/* Other events; nothing is done when they are the same. */
int tci_loop_change(struct tci_loop *loop, struct tci_source *source, uint32_t events);
/* Before its descriptor is closed. Harmless when it is not in the loop. */
void tci_loop_remove(struct tci_loop *loop, struct tci_source *source);

/* One shot; a timer that is set again moves. `deadline` 0 takes it out. */
void tci_loop_set_timer(struct tci_loop *loop, struct tci_timer *timer, uint64_t deadline);

/* What all users of one kind share in this loop (the relays: their buffers); NULL before it is set.
 * tci_loop_free() calls `end` for it. */
void *tci_loop_shared(const struct tci_loop *loop);
void tci_loop_share(struct tci_loop *loop, void *shared, void (*end)(void *shared));

/* free(memory) after the present step, or at once outside of one. `grave` is a part of it. */
void tci_loop_bury(struct tci_loop *loop, struct tci_grave *grave, void *memory);

#endif
