/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the memory of a running cage: all processes between us and the command, and the command
 * itself, as the kernel counts them in smaps_rollup. A process that still shares our own memory adds
 * nothing. What the kernel keeps for namespaces, mounts and groups is not in these figures.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "native.h"

enum { processes_max = 256, wait_ms = 10000 };

struct memory {
    double pss, private;
};

struct processes {
    pid_t ids[processes_max];
    unsigned count;
};

static bool holds(const struct processes *list, pid_t pid)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->ids[i] == pid)
            return true;
    return false;
}

static pid_t parent_of(pid_t pid)
{
    char path[40], line[512];
    const char *end;
    FILE *file;
    int parent = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    /* The name, in brackets, may hold anything. */
    if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
        parent = (int)strtol(end + 4, NULL, 10);
    (void)fclose(file);
    return parent;
}

/* Everything below us but those in `except`, whose children are left out with them. */
static void descendants(const struct processes *except, struct processes *ret)
{
    unsigned before;
    ret->count = 0;
    do {
        DIR *all = opendir("/proc");
        before = ret->count;
        for (struct dirent *entry; all && (entry = readdir(all));) {
            pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), parent;
            if (!isdigit((unsigned char)entry->d_name[0]) || holds(ret, pid) || holds(except, pid))
                continue;
            parent = parent_of(pid);
            if ((parent == getpid() || holds(ret, parent)) && ret->count < processes_max)
                ret->ids[ret->count++] = pid;
        }
        if (all)
            (void)closedir(all);
    } while (ret->count != before);
}

static void add(pid_t pid, struct memory *sum)
{
    char path[48], line[160];
    FILE *file;

    if (syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0) == 0)
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "Pss:", 4) == 0)
            sum->pss += strtod(line + 4, NULL);
        else if (strncmp(line, "Private_Clean:", 14) == 0 ||
                 strncmp(line, "Private_Dirty:", 14) == 0)
            sum->private += strtod(line + 14, NULL);
    }
    if (file)
        (void)fclose(file);
}

static int started(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    (void)stream;
    (void)bytes;
    *(bool *)context = *(bool *)context || length > 0;
    return 0;
}

static int step(struct tc_call *call, struct bench_subject *subject, struct tc_result **ret)
{
    struct pollfd ready = { .fd = tc_call_fd(call), .events = POLLIN };
    struct tc_error error = { 0 };
    if (poll(&ready, 1, wait_ms) == 0)
        return bench_fail(subject, "nothing happens");
    return tc_call_step(call, ret, &error) < 0 ? bench_fail(subject, "%s", error.message) : 0;
}

static int measure(struct bench *bench, struct bench_subject *subject, struct memory *ret)
{
    const char *const argv[] = { bench->sleeper_path, NULL };
    bool running = false;
    struct tc_request request = {
        .tool = subject->argument, .argv = argv, .on_output = started, .context = &running
    };
    static struct processes others, cage;
    struct tc_error error = { 0 };
    struct tc_result *result = NULL;
    struct tc_call *call;
    int r = 0;

    *ret = (struct memory){ 0 };
    descendants(&(struct processes){ .count = 0 }, &others);
    if (tc_call_start(bench->engine, &request, &call, &error) < 0)
        return bench_fail(subject, "tc_call_start: %s", error.message);
    while (r == 0 && !running && !result)
        r = step(call, subject, &result);
    if (result)
        r = bench_fail(subject, "verdict %s: %s", tc_verdict_name(result->verdict), result->reason);
    descendants(&others, &cage);
    for (unsigned i = 0; r == 0 && i < cage.count; i++)
        add(cage.ids[i], ret);
    if (result)
        tc_result_free(result);
    tc_call_free(call);
    if (r == 0 && ret->pss <= 0)
        r = bench_fail(subject, "found no process of the cage");
    return r;
}

int bench_memory_pss_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    struct memory memory;
    int r = measure(bench, subject, &memory);
    *ret_value = memory.pss;
    return r;
}

int bench_memory_private_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    struct memory memory;
    int r = measure(bench, subject, &memory);
    *ret_value = memory.private;
    return r;
}

int bench_memory_bare_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = { strdupa(bench->sleeper_path), NULL }, byte;
    struct memory memory = { 0 };
    int ends[2], r;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return bench_fail(subject, "pipe: %s", strerror(errno));
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    r = posix_spawn(&pid, bench->sleeper_path, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (r == 0) {
        if (read(ends[0], &byte, 1) == 1)
            add(pid, &memory);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    (void)close(ends[0]);
    *ret_value = memory.pss;
    return memory.pss > 0 ? 0 : bench_fail(subject, "cannot measure");
}
