/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to make namespaces (nested ones bring back all capabilities inside, and with them
 * most of the kernel's bugs), to join those of the host, and to get privileges. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attempt.h"

static int unshare_user(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(unshare(CLONE_NEWUSER), "unshare a user namespace");
}

static int unshare_each(int argc, char **argv)
{
    static const int kinds[] = { CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET, CLONE_NEWIPC,
                                 CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME };
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (unshare(kinds[i]) == 0)
            return escaped("unshare with flag %#x", (unsigned)kinds[i]);
    }
    return held("unshare of each kind of namespace");
}

static int finish_child(long pid, const char *how)
{
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return held("%s", how);
    waitpid((pid_t)pid, NULL, 0);
    return escaped("%s", how);
}

static int clone_user(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return finish_child(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL),
                        "clone with a user namespace");
}

/* The flags are behind a pointer, where a filter cannot look: the whole call must be refused. */
static int clone3_user(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    return finish_child(syscall(SYS_clone3, &args, sizeof(args)), "clone3 with a user namespace");
}

/* Flags beyond 32 bits: a filter that compares half of the register lets them pass. */
static int clone_high_bits(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    unsigned long flags = (unsigned long)CLONE_NEWUSER | SIGCHLD | 1UL << 40;
    return finish_child(syscall(SYS_clone, flags, NULL, NULL, NULL, NULL),
                        "clone with a user namespace and high bits");
}

static int set_namespace(int argc, char **argv)
{
    static const char *const kinds[] = { "user", "mnt", "net", "pid", "ipc", "uts" };
    int last = ENOENT;
    (void)argc;
    for (int who = 0; who < 2; who++) {
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            char path[64];
            snprintf(path, sizeof(path), "/proc/%s/ns/%s", who ? "1" : argv[0], kinds[i]);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0 && setns(fd, 0) == 0)
                return escaped("joined %s", path);
            last = errno;
            if (fd >= 0)
                close(fd);
        }
    }
    errno = last;
    return held("join a namespace of process %s or 1", argv[0]);
}

static int set_namespace_pidfd(int argc, char **argv)
{
    (void)argc;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)number(argv[0]), 0);
    if (fd < 0)
        return held("pidfd_open");
    return judge(setns(fd, CLONE_NEWNET), "joined the network of a process by its pidfd");
}

static int set_namespace_fd(int argc, char **argv)
{
    (void)argc;
    return judge(setns((int)number(argv[0]), 0), "joined a namespace by an inherited descriptor");
}

static int change_uid(int argc, char **argv)
{
    (void)argc;
    uid_t uid = (uid_t)number(argv[0]);
    return judge(setresuid(uid, uid, uid), "became another user");
}

static int change_groups(int argc, char **argv)
{
    (void)argc;
    gid_t gid = (gid_t)number(argv[0]);
    return judge(setgroups(1, &gid), "changed the groups");
}

/* Reads a set from /proc/self/status or, where that is not to be had, asks the kernel for it. */
static int has_capabilities(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct {
        uint32_t version;
        int pid;
    } header = { 0x20080522, 0 };
    struct {
        uint32_t effective, permitted, inheritable;
    } data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    if (syscall(SYS_capget, &header, data) < 0)
        return held("capget");
    for (int i = 0; i < 2; i++) {
        if (data[i].effective | data[i].permitted | data[i].inheritable)
            return escaped("capabilities: effective %#x permitted %#x inheritable %#x",
                           data[i].effective, data[i].permitted, data[i].inheritable);
    }
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
            return escaped("capability %lu is ambient", cap);
    }
    errno = EPERM;
    return held("every set of capabilities is empty");
}

static int has_bounding(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (unsigned long cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            return escaped("capability %lu is in the bounding set", cap);
    }
    errno = EPERM;
    return held("the bounding set is empty");
}

static int set_personality(int argc, char **argv)
{
    (void)argc;
    return judge(personality((unsigned long)number(argv[0])), "changed the personality");
}

const struct attempt namespace_attempts[] = {
    { "unshare-user", 0, unshare_user, "unshare a user namespace" },
    { "unshare-each", 0, unshare_each, "unshare each other kind of namespace" },
    { "clone-user", 0, clone_user, "clone with a user namespace" },
    { "clone3-user", 0, clone3_user, "clone3 with a user namespace" },
    { "clone-high-bits", 0, clone_high_bits, "clone with a user namespace and bits above 32" },
    { "setns-proc", 1, set_namespace, "join a namespace of process PID or 1" },
    { "setns-pidfd", 1, set_namespace_pidfd, "join the network of process PID by a pidfd" },
    { "setns-leaked", 1, set_namespace_fd, "join the namespace of inherited descriptor FD" },
    { "change-uid", 1, change_uid, "become user UID" },
    { "change-groups", 1, change_groups, "take group GID" },
    { "has-capabilities", 0, has_capabilities, "have any capability" },
    { "has-bounding-set", 0, has_bounding, "have any capability in the bounding set" },
    { "personality-no-random", 1, set_personality, "turn address randomisation off: FLAGS" },
    { "personality-exec-read", 1, set_personality, "make readable pages executable: FLAGS" },
    { "personality-linux32", 1, set_personality, "claim to be a 32-bit program: FLAGS" },
    { 0 },
};
