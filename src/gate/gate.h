/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the gate of one cage, on the host's side. It serves sockets that were made inside the cage's
 * network namespace (gate/inside.h) and come through a socket pair; it resolves, checks, dials and
 * relays; it keeps the record. Nothing else leads out of that namespace.
 */
#ifndef TCI_GATE_GATE_H
#define TCI_GATE_GATE_H

#include <stddef.h>
#include "base/error.h"
#include "gate/record.h"
#include "policy/model.h"

struct tci_gate;

struct tci_gate_options {
    const struct tci_settings *settings; /* network, network_limits, inspect; outlive the gate */
    /* A record was made or has changed; may be NULL. Called from tci_gate_step(). */
    void (*on_event)(void *data, const struct tci_gate_record *record);
    void *data;
};

/* *ret_inside: the end of the socket pair for whoever furnishes the namespace; the caller's. */
int tci_gate_new(const struct tci_gate_options *options, struct tci_gate **ret, int *ret_inside,
                 struct tc_error *reterr);
/* A gate that was made in advance gets its call: who hears of its records, which count from now on. */
void tci_gate_begin(struct tci_gate *gate,
                    void (*on_event)(void *data, const struct tci_gate_record *record), void *data);
/* Readable when tci_gate_step() has something to do. */
int tci_gate_fd(const struct tci_gate *gate);
/* Never blocks. */
void tci_gate_step(struct tci_gate *gate);
/* After the last process of the cage: nothing new begins, and what it had sent goes out. True when that
 * is done, or takes too long; else again after the next step. */
bool tci_gate_finish(struct tci_gate *gate);
/* Ends what is open; the records stay until tci_gate_free(). */
void tci_gate_close(struct tci_gate *gate);
/* REFUSED, CLOSED and FAILED ones, in the order in which they began; and how many were dropped. */
const struct tci_gate_record *tci_gate_records(const struct tci_gate *gate, size_t *ret_count,
                                               uint64_t *ret_dropped);
void tci_gate_free(struct tci_gate *gate);

#endif
