/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the epoll and the clock of a gate. Timers are a sorted list: a gate has some hundreds of them
 * at most, and nearly all are set later than those before them.
 *
 * Invariant: while a step runs, `batch` holds the events that are still to be handled; a source that
 * leaves the loop leaves the batch, too.
 */
#include "gate/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

enum { batch_max = 64 };

struct tci_loop {
    int epoll, clock;
    uint64_t armed; /* when the clock rings; 0: not at all */
    struct tci_source clock_source;
    struct tci_timer *timers;
    struct tci_grave *graves;
    void *shared;
    void (*end_shared)(void *shared);
    bool stepping;
    int batch_at, batch_count;
    struct epoll_event batch[batch_max];
};

/* ---- sources ------------------------------------------------------------------------------------- */

int tci_loop_add(struct tci_loop *loop, struct tci_source *source, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = source };
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        return -errno;
    source->fd = fd;
    source->events = events;
    source->in_loop = true;
    return 0;
}

int tci_loop_change(struct tci_loop *loop, struct tci_source *source, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = source };
    if (source->events == events)
        return 0;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &e) < 0)
        return -errno;
    source->events = events;
    return 0;
}

/* Closing the descriptor would not do: a child of another thread may have a copy until its execve, and
 * the kernel would report events for a source that is gone. */
void tci_loop_remove(struct tci_loop *loop, struct tci_source *source)
{
    if (!source->in_loop)
        return;
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    for (int i = loop->batch_at; i < loop->batch_count; i++)
        if (loop->batch[i].data.ptr == source)
            loop->batch[i].data.ptr = NULL;
    source->in_loop = false;
    source->fd = -1;
    source->events = 0;
}

/* ---- timers -------------------------------------------------------------------------------------- */

static void take_out(struct tci_timer *timer)
{
    if (!timer->link)
        return;
    *timer->link = timer->next;
    if (timer->next)
        timer->next->link = timer->link;
    timer->next = NULL;
    timer->link = NULL;
    timer->deadline = 0;
}

/* Only an earlier alarm is worth a system call: one that rings too early does no harm. */
static void arm_clock(struct tci_loop *loop)
{
    uint64_t first = loop->timers ? loop->timers->deadline : 0;
    struct itimerspec at = { 0 };
    if (!first || (loop->armed && loop->armed <= first))
        return;
    at.it_value.tv_sec = (time_t)(first / 1000000);
    at.it_value.tv_nsec = (long)(first % 1000000) * 1000;
    /* Cannot fail: the descriptor is a clock, and the time is one. */
    if (timerfd_settime(loop->clock, TFD_TIMER_ABSTIME, &at, NULL) == 0)
        loop->armed = first;
}

void tci_loop_set_timer(struct tci_loop *loop, struct tci_timer *timer, uint64_t deadline)
{
    struct tci_timer **at = &loop->timers;
    take_out(timer);
    if (!deadline)
        return;
    while (*at && (*at)->deadline <= deadline)
        at = &(*at)->next;
    timer->deadline = deadline;
    timer->link = at;
    timer->next = *at;
    if (timer->next)
        timer->next->link = &timer->next;
    *at = timer;
    if (!loop->stepping)
        arm_clock(loop);
}

static void clock_ready(struct tci_source *source, uint32_t events)
{
    struct tci_loop *loop = source->data;
    uint64_t rings;
    (void)events;
    if (read(loop->clock, &rings, sizeof rings) == (ssize_t)sizeof rings)
        loop->armed = 0;
}

/* Who sets itself again for a moment that has passed already waits for the next step at the latest. */
static void call_timers(struct tci_loop *loop)
{
    uint64_t now = loop->timers ? tci_clock_us() : 0;
    for (int i = 0; i < batch_max && loop->timers && loop->timers->deadline <= now; i++) {
        struct tci_timer *timer = loop->timers;
        take_out(timer);
        timer->due(timer);
    }
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static void call_sources(struct tci_loop *loop)
{
    int n = epoll_wait(loop->epoll, loop->batch, batch_max, 0);
    loop->batch_count = n > 0 ? n : 0;
    for (loop->batch_at = 0; loop->batch_at < loop->batch_count;) {
        const struct epoll_event *e = &loop->batch[loop->batch_at++];
        struct tci_source *source = e->data.ptr;
        if (source)
            source->ready(source, e->events);
    }
    loop->batch_at = loop->batch_count = 0;
}

static void free_buried(struct tci_loop *loop)
{
    struct tci_grave *grave;
    while ((grave = loop->graves) != NULL) {
        loop->graves = grave->next;
        free(grave->memory);
    }
}

void tci_loop_step(struct tci_loop *loop)
{
    if (loop->stepping)
        return;
    loop->stepping = true;
    call_sources(loop);
    call_timers(loop);
    loop->stepping = false;
    free_buried(loop);
    arm_clock(loop);
}

void tci_loop_bury(struct tci_loop *loop, struct tci_grave *grave, void *memory)
{
    grave->memory = memory;
    grave->next = loop->graves;
    loop->graves = grave;
    if (!loop->stepping)
        free_buried(loop);
}

void *tci_loop_shared(const struct tci_loop *loop)
{
    return loop->shared;
}

void tci_loop_share(struct tci_loop *loop, void *shared, void (*end)(void *shared))
{
    loop->shared = shared;
    loop->end_shared = end;
}

int tci_loop_fd(const struct tci_loop *loop)
{
    return loop->epoll;
}

int tci_loop_new(struct tci_loop **ret, struct tc_error *reterr)
{
    struct tci_loop *loop = calloc(1, sizeof *loop);
    int r = 0;
    if (!loop)
        return tci_error_no_memory(reterr);
    loop->clock_source.ready = clock_ready;
    loop->clock_source.data = loop;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->epoll < 0 || loop->clock < 0)
        r = tci_error_errno(reterr, errno, "making the gate's event loop");
    else if ((r = tci_loop_add(loop, &loop->clock_source, loop->clock, EPOLLIN)) < 0)
        r = tci_error_errno(reterr, -r, "making the gate's event loop");
    if (r < 0) {
        tci_loop_free(loop);
        return -1;
    }
    *ret = loop;
    return 0;
}

void tci_loop_free(struct tci_loop *loop)
{
    if (!loop)
        return;
    free_buried(loop);
    if (loop->shared)
        loop->end_shared(loop->shared);
    tci_loop_remove(loop, &loop->clock_source);
    (void)tci_close(loop->clock);
    (void)tci_close(loop->epoll);
    free(loop);
}
