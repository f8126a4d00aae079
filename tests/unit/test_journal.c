/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of what a journal keeps: records, chains, questions, grants, counters, replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "journal_support.h"

/* ---- records ------------------------------------------------------------------------------ */

static void test_records_of_two_sessions_form_a_chain(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tci_journal_report report;
    (void)state;
    for (unsigned i = 1; i <= 10; i++)
        append(journal, i % 3 ? "one" : "two", i);
    report = verify(journal);
    assert_true(report.good);
    assert_int_equal(report.rows, 10);
    assert_int_equal(report.sessions, 2);
    tci_journal_close(journal);
    /* And by another handle, from the file. */
    journal = open_journal(place.path);
    assert_good(journal, 10);
    append(journal, "two", 11);
    assert_good(journal, 11);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_canonical_record_and_hash_are_as_documented(void **state)
{
    static const char expected[] =
        "{\"agent\":\"a\",\"call_id\":\"call-1\",\"ended_us\":1015,\"grants\":\"[\\\"g\\\"]\","
        "\"kind\":\"call\",\"policy_hash\":\"p\",\"request_hash\":\"%s\",\"request_kept\":true,"
        "\"result_hash\":\"%s\",\"result_kept\":false,\"row\":7,\"row_before\":\"%s\","
        "\"session\":\"s\\n\",\"started_us\":1010,\"step\":3,\"tool\":\"t\",\"verdict\":\"ok\"}";
    struct sample sample;
    struct tci_journal_row row = { .row = 7, .step = 3 };
    struct tci_buf out = TCI_BUF_INIT(4096);
    struct tc_error error = { 0 };
    struct tci_sha256 hash;
    char text[1024], wanted[TCI_SHA256_TEXT_MAX], got[TCI_SHA256_TEXT_MAX];
    unsigned char previous[TCI_SHA256_SIZE];
    (void)state;
    make_entry(&sample, "s\n", 1);
    row.entry = sample.entry;
    row.entry.result = NULL;
    memset(row.row_before, 'b', 64);
    memset(row.previous, 'c', 64);
    tci_journal_canonical(&row, &out);
    (void)snprintf(text, sizeof text, expected, row.entry.request_hash, row.entry.result_hash,
                   row.row_before);
    assert_string_equal(out.data, text);
    memset(previous, 0xcc, sizeof previous);
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, previous, sizeof previous);
    tci_sha256_add(&hash, text, strlen(text));
    tci_sha256_end_text(&hash, wanted);
    assert_ok(tci_journal_hash(&row, got, &error), &error);
    assert_string_equal(got, wanted);
    tci_buf_free(&out);
}

static void test_entries_that_would_break_the_chain_are_refused(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    char hash[TCI_SHA256_TEXT_MAX], *long_name = malloc(TCI_JOURNAL_NAME_MAX + 2);
    (void)state;
    memset(long_name, 'x', TCI_JOURNAL_NAME_MAX + 1);
    long_name[TCI_JOURNAL_NAME_MAX + 1] = '\0';
    for (int i = 0; i < 7; i++) {
        struct tc_error error = { 0 };
        struct sample sample;
        make_entry(&sample, "s", 1);
        if (i == 0)
            sample.entry.session = "\xff";
        if (i == 1)
            sample.entry.tool = long_name;
        if (i == 2)
            sample.entry.started_us = -1;
        if (i == 3)
            sample.entry.ended_us = TCI_JOURNAL_INTEGER_MAX + 1;
        if (i == 4)
            sample.entry.request = "{}"; /* not what its hash is of */
        if (i == 5) {
            sample.entry.result = NULL;
            memset(sample.entry.result_hash, 'X', 64);
        }
        if (i == 6)
            sample.entry.grants = "\xc3";
        assert_int_equal(tci_journal_append(journal, &sample.entry, hash, &error), -1);
        assert_true(error.message[0]);
    }
    assert_good(journal, 0);
    free(long_name);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_hash_only_records_keep_no_text_and_verify(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    (void)state;
    make_entry(&sample, "s", 1);
    sample.entry.request = sample.entry.result = NULL;
    assert_ok(tci_journal_append(journal, &sample.entry, hash, &error), &error);
    assert_good(journal, 1);
    tci_journal_close(journal);
    remove_place(&place);
}

/* ---- questions ---------------------------------------------------------------------------- */

struct seen {
    unsigned count;
    uint64_t rows[32];
    int stop_at; /* 0: never */
};

static int see(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct seen *seen = context;
    (void)reterr;
    assert_in_range(seen->count, 0, 31);
    seen->rows[seen->count++] = row->row;
    return seen->stop_at && (int)seen->count == seen->stop_at ? 77 : 0;
}

static struct seen ask(struct tci_journal *journal, struct tci_journal_query query, int stop_at)
{
    struct seen seen = { .stop_at = stop_at };
    struct tc_error error = { 0 };
    int r = tci_journal_each(journal, &query, see, &seen, &error);
    assert_ok(r, &error);
    assert_int_equal(r, stop_at && (int)seen.count == stop_at ? 77 : 0);
    return seen;
}

static void test_questions_find_the_rows_they_describe(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct seen seen;
    (void)state;
    for (unsigned i = 1; i <= 20; i++)
        append(journal, i % 2 ? "odd" : "even", i);
    assert_int_equal(ask(journal, (struct tci_journal_query){ 0 }, 0).count, 20);
    seen = ask(journal, (struct tci_journal_query){ .last = 3 }, 0);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.rows[0], 18);
    assert_int_equal(seen.rows[2], 20);
    seen = ask(journal, (struct tci_journal_query){ .session = "odd", .last = 2 }, 0);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.rows[0], 17);
    assert_int_equal(seen.rows[1], 19);
    seen = ask(journal, (struct tci_journal_query){ .call_id = "call-7" }, 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.rows[0], 7);
    seen = ask(journal, (struct tci_journal_query){ .row_from = 5, .row_to = 9, .tool = "t" }, 0);
    assert_int_equal(seen.count, 5);
    seen = ask(journal,
               (struct tci_journal_query){ .session = "even",
                                           .tool = "t",
                                           .agent = "a",
                                           .verdict = "ok",
                                           .kind = "call",
                                           .row_from = 1,
                                           .row_to = 20,
                                           .call_id = "call-8",
                                           .last = UINT64_MAX },
               0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(ask(journal, (struct tci_journal_query){ .session = "" }, 0).count, 0);
    assert_int_equal(ask(journal, (struct tci_journal_query){ .last = 100 }, 0).count, 20);
    assert_int_equal(ask(journal, (struct tci_journal_query){ 0 }, 4).count, 4);
    tci_journal_close(journal);
    remove_place(&place);
}

static int append_inside(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    (void)reterr;
    append(context, "inside", 100 + (unsigned)row->row);
    return 0;
}

static void test_a_visitor_may_write_to_the_journal_that_it_visits(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tc_error error = { 0 };
    (void)state;
    append(journal, "s", 1);
    append(journal, "s", 2);
    assert_ok(tci_journal_each(journal, &(struct tci_journal_query){ .row_to = 2 }, append_inside,
                               journal, &error),
              &error);
    assert_good(journal, 4);
    tci_journal_close(journal);
    remove_place(&place);
}

/* ---- while others use it -------------------------------------------------------------------- */

static const struct tci_journal_bounds unbounded = { SIZE_MAX, SIZE_MAX, NULL };

static void *append_aside(void *journal)
{
    append(journal, "s", 100);
    return NULL;
}

/* Another thread uses the handle meanwhile: with the lock held it would wait for ever. */
static int let_others_in(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    pthread_t thread;
    (void)row;
    (void)reterr;
    assert_int_equal(pthread_create(&thread, NULL, append_aside, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return 0;
}

static void test_others_read_and_write_between_two_visits(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tci_journal_query query = { .session = "s" };
    struct tc_error error = { 0 };
    (void)state;
    for (unsigned i = 1; i <= 3; i++)
        append(journal, "s", i);
    assert_ok(tci_journal_each_back(journal, &query, &unbounded, let_others_in, journal, &error),
              &error);
    assert_good(journal, 6); /* one for each of the three: none for those that came meanwhile */
    query = (struct tci_journal_query){ .call_id = "call-2" };
    assert_ok(tci_journal_each_back(journal, &query, &unbounded, let_others_in, journal, &error),
              &error);
    assert_good(journal, 7);
    tci_journal_close(journal);
    remove_place(&place);
}

static struct seen ask_back(struct tci_journal *journal, struct tci_journal_query query,
                            int stop_at)
{
    struct seen seen = { .stop_at = stop_at };
    struct tc_error error = { 0 };
    int r = tci_journal_each_back(journal, &query, &unbounded, see, &seen, &error);
    assert_ok(r, &error);
    assert_int_equal(r, stop_at && (int)seen.count == stop_at ? 77 : 0);
    return seen;
}

static void append_of(struct tci_journal *journal, const char *agent, unsigned number)
{
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    make_entry(&sample, "shared", number);
    sample.entry.agent = agent;
    assert_ok(tci_journal_append(journal, &sample.entry, hash, &error), &error);
}

static void test_rows_come_from_the_last_one_back(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tc_error error = { 0 };
    struct seen seen;
    (void)state;
    /* More of others between its own than one page of the index has. */
    for (unsigned i = 1; i <= 600; i++)
        append_of(journal, i % 300 ? "b" : "a", i);
    append(journal, "other", 601);
    seen = ask_back(journal, (struct tci_journal_query){ .session = "shared", .agent = "a" }, 0);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.rows[0], 600);
    assert_int_equal(seen.rows[1], 300);
    seen = ask_back(journal, (struct tci_journal_query){ .session = "shared", .last = 3 }, 0);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.rows[0], 600);
    assert_int_equal(seen.rows[2], 598);
    assert_int_equal(ask_back(journal, (struct tci_journal_query){ .session = "shared" }, 5).count,
                     5);
    seen = ask_back(journal, (struct tci_journal_query){ .session = "shared", .call_id = "call-7" },
                    0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.rows[0], 7);
    assert_int_equal(
        ask_back(journal, (struct tci_journal_query){ .session = "other", .call_id = "call-7" }, 0)
            .count,
        0);
    assert_int_equal(
        ask_back(
            journal,
            (struct tci_journal_query){ .session = "shared", .agent = "a", .call_id = "call-7" }, 0)
            .count,
        0);
    assert_int_equal(tci_journal_each_back(journal, &(struct tci_journal_query){ .agent = "a" },
                                           &unbounded, see, &seen, &error),
                     -1);
    tci_journal_close(journal);
    remove_place(&place);
}

struct bounded {
    unsigned count, results;
    unsigned stop_at;
    atomic_bool stop;
};

static int count_results(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct bounded *bounded = context;
    (void)reterr;
    bounded->results += row->entry.result != NULL;
    if (++bounded->count == bounded->stop_at)
        atomic_store(&bounded->stop, true);
    return 0;
}

static void test_reading_back_ends_when_it_is_told_and_leaves_long_results_out(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    const struct tci_journal_query query = { .session = "s" };
    struct bounded stopped = { .stop_at = 2 }, few = { .count = 0 }, none = { .count = 0 };
    struct tci_journal_bounds bounds = { SIZE_MAX, SIZE_MAX, &stopped.stop };
    struct tc_error error = { 0 };
    const size_t length = strlen("{\"exit\":0,\"stdout\":\"1\"}");
    (void)state;
    for (unsigned i = 1; i <= 5; i++)
        append(journal, "s", i);
    assert_ok(tci_journal_each_back(journal, &query, &bounds, count_results, &stopped, &error),
              &error);
    assert_int_equal(stopped.count, 2);
    assert_int_equal(stopped.results, 2);
    assert_ok(tci_journal_each_back(journal, &query, &bounds, count_results, &stopped, &error),
              &error);
    assert_int_equal(stopped.count, 2); /* it was told already */
    bounds = (struct tci_journal_bounds){ length, 3 * length, NULL };
    assert_ok(tci_journal_each_back(journal, &query, &bounds, count_results, &few, &error), &error);
    assert_int_equal(few.count, 5);
    assert_int_equal(few.results, 3);
    bounds = (struct tci_journal_bounds){ length - 1, SIZE_MAX, NULL };
    assert_ok(tci_journal_each_back(journal, &query, &bounds, count_results, &none, &error),
              &error);
    assert_int_equal(none.count, 5);
    assert_int_equal(none.results, 0);
    tci_journal_close(journal);
    remove_place(&place);
}

/* ---- grants and counters ------------------------------------------------------------------ */

static uint64_t grants_version(struct tci_journal *journal)
{
    struct tc_error error = { 0 };
    uint64_t version = 0;
    assert_ok(tci_journal_grants_version(journal, &version, &error), &error);
    return version;
}

static size_t list_grants(struct tci_journal *journal, const char *agent, bool revoked,
                          struct tci_arena *arena, struct tci_journal_grant **ret)
{
    struct tc_error error = { 0 };
    size_t count = 0;
    assert_ok(tci_journal_grants(journal, agent, revoked, arena, ret, &count, &error), &error);
    return count;
}

static bool count_call(struct tci_journal *journal, const char *key, uint64_t max)
{
    struct tc_error error = { 0 };
    bool counted = false;
    assert_ok(tci_journal_count_all(journal, &key, &max, 1, &counted, &error), &error);
    return counted;
}

static uint64_t calls_counted(struct tci_journal *journal, const char *key)
{
    struct tc_error error = { 0 };
    uint64_t calls = 9;
    assert_ok(tci_journal_counted(journal, key, &calls, &error), &error);
    return calls;
}

static void test_grants_are_added_listed_and_revoked(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant *grants = NULL;
    struct tc_error error = { 0 };
    char first[TCI_UUID_TEXT_MAX], second[TCI_UUID_TEXT_MAX];
    uint64_t before = grants_version(journal);
    (void)state;
    assert_ok(tci_journal_grant_add(journal, "a", "t", "{ \"max_calls\" : 2, \"a\":1.50 }", first,
                                    &error),
              &error);
    assert_int_not_equal(grants_version(journal), before);
    before = grants_version(journal);
    assert_ok(tci_journal_grant_add(journal, "b", "t", "{}", second, &error), &error);
    assert_int_not_equal(grants_version(journal), before);
    assert_true(count_call(journal, first, 2));
    assert_int_equal(list_grants(journal, NULL, false, arena, &grants), 2);
    assert_string_equal(grants[0].id, first);
    assert_string_equal(grants[0].text, "{\"a\":1.5,\"max_calls\":2}");
    assert_int_equal(grants[0].calls, 1);
    assert_int_equal(list_grants(journal, "b", false, arena, &grants), 1);
    assert_string_equal(grants[0].id, second);
    assert_int_equal(tci_journal_grant_revoke(journal, first, &error), 0);
    assert_int_equal(tci_journal_grant_revoke(journal, first, &error), 1);
    assert_int_equal(tci_journal_grant_revoke(journal, "no such id", &error), 1);
    assert_int_equal(list_grants(journal, NULL, false, arena, &grants), 1);
    assert_int_equal(list_grants(journal, NULL, true, arena, &grants), 2);
    assert_true(grants[0].revoked_us > 0);
    assert_int_equal(tci_journal_grant_add(journal, "a", "t", "{", first, &error), -1);
    assert_good(journal, 3);
    tci_arena_free(arena);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_a_grant_written_into_the_table_alone_is_none(void **state)
{
    static const char *const changes[] = {
        "UPDATE run_grant SET agent = 'b'",
        "UPDATE run_grant SET tool = 'u'",
        "UPDATE run_grant SET text = '{\"max_calls\":9}'",
        "UPDATE run_grant SET created_us = 1",
        "UPDATE run_grant SET revoked_us = 0, revoked_row = 0 WHERE revoked_row > 0",
        "INSERT INTO run_grant VALUES ('x', 1, 'a', 't', '{}', 1, 0, 0)",
        "UPDATE run_grant SET row = row + 1",
        "UPDATE run_grant SET id = id || 'x'",
        "DELETE FROM run_grant"
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        struct place place = new_place();
        struct tci_journal *journal = open_journal(place.path);
        struct tci_arena *arena = tci_arena_new();
        struct tci_journal_grant *grants = NULL;
        struct tc_error error = { 0 };
        char id[TCI_UUID_TEXT_MAX];
        size_t count;
        assert_ok(tci_journal_grant_add(journal, "a", "t", "{}", id, &error), &error);
        assert_ok(tci_journal_grant_add(journal, "a", "t", "{}", id, &error), &error);
        assert_int_equal(tci_journal_grant_revoke(journal, id, &error), 0);
        run_sql(place.path, changes[i]);
        assert_false(verify(journal).good);
        if (i + 1 < tci_array_size(changes)) /* grants that are gone allow nothing */
            assert_int_equal(
                tci_journal_grants(journal, NULL, true, arena, &grants, &count, &error), -1);
        tci_arena_free(arena);
        tci_journal_close(journal);
        remove_place(&place);
    }
}

static void test_no_more_calls_are_counted_than_allowed(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    (void)state;
    assert_false(count_call(journal, "k", 0));
    assert_int_equal(calls_counted(journal, "k"), 0);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(count_call(journal, "k", 2), i <= 2);
        assert_int_equal(calls_counted(journal, "k"), i <= 2 ? i : 2);
    }
    assert_true(count_call(journal, "k", UINT64_MAX));
    assert_int_equal(calls_counted(journal, "k"), 3);
    tci_journal_close(journal);
    remove_place(&place);
}

/* ---- replay ------------------------------------------------------------------------------- */

static struct tci_replay *open_replay(struct tci_journal *journal, const char *session, bool resume)
{
    struct tci_replay *replay = NULL;
    struct tc_error error = { 0 };
    assert_ok(tci_replay_open(journal, session, resume, &replay, &error), &error);
    return replay;
}

/* Takes the request with this number: the row, or minus the row that was expected. */
static int64_t take(struct tci_replay *replay, unsigned number)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    struct tci_journal_row row;
    struct sample sample;
    int r;
    make_entry(&sample, "", number);
    r = tci_replay_take(replay, sample.entry.request_hash, arena, &row, &error);
    assert_ok(r, &error);
    if (r == 0) {
        assert_string_equal(row.entry.request, sample.request);
        assert_string_equal(row.entry.result, sample.result);
    }
    tci_arena_free(arena);
    return r == 0 ? (int64_t)row.row : -(int64_t)row.row;
}

static void test_replay_gives_records_in_order_and_says_where_it_diverges(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tci_replay *replay;
    (void)state;
    for (unsigned i = 1; i <= 6; i++)
        append(journal, i == 3 ? "other" : "s", i);
    replay = open_replay(journal, "s", false);
    assert_int_equal(take(replay, 1), 1);
    assert_int_equal(take(replay, 1), -2);
    assert_int_equal(take(replay, 4), -2); /* what ran later may not come first */
    assert_int_equal(take(replay, 2), 2);
    assert_int_equal(take(replay, 4), 4);
    assert_int_equal(take(replay, 5), 5);
    assert_int_equal(take(replay, 6), 6);
    assert_int_equal(take(replay, 6), 0);
    tci_replay_close(replay);
    tci_journal_close(journal);
    remove_place(&place);
}

/* An entry of a time of its own. */
static void append_at(struct tci_journal *journal, unsigned number, int64_t from, int64_t to)
{
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    make_entry(&sample, "s", number);
    sample.entry.started_us = from;
    sample.entry.ended_us = to;
    assert_ok(tci_journal_append(journal, &sample.entry, hash, &error), &error);
}

static void test_what_ran_at_the_same_time_may_come_in_any_order(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tci_replay *replay;
    (void)state;
    append_at(journal, 1, 10, 20);
    append_at(journal, 2, 12, 25);
    append_at(journal, 2, 21, 28); /* after 1, beside the other 2 */
    append_at(journal, 3, 5, 30);  /* beside all */
    append_at(journal, 4, 40, 50); /* after all */
    replay = open_replay(journal, "s", false);
    assert_int_equal(take(replay, 4), -1);
    assert_int_equal(take(replay, 3), 4);
    assert_int_equal(take(replay, 2), 2);
    assert_int_equal(take(replay, 2), -1);
    assert_int_equal(take(replay, 1), 1);
    assert_int_equal(take(replay, 4), -3);
    assert_int_equal(take(replay, 2), 3);
    assert_int_equal(take(replay, 4), 5);
    tci_replay_close(replay);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_replay_goes_on_where_another_process_stopped(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path), *second;
    struct tci_replay *replay, *other;
    struct tc_error error = { 0 };
    (void)state;
    for (unsigned i = 1; i <= 300; i++)
        append_at(journal, i, i < 20 ? 1 : 10 * i, i < 20 ? 1000 : 10 * i + 5);
    replay = open_replay(journal, "s", true);
    assert_int_equal(take(replay, 3), 3);
    assert_int_equal(take(replay, 1), 1);
    assert_int_equal(take(replay, 17), 17);
    second = open_journal(place.path);
    other = open_replay(second, "s", true);
    assert_int_equal(take(other, 3), -2);
    assert_int_equal(take(other, 2), 2);
    assert_int_equal(take(replay, 2), -4);
    for (unsigned i = 4; i <= 300; i++)
        if (i != 17)
            assert_int_equal(take(i % 2 ? replay : other, i), i);
    assert_int_equal(take(replay, 1), 0);
    assert_ok(tci_replay_restart(journal, "s", &error), &error);
    assert_int_equal(take(other, 1), 1);
    tci_replay_close(replay);
    tci_replay_close(other);
    tci_journal_close(second);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_replay_refuses_what_is_not_what_was_recorded(void **state)
{
    static const char *const changes[] = {
        "UPDATE record SET result = replace(result, '0', '1') WHERE row = 1",
        "DELETE FROM record WHERE row = 1", "UPDATE record SET verdict = 'x' WHERE row = 1"
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        struct place place = new_place();
        struct tci_journal *journal = open_journal(place.path);
        struct tci_arena *arena = tci_arena_new();
        struct tci_replay *replay;
        struct tc_error error = { 0 };
        struct tci_journal_row row;
        struct sample sample;
        append(journal, "s", 1);
        append(journal, "s", 2);
        run_sql(place.path, changes[i]);
        make_entry(&sample, "", 1);
        replay = open_replay(journal, "s", false);
        assert_int_equal(tci_replay_take(replay, sample.entry.request_hash, arena, &row, &error),
                         -1);
        assert_non_null(strstr(error.message, "changed or is damaged"));
        assert_int_equal(tci_replay_open(journal, "none", false, &replay, &(struct tc_error){ 0 }),
                         -1);
        tci_replay_close(replay);
        tci_arena_free(arena);
        tci_journal_close(journal);
        remove_place(&place);
    }
}

/* ---- many at once ------------------------------------------------------------------------- */

enum { writers = 4, writes = 50 };

static void test_processes_that_write_at_once_make_one_chain(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal;
    pid_t children[writers];
    (void)state;
    for (int i = 0; i < writers; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i])
            continue;
        journal = open_journal(place.path); /* and they make it at once, too */
        for (unsigned j = 0; j < writes; j++)
            append(journal, j % 2 ? "shared" : "", j);
        tci_journal_close(journal);
        _exit(0);
    }
    for (int i = 0; i < writers; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    journal = open_journal(place.path);
    assert_good(journal, writers * writes);
    tci_journal_close(journal);
    remove_place(&place);
}

static void *write_some(void *context)
{
    for (unsigned i = 0; i < 5; i++)
        append(context, "threads", i);
    return count_call(context, "k", 100) ? context : NULL;
}

static void test_two_hundred_threads_share_a_handle(void **state)
{
    enum { threads = 200 };
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    pthread_t ids[threads];
    unsigned counted = 0;
    (void)state;
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, write_some, journal), 0);
    for (int i = 0; i < threads; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(ids[i], &result), 0);
        counted += result != NULL;
    }
    assert_int_equal(counted, 100);
    assert_good(journal, threads * 5);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_a_forked_child_cannot_use_the_handle(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    int status = 0;
    pid_t child;
    (void)state;
    append(journal, "s", 1);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct tc_error error = { 0 };
        char hash[TCI_SHA256_TEXT_MAX];
        struct sample sample;
        make_entry(&sample, "s", 2);
        int r = tci_journal_append(journal, &sample.entry, hash, &error);
        tci_journal_close(journal);
        _exit(r == -1 && strstr(error.message, "fork") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    append(journal, "s", 2);
    assert_good(journal, 2);
    tci_journal_close(journal);
    remove_place(&place);
}

/* A writer says on a pipe which row it has finished; whenever it is killed, that row is there. */
static void write_until_killed(const char *path, int out)
{
    struct tci_journal *journal = open_journal(path);
    for (unsigned i = 0;; i++) {
        append(journal, i % 5 ? "a" : "b", i);
        if (write(out, "x", 1) != 1)
            _exit(1);
    }
}

static void test_kill_at_any_moment_loses_no_finished_record(void **state)
{
    enum { kills = 200 };
    struct place place = new_place();
    uint64_t finished = 0;
    unsigned killed;
    struct tci_journal *journal;
    (void)state;
    tci_journal_close(open_journal(place.path));
    /* Where writers never get as far as that, they are given longer. */
    for (killed = 0; killed < kills || (!finished && killed < 10 * kills); killed++) {
        char bytes[4096];
        ssize_t got;
        int ends[2], status;
        pid_t child;
        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
            (void)close(ends[0]);
            write_until_killed(place.path, ends[1]);
        }
        (void)close(ends[1]);
        (void)usleep(killed * 37 % 3000 * (1 + killed / kills * 10));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        while ((got = read(ends[0], bytes, sizeof bytes)) > 0)
            finished += (uint64_t)got;
        (void)close(ends[0]);
    }
    journal = open_journal(place.path);
    struct tci_journal_report report = verify(journal);
    assert_true(report.good);
    assert_true(finished > 0);
    /* A row may be there of which its writer did not live to tell. */
    assert_in_range(report.rows, finished, finished + killed);
    tci_journal_close(journal);
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_of_two_sessions_form_a_chain),
        cmocka_unit_test(test_canonical_record_and_hash_are_as_documented),
        cmocka_unit_test(test_entries_that_would_break_the_chain_are_refused),
        cmocka_unit_test(test_hash_only_records_keep_no_text_and_verify),
        cmocka_unit_test(test_questions_find_the_rows_they_describe),
        cmocka_unit_test(test_a_visitor_may_write_to_the_journal_that_it_visits),
        cmocka_unit_test(test_others_read_and_write_between_two_visits),
        cmocka_unit_test(test_rows_come_from_the_last_one_back),
        cmocka_unit_test(test_reading_back_ends_when_it_is_told_and_leaves_long_results_out),
        cmocka_unit_test(test_grants_are_added_listed_and_revoked),
        cmocka_unit_test(test_a_grant_written_into_the_table_alone_is_none),
        cmocka_unit_test(test_no_more_calls_are_counted_than_allowed),
        cmocka_unit_test(test_replay_gives_records_in_order_and_says_where_it_diverges),
        cmocka_unit_test(test_what_ran_at_the_same_time_may_come_in_any_order),
        cmocka_unit_test(test_replay_goes_on_where_another_process_stopped),
        cmocka_unit_test(test_replay_refuses_what_is_not_what_was_recorded),
        cmocka_unit_test(test_processes_that_write_at_once_make_one_chain),
        cmocka_unit_test(test_two_hundred_threads_share_a_handle),
        cmocka_unit_test(test_a_forked_child_cannot_use_the_handle),
        cmocka_unit_test(test_kill_at_any_moment_loses_no_finished_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
