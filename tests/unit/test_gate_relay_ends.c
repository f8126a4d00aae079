/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of how a relay ends, waits and is cancelled: ends, resets, back-pressure, a peer
 * that is gone, urgent data.
 */
#include "gate_relay_support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "gate/relay.h"

static int reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    (void)close(fd);
    return -1;
}

/* ---- ends ------------------------------------------------------------------------------------------- */

static void test_bytes_pass_both_ways(void **state)
{
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, NULL);
    say(rig.cage, "question");
    expect_text(&rig, rig.world, "question");
    say(rig.world, "answer!");
    expect_text(&rig, rig.cage, "answer!");
    (void)close(rig.cage);
    expect_end(&rig, rig.world);
    (void)close(rig.world);
    rig.cage = rig.world = -1;
    run_to_end(&rig, TCI_RELAY_CLOSED);
    assert_int_equal(rig.out, 8);
    assert_int_equal(rig.in, 7);
    assert_int_equal(rig.budget.bytes_out, 8);
    assert_int_equal(rig.budget.bytes_in, 7);
    tear_down(&rig);
}

static void test_each_side_may_end_first_and_still_be_answered(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct rig rig = { 0 };
        int ending, answering;
        set_up(&rig, NULL);
        ending = first ? rig.world : rig.cage;
        answering = first ? rig.cage : rig.world;
        say(ending, "last words");
        assert_int_equal(shutdown(ending, SHUT_WR), 0);
        expect_text(&rig, answering, "last words");
        expect_end(&rig, answering);
        assert_false(rig.over);
        assert_int_equal(tci_relay_is_drained(rig.relay), !first);
        assert_true(run_loop(rig.loop, &never, 30) < 3); /* an end is not reported for ever */
        say(answering, "much later");
        expect_text(&rig, ending, "much later");
        assert_false(rig.over);
        assert_int_equal(shutdown(answering, SHUT_WR), 0);
        expect_end(&rig, ending);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        tear_down(&rig);
    }
}

static void test_a_reset_of_one_side_is_a_reset_of_the_other(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct rig rig = { 0 };
        set_up(&rig, NULL);
        say(rig.cage, "hello");
        expect_text(&rig, rig.world, "hello");
        if (first)
            rig.world = reset(rig.world);
        else
            rig.cage = reset(rig.cage);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        expect_reset(&rig, first ? rig.cage : rig.world);
        tear_down(&rig);
    }
}

static void test_what_came_before_a_reset_is_delivered(void **state)
{
    struct rig rig = { 0 };
    (void)state;
    set_up(&rig, NULL);
    say(rig.world, "413 too large");
    rig.world = reset(rig.world);
    run_to_end(&rig, TCI_RELAY_CLOSED);
    expect_text(&rig, rig.cage, "413 too large");
    expect_reset(&rig, rig.cage);
    tear_down(&rig);
}

/* The end of a half-closed connection that is reset later: whoever still sends learns it. */
static void test_a_reset_after_an_end_is_passed_on(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct rig rig = { 0 };
        int *ending, answering;
        set_up(&rig, NULL);
        ending = first ? &rig.world : &rig.cage;
        answering = first ? rig.cage : rig.world;
        assert_int_equal(shutdown(*ending, SHUT_WR), 0);
        expect_end(&rig, answering);
        *ending = reset(*ending);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        /* Its own end was announced before: it learns it when it sends. */
        (void)send(answering, "x", 1, MSG_NOSIGNAL);
        assert_int_equal(send(answering, "x", 1, MSG_NOSIGNAL), -1);
        tear_down(&rig);
    }
}

/* The attack on whoever downloads: a connection that broke off looks like one that was finished. The
 * hard case: the relay learns of the break by writing, and what is left to be read ends without error. */
static void test_a_break_never_looks_like_an_end(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct rig rig = { 0 };
        char bytes[64];
        ssize_t n;
        set_up(&rig, NULL);
        say(rig.world, "half of an ans");
        say(rig.cage, "more and more"); /* unread by the world: its close is a reset */
        if (round % 2)
            (void)run_loop(rig.loop, &rig.over, 1);
        rig.world = reset(rig.world);
        say(rig.cage, "and more");
        do
            n = read_soon(&rig, rig.cage, bytes, sizeof bytes);
        while (n > 0);
        assert_int_equal(n, -1);
        assert_int_equal(errno, ECONNRESET);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        tear_down(&rig);
    }
}

/* A child of the host that was made by fork() has copies of everything. The peers must not wait for
 * its end. */
static void test_ends_do_not_wait_for_copies_of_descriptors(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct rig rig = { 0 };
        pid_t pid;
        set_up(&rig, NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)close(rig.cage);
            (void)close(rig.world);
            (void)pause();
            _exit(0);
        }
        if (way == 0) {
            rig.world = reset(rig.world);
            run_to_end(&rig, TCI_RELAY_CLOSED);
            expect_reset(&rig, rig.cage);
        } else if (way == 1) {
            (void)close(rig.world);
            rig.world = -1;
            expect_end(&rig, rig.cage);
        } else {
            tci_relay_cancel(rig.relay);
            rig.over = true;
            expect_reset(&rig, rig.cage);
            expect_reset(&rig, rig.world);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        tear_down(&rig);
    }
}

/* ---- back-pressure ----------------------------------------------------------------------------------- */

static void test_who_does_not_read_slows_the_sender_down(void **state)
{
    struct rig rig = { 0 };
    static char bytes[65536];
    size_t sent, got = 0;
    ssize_t n;
    (void)state;
    set_up(&rig, NULL);
    sent = fill(&rig, rig.cage);
    assert_true(sent > 1000000);
    assert_true(run_loop(rig.loop, &never, 100) < 5); /* nobody is busy meanwhile */
    assert_int_equal(shutdown(rig.cage, SHUT_WR), 0);
    assert_false(tci_relay_is_drained(rig.relay));
    while ((n = read_soon(&rig, rig.world, bytes, sizeof bytes)) > 0)
        got += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(got, sent);
    assert_true(tci_relay_is_drained(rig.relay));
    tear_down(&rig);
}

/* A side that hangs up while the other one is full is reported by the kernel again and again. */
static void test_a_reset_behind_a_full_side_keeps_nobody_busy(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct rig rig = { 0 };
        static char bytes[65536];
        int *sender, reader;
        ssize_t n;
        set_up(&rig, NULL);
        sender = first ? &rig.world : &rig.cage;
        reader = first ? rig.cage : rig.world;
        (void)fill(&rig, *sender);
        *sender = reset(*sender);
        assert_true(run_loop(rig.loop, &rig.over, 100) < 10);
        while ((n = read_soon(&rig, reader, bytes, sizeof bytes)) > 0)
            ;
        assert_int_equal(n, -1);
        assert_int_equal(errno, ECONNRESET);
        run_to_end(&rig, TCI_RELAY_CLOSED);
        tear_down(&rig);
    }
}

/* Both have ended; what one of them sent still waits for a slow reader: the socket of the other is
 * closed in both directions, which the kernel reports for ever, but nothing is lost. */
static void test_a_slow_reader_gets_everything_after_both_have_ended(void **state)
{
    struct rig rig = { 0 };
    static char bytes[65536];
    size_t sent, got = 0;
    ssize_t n;
    (void)state;
    set_up(&rig, NULL);
    sent = fill(&rig, rig.cage);
    assert_int_equal(shutdown(rig.world, SHUT_WR), 0);
    expect_end(&rig, rig.cage);
    (void)close(rig.cage);
    rig.cage = -1;
    assert_true(run_loop(rig.loop, &rig.over, 100) < 10);
    assert_false(rig.over);
    while ((n = read_soon(&rig, rig.world, bytes, sizeof bytes)) > 0)
        got += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(got, sent);
    run_to_end(&rig, TCI_RELAY_CLOSED);
    tear_down(&rig);
}

/* ---- the signal --------------------------------------------------------------------------------------- */

static void ignore_nothing(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    (void)sigaction(SIGPIPE, &action, NULL);
}

/* In a child, with the signal as programs have it by default: it would end the child. */
static int break_off_bulk(bool blocked_by_host)
{
    sigset_t pipe_only, pending, mask;
    bool kept = true;
    ignore_nothing();
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    if (blocked_by_host) {
        (void)pthread_sigmask(SIG_BLOCK, &pipe_only, NULL);
        (void)raise(SIGPIPE);
    }
    for (int round = 0; round < 40; round++) {
        struct rig rig = { 0 };
        struct sender sends;
        pthread_t sender;
        size_t got = 0;
        set_up(&rig, NULL);
        sends = (struct sender){ .fd = rig.cage, .total = 400000000, .seed = 3 };
        start(&sender, send_all, &sends);
        while (got < 2000000 + (size_t)round * 50000) {
            static char bytes[65536];
            ssize_t n = read_soon(&rig, rig.world, bytes, sizeof bytes);
            if (n <= 0)
                return 10;
            got += (size_t)n;
        }
        if (round % 2) /* then the reset comes as a broken pipe */
            (void)shutdown(rig.world, SHUT_WR);
        rig.world = reset(rig.world);
        (void)run_loop(rig.loop, &rig.over, PATIENCE_MS);
        if (!rig.over || rig.end != TCI_RELAY_CLOSED)
            return 11;
        (void)pthread_join(sender, NULL);
        if (sends.problem != ECONNRESET && sends.problem != EPIPE)
            return 12;
        tear_down(&rig);
    }
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    (void)sigpending(&pending);
    kept = sigismember(&pending, SIGPIPE) == blocked_by_host &&
           sigismember(&mask, SIGPIPE) == blocked_by_host;
    return kept ? 0 : 13;
}

static void test_a_peer_that_is_gone_does_not_end_the_host(void **state)
{
    (void)state;
    for (int blocked = 0; blocked < 2; blocked++) {
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(break_off_bulk(blocked));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* ---- urgent data --------------------------------------------------------------------------------------- */

/* The kernel does not splice over an urgent byte: a relay that goes on trying is busy for ever. */
static void test_urgent_bytes_keep_their_place_and_keep_nobody_busy(void **state)
{
    struct rig rig = { 0 };
    static char bytes[65536];
    struct sender getter;
    pthread_t thread;
    size_t sent = 0;
    bool over = false;
    (void)state;
    set_up(&rig, NULL);
    memset(bytes, 'n', sizeof bytes);
    getter = (struct sender){ .fd = rig.world };
    start(&thread, receive_all, &getter);
    while (sent < 8000000) {
        int urgent = sent > 2000000 && sent % 7 == 0 ? MSG_OOB : 0;
        ssize_t n = send(rig.cage, bytes, urgent ? 1 : sizeof bytes - 1, MSG_DONTWAIT | urgent);
        sent += n > 0 ? (size_t)n : 0;
        (void)run_loop(rig.loop, &over, 1);
    }
    assert_int_equal(send(rig.cage, "!", 1, MSG_OOB), 1);
    (void)run_loop(rig.loop, &over, 50);
    assert_true(run_loop(rig.loop, &over, 50) < 5);
    (void)close(rig.cage);
    rig.cage = -1;
    (void)run_loop(rig.loop, &rig.over, 100);
    (void)pthread_join(thread, NULL);
    assert_int_equal(getter.passed, sent + 1);
    tear_down(&rig);
}

/* ---- cancelling -------------------------------------------------------------------------------------------- */

static void test_relays_can_be_cancelled_at_any_moment(void **state)
{
    (void)state;
    for (int phase = 0; phase < 6; phase++) {
        struct tci_inspect inspect = { .script = ALWAYS_MORE };
        struct rig rig = { .budget = { .rate = phase == 4 ? 1 : 0 } };
        set_up(&rig, phase == 2 ? &inspect : NULL);
        switch (phase) {
        case 1: /* bytes under way */
        case 2: /* bytes held */
            say(rig.cage, "something");
            (void)run_loop(rig.loop, &never, 10);
            break;
        case 3: /* the world is full */
            (void)fill(&rig, rig.cage);
            break;
        case 4: /* waiting for the rate */
            (void)fill(&rig, rig.cage);
            break;
        case 5: /* half closed */
            (void)shutdown(rig.world, SHUT_WR);
            expect_end(&rig, rig.cage);
            break;
        default:
            break;
        }
        tci_relay_cancel(rig.relay);
        (void)run_loop(rig.loop, &rig.over, 5);
        assert_false(rig.over);
        assert_int_equal(inspect.freed, phase == 2);
        rig.over = true;
        tear_down(&rig);
    }
    tci_relay_cancel(NULL);
}

/* A cage whose program has ended: what it sent last is delivered, and ends well, although the world
 * reads it much later. */
static void test_a_drained_relay_is_cancelled_without_a_reset(void **state)
{
    static char bytes[400000];
    const int small = 4096;
    struct rig rig = { 0 };
    size_t got = 0;
    ssize_t n;
    (void)state;
    set_up(&rig, NULL);
    assert_int_equal(setsockopt(rig.world, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(send(rig.cage, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    (void)close(rig.cage);
    rig.cage = -1;
    for (int i = 0; i < PATIENCE_MS && !tci_relay_is_drained(rig.relay); i++)
        (void)run_loop(rig.loop, &rig.over, 1);
    assert_true(tci_relay_is_drained(rig.relay));
    assert_false(rig.over);
    tci_relay_cancel(rig.relay);
    rig.over = true;
    while ((n = recv(rig.world, bytes, sizeof bytes, 0)) > 0)
        got += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(got, sizeof bytes);
    tear_down(&rig);
}

static void test_what_cannot_start_closes_what_it_was_given(void **state)
{
    struct tci_inspect inspect = { .script = ALWAYS_MORE };
    struct tci_loop *loop = new_loop();
    struct tci_budget budget = { 0 };
    struct tci_relay *relay = NULL;
    int before = count_descriptors(), ends[2];
    struct tci_relay_options options = {
        .loop = loop, .budget = &budget, .inspect = &inspect, .done = relay_done
    };
    (void)state;
    connect_ends("127.0.0.1", ends);
    options.cage = ends[0];
    options.world = open("/dev/null", O_RDONLY | O_CLOEXEC); /* no epoll takes it */
    assert_int_equal(tci_relay_start(&options, &relay), -EPERM);
    assert_int_equal(inspect.freed, 1);
    (void)close(ends[1]);
    assert_int_equal(count_descriptors(), before);
    tci_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_pass_both_ways),
        cmocka_unit_test(test_each_side_may_end_first_and_still_be_answered),
        cmocka_unit_test(test_a_reset_of_one_side_is_a_reset_of_the_other),
        cmocka_unit_test(test_what_came_before_a_reset_is_delivered),
        cmocka_unit_test(test_a_reset_after_an_end_is_passed_on),
        cmocka_unit_test(test_a_break_never_looks_like_an_end),
        cmocka_unit_test(test_ends_do_not_wait_for_copies_of_descriptors),
        cmocka_unit_test(test_who_does_not_read_slows_the_sender_down),
        cmocka_unit_test(test_a_reset_behind_a_full_side_keeps_nobody_busy),
        cmocka_unit_test(test_a_slow_reader_gets_everything_after_both_have_ended),
        cmocka_unit_test(test_a_peer_that_is_gone_does_not_end_the_host),
        cmocka_unit_test(test_urgent_bytes_keep_their_place_and_keep_nobody_busy),
        cmocka_unit_test(test_relays_can_be_cancelled_at_any_moment),
        cmocka_unit_test(test_a_drained_relay_is_cancelled_without_a_reset),
        cmocka_unit_test(test_what_cannot_start_closes_what_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
