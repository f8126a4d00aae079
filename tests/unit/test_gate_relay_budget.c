/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of relays that carry much: many bytes, many relays at once, the budget and the rate.
 */
#include "gate_relay_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "gate/relay.h"

/* ---- much, and many ---------------------------------------------------------------------------------- */

static void test_a_hundred_megabytes_each_way_arrive_as_they_were_sent(void **state)
{
    enum { total = 100 * 1000 * 1000 };
    struct rig rig = { 0 };
    struct sender sends[2], gets[2];
    pthread_t threads[4];
    (void)state;
    set_up(&rig, NULL);
    sends[0] = (struct sender){ .fd = rig.cage, .total = total, .seed = 1 };
    sends[1] = (struct sender){ .fd = rig.world, .total = total, .seed = 2 };
    gets[0] = (struct sender){ .fd = rig.world };
    gets[1] = (struct sender){ .fd = rig.cage };
    for (int i = 0; i < 2; i++) {
        start(&threads[i], send_all, &sends[i]);
        start(&threads[2 + i], receive_all, &gets[i]);
    }
    run_to_end(&rig, TCI_RELAY_CLOSED);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gets[i].passed, total);
        assert_string_equal(gets[i].hash, sends[i].hash);
    }
    assert_int_equal(rig.out, total);
    assert_int_equal(rig.in, total);
    tear_down(&rig);
}

struct crowd {
    struct rig rigs[200];
    atomic_uint errors;
};

/* Each program at the cage's ends says something, in turns, and waits for its echo. */
static void *chat(void *data)
{
    struct crowd *crowd = data;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 200; i++) {
            char text[64];
            int length = snprintf(text, sizeof text, "round %d of connection %d", round, i);
            if (send(crowd->rigs[i].cage, text, (size_t)length, MSG_NOSIGNAL) != length)
                (void)atomic_fetch_add(&crowd->errors, 1);
        }
        for (int i = 0; i < 200; i++) {
            char text[64], bytes[64] = "";
            int length = snprintf(text, sizeof text, "round %d of connection %d", round, i);
            if (recv(crowd->rigs[i].cage, bytes, (size_t)length, MSG_WAITALL) != length ||
                memcmp(bytes, text, (size_t)length) != 0)
                (void)atomic_fetch_add(&crowd->errors, 1);
        }
    }
    for (int i = 0; i < 200; i++)
        (void)shutdown(crowd->rigs[i].cage, SHUT_WR);
    return NULL;
}

static void *echo_all(void *data)
{
    struct crowd *crowd = data;
    struct pollfd polled[200];
    char bytes[4096];
    int open = 200;
    for (int i = 0; i < 200; i++)
        polled[i] = (struct pollfd){ .fd = crowd->rigs[i].world, .events = POLLIN };
    while (open && poll(polled, 200, PATIENCE_MS) > 0) {
        for (int i = 0; i < 200; i++) {
            ssize_t n;
            if (!polled[i].revents)
                continue;
            n = recv(polled[i].fd, bytes, sizeof bytes, 0);
            if (n > 0 && send(polled[i].fd, bytes, (size_t)n, MSG_NOSIGNAL) == n)
                continue;
            (void)shutdown(polled[i].fd, SHUT_WR);
            polled[i].fd = -1;
            open--;
        }
    }
    return NULL;
}

static void test_two_hundred_relays_at_once_need_two_descriptors_each(void **state)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    struct tci_budget budget = { 0 };
    struct tci_loop *loop;
    pthread_t threads[2];
    int before = count_descriptors();
    (void)state;
    assert_non_null(crowd);
    loop = new_loop();
    for (int i = 0; i < 200; i++) {
        crowd->rigs[i].loop = loop;
        set_up_with(&crowd->rigs[i], &budget, NULL);
    }
    assert_int_equal(count_descriptors(), before + 2 + 200 * 4); /* two are the programs' */
    assert_int_equal(pthread_create(&threads[0], NULL, chat, crowd), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, echo_all, crowd), 0);
    for (int i = 0; i < 200; i++) {
        (void)run_loop(loop, &crowd->rigs[i].over, PATIENCE_MS);
        assert_true(crowd->rigs[i].over);
        assert_int_equal(crowd->rigs[i].end, TCI_RELAY_CLOSED);
        assert_int_equal(crowd->rigs[i].in, crowd->rigs[i].out);
    }
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd->errors), 0);
    for (int i = 0; i < 200; i++) {
        (void)close(crowd->rigs[i].cage);
        (void)close(crowd->rigs[i].world);
    }
    tci_loop_free(loop);
    free(crowd);
    assert_int_equal(count_descriptors(), before);
}

/* ---- the budget ---------------------------------------------------------------------------------------- */

static void check_limit(size_t limit, bool inward, bool over, bool inspected)
{
    struct tci_inspect inspect = { .script = MORE_BUT_ALL_BUT_5 };
    struct rig rig = { 0 };
    struct sender sends, gets;
    pthread_t threads[2];
    if (inward)
        rig.budget.bytes_in_max = limit;
    else
        rig.budget.bytes_out_max = limit;
    set_up(&rig, inspected ? &inspect : NULL);
    sends =
        (struct sender){ .fd = inward ? rig.world : rig.cage, .total = limit + over, .seed = 4 };
    gets = (struct sender){ .fd = inward ? rig.cage : rig.world };
    start(&threads[0], send_all, &sends);
    start(&threads[1], receive_all, &gets);
    if (!over) {
        while (!rig.over &&
               !(inward ? rig.budget.bytes_in == limit : tci_relay_is_drained(rig.relay)))
            (void)run_loop(rig.loop, &rig.over, 5);
        (void)shutdown(inward ? rig.cage : rig.world, SHUT_WR);
    }
    run_to_end(&rig, over ? TCI_RELAY_LIMIT : TCI_RELAY_CLOSED);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(inward ? rig.budget.bytes_in : rig.budget.bytes_out, limit);
    assert_int_equal(inward ? rig.in : rig.out, limit);
    assert_true(gets.passed <= limit);
    if (over) {
        assert_int_equal(gets.problem, ECONNRESET);
    } else {
        assert_int_equal(gets.passed, limit);
        assert_string_equal(gets.hash, sends.hash);
    }
    tear_down(&rig);
}

static void test_not_a_byte_more_than_the_budget_passes(void **state)
{
    static const size_t limits[] = { 1, 2, 1000, 65535, 65536, 65537, 1000000, 7654321 };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int kind = 0; kind < 6; kind++)
            check_limit(limits[i], kind & 1, kind & 2, kind >= 4);
}

static void test_connections_share_one_budget(void **state)
{
    struct rig first = { 0 }, second = { 0 };
    (void)state;
    first.budget.bytes_out_max = 10;
    set_up(&first, NULL);
    second.loop = first.loop;
    set_up_with(&second, &first.budget, NULL);
    say(first.cage, "123456");
    expect_text(&first, first.world, "123456");
    say(second.cage, "7890123");
    (void)run_loop(first.loop, &second.over, PATIENCE_MS);
    assert_true(second.over);
    assert_int_equal(second.end, TCI_RELAY_LIMIT);
    assert_int_equal(second.out, 4);
    expect_text(&first, second.world, "7890");
    expect_reset(&first, second.world);
    /* The first one has not been harmed: it may be answered. */
    say(first.world, "thanks");
    expect_text(&first, first.cage, "thanks");
    say(first.cage, "x");
    run_to_end(&first, TCI_RELAY_LIMIT);
    expect_reset(&first, first.world);
    (void)close(second.cage);
    (void)close(second.world);
    tear_down(&first);
}

/* Never too fast. Too slow by more than a fifth: false, which a machine that is busy with other things
 * may cause. */
static bool keeps_rate(uint64_t rate, size_t total, bool both, bool inspected)
{
    struct tci_inspect inspect = { .script = MORE_BUT_ALL_BUT_5 };
    uint64_t burst = rate / 10 > 65536 ? rate / 10 : 65536, took;
    uint64_t wanted = ((both ? 2 : 1) * total - burst) * 1000000 / rate;
    struct rig rig = { .budget = { .rate = rate } };
    struct sender sends[2], gets[2];
    pthread_t threads[4];
    unsigned steps;
    set_up(&rig, inspected ? &inspect : NULL);
    sends[0] = (struct sender){ .fd = rig.cage, .total = total, .seed = 5 };
    sends[1] = (struct sender){ .fd = rig.world, .total = both ? total : 0, .seed = 6 };
    gets[0] = (struct sender){ .fd = rig.world };
    gets[1] = (struct sender){ .fd = rig.cage };
    took = tci_clock_us();
    for (int i = 0; i < 2; i++) {
        start(&threads[i], send_all, &sends[i]);
        start(&threads[2 + i], receive_all, &gets[i]);
    }
    steps = run_loop(rig.loop, &rig.over, PATIENCE_MS);
    took = tci_clock_us() - took;
    assert_true(rig.over);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    assert_string_equal(gets[0].hash, sends[0].hash);
    assert_string_equal(gets[1].hash, sends[1].hash);
    assert_true(took >= wanted * 8 / 10);
    assert_true(steps < wanted / 1000 + 100); /* waits for the clock, and not by asking it */
    tear_down(&rig);
    return took <= wanted * 12 / 10;
}

static void check_rate(uint64_t rate, size_t total, bool both, bool inspected)
{
    bool kept = false;
    for (int i = 0; !kept && i < 10; i++)
        kept = keeps_rate(rate, total, both, inspected);
    assert_true(kept);
}

static void test_the_rate_is_kept(void **state)
{
    (void)state;
    check_rate(100000, 165536, false, false); /* slow: a second after the burst */
    check_rate(3000000, 3000000, false, false);
    check_rate(3000000, 3000000, false, true);
    check_rate(20000000, 10000000, true, false);
}

static void test_relays_that_share_a_rate_all_get_on(void **state)
{
    enum { count = 8 };
    struct rig rigs[count] = { { 0 } };
    struct tci_budget budget = { .rate = 4000000 };
    struct sender sends[count], gets[count];
    pthread_t threads[2 * count];
    uint64_t least = UINT64_MAX, most = 0;
    int before = count_descriptors();
    struct tci_loop *loop = new_loop();
    (void)state;
    for (int i = 0; i < count; i++) {
        rigs[i].loop = loop;
        set_up_with(&rigs[i], &budget, NULL);
        sends[i] = (struct sender){ .fd = rigs[i].cage, .total = 100000000, .seed = 7 };
        gets[i] = (struct sender){ .fd = rigs[i].world };
        start(&threads[2 * i], send_all, &sends[i]);
        start(&threads[2 * i + 1], receive_all, &gets[i]);
    }
    (void)run_loop(loop, &never, 2000);
    for (int i = 0; i < count; i++) {
        uint64_t in, out;
        tci_relay_bytes(rigs[i].relay, &in, &out);
        assert_int_equal(in, 0);
        least = out < least ? out : least;
        most = out > most ? out : most;
        tci_relay_cancel(rigs[i].relay);
    }
    for (int i = 0; i < 2 * count; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++) {
        (void)close(rigs[i].cage);
        (void)close(rigs[i].world);
    }
    assert_in_range(budget.bytes_out, 8400000 * 8 / 10, 8400000 * 12 / 10);
    assert_true(least > most / 2);
    tci_loop_free(loop);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hundred_megabytes_each_way_arrive_as_they_were_sent),
        cmocka_unit_test(test_two_hundred_relays_at_once_need_two_descriptors_each),
        cmocka_unit_test(test_not_a_byte_more_than_the_budget_passes),
        cmocka_unit_test(test_connections_share_one_budget),
        cmocka_unit_test(test_the_rate_is_kept),
        cmocka_unit_test(test_relays_that_share_a_rate_all_get_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
