/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the namespaces other than the user namespace, each made for real in a throw-away child:
 * inside a user namespace where there is one, else with the privileges the process has.
 */
#include "backend/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static const struct {
    enum tci_feature id;
    int flag;
    const char *kernel, *maximum;
} namespaces[] = {
    { TCI_FEATURE_IPC_NAMESPACE, CLONE_NEWIPC, "CONFIG_IPC_NS", "user.max_ipc_namespaces" },
    { TCI_FEATURE_UTS_NAMESPACE, CLONE_NEWUTS, "CONFIG_UTS_NS", "user.max_uts_namespaces" },
    { TCI_FEATURE_NET_NAMESPACE, CLONE_NEWNET, "CONFIG_NET_NS", "user.max_net_namespaces" },
    { TCI_FEATURE_CGROUP_NAMESPACE, CLONE_NEWCGROUP, "CONFIG_CGROUPS",
      "user.max_cgroup_namespaces" },
    { TCI_FEATURE_TIME_NAMESPACE, CLONE_NEWTIME, "CONFIG_TIME_NS (Linux 5.6)",
      "user.max_time_namespaces" },
};

static const char REMEDY_CAPABILITIES[] = "see user_namespaces, or run toolcage as root";
static const char REMEDY_PROC[] =
    "the container hides parts of /proc: start it with --security-opt systempaths=unconfined "
    "(Docker) or --security-opt unmask=ALL (Podman), or run toolcage outside of it";

/* The value of "user.max_net_namespaces" and the like. */
static long maximum_now(const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/sys/user/%s", name + strlen("user."));
    return tci_probe_sysctl(path);
}

static void refused(const struct tci_probe *p, enum tci_feature id, int problem, const char *kernel,
                    const char *maximum)
{
    char remedy[TCI_FEATURE_REMEDY_MAX];
    if (problem == ENOSPC || problem == EUSERS)
        (void)snprintf(remedy, sizeof remedy, "sudo sysctl -w %s=15000", maximum);
    else if (problem == EINVAL)
        (void)snprintf(remedy, sizeof remedy, "use a kernel built with %s", kernel);
    else
        (void)snprintf(remedy, sizeof remedy,
                       "run toolcage outside of this container, or allow "
                       "unshare in its seccomp profile");
    if (problem == ENOSPC || problem == EUSERS)
        tci_probe_no(p, id, remedy, "refused: %s is %ld", maximum, maximum_now(maximum));
    else
        tci_probe_refused(p, id, remedy, "unshare", problem);
}

/* As process 1 of the new pid namespace: is it one, and may it see itself in a proc of its own? */
static void as_init(const struct tci_probe *p)
{
    if (getpid() != 1) {
        tci_probe_unknown(p, TCI_FEATURE_PID_NAMESPACE, NULL, "the first process is not number 1");
        return;
    }
    tci_probe_yes(p, TCI_FEATURE_PID_NAMESPACE, "made");
    /* Private first: as root without a user namespace the mount would reach the host. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        tci_probe_unknown(p, TCI_FEATURE_MOUNT_PROC, NULL, "could not make mounts private: %s",
                          strerrordesc_np(errno));
    else if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
        tci_probe_yes(p, TCI_FEATURE_MOUNT_PROC, "mounted in a new pid namespace");
    else
        tci_probe_refused(p, TCI_FEATURE_MOUNT_PROC, REMEDY_PROC, "mount", errno);
}

static void pid_namespace(const struct tci_probe *p)
{
    pid_t pid;
    if (unshare(CLONE_NEWPID) < 0) {
        int problem = errno;
        refused(p, TCI_FEATURE_PID_NAMESPACE, problem, "CONFIG_PID_NS", "user.max_pid_namespaces");
        tci_probe_failed(p, TCI_FEATURE_MOUNT_PROC, "see pid_namespace", problem,
                         "no pid namespace: %s", strerrordesc_np(problem));
        return;
    }
    pid = tci_probe_fork();
    if (pid == 0) {
        as_init(p);
        _exit(0);
    }
    if (pid < 0)
        tci_probe_refused(p, TCI_FEATURE_PID_NAMESPACE, NULL, "the first process", errno);
    else
        (void)tci_probe_wait(pid);
}

void tci_probe_other_namespaces(const struct tci_probe *p)
{
    static const enum tci_feature others[] = { TCI_FEATURE_MOUNT_NAMESPACE,
                                               TCI_FEATURE_PID_NAMESPACE, TCI_FEATURE_MOUNT_PROC };
    char why[TCI_FEATURE_DETAIL_MAX];
    /* This makes the mount namespace, too. */
    int problem = tci_probe_gain_capabilities(why, sizeof why);
    if (problem) {
        for (size_t i = 0; i < tci_array_size(others); i++)
            tci_probe_failed(p, others[i], REMEDY_CAPABILITIES, problem, "%s", why);
        for (size_t i = 0; i < tci_array_size(namespaces); i++)
            tci_probe_failed(p, namespaces[i].id, REMEDY_CAPABILITIES, problem, "%s", why);
        return;
    }
    tci_probe_yes(p, TCI_FEATURE_MOUNT_NAMESPACE, "made");
    for (size_t i = 0; i < tci_array_size(namespaces); i++) {
        if (unshare(namespaces[i].flag) == 0)
            tci_probe_yes(p, namespaces[i].id, "made");
        else
            refused(p, namespaces[i].id, errno, namespaces[i].kernel, namespaces[i].maximum);
    }
    pid_namespace(p);
}

void tci_probe_privileged(const struct tci_probe *p)
{
    if (unshare(CLONE_NEWNS) == 0)
        tci_probe_yes(p, TCI_FEATURE_PRIVILEGED, "user %u may make mounts", geteuid());
    else if (errno == EPERM)
        tci_probe_no(p, TCI_FEATURE_PRIVILEGED, "not needed where user_namespaces is there",
                     "user %u has no CAP_SYS_ADMIN", geteuid());
    else
        tci_probe_unknown(p, TCI_FEATURE_PRIVILEGED, NULL, "unexpected: %s",
                          strerrordesc_np(errno));
}
