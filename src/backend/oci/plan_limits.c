/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which mechanism keeps which limit of a container. A control group of ours counts the tool alone:
 * entry is moved into it before the command starts, so neither the runtime nor the engine takes away
 * from what the policy gives. Where there is none, the engine's own limits are there (driver_api.c), or
 * the plan was refused before it came here (check.c).
 */
#include "backend/oci/plan.h"

#include <sys/resource.h>

/* Never more than this process may give: that would fail, and less is only stricter. */
static void add_limit(struct tci_oci_plan *plan, int resource, uint64_t value)
{
    struct rlimit now = { RLIM_INFINITY, RLIM_INFINITY };
    if (getrlimit((unsigned)resource, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
        now.rlim_max < value)
        value = now.rlim_max;
    plan->limits[plan->limit_count++] = (struct tci_entry_limit){ .resource = (uint32_t)resource,
                                                                  .value = value };
}

/* Can entry be moved into a group of ours? The kernel lets root do that, and the process's own user. */
static bool can_move_entry(const struct tci_oci_plan *plan)
{
    if (plan->choice.engine == TCI_OCI_ENGINE_NONE || plan->choice.is_root)
        return true;
    return tci_oci_is_ours(&plan->choice) && !plan->spec.settings->container.user;
}

static void limit_processes(struct tci_oci_plan *plan, unsigned has)
{
    const uint64_t pids = plan->spec.settings->pids;
    if (pids == TCI_UNLIMITED)
        return;
    /* Entry is one of the tree's processes, not one of the policy's. In gVisor they are none of the
     * host's: its own kernel counts them, and a group here would count its threads. */
    if (plan->use_cgroup && has & TCI_CGROUP_HAS_PIDS && plan->choice.runtime != TCI_OCI_RUNSC)
        plan->cgroup_limits.pids = pids + 1;
    else if (plan->choice.engine == TCI_OCI_ENGINE_NONE || plan->choice.runtime == TCI_OCI_RUNSC)
        /* Counted in the container's own user namespace, and so for this container alone. */
        add_limit(plan, RLIMIT_NPROC, pids + 1);
}

/*
 * The attack: a tool puts as many descriptors into sockets as its limit allows and reads none of them. The
 * kernel counts these for each user, and compares them with the limit of whoever sends next: with one as
 * high as ours, no other call of this user gets its streams, and no gVisor of root's its files. What runs
 * in gVisor itself has no descriptors of the host.
 */
static void limit_files(struct tci_oci_plan *plan)
{
    static const uint64_t room = 253 /* in one message, SCM_MAX_FD */ + 64 /* ours */;
    uint64_t files = plan->spec.settings->files;
    struct rlimit now = { RLIM_INFINITY, RLIM_INFINITY };
    if (plan->choice.runtime != TCI_OCI_RUNSC && getrlimit(RLIMIT_NOFILE, &now) == 0 &&
        now.rlim_cur != RLIM_INFINITY) {
        uint64_t most = now.rlim_cur > 2 * room ? now.rlim_cur - room : now.rlim_cur / 2;
        files = files < most ? files : most;
    }
    if (files != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_NOFILE, files);
}

void tci_oci_limits(struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    const unsigned has = tci_cgroups_has(plan->cgroups);
    plan->use_cgroup = has != 0 && can_move_entry(plan);
    plan->enter_early = plan->use_cgroup && plan->choice.runtime == TCI_OCI_RUNSC;
    plan->cgroup_limits = (struct tci_cgroup_limits){
        .memory = has & TCI_CGROUP_HAS_MEMORY ? s->memory : TCI_UNLIMITED,
        .pids = TCI_UNLIMITED,
        .cpu = has & TCI_CGROUP_HAS_CPU ? s->cpu : TCI_UNLIMITED,
    };
    limit_processes(plan, has);
    /* No core dump: 1 and not 0, because a handler of the host that takes dumps through a pipe is
     * started whatever the limit is, except for 1. */
    add_limit(plan, RLIMIT_CORE, 1);
    /* gVisor knows none of these three, has no priorities, and signals of its own. */
    if (plan->choice.runtime != TCI_OCI_RUNSC) {
        add_limit(plan, RLIMIT_RTPRIO, 0);
        add_limit(plan, RLIMIT_NICE, 0);
        add_limit(plan, RLIMIT_SIGPENDING, TCI_SIGNALS_MAX);
    }
    limit_files(plan);
    if (s->disk != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_FSIZE, s->disk);
    /* Where the group's clock is looked at, this is only for when nobody looks: it counts in ticks, and
     * must not be the first to end a call. */
    if (s->cpu_time != TCI_UNLIMITED)
        add_limit(plan, RLIMIT_CPU,
                  (s->cpu_time + 999) / 1000 +
                      (plan->use_cgroup && has & TCI_CGROUP_HAS_CPU_USAGE ? 1 : 0));
    plan->watch_cpu = s->cpu_time != TCI_UNLIMITED;
    plan->watch_disk = plan->spec.clauses & tci_clause_bit(TCI_CLAUSE_DISK);
}
