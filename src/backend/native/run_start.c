/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the start of one cage: everything that init is given, and what is watched from then on. A
 * start that fails leaves nothing behind.
 */
#include "backend/native/run_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/uuid.h"

enum { argv_max = 65536 };

static int watch(struct tc_run *run, int fd, uint32_t events, struct tc_error *reterr)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    if (fd >= 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return tci_error_errno(reterr, errno, "watching a cage");
    return 0;
}

static int watch_all(struct tc_run *run, struct tc_error *reterr)
{
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll < 0)
        return tci_error_errno(reterr, errno, "watching a cage");
    if (run->plan->watch_disk && !(run->watch.disk = tci_disk_watch_new()))
        return tci_error_no_memory(reterr);
    if ((run->plan->watch_cpu || run->plan->watch_disk) &&
        tci_watch_timer(&run->watch, run->epoll, reterr) < 0)
        return -1;
    if (run->gate && watch(run, tci_gate_fd(run->gate), EPOLLIN, reterr) < 0)
        return -1;
    if (watch(run, run->report, EPOLLIN, reterr) < 0 || watch(run, run->pidfd, EPOLLIN, reterr) < 0)
        return -1;
    return run->cgroup ? watch(run, run->cgroup->events, (uint32_t)run->cgroup->events_mask, reterr)
                       : 0;
}

/* Init's arguments: flags, then the command. They live until init has started. */
static const char **init_arguments(const struct tc_run *run, const struct tc_io *io,
                                   char **ret_flags)
{
    size_t count = 0, n = 0;
    const char **argv;
    char *flags;
    while (count < argv_max && io->argv[count])
        count++;
    if (!count || io->argv[count])
        return NULL;
    argv = calloc(count + 2 + 3, sizeof *argv);
    if (!argv)
        return NULL;
    flags = (char *)&argv[count + 2];
    if (run->plan->is_jail)
        flags[n++] = TCI_INIT_FLAG_JAIL;
    if (run->plan->is_jail && run->plan->is_root)
        flags[n++] = TCI_INIT_FLAG_MAPPED;
    if (io->terminal)
        flags[n++] = TCI_INIT_FLAG_TERMINAL;
    if (io->traced)
        flags[n++] = TCI_INIT_FLAG_TRACED;
    if (io->hold)
        flags[n++] = TCI_INIT_FLAG_HOLD;
    if (io->program > 0)
        flags[n++] = TCI_INIT_FLAG_PROGRAM;
    *ret_flags = flags;
    argv[0] = flags;
    memcpy(argv + 1, io->argv, count * sizeof *argv);
    return argv;
}

static int map_ids(struct tc_run *run, struct tc_error *reterr)
{
    char map[64];
    if (!run->plan->is_jail || !run->plan->is_root)
        return 0;
    (void)snprintf(map, sizeof map, "%d %u 1", TCI_INIT_ID, TCI_JAIL_HOST_ID);
    if (tci_write_id_map(run->pid, "uid_map", map, reterr) < 0 ||
        tci_write_id_map(run->pid, "gid_map", map, reterr) < 0)
        return -1;
    return tci_native_tell(run, "g") < 0 ? tci_error_errno(reterr, errno, "letting the cage go on")
                                         : 0;
}

static int detach_mounts(const struct tc_plan *plan, int *ret, size_t *ret_count,
                         struct tc_error *reterr)
{
    *ret_count = 0;
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const struct tci_mount *m = &plan->mounts.items[i];
        int fd;
        if (m->kind != TCI_MOUNT_HANDED)
            continue;
        if (*ret_count == TCI_HANDED_MAX)
            return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                                 "a cage that root starts can have %d granted paths",
                                 TCI_HANDED_MAX);
        fd = tci_mount_detach(
            &(struct tci_detach){ m->source, m->attributes, m->writable, m->host }, &plan->idmap,
            reterr);
        if (fd < 0)
            return -1;
        ret[(*ret_count)++] = fd;
    }
    return 0;
}

static int make_gate(struct tc_run *run, const struct tc_io *io, int *ret_inside,
                     struct tc_error *reterr)
{
    const struct tci_gate_options options = { .settings = run->plan->spec.settings,
                                              .on_event = io->on_network,
                                              .data = io->network_data };
    return run->plan->has_gate ? tci_gate_new(&options, &run->gate, ret_inside, reterr) : 0;
}

/* Init with everything that it is given; our copies of its ends are closed. */
static int spawn(struct tc_run *run, const struct tc_io *io, struct tc_error *reterr)
{
    int report[2] = { -1, -1 }, go[2] = { -1, -1 }, mounts[TCI_HANDED_MAX], r = -1;
    size_t detached = 0;
    struct tci_spawn s = { .plan = run->plan,
                           .cgroup = run->cgroup,
                           .in = io->in,
                           .out = io->out,
                           .err = io->err,
                           .mounts = mounts,
                           .pidfd = -1,
                           .owner = -1,
                           .gate = -1,
                           .program = io->program > 0 ? io->program : -1,
                           .function = io->function,
                           .handler = io->handler };
    const char **argv = init_arguments(run, io, &s.flags);
    if (!argv) {
        tci_error_set(reterr, TC_ERROR_USAGE, "a command of 1 to %d words is needed", argv_max - 1);
    } else if (tci_pipe(report, O_NONBLOCK) < 0 || tci_pipe(go, 0) < 0) {
        tci_error_errno(reterr, errno, "making a pipe");
    } else if ((s.owner = (int)syscall(SYS_pidfd_open, getpid(), 0)) < 0) {
        /* For each call: the host may have forked since the last one. */
        tci_error_errno(reterr, errno, "opening a handle on this process");
        tci_error_remedy(reterr, "use Linux 5.3 or newer: see pidfd in toolcage doctor");
    } else if (make_gate(run, io, &s.gate, reterr) == 0 &&
               detach_mounts(run->plan, mounts, &detached, reterr) == 0) {
        s.mount_count = detached;
        if (run->plan->ruleset_fd >= 0) { /* not a jail: it has no mounts */
            s.mounts = &run->plan->ruleset_fd;
            s.mount_count = 1;
        }
        s.argv = argv;
        s.report = report[1];
        s.go = go[0];
        r = tci_native_spawn(&s, reterr);
    }
    run->pid = s.pid;
    run->pidfd = s.pidfd;
    run->report = report[0];
    run->go = go[1];
    (void)tci_close(report[1]);
    (void)tci_close(go[0]);
    (void)tci_close(s.owner);
    (void)tci_close(s.gate);
    for (size_t i = 0; i < detached; i++)
        (void)tci_close(mounts[i]);
    free(argv);
    return r;
}

/* A function's process is not born under the tracer's eyes, and shares no terminal with the host. */
static int check_function(const struct tc_io *io, struct tc_error *reterr)
{
    if (!io->function || (!io->traced && !io->terminal))
        return 0;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "a function of this process cannot be %s",
                  io->traced ? "traced" : "given a terminal");
    tci_error_remedy(reterr, "leave %s out, or make the handler a shared object",
                     io->traced ? "TC_REQUEST_EXPLAIN_DENIALS" : "TC_REQUEST_TERMINAL");
    return -1;
}

int tci_native_start(struct tc_plan *plan, const struct tc_io *io, struct tc_run **ret,
                     struct tc_error *reterr)
{
    struct tc_run *run;
    if (check_function(io, reterr) < 0)
        return -1;
    run = calloc(1, sizeof *run);
    if (!run)
        return tci_error_no_memory(reterr);
    run->plan = plan;
    run->hold = io->hold;
    run->pidfd = run->report = run->go = run->epoll = -1;
    tci_watch_init(&run->watch, false);
    memcpy(run->id, "tc-", 3);
    if (tci_random_hex(8, run->id + 3) < 0) {
        tci_error_errno(reterr, errno, "taking random numbers");
        tci_native_destroy(run);
        return -1;
    }
    if ((plan->use_cgroup &&
         tci_cgroup_make(plan->cgroups, run->id, &plan->cgroup_limits, &run->cgroup, reterr) < 0) ||
        spawn(run, io, reterr) < 0 || map_ids(run, reterr) < 0 || watch_all(run, reterr) < 0) {
        tci_native_destroy(run);
        return -1;
    }
    /* While the cage is being built. */
    tci_native_bury(plan, false);
    *ret = run;
    return 0;
}
