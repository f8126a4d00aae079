/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the one thread in which everything of a server happens, and the workers beside it, in which
 * calls wait. A worker touches nothing of the server: it gets its job, and posts what came of it.
 */
#ifndef TCI_MCP_LOOP_H
#define TCI_MCP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

struct event_base;
struct tci_mcp_loop;

typedef void tci_mcp_task(void *context);

/* `workers`: how many tasks may run beside the loop at one time; threads are made when they are
 * needed. Signals TERM, INT and HUP end the loop when `handle_signals`. */
int tci_mcp_loop_new(unsigned workers, bool handle_signals, struct tci_mcp_loop **ret,
                     struct tc_error *reterr) tci_must_check;
/* Waits for the workers, then runs what they posted. */
void tci_mcp_loop_free(struct tci_mcp_loop *loop);
struct event_base *tci_mcp_loop_base(struct tci_mcp_loop *loop);

/* Until tci_mcp_loop_stop. -1: the loop broke. */
int tci_mcp_loop_run(struct tci_mcp_loop *loop, struct tc_error *reterr) tci_must_check;
/* The same, but no longer than this. */
void tci_mcp_loop_run_for(struct tci_mcp_loop *loop, unsigned milliseconds);
void tci_mcp_loop_stop(struct tci_mcp_loop *loop); /* from the loop's thread, or by a signal */

/* Runs the task in the loop's thread, soon; from that thread or from a task of a worker. Order
 * is kept. Never fails: the caller owns `post`, which must stay until the task has begun. */
struct tci_mcp_post {
    tci_mcp_task *task;
    void *context;
    struct tci_mcp_post *next;
};
void tci_mcp_loop_post(struct tci_mcp_loop *loop, struct tci_mcp_post *post);

/* Runs the task in a worker; when all are busy it waits in line. From the loop's thread. `work`
 * must stay until the task has begun. -1: no thread could be made, and none is there. */
int tci_mcp_loop_work(struct tci_mcp_loop *loop, struct tci_mcp_post *work,
                      struct tc_error *reterr) tci_must_check;

/* The same before all of these, and even when all workers are busy: for what must not wait until
 * clients let it, and is soon over. Nothing that a client can ask for. */
int tci_mcp_loop_work_first(struct tci_mcp_loop *loop, struct tci_mcp_post *work,
                            struct tc_error *reterr) tci_must_check;

/* A message of so many bytes was read, and is forgotten: after a large one, memory that is free again goes back to
 * the system, once a second at most. From the loop's thread. */
void tci_mcp_loop_used(struct tci_mcp_loop *loop, size_t bytes);

/* Waits until no worker has anything to do, and runs what they post, and what those post. From
 * the loop's thread, when whatever could take long has been told to end. */
void tci_mcp_loop_drain(struct tci_mcp_loop *loop);

#endif
