/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: lines over pipes, sockets and files, and the loop under them. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "mcp/channel.h"
#include "mcp/loop.h"

enum { line_max = 1000 };

static struct {
    struct tci_mcp_loop *loop;
    struct tci_mcp_channel *channel;
    int in[2], out[2];
    char lines[64 * 1024]; /* each with a '|' behind it */
    size_t too_long, flushed;
    int ended, broken; /* -1: not yet */
    bool free_on_line, pause_on_line;
} t;

static void on_line(void *context, const char *text, size_t length)
{
    (void)context;
    strncat(t.lines, text, length);
    strcat(t.lines, "|");
    if (t.free_on_line)
        tci_mcp_channel_free(tc_take(t.channel));
    if (t.pause_on_line)
        tci_mcp_channel_pause(t.channel, true);
}

static void on_too_long(void *context)
{
    (void)context;
    t.too_long++;
}

static void on_ended(void *context, int error)
{
    (void)context;
    t.ended = error;
    if (!t.pause_on_line)
        tci_mcp_loop_stop(t.loop);
}

static void on_broken(void *context, int error)
{
    (void)context;
    t.broken = error;
    tci_mcp_loop_stop(t.loop);
}

static void on_flushed(void *context)
{
    (void)context;
    t.flushed++;
    tci_mcp_loop_stop(t.loop);
}

static const struct tci_mcp_channel_calls calls = {
    .line = on_line,
    .too_long = on_too_long,
    .ended = on_ended,
    .broken = on_broken,
    .flushed = on_flushed,
};

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.ended = t.broken = -1;
    if (tci_pipe(t.in, 0) < 0 || tci_pipe(t.out, 0) < 0)
        return -1;
    return tci_mcp_loop_new(4, true, &t.loop, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    tci_mcp_channel_free(t.channel);
    tci_mcp_loop_free(t.loop);
    for (int i = 0; i < 2; i++) {
        (void)tci_close(t.in[i]);
        (void)tci_close(t.out[i]);
    }
    return 0;
}

static void open_channel(int in, int out)
{
    assert_int_equal(tci_mcp_channel_new(t.loop, in, out, line_max, &calls, NULL, &t.channel, NULL),
                     0);
}

static void run(void)
{
    assert_int_equal(tci_mcp_loop_run(t.loop, NULL), 0);
}

static void stop(void *context)
{
    (void)context;
    tci_mcp_loop_stop(t.loop);
}

/* What can be done now. */
static void run_once(void)
{
    struct tci_mcp_post post = { .task = stop };
    /* The task may come before the input in one round, but not in two. */
    for (int i = 0; i < 2; i++) {
        tci_mcp_loop_post(t.loop, &post);
        run();
    }
}

/* All of the input at once, then its end. */
static void feed(const char *text, size_t length)
{
    assert_int_equal(tci_write_all(t.in[1], text, length), 0);
    t.in[1] = tci_close(t.in[1]);
    open_channel(t.in[0], t.out[1]);
    run();
    assert_int_equal(t.ended, 0);
}

/* ---- input -------------------------------------------------------------------------------- */

static void test_lines_end_with_either_line_break_or_the_end(void **state)
{
    static const char text[] = "one\n\n\r\n  \ntwo\r\n \tthree\nfour";
    (void)state;
    feed(text, sizeof text - 1);
    assert_string_equal(t.lines, "one|two|three|four|");
}

static void test_a_line_may_come_in_pieces(void **state)
{
    static const char text[] = "abc\ndef\n";
    (void)state;
    open_channel(t.in[0], t.out[1]);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        assert_int_equal(tci_write_all(t.in[1], text + i, 1), 0);
        run_once();
        assert_string_equal(t.lines, i < 3 ? "" : i < 7 ? "abc|" : "abc|def|");
    }
}

static void test_a_line_that_is_too_long_is_skipped_to_its_end(void **state)
{
    static char text[40000];
    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, "a\n", 2);
    text[30000] = '\n';
    memcpy(text + 30001, "b\n", 2);
    text[30003 + line_max] = '\n'; /* exactly as long as it may be */
    text[30003 + line_max + 1 + line_max + 1] = '\n';
    memcpy(text + sizeof text - 3, "\nc\n", 3);
    feed(text, sizeof text);
    assert_int_equal(t.too_long, 3);
    assert_int_equal(strlen(t.lines), 2 + 2 + line_max + 1 + 2);
    assert_memory_equal(t.lines, "a|b|xx", 6);
    assert_string_equal(t.lines + strlen(t.lines) - 3, "|c|");
}

/* It is not kept until its end, which may never come. */
static void test_a_line_that_is_too_long_is_noticed_before_its_end(void **state)
{
    static char text[5 * line_max];
    (void)state;
    memset(text, 'x', sizeof text);
    open_channel(t.in[0], t.out[1]);
    assert_int_equal(tci_write_all(t.in[1], text, sizeof text), 0);
    run_once();
    assert_int_equal(t.too_long, 1);
    assert_int_equal(tci_write_all(t.in[1], text, sizeof text), 0);
    assert_int_equal(tci_write_all(t.in[1], "\nb\n", 3), 0);
    run_once();
    assert_int_equal(t.too_long, 1);
    assert_string_equal(t.lines, "b|");
}

static void test_files_and_devices_are_read_to_their_end(void **state)
{
    FILE *file = tmpfile();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)state;
    assert_true(fputs("one\ntwo\n", file) >= 0);
    rewind(file);
    open_channel(fileno(file), null);
    run();
    assert_int_equal(t.ended, 0);
    assert_string_equal(t.lines, "one|two|");
    tci_mcp_channel_free(tc_take(t.channel));
    t.ended = -1;
    open_channel(null, null);
    run();
    assert_int_equal(t.ended, 0);
    (void)fclose(file);
    (void)close(null);
}

static void test_a_descriptor_that_is_closed_is_an_error(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(
        tci_mcp_channel_new(t.loop, 1000, t.out[1], line_max, &calls, NULL, &t.channel, &error),
        -1);
    assert_non_null(strstr(error.message, "input"));
    assert_int_equal(
        tci_mcp_channel_new(t.loop, t.in[0], 1000, line_max, &calls, NULL, &t.channel, NULL), -1);
}

static void test_a_pause_leaves_lines_where_they_are(void **state)
{
    (void)state;
    open_channel(t.in[0], t.out[1]);
    tci_mcp_channel_pause(t.channel, true);
    assert_int_equal(tci_write_all(t.in[1], "a\nb\n", 4), 0);
    run_once();
    assert_string_equal(t.lines, "");
    tci_mcp_channel_pause(t.channel, false);
    t.in[1] = tci_close(t.in[1]);
    run();
    assert_string_equal(t.lines, "a|b|");
}

/* After each line; what was read with it, and the end, come later. */
static void check_pauses(int in)
{
    static const char *const after[] = { "a|", "a|b|", "a|b|c|" };
    t.pause_on_line = true;
    open_channel(in, t.out[1]);
    for (size_t i = 0; i < tci_array_size(after); i++) {
        tci_mcp_channel_pause(t.channel, false);
        run_once();
        assert_string_equal(t.lines, after[i]);
        assert_int_equal(t.ended, -1);
    }
    tci_mcp_channel_pause(t.channel, false);
    for (int i = 0; i < 10 && t.ended < 0; i++)
        run_once();
    assert_string_equal(t.lines, "a|b|c|d|");
    assert_int_equal(t.ended, 0);
}

static void test_pauses_lose_nothing_of_a_file(void **state)
{
    FILE *file = tmpfile();
    (void)state;
    assert_true(fputs("a\nb\n\nc\nd", file) >= 0);
    rewind(file);
    check_pauses(fileno(file));
    tci_mcp_channel_free(tc_take(t.channel));
    (void)fclose(file);
}

static void test_pauses_lose_nothing_of_a_pipe(void **state)
{
    (void)state;
    assert_int_equal(tci_write_all(t.in[1], "a\nb\n\nc\nd", 8), 0);
    t.in[1] = tci_close(t.in[1]);
    check_pauses(t.in[0]);
}

static void test_a_callback_may_free_the_channel(void **state)
{
    (void)state;
    t.free_on_line = true;
    open_channel(t.in[0], t.out[1]);
    assert_int_equal(tci_write_all(t.in[1], "a\nb\n", 4), 0);
    run_once();
    assert_null(t.channel);
    assert_string_equal(t.lines, "a|");
}

/* ---- output ------------------------------------------------------------------------------- */

static void *read_all(void *context)
{
    static char text[64 * 1024];
    size_t *seen = context;
    ssize_t n;
    while ((n = read(t.out[0], text, sizeof text)) > 0) {
        *seen += (size_t)n;
        if (text[n - 1] == '!')
            break;
    }
    return NULL;
}

/* A pipe takes 64 KiB: what is beyond waits, and the loop goes on. */
static void check_slow_reader(void)
{
    enum { messages = 100, message = 100000 };
    char *text = malloc(message);
    pthread_t reader;
    size_t seen = 0;
    memset(text, 'x', message);
    open_channel(-1, t.out[1]);
    for (int i = 0; i < messages; i++) {
        struct tci_buf given = TCI_BUF_INIT(message); /* the line break needs room of its own */
        tci_buf_append(&given, text, message);
        if (i % 2)
            tci_mcp_channel_send(t.channel, text, message);
        else
            tci_mcp_channel_give(t.channel, &given);
        tci_buf_free(&given);
    }
    assert_true(tci_mcp_channel_waiting(t.channel) > (messages - 5) * message);
    assert_int_equal(pthread_create(&reader, NULL, read_all, &seen), 0);
    run();
    assert_int_equal(t.flushed, 1);
    assert_int_equal(tci_mcp_channel_waiting(t.channel), 0);
    tci_mcp_channel_free(tc_take(t.channel));
    assert_int_equal(write(t.out[1], "!", 1), 1);
    pthread_join(reader, NULL);
    assert_int_equal(seen, messages * (message + 1) + 1);
    free(text);
}

static void test_a_slow_reader_gets_everything(void **state)
{
    (void)state;
    check_slow_reader();
    /* Whoever shares the pipe does not find it changed. */
    assert_false(fcntl(t.out[1], F_GETFL) & O_NONBLOCK);
}

static void test_a_slow_reader_of_a_socket_gets_everything(void **state)
{
    (void)state;
    (void)close(t.out[0]);
    (void)close(t.out[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t.out), 0);
    check_slow_reader();
}

static void test_what_is_given_is_one_line_and_not_copied(void **state)
{
    struct tci_buf given = TCI_BUF_INIT(1000), large = TCI_BUF_INIT(200000);
    char got[200000];
    (void)state;
    open_channel(-1, t.out[1]);
    tci_buf_string(&given, "small");
    tci_mcp_channel_give(t.channel, &given);
    assert_null(given.data);
    assert_int_equal(read(t.out[0], got, sizeof got), 6);
    assert_memory_equal(got, "small\n", 6);
    for (int i = 0; i < 20000; i++)
        tci_buf_printf(&large, "%04d.", i % 10000);
    tci_mcp_channel_give(t.channel, &large); /* a pipe holds less */
    assert_null(large.data);
    assert_true(tci_mcp_channel_waiting(t.channel) > 0);
    for (size_t at = 0; at < 100001;) {
        ssize_t n = read(t.out[0], got + at, sizeof got - at);
        assert_true(n > 0);
        at += (size_t)n;
        if (tci_mcp_channel_waiting(t.channel))
            run(); /* until the rest is written: there is room for it now */
    }
    assert_memory_equal(got + 99995, "9999.\n", 6);
    assert_memory_equal(got + 65535, "3107.3108.", 10);
}

static void test_a_reader_that_does_not_read_is_given_up(void **state)
{
    enum { message = 8 * 1024 * 1024 };
    char *text = calloc(1, message);
    (void)state;
    open_channel(t.in[0], t.out[1]);
    for (int i = 0; i < 10; i++)
        tci_mcp_channel_send(t.channel, text, message);
    assert_int_equal(t.broken, -1); /* not from within */
    assert_int_equal(tci_mcp_channel_waiting(t.channel), 0);
    run();
    assert_int_equal(t.broken, ENOBUFS);
    tci_mcp_channel_send(t.channel, text, message);
    assert_int_equal(tci_mcp_channel_waiting(t.channel), 0);
    free(text);
}

/* A client that asks without reading must not fill our memory with its questions. */
static void test_nothing_is_read_from_who_does_not_read(void **state)
{
    char *text = calloc(1, TCI_MCP_QUEUE_PAUSE + 1024 * 1024);
    (void)state;
    open_channel(t.in[0], t.out[1]);
    tci_mcp_channel_send(t.channel, text, TCI_MCP_QUEUE_PAUSE + 1024 * 1024);
    assert_int_equal(tci_write_all(t.in[1], "a\n", 2), 0);
    run_once();
    assert_string_equal(t.lines, "");
    free(text);
}

static void test_a_reader_that_goes_away_is_noticed(void **state)
{
    (void)state;
    open_channel(t.in[0], t.out[1]);
    t.out[0] = tci_close(t.out[0]);
    run();
    assert_int_equal(t.broken, EPIPE);
}

static void test_a_write_to_nobody_ends_nothing_but_the_output(void **state)
{
    (void)state;
    open_channel(t.in[0], t.out[1]);
    t.out[0] = tci_close(t.out[0]);
    tci_mcp_channel_send(t.channel, "x", 1);
    run();
    assert_int_equal(t.broken, EPIPE);
}

/* ---- the loop ----------------------------------------------------------------------------- */

static atomic_int running, most, done;
static atomic_bool signal_blocked = true;

static void work(void *context)
{
    int now = atomic_fetch_add(&running, 1) + 1, before = atomic_load(&most);
    sigset_t mask;
    (void)context;
    while (before < now && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (!sigismember(&mask, SIGTERM))
        atomic_store(&signal_blocked, false);
    /* Until another one has its turn beside this one, or never has it. */
    for (int i = 0; i < 2 || (atomic_load(&most) < 2 && i < 20000); i++)
        (void)usleep(1000);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&done, 1);
}

static void test_work_is_bounded_and_all_done_before_the_end(void **state)
{
    struct tci_mcp_post posts[50];
    (void)state;
    for (size_t i = 0; i < tci_array_size(posts); i++) {
        posts[i] = (struct tci_mcp_post){ .task = work };
        assert_int_equal(tci_mcp_loop_work(t.loop, &posts[i], NULL), 0);
    }
    tci_mcp_loop_drain(t.loop);
    assert_int_equal(atomic_load(&done), tci_array_size(posts));
    assert_true(atomic_load(&most) <= 4);
    assert_true(atomic_load(&most) > 1);
    assert_true(atomic_load(&signal_blocked));
}

static atomic_bool released, urgent_done;

static void wait_for_release(void *context)
{
    (void)context;
    while (!atomic_load(&released))
        (void)usleep(1000);
}

static void do_urgent(void *context)
{
    (void)context;
    atomic_store(&urgent_done, true);
}

/* A client whose calls take all workers does not keep a new policy out. */
static void test_urgent_work_is_done_when_all_workers_are_busy(void **state)
{
    struct tci_mcp_post posts[12], urgent = { .task = do_urgent };
    (void)state;
    for (size_t i = 0; i < tci_array_size(posts); i++) {
        posts[i] = (struct tci_mcp_post){ .task = wait_for_release };
        assert_int_equal(tci_mcp_loop_work(t.loop, &posts[i], NULL), 0);
    }
    assert_int_equal(tci_mcp_loop_work_first(t.loop, &urgent, NULL), 0);
    for (int i = 0; i < 30000 && !atomic_load(&urgent_done); i++)
        (void)usleep(1000);
    assert_true(atomic_load(&urgent_done));
    atomic_store(&released, true);
    tci_mcp_loop_drain(t.loop);
    /* The worker that was made for it is not one more for the others. */
    atomic_store(&most, 0);
    atomic_store(&done, 0);
    for (size_t i = 0; i < tci_array_size(posts); i++) {
        posts[i] = (struct tci_mcp_post){ .task = work };
        assert_int_equal(tci_mcp_loop_work(t.loop, &posts[i], NULL), 0);
    }
    tci_mcp_loop_drain(t.loop);
    assert_int_equal(atomic_load(&done), tci_array_size(posts));
    assert_true(atomic_load(&most) <= 4);
}

static char order[16];

static void note(void *context)
{
    strcat(order, context);
    if (strlen(order) == 3)
        tci_mcp_loop_stop(t.loop);
}

static void post_three(void *context)
{
    static struct tci_mcp_post posts[3];
    static char names[3][2] = { "a", "b", "c" };
    (void)context;
    for (int i = 0; i < 3; i++) {
        posts[i] = (struct tci_mcp_post){ .task = note, .context = names[i] };
        tci_mcp_loop_post(t.loop, &posts[i]);
    }
}

static void test_what_is_posted_runs_in_order(void **state)
{
    struct tci_mcp_post post = { .task = post_three };
    (void)state;
    assert_int_equal(tci_mcp_loop_work(t.loop, &post, NULL), 0);
    run();
    assert_string_equal(order, "abc");
}

static void test_a_signal_ends_the_loop(void **state)
{
    (void)state;
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    run();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lines_end_with_either_line_break_or_the_end),
        TEST(test_a_line_may_come_in_pieces),
        TEST(test_a_line_that_is_too_long_is_skipped_to_its_end),
        TEST(test_a_line_that_is_too_long_is_noticed_before_its_end),
        TEST(test_files_and_devices_are_read_to_their_end),
        TEST(test_a_descriptor_that_is_closed_is_an_error),
        TEST(test_a_pause_leaves_lines_where_they_are),
        TEST(test_pauses_lose_nothing_of_a_file),
        TEST(test_pauses_lose_nothing_of_a_pipe),
        TEST(test_a_callback_may_free_the_channel),
        TEST(test_a_slow_reader_gets_everything),
        TEST(test_a_slow_reader_of_a_socket_gets_everything),
        TEST(test_what_is_given_is_one_line_and_not_copied),
        TEST(test_a_reader_that_does_not_read_is_given_up),
        TEST(test_nothing_is_read_from_who_does_not_read),
        TEST(test_a_reader_that_goes_away_is_noticed),
        TEST(test_a_write_to_nobody_ends_nothing_but_the_output),
        TEST(test_work_is_bounded_and_all_done_before_the_end),
        TEST(test_urgent_work_is_done_when_all_workers_are_busy),
        TEST(test_what_is_posted_runs_in_order),
        TEST(test_a_signal_ends_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
