/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a child born in its group and a group killed by one write: both version 2 only. Uses a
 * group of our own making, below our own, with the probe's unique name.
 */
#include "backend/probe_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char REMEDY_V2[] = "optional: boot with control groups version 2 "
                                "(systemd.unified_cgroup_hierarchy=1)";
static const char REMEDY_CLONE[] = "optional: use Linux 5.7 or newer";
static const char REMEDY_KILL[] = "optional: use Linux 5.14 or newer";

static void neither(const struct tci_probe *p, int problem)
{
    static const enum tci_feature ids[] = { TCI_FEATURE_CGROUP_CLONE, TCI_FEATURE_CGROUP_KILL };
    for (size_t i = 0; i < tci_array_size(ids); i++) {
        if (problem == ENOENT)
            tci_probe_no(p, ids[i], REMEDY_V2, "no version 2 hierarchy");
        else
            tci_cgroup_not_seen(p, ids[i], problem);
    }
}

/* No group to try either in. */
static void no_group(const struct tci_probe *p, int problem)
{
    tci_probe_refused(p, TCI_FEATURE_CGROUP_CLONE, "optional: see cgroup_memory", "making a group",
                      problem);
    tci_probe_failed(p, TCI_FEATURE_CGROUP_KILL, "see cgroup_clone", problem,
                     "no group to try it on: %s", strerrordesc_np(problem));
}

/* Writes to cgroup.kill and looks how the child in the group dies. Reaps it in any case. */
static void try_kill(const struct tci_probe *p, int group, pid_t pid)
{
    const enum tci_feature id = TCI_FEATURE_CGROUP_KILL;
    int status = 0, problem = tci_probe_write_file(group, "cgroup.kill", "1");
    if (problem)
        (void)kill(pid, SIGTERM); /* told apart from the SIGKILL of the group */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!problem && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        tci_probe_yes(p, id, "a group was killed");
    else if (problem == ENOENT)
        tci_probe_no(p, id, REMEDY_KILL, "no such file in a group");
    else if (problem)
        tci_probe_refused(p, id, REMEDY_KILL, "cgroup.kill", problem);
    else
        tci_probe_unknown(p, id, REMEDY_KILL, "unexpected: the group lives on");
}

static void try_clone(const struct tci_probe *p, int group)
{
    const enum tci_feature id = TCI_FEATURE_CGROUP_CLONE;
    struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
    int problem;
    pid_t pid;
    args.cgroup = (unsigned)group;
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    if (pid > 0) {
        tci_probe_yes(p, id, "a child was born in its group");
        try_kill(p, group, pid);
        return;
    }
    problem = errno;
    if (problem == E2BIG)
        tci_probe_no(p, id, REMEDY_CLONE, "clone3 does not know of groups");
    else
        tci_probe_refused(p, id, REMEDY_CLONE, "clone3", problem);
    tci_probe_failed(p, TCI_FEATURE_CGROUP_KILL, "see cgroup_clone", problem,
                     "no child to try it on: %s", strerrordesc_np(problem));
}

void tci_cgroup_try_clone(const struct tci_probe *p)
{
    struct tci_cgroup_place place;
    int own, group, problem = tci_cgroup_find(NULL, &place);
    if (problem) {
        neither(p, problem);
        return;
    }
    own = open(place.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0 || mkdirat(own, p->unique, 0755) < 0) {
        no_group(p, errno);
        return;
    }
    group = openat(own, p->unique, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group >= 0)
        try_clone(p, group);
    else
        no_group(p, errno);
    tci_cgroup_remove(own, p->unique);
}
