/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: bytes between a cage's connection and the host's. Half-closes, resets and back-pressure pass
 * through as they are; a byte is read only when there is room for it on the other side. What the cage
 * sends is inspected before it leaves, where the connection has a name. What the world sends waits for
 * nothing: protocols in which the server speaks first work.
 */
#ifndef TCI_GATE_RELAY_H
#define TCI_GATE_RELAY_H

#include "gate/inspect.h"
#include "gate/loop.h"

/* What all connections of one cage share. 0: no limit. Zeroed before the limits are set; outlives all
 * relays that have it. */
struct tci_budget {
    uint64_t bytes_in_max, bytes_out_max; /* in: to the cage */
    uint64_t rate;                        /* bytes a second, both directions together */
    uint64_t bytes_in, bytes_out;         /* so far */
    /* Of the rate; relay_budget.c keeps them. */
    uint64_t allowance, refilled_us;
    struct tci_waiter *first, *last;
};

enum tci_relay_end {
    TCI_RELAY_CLOSED,  /* both directions ended, or one side reset the connection */
    TCI_RELAY_REFUSED, /* by the inspection: tci_inspect_reason() */
    TCI_RELAY_LIMIT,   /* the budget is used up, and more was to come: both sides are reset */
    TCI_RELAY_BROKEN,  /* no memory, or an error that is not the connection's own */
};

struct tci_relay;
/* Once, from tci_loop_step(); both descriptors are closed already, `inspect` is alive during the call,
 * and the relay is freed afterwards. */
typedef void tci_relay_done(void *data, enum tci_relay_end end, uint64_t bytes_in,
                            uint64_t bytes_out);

struct tci_relay_options {
    struct tci_loop *loop;
    struct tci_budget *budget; /* never NULL */
    /* These three are the relay's now, also when it cannot be started. */
    struct tci_inspect *inspect; /* NULL: nothing is inspected */
    int cage, world;             /* connected, non-blocking */
    tci_relay_done *done;
    void *data;
};

/* 0 or a negative errno. */
int tci_relay_start(const struct tci_relay_options *options, struct tci_relay **ret);
/* Bytes that have passed so far. */
void tci_relay_bytes(const struct tci_relay *relay, uint64_t *ret_in, uint64_t *ret_out);
/* Is everything that the cage has sent written to the world? True only after the cage's side has ended
 * (its end was read, or it was reset) and nothing of it is held here any more. The cage's processes are
 * gone when this is asked: it says when the relay may be ended without a loss. */
bool tci_relay_is_drained(const struct tci_relay *relay);
/* Ends both sides, a drained one without a reset; `done` is not called. Harmless for NULL, and from
 * inside of `done`. */
void tci_relay_cancel(struct tci_relay *relay);

#endif
