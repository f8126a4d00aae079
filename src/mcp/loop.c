/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the loop's thread, the line of tasks for it, and the workers.
 * Invariants: only the loop's thread calls libevent; `lock` guards what is below it in the struct
 * and is never held while a task runs. Workers block every signal: one that is meant for the loop
 * would otherwise interrupt a call, and nobody would end the server.
 *
 * Urgent tasks have a worker more than all the others together, and go before them. The attack: a
 * client whose calls fill all workers, and so keep a policy in force that its owner has replaced.
 */
#include "mcp/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
    /* Only what is touched costs memory. What a tool prints may be JSON that is 2,000 levels
     * deep, and its reader goes down as deep: a smaller stack would let a tool end the server. */
    stack_size = 1024 * 1024,
    idle_seconds = 10,
    trim_seconds = 1,
    used_bytes = 256 * 1024, /* of a message that is large */
    signals_max = 3,
};

struct tasks {
    struct tci_mcp_post *first, *last;
};

/* A worker that waits. The last one that came is the first to be woken: its stack and its memory are
 * still in the processor's caches, and those that nobody needs any more end by themselves. */
struct idle {
    struct idle *next;
    pthread_cond_t woken;
    bool is_woken;
};

struct tci_mcp_loop {
    struct event_base *base;
    struct event *wake, *signals[signals_max];
    struct event *trim; /* NULL: not made yet */
    int wake_fd;
    bool handle_signals;
    struct sigaction old_pipe;
    unsigned workers_max;

    pthread_mutex_t lock;
    pthread_cond_t less; /* a worker has nothing to do, or is gone; something was posted */
    struct tasks posted, urgent, work;
    struct idle *idle; /* those who wait */
    unsigned workers, idle_count;
    unsigned busy; /* with tasks that are not urgent: workers_max at most */
    bool ending;
};

static void push(struct tasks *tasks, struct tci_mcp_post *post)
{
    post->next = NULL;
    if (tasks->last)
        tasks->last->next = post;
    else
        tasks->first = post;
    tasks->last = post;
}

static struct tci_mcp_post *pop(struct tasks *tasks)
{
    struct tci_mcp_post *post = tasks->first;
    if (post) {
        tasks->first = post->next;
        if (!tasks->first)
            tasks->last = NULL;
    }
    return post;
}

/* ---- tasks of the loop --------------------------------------------------------------------- */

/* Who posts is the loop's own thread, or a worker whose task is not over: so the loop is still
 * there behind the lock, and whoever is woken does not run into it. */
void tci_mcp_loop_post(struct tci_mcp_loop *loop, struct tci_mcp_post *post)
{
    const uint64_t one = 1;
    bool first;
    pthread_mutex_lock(&loop->lock);
    first = !loop->posted.first;
    push(&loop->posted, post);
    pthread_mutex_unlock(&loop->lock);
    if (!first)
        return;
    /* Cannot fail: the counter is small. */
    (void)!write(loop->wake_fd, &one, sizeof one);
    pthread_cond_signal(&loop->less);
}

/* `post` is its owner's again as soon as the task has begun: it is not touched after that. */
static void run_posted(struct tci_mcp_loop *loop)
{
    struct tasks tasks;
    pthread_mutex_lock(&loop->lock);
    tasks = loop->posted;
    loop->posted = (struct tasks){ 0 };
    pthread_mutex_unlock(&loop->lock);
    for (struct tci_mcp_post *post = pop(&tasks); post; post = pop(&tasks))
        post->task(post->context);
}

static void woken(evutil_socket_t fd, short what, void *context)
{
    uint64_t count;
    (void)what;
    (void)!read(fd, &count, sizeof count);
    run_posted(context);
}

/* ---- workers ------------------------------------------------------------------------------- */

static void make_condition(pthread_cond_t *ret)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(ret, &clock);
    pthread_condattr_destroy(&clock);
}

/* With the lock. Takes a worker out of the line of those who wait. */
static void remove_idle(struct tci_mcp_loop *loop, struct idle *idle)
{
    struct idle **at = &loop->idle;
    while (*at != idle)
        at = &(*at)->next;
    *at = idle->next;
    loop->idle_count--;
}

static void wake(struct tci_mcp_loop *loop)
{
    struct idle *idle = loop->idle;
    remove_idle(loop, idle);
    idle->is_woken = true;
    pthread_cond_signal(&idle->woken);
}

/* With the lock. False: nothing came for a while, or it is over. */
static bool wait_for_work(struct tci_mcp_loop *loop, struct idle *self)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += idle_seconds;
    self->is_woken = false;
    self->next = loop->idle;
    loop->idle = self;
    loop->idle_count++;
    pthread_cond_signal(&loop->less);
    while (!self->is_woken && !loop->ending)
        if (pthread_cond_timedwait(&self->woken, &loop->lock, &until) == ETIMEDOUT)
            break;
    if (self->is_woken)
        return true;
    remove_idle(loop, self);
    return false;
}

static bool has_work(const struct tci_mcp_loop *loop)
{
    return loop->urgent.first || (loop->work.first && loop->busy < loop->workers_max);
}

/* With the lock, which is given back while the task runs. */
static void work_once(struct tci_mcp_loop *loop)
{
    struct tci_mcp_post *post = pop(&loop->urgent);
    bool is_urgent = post != NULL;
    if (!post && loop->busy < loop->workers_max)
        post = pop(&loop->work);
    if (!post) /* somebody who had just finished was faster */
        return;
    if (!is_urgent)
        loop->busy++;
    pthread_mutex_unlock(&loop->lock);
    post->task(post->context);
    pthread_mutex_lock(&loop->lock);
    if (!is_urgent)
        loop->busy--;
}

static void *worker(void *context)
{
    struct tci_mcp_loop *loop = context;
    struct idle self = { .next = NULL };
    make_condition(&self.woken);
    pthread_mutex_lock(&loop->lock);
    while (has_work(loop) || wait_for_work(loop, &self))
        work_once(loop);
    loop->workers--;
    pthread_cond_signal(&loop->less);
    pthread_mutex_unlock(&loop->lock);
    pthread_cond_destroy(&self.woken);
    return NULL;
}

/* An errno, or 0. */
static int start_thread(struct tci_mcp_loop *loop)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    int r = pthread_attr_init(&attributes);
    if (r)
        return r;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
#ifndef SANITIZED
    (void)pthread_attr_setstacksize(&attributes, stack_size);
#endif
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, &attributes, worker, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

static int add_work(struct tci_mcp_loop *loop, struct tasks *tasks, unsigned workers_max,
                    struct tci_mcp_post *work, struct tc_error *reterr)
{
    int r = 0;
    pthread_mutex_lock(&loop->lock);
    if (!loop->idle && loop->workers < workers_max) {
        r = start_thread(loop);
        if (!r)
            loop->workers++;
    }
    if (r && !loop->workers) {
        pthread_mutex_unlock(&loop->lock);
        return tci_error_errno(reterr, r, "cannot start a thread");
    }
    push(tasks, work);
    if (loop->idle)
        wake(loop);
    pthread_mutex_unlock(&loop->lock);
    return 0;
}

int tci_mcp_loop_work(struct tci_mcp_loop *loop, struct tci_mcp_post *work, struct tc_error *reterr)
{
    return add_work(loop, &loop->work, loop->workers_max, work, reterr);
}

int tci_mcp_loop_work_first(struct tci_mcp_loop *loop, struct tci_mcp_post *work,
                            struct tc_error *reterr)
{
    return add_work(loop, &loop->urgent, loop->workers_max + 1, work, reterr);
}

void tci_mcp_loop_drain(struct tci_mcp_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    while (loop->posted.first || loop->urgent.first || loop->work.first ||
           loop->idle_count < loop->workers) {
        if (loop->posted.first) {
            pthread_mutex_unlock(&loop->lock);
            run_posted(loop);
            pthread_mutex_lock(&loop->lock);
        } else {
            pthread_cond_wait(&loop->less, &loop->lock);
        }
    }
    pthread_mutex_unlock(&loop->lock);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void trim(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what, (void)context;
    (void)malloc_trim(0);
}

/* A message may take fifty times its size while it is read, and the allocator keeps that for ever. */
void tci_mcp_loop_used(struct tci_mcp_loop *loop, size_t bytes)
{
    static const struct timeval later = { .tv_sec = trim_seconds };
    if (bytes < used_bytes)
        return;
    if (!loop->trim)
        loop->trim = evtimer_new(loop->base, trim, NULL);
    if (loop->trim && !evtimer_pending(loop->trim, NULL))
        (void)evtimer_add(loop->trim, &later);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void signalled(evutil_socket_t signal, short what, void *context)
{
    (void)signal, (void)what;
    tci_mcp_loop_stop(context);
}

static void ignored(int signal)
{
    (void)signal;
}

/* A reader that went away is an error of the write, not our end. With a handler, not SIG_IGN:
 * programs in cages would inherit that, and `yes | head` would not end. */
static int take_signals(struct tci_mcp_loop *loop)
{
    static const int which[signals_max] = { SIGTERM, SIGINT, SIGHUP };
    struct sigaction pipe = { .sa_handler = ignored, .sa_flags = SA_RESTART };
    for (int i = 0; i < signals_max; i++) {
        loop->signals[i] = evsignal_new(loop->base, which[i], signalled, loop);
        if (!loop->signals[i] || event_add(loop->signals[i], NULL) < 0)
            return -1;
    }
    if (sigaction(SIGPIPE, &pipe, &loop->old_pipe) < 0)
        return -1;
    loop->handle_signals = true;
    return 0;
}

static int make_base(struct tci_mcp_loop *loop)
{
    struct event_config *config = event_config_new();
    if (!config)
        return -1;
    /* A loop that one thread uses needs no locks of libevent's. */
    (void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    return loop->base ? 0 : -1;
}

int tci_mcp_loop_new(unsigned workers, bool handle_signals, struct tci_mcp_loop **ret,
                     struct tc_error *reterr)
{
    struct tci_mcp_loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return tci_error_no_memory(reterr);
    loop->workers_max = workers ? workers : 1;
    pthread_mutex_init(&loop->lock, NULL);
    make_condition(&loop->less);
    errno = 0;
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd >= 0 && make_base(loop) == 0)
        loop->wake = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, woken, loop);
    if (!loop->wake || event_add(loop->wake, NULL) < 0 ||
        (handle_signals && take_signals(loop) < 0)) {
        tci_error_errno(reterr, errno ? errno : ENOMEM, "cannot make an event loop");
        tci_mcp_loop_free(loop);
        return -1;
    }
    *ret = loop;
    return 0;
}

void tci_mcp_loop_free(struct tci_mcp_loop *loop)
{
    if (!loop)
        return;
    tci_mcp_loop_drain(loop);
    pthread_mutex_lock(&loop->lock);
    loop->ending = true;
    while (loop->idle)
        wake(loop);
    while (loop->workers)
        pthread_cond_wait(&loop->less, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
    if (loop->handle_signals)
        (void)sigaction(SIGPIPE, &loop->old_pipe, NULL);
    for (int i = 0; i < signals_max; i++)
        if (loop->signals[i])
            event_free(loop->signals[i]);
    if (loop->wake)
        event_free(loop->wake);
    if (loop->trim)
        event_free(loop->trim);
    if (loop->base)
        event_base_free(loop->base);
    (void)tci_close(loop->wake_fd);
    pthread_cond_destroy(&loop->less);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

struct event_base *tci_mcp_loop_base(struct tci_mcp_loop *loop)
{
    return loop->base;
}

int tci_mcp_loop_run(struct tci_mcp_loop *loop, struct tc_error *reterr)
{
    if (event_base_dispatch(loop->base) < 0)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "the event loop broke");
    return 0;
}

static void time_is_up(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    tci_mcp_loop_stop(context);
}

void tci_mcp_loop_run_for(struct tci_mcp_loop *loop, unsigned milliseconds)
{
    const struct timeval time = { .tv_sec = milliseconds / 1000,
                                  .tv_usec = milliseconds % 1000 * 1000L };
    struct event *end = evtimer_new(loop->base, time_is_up, loop);
    if (end && event_add(end, &time) == 0)
        (void)event_base_dispatch(loop->base);
    if (end)
        event_free(end);
}

void tci_mcp_loop_stop(struct tci_mcp_loop *loop)
{
    (void)event_base_loopbreak(loop->base);
}
