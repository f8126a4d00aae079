/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the end of one cage. Init dies, and with it its pid namespace. Without one (process) its
 * process group is killed as well; nobody can have left it. A supervisor that dies needs to do
 * nothing: init watches.
 */
#include "backend/native/run_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"

enum { end_ms = 5000, dying_max = 32 };

/* Is init gone? Then so is everybody in its pid namespace. Who waits for all children of the process
 * (waitpid(-1)) may have collected it before us. */
bool tci_native_has_ended(struct tc_run *run)
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

void tci_native_kill(struct tc_run *run)
{
    /* A last look: nobody will be there to be asked, and init will not report. */
    if (!run->killed && !run->ended)
        tci_watch_written(&run->watch, run->pid);
    run->killed = true;
    if (run->pidfd >= 0 && !run->ended)
        (void)syscall(SYS_pidfd_send_signal, run->pidfd, SIGKILL, NULL, 0);
    if (run->plan->is_jail)
        return; /* the kernel ends the namespace with its init */
    if (run->cgroup)
        tci_cgroup_kill(run->cgroup, 0);
    tci_native_read_reports(run);
    if (run->group > 1 && run->last.end != TCI_INIT_ENDED)
        (void)kill(-run->group, SIGKILL);
}

static void release(struct tc_run *run)
{
    if (run->cgroup && !run->plan->is_jail)
        tci_cgroup_kill(run->cgroup, end_ms);
    tci_cgroup_free(run->cgroup);
    tci_watch_end(&run->watch);
    (void)tci_close(run->pidfd);
    (void)tci_close(run->report);
    (void)tci_close(run->epoll);
    free(run);
}

static void wait_for_end(struct tc_run *run)
{
    struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
    if (run->pidfd < 0 || tci_native_has_ended(run))
        return;
    if (run->last.end != TCI_INIT_ENDED)
        tci_native_kill(run);
    if (poll(&p, 1, end_ms) == 0)
        tci_native_kill(run);
    while (!tci_native_has_ended(run) && poll(&p, 1, end_ms) != 0)
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
        if (wait || ++count > dying_max || tci_native_has_ended(run)) {
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
        (void)tci_native_tell(run, "h");
    run->go = tci_close(run->go);
    tci_gate_free(run->gate);
    run->gate = NULL;
    if (run->pidfd >= 0 && !run->ended && run->last.end == TCI_INIT_ENDED &&
        !tci_native_has_ended(run)) {
        (void)pthread_mutex_lock(&plan->lock);
        run->next = plan->dying;
        plan->dying = run;
        (void)pthread_mutex_unlock(&plan->lock);
        return;
    }
    wait_for_end(run);
    release(run);
}
