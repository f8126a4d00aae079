/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which mechanism keeps which limit. A control group counts the whole tree; without one, a
 * limit of the process is enough only where ready.def says so (a tool that starts no process, whole
 * processors), and the plan was refused before it came here otherwise.
 */
#include "backend/native/native.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

/* Never more than this process may give: that would fail, and less is only stricter. */
static void add_limit(struct tc_plan *plan, int resource, uint64_t value)
{
    struct rlimit now = { RLIM_INFINITY, RLIM_INFINITY };
    if (getrlimit((unsigned)resource, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
        now.rlim_max < value)
        value = now.rlim_max;
    plan->limits[plan->limit_count++] = (struct tci_init_limit){ .resource = (uint32_t)resource,
                                                                 .value = value };
}

static int pin(struct tc_plan *plan, uint64_t cores, struct tc_error *reterr)
{
    unsigned long words[TCI_INIT_CPU_WORDS] = { 0 };
    uint64_t taken = 0;
    const unsigned bits = 8 * sizeof words[0];
    if (sched_getaffinity(0, sizeof words, (cpu_set_t *)words) < 0)
        return tci_error_errno(reterr, errno, "asking for the processors of this process");
    for (unsigned cpu = 0; cpu < bits * TCI_INIT_CPU_WORDS && taken < cores; cpu++)
        if (words[cpu / bits] & (1UL << (cpu % bits))) {
            plan->processors[cpu / 64] |= UINT64_C(1) << (cpu % 64);
            taken++;
        }
    plan->pinned = taken > 0;
    return 0;
}

/*
 * Without a control group, memory is the address space of the one process. What it could hold besides
 * is taken off: pipes of the standard size, two descriptors each (the filter refuses larger ones, and
 * nameless files), and the memory file systems of a jail.
 */
static int limit_address_space(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    const uint64_t pipe_bytes = 65536, files = s->files == TCI_UNLIMITED ? 1024 : s->files;
    const uint64_t besides = files / 2 * pipe_bytes +
                             (plan->is_jail ? 2 * s->filesystem.scratch : 0);
    if (besides >= s->memory / 2) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "without a control group, memory cannot be kept: pipes and scratch alone "
                      "could hold %llu bytes of it",
                      (unsigned long long)besides);
        tci_error_remedy(reterr,
                         "lower files and scratch, raise memory, or give toolcage a control "
                         "group: see cgroup_memory in toolcage doctor");
        return -1;
    }
    plan->counts_memory = true;
    add_limit(plan, RLIMIT_AS, s->memory - besides);
    return 0;
}

int tci_native_limits(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    const unsigned has = tci_cgroups_has(plan->cgroups);
    struct tci_cgroup_limits *group = &plan->cgroup_limits;

    *group = (struct tci_cgroup_limits){ .memory = TCI_UNLIMITED,
                                         .pids = TCI_UNLIMITED,
                                         .cpu = TCI_UNLIMITED };
    /* No core dump: 1 and not 0, because a handler of the host that takes dumps through a pipe is
     * started whatever the limit is, except for 1. */
    add_limit(plan, RLIMIT_CORE, 1);
    add_limit(plan, RLIMIT_RTPRIO, 0);
    add_limit(plan, RLIMIT_NICE, 0);
    add_limit(plan, RLIMIT_SIGPENDING, TCI_SIGNALS_MAX);
    if (s->files != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_NOFILE, s->files);
    if (s->disk != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_FSIZE, s->disk);
    plan->watch_disk = plan->spec.clauses & tci_clause_bit(TCI_CLAUSE_DISK);

    if (has & TCI_CGROUP_HAS_MEMORY)
        group->memory = s->memory;
    else if (s->memory != TCI_UNLIMITED && limit_address_space(plan, reterr) < 0)
        return -1;
    /* Init is one of the tree's processes, not one of the policy's. */
    if (has & TCI_CGROUP_HAS_PIDS)
        group->pids = s->pids == TCI_UNLIMITED ? TCI_UNLIMITED : s->pids + 1;
    else if (s->pids != TCI_UNLIMITED && plan->is_jail)
        add_limit(plan, RLIMIT_NPROC, s->pids + 1);
    if (has & TCI_CGROUP_HAS_CPU)
        group->cpu = s->cpu;
    else if (s->cpu != TCI_UNLIMITED && pin(plan, s->cpu / 1000, reterr) < 0)
        return -1;
    plan->watch_cpu = s->cpu_time != TCI_UNLIMITED;
    /* Where the group's clock is looked at, this is only for when nobody looks: it counts in ticks, and
     * must not be the first to end a call. */
    if (s->cpu_time != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_CPU,
                  (s->cpu_time + 999) / 1000 + (has & TCI_CGROUP_HAS_CPU_USAGE ? 1 : 0));
    plan->use_cgroup = has != 0;
    return 0;
}
