/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A difficult host for the library: many threads that call, one that collects every child of the
 * process as soon as it can, handlers for SIGCHLD, SIGPIPE ignored, and descriptors 0 to 2 closed if
 * asked. Prints how many calls went well.
 *   library_host THREADS CALLS [closed]
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <toolcage/toolcage.h>

static struct tc_engine *engine;
static atomic_int good, handled, collected, done;
static int calls;

static void on_child(int number)
{
    (void)number;
    handled++;
}

static void *collect(void *context)
{
    (void)context;
    while (!done) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            collected++;
        else
            usleep(200);
    }
    return NULL;
}

static void *call(void *context)
{
    for (int i = 0; i < calls; i++) {
        const char *const argv[] = { "sh", "-c", "cat; exit 7", NULL };
        struct tc_request request = { .argv = argv, .input = "bytes", .input_length = 5 };
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        (void)context;
        if (tc_call(engine, &request, &result, &error) < 0) {
            dprintf(2, "%s\n", error.message);
            continue;
        }
        if (result->verdict == TC_VERDICT_FAILED && result->exit_code == 7 &&
            strcmp(result->stdout_data, "bytes") == 0)
            good++;
        else
            dprintf(2, "%s: %s\n", tc_verdict_name(result->verdict), result->reason);
        tc_result_free(result);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 1, out = dup(1);
    pthread_t threads[64], collector;
    struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };
    struct tc_error error = { 0 };

    calls = argc > 2 ? atoi(argv[2]) : 1;
    sigaction(SIGCHLD, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 3)
        for (int fd = 0; fd < 3; fd++)
            close(fd);
    if (tc_engine_open(NULL, &engine, &error) < 0) {
        dprintf(2, "%s\n", error.message);
        return 1;
    }
    pthread_create(&collector, NULL, collect, NULL);
    for (int i = 0; i < count && i < 64; i++)
        pthread_create(&threads[i], NULL, call, NULL);
    for (int i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
    done = 1;
    pthread_join(collector, NULL);
    tc_engine_close(engine);
    dprintf(out, "%d\n", good);
    return 0;
}
