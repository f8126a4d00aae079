/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of the budget for answers in the making: who waits, in which order, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "mcp/job.h"

enum { MEGA = 1024 * 1024, JOBS = 4 };

static struct {
    struct tci_mcp_budget budget;
    struct tci_mcp_job jobs[JOBS];
    size_t wanted[JOBS];
    pthread_t threads[JOBS];
} t;

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    tci_mcp_budget_init(&t.budget);
    for (size_t i = 0; i < JOBS; i++)
        if (pthread_mutex_init(&t.jobs[i].lock, NULL) ||
            pthread_cond_init(&t.jobs[i].changed, NULL))
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        (void)pthread_cond_destroy(&t.jobs[i].changed);
        (void)pthread_mutex_destroy(&t.jobs[i].lock);
    }
    tci_mcp_budget_destroy(&t.budget);
    return t.budget.used || t.budget.first || t.budget.last ? -1 : 0;
}

static bool take(size_t job, size_t megabytes)
{
    return tci_mcp_budget_take(&t.budget, &t.jobs[job], megabytes * MEGA);
}

static void keep(size_t job, size_t megabytes)
{
    tci_mcp_budget_keep(&t.budget, &t.jobs[job], megabytes * MEGA);
}

static void *take_in_thread(void *context)
{
    size_t job = (size_t)((struct tci_mcp_job *)context - t.jobs);
    return take(job, t.wanted[job]) ? context : NULL;
}

static bool is_last_in_line(size_t job)
{
    bool is_last;
    pthread_mutex_lock(&t.budget.lock);
    is_last = t.budget.last == &t.jobs[job];
    pthread_mutex_unlock(&t.budget.lock);
    return is_last;
}

/* Returns when it waits. */
static void begin_to_wait(size_t job, size_t megabytes)
{
    t.wanted[job] = megabytes;
    assert_int_equal(pthread_create(&t.threads[job], NULL, take_in_thread, &t.jobs[job]), 0);
    while (!is_last_in_line(job))
        sched_yield();
}

/* Returns what take said. */
static bool end_of_wait(size_t job)
{
    void *got = NULL;
    assert_int_equal(pthread_join(t.threads[job], &got), 0);
    return got != NULL;
}

static void cancel(size_t job)
{
    pthread_mutex_lock(&t.jobs[job].lock);
    atomic_store(&t.jobs[job].cancelled, true);
    pthread_cond_broadcast(&t.jobs[job].changed);
    pthread_mutex_unlock(&t.jobs[job].lock);
}

static void test_what_fits_is_given_at_once_and_comes_back(void **state)
{
    (void)state;
    assert_true(take(0, 100) && take(1, 156));
    assert_int_equal(t.budget.used, TCI_MCP_BUDGET);
    keep(0, 30);
    keep(0, 90); /* a share does not grow */
    assert_int_equal(t.budget.used, 186 * MEGA);
    keep(0, 0);
    keep(0, 0);
    keep(1, 0);
}

static void test_who_finds_no_room_waits_until_there_is_enough(void **state)
{
    (void)state;
    assert_true(take(0, 200));
    begin_to_wait(1, 100);
    keep(0, 157);
    assert_true(is_last_in_line(1)); /* a megabyte is missing */
    assert_int_equal(t.budget.used, 157 * MEGA);
    keep(0, 156);
    assert_true(end_of_wait(1));
    assert_int_equal(t.budget.used, TCI_MCP_BUDGET);
    keep(0, 0);
    keep(1, 0);
}

static void test_small_ones_do_not_overtake_a_large_one(void **state)
{
    (void)state;
    assert_true(take(0, 200));
    begin_to_wait(1, 100);
    begin_to_wait(2, 1);
    assert_int_equal(t.budget.used, 200 * MEGA);
    keep(0, 0);
    assert_true(end_of_wait(1) && end_of_wait(2));
    assert_int_equal(t.budget.used, 101 * MEGA);
    keep(1, 0);
    keep(2, 0);
}

static void test_one_that_is_cancelled_leaves_the_line_to_those_behind_it(void **state)
{
    (void)state;
    assert_true(take(0, 200));
    begin_to_wait(1, 100);
    begin_to_wait(2, 100);
    begin_to_wait(3, 1);
    cancel(2);
    assert_false(end_of_wait(2));
    cancel(1);
    assert_false(end_of_wait(1));
    assert_true(end_of_wait(3));
    assert_int_equal(t.budget.used, 201 * MEGA);
    keep(0, 0);
    keep(3, 0);
}

static void test_more_than_all_is_given_to_one_who_is_alone(void **state)
{
    (void)state;
    assert_true(take(0, 300));
    begin_to_wait(1, 1);
    keep(0, 256);
    assert_true(is_last_in_line(1));
    keep(0, 0);
    assert_true(end_of_wait(1));
    keep(1, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_what_fits_is_given_at_once_and_comes_back),
        TEST(test_who_finds_no_room_waits_until_there_is_enough),
        TEST(test_small_ones_do_not_overtake_a_large_one),
        TEST(test_one_that_is_cancelled_leaves_the_line_to_those_behind_it),
        TEST(test_more_than_all_is_given_to_one_who_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
