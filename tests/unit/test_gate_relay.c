/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: relays between real sockets on loopback, with threads as the programs at both ends. The
 * inspection is one of this file, which does as it is told. */
#include "gate_support.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/sha256.h"
#include "gate/relay.h"

static const bool never;

/* ---- an inspection that does as it is told --------------------------------------------------------- */

enum script {
    ALWAYS_MORE,
    OPAQUE_AFTER_LINE, /* MORE until a line has ended, then OPAQUE */
    REFUSE_AFTER_LINE,
    LINES,              /* PASS line by line; a line that begins with "X" is REFUSED */
    PASS_NOTHING,       /* "PASS", and then not a byte */
    MORE_BUT_ALL_BUT_5, /* MORE, and lets go all but the last five bytes */
};

struct tci_inspect {
    enum script script;
    unsigned fed, freed, fed_at_end;
    size_t held_most;
    bool over;
};

void tci_inspect_free(struct tci_inspect *inspect)
{
    if (inspect)
        inspect->freed++;
}

enum tci_inspect_says tci_inspect_feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                       size_t length, bool at_end, size_t *ret_pass)
{
    const uint8_t *line_end = memchr(bytes, '\n', length);
    assert_false(inspect->over);
    assert_true(length > 0 && length <= TCI_INSPECT_HOLD_MAX);
    inspect->fed++;
    inspect->fed_at_end += at_end;
    inspect->held_most = length > inspect->held_most ? length : inspect->held_most;
    *ret_pass = 0;
    switch (inspect->script) {
    case OPAQUE_AFTER_LINE:
        inspect->over = line_end != NULL;
        return line_end ? TCI_INSPECT_OPAQUE : TCI_INSPECT_MORE;
    case REFUSE_AFTER_LINE:
        inspect->over = line_end != NULL;
        return line_end ? TCI_INSPECT_REFUSED : TCI_INSPECT_MORE;
    case LINES:
        if (bytes[0] == 'X')
            return TCI_INSPECT_REFUSED;
        if (!line_end)
            return TCI_INSPECT_MORE;
        *ret_pass = (size_t)(line_end - bytes) + 1;
        return TCI_INSPECT_PASS;
    case PASS_NOTHING:
        return TCI_INSPECT_PASS;
    case MORE_BUT_ALL_BUT_5:
        *ret_pass = at_end ? length : length > 5 ? length - 5 : 0;
        return TCI_INSPECT_MORE;
    case ALWAYS_MORE:
    default:
        return TCI_INSPECT_MORE;
    }
}

/* ---- one relay and its ends ------------------------------------------------------------------------ */

struct rig {
    struct tci_loop *loop;
    struct tci_budget budget;
    struct tci_relay *relay;
    int cage, world; /* the programs' ends; the test's */
    bool over;
    enum tci_relay_end end;
    uint64_t in, out;
    int descriptors;
};

static void relay_done(void *data, enum tci_relay_end end, uint64_t in, uint64_t out)
{
    struct rig *rig = data;
    assert_false(rig->over);
    rig->over = true;
    rig->end = end;
    rig->in = in;
    rig->out = out;
    tci_relay_cancel(rig->relay); /* harmless from here */
}

static void set_up_with(struct rig *rig, struct tci_budget *budget, struct tci_inspect *inspect)
{
    struct tci_relay_options options = {
        .loop = rig->loop, .budget = budget, .inspect = inspect, .done = relay_done, .data = rig
    };
    int cage[2], world[2];
    connect_ends("127.0.0.1", cage);
    connect_ends("::1", world);
    rig->cage = cage[0];
    rig->world = world[1];
    options.cage = cage[1];
    options.world = world[0];
    assert_int_equal(fcntl(options.cage, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(options.world, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(tci_relay_start(&options, &rig->relay), 0);
}

static void set_up(struct rig *rig, struct tci_inspect *inspect)
{
    rig->descriptors = count_descriptors();
    rig->loop = new_loop();
    set_up_with(rig, &rig->budget, inspect);
}

static void tear_down(struct rig *rig)
{
    if (!rig->over)
        tci_relay_cancel(rig->relay);
    tci_loop_free(rig->loop);
    (void)close(rig->cage);
    (void)close(rig->world);
    assert_int_equal(count_descriptors(), rig->descriptors);
}

static void run_to_end(struct rig *rig, enum tci_relay_end end)
{
    (void)run_loop(rig->loop, &rig->over, PATIENCE_MS);
    assert_true(rig->over);
    assert_int_equal(rig->end, end);
}

/* What can be read within a moment. */
static ssize_t read_soon(struct rig *rig, int fd, void *bytes, size_t size)
{
    for (int i = 0; i < 2000; i++) {
        ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);
        if (n >= 0 || errno != EAGAIN)
            return n;
        (void)run_loop(rig->loop, &never, 1);
    }
    errno = EAGAIN;
    return -1;
}

static void expect_text(struct rig *rig, int fd, const char *text)
{
    char bytes[256] = "";
    size_t length = 0;
    while (length < strlen(text)) {
        ssize_t n = read_soon(rig, fd, bytes + length, sizeof bytes - 1 - length);
        assert_true(n > 0);
        length += (size_t)n;
    }
    assert_string_equal(bytes, text);
}

static void expect_nothing(struct rig *rig, int fd)
{
    char byte;
    (void)run_loop(rig->loop, &never, 30);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static void expect_end(struct rig *rig, int fd)
{
    char byte;
    assert_int_equal(read_soon(rig, fd, &byte, 1), 0);
}

static void expect_reset(struct rig *rig, int fd)
{
    char byte;
    assert_int_equal(read_soon(rig, fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static int reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    (void)close(fd);
    return -1;
}

/* Sends until nothing fits any more, neither in the sockets nor in the relay. Returns how much. */
static size_t fill(struct rig *rig, int fd)
{
    static const char bytes[65536];
    size_t total = 0;
    for (int quiet = 0; quiet < 20;) {
        ssize_t n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            total += (size_t)n;
            quiet = 0;
        } else {
            quiet++;
        }
        (void)run_loop(rig->loop, &never, 2);
    }
    return total;
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

/* ---- much, and many ---------------------------------------------------------------------------------- */

struct sender {
    int fd;
    size_t total;
    uint32_t seed;
    char hash[TCI_SHA256_TEXT_MAX];
    size_t passed;
    int problem;
};

static void *send_all(void *data)
{
    struct sender *s = data;
    static const size_t sizes[] = { 1, 100, 1460, 65536, 100000, 7, 30000 };
    uint32_t *words = malloc(100000);
    struct tci_sha256 hash;
    uint32_t x = s->seed;
    tci_sha256_begin(&hash);
    for (unsigned i = 0; s->passed < s->total; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof *sizes)], at = 0;
        size = size < s->total - s->passed ? size : s->total - s->passed;
        for (size_t w = 0; w < size / 4 + 1 && w < 25000; w++)
            words[w] = x = x * 1664525 + 1013904223;
        tci_sha256_add(&hash, words, size);
        while (at < size) {
            ssize_t n = send(s->fd, (char *)words + at, size - at, MSG_NOSIGNAL);
            if (n < 0) {
                s->problem = errno;
                free(words);
                return NULL;
            }
            at += (size_t)n;
        }
        s->passed += size;
    }
    tci_sha256_end_text(&hash, s->hash);
    (void)shutdown(s->fd, SHUT_WR);
    free(words);
    return NULL;
}

static void *receive_all(void *data)
{
    struct sender *s = data;
    char *bytes = malloc(80000);
    struct tci_sha256 hash;
    ssize_t n;
    tci_sha256_begin(&hash);
    while ((n = recv(s->fd, bytes, 80000, 0)) > 0) {
        tci_sha256_add(&hash, bytes, (size_t)n);
        s->passed += (size_t)n;
    }
    s->problem = n < 0 ? errno : 0;
    tci_sha256_end_text(&hash, s->hash);
    free(bytes);
    return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *), struct sender *sender)
{
    assert_int_equal(pthread_create(thread, NULL, body, sender), 0);
}

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
    assert_true(keeps_rate(rate, total, both, inspected) ||
                keeps_rate(rate, total, both, inspected) ||
                keeps_rate(rate, total, both, inspected));
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
        cmocka_unit_test(test_a_hundred_megabytes_each_way_arrive_as_they_were_sent),
        cmocka_unit_test(test_two_hundred_relays_at_once_need_two_descriptors_each),
        cmocka_unit_test(test_a_peer_that_is_gone_does_not_end_the_host),
        cmocka_unit_test(test_urgent_bytes_keep_their_place_and_keep_nobody_busy),
        cmocka_unit_test(test_not_a_byte_more_than_the_budget_passes),
        cmocka_unit_test(test_connections_share_one_budget),
        cmocka_unit_test(test_the_rate_is_kept),
        cmocka_unit_test(test_relays_that_share_a_rate_all_get_on),
        cmocka_unit_test(test_held_bytes_go_out_when_the_inspection_is_content),
        cmocka_unit_test(test_nothing_goes_out_of_what_the_inspection_refuses),
        cmocka_unit_test(test_what_was_passed_before_a_refusal_stays_passed),
        cmocka_unit_test(test_an_inspection_that_cannot_decide_refuses),
        cmocka_unit_test(test_the_end_is_shown_to_the_inspection_first),
        cmocka_unit_test(test_an_end_without_a_word_is_passed_on),
        cmocka_unit_test(test_much_passes_through_an_inspection_unchanged),
        cmocka_unit_test(test_relays_can_be_cancelled_at_any_moment),
        cmocka_unit_test(test_a_drained_relay_is_cancelled_without_a_reset),
        cmocka_unit_test(test_what_cannot_start_closes_what_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
