/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a backend for tests of what stands on top of backends. It builds NO cage: commands run on
 * the host. It is part of test programs only; no policy can name it. */
#ifndef TCI_TESTS_BACKEND_DOUBLE_H
#define TCI_TESTS_BACKEND_DOUBLE_H

#include <stdatomic.h>
#include "backend/backend.h"

/* Stands in for the jail; there is no other. */
const struct tc_backend *double_for(enum tci_backend_kind kind);

/* How many there are now, and how many plans were ever made. */
extern atomic_int double_plans, double_plans_made, double_runs;

/* What the last plan was made from. */
extern struct tci_settings double_settings;
extern tci_clauses double_clauses;

/* How often a run was killed in the middle of its step: never, by a caller that keeps the contract. */
extern atomic_int double_misused;

/* What the gate of every run has on record, and how many records it dropped. */
extern const struct tci_gate_record *double_records;
extern size_t double_record_count;
extern uint64_t double_dropped;

/*
 * A program is started with posix_spawn, unless its name begins with "double:", which plays what a
 * kernel might say, without a process:
 *   double:exit N     it exits            double:memory, :cpu, :disk   it is killed for that limit
 *   double:pids N     it exits after a refused fork
 *   double:errno N    it cannot be started
 *   double:broken     the cage breaks     double:fails   step itself fails
 *   double:refused    start fails     double:waits   it goes on until it is killed
 *   double:never      nothing has started when it is killed
 * The first step tells the records.
 * "leak:sh" is a shell whose children are left alone when it ends.
 */

#endif
