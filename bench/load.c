/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how many a second, with one thread for each processor, one call after the other in each. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "native.h"

enum { threads_max = 64, window_ms = 1000 };

typedef int once_function(struct bench *bench, struct bench_subject *subject);

struct worker {
    pthread_t thread;
    struct bench *bench;
    struct bench_subject subject; /* its own note */
    once_function *once;
    double until;
    unsigned count;
    int result;
};

static once_function *once_of(const struct bench_subject *subject)
{
    if (strcmp(subject->argument, "spawn") == 0)
        return bench_spawn;
    if (strcmp(subject->argument, "namespaces") == 0)
        return bench_namespaces;
    return bench_cage_once;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    while (bench_now_ms() < worker->until && worker->result == 0) {
        worker->result = worker->once(worker->bench, &worker->subject);
        worker->count++;
    }
    return NULL;
}

int bench_load_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    static struct worker workers[threads_max];
    unsigned started = 0, calls = 0;
    double begin = bench_now_ms();
    int r = 0;

    for (; started < bench->threads && started < threads_max; started++) {
        workers[started] = (struct worker){ .bench = bench,
                                            .subject = *subject,
                                            .once = once_of(subject),
                                            .until = begin + window_ms };
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    if (started == 0)
        return bench_fail(subject, "no thread could be started");
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        calls += workers[i].count;
        if (workers[i].result < 0)
            r = bench_fail(subject, "%s", workers[i].subject.note);
    }
    *ret_value = calls * 1e3 / (bench_now_ms() - begin);
    return r;
}

int bench_load_prepare(struct bench *bench, struct bench_subject *subject)
{
    if (once_of(subject) == bench_cage_once)
        return bench_cage_prepare(bench, subject);
    return once_of(subject)(bench, subject);
}
