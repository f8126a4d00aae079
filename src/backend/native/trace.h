/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding out what a native cage refused, by watching the system calls of its processes. Only
 * for calls that ask for it: a traced command is many times slower.
 *
 * The attack: everything that is read here was written by the cage, and the tracer holds it by the
 * neck. So a tracee is never trusted to answer, to stop or to live on; paths from inside are only
 * text; and what is told about the host is whether a path is there, nothing else (trace_host.c).
 */
#ifndef TCI_BACKEND_NATIVE_TRACE_H
#define TCI_BACKEND_NATIVE_TRACE_H

#include "backend/backend.h"
#include "base/arena.h"

enum { TCI_TRACE_DENIALS_MAX = 64 };

struct tci_trace;

/*
 * Watches a run that was started with `traced`, in a thread of its own, and lets its command go. The
 * plan of the run outlives the trace. -1: nobody watches and the command has not started; the run is
 * still the caller's to destroy.
 *
 * A process that waits for all of its children in other threads (waitpid(-1)) takes messages about
 * the cage away from the thread: such a host's traced calls end by their timeout.
 */
int tci_trace_start(const struct tc_backend *backend, struct tc_run *run, struct tci_trace **ret,
                    struct tc_error *reterr);

/*
 * What was refused, in the order in which it was first tried, each thing once. It waits until the
 * last process of the cage but init is gone: the caller has seen the end, or has killed the tree.
 * At most TCI_TRACE_DENIALS_MAX and then one of kind "more" that says how many there were. All of it
 * belongs to the trace. -1: out of memory; what was found before is returned all the same.
 */
int tci_trace_finish(struct tci_trace *trace, const struct tc_denial **ret, size_t *ret_count,
                     struct tc_error *reterr);

/* Waits in the same way. */
void tci_trace_free(struct tci_trace *trace);

#endif
