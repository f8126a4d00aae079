/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: starting a program outside, the same way for all of them: posix_spawn, streams to nowhere,
 * a process group of its own, and a limit of time, because a peer may hang.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "native.h"

const char *bench_find(struct bench *bench, const char *program)
{
    const char *path = getenv("PATH");
    char *list = bench_text(bench, "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/bin");
    char *rest = NULL;

    for (char *folder = strtok_r(list, ":", &rest); folder; folder = strtok_r(NULL, ":", &rest)) {
        const char *file = bench_text(bench, "%s/%s", folder, program);
        if (folder[0] == '/' && access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

struct bench_command *bench_command_new(struct bench *bench)
{
    struct bench_command *command = tci_arena_new_of(bench->arena, struct bench_command);
    if (!command)
        abort();
    command->mounts = -1;
    return command;
}

void bench_command_add(struct bench_command *command, ...)
{
    va_list words;
    va_start(words, command);
    for (const char *word; (word = va_arg(words, const char *));) {
        if (command->count == BENCH_WORDS_MAX - 1)
            abort();
        command->words[command->count++] = word;
    }
    va_end(words);
}

/* Nothing comes from there, and what goes there is not read. Not the host's /dev/null: runsc makes its streams the
 * container's user's. */
static int nowhere(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("bench", MFD_CLOEXEC);
    return fd;
}

/* 0, or an errno value. */
static int start(const struct bench_command *command, const char *errors, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *argv[BENCH_WORDS_MAX];
    int r;

    /* execve takes words that it could change and does not. */
    memcpy(argv, command->words, sizeof(argv));
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    (void)posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        (void)posix_spawn_file_actions_adddup2(&actions, nowhere(), i);
    if (errors)
        (void)posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC,
                                               0600);
    if (command->descriptor_10)
        (void)posix_spawn_file_actions_addopen(&actions, 10, command->descriptor_10, O_RDONLY, 0);
    r = posix_spawn(ret_pid, command->words[0], &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return r;
}

/* The wait status, or -1 when it was killed for its time. */
static int await(pid_t pid)
{
    int handle = (int)syscall(SYS_pidfd_open, pid, 0), status = -1, r;
    struct pollfd end = { .fd = handle, .events = POLLIN };
    bool late;

    do
        r = poll(&end, 1, BENCH_LIMIT_MS);
    while (handle >= 0 && r < 0 && errno == EINTR);
    late = handle >= 0 && r == 0;
    if (late)
        (void)kill(-pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0)
        status = -1;
    if (handle >= 0)
        (void)close(handle);
    return late ? -1 : status;
}

static int run(struct bench_command *command, const char *errors, struct bench_subject *subject,
               double *ret_value)
{
    int home = -1, status, r;
    double begin;
    pid_t pid;

    if (command->mounts >= 0) {
        home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        /* Threads of a pool share our working directory, which setns does not allow. */
        if (home < 0 || unshare(CLONE_FS) < 0 || setns(command->mounts, CLONE_NEWNS) < 0)
            return bench_fail(subject, "cannot enter the mount namespace: %s", strerror(errno));
    }
    begin = bench_now_ms();
    r = start(command, errors, &pid);
    status = r == 0 ? await(pid) : 0;
    *ret_value = bench_now_ms() - begin;
    if (home >= 0) {
        if (setns(home, CLONE_NEWNS) < 0)
            abort();
        (void)close(home);
    }
    if (r != 0)
        return bench_fail(subject, "cannot start %s: %s", command->words[0], strerror(r));
    if (status == -1)
        return bench_fail(subject, "did not end within %d s", BENCH_LIMIT_MS / 1000);
    if (WIFSIGNALED(status))
        return bench_fail(subject, "killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? 0 : bench_fail(subject, "exit %d", WEXITSTATUS(status));
}

int bench_command_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    (void)bench;
    return run(subject->command, NULL, subject, ret_value);
}

/* Puts the last line of what a failed program wrote behind the note. */
static void last_words(const char *path, struct bench_subject *subject)
{
    static char line[4096], last[4096];
    size_t length = strlen(subject->note);
    FILE *file = fopen(path, "re");

    last[0] = 0;
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0])
            memcpy(last, line, sizeof(last));
    }
    if (file)
        (void)fclose(file);
    if (last[0])
        (void)snprintf(subject->note + length, sizeof(subject->note) - length, ": %s", last);
}

int bench_command_try(struct bench *bench, struct bench_command *command,
                      struct bench_subject *subject)
{
    const char *errors = bench_file(bench, "errors", "");
    double value;
    int r = run(command, errors, subject, &value);
    if (r < 0)
        last_words(errors, subject);
    (void)unlink(errors);
    return r;
}
