/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to use more processes, processor time, open files, output and wall-clock time than
 * the limits. All of them end by themselves. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "attempt.h"

enum { CHILDREN_MAX = 1000 };

/* Every child is the leader of a session of its own, where a signal to the group does not come. */
static int fork_bomb(int argc, char **argv)
{
    static int children[CHILDREN_MAX];
    (void)argc;
    int count = 0, wanted = (int)number(argv[0]);
    while (count < wanted && count < CHILDREN_MAX) {
        children[count] = fork();
        if (children[count] < 0)
            break;
        if (children[count] == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            sleep_ms(3000);
            _exit(0);
        }
        count++;
    }
    int saved = errno;
    for (int i = 0; i < count; i++)
        end_child(children[i]);
    errno = saved;
    return count == wanted ? escaped("%d processes at one time", count) : held("fork %d", count);
}

static void *wait_a_while(void *nothing)
{
    sleep_ms(3000);
    return nothing;
}

static int thread_bomb(int argc, char **argv)
{
    (void)argc;
    int count = 0, wanted = (int)number(argv[0]);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    while (count < wanted) {
        pthread_t thread;
        errno = pthread_create(&thread, &small, wait_a_while, NULL);
        if (errno != 0)
            break;
        count++;
    }
    return count == wanted ? escaped("%d threads at one time", count) : held("thread %d", count);
}

/* Without waiting for any of them: each ends and is replaced, so that the count is never high. */
static int fork_storm(int argc, char **argv)
{
    (void)argc;
    long done = 0;
    signal(SIGCHLD, SIG_IGN);
    for (; done < number(argv[0]); done++) {
        int pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            break;
    }
    errno = EAGAIN;
    return done == number(argv[0]) ? escaped("%ld processes in all", done) : held("fork %ld", done);
}

static void burn(long milliseconds)
{
    struct timespec now;
    long end = 0;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        long used = now.tv_sec * 1000 + now.tv_nsec / 1000000;
        end = end ? end : used + milliseconds;
        if (used >= end)
            return;
    } while (1);
}

static int burn_alone(int argc, char **argv)
{
    (void)argc;
    burn(number(argv[0]));
    return escaped("used %s ms of processor time", argv[0]);
}

/* Each process stays below the limit; a limit per process does not see the sum. */
static int burn_many(int argc, char **argv)
{
    (void)argc;
    int count = (int)number(argv[1]);
    for (int i = 0; i < count; i++) {
        int pid = fork();
        if (pid < 0)
            return held("fork");
        if (pid == 0) {
            setsid();
            burn(number(argv[0]));
            _exit(0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (status != 0) {
            errno = EINTR;
            return held("child %d was ended", i);
        }
    }
    return escaped("used %d times %s ms of processor time", count, argv[0]);
}

static int open_files(int argc, char **argv)
{
    (void)argc;
    long count = 0;
    /* Raise the soft limit first, as far as it goes. */
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (count < number(argv[0]) && dup(STDIN_FILENO) >= 0)
        count++;
    return count == number(argv[0]) ? escaped("%ld open files", count) : held("file %ld", count);
}

/* The limit itself must not be ours to raise. */
static int raise_limit(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return held("getrlimit");
    limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1000;
    return judge(setrlimit(RLIMIT_NOFILE, &limit), "raised a hard limit");
}

static int flood(int fd, long megabytes)
{
    static char block[65536];
    memset(block, 'x', sizeof(block));
    for (size_t i = 99; i < sizeof(block); i += 100)
        block[i] = '\n';
    for (long i = 0; i < megabytes * 16; i++) {
        if (write_all(fd, block, sizeof(block)) < 0)
            return HELD;
    }
    return ESCAPED;
}

static int flood_stdout(int argc, char **argv)
{
    (void)argc;
    return flood(STDOUT_FILENO, number(argv[0]));
}

static int flood_stderr(int argc, char **argv)
{
    (void)argc;
    return flood(STDERR_FILENO, number(argv[0]));
}

static int flood_both(int argc, char **argv)
{
    (void)argc;
    for (long i = 0; i < number(argv[0]); i++) {
        if (flood(STDOUT_FILENO, 1) == HELD || flood(STDERR_FILENO, 1) == HELD)
            return HELD;
    }
    return ESCAPED;
}

static int sleep_long(int argc, char **argv)
{
    (void)argc;
    sleep_ms(number(argv[0]));
    return escaped("slept for %s ms", argv[0]);
}

const struct attempt process_limit_attempts[] = {
    { "fork-bomb", 1, fork_bomb, "have COUNT processes, each in a session of its own" },
    { "thread-bomb", 1, thread_bomb, "have COUNT threads" },
    { "fork-storm", 1, fork_storm, "(control) make COUNT processes, few at one time" },
    { "cpu-burn", 1, burn_alone, "use MS milliseconds of processor time" },
    { "cpu-burn-many", 2, burn_many, "use MS milliseconds in each of COUNT processes" },
    { "open-files", 1, open_files, "have COUNT open files" },
    { "raise-limit", 0, raise_limit, "raise a hard limit" },
    { "flood-stdout", 1, flood_stdout, "write MB megabytes to standard output" },
    { "flood-stderr", 1, flood_stderr, "write MB megabytes to standard error" },
    { "flood-both", 1, flood_both, "write MB megabytes to each" },
    { "sleep-long", 1, sleep_long, "sleep for MS milliseconds" },
    { 0 },
};
