/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: limits of a call in a container that are kept by looking at what the kernel counts (memory,
 * processor time, bytes written), and what it used. Nothing is concluded from signals or exit codes. */
#include "backend/oci/run_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { look_ns = 5000000 };

int tci_oci_watch_timer(struct tc_run *run, struct tc_error *reterr)
{
    const struct itimerspec when = { .it_interval = { .tv_nsec = look_ns },
                                     .it_value = { .tv_nsec = 1 } };
    struct epoll_event event = { .events = EPOLLIN };
    if (run->timer >= 0)
        return 0;
    run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer < 0 || timerfd_settime(run->timer, 0, &when, NULL) < 0 ||
        epoll_ctl(run->epoll, EPOLL_CTL_ADD, run->timer, &event) < 0)
        return tci_error_errno(reterr, errno, "making a timer");
    return 0;
}

/* Everybody below this process belongs to the call. */
static int tree_of(const struct tc_run *run)
{
    const struct tci_oci_driver *driver = run->plan->driver;
    int pid = driver->tree ? driver->tree(run->cage) : 0;
    return pid ? pid : run->cage->pid;
}

static uint64_t written_now(const struct tc_run *run)
{
    const int tree = tree_of(run);
    uint64_t written = tree > 0 ? tci_disk_watch_look(run->disk, tree) : 0;
    return written > run->written_before ? written - run->written_before : 0;
}

static uint64_t cpu_us(const struct tc_run *run)
{
    uint64_t used = run->cage->cgroup ? tci_cgroup_cpu_us(run->cage->cgroup) : 0;
    return used > run->cpu_us_before ? used - run->cpu_us_before : 0;
}

int tci_oci_watch_begin(struct tc_run *run, struct tc_error *reterr)
{
    run->cpu_us_before = cpu_us(run); /* what the making of the container took is not the call's */
    if (run->plan->watch_disk) {
        run->disk = tci_disk_watch_new();
        if (!run->disk)
            return tci_error_no_memory(reterr);
        run->written_before = written_now(run);
    }
    return run->plan->watch_cpu || run->plan->watch_disk ? tci_oci_watch_timer(run, reterr) : 0;
}

/* Memory ran out. Version 1 of control groups says so a moment before it kills, kills one process
 * and lets the rest go on: we look again until it has happened, and end the rest. */
static void heed_group(struct tc_run *run)
{
    const struct tci_cgroup *group = run->cage->cgroup;
    struct pollfd p = { .fd = group ? group->events : -1,
                        .events = group ? group->events_mask : (short)0 };
    if (p.fd < 0 || run->hit & TCI_HIT_MEMORY || (!run->starving && poll(&p, 1, 0) <= 0))
        return;
    run->starving = true;
    if (tci_cgroup_look(group)) {
        run->hit |= TCI_HIT_MEMORY;
        tci_oci_kill(run);
    } else {
        (void)tci_oci_watch_timer(run, NULL);
    }
}

void tci_oci_watch_last(struct tc_run *run)
{
    uint64_t written = run->disk ? written_now(run) : 0;
    if (written > run->written)
        run->written = written;
}

void tci_oci_watch_look(struct tc_run *run)
{
    const struct tci_settings *s = run->plan->spec.settings;
    uint64_t ticks;
    heed_group(run);
    if (run->timer < 0 || read(run->timer, &ticks, sizeof ticks) != (ssize_t)sizeof ticks ||
        !run->begun || run->killed_us)
        return;
    if (run->plan->watch_cpu && cpu_us(run) / 1000 >= s->cpu_time)
        run->hit |= TCI_HIT_CPU;
    tci_oci_watch_last(run);
    if (run->disk && run->written > s->disk)
        run->hit |= TCI_HIT_DISK;
    if (run->hit & (TCI_HIT_CPU | TCI_HIT_DISK))
        tci_oci_kill(run);
}

/* Where no group counts: the engine may know why somebody was killed. */
static bool engine_saw_memory(struct tc_run *run)
{
    const struct tci_oci_driver *driver = run->plan->driver;
    int status = run->last.status;
    return !run->cage->cgroup && driver->out_of_memory && run->last.kind == TCI_ENTRY_ENDED &&
           status != 0 && driver->out_of_memory(run->cage);
}

static void judge_limits(const struct tc_run *run, const struct tc_usage *usage, unsigned *hit)
{
    const struct tci_settings *s = run->plan->spec.settings;
    const struct tci_entry_report *r = &run->last;
    if (s->cpu_time != TCI_UNLIMITED && usage->cpu_us / 1000 >= s->cpu_time)
        *hit |= TCI_HIT_CPU;
    if (run->plan->watch_disk && usage->bytes_written > s->disk)
        *hit |= TCI_HIT_DISK;
    /* The kernel's own word for "this file grew beyond the limit"; anybody can say it, so that
     * something must have been written, too. */
    if (run->plan->watch_disk && usage->bytes_written && r->kind == TCI_ENTRY_ENDED &&
        WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGXFSZ)
        *hit |= TCI_HIT_DISK;
}

void tci_oci_watch_usage(struct tc_run *run, struct tc_outcome *ret)
{
    const struct tci_entry_report *r = &run->last;
    const bool is_shared = run->plan->enter_early; /* a runtime's own processes are in it as well */
    struct tci_cgroup_usage group = { 0 };
    struct tc_usage *usage = &ret->usage;
    bool has_group = run->cage->cgroup && tci_cgroup_usage(run->cage->cgroup, &group, NULL) == 0;
    uint64_t cpu = group.cpu_us > run->cpu_us_before ? group.cpu_us - run->cpu_us_before : 0;
    ret->hit |= run->hit;
    if (!run->begun)
        return;
    tci_oci_watch_last(run);
    usage->cpu_us = cpu ? cpu : r->cpu_us;
    usage->memory_peak_bytes = group.memory_peak ? group.memory_peak : r->memory_peak;
    usage->processes_peak = group.pids_peak > 1 && !is_shared ? group.pids_peak - 1 : 0;
    usage->bytes_written = r->bytes_written > run->written ? r->bytes_written : run->written;
    if ((has_group && group.oom_kills) || engine_saw_memory(run))
        ret->hit |= TCI_HIT_MEMORY;
    if (has_group && group.pids_refused)
        ret->hit |= TCI_HIT_PIDS;
    judge_limits(run, usage, &ret->hit);
}
