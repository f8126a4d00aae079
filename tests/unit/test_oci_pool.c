/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calls in containers that wait for them (oci_run_support.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include "oci_run_support.h"

/* ---- the pool ------------------------------------------------------------------------------------------ */

static void open_pool(uint64_t warm)
{
    struct tc_error error = { 0 };
    plan.spec.warm = warm;
    assert_int_equal(tci_oci_pool_open(&plan, &error), 0);
}

/* One that waits with its hello. */
static struct tci_oci_cage *take_warm(void)
{
    const uint64_t until = tci_clock_us() + patience_us;
    struct tci_oci_cage *cage = NULL;
    tci_oci_count_call(&plan, 1);
    while (!(cage = tci_oci_pool_take(plan.pool)) && tci_clock_us() < until)
        (void)usleep(1000);
    assert_non_null(cage);
    return cage;
}

static void test_pool_is_empty_before_the_first_call_and_is_filled_by_it(void **state)
{
    (void)state;
    open_pool(2);
    (void)usleep(20000);
    assert_int_equal(made, 0);
    assert_string_equal(call_script("echo cold").text, "cold\n");
    wait_until(&made, 3);
    wait_until(&ended, 1);
    assert_int_equal(alive, 2);
}

static void test_every_warm_container_is_used_once(void **state)
{
    struct tci_oci_cage *first, *second;
    char id[TCI_SANDBOX_ID_MAX];
    (void)state;
    open_pool(1);
    first = take_warm();
    assert_true(first->hello);
    memcpy(id, first->id, sizeof id);
    second = take_warm();
    assert_string_not_equal(second->id, id);
    tci_oci_cage_free(first);
    tci_oci_cage_free(second);
    assert_string_equal(call_script("echo warm").text, "warm\n");
}

static void test_warm_container_that_dies_is_replaced_and_not_given_out(void **state)
{
    siginfo_t info;
    pid_t pid;
    (void)state;
    open_pool(1);
    tci_oci_cage_free(take_warm());
    wait_until(&made, 2);
    (void)usleep(50000); /* its hello */
    pid = atomic_load(&last_pid);
    (void)kill(pid, SIGKILL);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* or the pool was faster */
    assert_null(tci_oci_pool_take(plan.pool));
    wait_until(&ended, 2);
    wait_until(&made, 3); /* after a rest */
}

/* It rests for a second, then for two: without that it would have tried all the time. */
static void test_pool_rests_after_failures(void **state)
{
    const uint64_t begin = tci_clock_us();
    int tries;
    (void)state;
    mode = FAILS;
    open_pool(4);
    assert_null(tci_oci_pool_take(plan.pool));
    while (atomic_load(&ended) < 2 && tci_clock_us() < begin + patience_us)
        (void)usleep(1000);
    assert_true(atomic_load(&ended) >= 2);
    (void)usleep(300000);
    tries = atomic_load(&made);
    assert_true(tries <= 4 + 4 * (int)((tci_clock_us() - begin) / 1000000));
    mode = NORMAL;
    assert_string_equal(call_script("echo still").text, "still\n"); /* calls do without it */
}

static void test_closing_the_pool_ends_what_it_has(void **state)
{
    struct tci_oci_pool *pool;
    (void)state;
    open_pool(3);
    tci_oci_cage_free(take_warm());
    pool = plan.pool;
    plan.pool = NULL;
    tci_oci_pool_close(pool);
    assert_int_equal(alive, 0);
}

static void test_there_are_never_more_containers_than_calls_and_warm_ones(void **state)
{
    (void)state;
    mode = LINGERS;
    for (int i = 0; i < 5; i++)
        assert_string_equal(call_script("echo cold").text, "cold\n");
    assert_int_equal(most, 1);
    open_pool(2);
    for (int i = 0; i < 10; i++)
        assert_string_equal(call_script("echo warm").text, "warm\n");
    wait_until(&alive, 2);
    assert_true(most <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pool_is_empty_before_the_first_call_and_is_filled_by_it),
        TEST(test_every_warm_container_is_used_once),
        TEST(test_warm_container_that_dies_is_replaced_and_not_given_out),
        TEST(test_pool_rests_after_failures),
        TEST(test_closing_the_pool_ends_what_it_has),
        TEST(test_there_are_never_more_containers_than_calls_and_warm_ones),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
