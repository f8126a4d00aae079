/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how a limit is written in each version, and that it is in force: every value is read back.
 * A limit that the kernel does not take is an error; a cage is never started without it.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy/model.h"

enum {
    PERIOD_US = 100000,       /* the kernel's own */
    PERIOD_LONG_US = 1000000, /* the longest; for shares that are too small for the other */
    QUOTA_MIN_US = 1000,      /* the kernel takes no less */
};
/* Beyond this the kernel refuses the number, and has no more process ids to give. */
#define PIDS_MAX UINT64_C(4194304)
/* Beyond this the kernel says "max". No machine has it. */
#define MEMORY_MAX (UINT64_C(1) << 62)

static int failed(struct tc_error *reterr, const char *file, const char *value, int problem)
{
    tci_error_errno(reterr, problem, "control group: %s could not be set to %s", file, value);
    tci_error_remedy(reterr, problem == ERANGE
                                 ? "the kernel changed the value: choose another limit"
                                 : "toolcage doctor says what control groups can do here");
    return -1;
}

static int set(int base, const char *name, const char *file, const char *value,
               struct tc_error *reterr)
{
    int problem = tci_cgroup_set(base, name, file, value);
    return problem ? failed(reterr, file, value, problem) : 0;
}

static bool swap_is_on(void)
{
    char text[256];
    const char *second;
    /* The first line is a heading. A kernel without swap has no such file. */
    if (tci_cgroup_read(AT_FDCWD, "/proc", "swaps", text, sizeof text))
        return false;
    second = strchr(text, '\n');
    return second && second[1];
}

bool tci_cgroup_swap_escapes(int base, const char *name)
{
    static const char *const files[] = { "memory.swap.max", "memory.memsw.limit_in_bytes" };
    for (size_t i = 0; i < tci_array_size(files); i++) {
        int fd = -1;
        if (tci_cgroup_open_file(base, name, files[i], O_PATH, &fd) == 0) {
            (void)close(fd);
            return false;
        }
    }
    return swap_is_on();
}

/* Swap is not counted here. Memory that moves there would escape the limit. */
static int without_swap(int base, const char *name, bool v2, struct tc_error *reterr)
{
    if (swap_is_on()) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "control group: swap is on and not counted, so memory cannot be limited");
        tci_error_remedy(reterr, "boot with swapaccount=1, or turn swap off: sudo swapoff -a");
        return -1;
    }
    /* Should it be switched on later: the limit's own reclaim then leaves it alone. */
    return v2 ? 0 : set(base, name, "memory.swappiness", "0", reterr);
}

/* A group inherits that nobody is killed and everybody waits for memory, for ever. */
static int allow_oom_kill(int base, const char *name, struct tc_error *reterr)
{
    char text[256];
    int problem = tci_cgroup_write(base, name, "memory.oom_control", "0");
    if (!problem)
        problem = tci_cgroup_read(base, name, "memory.oom_control", text, sizeof text);
    if (!problem && tci_cgroup_field(text, "oom_kill_disable") != 0)
        problem = ERANGE;
    return problem ? failed(reterr, "memory.oom_control", "0", problem) : 0;
}

static int set_memory(const struct tci_cgroup_hierarchy *h, const char *name, uint64_t bytes,
                      struct tc_error *reterr)
{
    const char *swap = h->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char value[32];
    int problem;
    if (bytes < MEMORY_MAX) {
        (void)snprintf(value, sizeof value, "%" PRIu64, bytes / page * page);
        if (set(h->base, name, h->v2 ? "memory.max" : "memory.limit_in_bytes", value, reterr) < 0)
            return -1;
        /* Version 2 counts swap apart, version 1 together with memory. */
        problem = tci_cgroup_set(h->base, name, swap, h->v2 ? "0" : value);
        if (problem == ENOENT)
            problem = without_swap(h->base, name, h->v2, reterr) < 0 ? -1 : 0;
        else if (problem)
            (void)failed(reterr, swap, h->v2 ? "0" : value, problem);
        if (problem)
            return -1;
    }
    /* Version 1 counts the buffers of sockets apart, and only when there is a limit: a quarter on
     * top. Kernels that do not have the file any more count them together. */
    if (!h->v2 && bytes < MEMORY_MAX) {
        (void)snprintf(value, sizeof value, "%" PRIu64, bytes / 4 / page * page);
        problem = tci_cgroup_set(h->base, name, "memory.kmem.tcp.limit_in_bytes", value);
        if (problem && problem != ENOENT)
            return failed(reterr, "memory.kmem.tcp.limit_in_bytes", value, problem);
    }
    if (!h->v2)
        return h->oom_waits ? allow_oom_kill(h->base, name, reterr) : 0;
    /* One process less would leave a cage that goes on with a part of its work missing. Kernels
     * before 4.19 do not have it; the caller ends the tree then. */
    problem = tci_cgroup_set(h->base, name, "memory.oom.group", "1");
    return problem && problem != ENOENT ? failed(reterr, "memory.oom.group", "1", problem) : 0;
}

static int set_pids(const struct tci_cgroup_hierarchy *h, const char *name, uint64_t pids,
                    struct tc_error *reterr)
{
    char value[32];
    (void)snprintf(value, sizeof value, "%" PRIu64, pids < PIDS_MAX ? pids : PIDS_MAX);
    return set(h->base, name, "pids.max", value, reterr);
}

static int set_quota_v1(int base, const char *name, uint64_t quota, uint64_t period)
{
    char value[32];
    int problem = 0;
    if (period != PERIOD_US) {
        (void)snprintf(value, sizeof value, "%" PRIu64, period);
        problem = tci_cgroup_set(base, name, "cpu.cfs_period_us", value);
    }
    (void)snprintf(value, sizeof value, "%" PRIu64, quota);
    return problem ? problem : tci_cgroup_set(base, name, "cpu.cfs_quota_us", value);
}

/*
 * Version 1 does not take a share that is larger than that of the group above. If that one is the
 * base, the cage gets what the base has: less than it was granted, never more.
 */
static int set_quota_of_base(const struct tci_cgroup_hierarchy *h, const char *name, uint64_t quota,
                             uint64_t period)
{
    uint64_t base_quota = tci_cgroup_number(h->base, ".", "cpu.cfs_quota_us"); /* -1 gives 0 */
    uint64_t base_period = tci_cgroup_number(h->base, ".", "cpu.cfs_period_us");
    if (!base_quota || !base_period || base_quota * period > quota * base_period)
        return EINVAL;
    return set_quota_v1(h->base, name, base_quota, base_period);
}

static int set_cpu(const struct tci_cgroup_hierarchy *h, const char *name, uint64_t millis,
                   struct tc_error *reterr)
{
    uint64_t period = PERIOD_US, quota;
    char value[64];
    int problem;
    /* More cores than there will be: keeps the products below from overflowing. */
    if (millis > 1000000)
        millis = 1000000;
    quota = millis * period / 1000;
    if (quota < QUOTA_MIN_US) {
        period = PERIOD_LONG_US;
        quota = millis * period / 1000;
    }
    if (h->v2) {
        (void)snprintf(value, sizeof value, "%" PRIu64 " %" PRIu64, quota, period);
        return set(h->base, name, "cpu.max", value, reterr);
    }
    problem = set_quota_v1(h->base, name, quota, period);
    if (problem == EINVAL && quota)
        problem = set_quota_of_base(h, name, quota, period);
    (void)snprintf(value, sizeof value, "%" PRIu64, quota);
    return problem ? failed(reterr, "cpu.cfs_quota_us", value, problem) : 0;
}

int tci_cgroup_set_limits(const struct tci_cgroup_hierarchy *h, const char *name,
                          const struct tci_cgroup_limits *limits, struct tc_error *reterr)
{
    if (h->controllers & TCI_CGROUP_HAS_MEMORY && set_memory(h, name, limits->memory, reterr) < 0)
        return -1;
    if (h->controllers & TCI_CGROUP_HAS_PIDS && limits->pids != TCI_UNLIMITED &&
        set_pids(h, name, limits->pids, reterr) < 0)
        return -1;
    if (h->controllers & TCI_CGROUP_HAS_CPU && limits->cpu != TCI_UNLIMITED &&
        set_cpu(h, name, limits->cpu, reterr) < 0)
        return -1;
    return 0;
}
