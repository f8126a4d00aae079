/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one cage while it runs, on the supervisor's side. It holds a pidfd of init, the pipe on
 * which init reports, and the control group. Nothing is concluded from a signal number or an exit
 * code: limits are judged by what the kernel counted. Its start is in run_start.c, its end in
 * run_end.c.
 */
#include "backend/native/run_internal.h"

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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/sigpipe.h"

static const char *const step_texts[] = {
#define X(id, text) text,
    TCI_INIT_STEPS(X)
#undef X
};

/* ---- init -------------------------------------------------------------------------------------- */

/* A byte for init, which may be dead: that must not raise SIGPIPE in a host that did nothing wrong. */
int tci_native_tell(const struct tc_run *run, const char *byte)
{
    struct tci_sigpipe held;
    ssize_t n;
    tci_sigpipe_hold(&held);
    n = write(run->go, byte, 1);
    tci_sigpipe_release(&held, n != 1);
    return n == 1 ? 0 : -1;
}

void tci_native_read_reports(struct tc_run *run)
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

/* ---- step -------------------------------------------------------------------------------------- */

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
    if (tci_watch_memory(&run->watch, run->cgroup, run->epoll))
        tci_native_kill(run);
    if (!tci_watch_ticked(&run->watch))
        return;
    if (run->plan->watch_cpu && cpu_ms(run) >= s->cpu_time)
        run->watch.hit |= TCI_HIT_CPU;
    tci_watch_written(&run->watch, run->pid);
    if (tci_watch_reached(&run->watch, s))
        tci_native_kill(run);
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
    ret->hit = run->watch.hit;
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
        ret->end = run->killed || run->watch.hit ? TCI_END_SIGNALED : TCI_END_BROKEN;
        ret->status = SIGKILL;
        if (ret->end == TCI_END_BROKEN)
            tci_error_set(reterr, TC_ERROR_INTERNAL, "the cage's init was killed by somebody else");
        return 0;
    }
}

static void add_usage(struct tc_run *run, struct tc_outcome *ret)
{
    const struct tci_init_report *r = &run->last;
    const struct tci_watch_said said = { .cpu_us = r->cpu_us,
                                         .memory_peak = r->memory_peak,
                                         .bytes_written = r->bytes_written,
                                         .has_ended = r->end == TCI_INIT_ENDED,
                                         .status = r->status };
    tci_watch_usage(&run->watch, run->plan->spec.settings, run->cgroup, &said, ret);
}

int tci_native_step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    bool over;
    memset(ret, 0, sizeof *ret);
    if (run->gate)
        tci_gate_step(run->gate);
    look(run);
    over = tci_native_has_ended(run);
    tci_native_read_reports(run);
    /* Everything but init has ended when it reports; it is held for the files, or about to leave. */
    if (!over && !run->last.end)
        return 0;
    if (run->gate && !run->killed && !tci_gate_finish(run->gate)) {
        /* A dead init stays readable: nobody is to be woken by it again and again meanwhile. */
        if (run->ended)
            (void)epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->pidfd, NULL);
        return tci_watch_timer(&run->watch, run->epoll, reterr);
    }
    if (run->gate)
        tci_gate_close(run->gate);
    add_usage(run, ret);
    run->watch.hit |= ret->hit;
    return set_outcome(run, ret, reterr);
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
    (void)tci_native_tell(run, "w");
}

const char *tci_native_layers(const struct tc_run *run)
{
    return run->plan->layers;
}

const char *tci_native_sandbox_id(const struct tc_run *run)
{
    return run->id;
}

/* Otherwise it was us. */
struct tci_file_reader tci_native_reader(const struct tc_run *run)
{
    return (struct tci_file_reader){ .is_known = run->plan->is_jail && run->plan->is_root,
                                     .uid = TCI_JAIL_HOST_ID,
                                     .gid = TCI_JAIL_HOST_ID };
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
