/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how many bytes of answers may be in the making at one time, over the whole server.
 *
 * The attack: many calls at once whose output grows when it is written as JSON (a control character
 * becomes six bytes), so that the answers of one client need all memory of the host. Workers wait in line
 * for their share. It is given back when the answer was handed to the transport, which has a bound of its
 * own. Nobody who has a share waits for anything but the loop, and the loop never waits for one: so every
 * share comes back, and the line moves. One who asks for more than all gets it when nobody else has any.
 */
#ifndef TCI_MCP_BUDGET_H
#define TCI_MCP_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { TCI_MCP_BUDGET = 256 * 1024 * 1024 };

struct tci_mcp_job;

struct tci_mcp_budget {
    pthread_mutex_t lock; /* taken before that of a job */
    size_t used;
    struct tci_mcp_job *first, *last; /* that wait, by `budget_next` */
};

void tci_mcp_budget_init(struct tci_mcp_budget *budget);
void tci_mcp_budget_destroy(struct tci_mcp_budget *budget);

/* In the worker: waits for a share of `bytes`. False: the job was cancelled meanwhile. */
bool tci_mcp_budget_take(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes);
/* In any thread: it needs no more than `bytes` (0: its share is over). */
void tci_mcp_budget_keep(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes);

#endif
