/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to send signals to processes outside: by every call that can, and by those that
 * make the kernel send one in our name. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

static int signal_victim(int argc, char **argv)
{
    (void)argc;
    return judge(kill((pid_t)number(argv[0]), SIGUSR1), "kill");
}

static int probe_victim(int argc, char **argv)
{
    (void)argc;
    return judge(kill((pid_t)number(argv[0]), 0), "kill with signal 0");
}

static int signal_thread(int argc, char **argv)
{
    (void)argc;
    pid_t pid = (pid_t)number(argv[0]);
    return judge(syscall(SYS_tgkill, pid, pid, SIGUSR1), "tgkill");
}

static int signal_old_thread(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_tkill, (pid_t)number(argv[0]), SIGUSR1), "tkill");
}

static int signal_queue(int argc, char **argv)
{
    (void)argc;
    union sigval value = { .sival_int = 1 };
    return judge(sigqueue((pid_t)number(argv[0]), SIGUSR1, value), "sigqueue");
}

static int signal_pidfd(int argc, char **argv)
{
    (void)argc;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)number(argv[0]), 0);
    if (fd < 0)
        return held("pidfd_open");
    return judge(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0), "pidfd_send_signal");
}

/* /proc/PID is a handle on a process as well. */
static int signal_proc_directory(int argc, char **argv)
{
    (void)argc;
    int fd = open(join("/proc/", argv[0], ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return held("open /proc/%s", argv[0]);
    return judge(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0), "pidfd_send_signal");
}

/* "Tell the owner when there is input": and the owner is the victim. No call sends a signal here. */
static int signal_owner(int argc, char **argv)
{
    int ends[2];
    (void)argc;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return held("pipe");
    if (fcntl(ends[0], F_SETOWN, (pid_t)number(argv[0])) < 0)
        return held("F_SETOWN");
    if (fcntl(ends[0], F_SETSIG, SIGUSR1) < 0)
        return held("F_SETSIG");
    if (fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
        return held("O_ASYNC");
    if (write(ends[1], "x", 1) < 0)
        return held("write");
    errno = 0;
    return held("asked the kernel to signal %s; the victim knows", argv[0]);
}

/* Whoever started us shares our process group, unless a cage has one of its own. */
static int signal_group(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    signal(SIGUSR1, SIG_IGN);
    if (kill(0, SIGUSR1) < 0)
        return held("kill the process group");
    errno = 0;
    return held("signalled our own process group; the caller knows");
}

/* The caller's group by its number. */
static int signal_other_group(int argc, char **argv)
{
    (void)argc;
    return judge(kill(-(pid_t)number(argv[0]), SIGUSR1), "kill the group of the caller");
}

/* Kills whoever supervises us. Process 1 of our own namespace takes no such signal from us. */
static int kill_parent(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    pid_t parent = getppid();
    if (kill(parent, SIGKILL) < 0)
        return held("kill the parent");
    for (int i = 0; i < 20; i++) {
        sleep_ms(10);
        if (getppid() != parent)
            return escaped("the parent is gone");
    }
    errno = EPERM;
    return held("the parent lives on");
}

static int stop_parent(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    pid_t parent = getppid();
    char path[64], text[512] = "";
    if (kill(parent, SIGSTOP) < 0)
        return held("stop the parent");
    sleep_ms(50);
    snprintf(path, sizeof(path), "/proc/%d/stat", parent);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, ") T ")) {
        kill(parent, SIGCONT);
        return escaped("the parent was stopped");
    }
    errno = EPERM;
    return held("the parent goes on");
}

const struct attempt signal_attempts[] = {
    { "signal-victim", 1, signal_victim, "kill(PID, SIGUSR1)" },
    { "probe-victim", 1, probe_victim, "kill(PID, 0)" },
    { "signal-victim-tgkill", 1, signal_thread, "tgkill(PID, PID, SIGUSR1)" },
    { "signal-victim-tkill", 1, signal_old_thread, "tkill(PID, SIGUSR1)" },
    { "signal-victim-sigqueue", 1, signal_queue, "sigqueue(PID, SIGUSR1)" },
    { "signal-victim-pidfd", 1, signal_pidfd, "a signal through a pidfd of PID" },
    { "signal-victim-proc", 1, signal_proc_directory, "a signal through /proc/PID" },
    { "signal-victim-owner", 1, signal_owner, "make the kernel signal PID as the owner of a pipe" },
    { "signal-group", 0, signal_group, "signal our process group, and the caller with it" },
    { "signal-caller-group", 1, signal_other_group, "signal process group PGID of the caller" },
    { "kill-parent", 0, kill_parent, "kill our parent" },
    { "stop-parent", 0, stop_parent, "stop our parent" },
    { 0 },
};
