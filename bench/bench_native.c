/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a call in a cage costs, beside what the kernel alone needs and beside other sandboxes.
 * Every subject runs once in each round, in an order that is shuffled anew, so that a noisy moment
 * hits all of them alike. Writes raw samples, one JSON object a line; bench/run.py makes the table.
 *
 * usage: bench_native [--rounds N] [--warm-up N] [--only ID]... [--list]
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "json/write.h"
#include "native.h"

enum {
    rounds_default = 200,
    warm_up_default = 5,
    only_max = 32,
    subjects_max = 128,
    line_max = 4096,
    numbers_max = 1000000
};

static volatile sig_atomic_t interrupted;

static void line_begin(struct tci_buf *text, struct tci_json *json)
{
    *text = (struct tci_buf)TCI_BUF_INIT(line_max);
    *json = (struct tci_json){ .out = text };
    tci_json_object_begin(json, NULL);
}

static void line_end(struct tci_buf *text, struct tci_json *json)
{
    tci_json_object_end(json);
    if (tci_buf_check(text, NULL) < 0)
        bench_die("a line is too long");
    (void)puts(text->data);
    (void)fflush(stdout);
    tci_buf_free(text);
}

static void write_subject(const struct bench_subject *subject)
{
    struct tci_buf text;
    struct tci_json json;
    line_begin(&text, &json);
    tci_json_string(&json, "subject", subject->id);
    tci_json_string(&json, "group", subject->group);
    tci_json_string(&json, "text", subject->text);
    tci_json_string(&json, "unit", subject->unit ? subject->unit : "ms");
    if (!subject->ready)
        tci_json_string(&json, "note", subject->note);
    line_end(&text, &json);
}

static void write_sample(const struct bench_subject *subject, int round, double value, bool failed)
{
    struct tci_buf text;
    struct tci_json json;
    line_begin(&text, &json);
    tci_json_string(&json, "subject", subject->id);
    tci_json_integer(&json, "round", round);
    if (failed)
        tci_json_string(&json, "error", subject->note);
    else
        tci_json_printf(&json, "value", "%.4f", value);
    line_end(&text, &json);
}

static void write_host(const struct bench *bench, int rounds)
{
    struct tci_buf text;
    struct tci_json json;
    line_begin(&text, &json);
    tci_json_integer(&json, "rounds", rounds);
    tci_json_unsigned(&json, "threads", bench->threads);
    tci_json_bool(&json, "root", geteuid() == 0);
    tci_json_string(&json, "layers", bench->layers);
    line_end(&text, &json);
}

/* ---- the rounds */

static bool wanted(const struct bench_subject *subject, const char *const *only, unsigned count)
{
    bool found = count == 0;
    for (unsigned i = 0; i < count; i++)
        found = found || strcmp(only[i], subject->id) == 0 || strcmp(only[i], subject->group) == 0;
    return found;
}

static void check_names(const char *const *only, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bool found = false;
        for (unsigned k = 0; k < bench_subject_count; k++)
            found = found || wanted(&bench_subjects[k], &only[i], 1);
        if (!found)
            bench_die("there is no such subject or group: see --list");
    }
}

static void prepare(struct bench *bench, struct bench_subject *subject)
{
    subject->ready = !subject->prepare || subject->prepare(bench, subject) == 0;
}

/* Processes that hold memory are forked first, from a process that is still small. */
static void prepare_all(struct bench *bench, const char *const *only, unsigned count)
{
    for (int late = 0; late < 2; late++)
        for (unsigned i = 0; i < bench_subject_count; i++)
            if (wanted(&bench_subjects[i], only, count) &&
                (bench_subjects[i].prepare != bench_resident_prepare) == late)
                prepare(bench, &bench_subjects[i]);
    for (unsigned i = 0; i < bench_subject_count; i++)
        if (wanted(&bench_subjects[i], only, count))
            write_subject(&bench_subjects[i]);
}

static void shuffle(unsigned *order, unsigned count)
{
    for (unsigned i = count; i > 1; i--) {
        unsigned other = (unsigned)random() % i, kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* A round below 0 warms up and is not reported. */
static void run_round(struct bench *bench, int round)
{
    unsigned order[subjects_max], count = 0;
    for (unsigned i = 0; i < bench_subject_count; i++) {
        unsigned period = bench_subjects[i].period ? bench_subjects[i].period : 1;
        if (bench_subjects[i].ready && (round + 1) % (int)period == 0)
            order[count++] = i;
    }
    shuffle(order, count);
    for (unsigned i = 0; i < count; i++) {
        struct bench_subject *subject = &bench_subjects[order[i]];
        double value = 0;
        int r = subject->run(bench, subject, &value);
        subject->ready = r == 0;
        if (round >= 0 || r < 0)
            write_sample(subject, round, value, r < 0);
    }
}

static void list(void)
{
    for (unsigned i = 0; i < bench_subject_count; i++)
        (void)printf("%-20s %-12s %s\n", bench_subjects[i].id, bench_subjects[i].group,
                     bench_subjects[i].text);
}

static int number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > numbers_max)
        bench_die("a number of rounds is between 0 and 1000000");
    return (int)value;
}

/* Ends after this round, so that what was made is removed. */
static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
                                             { "warm-up", required_argument, NULL, 'w' },
                                             { "only", required_argument, NULL, 'o' },
                                             { "list", no_argument, NULL, 'l' },
                                             { NULL, 0, NULL, 0 } };
    const char *only[only_max];
    unsigned only_count = 0;
    int rounds = rounds_default, warm_up = warm_up_default;
    struct bench bench = { 0 };

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            rounds = number(optarg);
        else if (option == 'w')
            warm_up = number(optarg);
        else if (option == 'o' && only_count < only_max)
            only[only_count++] = optarg;
        else if (option == 'l')
            return list(), 0;
        else
            bench_die("usage: bench_native [--rounds N] [--warm-up N] [--only ID]... [--list]");
    }
    check_names(only, only_count);
    (void)signal(SIGINT, interrupt);
    (void)signal(SIGTERM, interrupt);
    (void)signal(SIGPIPE, interrupt);
    /* What Python does when it starts depends on the locale: the one of a cage, for all. */
    (void)setenv("LANG", "C.UTF-8", 1);
    (void)unsetenv("LC_ALL");
    bench_open(&bench);
    srandom((unsigned)time(NULL));
    prepare_all(&bench, only, only_count);
    write_host(&bench, rounds);
    for (int round = -warm_up; round < rounds && !interrupted; round++)
        run_round(&bench, round);
    bench_close(&bench);
    return interrupted ? 130 : 0;
}
