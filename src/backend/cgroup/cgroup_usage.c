/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the kernel's counters of a group, and the descriptor that fires when memory runs out. A
 * measure that this kernel does not have is 0: not known. A counter of limits that were hit is read
 * or the caller is told that it could not be.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LARGEST_ALLOCATION = 65536 };

static const char *memory_events(const struct tci_cgroup_hierarchy *h)
{
    return h->v2 ? "memory.events" : "memory.oom_control";
}

static int count_memory(const struct tci_cgroup_hierarchy *h, const char *name,
                        struct tci_cgroup_usage *usage)
{
    char text[512];
    int problem = tci_cgroup_read(h->base, name, memory_events(h), text, sizeof text);
    if (problem)
        return problem;
    usage->oom_kills = tci_cgroup_field(text, "oom_kill");
    if (h->v2) {
        usage->memory_reached = tci_cgroup_field(text, "oom") > 0;
        usage->memory_peak = tci_cgroup_number(h->base, name, "memory.peak");
        return 0;
    }
    usage->memory_peak = tci_cgroup_number(h->base, name, "memory.max_usage_in_bytes");
    /* There is no counter to rely on: failcnt stays 0 in recent kernels. A group that runs out of
     * its own memory is full but for one allocation, and the kernel kills for small ones only. */
    if (usage->oom_kills)
        usage->memory_reached = usage->memory_peak + LARGEST_ALLOCATION >=
                                tci_cgroup_number(h->base, name, "memory.limit_in_bytes");
    return 0;
}

static int count_pids(const struct tci_cgroup_hierarchy *h, const char *name,
                      struct tci_cgroup_usage *usage)
{
    char text[64];
    int problem = tci_cgroup_read(h->base, name, "pids.events", text, sizeof text);
    if (problem)
        return problem;
    usage->pids_refused = tci_cgroup_field(text, "max");
    usage->pids_peak = tci_cgroup_number(h->base, name, "pids.peak");
    return 0;
}

static uint64_t cpu_us(const struct tci_cgroup_hierarchy *h, const char *name)
{
    char text[1024];
    if (!h->v2)
        return tci_cgroup_number(h->base, name, "cpuacct.usage") / 1000;
    if (tci_cgroup_read(h->base, name, "cpu.stat", text, sizeof text))
        return 0;
    return tci_cgroup_field(text, "usage_usec");
}

int tci_cgroup_count(const struct tci_cgroup_hierarchy *h, const char *name,
                     struct tci_cgroup_usage *usage)
{
    int problem = 0;
    if (h->controllers & TCI_CGROUP_HAS_MEMORY)
        problem = count_memory(h, name, usage);
    if (!problem && h->controllers & TCI_CGROUP_HAS_PIDS)
        problem = count_pids(h, name, usage);
    if (h->controllers & TCI_CGROUP_HAS_CPU_USAGE)
        usage->cpu_us = cpu_us(h, name);
    return problem;
}

static int watch_v1(const struct tci_cgroup_hierarchy *h, const char *name)
{
    char text[32];
    int control = -1, event;
    if (tci_cgroup_open_file(h->base, name, "memory.oom_control", O_RDONLY, &control))
        return -1;
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event >= 0) {
        (void)snprintf(text, sizeof text, "%d %d", event, control);
        if (tci_cgroup_write(h->base, name, "cgroup.event_control", text)) {
            (void)close(event);
            event = -1;
        }
    }
    (void)close(control);
    return event;
}

int tci_cgroup_watch(const struct tci_cgroup_hierarchy *h, const char *name, short *ret_mask)
{
    char text[256];
    int fd = -1;
    if (!h->v2) {
        *ret_mask = POLLIN;
        return watch_v1(h, name);
    }
    if (tci_cgroup_open_file(h->base, name, "memory.events", O_RDONLY, &fd))
        return -1;
    /* The file is always readable: a change since the last read is an exceptional condition. */
    *ret_mask = POLLPRI;
    if (pread(fd, text, sizeof text, 0) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

int tci_cgroup_usage(const struct tci_cgroup *group, struct tci_cgroup_usage *ret,
                     struct tc_error *reterr)
{
    struct tci_cgroup_state *state = group->state;
    struct tci_cgroup_usage usage = { 0 };
    for (unsigned i = 0; i < group->groups->count; i++) {
        int problem = 0;
        if (state->made >> i & 1)
            problem = tci_cgroup_count(&group->groups->hierarchies[i], group->name, &usage);
        /* Counters that say whether a limit was hit are needed for the verdict: not to be guessed. */
        if (problem)
            return tci_error_errno(reterr, problem, "control group: reading the counters of %s",
                                   group->name);
    }
    if (state->pids_closed)
        usage.pids_refused = state->pids_refused;
    usage.cpu_us -= usage.cpu_us < state->cpu_before ? usage.cpu_us : state->cpu_before;
    state->counted = true;
    state->last = *ret = usage;
    return 0;
}

uint64_t tci_cgroup_cpu_us(const struct tci_cgroup *group)
{
    const struct tci_cgroup_state *state = group->state;
    for (unsigned i = 0; i < group->groups->count; i++)
        if (state->made >> i & 1 &&
            group->groups->hierarchies[i].controllers & TCI_CGROUP_HAS_CPU_USAGE)
            return cpu_us(&group->groups->hierarchies[i], group->name) - state->cpu_before;
    return 0;
}

uint64_t tci_cgroup_look(const struct tci_cgroup *group)
{
    const struct tci_cgroup_state *state = group->state;
    char text[512];
    if (group->events >= 0) {
        if (group->events_mask == POLLIN)
            (void)!read(group->events, text, sizeof(uint64_t));
        else
            (void)!pread(group->events, text, sizeof text, 0);
    }
    for (unsigned i = 0; i < group->groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &group->groups->hierarchies[i];
        if (state->made >> i & 1 && h->controllers & TCI_CGROUP_HAS_MEMORY &&
            tci_cgroup_read(h->base, group->name, memory_events(h), text, sizeof text) == 0)
            return tci_cgroup_field(text, "oom_kill");
    }
    return 0;
}
