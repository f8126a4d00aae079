/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with tools of its own, for test_handlers.py. It defines one tool, calls it, and prints each
 * result as a line of JSON; what it finds out about itself is the last line.
 *
 *   handler_host [-t THREADS] [-n CALLS] [-f FLAGS] [-g MEGABYTES] [-a AGENT] [-d NAME] POLICY TOML HANDLER ARGUMENTS
 *
 * POLICY "-" is none; HANDLER is the name of a function (handler_functions.c), or LIBRARY:SYMBOL; an
 * ARGUMENTS "argv" runs a command instead. NAME is a second tool, with the same handler. With threads, others allocate memory all the time.
 */
#include "handler_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <toolcage/toolcage.h>

struct host host;
static struct tc_engine *engine;
static struct tc_request request = { .tool = "mine", .input_fd = -1 };
static int calls = 1, threads;
static atomic_int good, bad;
static atomic_bool done;

static int count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static bool maps_have(const char *text)
{
    char line[8192];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, text) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static void fail(struct tc_error *error)
{
    for (char *at = error->message; *at; at++)
        *at = *at == '"' ? '\'' : *at;
    for (char *at = error->remedy; *at; at++)
        *at = *at == '"' ? '\'' : *at;
    printf("{\"error\":\"%s\",\"message\":\"%s\",\"remedy\":\"%s\"}\n", tc_error_name(error->code),
           error->message, error->remedy);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

/* Keeps the locks of the allocator busy, so that a fork finds them taken. */
static void *allocate(void *context)
{
    (void)context;
    while (!done) {
        void *blocks[64];
        for (size_t i = 0; i < 64; i++)
            blocks[i] = malloc(16 + i * 700);
        for (size_t i = 0; i < 64; i++)
            free(blocks[i]);
    }
    return NULL;
}

static void *call_many(void *context)
{
    (void)context;
    for (int i = 0; i < calls; i++) {
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        if (tc_call(engine, &request, &result, &error) < 0) {
            fail(&error);
            bad++;
            continue;
        }
        if (result->verdict == TC_VERDICT_OK)
            good++;
        else
            bad++;
        if (!threads || result->verdict != TC_VERDICT_OK)
            printf("%s\n", tc_result_json(result));
        tc_result_free(result);
    }
    return NULL;
}

static void call_in_threads(void)
{
    pthread_t callers[64], allocators[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&allocators[i], NULL, allocate, NULL);
    for (int i = 0; i < threads; i++)
        pthread_create(&callers[i], NULL, call_many, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(callers[i], NULL);
    done = true;
    for (int i = 0; i < 2; i++)
        pthread_join(allocators[i], NULL);
}

/* What a fork takes along, or does not. */
static void make_host(size_t megabytes)
{
    char name[] = "/tmp/handler-host-XXXXXX";
    int file = mkstemp(name);
    host.pid = getpid();
    memcpy(host.secret, "the host's secret", 18);
    host.shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memcpy(host.shared, "before", 7);
    if (file < 0 || ftruncate(file, 4096) < 0 || pipe(host.pipe) < 0)
        exit(99);
    unlink(name);
    /* Mapped for reading, from a file that is open for writing. */
    host.mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    host.file = file; /* and left open, without O_CLOEXEC, as careless hosts do */
    if (megabytes) {
        char *large = mmap(NULL, megabytes << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (large == MAP_FAILED)
            exit(99);
        madvise(large, megabytes << 20,
                getenv("HANDLER_HUGE_PAGES") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        for (size_t i = 0; i < megabytes << 20; i += 4096)
            large[i] = 1;
    }
}

static int define(const char *name, const char *toml, const char *handler)
{
    char library[4096];
    const char *colon = strrchr(handler, ':');
    struct tc_tool_definition definition = { .name = name, .policy = toml, .context = &host };
    struct tc_error error = { 0 };
    if (colon) {
        (void)snprintf(library, sizeof library, "%.*s", (int)(colon - handler), handler);
        definition.library = library;
        definition.symbol = colon + 1;
    } else if (strcmp(handler, "none") != 0) {
        definition.function = host_function(handler);
    }
    if (tc_tool_define(engine, &definition, &error) == 0)
        return 0;
    fail(&error);
    return -1;
}

static void report(int left, double ms)
{
    char byte;
    (void)fcntl(host.pipe[0], F_SETFL, O_NONBLOCK);
    printf("{\"good\":%d,\"bad\":%d,\"descriptors\":%d,\"library_mapped\":%s,\"shared\":\"%s\","
           "\"file\":%d,\"pipe\":%zd,\"ms\":%.3f}\n",
           good, bad, left, maps_have("handler_library") ? "true" : "false", host.shared,
           host.mapped[0], read(host.pipe[0], &byte, 1), ms);
}

int main(int argc, char **argv)
{
    static const char *const command[] = { "sh", "-c", "echo command", NULL };
    struct tc_engine_options options = { .policy_path = NULL };
    struct tc_error error = { 0 };
    const char *second = NULL;
    size_t megabytes = 0;
    int option, descriptors;
    double began, ms;

    while ((option = getopt(argc, argv, "t:n:f:g:a:d:")) >= 0)
        switch (option) {
        case 't':
            threads = atoi(optarg);
            break;
        case 'n':
            calls = atoi(optarg);
            break;
        case 'd':
            second = optarg;
            break;
        case 'a':
            request.agent = optarg;
            break;
        case 'f':
            request.flags = (unsigned)atoi(optarg);
            break;
        default:
            megabytes = (size_t)atoi(optarg);
        }
    if (argc - optind != 4)
        return 98;
    argv += optind;
    make_host(megabytes);
    descriptors = count_descriptors();
    options.policy_path = strcmp(argv[0], "-") == 0 ? NULL : argv[0];
    if (tc_engine_open(&options, &engine, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 97;
    }
    if (define("mine", argv[1], argv[2]) < 0 || (second && define(second, argv[1], argv[2]) < 0))
        return 0;
    if (strcmp(argv[3], "argv") == 0)
        request.argv = command;
    else
        request.arguments_json = argv[3];
    call_many(NULL); /* the first one opens what stays open */
    good = bad = 0;
    began = now();
    if (threads)
        call_in_threads();
    else if (calls > 1)
        call_many(NULL);
    ms = (now() - began) / calls;
    tc_engine_close(engine);
    report(count_descriptors() - descriptors, ms);
    return 0;
}
