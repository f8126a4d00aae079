/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to live longer than the call. Each leaves a process that appends to a file twenty
 * times a second, for ten seconds at most; whether it does so after the call, the host sees. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

enum { BEATS = 200, BEAT_MS = 50 };

static void heartbeat(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (int i = 0; i < BEATS; i++) {
        /* Without a place to write, it still has to go when the call ends. */
        if (fd >= 0 && write(fd, ".", 1) < 0)
            break;
        sleep_ms(BEAT_MS);
    }
    _exit(0);
}

static void ignore_signals(void)
{
    static const int polite[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGXCPU };
    for (size_t i = 0; i < sizeof(polite) / sizeof(polite[0]); i++)
        signal(polite[i], SIG_IGN);
}

static void forget_streams(void)
{
    int fd = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) {
        if (fd < 0 || dup2(fd, i) < 0)
            close(i);
    }
}

static int left_behind(void)
{
    /* Time to get going: the child must be under way when we end. */
    sleep_ms(120);
    errno = 0;
    return held("left a process behind; the host sees whether it lives");
}

/* Fork, setsid, fork. `detach`: what else it does on the way; NULL: nothing. */
static int leave_grandchild(const char *path, void (*detach)(void))
{
    int pid = fork();
    if (pid < 0)
        return held("fork");
    if (pid > 0)
        return left_behind();
    setsid();
    ignore_signals();
    if (detach)
        detach();
    if (fork() > 0)
        _exit(0);
    heartbeat(path);
    return HELD;
}

static void forget_caller(void)
{
    prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    forget_streams();
}

/* A daemon by the book. */
static int outlive_daemon(int argc, char **argv)
{
    (void)argc;
    return leave_grandchild(argv[0], forget_caller);
}

/* Keeps the caller's pipe open as well: a reader that waits for its end waits for ever. */
static int outlive_stdout(int argc, char **argv)
{
    (void)argc;
    return leave_grandchild(argv[0], NULL);
}

/* A sister, not a child: its parent is ours. */
static int outlive_sister(int argc, char **argv)
{
    (void)argc;
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0)
        return held("clone with CLONE_PARENT");
    if (pid > 0)
        return left_behind();
    setsid();
    ignore_signals();
    forget_streams();
    heartbeat(argv[0]);
    return HELD;
}

/* Runs away: each process lives for a moment only, so that a list of them is always old. */
static int outlive_runaway(int argc, char **argv)
{
    (void)argc;
    int pid = fork();
    if (pid < 0)
        return held("fork");
    if (pid > 0)
        return left_behind();
    forget_streams();
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (int i = 0; i < 600; i++) {
        if (i % 10 == 0 && fd >= 0 && write(fd, ".", 1) < 0)
            break;
        sleep_ms(5);
        setsid();
        if (fork() > 0)
            _exit(0);
    }
    _exit(0);
}

/* In the foreground, deaf to every polite signal, until something stronger comes. */
static int outlive_deaf(int argc, char **argv)
{
    (void)argc;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    ignore_signals();
    write_all(STDOUT_FILENO, "deaf\n", 5);
    heartbeat(argv[0]);
    return HELD;
}

/* Stopped processes take no signal but SIGKILL and SIGCONT. */
static int outlive_stopped(int argc, char **argv)
{
    (void)argc;
    int pid = fork();
    if (pid == 0) {
        setsid();
        kill(getpid(), SIGSTOP);
        heartbeat(argv[0]);
    }
    write_all(STDOUT_FILENO, "stopped\n", 8);
    kill(getpid(), SIGSTOP);
    heartbeat(argv[0]);
    return HELD;
}

/* Many, each in a session of its own, and the first of them waits with the others. */
static int outlive_many(int argc, char **argv)
{
    (void)argc;
    ignore_signals();
    for (long i = 0; i < number(argv[1]); i++) {
        if (fork() == 0) {
            setsid();
            heartbeat(argv[0]);
        }
    }
    heartbeat(argv[0]);
    return HELD;
}

const struct attempt outlive_attempts[] = {
    { "outlive-daemon", 1, outlive_daemon, "leave a daemon that appends to FILE" },
    { "outlive-stdout", 1, outlive_stdout,
      "leave a process that holds stdout and appends to FILE" },
    { "outlive-sister", 1, outlive_sister, "leave a sister process that appends to FILE" },
    { "outlive-runaway", 1, outlive_runaway,
      "leave a process that forks on and on; appends to FILE" },
    { "outlive-deaf", 1, outlive_deaf, "ignore every signal that can be ignored; appends to FILE" },
    { "outlive-stopped", 1, outlive_stopped, "stop ourselves; appends to FILE when continued" },
    { "outlive-many", 2, outlive_many, "COUNT processes that append to FILE" },
    { 0 },
};
