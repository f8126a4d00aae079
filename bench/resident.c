/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: calls from processes that hold little and much memory. Each caller is a process of its own
 * with an engine of its own that waits for orders, so that both run interleaved with all the rest.
 * Its memory is touched, in small pages: fork() would copy a page table entry for each of them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "native.h"

struct answer {
    int result;
    double value;
    char note[BENCH_NOTE_MAX];
};

enum { callers_max = 2 };

static struct caller {
    uint64_t bytes;
    pid_t pid;
    int channel;
} callers[callers_max];

static bool hold(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    /* Huge pages would leave hardly any page tables to copy. */
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((volatile char *)memory)[at] = 1;
    return true;
}

static void obey(struct bench *bench, char order, struct answer *answer)
{
    struct bench_subject subject = { .argument = "jail" };
    double begin = bench_now_ms();
    if (order == 'f')
        answer->result = bench_fork(bench, &subject);
    else if (order == 'o')
        answer->result = bench_cage_prepare(bench, &subject);
    else
        answer->result = bench_cage_once(bench, &subject);
    answer->value = bench_now_ms() - begin;
    memcpy(answer->note, subject.note, sizeof(answer->note));
}

_Noreturn static void caller_main(struct bench *bench, uint64_t bytes, int channel)
{
    struct answer answer = { 0 };
    char order;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench->engine = NULL; /* the parent's */
    if (!hold(bytes))
        _exit(1);
    while (read(channel, &order, 1) == 1) {
        obey(bench, order, &answer);
        if (write(channel, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
            break;
    }
    bench_cage_close(bench);
    _exit(0);
}

static int ask(const struct caller *caller, char order, struct bench_subject *subject,
               double *ret_value)
{
    struct answer answer;
    if (write(caller->channel, &order, 1) != 1 ||
        recv(caller->channel, &answer, sizeof(answer), MSG_WAITALL) != (ssize_t)sizeof(answer))
        return bench_fail(subject, "the calling process is gone");
    *ret_value = answer.value;
    return answer.result < 0 ? bench_fail(subject, "%.300s", answer.note) : 0;
}

static bool enough_memory(uint64_t bytes)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[160];
    uint64_t available = 0;
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            available = strtoull(line + 13, NULL, 10) * 1024;
    if (file)
        (void)fclose(file);
    return available > bytes + bytes / 2;
}

/* "jail 4294967296" or "fork 4294967296" */
static uint64_t bytes_of(const struct bench_subject *subject)
{
    return strtoull(strchr(subject->argument, ' '), NULL, 10);
}

static struct caller *caller_of(const struct bench_subject *subject)
{
    for (unsigned i = 0; i < callers_max; i++)
        if (callers[i].pid > 0 && callers[i].bytes == bytes_of(subject))
            return &callers[i];
    return NULL;
}

static int start(struct bench *bench, struct bench_subject *subject)
{
    struct caller *caller = callers[0].pid > 0 ? &callers[1] : &callers[0];
    int ends[2];

    if (!enough_memory(bytes_of(subject)))
        return bench_fail(subject, "not enough memory is free");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return bench_fail(subject, "socketpair: %s", strerror(errno));
    *caller = (struct caller){ .bytes = bytes_of(subject), .channel = ends[0] };
    (void)fflush(stdout);
    caller->pid = fork();
    if (caller->pid == 0) {
        for (unsigned i = 0; i < callers_max; i++)
            if (callers[i].channel > 0) /* or the other one would never see its end */
                (void)close(callers[i].channel);
        caller_main(bench, caller->bytes, ends[1]);
    }
    (void)close(ends[1]);
    return caller->pid > 0 ? 0 : bench_fail(subject, "fork: %s", strerror(errno));
}

int bench_resident_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    (void)bench;
    return ask(caller_of(subject), subject->argument[0] == 'f' ? 'f' : 'c', subject, ret_value);
}

int bench_resident_prepare(struct bench *bench, struct bench_subject *subject)
{
    double value;
    if (!caller_of(subject) && start(bench, subject) < 0)
        return -1;
    return ask(caller_of(subject), subject->argument[0] == 'f' ? 'f' : 'o', subject, &value);
}

void bench_resident_close(void)
{
    for (unsigned i = 0; i < callers_max; i++)
        if (callers[i].pid > 0) {
            (void)close(callers[i].channel);
            (void)waitpid(callers[i].pid, NULL, 0);
            callers[i].pid = 0;
        }
}
