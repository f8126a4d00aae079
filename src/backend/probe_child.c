/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what probes share on the child's side: reporting, forking, small files, entering a user
 * namespace. Runs after a fork: no allocation, no stdio streams, no locks.
 */
#include "backend/probe.h"
#include "backend/probe_record.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LIFETIME_S = 4,       /* of what a probe forks: longer than any probe may take */
    SWEEP_LIMIT_MS = 500, /* for killing what programs left behind; it takes one or two */
};

static const char REMEDY_LIMITS[] =
    "raise the limits of this shell on open files, processes and memory (ulimit -n, -u, -v)";

tci_printf_like(5, 0) static void send_record(const struct tci_probe *probe, enum tci_feature id,
                                              enum tci_feature_state state, const char *remedy,
                                              const char *format, va_list args)
{
    struct tci_probe_record record = { .id = (int)id, .state = (int)state };
    (void)vsnprintf(record.detail, sizeof record.detail, format, args);
    (void)snprintf(record.remedy, sizeof record.remedy, "%s", remedy ? remedy : "");
    /* A parent that is gone needs no answer. */
    while (write(probe->fd, &record, sizeof record) < 0 && errno == EINTR)
        ;
}

void tci_probe_yes(const struct tci_probe *probe, enum tci_feature id, const char *detail, ...)
{
    va_list args;
    va_start(args, detail);
    send_record(probe, id, TCI_FEATURE_YES, NULL, detail, args);
    va_end(args);
}

void tci_probe_no(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                  const char *detail, ...)
{
    va_list args;
    va_start(args, detail);
    send_record(probe, id, TCI_FEATURE_NO, remedy, detail, args);
    va_end(args);
}

void tci_probe_unknown(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                       const char *detail, ...)
{
    va_list args;
    va_start(args, detail);
    send_record(probe, id, TCI_FEATURE_UNKNOWN, remedy, detail, args);
    va_end(args);
}

bool tci_probe_is_shortage(int problem)
{
    return problem == EMFILE || problem == ENFILE || problem == ENOMEM || problem == EAGAIN;
}

void tci_probe_failed(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                      int problem, const char *detail, ...)
{
    bool unknown = tci_probe_is_shortage(problem);
    va_list args;
    va_start(args, detail);
    send_record(probe, id, unknown ? TCI_FEATURE_UNKNOWN : TCI_FEATURE_NO,
                unknown ? REMEDY_LIMITS : remedy, detail, args);
    va_end(args);
}

static bool is_refusal(int problem)
{
    static const int known[] = { EPERM,  EACCES,     EROFS,           ENOSYS,       EINVAL,
                                 ENOENT, EOPNOTSUPP, EPROTONOSUPPORT, EAFNOSUPPORT, ENODEV };
    for (size_t i = 0; i < tci_array_size(known); i++)
        if (problem == known[i])
            return true;
    return false;
}

void tci_probe_refused(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                       const char *what, int problem)
{
    if (tci_probe_is_shortage(problem))
        tci_probe_unknown(probe, id, REMEDY_LIMITS, "could not try: %s: %s", what,
                          strerrordesc_np(problem));
    else if (remedy && is_refusal(problem)) /* a NO comes with a remedy */
        tci_probe_no(probe, id, remedy, "refused: %s: %s", what, strerrordesc_np(problem));
    else
        tci_probe_unknown(probe, id, remedy, "unexpected: %s: %s", what, strerrordesc_np(problem));
}

pid_t tci_probe_fork(void)
{
    pid_t parent = getpid(), now, pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The parent may have died before it could be asked for; 0: it is in another pid namespace. */
    now = getppid();
    if (now != parent && now != 0)
        _exit(1);
    (void)alarm(LIFETIME_S); /* and should all that fail; a program that is executed keeps it */
    return 0;
}

/*
 * Kills the children that the kernel lists. Under a /proc of another pid namespace the numbers mean
 * others: hence only what wait knows as ours is killed, which cannot be somebody else's.
 */
static void kill_children(void)
{
    char path[64], text[4096], *at = text, *end;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
    if (tci_probe_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
        return;
    for (;; at = end) {
        siginfo_t info;
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            return;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
            (void)kill(pid, SIGKILL);
    }
}

void tci_probe_end_descendants(void)
{
    struct timespec begin, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        pid_t got;
        /* A child that is reaped leaves its own children to us: they come in the next round. */
        while ((got = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            ;
        if (got < 0 && errno == ECHILD)
            return;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 >
            SWEEP_LIMIT_MS)
            return;
        kill_children();
        (void)nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

int tci_probe_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int tci_probe_write_file(int directory, const char *path, const char *text)
{
    size_t length = strlen(text);
    ssize_t n;
    int problem = 0;
    int fd = openat(directory, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    n = write(fd, text, length);
    if (n < 0)
        problem = errno;
    else if ((size_t)n != length)
        problem = EIO;
    (void)close(fd);
    return problem;
}

ssize_t tci_probe_read_file(int directory, const char *path, char *buffer, size_t size)
{
    size_t used = 0;
    ssize_t n = 0;
    int problem;
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (used + 1 < size && (n = read(fd, buffer + used, size - 1 - used)) > 0)
        used += (size_t)n;
    problem = errno;
    (void)close(fd);
    buffer[used] = '\0';
    errno = problem;
    return n < 0 ? -1 : (ssize_t)used;
}

long tci_probe_sysctl(const char *path)
{
    char text[32], *end;
    long value;
    if (tci_probe_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
        return -1;
    value = strtol(text, &end, 10);
    return end == text ? -1 : value;
}

bool tci_probe_is_filtered(void)
{
    char status[4096];
    const char *line;
    if (tci_probe_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status) <= 0)
        return false;
    line = strstr(status, "\nSeccomp:\t");
    return line && line[strlen("\nSeccomp:\t")] == '2';
}

int tci_probe_enter_userns(const char **ret_step)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int problem;
    *ret_step = "unshare";
    if (unshare(CLONE_NEWUSER) < 0)
        return errno;
    /* Kernels before 3.19 have no such file; then gid_map needs no "deny" either. */
    *ret_step = "setgroups";
    problem = tci_probe_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
    if (problem && problem != ENOENT)
        return problem;
    *ret_step = "uid_map";
    (void)snprintf(map, sizeof map, "0 %u 1", uid);
    problem = tci_probe_write_file(AT_FDCWD, "/proc/self/uid_map", map);
    if (problem)
        return problem;
    *ret_step = "gid_map";
    (void)snprintf(map, sizeof map, "0 %u 1", gid);
    return tci_probe_write_file(AT_FDCWD, "/proc/self/gid_map", map);
}

int tci_probe_gain_capabilities(char *ret_why, size_t size)
{
    const char *step;
    int problem = tci_probe_enter_userns(&step);
    /* A security module may let the namespace be made and keep the capabilities back. */
    if (!problem && unshare(CLONE_NEWNS) == 0)
        return 0;
    if (!problem)
        problem = errno;
    else if (strcmp(step, "unshare") == 0 && unshare(CLONE_NEWNS) == 0)
        return 0; /* root without user namespaces */
    (void)snprintf(ret_why, size, "no capabilities to try it with (%s: %s)", step,
                   strerrordesc_np(problem));
    return problem;
}
