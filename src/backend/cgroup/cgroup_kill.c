/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the end of what is in a group, and of the group. Version 2 (Linux 5.14) kills a whole group
 * at once, also what is being forked. Elsewhere the right to fork goes first and then one process
 * after the other. Both are bounded in time.
 *
 * Invariant: a signal reaches only processes that are in the group. An id from a list may belong
 * to a stranger by the time it is used; a descriptor of the process, opened between two looks at
 * the list, does not.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 64,            /* processes that are held open at a time */
    LIST_MAX = BATCH * 11, /* bytes of a list of as many ids */
    PAUSE_MAX_US = 5000,
};

/* Sleeps a little, longer each time. False when the time is up. */
static bool pause_until(int64_t until_ms, long *pause_us)
{
    if (tci_cgroup_now_ms() >= until_ms)
        return false;
    (void)nanosleep(&(struct timespec){ .tv_nsec = *pause_us * 1000 }, NULL);
    *pause_us = *pause_us * 2 < PAUSE_MAX_US ? *pause_us * 2 : PAUSE_MAX_US;
    return true;
}

/* The first ids of the group; -1: it cannot be read. */
static int list(const struct tci_cgroup_hierarchy *h, const char *name, int *ids)
{
    char text[LIST_MAX + 1], *at = text, *end;
    int count = 0, problem = tci_cgroup_read(h->base, name, "cgroup.procs", text, sizeof text);
    if (problem)
        return problem == ENOENT || problem == ENODEV ? 0 : -1;
    /* A list that was cut ends in a part of an id. */
    if (strlen(text) == LIST_MAX && (end = strrchr(text, '\n')))
        end[1] = '\0';
    while (count < BATCH) {
        long id = strtol(at, &end, 10);
        if (end == at)
            break;
        if (id > 0) /* 0 stands for a process that our pid namespace does not show */
            ids[count++] = (int)id;
        at = end;
    }
    return count;
}

static bool has_id(const int *ids, int count, int id)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* One signal to each of a batch; false: there was none. */
static bool kill_batch(const struct tci_cgroup_hierarchy *h, const char *name)
{
    int ids[BATCH], again[BATCH], handles[BATCH], count_again;
    int count = list(h, name, ids);
    bool have_handles = true;
    for (int i = 0; i < count; i++) {
        handles[i] = (int)syscall(SYS_pidfd_open, ids[i], 0);
        if (handles[i] < 0 && errno == ENOSYS) /* before Linux 5.3 */
            have_handles = false;
    }
    count_again = count > 0 ? list(h, name, again) : 0;
    for (int i = 0; i < count; i++) {
        if (!has_id(again, count_again, ids[i]))
            ;
        else if (handles[i] >= 0)
            (void)syscall(SYS_pidfd_send_signal, handles[i], SIGKILL, NULL, 0);
        else if (!have_handles)
            (void)kill(ids[i], SIGKILL);
        if (handles[i] >= 0)
            (void)close(handles[i]);
    }
    return count != 0;
}

static bool kill_each(const struct tci_cgroup_hierarchy *h, const char *name, int64_t until_ms)
{
    long pause_us = 100;
    while (kill_batch(h, name))
        if (!pause_until(until_ms, &pause_us))
            return false;
    return true;
}

bool tci_cgroup_wait_empty(const struct tci_cgroup_hierarchy *h, const char *name, int64_t until_ms)
{
    bool empty = false;
    char text[128];
    int fd = -1;
    if (tci_cgroup_open_file(h->base, name, "cgroup.events", O_RDONLY, &fd))
        return true; /* the group is gone */
    for (;;) {
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        struct pollfd change = { .fd = fd, .events = POLLPRI };
        int64_t left = until_ms - tci_cgroup_now_ms();
        text[n > 0 ? n : 0] = '\0';
        empty = n <= 0 || tci_cgroup_field(text, "populated") == 0;
        if (empty || left <= 0)
            break;
        (void)poll(&change, 1, (int)left);
    }
    (void)close(fd);
    return empty;
}

bool tci_cgroup_kill_named(const struct tci_cgroup_hierarchy *h, const char *name, int deadline_ms)
{
    int64_t until_ms = tci_cgroup_now_ms() + deadline_ms;
    if (h->v2 && tci_cgroup_write(h->base, name, "cgroup.kill", "1") == 0)
        return tci_cgroup_wait_empty(h, name, until_ms);
    if (h->controllers & TCI_CGROUP_HAS_PIDS)
        (void)tci_cgroup_write(h->base, name, "pids.max", "0");
    return kill_each(h, name, until_ms);
}

/* Remembers what the limit refused so far, and lets nothing fork any more: a fork bomb is then
 * finite, however fast it is. */
static void close_pids(const struct tci_cgroup *group)
{
    struct tci_cgroup_state *state = group->state;
    for (unsigned i = 0; i < group->groups->count && !state->pids_closed; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        struct tci_cgroup_hierarchy pids = { .base = h->base,
                                             .v2 = h->v2,
                                             .controllers = TCI_CGROUP_HAS_PIDS };
        struct tci_cgroup_usage usage = { 0 };
        if (!(state->made >> i & 1) || !(h->controllers & TCI_CGROUP_HAS_PIDS))
            continue;
        (void)tci_cgroup_count(&pids, group->name, &usage);
        if (tci_cgroup_write(h->base, group->name, "pids.max", "0") == 0) {
            state->pids_closed = true;
            state->pids_refused = usage.pids_refused;
        }
    }
}

/* Nobody is left who could fork: then the group stays as it is, and may be used again. */
static bool is_empty(const struct tci_cgroup *group)
{
    const struct tci_cgroup_state *state = group->state;
    int ids[BATCH];
    for (unsigned i = 0; i < group->groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        if (!(state->made >> i & 1))
            continue;
        if (h->v2) /* all hierarchies hold the same processes */
            return tci_cgroup_wait_empty(h, group->name, 0);
        if (list(h, group->name, ids) != 0)
            return false;
    }
    return true;
}

void tci_cgroup_kill(const struct tci_cgroup *group, int deadline_ms)
{
    struct tci_cgroup_state *state = group->state;
    const struct tci_cgroup_hierarchy *h = group->groups->hierarchies;
    int64_t until_ms = tci_cgroup_now_ms() + deadline_ms;
    if (is_empty(group))
        return;
    /* Since Linux 6.12, a child that is cloned into a group that was ever killed dies at once. */
    state->killed = true;
    if (state->made & 1 && h[0].v2 &&
        tci_cgroup_write(h[0].base, group->name, "cgroup.kill", "1") == 0) {
        (void)tci_cgroup_wait_empty(&h[0], group->name, until_ms);
        return;
    }
    close_pids(group);
    for (unsigned i = 0; i < group->groups->count; i++)
        if (state->made >> i & 1 && !kill_each(&h[i], group->name, until_ms))
            return;
}

bool tci_cgroup_remove_named(const struct tci_cgroup_hierarchy *h, const char *name,
                             int deadline_ms)
{
    int64_t until_ms = 0;
    long pause_us = 50;
    while (unlinkat(h->base, name, AT_REMOVEDIR) < 0) {
        if (errno != EBUSY)
            return errno == ENOENT || errno == ENODEV;
        /* Busy for a moment after its last process has gone, as a rule: the clock is read late. */
        if (!until_ms)
            until_ms = tci_cgroup_now_ms() + deadline_ms;
        if (!pause_until(until_ms, &pause_us))
            return false;
    }
    return true;
}
