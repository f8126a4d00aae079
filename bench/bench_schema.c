/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how long it takes to compile a small schema and to validate a value that was parsed already.
 * The cases are in bench/schema/cases.json, which bench/ajv/compare.mjs reads too.
 *
 * usage: bench_schema [--json] CASES
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "json/schema.h"

enum { rounds = 31, compile_loops = 20 };

static const double round_seconds = 0.01;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_schema: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Other work on the machine only adds: the best round says most, the median what to expect. */
struct timing {
    double median, best;
};

static struct timing timing_of(double *samples)
{
    qsort(samples, rounds, sizeof *samples, compare_doubles);
    return (struct timing){ samples[rounds / 2], samples[0] };
}

static struct tci_schema_program *compile(const json_t *schema)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    if (tci_schema_compile(schema, NULL, &program, &error) < 0)
        die(error.message);
    return program;
}

/* Seconds for each validation; with a report if the value is invalid, as a caller would have it. */
static double validate(const struct tci_schema_program *program, const json_t *value, bool valid,
                       unsigned long loops)
{
    double start = now();
    for (unsigned long i = 0; i < loops; i++) {
        struct tci_schema_report report = { 0 };
        if (tci_schema_validate(program, value, &report) != valid)
            die("a case has the wrong answer");
        if (!valid)
            tci_schema_report_free(&report);
    }
    return (now() - start) / (double)loops;
}

static struct timing measure_validation(const struct tci_schema_program *program,
                                        const json_t *value, bool valid)
{
    double samples[rounds];
    unsigned long loops = 1000;
    double first = validate(program, value, valid, loops);
    if (first * (double)loops < round_seconds)
        loops = (unsigned long)(round_seconds / first) + 1;
    for (int i = 0; i < rounds; i++)
        samples[i] = validate(program, value, valid, loops);
    return timing_of(samples);
}

static struct timing measure_compilation(const json_t *schema)
{
    double samples[rounds];
    for (int i = 0; i < rounds; i++) {
        double start = now();
        for (int j = 0; j < compile_loops; j++)
            tci_schema_free(compile(schema));
        samples[i] = (now() - start) / compile_loops;
    }
    return timing_of(samples);
}

static void run(const json_t *subject, bool as_json)
{
    const json_t *schema = json_object_get(subject, "schema");
    struct tci_schema_program *program = compile(schema);
    const char *name = json_string_value(json_object_get(subject, "name"));
    struct timing validation = measure_validation(
        program, json_object_get(subject, "value"),
        !json_is_true(json_object_get(subject, "invalid")));
    struct timing compilation = measure_compilation(schema);

    if (as_json)
        printf("{\"name\":\"%s\",\"best_ns\":%.1f,\"median_ns\":%.1f,\"compile_ns\":%.0f}\n", name,
               validation.best * 1e9, validation.median * 1e9, compilation.median * 1e9);
    else
        printf("  %-14s %6.0f ns (best %4.0f)  compiled in %5.1f us   %s\n", name,
               validation.median * 1e9, validation.best * 1e9, compilation.median * 1e6,
               json_string_value(json_object_get(subject, "text")));
    tci_schema_free(program);
}

int main(int argc, char **argv)
{
    bool as_json = argc == 3 && strcmp(argv[1], "--json") == 0;
    json_t *cases;
    const json_t *subject;
    size_t i;

    if (argc != 2 && !as_json)
        die("usage: bench_schema [--json] CASES");
    cases = json_load_file(argv[argc - 1], 0, NULL);
    if (!cases)
        die("cannot read the cases");
    if (!as_json)
        printf("one validation of a parsed value, and the schema's compilation (medians of %d):\n",
               rounds);
    json_array_foreach(cases, i, subject) run(subject, as_json);
    json_decref(cases);
    return 0;
}
