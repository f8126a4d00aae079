/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a record costs: the same call of the same tool, with `record = true` and with
 * `record = false`, through one engine with a journal; and how many recorded calls a second replay gives
 * back. Before the recorded call returns, its record is in the file.
 */
#include <stdio.h>
#include "native.h"

/* A record takes less time than a busy machine takes from a call by chance: a sample is the median of
 * several calls. */
enum { sampled_calls = 25, replayed_calls = 500 };

static struct tc_engine *live;

static struct tc_engine_options options(struct bench *bench, enum tc_mode mode)
{
    const char *text = bench_text(bench,
                                  "version = 1\n[defaults]\nbackend = \"process\"\n"
                                  "filesystem = { readable = [\"%s/bin\"] }\n"
                                  "[tool.recorded]\ncommand = [\"%s\"]\n"
                                  "[tool.hashed]\nrecord = \"hash-only\"\ncommand = [\"%s\"]\n"
                                  "[tool.unrecorded]\nrecord = false\ncommand = [\"%s\"]\n",
                                  bench->directory, bench->true_path, bench->true_path,
                                  bench->true_path);
    return (struct tc_engine_options){ .policy_path = bench_file(bench, "record.toml", text),
                                       .journal_path = bench_file(bench, "journal.db", NULL),
                                       .mode = mode };
}

static int call(struct tc_engine *engine, struct bench_subject *subject, const char *tool,
                const char *session)
{
    const struct tc_request request = {
        .tool = tool,
        .session = session,
        .arguments_json = "{\"path\":\"notes/monday.md\",\"lines\":40}",
    };
    return bench_call(engine, subject, &request);
}

int bench_record_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    double times[sampled_calls];
    int r = 0;
    (void)bench;
    for (int i = 0; r == 0 && i < sampled_calls; i++) {
        double begin = bench_now_ms();
        r = call(live, subject, subject->argument, "bench");
        times[i] = bench_now_ms() - begin;
    }
    *ret_value = bench_median(times, sampled_calls);
    return r;
}

static int open_live(struct bench *bench, struct bench_subject *subject)
{
    struct tc_engine_options with = options(bench, TC_MODE_LIVE);
    struct tc_error error = { 0 };
    if (!live && tc_engine_open(&with, &live, &error) < 0)
        return bench_fail(subject, "tc_engine_open: %s", error.message);
    return 0;
}

int bench_record_prepare(struct bench *bench, struct bench_subject *subject)
{
    double value;
    return open_live(bench, subject) < 0 ? -1 : bench_record_run(bench, subject, &value);
}

int bench_replay_prepare(struct bench *bench, struct bench_subject *subject)
{
    int r = open_live(bench, subject);
    for (int i = 0; r == 0 && i < replayed_calls; i++)
        r = call(live, subject, "recorded", "replayed");
    return r;
}

int bench_replay_run(struct bench *bench, struct bench_subject *subject, double *ret_value)
{
    struct tc_engine_options with = options(bench, TC_MODE_REPLAY);
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    double begin;
    int r = 0;

    if (tc_engine_open(&with, &engine, &error) < 0)
        return bench_fail(subject, "tc_engine_open: %s", error.message);
    begin = bench_now_ms();
    for (int i = 0; r == 0 && i < replayed_calls; i++)
        r = call(engine, subject, "recorded", "replayed");
    *ret_value = replayed_calls / (bench_now_ms() - begin) * 1000;
    tc_engine_close(engine);
    return r;
}

void bench_record_close(void)
{
    if (live)
        tc_engine_close(live);
    live = NULL;
}
