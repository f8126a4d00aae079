/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a journal of a million records costs: to append one record, to verify all, to show the last
 * page, to replay. Requests have about 150 bytes and results about 900.
 *
 * usage: bench_journal [ROWS [DIRECTORY]]
 *
 * The records are made in one transaction, which nobody else does; the time of an append is measured
 * afterwards, one by one, as callers do it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "journal/journal_internal.h"

enum { appends = 2000, replays = 20000, sessions = 10, page = 20, rounds = 3 };

static struct tc_error error;

static void check(int result)
{
    if (result >= 0)
        return;
    (void)fprintf(stderr, "bench_journal: %s\n", error.message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of this process, so that what else runs on the machine does not count. */
static double processor(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct sample {
    char request[256], result[1200], call_id[40], session[32];
    struct tci_journal_entry entry;
};

static void make(struct sample *sample, unsigned long number)
{
    struct tci_journal_entry *entry = &sample->entry;
    (void)snprintf(sample->request, sizeof sample->request,
                   "{\"agent\":\"coder\",\"arguments\":{\"path\":\"/workspace/src/file_%08lu.c\","
                   "\"pattern\":\"TODO|FIXME\",\"limit\":50},\"limits\":{\"timeout\":30},"
                   "\"tool\":\"search_files\"}",
                   number);
    (void)snprintf(sample->result, sizeof sample->result,
                   "{\"exit\":0,\"id\":%lu,\"stdout\":\"%0800lu\",\"usage\":{\"cpu_us\":1234,"
                   "\"memory\":1048576},\"verdict\":\"ok\"}",
                   number, number);
    (void)snprintf(sample->call_id, sizeof sample->call_id, "01890a5d-ac96-774b-bcce-%012lx",
                   number);
    (void)snprintf(sample->session, sizeof sample->session, "session-%lu", number % sessions);
    *entry = (struct tci_journal_entry){
        .kind = "call",
        .session = sample->session,
        .call_id = sample->call_id,
        .tool = "search_files",
        .agent = "coder",
        .verdict = "ok",
        .started_us = 1700000000000000 + 100 * (int64_t)number,
        .ended_us = 1700000000000090 + 100 * (int64_t)number,
        .request = sample->request,
        .result = sample->result,
        .policy_hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        .grants = "[{\"agent\":\"coder\",\"tool\":\"search_files\"}]"
    };
    tci_sha256_text(sample->request, strlen(sample->request), entry->request_hash);
    tci_sha256_text(sample->result, strlen(sample->result), entry->result_hash);
}

static void fill(struct tci_journal *journal, unsigned long rows)
{
    struct sample sample;
    check(tci_journal_begin(journal, &error));
    for (unsigned long i = 0; i < rows; i++) {
        make(&sample, i);
        check(tci_journal_append_row(journal, &sample.entry, NULL, &error));
    }
    check(tci_journal_end(journal, 0, &error));
}

static void measure_append(struct tci_journal *journal, unsigned long rows)
{
    static double seconds[appends];
    for (unsigned long i = 0; i < appends; i++) {
        struct sample sample;
        char hash[TCI_SHA256_TEXT_MAX];
        double start;
        make(&sample, rows + i);
        start = now();
        check(tci_journal_append(journal, &sample.entry, hash, &error));
        seconds[i] = now() - start;
    }
    qsort(seconds, appends, sizeof *seconds, compare_doubles);
    printf("append      %8.3f ms median, %.3f ms at 95 %%, %.3f ms at most\n",
           seconds[appends / 2] * 1e3, seconds[appends * 95 / 100] * 1e3,
           seconds[appends - 1] * 1e3);
}

static void measure_verify(struct tci_journal *journal)
{
    struct tci_journal_report report;
    double best = 1e9, work = 1e9;
    for (int i = 0; i < rounds; i++) {
        double start = now(), before = processor(), seconds, worked;
        check(tci_journal_verify(journal, &report, NULL, NULL, &error));
        seconds = now() - start;
        worked = processor() - before;
        best = seconds < best ? seconds : best;
        work = worked < work ? worked : work;
        if (!report.good) {
            (void)fprintf(stderr, "bench_journal: row %llu: %s\n",
                          (unsigned long long)report.bad_row, report.problem);
            exit(1);
        }
    }
    printf("verify      %8.0f rows/s (%llu rows in %.2f s, of which %.2f s on the processor)\n",
           (double)report.rows / best, (unsigned long long)report.rows, best, work);
}

static int count_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    (void)row;
    (void)reterr;
    ++*(unsigned *)context;
    return 0;
}

static void measure_page(struct tci_journal *journal, const char *what,
                         struct tci_journal_query query)
{
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        unsigned count = 0;
        double start = now(), seconds;
        check(tci_journal_each(journal, &query, count_row, &count, &error));
        seconds = now() - start;
        best = seconds < best ? seconds : best;
        if (count != page)
            exit(1);
    }
    printf("%-11s %8.3f ms\n", what, best * 1e3);
}

static void measure_replay(struct tci_journal *journal, const char *what, unsigned long rows,
                           bool resume)
{
    struct tci_replay *replay = NULL;
    unsigned long takes = rows / sessions < replays ? rows / sessions : replays;
    double seconds = 0;
    check(tci_replay_open(journal, "session-3", resume, &replay, &error));
    for (unsigned long i = 0; i < takes; i++) {
        struct tci_arena *arena = tci_arena_new();
        struct tci_journal_row row;
        struct sample sample;
        double start;
        make(&sample, i * sessions + 3);
        start = now();
        if (tci_replay_take(replay, sample.entry.request_hash, arena, &row, &error) != 0) {
            (void)fprintf(stderr, "bench_journal: diverged: %s\n", error.message);
            exit(1);
        }
        seconds += now() - start;
        tci_arena_free(arena);
    }
    tci_replay_close(replay);
    printf("%-11s %8.0f calls/s\n", what, (double)takes / seconds);
}

static void remove_files(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[4200];
    for (size_t i = 0; i < tci_array_size(suffixes); i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

int main(int argc, char **argv)
{
    unsigned long rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    char directory[4096], path[4128];
    struct tci_journal *journal = NULL;
    struct stat status;
    double start;

    (void)snprintf(directory, sizeof directory, "%s/bench_journal.XXXXXX",
                   argc > 2 ? argv[2] : "/tmp");
    if (rows < page * sessions || !mkdtemp(directory)) {
        (void)fprintf(stderr, "usage: bench_journal [ROWS (at least 200) [DIRECTORY]]\n");
        return 2;
    }
    (void)snprintf(path, sizeof path, "%s/journal.db", directory);
    check(tci_journal_open(path, TCI_JOURNAL_CREATE, &journal, &error));
    start = now();
    fill(journal, rows);
    (void)sqlite3_wal_checkpoint_v2(journal->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)stat(path, &status);
    printf("made        %8lu rows in %.1f s, %.0f bytes each\n", rows, now() - start,
           (double)status.st_size / (double)rows);
    measure_append(journal, rows);
    measure_verify(journal);
    measure_page(journal, "last page", (struct tci_journal_query){ .last = page });
    measure_page(journal, "of session",
                 (struct tci_journal_query){ .last = page, .session = "session-3" });
    measure_replay(journal, "replay", rows, false);
    measure_replay(journal, "resumed", rows, true);
    tci_journal_close(journal);
    remove_files(path);
    (void)rmdir(directory);
    return 0;
}
