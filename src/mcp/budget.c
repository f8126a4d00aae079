/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the shares of the budget and the line of those who wait for one: first come, first served, so that
 * small answers cannot keep a large one waiting for ever. */
#include "mcp/budget.h"

#include <stdint.h>
#include "mcp/job.h"

void tci_mcp_budget_init(struct tci_mcp_budget *budget)
{
    *budget = (struct tci_mcp_budget){ .used = 0 };
    (void)pthread_mutex_init(&budget->lock, NULL);
}

void tci_mcp_budget_destroy(struct tci_mcp_budget *budget)
{
    (void)pthread_mutex_destroy(&budget->lock);
}

static bool fits(const struct tci_mcp_budget *budget, size_t bytes)
{
    return budget->used == 0 ||
           (budget->used < TCI_MCP_BUDGET && bytes <= TCI_MCP_BUDGET - budget->used);
}

/* With the lock. */
static void give(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes)
{
    budget->used += bytes;
    job->share = bytes;
}

static void push(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes)
{
    job->share_wanted = bytes;
    job->budget_next = NULL;
    if (budget->last)
        budget->last->budget_next = job;
    else
        budget->first = job;
    budget->last = job;
}

static void remove_waiting(struct tci_mcp_budget *budget, const struct tci_mcp_job *job)
{
    struct tci_mcp_job **at = &budget->first, *before = NULL;
    while (*at != job) {
        before = *at;
        at = &before->budget_next;
    }
    *at = job->budget_next;
    if (budget->last == job)
        budget->last = before;
}

/* With the lock: those at the head of the line get theirs, as long as there is room. */
static void serve(struct tci_mcp_budget *budget)
{
    struct tci_mcp_job *job;
    while ((job = budget->first) && fits(budget, job->share_wanted)) {
        remove_waiting(budget, job);
        give(budget, job, job->share_wanted);
        (void)pthread_mutex_lock(&job->lock);
        job->has_share = true;
        (void)pthread_cond_broadcast(&job->changed);
        (void)pthread_mutex_unlock(&job->lock);
    }
}

bool tci_mcp_budget_take(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes)
{
    (void)pthread_mutex_lock(&budget->lock);
    if (!budget->first && fits(budget, bytes)) {
        give(budget, job, bytes);
        (void)pthread_mutex_unlock(&budget->lock);
        return true;
    }
    push(budget, job, bytes);
    (void)pthread_mutex_unlock(&budget->lock);

    (void)pthread_mutex_lock(&job->lock);
    while (!job->has_share && !atomic_load(&job->cancelled))
        tci_mcp_job_wait(job, UINT64_MAX);
    (void)pthread_mutex_unlock(&job->lock);

    (void)pthread_mutex_lock(&budget->lock);
    if (!job->share) { /* cancelled, and still in the line: the next may have room where it had none */
        remove_waiting(budget, job);
        serve(budget);
    }
    (void)pthread_mutex_unlock(&budget->lock);
    return !atomic_load(&job->cancelled);
}

void tci_mcp_budget_keep(struct tci_mcp_budget *budget, struct tci_mcp_job *job, size_t bytes)
{
    if (!job->share) /* the job's owner sets it, or waits while another does */
        return;
    (void)pthread_mutex_lock(&budget->lock);
    if (bytes < job->share) {
        budget->used -= job->share - bytes;
        job->share = bytes;
        serve(budget);
    }
    (void)pthread_mutex_unlock(&budget->lock);
}
