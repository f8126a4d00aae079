/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the directory of a run and what is in it, texts, and the clock. */
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "native.h"

_Noreturn void bench_die(const char *what)
{
    (void)fprintf(stderr, "bench_native: %s\n", what);
    exit(1);
}

double bench_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

int bench_fail(struct bench_subject *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(subject->note, sizeof(subject->note), format, arguments);
    va_end(arguments);
    return -1;
}

int bench_call(struct tc_engine *engine, struct bench_subject *subject,
               const struct tc_request *request)
{
    struct tc_error error = { 0 };
    struct tc_result *result = NULL;
    int r = tc_call(engine, request, &result, &error);

    if (r < 0)
        return bench_fail(subject, "tc_call: %s", error.message);
    if (result->verdict != TC_VERDICT_OK)
        r = bench_fail(subject, "verdict %s: %s", tc_verdict_name(result->verdict), result->reason);
    tc_result_free(result);
    return r;
}

char *bench_text(struct bench *bench, const char *format, ...)
{
    char text[1024];
    char *copy;
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(text))
        bench_die("a text is too long");
    copy = tci_arena_strdup(bench->arena, text);
    if (!copy)
        bench_die("no memory");
    return copy;
}

const char *bench_file(struct bench *bench, const char *name, const char *text)
{
    char *path = bench_text(bench, "%s/%s", bench->directory, name);
    FILE *file;

    for (char *slash = strchr(path + strlen(bench->directory) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            bench_die("cannot make a directory");
        *slash = '/';
    }
    if (!text)
        return path;
    file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        bench_die("cannot write a file");
    return path;
}

static void copy_program(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    size_t n;
    if (!in || !out)
        bench_die("cannot copy the programs that are to be run");
    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        if (fwrite(bytes, 1, n, out) != n)
            bench_die("cannot copy the programs that are to be run");
    (void)fclose(in);
    if (fclose(out) != 0 || chmod(to, 0755) < 0)
        bench_die("cannot copy the programs that are to be run");
}

void bench_open(struct bench *bench)
{
    static char directory[] = "/var/tmp/toolcage-bench-XXXXXX";
    char self[1024] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    bench->arena = tci_arena_new();
    if (!bench->arena || length <= 0 || !mkdtemp(directory) || chmod(directory, 0755) < 0)
        bench_die("cannot make a directory in /var/tmp");
    *strrchr(self, '/') = 0;
    bench->directory = directory;
    bench->true_path = bench_file(bench, "bin/true", "");
    bench->sleeper_path = bench_file(bench, "bin/sleeper", "");
    bench->built_true_path = bench_text(bench, "%s/bench_true", self);
    copy_program(bench->built_true_path, bench->true_path);
    copy_program(bench_text(bench, "%s/bench_sleeper", self), bench->sleeper_path);
    bench->toolcage = bench_text(bench, "%s/../src/toolcage", self);
    bench->python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : NULL;
    bench->threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void bench_close(struct bench *bench)
{
    for (unsigned i = 0; i < bench_subject_count; i++)
        if (bench_subjects[i].finish)
            bench_subjects[i].finish(bench, &bench_subjects[i]);
    bench_resident_close();
    bench_record_close();
    bench_gate_close();
    bench_container_close();
    bench_mcp_close();
    bench_cage_close(bench);
    (void)nftw(bench->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    tci_arena_free(bench->arena);
}
