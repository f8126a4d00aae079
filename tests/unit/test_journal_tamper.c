/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests that verify names the first row that is not what was written. A small journal with rows of
 * every kind is changed in one way at a time, behind the library's back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include "journal/prune.h"
#include "journal_support.h"

enum { rows = 9 };

static struct {
    struct place place;
    char *bytes; /* the journal as it was written */
    size_t length;
} original;

static void write_file(const char *path, const char *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    (void)close(fd);
}

static void restore(void)
{
    remove_beside(&original.place, "-wal");
    remove_beside(&original.place, "-shm");
    write_file(original.place.path, original.bytes, original.length);
}

static void append_hash_only(struct tci_journal *journal)
{
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    make_entry(&sample, "s", 100);
    sample.entry.request = sample.entry.result = NULL;
    assert_ok(tci_journal_append(journal, &sample.entry, hash, &error), &error);
}

/* Rows 1 to 4 calls of two sessions, 5 and 6 grants, 7 a revoke, 8 without texts, 9 a call. */
static int make_original(void **state)
{
    struct tc_error error = { 0 };
    char id[TCI_UUID_TEXT_MAX];
    struct tci_journal *journal;
    struct stat status;
    int fd;
    (void)state;
    original.place = new_place();
    journal = open_journal(original.place.path);
    for (unsigned i = 1; i <= 4; i++)
        append(journal, i % 2 ? "s" : "", i);
    assert_ok(tci_journal_grant_add(journal, "a", "t", "{}", id, &error), &error);
    assert_ok(tci_journal_grant_add(journal, "a", "t", "{\"max_calls\":1}", id, &error), &error);
    assert_int_equal(tci_journal_grant_revoke(journal, id, &error), 0);
    append_hash_only(journal);
    append(journal, "s", 9);
    assert_good(journal, rows);
    tci_journal_close(journal);
    run_sql(original.place.path, "PRAGMA wal_checkpoint(TRUNCATE)");
    fd = open(original.place.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    original.length = (size_t)status.st_size;
    original.bytes = malloc(original.length);
    assert_non_null(original.bytes);
    assert_int_equal(read(fd, original.bytes, original.length), original.length);
    (void)close(fd);
    return 0;
}

static int remove_original(void **state)
{
    (void)state;
    free(original.bytes);
    remove_place(&original.place);
    return 0;
}

/* What verify says about the file as it is now. */
static struct tci_journal_report look(void)
{
    struct tci_journal *journal = NULL;
    struct tci_journal_report report;
    struct tc_error error = { 0 };
    assert_ok(tci_journal_open(original.place.path, TCI_JOURNAL_READ_ONLY, &journal, &error),
              &error);
    report = verify(journal);
    tci_journal_close(journal);
    return report;
}

static void assert_names_row(const char *sql, uint64_t row)
{
    struct tci_journal_report report;
    restore();
    run_sql(original.place.path, sql);
    report = look();
    if (report.good || report.bad_row != row)
        fail_msg("%s: expected row %llu, got %s row %llu: %s", sql, (unsigned long long)row,
                 report.good ? "good," : "bad", (unsigned long long)report.bad_row, report.problem);
    assert_true(report.problem[0]);
}

static void test_untouched_it_is_good(void **state)
{
    (void)state;
    restore();
    assert_true(look().good);
}

static const char *const text_columns[] = { "session",     "kind",    "call_id",      "tool",
                                            "agent",       "verdict", "request_hash", "result_hash",
                                            "policy_hash", "grants",  "row_before",   "previous",
                                            "state_hash",  "request", "result" };
static const char *const number_columns[] = { "step", "started_us", "ended_us" };

static bool has_text(unsigned row, const char *column)
{
    bool none = (strcmp(column, "request") == 0 && row == 8) ||
                (strcmp(column, "result") == 0 && row >= 5 && row <= 8);
    return !none;
}

static void change(unsigned row, const char *column, const char *value)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "UPDATE record SET %s = %s WHERE row = %u", column, value, row);
    assert_names_row(sql, row);
}

static void test_any_column_of_any_row_that_changes_is_named(void **state)
{
    (void)state;
    for (unsigned row = 1; row <= rows; row++) {
        char value[256];
        for (size_t i = 0; i < tci_array_size(text_columns); i++) {
            const char *column = text_columns[i];
            if (!has_text(row, column)) {
                change(row, column, "'{}'"); /* a text where there was none */
                continue;
            }
            /* One bit of the last letter; one letter more; a NUL and something behind it. */
            (void)snprintf(value, sizeof value,
                           "substr(%s, 1, length(%s) - 1) || char((unicode(substr(%s, -1)) | 1) - "
                           "(unicode(substr(%s, -1)) & 1))",
                           column, column, column, column);
            if (!(strcmp(column, "request_hash") == 0 || strcmp(column, "session") == 0 ||
                  strcmp(column, "policy_hash") == 0 || strcmp(column, "verdict") == 0 ||
                  strcmp(column, "result_hash") == 0))
                change(row, column, value);
            (void)snprintf(value, sizeof value, "%s || 'x'", column);
            change(row, column, value);
            (void)snprintf(value, sizeof value, "CAST(%s || x'00' || 'x' AS TEXT)", column);
            change(row, column, value);
            (void)snprintf(value, sizeof value, "CAST(x'ff' AS TEXT)");
            change(row, column, value);
        }
        for (size_t i = 0; i < tci_array_size(number_columns); i++) {
            const char *column = number_columns[i];
            (void)snprintf(value, sizeof value, "%s + 1000", column);
            change(row, column, value);
            change(row, column, "-1");
            change(row, column, "9223372036854775807");
        }
        change(row, "row", "1000");
        if (has_text(row, "request"))
            change(row, "request", "NULL");
        if (has_text(row, "result"))
            change(row, "result", "NULL");
    }
}

/* Every bit of one hash. */
static void test_any_bit_of_a_hash_that_flips_is_named(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i += 7) {
        char value[256];
        (void)snprintf(value, sizeof value,
                       "substr(state_hash, 1, %u) || CASE substr(state_hash, %u, 1) WHEN '0' THEN "
                       "'1' ELSE '0' END || substr(state_hash, %u)",
                       i, i + 1, i + 2);
        change(4, "state_hash", value);
        change(rows, "state_hash", value);
    }
    /* Upper case is another text. */
    change(4, "request_hash", "upper(request_hash)");
}

static void test_types_that_change_are_named(void **state)
{
    static const struct {
        const char *column, *value;
    } changes[] = { { "agent", "x'61'" },        { "started_us", "'x1030'" },
                    { "ended_us", "1045.5" },    { "step", "NULL" },
                    { "request", "5" },          { "state_hash", "NULL" },
                    { "verdict", "zeroblob(2)" } };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        char sql[2048];
        /* The table is strict, and knows it by its text: without it, and with it again. */
        restore();
        run_sql(original.place.path,
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                "replace(replace(sql, ' STRICT', ''), ' NOT NULL', '') WHERE name = 'record'");
        (void)snprintf(sql, sizeof sql, "UPDATE record SET %s = %s WHERE row = 3",
                       changes[i].column, changes[i].value);
        run_sql(original.place.path, sql);
        run_sql(original.place.path,
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                "replace(replace(replace(sql, 'TEXT', 'TEXT NOT NULL'), 'INTEGER,', "
                "'INTEGER NOT NULL,'), ')', ') STRICT') WHERE name = 'record';"
                "UPDATE sqlite_schema SET sql = replace(replace(sql, 'request TEXT NOT NULL', "
                "'request TEXT'), 'result TEXT NOT NULL', 'result TEXT') WHERE name = 'record'");
        struct tci_journal_report report = look();
        assert_false(report.good);
        assert_int_equal(report.bad_row, 3);
    }
}

static void test_rows_that_are_removed_swapped_or_put_in_are_named(void **state)
{
    (void)state;
    assert_names_row("DELETE FROM record WHERE row = 1", 1);
    assert_names_row("DELETE FROM record WHERE row = 5", 5);
    assert_names_row("DELETE FROM record WHERE row = 9", 9);
    assert_names_row("DELETE FROM record WHERE row >= 4", 4);
    assert_names_row("DELETE FROM record", 1);
    assert_names_row("UPDATE record SET row = 100 WHERE row = 2; UPDATE record SET row = 2 WHERE "
                     "row = 3; UPDATE record SET row = 3 WHERE row = 100",
                     2);
    /* Swapped with their places, and everything else as it was. */
    assert_names_row(
        "CREATE TEMP TABLE t AS SELECT * FROM record WHERE row IN (1, 3); DELETE FROM record WHERE "
        "row IN (1, 3); UPDATE t SET row = 4 - row, step = 3 - step; INSERT INTO record SELECT * "
        "FROM t",
        1);
    assert_names_row("INSERT INTO record SELECT 10, 'new', 1, kind, call_id, tool, agent, verdict, "
                     "started_us, ended_us, request, request_hash, result, result_hash, "
                     "policy_hash, grants, row_before, previous, state_hash FROM record WHERE "
                     "row = 9",
                     10);
    assert_names_row("INSERT INTO record SELECT 0, 'new', 1, kind, call_id, tool, agent, verdict, "
                     "started_us, ended_us, request, request_hash, result, result_hash, "
                     "policy_hash, grants, row_before, previous, state_hash FROM record WHERE "
                     "row = 1",
                     1);
}

/* A row that follows well, put in by hand: the heads do not know it. */
static void test_a_row_that_follows_but_is_not_known_is_named(void **state)
{
    struct tci_journal *journal;
    (void)state;
    restore();
    journal = open_journal(original.place.path);
    append(journal, "s", 50);
    tci_journal_close(journal);
    run_sql(original.place.path,
            "UPDATE head SET rows = 9, state_hash = (SELECT state_hash FROM record WHERE row = 9)");
    struct tci_journal_report report = look();
    assert_false(report.good);
    assert_int_equal(report.bad_row, 10);
}

static void test_heads_that_change_are_named(void **state)
{
    (void)state;
    assert_names_row("UPDATE head SET rows = 8", 9);
    assert_names_row("UPDATE head SET rows = 10", 10);
    assert_names_row("UPDATE head SET rows = -1", 10);
    assert_names_row("UPDATE head SET state_hash = upper(state_hash) || 'x'", 9);
    assert_names_row("DELETE FROM head", 10);
    assert_names_row("UPDATE session_head SET state_hash = 'x' WHERE session = ''", 7);
    assert_names_row("UPDATE session_head SET step = step - 1 WHERE session = 's'", 9);
    assert_names_row("UPDATE session_head SET step = step + 1 WHERE session = 's'", 10);
    assert_names_row("DELETE FROM session_head WHERE session = 's'", 10);
    assert_names_row("INSERT INTO session_head VALUES ('more', 1, 'x')", 10);
    assert_names_row("UPDATE session_head SET session = 't' WHERE session = 's'", 10);
    /* A second head, which only some would read. */
    assert_names_row("PRAGMA ignore_check_constraints = 1; INSERT INTO head SELECT 0, rows, "
                     "state_hash FROM head; UPDATE head SET rows = 5 WHERE one = 1",
                     10);
    assert_names_row("PRAGMA ignore_check_constraints = 1; INSERT INTO head SELECT 2, rows, "
                     "state_hash FROM head",
                     10);
    assert_names_row("PRAGMA ignore_check_constraints = 1; INSERT INTO origin SELECT 0, salt, 1 "
                     "FROM origin",
                     10);
    /* The last row and all its traces but one. */
    assert_names_row("DELETE FROM record WHERE row = 9; UPDATE head SET rows = 8, state_hash = "
                     "(SELECT state_hash FROM record WHERE row = 8)",
                     9);
}

static void test_grants_that_change_are_named(void **state)
{
    (void)state;
    assert_names_row("UPDATE run_grant SET agent = 'b' WHERE row = 5", 5);
    assert_names_row("UPDATE run_grant SET tool = 'b' WHERE row = 6", 6);
    assert_names_row("UPDATE run_grant SET text = '{ }' WHERE row = 5", 5);
    assert_names_row("UPDATE run_grant SET created_us = created_us + 1 WHERE row = 5", 5);
    assert_names_row("UPDATE run_grant SET revoked_us = 1 WHERE row = 6", 6);
    assert_names_row("UPDATE run_grant SET revoked_us = 0, revoked_row = 0 WHERE row = 6", 6);
    assert_names_row("UPDATE run_grant SET revoked_us = 5, revoked_row = 7 WHERE row = 5", 5);
    assert_names_row("DELETE FROM run_grant WHERE row = 5", 5);
    assert_names_row("DELETE FROM run_grant WHERE row = 6", 6);
    assert_names_row("INSERT INTO run_grant VALUES ('x', 5, 'a', 't', '{}', 1, 0, 0)", 5);
    assert_names_row("INSERT INTO run_grant VALUES ('x', 77, 'a', 't', '{}', 1, 0, 0)", 77);
}

/* Bytes of the file that are no SQL's doing. Whatever it is, it ends, and either a row is named, or
 * the file is refused, or it was a byte that means nothing. */
static void test_bytes_that_change_anywhere_do_no_harm(void **state)
{
    unsigned found = 0, tried = 0;
    (void)state;
    for (size_t at = 0; at < original.length; at += 101) {
        struct tci_journal *journal = NULL;
        struct tci_journal_report report;
        struct tc_error error = { 0 };
        restore();
        original.bytes[at] ^= 0x55;
        write_file(original.place.path, original.bytes, original.length);
        original.bytes[at] ^= 0x55;
        tried++;
        if (tci_journal_open(original.place.path, 0, &journal, &error) < 0 ||
            tci_journal_verify(journal, &report, NULL, NULL, &error) < 0) {
            assert_true(error.message[0]);
            found++;
        } else
            found += !report.good;
        tci_journal_close(journal);
    }
    assert_true(tried > 400);
    assert_true(found > tried / 20); /* most pages of a small database are empty space */
}

static void test_a_file_that_was_cut_is_found_out(void **state)
{
    (void)state;
    for (size_t length = original.length - 4096; length > 4096; length -= 4096) {
        struct tci_journal *journal = NULL;
        struct tci_journal_report report = { .good = false };
        struct tc_error error = { 0 };
        restore();
        assert_int_equal(truncate(original.place.path, (off_t)length), 0);
        if (tci_journal_open(original.place.path, 0, &journal, &error) == 0) {
            if (tci_journal_verify(journal, &report, NULL, NULL, &error) == 0)
                assert_false(report.good);
            else
                assert_true(error.message[0]);
        }
        tci_journal_close(journal);
    }
}

/* The first rows are removed by a checkpoint: what is left verifies, and is watched as before. */
static struct tci_prune_report prune(uint64_t keep)
{
    struct tci_prune_report report = { 0 };
    struct tci_prune options = { .keep = keep };
    struct tc_error error = { 0 };
    struct tci_journal *journal;
    restore();
    journal = open_journal(original.place.path);
    assert_ok(tci_journal_prune(journal, &options, &report, &error), &error);
    assert_true(verify(journal).good);
    append(journal, "s", 20);
    append(journal, "", 21);
    assert_true(verify(journal).good);
    tci_journal_close(journal);
    return report;
}

static void test_behind_a_checkpoint_changes_are_named_too(void **state)
{
    static const char *const changes[] = {
        "UPDATE record SET request = replace(request, ':', ':1') WHERE kind = 'checkpoint'",
        "UPDATE record SET request = NULL WHERE kind = 'checkpoint'",
        "UPDATE record SET tool = 'x' WHERE kind = 'checkpoint'",
        "DELETE FROM record WHERE row = (SELECT min(row) FROM record)",
        "DELETE FROM record WHERE kind = 'checkpoint'",
        "UPDATE record SET kind = 'call' WHERE kind = 'checkpoint'",
        "UPDATE record SET agent = 'x' WHERE row = (SELECT min(row) FROM record)",
        "UPDATE record SET agent = 'x' WHERE row = (SELECT max(row) FROM record)",
        "UPDATE run_grant SET agent = 'x'"
    };
    (void)state;
    for (uint64_t keep = 0; keep < 8; keep += 3) {
        struct tci_prune_report pruned = prune(keep);
        assert_true(pruned.removed > 0);
        assert_int_equal(pruned.grants, 1);
        for (size_t i = 0; i < tci_array_size(changes); i++) {
            struct tci_journal_report report;
            (void)prune(keep);
            run_sql(original.place.path, changes[i]);
            report = look();
            if (report.good || !report.bad_row)
                fail_msg("%s: %s", changes[i], report.good ? "good" : report.problem);
        }
    }
}

static void test_an_index_that_hides_a_row_is_found_out(void **state)
{
    struct tci_journal_report report;
    (void)state;
    /* The row is changed with its index, and changed back while SQLite does not know of the index. */
    restore();
    run_sql(original.place.path, "UPDATE record SET call_id = 'hidden' WHERE row = 2");
    run_sql(original.place.path,
            "PRAGMA writable_schema = ON; CREATE TABLE keep (a, b, c, d, e); INSERT INTO keep "
            "SELECT * FROM sqlite_schema WHERE name = 'record_call'; DELETE FROM sqlite_schema "
            "WHERE name = 'record_call'");
    run_sql(original.place.path, "UPDATE record SET call_id = 'call-2' WHERE row = 2");
    run_sql(original.place.path,
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM keep");
    run_sql(original.place.path, "DROP TABLE keep");
    report = look();
    assert_false(report.good);
    assert_non_null(strstr(report.problem, "index"));
}

/* Names an index "x" as a table, so that its entries can be changed without their rows. */
static void change_index(const char *index, const char *columns, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char text[256], *message = NULL;
    int page;
    assert_int_equal(sqlite3_open(original.place.path, &db), SQLITE_OK);
    (void)snprintf(text, sizeof text, "SELECT rootpage FROM sqlite_schema WHERE name = '%s'",
                   index);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    page = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    assert_int_equal(sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, db, "main", 1, page),
                     SQLITE_OK);
    (void)snprintf(text, sizeof text, "CREATE TABLE x (%s, PRIMARY KEY (%s)) WITHOUT ROWID",
                   columns, columns);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, db, "main", 0, 0);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    assert_true(sqlite3_changes(db) > 0);
    (void)sqlite3_close(db);
}

static void test_an_index_whose_entries_changed_is_found_out(void **state)
{
    static const struct {
        const char *index, *columns, *sql;
    } changes[] = {
        /* The same bytes, which no search finds. */
        { "record_call", "t, r", "UPDATE x SET t = CAST(t AS BLOB) WHERE r = 7" },
        { "record_session", "t, s, r", "UPDATE x SET t = CAST(t AS BLOB) WHERE r = 7" },
        { "record_session", "t, s, r", "UPDATE x SET s = CAST(s AS REAL) + 0.5 WHERE r = 7" },
        { "record_special", "t, n, r", "UPDATE x SET t = CAST(t AS BLOB) WHERE r = 7" },
        /* What is searched by, and not where it leads. */
        { "record_special", "t, n, r", "UPDATE x SET n = n + 1000 WHERE r = 7" },
        { "record_special", "t, n, r", "UPDATE x SET t = 'grant' WHERE r = 7" },
        { "record_special", "t, n, r", "DELETE FROM x WHERE r = 7" },
        { "record_call", "t, r", "INSERT INTO x VALUES ('more', 7)" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        struct tci_journal_report report;
        restore();
        change_index(changes[i].index, changes[i].columns, changes[i].sql);
        report = look();
        if (report.good || !strstr(report.problem, changes[i].index))
            fail_msg("%s %s: %s", changes[i].index, changes[i].sql,
                     report.good ? "good" : report.problem);
    }
}

static unsigned root_page(const char *name)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    unsigned page;
    assert_int_equal(sqlite3_open(original.place.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name = ?1",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    tci_journal_bind_text(statement, 1, name);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    page = (unsigned)sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return page;
}

static void test_entries_that_changed_places_are_found_out(void **state)
{
    static const char *const names[] = { "record_call", "record_session", "record_special",
                                         "session_head", "run_grant" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(names); i++) {
        struct tci_journal_report report;
        unsigned char *cells, first[2];
        char *bytes = malloc(original.length);
        restore();
        assert_non_null(bytes);
        memcpy(bytes, original.bytes, original.length);
        /* A leaf has 8 bytes, and then two for the place of each entry. */
        cells = (unsigned char *)bytes + (size_t)(root_page(names[i]) - 1) * 4096 + 8;
        assert_int_equal(cells[-8], 10);
        memcpy(first, cells, 2);
        memcpy(cells, cells + 2, 2);
        memcpy(cells + 2, first, 2);
        restore();
        write_file(original.place.path, bytes, original.length);
        report = look();
        if (report.good)
            fail_msg("%s is out of order", names[i]);
        free(bytes);
    }
}

static void test_lists_of_free_pages_that_changed_are_found_out(void **state)
{
    char *bytes = malloc(original.length);
    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, original.bytes, original.length);
    bytes[39]++; /* how many pages are free */
    restore();
    write_file(original.place.path, bytes, original.length);
    assert_false(look().good);
    free(bytes);
}

/* Row 2 is written anew, and fits itself: its neighbours know another one. */
static void test_a_row_that_its_neighbours_do_not_know_is_not_given_out(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_journal *journal = NULL;
    struct tci_journal_row row;
    struct tc_error error = { 0 };
    char sql[256];
    (void)state;
    restore();
    assert_ok(tci_journal_open(original.place.path, 0, &journal, &error), &error);
    assert_int_equal(tci_journal_row_get(journal, 2, arena, &row, &error), 0);
    row.entry.tool = "forged";
    assert_int_equal(tci_journal_hash(&row, row.state_hash, &error), 0);
    tci_journal_close(journal);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE record SET tool = 'forged', state_hash = '%s' WHERE row = 2",
                   row.state_hash);
    run_sql(original.place.path, sql);
    assert_ok(tci_journal_open(original.place.path, 0, &journal, &error), &error);
    for (unsigned number = 1; number <= 4; number++) {
        tci_error_clear(&error);
        assert_int_equal(tci_journal_row_get(journal, number, arena, &row, &error),
                         number == 2 || number == 3 ? -1 : 0);
    }
    tci_journal_close(journal);
}

/* As all who give rows out do. */
static int check_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf scratch = TCI_BUF_INIT(TCI_JOURNAL_RECORD_MAX);
    (void)context;
    return tci_journal_row_check(row, &scratch, reterr) ? 1 : 0;
}

static void test_an_index_that_leads_elsewhere_gives_no_rows(void **state)
{
    static const struct tci_journal_bounds unbounded = { SIZE_MAX, SIZE_MAX, NULL };
    struct tci_journal_query by_session = { .session = "" }, by_call = { .call_id = "call-1" };
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    (void)state;
    restore();
    /* Row 1 is of session "s". */
    change_index("record_session", "t, s, r", "UPDATE x SET r = 1 WHERE r = 2");
    assert_ok(tci_journal_open(original.place.path, 0, &journal, &error), &error);
    assert_int_not_equal(tci_journal_each(journal, &by_session, check_row, NULL, &error), 0);
    tci_error_clear(&error);
    assert_int_not_equal(
        tci_journal_each_back(journal, &by_session, &unbounded, check_row, NULL, &error), 0);
    tci_journal_close(journal);
    restore();
    change_index("record_call", "t, r", "UPDATE x SET r = 3 WHERE r = 1");
    assert_ok(tci_journal_open(original.place.path, 0, &journal, &error), &error);
    tci_error_clear(&error);
    assert_int_not_equal(tci_journal_each(journal, &by_call, check_row, NULL, &error), 0);
    tci_error_clear(&error);
    assert_int_not_equal(
        tci_journal_each_back(journal, &by_call, &unbounded, check_row, NULL, &error), 0);
    tci_journal_close(journal);
}

static void test_a_revoke_that_an_index_hides_counts_all_the_same(void **state)
{
    static const struct {
        const char *index, *columns, *sql;
    } changes[] = {
        { "record_call", "t, r", "UPDATE x SET t = CAST(t AS BLOB) WHERE r = 7" },
        { "record_call", "t, r", "DELETE FROM x WHERE r = 7" },
        { "record_special", "t, n, r", "UPDATE x SET t = CAST(t AS BLOB) WHERE r = 7" },
        { "record_special", "t, n, r", "DELETE FROM x WHERE r = 7" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
        struct tci_journal_grant *grants = NULL;
        struct tci_journal *journal = NULL;
        struct tc_error error = { 0 };
        size_t count = 0;
        restore();
        change_index(changes[i].index, changes[i].columns, changes[i].sql);
        run_sql(original.place.path, "UPDATE run_grant SET revoked_us = 0, revoked_row = 0");
        assert_ok(tci_journal_open(original.place.path, 0, &journal, &error), &error);
        assert_int_equal(tci_journal_grants(journal, "a", false, arena, &grants, &count, &error),
                         -1);
        assert_true(error.message[0] && error.remedy[0]);
        tci_journal_close(journal);
    }
}

static void test_tables_of_strangers_are_refused(void **state)
{
    static const char *const changes[] = {
        "CREATE TRIGGER x AFTER INSERT ON record BEGIN DELETE FROM record WHERE row = 1; END",
        "CREATE VIEW x AS SELECT * FROM record",
        "CREATE TABLE x (a)",
        "DROP INDEX record_call",
        "DROP TABLE run_grant",
        "ALTER TABLE record ADD COLUMN more TEXT",
        "DROP TABLE head; CREATE VIEW head AS SELECT 1 AS one, 0 AS rows, 'x' AS state_hash",
        /* Names that SQLite keeps for itself. */
        "ANALYZE",
        "CREATE INDEX y ON record (call_id, row, tool, verdict); PRAGMA writable_schema = ON; "
        "UPDATE sqlite_schema SET name = 'sqlite_1', sql = replace(sql, 'INDEX y', 'INDEX "
        "sqlite_1') "
        "WHERE name = 'y'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'view' WHERE name = 'head'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        struct tci_journal *journal = NULL;
        struct tc_error error = { 0 };
        restore();
        run_sql(original.place.path, changes[i]);
        assert_int_equal(tci_journal_open(original.place.path, 0, &journal, &error), -1);
        assert_true(error.message[0] && error.remedy[0]);
    }
}

static void test_statistics_come_with_a_remedy(void **state)
{
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    (void)state;
    restore();
    run_sql(original.place.path, "ANALYZE");
    assert_int_equal(tci_journal_open(original.place.path, 0, &journal, &error), -1);
    assert_non_null(strstr(error.remedy, "DROP TABLE"));
    run_sql(original.place.path, "DROP TABLE sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4");
    assert_true(look().good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched_it_is_good),
        cmocka_unit_test(test_any_column_of_any_row_that_changes_is_named),
        cmocka_unit_test(test_any_bit_of_a_hash_that_flips_is_named),
        cmocka_unit_test(test_types_that_change_are_named),
        cmocka_unit_test(test_rows_that_are_removed_swapped_or_put_in_are_named),
        cmocka_unit_test(test_a_row_that_follows_but_is_not_known_is_named),
        cmocka_unit_test(test_heads_that_change_are_named),
        cmocka_unit_test(test_grants_that_change_are_named),
        cmocka_unit_test(test_bytes_that_change_anywhere_do_no_harm),
        cmocka_unit_test(test_a_file_that_was_cut_is_found_out),
        cmocka_unit_test(test_behind_a_checkpoint_changes_are_named_too),
        cmocka_unit_test(test_an_index_that_hides_a_row_is_found_out),
        cmocka_unit_test(test_an_index_whose_entries_changed_is_found_out),
        cmocka_unit_test(test_entries_that_changed_places_are_found_out),
        cmocka_unit_test(test_a_revoke_that_an_index_hides_counts_all_the_same),
        cmocka_unit_test(test_lists_of_free_pages_that_changed_are_found_out),
        cmocka_unit_test(test_a_row_that_its_neighbours_do_not_know_is_not_given_out),
        cmocka_unit_test(test_an_index_that_leads_elsewhere_gives_no_rows),
        cmocka_unit_test(test_statistics_come_with_a_remedy),
        cmocka_unit_test(test_tables_of_strangers_are_refused),
    };
    return cmocka_run_group_tests(tests, make_original, remove_original);
}
