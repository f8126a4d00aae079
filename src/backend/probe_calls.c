/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: single system calls that toolcage builds on. Old kernels lack them; the filters of some
 * containers answer ENOSYS or EPERM for them on new kernels, which is why they are tried.
 */
#include "backend/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* One wording for all: what failed, and whether a container's filter is the likely reason. */
static void refused(const struct tci_probe *p, enum tci_feature id, int problem, const char *since)
{
    const char *remedy = since;
    if (tci_probe_is_filtered())
        remedy = "run toolcage outside of this container, or give the container a seccomp profile "
                 "that allows the call";
    tci_probe_refused(p, id, remedy, tci_feature_name(id), problem);
}

static void kernel(const struct tci_probe *p)
{
    struct utsname u;
    if (uname(&u) < 0)
        tci_probe_unknown(p, TCI_FEATURE_KERNEL, NULL, "uname: %s", strerrordesc_np(errno));
    else
        tci_probe_yes(p, TCI_FEATURE_KERNEL, "%.20s %.80s %.20s", u.sysname, u.release, u.machine);
}

/* A handle for a child, and waiting through it. */
static void pidfd(const struct tci_probe *p)
{
    static const char since[] = "use Linux 5.4 or newer";
    siginfo_t info = { 0 };
    pid_t pid = tci_probe_fork();
    int fd;
    if (pid == 0)
        _exit(7);
    if (pid < 0) {
        tci_probe_unknown(p, TCI_FEATURE_PIDFD, NULL, "fork: %s", strerrordesc_np(errno));
        return;
    }
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        refused(p, TCI_FEATURE_PIDFD, errno, since);
        (void)tci_probe_wait(pid);
        return;
    }
    if (waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED) < 0) {
        /* EINVAL: Linux 5.3 opens handles and cannot wait for them. */
        tci_probe_no(p, TCI_FEATURE_PIDFD, since, "waiting refused: %s", strerrordesc_np(errno));
        (void)tci_probe_wait(pid);
    } else if (info.si_status != 7) {
        tci_probe_unknown(p, TCI_FEATURE_PIDFD, NULL, "wrong exit status from a handle");
    } else {
        tci_probe_yes(p, TCI_FEATURE_PIDFD, "opened and waited for");
    }
    (void)close(fd);
}

static void clone3(const struct tci_probe *p)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(7);
    if (pid < 0)
        refused(p, TCI_FEATURE_CLONE3, errno, "use Linux 5.3 or newer");
    else if (tci_probe_wait(pid) != 7)
        tci_probe_unknown(p, TCI_FEATURE_CLONE3, NULL, "a child did not run as it should");
    else
        tci_probe_yes(p, TCI_FEATURE_CLONE3, "a child ran");
}

/* The point of openat2 is what it refuses: leaving the directory. */
static void openat2(const struct tci_probe *p)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, ".", &how, sizeof how);
    if (fd < 0 || (syscall(SYS_openat2, fd, "..", &how, sizeof how) < 0 && errno != EXDEV)) {
        refused(p, TCI_FEATURE_OPENAT2, errno, "use Linux 5.6 or newer");
    } else if (syscall(SYS_openat2, fd, "..", &how, sizeof how) >= 0) {
        tci_probe_no(p, TCI_FEATURE_OPENAT2, "use Linux 5.6 or newer", "a path left its directory");
    } else {
        tci_probe_yes(p, TCI_FEATURE_OPENAT2, "a path that left its directory was refused");
    }
    if (fd >= 0)
        (void)close(fd);
    if (root >= 0)
        (void)close(root);
}

static void close_range_call(const struct tci_probe *p)
{
    int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        tci_probe_refused(p, TCI_FEATURE_CLOSE_RANGE, NULL, "dup", errno);
        return;
    }
    if (syscall(SYS_close_range, (unsigned)fd, (unsigned)fd, 0U) < 0) {
        refused(p, TCI_FEATURE_CLOSE_RANGE, errno, "use Linux 5.9 or newer");
        (void)close(fd);
    } else if (fcntl(fd, F_GETFD) >= 0) {
        tci_probe_no(p, TCI_FEATURE_CLOSE_RANGE, "use Linux 5.9 or newer", "nothing was closed");
    } else {
        tci_probe_yes(p, TCI_FEATURE_CLOSE_RANGE, "a descriptor was closed");
    }
}

void tci_probe_calls(const struct tci_probe *p)
{
    kernel(p);
    pidfd(p);
    clone3(p);
    openat2(p);
    close_range_call(p);
}
