/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one cage from start to end, on the supervisor's side. It holds a pidfd of init, the pipe on
 * which init reports, and the control group. Nothing is concluded from a signal number or an exit
 * code: limits are judged by what the kernel counted.
 *
 * The end: init dies, and with it its pid namespace. Without one (process) its process group is
 * killed as well; nobody can have left it. A supervisor that dies needs to do nothing: init watches.
 */
#include "backend/native/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/uuid.h"

enum { look_ns = 5000000, end_ms = 5000, argv_max = 65536, dying_max = 32 };

static const char *const step_texts[] = {
#define X(id, text) text,
    TCI_INIT_STEPS(X)
#undef X
};

/* ---- start --------------------------------------------------------------------------------------- */

static int watch(struct tc_run *run, int fd, uint32_t events, struct tc_error *reterr)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    if (fd >= 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return tci_error_errno(reterr, errno, "watching a cage");
    return 0;
}

static int start_timer(struct tc_run *run, struct tc_error *reterr)
{
    const struct timespec interval = { .tv_nsec = look_ns };
    if (run->timer >= 0)
        return 0;
    run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer < 0 ||
        timerfd_settime(run->timer, 0, &(struct itimerspec){ interval, interval }, NULL) < 0)
        return tci_error_errno(reterr, errno, "making a timer");
    return watch(run, run->timer, EPOLLIN, reterr);
}

static int watch_all(struct tc_run *run, struct tc_error *reterr)
{
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll < 0)
        return tci_error_errno(reterr, errno, "watching a cage");
    if (run->plan->watch_disk && !(run->disk = tci_disk_watch_new()))
        return tci_error_no_memory(reterr);
    if ((run->plan->watch_cpu || run->plan->watch_disk) && start_timer(run, reterr) < 0)
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

/* A byte for init, which may be dead: that must not raise SIGPIPE in a host that did nothing wrong. */
static int write_go(const struct tc_run *run, const char *byte)
{
    const struct timespec now = { 0 };
    sigset_t pipe_only, before, pending;
    ssize_t n;
    bool was_pending;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    n = write(run->go, byte, 1);
    if (n < 0 && errno == EPIPE && !was_pending)
        (void)sigtimedwait(&pipe_only, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n == 1 ? 0 : -1;
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
    return write_go(run, "g") < 0 ? tci_error_errno(reterr, errno, "letting the cage go on") : 0;
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
    run->pidfd = run->report = run->go = run->epoll = run->timer = -1;
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

/* ---- step ---------------------------------------------------------------------------------------- */

static void read_reports(struct tc_run *run)
{
    struct tci_init_report r;
    ssize_t n = 0;
    while (run->report >= 0 && (n = read(run->report, &r, sizeof r)) == (ssize_t)sizeof r) {
        if (r.magic != TCI_INIT_MAGIC)
            continue;
        if (r.end == TCI_INIT_STARTED)
            run->group = r.status;
        else if (!run->last.end)
            run->last = r; /* the first one counts */
    }
    if (n != 0 || run->report < 0)
        return;
    /* Nobody is left to write. A child of another thread may have a copy of our end until its execve:
     * closing alone would not take it out of the epoll. */
    if (run->epoll >= 0)
        (void)epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->report, NULL);
    run->report = tci_close(run->report);
}

/* The first child of a process, or 0. */
static int child_of(int pid)
{
    char path[64], text[32] = "";
    ssize_t n;
    int fd;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    (void)tci_close(fd);
    return n > 0 ? (int)strtol(text, NULL, 10) : 0;
}

/* Without a group there is one process, which starts no other: its own clock is enough. RLIMIT_CPU
 * counts whole seconds only. */
static uint64_t cpu_ms(const struct tc_run *run)
{
    struct timespec used;
    clockid_t clock;
    int pid;
    if (run->cgroup && tci_cgroups_has(run->plan->cgroups) & TCI_CGROUP_HAS_CPU_USAGE)
        return tci_cgroup_cpu_us(run->cgroup) / 1000;
    pid = run->group ? run->group : child_of(run->pid);
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

static void look(struct tc_run *run)
{
    const struct tci_settings *s = run->plan->spec.settings;
    uint64_t ticks;
    if (run->timer < 0 || read(run->timer, &ticks, sizeof ticks) != (ssize_t)sizeof ticks)
        return;
    if (run->plan->watch_cpu && cpu_ms(run) >= s->cpu_time)
        run->hit |= TCI_HIT_CPU;
    if (run->disk) {
        uint64_t written = tci_disk_watch_look(run->disk, run->pid);
        if (written > run->written)
            run->written = written;
        if (written > s->disk)
            run->hit |= TCI_HIT_DISK;
    }
    if (run->hit & (TCI_HIT_CPU | TCI_HIT_DISK))
        tci_native_kill(run);
}

/* Memory ran out. Version 1 of control groups says so a moment before it kills, kills one process
 * and lets the rest go on: we look again until it has happened, and end the rest. */
static void heed_group(struct tc_run *run)
{
    struct pollfd p = { .fd = run->cgroup ? run->cgroup->events : -1,
                        .events = run->cgroup ? run->cgroup->events_mask : (short)0 };
    if (p.fd < 0 || run->hit & TCI_HIT_MEMORY || (!run->starving && poll(&p, 1, 0) <= 0))
        return;
    run->starving = true;
    if (tci_cgroup_look(run->cgroup)) {
        run->hit |= TCI_HIT_MEMORY;
        tci_native_kill(run);
    } else {
        (void)start_timer(run, NULL);
    }
}

/* Is init gone? Then so is everybody in its pid namespace. Who waits for all children of the process
 * (waitpid(-1)) may have collected it before us. */
static bool has_ended(struct tc_run *run)
{
    struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
    siginfo_t info = { 0 };
    if (run->ended || poll(&p, 1, 0) <= 0)
        return run->ended;
    while (waitid(P_PIDFD, (id_t)run->pidfd, &info, WEXITED | WNOHANG) < 0 && errno == EINTR)
        ;
    run->ended = true;
    if (!run->plan->is_jail && run->last.end != TCI_INIT_ENDED)
        tci_native_kill(run); /* init did not live to do it */
    return true;
}

static void describe_failure(const struct tc_run *run, struct tc_error *reterr)
{
    const struct tci_init_report *r = &run->last;
    const struct tc_plan *plan = run->plan;
    const char *step = r->step < tci_array_size(step_texts) ? step_texts[r->step] : "?";
    const char *what = "", *from = "";
    if (r->step >= TCI_INIT_STEP_MOUNT_POINT && r->step <= TCI_INIT_STEP_ATTRIBUTES &&
        r->item < plan->mounts.count) {
        what = plan->mounts.items[r->item].target - 1;
        from = plan->mounts.items[r->item].host ? plan->mounts.items[r->item].host : "";
    } else if (r->step == TCI_INIT_STEP_RULESET && r->item < plan->rules.count) {
        what = plan->rules.items[r->item].path;
    }
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the cage could not be built: %s%s%.200s%s%.200s%s: %s", step, *what ? " " : "",
                  what, *from ? " (from " : "", from, *from ? ")" : "",
                  strerrordesc_np(r->status) ? strerrordesc_np(r->status) : "unknown error");
    if (r->step == TCI_INIT_STEP_MOUNT_CHANGED)
        tci_error_remedy(reterr, "find out who exchanged it, and call again");
    else if (r->step == TCI_INIT_STEP_GATE)
        tci_error_remedy(reterr, "see gate_local_route and gate_redirect in \"toolcage doctor\"");
    else
        tci_error_remedy(reterr, "see \"toolcage doctor\"");
}

static int set_outcome(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    const struct tci_init_report *r = &run->last;
    ret->finished = true;
    ret->hit = run->hit;
    switch (r->end) {
    case TCI_INIT_ENDED:
        ret->end = WIFEXITED(r->status) ? TCI_END_EXITED : TCI_END_SIGNALED;
        ret->status = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : WTERMSIG(r->status);
        return 0;
    case TCI_INIT_NOT_STARTED:
        ret->end = TCI_END_NOT_STARTED;
        ret->status = r->status;
        return 0;
    case TCI_INIT_BROKEN:
        ret->end = TCI_END_BROKEN;
        describe_failure(run, reterr);
        return 0;
    default:
        /* Killed by us, or by the kernel together with its tree. */
        ret->end = run->killed || run->hit ? TCI_END_SIGNALED : TCI_END_BROKEN;
        ret->status = SIGKILL;
        if (ret->end == TCI_END_BROKEN)
            tci_error_set(reterr, TC_ERROR_INTERNAL, "the cage's init was killed by somebody else");
        return 0;
    }
}

static void add_usage(struct tc_run *run, struct tc_outcome *ret)
{
    const struct tci_settings *s = run->plan->spec.settings;
    const struct tci_init_report *r = &run->last;
    struct tci_cgroup_usage group = { 0 };
    struct tc_usage *usage = &ret->usage;
    bool has_group = run->cgroup && tci_cgroup_usage(run->cgroup, &group, NULL) == 0;
    usage->cpu_us = group.cpu_us ? group.cpu_us : r->cpu_us;
    usage->memory_peak_bytes = group.memory_peak ? group.memory_peak : r->memory_peak;
    usage->processes_peak = group.pids_peak > 1 ? group.pids_peak - 1 : 0; /* without init */
    usage->bytes_written = r->bytes_written > run->written ? r->bytes_written : run->written;
    if (has_group && group.oom_kills)
        ret->hit |= TCI_HIT_MEMORY;
    if (has_group && group.pids_refused)
        ret->hit |= TCI_HIT_PIDS;
    if (s->cpu_time != TCI_UNLIMITED && usage->cpu_us / 1000 >= s->cpu_time)
        ret->hit |= TCI_HIT_CPU;
    if (run->plan->watch_disk && usage->bytes_written > s->disk)
        ret->hit |= TCI_HIT_DISK;
    /* The kernel's own word for "this file grew beyond the limit"; anybody can say it, so that
     * something must have been written, too. */
    if (run->plan->watch_disk && usage->bytes_written && r->end == TCI_INIT_ENDED &&
        WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGXFSZ)
        ret->hit |= TCI_HIT_DISK;
}

int tci_native_step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    bool over;
    memset(ret, 0, sizeof *ret);
    if (run->gate)
        tci_gate_step(run->gate);
    heed_group(run);
    look(run);
    over = has_ended(run);
    read_reports(run);
    /* Everything but init has ended when it reports; it is held for the files, or about to leave. */
    if (!over && !run->last.end)
        return 0;
    if (run->gate && !run->killed && !tci_gate_finish(run->gate)) {
        /* A dead init stays readable: nobody is to be woken by it again and again meanwhile. */
        if (run->ended)
            (void)epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->pidfd, NULL);
        return start_timer(run, reterr);
    }
    if (run->gate)
        tci_gate_close(run->gate);
    add_usage(run, ret);
    run->hit |= ret->hit;
    return set_outcome(run, ret, reterr);
}

/* ---- end ----------------------------------------------------------------------------------------- */

void tci_native_kill(struct tc_run *run)
{
    /* A last look: nobody will be there to be asked, and init will not report. */
    if (run->disk && !run->killed && !run->ended) {
        uint64_t written = tci_disk_watch_look(run->disk, run->pid);
        run->written = written > run->written ? written : run->written;
    }
    run->killed = true;
    if (run->pidfd >= 0 && !run->ended)
        (void)syscall(SYS_pidfd_send_signal, run->pidfd, SIGKILL, NULL, 0);
    if (run->plan->is_jail)
        return; /* the kernel ends the namespace with its init */
    if (run->cgroup)
        tci_cgroup_kill(run->cgroup, 0);
    read_reports(run);
    if (run->group > 1 && run->last.end != TCI_INIT_ENDED)
        (void)kill(-run->group, SIGKILL);
}

static void release(struct tc_run *run)
{
    if (run->cgroup && !run->plan->is_jail)
        tci_cgroup_kill(run->cgroup, end_ms);
    tci_cgroup_free(run->cgroup);
    tci_disk_watch_free(run->disk);
    (void)tci_close(run->pidfd);
    (void)tci_close(run->report);
    (void)tci_close(run->timer);
    (void)tci_close(run->epoll);
    free(run);
}

static void wait_for_end(struct tc_run *run)
{
    struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
    if (run->pidfd < 0 || has_ended(run))
        return;
    if (run->last.end != TCI_INIT_ENDED)
        tci_native_kill(run);
    if (poll(&p, 1, end_ms) == 0)
        tci_native_kill(run);
    while (!has_ended(run) && poll(&p, 1, end_ms) != 0)
        ;
}

/*
 * After its report, init has nothing left to do but to end, and the kernel takes its namespaces apart
 * meanwhile. Nobody waits for that: the next call, or the end of the plan, collects it.
 */
void tci_native_bury(struct tc_plan *plan, bool wait)
{
    struct tc_run **at, *run, *gone = NULL;
    size_t count = 0;
    (void)pthread_mutex_lock(&plan->lock);
    for (at = &plan->dying; (run = *at) != NULL;) {
        if (wait || ++count > dying_max || has_ended(run)) {
            *at = run->next;
            run->next = gone;
            gone = run;
        } else {
            at = &run->next;
        }
    }
    (void)pthread_mutex_unlock(&plan->lock);
    while ((run = gone) != NULL) {
        gone = run->next;
        wait_for_end(run);
        release(run);
    }
}

void tci_native_destroy(struct tc_run *run)
{
    struct tc_plan *plan;
    if (!run)
        return;
    plan = run->plan;
    /* Who is held may leave. A byte, because a child of the host may have the pipe open as well. */
    if (run->go >= 0 && run->hold)
        (void)write_go(run, "h");
    run->go = tci_close(run->go);
    tci_gate_free(run->gate);
    run->gate = NULL;
    if (run->pidfd >= 0 && !run->ended && run->last.end == TCI_INIT_ENDED && !has_ended(run)) {
        (void)pthread_mutex_lock(&plan->lock);
        run->next = plan->dying;
        plan->dying = run;
        (void)pthread_mutex_unlock(&plan->lock);
        return;
    }
    wait_for_end(run);
    release(run);
}

/* ---- the small ones ------------------------------------------------------------------------------- */

const struct tci_gate_record *tci_native_network(const struct tc_run *run, size_t *ret_count,
                                                 uint64_t *ret_dropped)
{
    *ret_count = 0;
    *ret_dropped = 0;
    return run->gate ? tci_gate_records(run->gate, ret_count, ret_dropped) : NULL;
}

int tci_native_fd(const struct tc_run *run)
{
    return run->epoll;
}

int tci_native_pid(const struct tc_run *run)
{
    return run->pid;
}

void tci_native_go(struct tc_run *run)
{
    (void)write_go(run, "w");
}

const char *tci_native_layers(const struct tc_run *run)
{
    return run->plan->layers;
}

const char *tci_native_sandbox_id(const struct tc_run *run)
{
    return run->id;
}

/* Beneath the cage's own root, which its init keeps: links inside it cannot lead out. */
int tci_native_open_directory(const struct tc_run *run, const char *path, struct tc_error *reterr)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
    char root_path[64];
    tc_cleanup(tci_closep) int root = -1;
    int fd;
    (void)snprintf(root_path, sizeof root_path, "/proc/%d/root", run->pid);
    root = open(run->plan->is_jail ? root_path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* Still alive after it was opened: so it was init's, and not of somebody who got its number. */
    if (root >= 0 && run->plan->is_jail && (run->ended || poll(&p, 1, 0) != 0)) {
        errno = ESRCH;
        root = tci_close(root);
    }
    if (root < 0)
        return tci_error_errno(reterr, errno, "opening the cage's root");
    fd = (int)syscall(SYS_openat2, root, path[1] ? path + 1 : ".", &how, sizeof how);
    return fd < 0 ? tci_error_errno(reterr, errno, "opening %.300s in the cage", path) : fd;
}
