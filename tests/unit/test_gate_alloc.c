/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate's loop, dials and relays when memory runs out: each allocation fails in turn, and
 * nothing is lost but the connection. */
#include "gate_support.h"
#include "alloc_support.h"

#include "gate/dial.h"
#include "gate/relay.h"

/* Holds everything back, so that the relay has to keep it. */
struct tci_inspect {
    int unused;
};

void tci_inspect_free(struct tci_inspect *inspect)
{
    free(inspect);
}

enum tci_inspect_says tci_inspect_feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                       size_t length, bool at_end, size_t *ret_pass)
{
    (void)inspect, (void)bytes, (void)at_end;
    *ret_pass = length / 2;
    return TCI_INSPECT_MORE;
}

struct ended {
    bool over;
    enum tci_relay_end end;
};

static void relay_done(void *data, enum tci_relay_end end, uint64_t in, uint64_t out)
{
    struct ended *ended = data;
    (void)in, (void)out;
    ended->over = true;
    ended->end = end;
}

/* The world does not read: bytes wait in the relay. */
static void relay_much(struct tci_loop *loop, struct tci_budget *budget, const int ends[4],
                       struct tci_inspect *inspect)
{
    static const char bytes[65536];
    struct ended ended = { 0 };
    struct tci_relay *relay = NULL;
    struct tci_relay_options options = { .loop = loop,
                                         .budget = budget,
                                         .inspect = inspect,
                                         .cage = ends[1],
                                         .world = ends[2],
                                         .done = relay_done,
                                         .data = &ended };
    if (tci_relay_start(&options, &relay) < 0)
        return;
    for (int i = 0; i < 300 && !ended.over; i++) {
        (void)send(ends[0], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)run_loop(loop, &ended.over, 0);
        tci_loop_step(loop);
    }
    if (!ended.over)
        tci_relay_cancel(relay);
    else
        assert_int_equal(ended.end, TCI_RELAY_BROKEN);
}

static void relay_round(bool inspected)
{
    struct tci_budget budget = { 0 };
    struct tci_inspect *inspect = inspected ? malloc(sizeof *inspect) : NULL;
    struct tci_loop *loop = NULL;
    int ends[4];
    connect_ends("127.0.0.1", ends);
    connect_ends("127.0.0.1", ends + 2);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[2], F_SETFL, O_NONBLOCK);
    if ((inspected && !inspect) || tci_loop_new(&loop, NULL) < 0) {
        (void)close(ends[1]);
        (void)close(ends[2]);
        free(inspect);
    } else {
        relay_much(loop, &budget, ends, inspect);
    }
    tci_loop_free(loop);
    (void)close(ends[0]);
    (void)close(ends[3]);
}

static void dial_done(void *data, int fd, const struct tci_address *address, int problem)
{
    (void)address, (void)problem;
    *(bool *)data = true;
    (void)close(fd);
}

static void dial_round(bool unused)
{
    struct tci_address address = address_of("127.0.0.1");
    struct tci_loop *loop = NULL;
    struct tci_dial *dial = NULL;
    bool over = false;
    (void)unused;
    if (tci_loop_new(&loop, NULL) == 0 &&
        tci_dial_start(loop, &address, 1, 1, dial_done, &over, &dial) == 0) {
        (void)run_loop(loop, &over, PATIENCE_MS);
        assert_true(over);
    }
    tci_loop_free(loop);
}

/* Every allocation of a round fails once; the last round has none that could. */
static void fail_each(void (*round)(bool), bool kind, long least)
{
    int before = count_descriptors();
    (void)least;
    round(kind); /* what the C library keeps for itself */
    for (long i = 1;; i++) {
        long live = allocations.live;
        begin_round(i);
        round(kind);
        allocations.fail_at = 0;
        assert_int_equal(allocations.live, live);
        assert_int_equal(count_descriptors(), before);
        if (!allocations.failed) {
#ifndef SANITIZED
            assert_true(i > least);
#endif
            break;
        }
    }
}

static void test_a_relay_without_memory_ends_and_leaves_nothing(void **state)
{
    (void)state;
    fail_each(relay_round, false, 4);
    fail_each(relay_round, true, 5);
}

static void test_a_dial_without_memory_does_not_start(void **state)
{
    (void)state;
    fail_each(dial_round, false, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_relay_without_memory_ends_and_leaves_nothing),
        cmocka_unit_test(test_a_dial_without_memory_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
