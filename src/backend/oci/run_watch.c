/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: limits of a call in a container that are kept by looking (backend/watch.h): at whom, and since when. */
#include "backend/oci/run_internal.h"

int tci_oci_watch_timer(struct tc_run *run, struct tc_error *reterr)
{
    return tci_watch_timer(&run->watch, run->epoll, reterr);
}

/* Everybody below this process belongs to the call. */
static int tree_of(const struct tc_run *run)
{
    const struct tci_oci_driver *driver = run->plan->driver;
    int pid = driver->tree ? driver->tree(run->cage) : 0;
    return pid ? pid : run->cage->pid;
}

/* Where no group of ours counts: the engine's does. */
static bool engine_counts(const struct tc_run *run)
{
    return !run->cage->cgroup && run->plan->driver->hits;
}

/* What the making of the container took is not the call's. */
int tci_oci_watch_begin(struct tc_run *run, struct tc_error *reterr)
{
    struct tci_watch *watch = &run->watch;
    watch->cpu_us_before = tci_watch_cpu_us(watch, run->cage->cgroup);
    if (run->plan->watch_disk) {
        watch->disk = tci_disk_watch_new();
        if (!watch->disk)
            return tci_error_no_memory(reterr);
        tci_watch_written(watch, tree_of(run));
        watch->written_before = watch->written;
        watch->written = 0;
    }
    return run->plan->watch_cpu || run->plan->watch_disk || engine_counts(run)
               ? tci_oci_watch_timer(run, reterr)
               : 0;
}

void tci_oci_watch_last(struct tc_run *run)
{
    if (run->watch.disk)
        tci_watch_written(&run->watch, tree_of(run));
}

void tci_oci_watch_look(struct tc_run *run)
{
    const struct tci_settings *s = run->plan->spec.settings;
    if (tci_watch_memory(&run->watch, run->cage->cgroup, run->epoll))
        tci_oci_kill(run);
    if (!tci_watch_ticked(&run->watch) || !run->begun || run->killed_us)
        return;
    if (run->plan->watch_cpu &&
        tci_watch_cpu_us(&run->watch, run->cage->cgroup) / 1000 >= s->cpu_time)
        run->watch.hit |= TCI_HIT_CPU;
    if (engine_counts(run)) /* as with a group of ours: who lost a process to the limit ends */
        run->watch.hit |= run->plan->driver->hits(run->cage, false) & TCI_HIT_MEMORY;
    tci_oci_watch_last(run);
    if (tci_watch_reached(&run->watch, s) || run->watch.hit & TCI_HIT_MEMORY)
        tci_oci_kill(run);
}

void tci_oci_watch_usage(struct tc_run *run, struct tc_outcome *ret)
{
    const struct tci_entry_report *r = &run->last;
    struct tci_cgroup_usage unused;
    const struct tci_watch_said said = { .cpu_us = r->cpu_us,
                                         .memory_peak = r->memory_peak,
                                         .bytes_written = r->bytes_written,
                                         .has_ended = r->kind == TCI_ENTRY_ENDED,
                                         .status = r->status };
    ret->hit |= run->watch.hit;
    if (!run->begun) {
        if (run->cage->cgroup) /* read, so that the group may serve another cage */
            (void)tci_cgroup_usage(run->cage->cgroup, &unused, NULL);
        return;
    }
    tci_oci_watch_last(run);
    tci_watch_usage(&run->watch, run->plan->spec.settings, run->cage->cgroup, &said, ret);
    if (run->plan->enter_early) /* a runtime's own processes are in the group as well */
        ret->usage.processes_peak = 0;
    /* A command that ended well needs no second opinion. */
    if (r->kind == TCI_ENTRY_ENDED && engine_counts(run))
        ret->hit |= run->plan->driver->hits(run->cage, r->status != 0);
}
