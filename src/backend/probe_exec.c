/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: running somebody else's program from a probe: by absolute path, with an environment made
 * from nothing, no descriptor of ours, a cap on its output and a limit on its time. When
 * tci_program_run() returns, the program and everything that it started are gone.
 */
#include "backend/probe_exec.h"
#include "backend/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FREE = 3, EXEC_FAILED = 127, GRACE_MS = 300 };

/* No file or directory can be made, removed or written from here on, except /dev/null. Where there
 * is no Landlock this does nothing: asking for a version is harmless enough, mostly. */
static void forbid_writing(int null)
{
    struct landlock_ruleset_attr attr = {
        .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                             LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                             LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                             LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                             LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM
    };
    struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE,
                                               .parent_fd = null };
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
    if (rules < 0)
        return;
    (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        (void)syscall(SYS_landlock_restrict_self, rules, 0);
}

/* In the child. A caller may have its standard descriptors closed: ours must not end up there. */
static void become(const char *path, const char *const argv[], unsigned flags, int output)
{
    /* Nothing can be made below a file: "crun --version" makes its run directory where it can. */
    static const char *const environment[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/dev/null",
        "XDG_RUNTIME_DIR=/dev/null", "LC_ALL=C", NULL
    };
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high_output = fcntl(output, F_DUPFD_CLOEXEC, FIRST_FREE);
    int high_null = fcntl(null, F_DUPFD_CLOEXEC, FIRST_FREE);
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGXFSZ, &action, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(high_null, STDIN_FILENO) < 0 || dup2(high_output, STDOUT_FILENO) < 0 ||
        dup2(flags & TCI_PROGRAM_ERRORS_TOO ? high_output : high_null, STDERR_FILENO) < 0)
        _exit(EXEC_FAILED);
    if (!(flags & (TCI_PROGRAM_SETUID | TCI_PROGRAM_PRIVATE)))
        forbid_writing(high_null);
    /* What the caller left open without CLOEXEC. Before Linux 5.11 this is not done. */
    (void)syscall(SYS_close_range, (unsigned)FIRST_FREE, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    /* execve() takes the vectors as they are and changes neither. */
    (void)syscall(SYS_execve, path, argv, environment);
    _exit(EXEC_FAILED);
}

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads until the end or the limit; false if the limit came first. Beyond `size` is dropped. */
static bool read_output(int fd, long deadline, char *output, size_t size, size_t *ret_length)
{
    char dropped[512];
    *ret_length = 0;
    for (;;) {
        struct pollfd polled = { .fd = fd, .events = POLLIN };
        long left = deadline - now_ms();
        size_t room = size - 1 - *ret_length;
        ssize_t n;
        if (left <= 0)
            return false;
        if (poll(&polled, 1, (int)left) <= 0)
            continue;
        n = read(fd, room ? output + *ret_length : dropped, room ? room : sizeof dropped);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0 && room)
            *ret_length += (size_t)n;
    }
}

/* ---- the guard ------------------------------------------------------------------------------ */

/*
 * Between probe and program stands a guard, so that nothing of the program stays. The attack: a
 * program that is merely asked for its version starts another one in a session of its own, out of
 * reach for whoever kills a process group. Where it can be had the guard is process 1 of a pid
 * namespace: with its end, however it comes, the kernel kills everything inside, and nothing inside
 * can harm it or a process outside. Elsewhere it is a subreaper that kills its descendants one by
 * one, also when its own parent is killed.
 */
struct guard {
    const char *path;
    const char *const *argv;
    unsigned flags;
    int limit_ms, output[2];
    unsigned uid, gid;
    bool in_namespace;
    struct tci_program_result *result; /* in memory that probe and guard share */
};

/* In a new user namespace: everybody is who he was. Without /proc the program sees an odd user id,
 * which changes nothing in what it may do. */
static void keep_identity(const struct guard *g)
{
    char map[64];
    (void)tci_probe_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%u %u 1", g->uid, g->uid);
    (void)tci_probe_write_file(AT_FDCWD, "/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "%u %u 1", g->gid, g->gid);
    (void)tci_probe_write_file(AT_FDCWD, "/proc/self/gid_map", map);
}

/* In the guard's own mount namespace; what is made there ends with it. False: errno says why. */
static bool keep_private(void)
{
    return chdir("/") == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") == 0;
}

/* Waits for the program to end, for the time limit or for the end of the probe. */
static void watch(const struct guard *g, pid_t program, const sigset_t *awaited)
{
    long deadline = now_ms() + g->limit_ms;
    for (;;) {
        struct timespec rest;
        long left = deadline - now_ms();
        int status;
        pid_t got;
        while ((got = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
            if (got != program)
                continue;
            g->result->end = WIFEXITED(status) ? TCI_PROGRAM_EXITED : TCI_PROGRAM_KILLED;
            g->result->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
            return;
        }
        rest = (struct timespec){ left / 1000, left % 1000 * 1000000 };
        if (left <= 0 || sigtimedwait(awaited, NULL, &rest) == SIGTERM) {
            g->result->end = TCI_PROGRAM_TOO_LATE;
            return;
        }
    }
}

static void guard_run(const struct guard *g)
{
    struct pollfd reader = { .fd = g->output[1] };
    sigset_t awaited;
    pid_t program;
    (void)sigemptyset(&awaited);
    (void)sigaddset(&awaited, SIGCHLD);
    (void)sigaddset(&awaited, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, &awaited, NULL);
    /* Out of the probe's group: whoever kills that must not kill the one that cleans up. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, g->in_namespace ? SIGKILL : SIGTERM);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* The probe may have died before that: then nobody reads. */
    (void)close(g->output[0]);
    if (poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR))
        _exit(1);
    if (g->flags & TCI_PROGRAM_PRIVATE && !keep_private()) {
        *g->result = (struct tci_program_result){ TCI_PROGRAM_NOT_BEGUN, errno, 0 };
        _exit(1);
    }
    program = tci_probe_fork();
    if (program == 0)
        become(g->path, g->argv, g->flags, g->output[1]);
    (void)close(g->output[1]);
    if (program < 0)
        *g->result = (struct tci_program_result){ TCI_PROGRAM_NOT_BEGUN, errno, 0 };
    else
        watch(g, program, &awaited);
    if (!g->in_namespace)
        tci_probe_end_descendants();
    _exit(0);
}

/* A helper that gains privileges finds neither them nor the process that it works on in there. */
static pid_t guard_start(struct guard *g)
{
    const unsigned long namespaces = CLONE_NEWPID |
                                     (g->flags & TCI_PROGRAM_PRIVATE ? CLONE_NEWNS : 0) | SIGCHLD;
    pid_t pid = -1;
    bool user_namespace = false;
    g->uid = geteuid();
    g->gid = getegid();
    g->in_namespace = !(g->flags & TCI_PROGRAM_SETUID);
    if (g->in_namespace) {
        pid = (pid_t)syscall(SYS_clone, namespaces, 0, 0, 0, 0);
        if (pid < 0) {
            user_namespace = true;
            pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | namespaces, 0, 0, 0, 0);
        }
    }
    if (pid < 0 && !(g->flags & TCI_PROGRAM_PRIVATE)) {
        g->in_namespace = user_namespace = false;
        pid = fork();
    }
    if (pid != 0)
        return pid;
    if (user_namespace)
        keep_identity(g);
    guard_run(g);
    return 0;
}

struct tci_program_result tci_program_run(const char *path, const char *const argv[],
                                          unsigned flags, int limit_ms, char *output, size_t size)
{
    struct tci_program_result result = { .end = TCI_PROGRAM_NOT_BEGUN };
    struct guard guard = { .path = path, .argv = argv, .flags = flags, .limit_ms = limit_ms };
    size_t length;
    bool in_time;
    pid_t pid;
    guard.result = mmap(NULL, sizeof *guard.result, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (guard.result == MAP_FAILED || pipe2(guard.output, O_CLOEXEC) < 0) {
        result.status = errno;
        if (guard.result != MAP_FAILED)
            (void)munmap(guard.result, sizeof *guard.result);
        return result;
    }
    /* What is reported if the guard is killed. */
    *guard.result = (struct tci_program_result){ TCI_PROGRAM_KILLED, SIGKILL, 0 };
    pid = guard_start(&guard);
    if (pid < 0)
        *guard.result = (struct tci_program_result){ TCI_PROGRAM_NOT_BEGUN, errno, 0 };
    (void)close(guard.output[1]);
    /* The guard ends the program in time, and with it what holds the pipe open. */
    in_time = read_output(guard.output[0], now_ms() + limit_ms + GRACE_MS, output, size, &length);
    output[length] = '\0';
    (void)close(guard.output[0]);
    if (pid > 0 && !in_time)
        (void)kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    result = *guard.result;
    if (!in_time)
        result.end = TCI_PROGRAM_TOO_LATE;
    result.length = length;
    (void)munmap(guard.result, sizeof *guard.result);
    return result;
}
