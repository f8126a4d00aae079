/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts on other processes: a victim of the same user on the host, the parent (whoever
 * built the cage) and process 1. They look, read memory, take descriptors, trace and meddle. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attempt.h"

static int see_process(int argc, char **argv)
{
    struct dirent *entry;
    (void)argc;
    DIR *directory = opendir("/proc");
    if (!directory)
        return held("open /proc");
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, argv[0]) == 0) {
            closedir(directory);
            return escaped("process %s is in /proc", argv[0]);
        }
    }
    closedir(directory);
    errno = ESRCH;
    return held("process %s in /proc", argv[0]);
}

/* Looks for `needle` in a file whose parts end with NUL. */
static int search_file(const char *path, const char *needle)
{
    char text[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open %s", path);
    ssize_t length = read(fd, text, sizeof(text));
    close(fd);
    if (length < 0)
        return held("read %s", path);
    if (memmem(text, (size_t)length, needle, strlen(needle)))
        return escaped("found %s in %s", needle, path);
    errno = ENOENT;
    return held("the secret in %s", path);
}

static int read_environ(int argc, char **argv)
{
    (void)argc;
    return search_file(join("/proc/", argv[0], "/environ"), argv[1]);
}

static int read_cmdline(int argc, char **argv)
{
    (void)argc;
    return search_file(join("/proc/", argv[0], "/cmdline"), argv[1]);
}

/* Our own ancestors hold the caller's environment, unless they dropped it. */
static int read_parent_environ(int argc, char **argv)
{
    char pid[16];
    (void)argc;
    snprintf(pid, sizeof(pid), "%d", getppid());
    if (search_file(join("/proc/", pid, "/environ"), argv[0]) == ESCAPED)
        return ESCAPED;
    return search_file("/proc/1/environ", argv[0]);
}

static int read_memory(int argc, char **argv)
{
    char text[32] = "";
    (void)argc;
    struct iovec here = { text, sizeof(text) - 1 };
    struct iovec there = { (void *)strtoull(argv[1], NULL, 16), sizeof(text) - 1 };
    if (process_vm_readv((pid_t)number(argv[0]), &here, 1, &there, 1, 0) < 0)
        return held("process_vm_readv");
    return escaped("memory of the victim: %s", text);
}

static int write_memory(int argc, char **argv)
{
    char text[] = "CHANGED";
    (void)argc;
    struct iovec here = { text, 7 };
    struct iovec there = { (void *)strtoull(argv[1], NULL, 16), 7 };
    return judge(process_vm_writev((pid_t)number(argv[0]), &here, 1, &there, 1, 0),
                 "process_vm_writev");
}

static int write_memory_file(int argc, char **argv)
{
    (void)argc;
    int fd = open(join("/proc/", argv[0], "/mem"), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open /proc/%s/mem", argv[0]);
    return judge(pwrite(fd, "CHANGED", 7, (off_t)strtoull(argv[1], NULL, 16)),
                 "wrote to /proc/PID/mem");
}

/* The parent's memory or that of process 1, which decide what happens to us. */
static int open_parent_memory(int argc, char **argv)
{
    char path[64];
    (void)argc;
    (void)argv;
    snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fd = open("/proc/1/mem", O_RDWR | O_CLOEXEC);
    return judge(fd, "opened the memory of our parent or of process 1");
}

static int seize(pid_t pid, const char *how)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return held("%s", how);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return escaped("%s", how);
}

static int trace_victim(int argc, char **argv)
{
    (void)argc;
    return seize((pid_t)number(argv[0]), "ptrace of the victim");
}

static int trace_parent(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return seize(getppid(), "ptrace of our parent");
}

/* A tracer changes a system call after a filter of the old kind has looked at it. */
static int trace_child(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int child = fork();
    if (child < 0)
        return held("fork");
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
    int status = 0;
    waitpid(child, &status, 0);
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0 ? escaped("ptrace of a child") : held("PTRACE_TRACEME");
}

static int take_fd(pid_t pid, const char *how)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return held("pidfd_open: %s", how);
    int last = EBADF;
    for (int fd = 0; fd < 64; fd++) {
        int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
        if (got >= 0)
            return escaped("took descriptor %d of %s", fd, how);
        last = errno;
        if (last == EPERM || last == ENOSYS)
            break;
    }
    errno = last;
    return held("pidfd_getfd: %s", how);
}

static int take_victim_fd(int argc, char **argv)
{
    (void)argc;
    return take_fd((pid_t)number(argv[0]), "the victim");
}

static int take_parent_fd(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return take_fd(getppid(), "our parent");
}

/* The same through /proc, which needs no new call. */
static int reopen_parent_fd(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int last = ENOENT;
    for (int which = 0; which < 2; which++) {
        for (int fd = 3; fd < 64; fd++) {
            char path[64];
            snprintf(path, sizeof(path), "/proc/%d/fd/%d", which ? 1 : getppid(), fd);
            int got = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            if (got >= 0)
                return escaped("opened %s", path);
            if (errno != ENOENT)
                last = errno;
        }
    }
    errno = last;
    return held("open a descriptor of our parent or of process 1");
}

static int limit_victim(int argc, char **argv)
{
    (void)argc;
    struct rlimit limit = { 7, 7 };
    return judge(prlimit((pid_t)number(argv[0]), RLIMIT_NOFILE, &limit, NULL), "changed a limit");
}

static int renice_victim(int argc, char **argv)
{
    (void)argc;
    return judge(setpriority(PRIO_PROCESS, (id_t)number(argv[0]), 19), "changed the priority");
}

static int pin_victim(int argc, char **argv)
{
    (void)argc;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return judge(sched_setaffinity((pid_t)number(argv[0]), sizeof(set), &set),
                 "pinned it to a processor");
}

static int reschedule_victim(int argc, char **argv)
{
    (void)argc;
    struct sched_param none = { 0 };
    return judge(sched_setscheduler((pid_t)number(argv[0]), SCHED_IDLE, &none),
                 "made it run when idle");
}

static int ionice_victim(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_ioprio_set, 1, (int)number(argv[0]), 3 << 13),
                 "made its disk access idle");
}

static int compare_victim(int argc, char **argv)
{
    (void)argc;
    pid_t pid = (pid_t)number(argv[0]);
    return judge(syscall(SYS_kcmp, getpid(), pid, 1, 0, 0), "compared memory with the victim");
}

const struct attempt process_attempts[] = {
    { "see-victim", 1, see_process, "find process PID in /proc" },
    { "read-victim-environ", 2, read_environ, "find SECRET in the environment of PID" },
    { "read-victim-cmdline", 2, read_cmdline, "find SECRET in the arguments of PID" },
    { "read-parent-environ", 1, read_parent_environ,
      "find SECRET in the environment of our parent or 1" },
    { "read-victim-memory", 2, read_memory, "read the memory of PID at ADDRESS" },
    { "write-victim-memory", 2, write_memory, "write the memory of PID at ADDRESS" },
    { "write-victim-mem-file", 2, write_memory_file, "write /proc/PID/mem at ADDRESS" },
    { "open-parent-memory", 0, open_parent_memory,
      "open the memory of our parent or of process 1" },
    { "ptrace-victim", 1, trace_victim, "trace process PID" },
    { "ptrace-parent", 0, trace_parent, "trace our parent" },
    { "ptrace-child", 0, trace_child, "trace a child" },
    { "pidfd-getfd-victim", 1, take_victim_fd, "take a descriptor of process PID" },
    { "pidfd-getfd-parent", 0, take_parent_fd, "take a descriptor of our parent" },
    { "reopen-parent-fd", 0, reopen_parent_fd, "open a descriptor of our parent through /proc" },
    { "prlimit-victim", 1, limit_victim, "change a limit of process PID" },
    { "renice-victim", 1, renice_victim, "change the priority of process PID" },
    { "pin-victim", 1, pin_victim, "pin process PID to one processor" },
    { "reschedule-victim", 1, reschedule_victim, "change how process PID is scheduled" },
    { "ionice-victim", 1, ionice_victim, "change the disk priority of process PID" },
    { "kcmp-victim", 1, compare_victim, "compare kernel objects with process PID" },
    { 0 },
};
