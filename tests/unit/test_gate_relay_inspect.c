/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of relays with an inspection: what is held, passed and refused. */
#include "gate_relay_support.h"

#include <pthread.h>
#include "gate/relay.h"

static void expect_nothing(struct rig *rig, int fd)
{
    char byte;
    (void)run_loop(rig->loop, &never, 30);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* ---- the inspection -------------------------------------------------------------------------------------- */

static void test_held_bytes_go_out_when_the_inspection_is_content(void **state)
{
    struct tci_inspect inspect = { .script = OPAQUE_AFTER_LINE };
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, &inspect);
    say(rig.world, "220 the server speaks first");
    expect_text(&rig, rig.cage, "220 the server speaks first");
    say(rig.cage, "hel");
    expect_nothing(&rig, rig.world);
    say(rig.cage, "lo");
    expect_nothing(&rig, rig.world);
    say(rig.cage, "\nrest");
    expect_text(&rig, rig.world, "hello\nrest");
    say(rig.cage, "unseen");
    expect_text(&rig, rig.world, "unseen");
    assert_int_equal(inspect.fed, 3);
    (void)close(rig.cage);
    rig.cage = -1;
    expect_end(&rig, rig.world);
    assert_int_equal(inspect.freed, 0);
    tci_relay_cancel(rig.relay);
    rig.over = true;
    assert_int_equal(inspect.freed, 1);
    tear_down(&rig);
}

static void test_nothing_goes_out_of_what_the_inspection_refuses(void **state)
{
    struct tci_inspect inspect = { .script = REFUSE_AFTER_LINE };
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, &inspect);
    say(rig.cage, "secret");
    expect_nothing(&rig, rig.world);
    say(rig.cage, "s\nand more");
    run_to_end(&rig, TCI_RELAY_REFUSED);
    expect_reset(&rig, rig.world);
    expect_reset(&rig, rig.cage);
    assert_int_equal(rig.out, 0);
    assert_int_equal(rig.budget.bytes_out, 0);
    assert_int_equal(inspect.freed, 1);
    tear_down(&rig);
}

static void test_what_was_passed_before_a_refusal_stays_passed(void **state)
{
    struct tci_inspect inspect = { .script = LINES };
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, &inspect);
    say(rig.cage, "one\ntwo\nthr");
    expect_text(&rig, rig.world, "one\ntwo\n");
    say(rig.cage, "ee\n");
    expect_text(&rig, rig.world, "three\n");
    say(rig.cage, "four\nX marks it\nfive\n");
    run_to_end(&rig, TCI_RELAY_REFUSED);
    expect_text(&rig, rig.world, "four\n");
    expect_reset(&rig, rig.world);
    assert_int_equal(rig.out, 19);
    tear_down(&rig);
}

/* Each of these would hold bytes for ever. */
static void test_an_inspection_that_cannot_decide_refuses(void **state)
{
    static const enum script scripts[] = { ALWAYS_MORE, PASS_NOTHING };
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct tci_inspect inspect = { .script = scripts[i & 1] };
        struct rig rig = { 0 };
        char byte;
        set_up(&rig, &inspect);
        if (i < 2) {
            say(rig.cage, "unfinished");
            expect_nothing(&rig, rig.world);
            assert_int_equal(shutdown(rig.cage, SHUT_WR), 0);
        } else {
            (void)fill(&rig, rig.cage);
        }
        run_to_end(&rig, TCI_RELAY_REFUSED);
        assert_int_equal(inspect.fed_at_end > 0, i < 2);
        assert_true(inspect.held_most <= TCI_INSPECT_HOLD_MAX);
        assert_true(i < 2 || inspect.held_most == TCI_INSPECT_HOLD_MAX);
        assert_int_equal(recv(rig.world, &byte, 1, 0), -1);
        assert_int_equal(errno, ECONNRESET);
        tear_down(&rig);
    }
}

static void test_the_end_is_shown_to_the_inspection_first(void **state)
{
    struct tci_inspect inspect = { .script = MORE_BUT_ALL_BUT_5 };
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, &inspect);
    say(rig.cage, "1234567890");
    expect_text(&rig, rig.world, "12345");
    expect_nothing(&rig, rig.world);
    assert_int_equal(shutdown(rig.cage, SHUT_WR), 0);
    expect_text(&rig, rig.world, "67890");
    expect_end(&rig, rig.world);
    assert_int_equal(inspect.fed_at_end, 1);
    say(rig.world, "answer");
    expect_text(&rig, rig.cage, "answer");
    tear_down(&rig);
}

/* Nothing was said, and nothing is: an end is no reason for a refusal. */
static void test_an_end_without_a_word_is_passed_on(void **state)
{
    struct tci_inspect inspect = { .script = ALWAYS_MORE };
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, &inspect);
    assert_int_equal(shutdown(rig.cage, SHUT_WR), 0);
    expect_end(&rig, rig.world);
    assert_int_equal(inspect.fed, 0);
    tear_down(&rig);
}

static void test_much_passes_through_an_inspection_unchanged(void **state)
{
    static const enum script scripts[] = { MORE_BUT_ALL_BUT_5, OPAQUE_AFTER_LINE };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tci_inspect inspect = { .script = scripts[i] };
        struct rig rig = { 0 };
        struct sender sends, gets;
        pthread_t threads[2];
        set_up(&rig, &inspect);
        sends = (struct sender){ .fd = rig.cage, .total = 20000000, .seed = 8 };
        gets = (struct sender){ .fd = rig.world };
        start(&threads[0], send_all, &sends);
        start(&threads[1], receive_all, &gets);
        while (!tci_relay_is_drained(rig.relay))
            (void)run_loop(rig.loop, &rig.over, 5);
        assert_int_equal(shutdown(rig.world, SHUT_WR), 0);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        for (int t = 0; t < 2; t++)
            (void)pthread_join(threads[t], NULL);
        assert_string_equal(gets.hash, sends.hash);
        tear_down(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_bytes_go_out_when_the_inspection_is_content),
        cmocka_unit_test(test_nothing_goes_out_of_what_the_inspection_refuses),
        cmocka_unit_test(test_what_was_passed_before_a_refusal_stays_passed),
        cmocka_unit_test(test_an_inspection_that_cannot_decide_refuses),
        cmocka_unit_test(test_the_end_is_shown_to_the_inspection_first),
        cmocka_unit_test(test_an_end_without_a_word_is_passed_on),
        cmocka_unit_test(test_much_passes_through_an_inspection_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
