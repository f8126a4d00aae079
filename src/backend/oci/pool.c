/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: containers that are ready before they are needed. A thread of the plan keeps spec.warm of them, from
 * the first call on; each has said hello, has run nothing, and is used once. One that ends while it waits is
 * replaced. After a failure the thread rests, longer and longer: an engine that is gone is not asked all the
 * time, and calls go on without the pool.
 *
 * Invariants: `coming` and `dead` are the thread's alone; `ready` is under the lock. A cage is in one list.
 */
#include "backend/oci/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

enum {
    warm_max = 64,
    coming_max = 2, /* at a time: calls need the processors as well */
    rest_first_us = 1000000,
    rest_last_us = 30000000,
    hello_us = 60000000, /* who has not said hello by then is given up */
};

struct tci_oci_pool {
    struct tci_oci_plan *plan;
    size_t wanted;
    pthread_mutex_t lock;
    pthread_t thread;
    int wake; /* eventfd */
    bool has_thread, closing;
    struct tci_oci_cage *ready;
    size_t ready_count;
    /* The thread's own. */
    struct tci_oci_cage *coming[coming_max];
    uint64_t began[coming_max];
    uint64_t rest_us, rest_until;
};

/* Is it still a mount? What cannot be looked at (another user's directory) counts as one: the plan looks at
 * it, too. */
static bool is_mounted(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    struct statx found = { 0 };
    tc_cleanup(tci_closep) int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &found) < 0 ||
        !(found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return true;
    return found.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* gVisor hands over no root: the stage has its tree once more (stage_view.c), and what uncovers a file here
 * does so everywhere. */
static bool is_covered(const struct tci_oci_cage *cage, const char *path)
{
    const struct tci_oci_driver *driver = cage->plan->driver;
    const char *name = strrchr(path, '/');
    char directory[PATH_MAX];
    tc_cleanup(tci_closep) int fd = -1;
    if (cage->root >= 0)
        return is_mounted(cage->root, path);
    if (!driver->open_directory || !name || (size_t)(name - path) >= sizeof directory)
        return true;
    (void)snprintf(directory, sizeof directory, "%.*s/", (int)(name - path), path);
    if (name != path)
        directory[name - path] = '\0';
    fd = driver->open_directory(cage, directory, NULL);
    return fd < 0 || is_mounted(fd, name + 1);
}

/*
 * The attack: a hidden file of a granted directory is replaced while the container waits. With the old file
 * its cover goes, and the next call reads the new one. The plan looks at the host before each call
 * (tci_oci_is_stale); this looks at the container itself, where a file that went and came back is seen.
 */
static bool has_lost_cover(const struct tci_oci_cage *cage)
{
    const struct tci_oci_plan *plan = cage->plan;
    for (size_t i = 0; i < plan->mount_count; i++)
        if (plan->mounts[i].over && !is_covered(cage, plan->mounts[i].cage))
            return true;
    return false;
}

/* It is of no use any more. */
static bool has_ended(const struct tci_oci_cage *cage)
{
    struct pollfd p[] = { { .fd = cage->control, .events = POLLIN },
                          { .fd = cage->pidfd, .events = POLLIN } };
    /* Nobody says anything before the call. */
    return poll(p, tci_array_size(p), 0) != 0 || has_lost_cover(cage);
}

static void wake(const struct tci_oci_pool *pool)
{
    const uint64_t one = 1;
    (void)!write(pool->wake, &one, sizeof one);
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void failed(struct tci_oci_pool *pool)
{
    pool->rest_us = !pool->rest_us                     ? rest_first_us
                    : pool->rest_us > rest_last_us / 2 ? rest_last_us
                                                       : 2 * pool->rest_us;
    pool->rest_until = tci_clock_us() + pool->rest_us;
}

/* Those that have ended while they waited. */
static void replace_ended(struct tci_oci_pool *pool)
{
    struct tci_oci_cage *gone = NULL, *cage, **at;
    (void)pthread_mutex_lock(&pool->lock);
    for (at = &pool->ready; (cage = *at) != NULL;) {
        if (!has_ended(cage)) {
            at = &cage->next;
            continue;
        }
        *at = cage->next;
        pool->ready_count--;
        cage->next = gone;
        gone = cage;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (gone)
        failed(pool);
    while ((cage = gone) != NULL) {
        gone = cage->next;
        tci_oci_cage_free(cage);
    }
}

static void step_coming(struct tci_oci_pool *pool)
{
    for (size_t i = 0; i < coming_max; i++) {
        struct tci_oci_cage *cage = pool->coming[i];
        if (!cage || (!tci_oci_cage_step(cage) && tci_clock_us() - pool->began[i] < hello_us))
            continue;
        pool->coming[i] = NULL;
        if (cage->failed || !cage->hello) {
            failed(pool);
            tci_oci_cage_free(cage);
            continue;
        }
        pool->rest_us = 0;
        (void)pthread_mutex_lock(&pool->lock);
        cage->next = pool->ready;
        pool->ready = cage;
        pool->ready_count++;
        (void)pthread_mutex_unlock(&pool->lock);
    }
}

static size_t count_coming(const struct tci_oci_pool *pool)
{
    size_t count = 0;
    for (size_t i = 0; i < coming_max; i++)
        count += pool->coming[i] != NULL;
    return count;
}

/* True when some are missing, and it is too early to try again. */
static bool refill(struct tci_oci_pool *pool)
{
    size_t missing, has;
    (void)pthread_mutex_lock(&pool->lock);
    has = pool->ready_count + count_coming(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    missing = has < pool->wanted ? pool->wanted - has : 0;
    for (size_t i = 0; i < coming_max && missing; i++) {
        if (pool->coming[i])
            continue;
        if (tci_clock_us() < pool->rest_until)
            return true;
        if (!tci_oci_count_cage(pool->plan, false))
            return false; /* somebody wakes us when there is */
        if (tci_oci_cage_new(pool->plan, &pool->coming[i], NULL) < 0) {
            pool->coming[i] = NULL;
            failed(pool);
            return true;
        }
        pool->began[i] = tci_clock_us();
        missing--;
    }
    return false;
}

static void wait_for_something(struct tci_oci_pool *pool, bool rests)
{
    struct pollfd p[1 + 2 * coming_max + 2 * warm_max] = { { .fd = pool->wake, .events = POLLIN } };
    nfds_t count = 1;
    uint64_t now = tci_clock_us(), ignored;
    int timeout = -1;
    if (rests)
        timeout = pool->rest_until > now ? (int)((pool->rest_until - now) / 1000) + 1 : 0;
    for (size_t i = 0; i < coming_max; i++) {
        if (!pool->coming[i])
            continue;
        p[count++] = (struct pollfd){ .fd = pool->coming[i]->control, .events = POLLIN };
        p[count++] = (struct pollfd){ .fd = pool->coming[i]->watch, .events = POLLIN };
        timeout = timeout < 0 || timeout > 1000 ? 1000 : timeout;
    }
    /* Somebody may take one of these meanwhile, and close what we look at: then we look once too often. */
    (void)pthread_mutex_lock(&pool->lock);
    for (const struct tci_oci_cage *c = pool->ready; c && count + 1 < tci_array_size(p);
         c = c->next) {
        p[count++] = (struct pollfd){ .fd = c->control, .events = POLLIN };
        p[count++] = (struct pollfd){ .fd = c->pidfd, .events = POLLIN };
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (poll(p, count, timeout) > 0 && p[0].revents)
        (void)!read(pool->wake, &ignored, sizeof ignored);
}

static bool is_closing(struct tci_oci_pool *pool)
{
    bool closing;
    (void)pthread_mutex_lock(&pool->lock);
    closing = pool->closing;
    (void)pthread_mutex_unlock(&pool->lock);
    return closing;
}

static void *work(void *argument)
{
    struct tci_oci_pool *pool = argument;
    while (!is_closing(pool)) {
        replace_ended(pool);
        step_coming(pool);
        wait_for_something(pool, refill(pool));
    }
    return NULL;
}

/* ---- for others ----------------------------------------------------------------------------------- */

int tci_oci_pool_open(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_oci_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return tci_error_no_memory(reterr);
    pool->plan = plan;
    pool->wanted = plan->spec.warm < warm_max ? (size_t)plan->spec.warm : warm_max;
    pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->wake < 0) {
        free(pool);
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "no event for the pool of containers");
    }
    (void)pthread_mutex_init(&pool->lock, NULL);
    plan->pool = pool;
    return 0;
}

struct tci_oci_cage *tci_oci_pool_take(struct tci_oci_pool *pool)
{
    struct tci_oci_cage *cage, **at;
    (void)pthread_mutex_lock(&pool->lock);
    if (!pool->has_thread)
        pool->has_thread = tci_oci_start_thread(&pool->thread, work, pool) == 0;
    /* The thread frees those that have ended. */
    for (at = &pool->ready; (cage = *at) != NULL && has_ended(cage); at = &cage->next)
        ;
    if (cage) {
        *at = cage->next;
        cage->next = NULL;
        pool->ready_count--;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    wake(pool);
    return cage;
}

void tci_oci_pool_wake(struct tci_oci_pool *pool)
{
    wake(pool);
}

void tci_oci_pool_close(struct tci_oci_pool *pool)
{
    struct tci_oci_cage *cage;
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->plan->grave.lock);
    pool->plan->pool = NULL; /* nobody wakes it any more */
    (void)pthread_mutex_unlock(&pool->plan->grave.lock);
    (void)pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    (void)pthread_mutex_unlock(&pool->lock);
    wake(pool);
    if (pool->has_thread)
        (void)pthread_join(pool->thread, NULL);
    /* All are told to end before the first is waited for. */
    for (size_t i = 0; i < coming_max; i++)
        if (pool->coming[i])
            tci_oci_cage_kill(pool->coming[i]);
    for (cage = pool->ready; cage; cage = cage->next)
        tci_oci_cage_kill(cage);
    for (size_t i = 0; i < coming_max; i++)
        tci_oci_cage_free(pool->coming[i]);
    while ((cage = pool->ready) != NULL) {
        pool->ready = cage->next;
        tci_oci_cage_free(cage);
    }
    (void)pthread_mutex_destroy(&pool->lock);
    (void)tci_close(pool->wake);
    free(pool);
}
