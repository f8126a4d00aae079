/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how long a policy of 1,000 tools takes to load, check and lint, through the library, from a
 * file. Prints medians, and beside them what this machine needs for two plain things, so that the
 * figures can be compared between machines: reading the same bytes, and starting a process.
 *
 * usage: bench_policy [--json] [ROUNDS]
 */
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/file.h"
#include "policy/dump.h"
#include "policy/lint.h"
#include "policy/load.h"

enum { tools = 1000, rounds_default = 51, rounds_max = 1001 };

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_policy: %s\n", what);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A policy as a person might have written it, a thousand times over. */
static void write_policy(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write the policy");
    (void)fputs("version = 1\n\n[defaults]\nbackend = \"jail\"\ntimeout = \"30s\"\n", file);
    for (int i = 0; i < tools; i++)
        (void)fprintf(
            file,
            "\n[tool.fetch_%d]\n"
            "description = \"Fetch page %d of the example API\"\n"
            "network = [\"allowlist:api%d.example.com:443\", \"*.cdn%d.example.com:443\"]\n"
            "filesystem = { readable = [\"/srv/data/%d\"], writable = [\"/srv/out/%d\"] }\n"
            "memory = \"%dMB\"\n"
            "command = [\"curl\", \"-sS\", \"--\", \"{url}\"]\n"
            "parameters = { type = \"object\", required = [\"url\"], properties = { url = "
            "{ type = \"string\", title = \"page %d\" } } }\n",
            i, i, i, i, i, i, 64 + i % 64, i);
    (void)fputs("\n[agent.researcher]\ngrants = [\n", file);
    for (int i = 0; i < tools; i++)
        (void)fprintf(
            file, "    { tool = \"fetch_%d\", max_calls = 20, expires = \"2040-01-01\" },\n", i);
    (void)fputs("]\n", file);
    if (fclose(file) != 0)
        die("cannot write the policy");
}

static struct tc_policy *load(const char *path, struct tci_findings *findings)
{
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    if (tci_policy_load(path, findings, &policy, &error) < 0)
        die(error.message);
    return policy;
}

static void run_load(const char *path)
{
    struct tci_findings *findings = tci_findings_new(path);
    if (!findings)
        die("no memory");
    tc_policy_free(load(path, findings));
    tci_findings_free(findings);
}

static void run_lint(const char *path)
{
    struct tci_findings *findings = tci_findings_new(path);
    struct tci_lint_options options = { .now = (int64_t)time(NULL), .look_at_files = true };
    struct tc_error error = { 0 };
    struct tc_policy *policy;
    if (!findings)
        die("no memory");
    policy = load(path, findings);
    if (tci_lint(policy, &options, findings, &error) < 0)
        die(error.message);
    if (policy->tool_count != tools || findings->count[TCI_SEVERITY_ERROR])
        die("the policy is not what it should be");
    tc_policy_free(policy);
    tci_findings_free(findings);
}

static void run_dump(const char *path)
{
    struct tci_findings *findings = tci_findings_new(path);
    struct tci_buf out = TCI_BUF_INIT(TCI_DUMP_MAX);
    struct tc_policy *policy;
    if (!findings)
        die("no memory");
    policy = load(path, findings);
    tci_policy_dump(policy, &out);
    if (tci_buf_check(&out, NULL) < 0)
        die("cannot dump");
    tci_buf_free(&out);
    tc_policy_free(policy);
    tci_findings_free(findings);
}

static void run_read(const char *path)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    char *bytes;
    size_t length;
    if (!arena || tci_file_read(arena, path, TCI_POLICY_BYTES_MAX, &bytes, &length, &error) < 0)
        die("cannot read");
    tci_arena_free(arena);
}

static void run_spawn(const char *path)
{
    char program[] = "/bin/true", *const argv[] = { program, NULL }, *const envp[] = { NULL };
    pid_t pid;
    (void)path;
    if (posix_spawn(&pid, program, NULL, NULL, argv, envp) != 0 || waitpid(pid, NULL, 0) < 0)
        die("cannot start a process");
}

static struct {
    const char *name, *text;
    void (*run)(const char *path);
    double times[rounds_max];
} measures[] = {
    { .name = "load_lint", .text = "load, check and lint 1,000 tools", .run = run_lint },
    { .name = "load", .text = "load and check 1,000 tools", .run = run_load },
    { .name = "load_dump", .text = "load, check and dump 1,000 tools", .run = run_dump },
    { .name = "read", .text = "read the same file", .run = run_read },
    { .name = "spawn", .text = "posix_spawn and wait of /bin/true", .run = run_spawn },
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *path, int rounds)
{
    /* Interleaved, so that a noisy moment hits all of them. */
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < tci_array_size(measures); i++) {
            double start = now_ms();
            measures[i].run(path);
            measures[i].times[round] = now_ms() - start;
        }
    for (size_t i = 0; i < tci_array_size(measures); i++)
        qsort(measures[i].times, (size_t)rounds, sizeof(double), compare_doubles);
}

static void report(bool json, int rounds, long bytes)
{
    struct utsname host;
    (void)uname(&host);
    if (json)
        (void)printf("{\"rounds\":%d,\"bytes\":%ld,\"kernel\":\"%s\",\"processors\":%ld,\"ms\":{",
                     rounds, bytes, host.release, sysconf(_SC_NPROCESSORS_ONLN));
    else
        (void)printf("policy of %d tools, %ld bytes; %d rounds; Linux %s, %ld processors\n", tools,
                     bytes, rounds, host.release, sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t i = 0; i < tci_array_size(measures); i++) {
        double median = measures[i].times[rounds / 2], best = measures[i].times[0];
        if (json)
            (void)printf("%s\"%s\":{\"median\":%.3f,\"best\":%.3f}", i ? "," : "", measures[i].name,
                         median, best);
        else
            (void)printf("%-36s median %8.3f ms   best %8.3f ms\n", measures[i].text, median, best);
    }
    (void)puts(json ? "}}" : "target: load, check and lint in at most 20 ms");
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/bench_policy_XXXXXX";
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int rounds = argc > 1 + json ? atoi(argv[1 + json]) : rounds_default, fd = mkstemp(path);
    struct stat st;

    if (fd < 0 || rounds < 1 || rounds > rounds_max)
        die("usage: bench_policy [--json] [ROUNDS]");
    (void)close(fd);
    write_policy(path);
    if (stat(path, &st) < 0)
        die("cannot examine the policy");
    measure(path, rounds);
    report(json, rounds, (long)st.st_size);
    (void)unlink(path);
    return 0;
}
