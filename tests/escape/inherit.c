/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to profit from what a process inherits without asking: its environment, its signal
 * dispositions, its session, its file mode mask, its limits. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attempt.h"

extern char **environ;

static int env_secret(int argc, char **argv)
{
    (void)argc;
    for (char **one = environ; *one; one++) {
        if (strstr(*one, argv[0]))
            return escaped("in the environment: %s", *one);
    }
    errno = ENOENT;
    return held("the secret in the environment");
}

/* The text behind the stack's start stays when a program only clears the pointers to it. */
static int env_memory(int argc, char **argv)
{
    (void)argc;
    char text[16384];
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open /proc/self/environ");
    ssize_t length = read(fd, text, sizeof(text));
    if (length > 0 && memmem(text, (size_t)length, argv[0], strlen(argv[0])))
        return escaped("found the secret in /proc/self/environ");
    errno = ENOENT;
    return held("the secret in /proc/self/environ");
}

static int inherited_ignored(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int number_of = 1; number_of < 32; number_of++) {
        struct sigaction now;
        if (sigaction(number_of, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            return escaped("signal %d is ignored", number_of);
    }
    errno = 0;
    return held("no signal is ignored");
}

static int inherited_blocked(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    for (int number_of = 1; number_of < 32; number_of++) {
        if (sigismember(&now, number_of) == 1)
            return escaped("signal %d is blocked", number_of);
    }
    errno = 0;
    return held("no signal is blocked");
}

static int inherited_session(int argc, char **argv)
{
    (void)argc;
    pid_t session = getsid(0);
    if (session == (pid_t)number(argv[0]))
        return escaped("in session %d of the caller", session);
    errno = 0;
    return held("in session %d", session);
}

static int inherited_umask(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    mode_t mask = umask(022);
    if ((mask & 022) == 0)
        return escaped("files are made with mask %o", (unsigned)mask);
    errno = 0;
    return held("files are made with mask %o", (unsigned)mask);
}

static int inherited_core(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct rlimit limit = { 0, 0 };
    getrlimit(RLIMIT_CORE, &limit);
    /* A limit of one byte is less than any core, and for the kernel also "no core through a pipe". */
    if (limit.rlim_max > 1)
        return escaped("core files of up to %llu bytes", (unsigned long long)limit.rlim_max);
    errno = 0;
    return held("no core files");
}

const struct attempt inherit_attempts[] = {
    { "env-secret", 1, env_secret, "find SECRET in the environment" },
    { "env-memory", 1, env_memory, "find SECRET in /proc/self/environ" },
    { "inherited-ignored", 0, inherited_ignored, "inherit an ignored signal" },
    { "inherited-blocked", 0, inherited_blocked, "inherit a blocked signal" },
    { "inherited-session", 1, inherited_session, "be in session SID of the caller" },
    { "inherited-umask", 0, inherited_umask, "inherit a file mode mask of 0" },
    { "inherited-core", 0, inherited_core, "be able to leave a core file" },
    { 0 },
};
