/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the kernel alone needs. F0: posix_spawn and wait. F1: the same with a user, mount, pid,
 * net, ipc, uts, cgroup and time namespace, the user's own id mapped, and nothing else. And fork(),
 * which copies the caller's page tables, as the control that shows what a large caller costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "native.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { stack_size = 65536 };

static int ended_well(pid_t pid, struct bench_subject *subject)
{
    int status;
    if (waitpid(pid, &status, 0) < 0)
        return bench_fail(subject, "waitpid: %s", strerror(errno));
    return status == 0 ? 0 : bench_fail(subject, "wait status %d", status);
}

int bench_spawn(struct bench *bench, struct bench_subject *subject)
{
    char *argv[] = { strdupa(bench->true_path), NULL };
    pid_t pid;
    int r = posix_spawn(&pid, bench->true_path, NULL, NULL, argv, environ);
    if (r != 0)
        return bench_fail(subject, "posix_spawn: %s", strerror(r));
    return ended_well(pid, subject);
}

int bench_spawn_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    double begin = bench_now_ms();
    int r = bench_spawn(bench, subject);
    *ret_value = bench_now_ms() - begin;
    return r;
}

/* What the child of F1 needs; it shares our memory until it executes the program. */
struct floor_child {
    const char *program;
    char *const *argv;
    char users[40], groups[40];
    const char *volatile failed_at;
    volatile int error;
};

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n;
    if (fd < 0)
        return -1;
    n = write(fd, text, strlen(text));
    (void)close(fd);
    return n < 0 ? -1 : 0;
}

static int floor_child(void *argument)
{
    struct floor_child *child = argument;
    if (write_text("/proc/self/setgroups", "deny") < 0)
        child->failed_at = "setgroups";
    else if (write_text("/proc/self/uid_map", child->users) < 0)
        child->failed_at = "uid_map";
    else if (write_text("/proc/self/gid_map", child->groups) < 0)
        child->failed_at = "gid_map";
    /* clone refuses a time namespace together with shared memory; exec enters this one. */
    else if (unshare(CLONE_NEWTIME) < 0)
        child->failed_at = "time namespace";
    else {
        (void)execve(child->program, child->argv, environ);
        child->failed_at = "execve";
    }
    child->error = errno;
    _exit(127);
}

int bench_namespaces(struct bench *bench, struct bench_subject *subject)
{
    static _Thread_local char stack[stack_size] __attribute__((aligned(16)));
    char *argv[] = { strdupa(bench->true_path), NULL };
    struct floor_child child = { .program = bench->true_path, .argv = argv };
    int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid_t pid;
    int r;

    (void)snprintf(child.users, sizeof(child.users), "0 %u 1", (unsigned)geteuid());
    (void)snprintf(child.groups, sizeof(child.groups), "0 %u 1", (unsigned)getegid());
    pid = clone(floor_child, stack + stack_size, flags, &child);
    if (pid < 0)
        return bench_fail(subject, "clone: %s", strerror(errno));
    r = ended_well(pid, subject);
    if (child.failed_at)
        return bench_fail(subject, "%s: %s", child.failed_at, strerror(child.error));
    return r;
}

int bench_namespaces_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    double begin = bench_now_ms();
    int r = bench_namespaces(bench, subject);
    *ret_value = bench_now_ms() - begin;
    return r;
}

int bench_fork(struct bench *bench, struct bench_subject *subject)
{
    pid_t pid = fork();
    if (pid < 0)
        return bench_fail(subject, "fork: %s", strerror(errno));
    if (pid == 0) {
        (void)execl(bench->true_path, bench->true_path, (char *)NULL);
        _exit(127);
    }
    return ended_well(pid, subject);
}

int bench_python_prepare(struct bench *bench, struct bench_subject *subject)
{
    if (!bench->python)
        return bench_fail(subject, "not installed");
    subject->command = bench_command_new(bench);
    bench_command_add(subject->command, bench->python, "-I", "-S", "-c", "pass", NULL);
    return 0;
}
