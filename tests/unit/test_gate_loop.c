/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate's loop: sources and timers. */
#include "gate_support.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static const bool never;

struct bell {
    struct tci_loop *loop;
    struct tci_source source;
    struct tci_timer timer;
    struct bell *other;
    unsigned rang, due;
    uint64_t again;
};

static void remove_other(struct tci_source *source, uint32_t events)
{
    struct bell *bell = source->data;
    (void)events;
    bell->rang++;
    tci_loop_remove(bell->loop, &bell->other->source);
}

static void test_a_source_that_another_one_removed_is_not_called(void **state)
{
    struct tci_loop *loop = new_loop();
    struct bell bells[2] = { { 0 } };
    int fds[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        bells[i].loop = loop;
        bells[i].other = &bells[!i];
        bells[i].source.ready = remove_other;
        bells[i].source.data = &bells[i];
        fds[i] = eventfd(1, EFD_CLOEXEC);
        assert_int_equal(tci_loop_add(loop, &bells[i].source, fds[i], EPOLLIN), 0);
    }
    tci_loop_step(loop);
    assert_int_equal(bells[0].rang + bells[1].rang, 1);
    for (int i = 0; i < 2; i++) {
        tci_loop_remove(loop, &bells[i].source);
        tci_loop_remove(loop, &bells[i].source); /* harmless */
        assert_int_equal(bells[i].source.fd, -1);
        (void)close(fds[i]);
    }
    tci_loop_step(loop);
    assert_int_equal(bells[0].rang + bells[1].rang, 1);
    tci_loop_free(loop);
}

/* A copy of the descriptor in another process keeps the socket alive, but not in the loop. */
static void test_a_removed_source_is_silent_although_its_descriptor_lives_on(void **state)
{
    struct tci_loop *loop = new_loop();
    struct bell bell = { .loop = loop };
    struct pollfd p = { .fd = tci_loop_fd(loop), .events = POLLIN };
    int fd = eventfd(1, EFD_CLOEXEC), copy = dup(fd);
    (void)state;
    bell.other = &bell;
    bell.source.ready = remove_other;
    bell.source.data = &bell;
    assert_int_equal(tci_loop_add(loop, &bell.source, fd, EPOLLIN), 0);
    assert_int_equal(poll(&p, 1, 0), 1);
    tci_loop_remove(loop, &bell.source);
    (void)close(fd);
    assert_int_equal(poll(&p, 1, 0), 0);
    tci_loop_step(loop);
    assert_int_equal(bell.rang, 0);
    (void)close(copy);
    tci_loop_free(loop);
}

static void count_due(struct tci_timer *timer)
{
    struct bell *bell = timer->data;
    bell->due++;
    if (bell->other)
        tci_loop_set_timer(bell->loop, &bell->other->timer, 0);
    if (bell->again)
        tci_loop_set_timer(bell->loop, timer, bell->again);
}

static void test_timers_come_in_order_and_never_early(void **state)
{
    enum { count = 20 };
    struct tci_loop *loop = new_loop();
    struct bell bells[count] = { { 0 } };
    uint64_t begin = tci_clock_us();
    (void)state;
    for (int i = count - 1; i >= 0; i--) {
        bells[i].loop = loop;
        bells[i].timer.due = count_due;
        bells[i].timer.data = &bells[i];
        tci_loop_set_timer(loop, &bells[i].timer, begin + 3600000000u);
        tci_loop_set_timer(loop, &bells[i].timer, begin + (uint64_t)(i + 1) * 2000); /* moves */
    }
    tci_loop_set_timer(loop, &bells[7].timer, 0);
    for (int i = 0; i < count; i++) {
        while (i != 7 && !bells[i].due) {
            unsigned steps = run_loop(loop, &never, 1);
            assert_true(steps < 10);
        }
        if (i != 7)
            assert_true(tci_clock_us() >= begin + (uint64_t)(i + 1) * 2000);
        for (int later = i + 1; later < count; later++)
            assert_true(!bells[later].due ||
                        tci_clock_us() >= begin + (uint64_t)(later + 1) * 2000);
    }
    assert_int_equal(bells[7].due, 0);
    (void)run_loop(loop, &never, 5);
    for (int i = 0; i < count; i++)
        assert_int_equal(bells[i].due, i != 7);
    tci_loop_free(loop);
}

static void test_a_timer_that_another_one_took_out_is_not_called(void **state)
{
    struct tci_loop *loop = new_loop();
    struct bell bells[2] = { { 0 } };
    (void)state;
    for (int i = 0; i < 2; i++) {
        bells[i] = (struct bell){ .loop = loop, .other = &bells[!i], .timer.due = count_due };
        bells[i].timer.data = &bells[i];
        tci_loop_set_timer(loop, &bells[i].timer, 1);
    }
    (void)run_loop(loop, &never, 100);
    assert_int_equal(bells[0].due, 1);
    assert_int_equal(bells[1].due, 0);
    tci_loop_free(loop);
}

static void test_a_step_ends_although_a_timer_is_always_due(void **state)
{
    struct tci_loop *loop = new_loop();
    struct bell bell = { .loop = loop, .timer.due = count_due, .again = 1 };
    (void)state;
    bell.timer.data = &bell;
    tci_loop_set_timer(loop, &bell.timer, 1);
    assert_true(run_loop(loop, &never, 200) > 1);
    assert_true(bell.due > 1);
    tci_loop_free(loop);
}

static void test_a_loop_without_work_is_not_readable(void **state)
{
    struct tci_loop *loop = new_loop();
    struct bell bell = { .loop = loop, .timer.due = count_due };
    (void)state;
    bell.timer.data = &bell;
    tci_loop_set_timer(loop, &bell.timer, tci_clock_us() + 1000);
    assert_true(run_loop(loop, &never, 200) <= 2);
    assert_int_equal(bell.due, 1);
    tci_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_source_that_another_one_removed_is_not_called),
        cmocka_unit_test(test_a_removed_source_is_silent_although_its_descriptor_lives_on),
        cmocka_unit_test(test_timers_come_in_order_and_never_early),
        cmocka_unit_test(test_a_timer_that_another_one_took_out_is_not_called),
        cmocka_unit_test(test_a_step_ends_although_a_timer_is_always_due),
        cmocka_unit_test(test_a_loop_without_work_is_not_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
