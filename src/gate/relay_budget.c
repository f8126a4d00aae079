/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how many bytes may pass, now and ever, over all connections of a cage. The rate is a bucket
 * that fills with time, holds a tenth of a second (64 KiB at least) and starts full. Who finds it empty
 * queues up.
 *
 * Invariant: while anybody waits, the first one has its timer set.
 */
#include "gate/relay_internal.h"

#include "base/clock.h"

enum {
    second_us = 1000000,
    refill_us = 1000,
    burst_min = 64 * 1024,
    share_max = 64 * 1024,
};

/* Beyond this nobody is slowed down, and products with microseconds would not fit. */
static const uint64_t rate_max = UINT64_C(1) << 40;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Only whole bytes are added, and only their time is used up, so that slow rates lose nothing by
 * rounding; and not every microsecond, so that fast ones do not either. */
static void refill(struct tci_budget *budget, uint64_t rate)
{
    uint64_t burst = rate / 10 > burst_min ? rate / 10 : burst_min;
    uint64_t now = tci_clock_us(), passed = now - budget->refilled_us, bytes;
    if (!budget->refilled_us || passed > (burst - budget->allowance) * second_us / rate) {
        budget->allowance = burst;
        budget->refilled_us = now;
    } else if (passed >= refill_us) {
        bytes = passed * rate / second_us;
        budget->allowance += bytes;
        budget->refilled_us += (bytes * second_us + rate - 1) / rate;
    }
}

/* A hundredth of a second's bytes at least: who waits does not wake up for every single one. And not
 * the whole bucket to the first who asks. */
static uint64_t rate_room(struct tci_budget *budget, uint64_t rate, uint64_t *ret_wait_us)
{
    uint64_t share = smaller(rate / 100 + 1, share_max);
    refill(budget, rate);
    *ret_wait_us = 1;
    if (budget->allowance >= share)
        return smaller(budget->allowance, rate / 100 > share_max ? rate / 100 : share_max);
    *ret_wait_us = (share - budget->allowance) * second_us / rate + refill_us;
    return 0;
}

static void set_timer(struct tci_waiter *waiter, uint64_t wait_us)
{
    tci_loop_set_timer(waiter->loop, &waiter->timer, tci_clock_us() + wait_us);
}

static void join(struct tci_waiter *waiter)
{
    struct tci_budget *budget = waiter->budget;
    if (waiter->queued)
        return;
    waiter->queued = true;
    waiter->next = NULL;
    if (budget->last)
        budget->last->next = waiter;
    else
        budget->first = waiter;
    budget->last = waiter;
}

void tci_budget_leave(struct tci_waiter *waiter)
{
    struct tci_budget *budget = waiter->budget;
    struct tci_waiter **at = &budget->first, *before = NULL;
    if (!waiter->queued)
        return;
    waiter->queued = false;
    tci_loop_set_timer(waiter->loop, &waiter->timer, 0);
    while (*at && *at != waiter) {
        before = *at;
        at = &before->next;
    }
    if (*at)
        *at = waiter->next;
    if (budget->last == waiter)
        budget->last = before;
    if (!before && budget->first)
        set_timer(budget->first, 1);
}

/* It may have left because one of its directions had its share, while the other one still waits. */
void tci_budget_wait(struct tci_waiter *waiter)
{
    join(waiter);
    if (waiter->budget->first == waiter && !waiter->timer.deadline)
        set_timer(waiter, 1);
}

/* One share a turn, and then all others who wait come first: a connection that has much to send does not
 * keep the rate for itself. */
static uint64_t ask_rate(struct tci_waiter *waiter, bool *ret_paused)
{
    struct tci_budget *budget = waiter->budget;
    uint64_t wait_us, room = rate_room(budget, budget->rate, &wait_us);
    bool is_next = !budget->first || budget->first == waiter;
    if (waiter->served && waiter->left)
        return waiter->left;
    if (room && is_next && !waiter->served) {
        waiter->served = true;
        waiter->left = room;
        tci_budget_leave(waiter);
        return room;
    }
    join(waiter);
    if (budget->first == waiter)
        set_timer(waiter, wait_us);
    *ret_paused = true;
    return 0;
}

uint64_t tci_budget_ask(struct tci_waiter *waiter, bool inward, bool *ret_paused)
{
    const struct tci_budget *budget = waiter->budget;
    uint64_t most = inward ? budget->bytes_in_max : budget->bytes_out_max;
    uint64_t used = inward ? budget->bytes_in : budget->bytes_out;
    uint64_t room = most ? (used < most ? most - used : 0) : UINT64_MAX;
    *ret_paused = false;
    if (room && budget->rate && budget->rate < rate_max)
        room = smaller(room, ask_rate(waiter, ret_paused));
    return room;
}

void tci_budget_charge(struct tci_waiter *waiter, bool inward, uint64_t bytes)
{
    struct tci_budget *budget = waiter->budget;
    if (inward)
        budget->bytes_in += bytes;
    else
        budget->bytes_out += bytes;
    if (budget->rate && budget->rate < rate_max) {
        budget->allowance -= smaller(bytes, budget->allowance);
        waiter->left -= smaller(bytes, waiter->left);
    }
}
