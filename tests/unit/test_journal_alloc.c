/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests that a journal without memory fails with that error, loses nothing and goes on afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "alloc_support.h"
#include "journal_support.h"

#ifndef SANITIZED

static struct tci_journal *shared;

static int do_append(struct tc_error *error)
{
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    make_entry(&sample, "s", 1);
    return tci_journal_append(shared, &sample.entry, hash, error);
}

static int do_verify(struct tc_error *error)
{
    struct tci_journal_report report;
    int r = tci_journal_verify(shared, &report, NULL, NULL, error);
    if (r == 0 && !report.good)
        fail_msg("without memory, a good journal is called bad: %s", report.problem);
    return r;
}

static int no_visit(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    (void)context;
    (void)row;
    (void)reterr;
    return 0;
}

static int do_each(struct tc_error *error)
{
    return tci_journal_each(shared, &(struct tci_journal_query){ .session = "s", .last = 5 },
                            no_visit, NULL, error);
}

static int do_each_back(struct tc_error *error)
{
    static const struct tci_journal_bounds unbounded = { SIZE_MAX, SIZE_MAX, NULL };
    return tci_journal_each_back(shared, &(struct tci_journal_query){ .session = "s", .last = 5 },
                                 &unbounded, no_visit, NULL, error);
}

static int do_grants(struct tc_error *error)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_journal_grant *grants = NULL;
    uint64_t version;
    size_t count;
    int r = arena ? tci_journal_grants(shared, "listed", true, arena, &grants, &count, error)
                  : tci_error_no_memory(error);
    if (r == 0)
        assert_int_equal(count, 2);
    if (r == 0)
        r = tci_journal_grants_version(shared, &version, error);
    tci_arena_free(arena);
    return r;
}

static int do_grant(struct tc_error *error)
{
    char id[TCI_UUID_TEXT_MAX];
    int r = tci_journal_grant_add(shared, "a", "t", "{\"x\":1}", id, error);
    return r == 0 ? tci_journal_grant_revoke(shared, id, error) : r;
}

static int do_count(struct tc_error *error)
{
    const char *key = "k";
    const uint64_t max = UINT64_MAX;
    bool counted;
    return tci_journal_count_all(shared, &key, &max, 1, &counted, error);
}

static int do_replay(struct tc_error *error)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_replay *replay = NULL;
    struct tci_journal_row row;
    struct sample sample;
    int r = arena ? tci_replay_open(shared, "s", true, &replay, error) : tci_error_no_memory(error);
    make_entry(&sample, "s", 1);
    if (r == 0)
        r = tci_replay_take(replay, sample.entry.request_hash, arena, &row, error);
    tci_replay_close(replay);
    tci_arena_free(arena);
    return r < 0 ? r : 0;
}

/* Fails every allocation of `run` in turn, alone and with all after it. */
static void fail_each(int (*run)(struct tc_error *error))
{
    for (int on = 0; on < 2; on++) {
        for (long at = 1;; at++) {
            struct tc_error error = { 0 };
            int r;
            assert_in_range(at, 1, 5000);
            allocations.failing_on = on;
            begin_round(at);
            r = run(&error);
            bool failed = allocations.failed > 0;
            begin_round(0);
            if (r < 0 && error.code != TC_ERROR_NO_MEMORY)
                fail_msg("allocation %ld: %s", at, error.message);
            if (!failed) {
                assert_int_equal(r, 0);
                break;
            }
        }
        allocations.failing_on = false;
    }
}

static void test_without_memory_nothing_is_lost(void **state)
{
    static int (*const all[])(struct tc_error *) = { do_append, do_verify, do_each,  do_each_back,
                                                     do_grants, do_grant,  do_count, do_replay };
    (void)state;
    for (size_t i = 0; i < tci_array_size(all); i++) {
        struct place place = new_place();
        struct tc_error error = { 0 };
        char id[TCI_UUID_TEXT_MAX];
        shared = open_journal(place.path);
        append(shared, "s", 1);
        append(shared, "s", 2);
        for (int j = 0; j < 2; j++)
            assert_ok(tci_journal_grant_add(shared, "listed", "t", "{}", id, &error), &error);
        fail_each(all[i]);
        append(shared, "s", 3);
        assert_true(verify(shared).good);
        tci_journal_close(shared);
        remove_place(&place);
    }
}

static void test_opening_without_memory_is_an_error(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct place place = new_place();
        for (long at = 1;; at++) {
            struct tci_journal *journal = NULL;
            struct tc_error error = { 0 };
            int r;
            allocations.failing_on = on;
            begin_round(at);
            r = tci_journal_open(place.path, TCI_JOURNAL_CREATE, &journal, &error);
            bool failed = allocations.failed > 0;
            begin_round(0);
            if (r < 0 && error.code != TC_ERROR_NO_MEMORY)
                fail_msg("allocation %ld: %s", at, error.message);
            tci_journal_close(journal);
            if (!failed)
                break;
        }
        allocations.failing_on = false;
        remove_place(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory_nothing_is_lost),
        cmocka_unit_test(test_opening_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    /* Nothing can be made to fail here; the plain build runs these tests. */
    (void)printf("1..0 # SKIP the sanitizer owns malloc\n");
    return 0;
}

#endif
