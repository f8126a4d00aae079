/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: asking a runtime's program a short question, from a process of any size with any threads. */
#include "backend/oci/choose.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A new process group, so that it can be killed with what it has started; no signal setting, no
 * descriptor and no variable of the caller's. 0 or an errno. */
static int start(const char *path, char *const argv[], int output, pid_t *ret)
{
    char search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", home[] = "HOME=/dev/null";
    char language[] = "LC_ALL=C";
    char *const environment[] = { search, home, language, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int problem = posix_spawn_file_actions_init(&actions);
    if (problem)
        return problem;
    problem = posix_spawnattr_init(&attributes);
    if (problem) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return problem;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    problem = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!problem)
        problem = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!problem)
        problem = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
#if __GLIBC_PREREQ(2, 34)
    if (!problem)
        problem = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
    if (!problem)
        problem = posix_spawn(ret, path, &actions, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return problem;
}

/* Until the end of the output; false at the deadline. What does not fit is dropped. */
static bool read_all(int fd, long deadline, char *output, size_t size, size_t *ret_length)
{
    char dropped[512];
    *ret_length = 0;
    for (;;) {
        struct pollfd polled = { .fd = fd, .events = POLLIN };
        const long left = deadline - now_ms();
        const size_t room = size - 1 - *ret_length;
        ssize_t n;
        if (left <= 0)
            return false;
        if (poll(&polled, 1, (int)left) <= 0)
            continue;
        n = room ? read(fd, output + *ret_length, room) : read(fd, dropped, sizeof dropped);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0 && room)
            *ret_length += (size_t)n;
    }
}

struct tci_oci_answer tci_oci_ask(const char *path, char *const argv[], int limit_ms, char *output,
                                  size_t size)
{
    struct tci_oci_answer answer = { .problem = EIO };
    tc_cleanup(tci_closep) int from = -1, to = -1;
    int ends[2], status = 0;
    bool in_time;
    pid_t pid = -1;
    output[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return (struct tci_oci_answer){ .problem = errno };
    from = ends[0];
    /* Above the three, also where the host has closed them: else dup2 would keep CLOEXEC. */
    to = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)tci_close(ends[1]);
    answer.problem = to < 0 ? errno : start(path, argv, to, &pid);
    if (answer.problem)
        return answer;
    tci_closep(&to); /* so that its end is seen */
    in_time = read_all(from, now_ms() + limit_ms, output, size, &answer.length);
    output[answer.length] = '\0';
    /* Only then is it certain that the number is still its own: somebody else in this process may
     * have waited for it. */
    if (!in_time)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    /* For the same reason its exit status may be lost: the output has to do. */
    answer.problem = !in_time ? ETIMEDOUT : answer.length ? 0 : EIO;
    return answer;
}
