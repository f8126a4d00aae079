/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: toolcage's container backends through the library, cold and warm. They run the same static
 * program as their peers (bundle.c, engines.c): bare runtimes in a root directory that holds nothing
 * else, engines in the peers' own image, so that what differs is who asks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "native.h"

/* A pool refills in the background: how long to leave it alone, outside the clock. */
enum { refill_ms = 150, refill_gvisor_ms = 900 };

static struct tc_engine *cold, *warm;
static const char *policy; /* made once: its root directory has a link to the program of all */

static const char *root(struct bench *bench, struct bench_subject *subject)
{
    const char *program = bench_file(bench, "container/rootfs/bin/true", "");
    static const char *const places[] = { "proc", "dev", "tmp", "etc" };

    for (unsigned i = 0; i < tci_array_size(places); i++)
        (void)bench_file(bench, bench_text(bench, "container/rootfs/%s/", places[i]), NULL);
    if (unlink(program) < 0 || link(bench->true_path, program) < 0) {
        (void)bench_fail(subject, "cannot link the program: %s", strerror(errno));
        return NULL;
    }
    return bench_text(bench, "%s/container/rootfs", bench->directory);
}

static const char *tools(struct bench *bench, struct bench_subject *subject)
{
    const char *rootfs = root(bench, subject), *image = bench_engine_image(bench);
    if (!rootfs)
        return NULL;
    const char *bare = bench_text(bench,
                                  "[tool.oci_crun]\nbackend = \"oci\"\nrootfs = \"%s\"\nwarm = 1\n"
                                  "container = { engine = \"none\", runtime = \"crun\" }\n"
                                  "[tool.oci_runc]\nbackend = \"oci\"\nrootfs = \"%s\"\n"
                                  "container = { engine = \"none\", runtime = \"runc\" }\n"
                                  "[tool.gvisor]\nbackend = \"gvisor\"\nrootfs = \"%s\"\nwarm = 1\n"
                                  "container = { engine = \"none\", runtime = \"runsc\" }\n",
                                  rootfs, rootfs, rootfs);
    const char *engines = bench_text(bench,
                                     "[tool.oci_podman]\nbackend = \"oci\"\nimage = \"%s\"\n"
                                     "container = { engine = \"podman\" }\n"
                                     "[tool.oci_docker]\nbackend = \"oci\"\nimage = \"%s\"\n"
                                     "container = { engine = \"docker\" }\n",
                                     image, image);
    return bench_file(bench, "containers.toml",
                      bench_text(bench, "version = 1\n%s%s", bare, engines));
}

static bool is_warm(const struct bench_subject *subject)
{
    size_t length = strlen(subject->id);
    return length > 5 && strcmp(subject->id + length - 5, "_warm") == 0;
}

static void leave_alone(const struct bench_subject *subject)
{
    long ms = strncmp(subject->argument, "gvisor", 6) == 0 ? refill_gvisor_ms : refill_ms;
    struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&pause, NULL);
}

int bench_container_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    static const char *const argv[] = { "/bin/true", NULL };
    struct tc_request request = { .tool = subject->argument, .argv = argv };
    struct tc_error error = { 0 };
    struct tc_result *result = NULL;
    double begin = bench_now_ms();
    int r = tc_call(is_warm(subject) ? warm : cold, &request, &result, &error);

    (void)bench;
    if (r < 0)
        return bench_fail(subject, "tc_call: %s", error.message);
    if (result->verdict != TC_VERDICT_OK)
        r = bench_fail(subject, "verdict %s: %s", tc_verdict_name(result->verdict), result->reason);
    tc_result_free(result);
    *ret_value = bench_now_ms() - begin;
    if (is_warm(subject))
        leave_alone(subject);
    return r;
}

int bench_container_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct tc_engine **engine = is_warm(subject) ? &warm : &cold;
    struct tc_error error = { 0 };
    double ignored;

    if (!*engine) {
        struct tc_engine_options options = { .flags = is_warm(subject) ? TC_ENGINE_WARM : 0 };
        if (!policy)
            policy = tools(bench, subject);
        if (!policy)
            return -1;
        options.policy_path = policy;
        if (tc_engine_open(&options, engine, &error) < 0)
            return bench_fail(subject, "tc_engine_open: %s", error.message);
    }
    /* For the plan, which the first call makes, and not for the command lines of Podman. */
    const char *host = getenv("BENCH_CONTAINER_HOST");
    if (host)
        (void)setenv("CONTAINER_HOST", host, 1);
    int r = bench_container_run(bench, subject, &ignored);
    if (host)
        (void)unsetenv("CONTAINER_HOST");
    return r;
}

void bench_container_close(void)
{
    if (cold)
        tc_engine_close(cold);
    if (warm)
        tc_engine_close(warm);
    cold = warm = NULL;
}
