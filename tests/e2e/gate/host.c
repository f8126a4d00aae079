/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds the library and makes calls with network rules from several threads, for the tests of the
 * gate. Says how many calls went well, and what it then has: memory, descriptors, threads, before and after.
 *
 *   gate-host POLICY CALLS THREADS COMMAND [ARGUMENT...]
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "toolcage/toolcage.h"

enum { threads_max = 32 };

static struct tc_engine *engine;
static const char *const *command;
static atomic_int next, good;
static int calls;

static long value_of(const char *key)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "re");

    while (file && value < 0 && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key), NULL, 10);
    if (file)
        (void)fclose(file);
    return value;
}

/* Without files: an engine keeps some control groups open for the next call. */
static long open_files(void)
{
    char target[64];
    long count = 0;
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        count += *target && *target != '/';
    }
    if (directory)
        (void)closedir(directory);
    return count;
}

static void *make_calls(void *context)
{
    while (next++ < calls) {
        struct tc_request request = { .argv = command };
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        if (tc_call(engine, &request, &result, &error) < 0) {
            (void)fprintf(stderr, "%s\n", error.message);
            continue;
        }
        if (result->verdict == TC_VERDICT_OK)
            good++;
        else
            (void)fprintf(stderr, "%s: %s\n", tc_verdict_name(result->verdict), result->reason);
        tc_result_free(result);
    }
    return context;
}

static void run(int count, int threads)
{
    pthread_t started[threads_max];

    next = 0;
    calls = count;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&started[i], NULL, make_calls, NULL) != 0)
            exit(1);
    for (int i = 0; i < threads; i++)
        (void)pthread_join(started[i], NULL);
}

int main(int argc, char **argv)
{
    struct tc_error error = { 0 };
    if (argc < 5 || atoi(argv[3]) > threads_max)
        return 2;
    command = (const char *const *)&argv[4];
    if (tc_engine_open(&(struct tc_engine_options){ .policy_path = argv[1] }, &engine, &error) <
        0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    run(10 * atoi(argv[3]),
        atoi(argv[3])); /* what is made once, or kept for the next call, is there */
    long files = open_files(), memory = value_of("VmRSS:");
    good = 0;
    run(atoi(argv[2]), atoi(argv[3]));
    /* A lookup ends by itself, after its call. */
    for (int i = 0; i < 500 && value_of("Threads:") > 1; i++)
        (void)usleep(10000);
    (void)printf(
        "{\"good\": %d, \"files\": [%ld, %ld], \"memory_kb\": [%ld, %ld], \"threads\": %ld}\n",
        good, files, open_files(), memory, value_of("VmRSS:"), value_of("Threads:"));
    tc_engine_close(engine);
    return 0;
}
