/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: running somebody else's program from a probe: by absolute path, with an environment made
 * from nothing, no descriptor of ours, a cap on its output and a limit on its time.
 */
#include "backend/probe_exec.h"
#include "backend/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FREE = 3, EXEC_FAILED = 127 };

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

bool tci_program_find(const char *name, char ret_path[TCI_PROGRAM_PATH_MAX])
{
    const char *from = getenv("PATH");
    while (from && *from) {
        size_t length = strcspn(from, ":");
        if (from[0] == '/') {
            int n = snprintf(ret_path, TCI_PROGRAM_PATH_MAX, "%.*s/%s", (int)length, from, name);
            if (n > 0 && n < TCI_PROGRAM_PATH_MAX && is_program(ret_path))
                return true;
        }
        from += length;
        from += *from == ':';
    }
    return false;
}

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
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high_output = fcntl(output, F_DUPFD_CLOEXEC, FIRST_FREE);
    int high_null = fcntl(null, F_DUPFD_CLOEXEC, FIRST_FREE);
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGXFSZ, &action, NULL);
    if (dup2(high_null, STDIN_FILENO) < 0 || dup2(high_output, STDOUT_FILENO) < 0 ||
        dup2(flags & TCI_PROGRAM_ERRORS_TOO ? high_output : high_null, STDERR_FILENO) < 0)
        _exit(EXEC_FAILED);
    if (!(flags & TCI_PROGRAM_SETUID))
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

struct tci_program_result tci_program_run(const char *path, const char *const argv[],
                                          unsigned flags, int limit_ms, char *output, size_t size)
{
    struct tci_program_result result = { .end = TCI_PROGRAM_NOT_BEGUN };
    int fds[2], status = 0;
    bool in_time;
    pid_t pid;
    if (pipe2(fds, O_CLOEXEC) < 0 || (pid = tci_probe_fork()) < 0) {
        result.status = errno;
        return result;
    }
    if (pid == 0)
        become(path, argv, flags, fds[1]);
    (void)close(fds[1]);
    in_time = read_output(fds[0], now_ms() + limit_ms, output, size, &result.length);
    output[result.length] = '\0';
    (void)close(fds[0]);
    if (!in_time)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!in_time)
        result.end = TCI_PROGRAM_TOO_LATE;
    else
        result.end = WIFEXITED(status) ? TCI_PROGRAM_EXITED : TCI_PROGRAM_KILLED;
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    return result;
}
