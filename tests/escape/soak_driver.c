/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the embedding side of the soak: one engine, several threads, thousands of calls that end in
 * every way: by themselves, by a limit, cancelled, given up, or because somebody killed a process of
 * theirs. Says at the end what came out, and how much memory and how many descriptors it then has.
 *
 *   soak-driver POLICY PROGRAM DIRECTORY CALLS THREADS SEED
 *
 * The policy has tools quick, slow and flood for each backend: "jail_quick", "process_quick", ...
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "open_files.h"
#include "toolcage/toolcage.h"

enum { ROUNDS_MAX = 5000, KINDS = 8, VERDICTS = TC_VERDICT_ERROR + 1 };

static struct tc_engine *engine;
static const char *program, *directory;
static long calls, threads;
static unsigned seed;
static atomic_long next, wrong, verdicts[VERDICTS], given_up;
static long memory_early, files_early, files_before;

static void fail(const char *what, const char *detail)
{
    if (atomic_fetch_add(&wrong, 1) < 20)
        fprintf(stderr, "soak: %s: %s\n", what, detail);
}

static long resident_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kb;
}

/* Kills a child that this thread has made, if one is there. */
static void kill_a_child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)syscall(SYS_gettid));
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &pid) == 1 && pid > 1)
        kill(pid, SIGKILL);
    if (file)
        fclose(file);
}

static void expect(const struct tc_result *result, unsigned allowed, const char *what)
{
    atomic_fetch_add(&verdicts[result->verdict], 1);
    if (!(allowed & 1U << result->verdict)) {
        char text[1024];
        snprintf(text, sizeof(text), "verdict %s: %s", tc_verdict_name(result->verdict),
                 result->reason);
        fail(what, text);
    }
}

/* Drives a call as an event loop would; at `end_after` milliseconds it is ended in some way. */
static void stepped(const struct tc_request *request, unsigned kind, int end_after)
{
    struct tc_error error = { 0 };
    struct tc_call *call = NULL;
    struct tc_result *result = NULL;
    if (tc_call_start(engine, request, &call, &error) < 0) {
        fail("tc_call_start", error.message);
        return;
    }
    for (int round = 0; !result; round++) {
        struct pollfd wait = { .fd = tc_call_fd(call), .events = POLLIN };
        poll(&wait, 1, round == 0 ? end_after : 20000);
        if (round == 0 && kind == 3)
            tc_call_cancel(call);
        if (round == 0 && kind == 4)
            break; /* freed while it runs */
        if (round == 0 && kind == 5)
            kill_a_child();
        if (tc_call_step(call, &result, &error) < 0) {
            fail("tc_call_step", error.message);
            break;
        }
        /* A descriptor that is readable although there is nothing to do eats a processor. */
        if (round == ROUNDS_MAX) {
            char text[64];
            snprintf(text, sizeof(text), "kind %u: %d steps without an end", kind, round);
            fail("tc_call_step", text);
        }
        if (round > 100 * ROUNDS_MAX)
            break;
    }
    if (result)
        expect(result, ~0U, "stepped");
    else
        atomic_fetch_add(&given_up, 1);
    tc_result_free(result);
    tc_call_free(call);
}

static void blocking(const struct tc_request *request, unsigned allowed, const char *what)
{
    struct tc_error error = { 0 };
    struct tc_result *result = NULL;
    if (tc_call(engine, request, &result, &error) < 0) {
        fail(what, error.message);
        return;
    }
    expect(result, allowed, what);
    tc_result_free(result);
}

static void one(unsigned *state)
{
    char tool[32], beat[512];
    bool jail = rand_r(state) % 3 != 0;
    unsigned kind = (unsigned)rand_r(state) % KINDS;
    const char *backend = jail ? "jail" : "process";
    const char *quick[] = { program, "control-read", "/dev/null", NULL };
    const char *slow[] = { program, "sleep-long", "20000", NULL };
    const char *flood[] = { program, "flood-both", "4", NULL };
    const char *outlive[] = { program, "outlive-daemon", beat, NULL };
    struct tc_request request = { .tool = tool, .input_fd = -1 };

    snprintf(beat, sizeof(beat), "%s/heartbeat-%ld", directory, (long)syscall(SYS_gettid));
    bool ends = kind == 0 || kind == 6; /* by itself */
    snprintf(tool, sizeof(tool), "%s_%s", backend, ends ? "quick" : "slow");
    request.argv = ends ? quick : slow;
    if (kind == 2) {
        snprintf(tool, sizeof(tool), "%s_flood", backend);
        request.argv = flood;
    }
    if (kind == 6)
        request.argv = outlive;
    if (kind == 0 || kind == 7)
        blocking(&request, kind == 0 ? 1U << TC_VERDICT_OK : 1U << TC_VERDICT_TIMEOUT,
                 kind == 0 ? "quick" : "slow");
    else if (kind == 1)
        blocking(&request, 1U << TC_VERDICT_TIMEOUT, "slow");
    else if (kind == 2)
        blocking(&request, 1U << TC_VERDICT_OUTPUT, "flood");
    else if (kind == 6)
        blocking(&request, 1U << TC_VERDICT_FAILED, "outlive");
    else
        stepped(&request, kind, rand_r(state) % 30);
}

static void *worker(void *number)
{
    unsigned state = seed + (unsigned)(size_t)number;
    for (long i; (i = atomic_fetch_add(&next, 1)) < calls;) {
        one(&state);
        /* Everything that is made once has been made by now. */
        if (i == calls / 4) {
            memory_early = resident_kb();
            files_early = open_files();
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct tc_error error = { 0 };
    pthread_t ids[64];
    if (argc < 7)
        return 64;
    program = argv[2];
    directory = argv[3];
    calls = atol(argv[4]);
    threads = atol(argv[5]);
    seed = (unsigned)atol(argv[6]);
    if (threads < 1 || threads > 64)
        return 64;
    files_before = open_files();
    if (tc_engine_open(&(struct tc_engine_options){ .policy_path = argv[1] }, &engine, &error) <
        0) {
        fprintf(stderr, "soak: %s\n", error.message);
        return 1;
    }
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, worker, (void *)(size_t)i) != 0)
            return 1;
    }
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    long memory = resident_kb(), files = open_files();
    tc_engine_close(engine);
    /* No child may be left, not even a dead one. */
    bool children = waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
    printf("{\"calls\": %ld, \"wrong\": %ld, \"given_up\": %ld, \"memory_kb\": [%ld, %ld], "
           "\"files\": [%ld, %ld, %ld, %ld], \"children\": %s, \"verdicts\": {",
           calls, (long)wrong, (long)given_up, memory_early, memory, files_before, files_early,
           files, open_files(), children ? "true" : "false");
    for (unsigned i = 0; i < VERDICTS; i++)
        printf("%s\"%s\": %ld", i ? ", " : "", tc_verdict_name((enum tc_verdict)i),
               (long)verdicts[i]);
    printf("}}\n");
    return wrong == 0 && !children ? 0 : 1;
}
