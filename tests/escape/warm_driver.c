/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a host that stays, for the soak of the warm pool: one engine that keeps cages ready, several
 * threads that call one tool. Says how many calls went well, how long they took, and whether the engine
 * has given everything back.
 *
 *   warm-driver POLICY TOOL CALLS THREADS
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "open_files.h"
#include "toolcage/toolcage.h"

enum { CALLS_MAX = 10000, THREADS_MAX = 64 };

static struct tc_engine *engine;
static const char *tool;
static long calls;
static atomic_long next, good;
static double took[CALLS_MAX];
static char ids[CALLS_MAX][72]; /* each container is used once */

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void call(long number)
{
    /* What an earlier call left would be seen here. */
    static const char script[] = "[ ! -e /tmp/used ] && touch /tmp/used && cat && exit 7";
    const char *const argv[] = { "sh", "-c", script, NULL };
    char input[32];
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    double begin = now_ms();

    snprintf(input, sizeof(input), "%ld", number);
    struct tc_request request = {
        .tool = tool, .argv = argv, .input = input, .input_length = strlen(input)
    };
    if (tc_call(engine, &request, &result, &error) < 0) {
        fprintf(stderr, "warm-driver: %s\n", error.message);
        return;
    }
    took[number] = now_ms() - begin;
    memcpy(ids[number], result->sandbox_id, sizeof(ids[number]));
    ids[number][sizeof(ids[number]) - 1] = '\0';
    if (result->verdict == TC_VERDICT_FAILED && result->exit_code == 7 &&
        strcmp(result->stdout_data, input) == 0)
        good++;
    else
        fprintf(stderr, "warm-driver: %s (%d): %s\n", tc_verdict_name(result->verdict),
                result->exit_code, result->reason);
    tc_result_free(result);
}

static void *worker(void *context)
{
    (void)context;
    for (long number; (number = next++) < calls;)
        call(number);
    return NULL;
}

static int by_time(const void *one, const void *two)
{
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static int by_text(const void *one, const void *two)
{
    return strcmp(one, two);
}

static long repeated_ids(void)
{
    long repeated = 0;
    qsort(ids, (size_t)calls, sizeof(ids[0]), by_text);
    for (long i = 1; i < calls; i++)
        repeated += strcmp(ids[i - 1], ids[i]) == 0;
    return repeated;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    struct tc_error error = { 0 };
    long count = argc == 5 ? atol(argv[4]) : 0;

    if (count < 1 || count > THREADS_MAX || (calls = atol(argv[3])) < 1 || calls > CALLS_MAX)
        return 64;
    tool = argv[2];
    long files = open_files();
    struct tc_engine_options options = { .policy_path = argv[1], .flags = TC_ENGINE_WARM };
    if (tc_engine_open(&options, &engine, &error) < 0) {
        fprintf(stderr, "warm-driver: %s\n", error.message);
        return 1;
    }
    for (long i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, worker, NULL) != 0)
            return 1;
    }
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    tc_engine_close(engine);
    /* No child may be left, not even a dead one. */
    bool children = waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
    qsort(took, (size_t)calls, sizeof(took[0]), by_time);
    printf("{\"calls\": %ld, \"good\": %ld, \"median_ms\": %.2f, \"worst_ms\": %.2f, "
           "\"files\": [%ld, %ld], \"children\": %s, \"repeated_ids\": %ld}\n",
           calls, (long)good, took[calls / 2], took[calls - 1], files, open_files(),
           children ? "true" : "false", repeated_ids());
    return 0;
}
