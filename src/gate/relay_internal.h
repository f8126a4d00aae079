/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the relay know of each other. */
#ifndef TCI_GATE_RELAY_INTERNAL_H
#define TCI_GATE_RELAY_INTERNAL_H

#include <sys/types.h>
#include "gate/relay.h"

enum {
    TCI_FLOW_CHUNK = 64 * 1024,  /* read at one time into memory */
    TCI_PIPE_SIZE = 1024 * 1024, /* read at one time into a pipe */
    TCI_PIPES_MAX = 16, /* of a gate: a user's programs share what memory there is for pipes */
};

/* ---- buffers and pipes that all relays of a loop take turns with (relay_pool.c) -------------------- */

struct tci_relay_pipe {
    int out, in; /* what is written to `in` comes out of `out` */
};

struct tci_relay_pool {
    uint8_t scratch[TCI_INSPECT_HOLD_MAX];
    struct tci_relay_pipe pipes[2]; /* that nobody uses */
    size_t pipe_count, pipes_made;
};

/* The pool of the loop; NULL: no memory. */
struct tci_relay_pool *tci_relay_pool(struct tci_loop *loop);
/* False: there is none to be had. */
bool tci_pool_take_pipe(struct tci_relay_pool *pool, struct tci_relay_pipe *ret);
/* `is_empty`: others may have it. */
void tci_pool_give_pipe(struct tci_relay_pool *pool, struct tci_relay_pipe *pipe, bool is_empty);

/* From a socket into a pipe, and back; never blocks, and never raises SIGPIPE. Like read(). */
ssize_t tci_splice_in(int socket, int pipe, size_t length);
ssize_t tci_splice_out(int pipe, int socket, size_t length);

/* ---- what may pass (relay_budget.c) ---------------------------------------------------------------- */

/* A relay that may have to wait for the rate. The first in the queue has its timer set; the others
 * come after it. */
struct tci_waiter {
    struct tci_loop *loop;
    struct tci_budget *budget;
    struct tci_timer timer;
    struct tci_waiter *next;
    bool queued;
    bool served;   /* has got a share in this turn; whoever starts a turn takes it back */
    uint64_t left; /* of that share */
};

/* Bytes that may pass now. 0: not now, the timer will say when (*ret_paused), or never. */
uint64_t tci_budget_ask(struct tci_waiter *waiter, bool inward, bool *ret_paused);
void tci_budget_charge(struct tci_waiter *waiter, bool inward, uint64_t bytes);
/* Stays in the queue, or gets into it; or waits no more. One of them ends each turn. */
void tci_budget_wait(struct tci_waiter *waiter);
void tci_budget_leave(struct tci_waiter *waiter);

/* ---- one direction (relay_flow.c) ------------------------------------------------------------------ */

/*
 * Its bytes: [at, end) of `bytes` wait. Of those, the first `cleared` were let through by the
 * inspection, and the first `paid` of them by the budget. What was not inspected is cleared and paid
 * when it is read. What is in the pipe came before all of that, and was paid.
 */
struct tci_flow {
    struct tci_relay_pool *pool;
    struct tci_waiter *waiter;
    struct tci_inspect *inspect; /* NULL: not, or no more */
    int from, to;
    bool inward;   /* to the cage */
    bool ended;    /* `from` has no more */
    bool shut;     /* and `to` knows */
    bool cut;      /* `from` is dead: what it has sent is delivered, but its end is not announced */
    bool blocked;  /* `to` is full */
    bool paused;   /* by the rate */
    bool fresh;    /* bytes have come that the inspection has not seen */
    bool bulk;     /* much comes at once */
    bool borrowed; /* `bytes` is the pool's */
    bool has_pipe;
    uint8_t *bytes; /* NULL: nothing waits */
    size_t at, end, capacity, cleared, paid;
    struct tci_relay_pipe pipe;
    size_t piped;
    uint64_t passed;
};

enum {
    TCI_FLOW_GOES_ON = -1,
    TCI_FLOW_NO_READER = -2, /* `to` is dead */
    /* else an enum tci_relay_end */
};

/* Moves what can be moved now, within a bound. */
int tci_flow_pump(struct tci_flow *flow);
void tci_flow_release(struct tci_flow *flow);

#endif
