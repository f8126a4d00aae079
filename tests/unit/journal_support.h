/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: journals for tests: a directory of their own, entries, and SQL that goes behind the library's
 * back. Comes after cmocka.h. */
#ifndef TCI_TESTS_JOURNAL_SUPPORT_H
#define TCI_TESTS_JOURNAL_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "journal/journal_internal.h"

struct place {
    char directory[64], path[96];
};

static inline struct place new_place(void)
{
    struct place place;
    /* In memory where there is such a place: the tests make hundreds of files. */
    (void)snprintf(place.directory, sizeof place.directory, "%s/test_journal.XXXXXX",
                   access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(place.directory));
    (void)snprintf(place.path, sizeof place.path, "%s/journal.db", place.directory);
    return place;
}

static inline void remove_beside(const struct place *place, const char *suffix)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", place->path, suffix);
    (void)unlink(path);
}

static inline void remove_place(const struct place *place)
{
    remove_beside(place, "");
    remove_beside(place, "-wal");
    remove_beside(place, "-shm");
    (void)rmdir(place->directory);
}

static inline void assert_ok(int result, const struct tc_error *error)
{
    if (result < 0)
        fail_msg("%s (%s)", error->message, error->remedy);
}

static inline struct tci_journal *open_journal(const char *path)
{
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    assert_ok(tci_journal_open(path, TCI_JOURNAL_CREATE, &journal, &error), &error);
    return journal;
}

/* The texts of an entry live here. */
struct sample {
    char request[128], result[128], call_id[40];
    struct tci_journal_entry entry;
};

static inline void make_entry(struct sample *sample, const char *session, unsigned number)
{
    struct tci_journal_entry *entry = &sample->entry;
    (void)snprintf(sample->request, sizeof sample->request, "{\"argv\":[\"true\",\"%u\"]}", number);
    (void)snprintf(sample->result, sizeof sample->result, "{\"exit\":0,\"stdout\":\"%u\"}", number);
    (void)snprintf(sample->call_id, sizeof sample->call_id, "call-%u", number);
    *entry = (struct tci_journal_entry){ .kind = "call",
                                         .session = session,
                                         .call_id = sample->call_id,
                                         .tool = "t",
                                         .agent = "a",
                                         .verdict = "ok",
                                         .started_us = 1000 + 10 * (int64_t)number,
                                         .ended_us = 1005 + 10 * (int64_t)number,
                                         .request = sample->request,
                                         .result = sample->result,
                                         .policy_hash = "p",
                                         .grants = "[\"g\"]" };
    tci_sha256_text(sample->request, strlen(sample->request), entry->request_hash);
    tci_sha256_text(sample->result, strlen(sample->result), entry->result_hash);
}

static inline void append(struct tci_journal *journal, const char *session, unsigned number)
{
    struct tc_error error = { 0 };
    char state[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    make_entry(&sample, session, number);
    assert_ok(tci_journal_append(journal, &sample.entry, state, &error), &error);
}

static inline struct tci_journal_report verify(struct tci_journal *journal)
{
    struct tci_journal_report report;
    struct tc_error error = { 0 };
    assert_ok(tci_journal_verify(journal, &report, NULL, NULL, &error), &error);
    return report;
}

static inline void assert_good(struct tci_journal *journal, uint64_t rows)
{
    struct tci_journal_report report = verify(journal);
    if (!report.good)
        fail_msg("row %llu: %s", (unsigned long long)report.bad_row, report.problem);
    assert_int_equal(report.rows, rows);
}

/* SQL over a connection of the test's own. */
static inline void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    (void)sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    (void)sqlite3_close(db);
}

#endif
