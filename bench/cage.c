/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: toolcage itself: one engine with a policy of its own, opened once, and calls through it; and
 * the command line tool with the same policy, a whole process for each call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "native.h"

/* Built-in limits, the host's programs, and the folder of our static ones. */
static const char *policy(struct bench *bench, const char *backend)
{
    const char *text = bench_text(bench,
                                  "version = 1\n[defaults]\nbackend = \"%s\"\nsystem = true\n"
                                  "filesystem = { readable = [\"%s/bin\"] }\n",
                                  backend, bench->directory);
    return bench_file(bench, bench_text(bench, "%s.toml", backend), text);
}

static const char *tools(struct bench *bench)
{
    const char *text = bench_text(
        bench,
        "version = 1\n[defaults]\nsystem = true\nfilesystem = { readable = [\"%s/bin\"] }\n"
        "[tool.jail]\nbackend = \"jail\"\ncommand = [\"%s\"]\n"
        "[tool.process]\nbackend = \"process\"\ncommand = [\"%s\"]\n"
        "[tool.process_default]\nbackend = \"process\"\nsyscalls = \"default\"\n"
        "command = [\"%s\"]\n"
        /* Nothing is dialled: what is measured is a gate that is there. */
        "[tool.jail_gate]\nbackend = \"jail\"\nnetwork = [\"api.example.com:443\"]\n"
        "command = [\"%s\"]\n"
        "[tool.jail_gate_wide]\nbackend = \"jail\"\nnetwork = \"public\"\n"
        "command = [\"%s\"]\n",
        bench->directory, bench->true_path, bench->true_path, bench->true_path, bench->true_path,
        bench->true_path);
    return bench_file(bench, "tools.toml", text);
}

static int engine(struct bench *bench, struct bench_subject *subject)
{
    struct tc_engine_options options = { .policy_path = NULL };
    struct tc_error error = { 0 };
    if (bench->engine)
        return 0;
    options.policy_path = tools(bench);
    if (tc_engine_open(&options, &bench->engine, &error) < 0)
        return bench_fail(subject, "tc_engine_open: %s", error.message);
    return 0;
}

void bench_cage_close(struct bench *bench)
{
    if (bench->engine)
        tc_engine_close(bench->engine);
    bench->engine = NULL;
}

static int call(struct bench *bench, struct bench_subject *subject, const char *const *argv,
                double *ret_value)
{
    struct tc_request request = { .tool = subject->argument, .argv = argv };
    struct tc_error error = { 0 };
    struct tc_result *result = NULL;
    double begin = bench_now_ms();
    int r = tc_call(bench->engine, &request, &result, &error);

    if (r < 0)
        return bench_fail(subject, "tc_call: %s", error.message);
    /* Everything that an embedding program would wait for, also its freeing. */
    if (result->verdict != TC_VERDICT_OK)
        r = bench_fail(subject, "verdict %s: %s", tc_verdict_name(result->verdict), result->reason);
    else if (!bench->layers[0] && strcmp(result->backend, "jail") == 0)
        (void)snprintf(bench->layers, sizeof(bench->layers), "%s", result->layers);
    tc_result_free(result);
    *ret_value = bench_now_ms() - begin;
    return r;
}

int bench_cage_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    return call(bench, subject, (const char *const[]){ bench->true_path, NULL }, ret_value);
}

int bench_cage_once(struct bench *bench, struct bench_subject *subject)
{
    double value;
    return bench_cage_run(bench, subject, &value);
}

int bench_cage_prepare(struct bench *bench, struct bench_subject *subject)
{
    return engine(bench, subject) < 0 ? -1 : bench_cage_once(bench, subject);
}

int bench_cage_python_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    const char *const argv[] = { bench->python, "-I", "-S", "-c", "pass", NULL };
    return call(bench, subject, argv, ret_value);
}

int bench_cage_python_prepare(struct bench *bench, struct bench_subject *subject)
{
    double value;
    if (!bench->python)
        return bench_fail(subject, "not installed");
    return engine(bench, subject) < 0 ? -1 : bench_cage_python_run(bench, subject, &value);
}

int bench_cli_prepare(struct bench *bench, struct bench_subject *subject)
{
    struct bench_command *command = bench_command_new(bench);
    bench_command_add(command, bench->toolcage, "exec", "--policy",
                      policy(bench, subject->argument), "--", bench->true_path, NULL);
    subject->command = command;
    return bench_command_try(bench, command, subject);
}
