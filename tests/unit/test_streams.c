/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: bytes of a call: captured, streamed, limited, relayed; and calls from event loops, from many
 * threads, ended at any moment. */
#include "call_support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"

static struct fixture fixture;
static struct tc_engine *engine;

static int open_engine(void **state)
{
    (void)state;
    open_fixture(&fixture, "version = 1\n[defaults]\ntimeout = \"60s\"\noutput = \"10MB\"\n"
                           "[tool.files]\noutputs = [\"/tmp/toolcage-test-streams/*.txt\"]\n"
                           "[tool.endless]\ntimeout = \"unlimited\"\noutput = \"unlimited\"\n");
    engine = fixture.engine;
    return 0;
}

static int close_engine(void **state)
{
    (void)state;
    close_fixture(&fixture);
    return 0;
}

/* ---- output ----------------------------------------------------------------------------------- */

struct heard {
    size_t bytes[3], chunks;
    char text[200];
    size_t text_length;
    size_t stop_after;
    int answer; /* where a line goes for each chunk, or 0 */
    struct tc_call *hold;
};

static int hear(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct heard *heard = context;
    size_t room = sizeof heard->text - 1 - heard->text_length;
    heard->chunks++;
    if (heard->answer)
        assert_int_equal(write(heard->answer, "line\n", 5), 5);
    heard->bytes[stream] += length;
    if (length < room) {
        memcpy(heard->text + heard->text_length, bytes, length);
        heard->text_length += length;
    }
    if (heard->hold)
        assert_int_equal(tci_call_hold(heard->hold, true), 0); /* harmless when it is over */
    return heard->stop_after && heard->chunks >= heard->stop_after;
}

static void test_output_is_cut_at_exactly_the_limit(void **state)
{
    static const uint64_t limits[] = { 1, 999, 4096, 65535, 65536, 65537, 1000000 };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (int over = 0; over < 2; over++) {
            char script[100];
            struct heard heard = { .chunks = 0 };
            struct tc_request request = {
                .argv = SH(script), .limits.output = limits[i], .on_output = hear, .context = &heard
            };
            struct tc_result *r;
            (void)snprintf(script, sizeof script, "head -c %llu /dev/zero",
                           (unsigned long long)limits[i] + (unsigned)over);
            r = call(engine, &request);
            assert_int_equal(r->verdict, over ? TC_VERDICT_OUTPUT : TC_VERDICT_OK);
            assert_int_equal(r->stdout_length, limits[i]);
            assert_int_equal(r->stdout_truncated, over);
            assert_true(r->stdout_bytes >= limits[i] + (unsigned)over);
            assert_int_equal(heard.bytes[TC_STREAM_STDOUT], limits[i]);
            assert_int_equal(r->stdout_data[limits[i]], 0);
            tc_result_free(r);
        }
    }
}

static void test_both_streams_share_the_limit(void **state)
{
    struct tc_request request = { .argv = SH("printf 12345; sleep 0.2; printf 678 >&2; sleep 0.2; "
                                             "printf 90 >&2; sleep 30"),
                                  .limits.output = 9 };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(r->verdict, TC_VERDICT_OUTPUT);
    assert_string_equal(r->stdout_data, "12345");
    assert_string_equal(r->stderr_data, "6789");
    assert_int_equal(r->stdout_truncated, 0);
    assert_int_equal(r->stderr_truncated, 1);
    assert_int_equal(tc_result_exit_status(r), 141);
    tc_result_free(r);
}

static void test_call_without_limits_ends_by_itself(void **state)
{
    struct tc_request request = { .tool = "endless",
                                  .argv = SH("sleep 0.1; head -c 11000000 /dev/zero") };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    assert_int_equal(r->stdout_length, 11000000);
    tc_result_free(r);
}

static void test_flood_is_stopped(void **state)
{
    struct tc_request request = { .argv = ARGV("yes"), .limits.output = 100000 };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(r->verdict, TC_VERDICT_OUTPUT);
    assert_int_equal(r->stdout_length, 100000);
    assert_true(r->usage.duration_us < 20000000);
    tc_result_free(r);
}

static void test_output_is_streamed_in_order_as_it_comes(void **state)
{
    struct heard heard = { .chunks = 0 };
    /* It goes on only when what it said was heard. */
    struct tc_request request = { .argv = SH("for i in 1 2 3; do echo $i; read -r line; done"),
                                  .on_output = hear,
                                  .context = &heard };
    struct tc_result *r;
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    heard.answer = ends[1];
    request.input_fd = ends[0];
    r = call(engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    assert_int_equal(heard.chunks, 3);
    assert_string_equal(heard.text, "1\n2\n3\n");
    assert_string_equal(r->stdout_data, "1\n2\n3\n");
    tc_result_free(r);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void test_nothing_is_kept_when_asked(void **state)
{
    struct heard heard = { .chunks = 0 };
    struct tc_request request = { .argv = SH("echo out; echo error >&2"),
                                  .on_output = hear,
                                  .context = &heard,
                                  .flags = TC_REQUEST_KEEP_NOTHING };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(heard.bytes[TC_STREAM_STDOUT], 4);
    assert_int_equal(heard.bytes[TC_STREAM_STDERR], 6);
    assert_int_equal(r->stdout_length, 0);
    assert_int_equal(r->stdout_bytes, 4);
    assert_int_equal(r->stderr_bytes, 6);
    tc_result_free(r);
    request.limits.output = 3;
    r = call(engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_OUTPUT);
    tc_result_free(r);
}

static void test_output_function_can_end_the_call(void **state)
{
    struct heard heard = { .stop_after = 2 };
    struct tc_request request = { .argv = SH("for i in 1 2 3 4; do echo $i; sleep 0.1; done; "
                                             "sleep 60"),
                                  .on_output = hear,
                                  .context = &heard };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(r->verdict, TC_VERDICT_ERROR);
    assert_non_null(strstr(r->reason, "cancelled"));
    assert_int_equal(heard.chunks, 2);
    assert_string_equal(r->stdout_data, "1\n2\n");
    tc_result_free(r);
}

static void test_last_words_are_not_lost(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        struct tc_result *r = call(
            engine, &(struct tc_request){ .argv = SH("head -c 60000 /dev/zero; echo end >&2") });
        assert_int_equal(r->stdout_length, 60000);
        assert_string_equal(r->stderr_data, "end\n");
        tc_result_free(r);
    }
}

static void test_leaked_writer_does_not_keep_the_call(void **state)
{
    struct tc_request request = { .argv = ARGV("leak:sh", "-c", "sleep 60 & echo done") };
    struct tc_result *r = call(engine, &request);
    (void)state;
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    assert_string_equal(r->stdout_data, "done\n");
    assert_true(r->usage.duration_us < 20000000);
    tc_result_free(r);
    /* Nor one that never stops writing. */
    request.argv = ARGV("leak:sh", "-c", "yes & sleep 0.1");
    request.limits.output = 5000000;
    r = call(engine, &request);
    assert_true(r->verdict == TC_VERDICT_OK || r->verdict == TC_VERDICT_OUTPUT);
    tc_result_free(r);
}

/* ---- input ------------------------------------------------------------------------------------ */

static void test_without_input_stdin_is_at_its_end(void **state)
{
    struct tc_result *r = call(engine, &(struct tc_request){ .argv = SH("cat; echo end") });
    (void)state;
    assert_string_equal(r->stdout_data, "end\n");
    tc_result_free(r);
}

static void test_huge_input_arrives_whole(void **state)
{
    size_t size = 32 * 1024 * 1024;
    char *bytes = malloc(size);
    struct tc_request request = { .argv = SH("cksum; cat"), .input = bytes, .input_length = size };
    struct tc_result *r;
    uint32_t seed = 1;
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
    r = call(engine, &request);
    /* The sum of these bytes, as cksum of a file gives it. */
    assert_string_equal(r->stdout_data, "158513782 33554432\n");
    tc_result_free(r);
    free(bytes);
}

static void test_input_that_nobody_reads_is_no_failure(void **state)
{
    size_t size = 10 * 1024 * 1024;
    char *bytes = calloc(1, size);
    struct tc_request request = { .argv = ARGV("true"), .input = bytes, .input_length = size };
    struct sigaction old;
    (void)state;
    assert_int_equal(sigaction(SIGPIPE, NULL, &old), 0);
    assert_true(old.sa_handler == SIG_DFL); /* a SIGPIPE would end this test */
    for (int i = 0; i < 5; i++) {
        struct tc_result *r = call(engine, &request);
        assert_int_equal(r->verdict, TC_VERDICT_OK);
        tc_result_free(r);
    }
    request.argv = SH("exec <&-; sleep 0.1; echo still here");
    struct tc_result *r = call(engine, &request);
    assert_string_equal(r->stdout_data, "still here\n");
    tc_result_free(r);
    free(bytes);
}

static void test_input_of_a_file_and_of_a_pipe(void **state)
{
    char path[] = "/tmp/toolcage-test-input-XXXXXX", block[4096];
    int file = mkstemp(path), ends[2];
    struct tc_result *r;
    (void)state;
    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 300; i++)
        assert_int_equal(write(file, block, sizeof block), sizeof block);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    r = call(engine, &(struct tc_request){ .argv = SH("wc -c"), .input_fd = file });
    assert_string_equal(r->stdout_data, "1228800\n");
    tc_result_free(r);
    assert_int_equal(close(file), 0);

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    assert_int_equal(close(ends[1]), 0);
    r = call(engine, &(struct tc_request){ .argv = ARGV("cat"), .input_fd = ends[0] });
    assert_string_equal(r->stdout_data, "piped");
    tc_result_free(r);
    /* The caller's descriptor is still the caller's. */
    assert_int_equal(close(ends[0]), 0);
}

static void test_bad_input_is_the_end_of_input(void **state)
{
    int file = open("/dev/null", O_WRONLY | O_CLOEXEC), directory = open("/", O_RDONLY | O_CLOEXEC);
    struct tc_result *r = call(
        engine, &(struct tc_request){ .argv = SH("cat; echo end"), .input_fd = file });
    (void)state;
    assert_string_equal(r->stdout_data, "end\n");
    tc_result_free(r);
    r = call(engine, &(struct tc_request){ .argv = SH("cat; echo end"), .input_fd = directory });
    assert_string_equal(r->stdout_data, "end\n");
    tc_result_free(r);
    (void)close(file);
    (void)close(directory);
}

static void test_input_is_passed_on_as_it_comes(void **state)
{
    int ends[2];
    struct heard heard = { .chunks = 0 };
    /* A line comes only when the one before it was heard. */
    struct tc_request request = { .argv = SH(
                                      "for i in 1 2 3 4 5; do read -r line; echo $line; done"),
                                  .on_output = hear,
                                  .context = &heard };
    struct tc_result *r;
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "line\n", 5), 5);
    heard.answer = ends[1];
    request.input_fd = ends[0];
    r = call(engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    assert_int_equal(r->stdout_length, 25);
    assert_int_equal(heard.chunks, 5);
    tc_result_free(r);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void step_for(struct tc_call *running, int ms, struct tc_result **ret)
{
    uint64_t end = tci_clock_us() + (uint64_t)ms * 1000;
    while (!*ret && tci_clock_us() < end) {
        struct pollfd wait = { .fd = tc_call_fd(running), .events = POLLIN };
        (void)poll(&wait, 1, 10);
        assert_int_equal(tc_call_step(running, ret, NULL), 0);
    }
}

/* Until so much was heard. */
static void step_until(struct tc_call *running, const struct heard *heard, const char *text)
{
    uint64_t end = tci_clock_us() + 20000000;
    struct tc_result *r = NULL;
    while (strcmp(heard->text, text) != 0 && !r && tci_clock_us() < end)
        step_for(running, 10, &r);
    assert_null(r);
    assert_string_equal(heard->text, text);
}

static void test_slow_reader_slows_the_source_down(void **state)
{
    int ends[2];
    size_t taken = 0;
    char block[4096] = { 0 };
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct tc_request request = { .argv = SH("sleep 0.6; wc -c") };
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    request.input_fd = ends[0];
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    for (int i = 0; i < 20; i++) {
        ssize_t n;
        while ((n = write(ends[1], block, sizeof block)) > 0)
            taken += (size_t)n;
        step_for(running, 10, &r);
    }
    /* Two pipes and a chunk, however often we try. */
    assert_true(taken >= 64 * 1024 && taken <= 4 * 64 * 1024);
    assert_int_equal(close(ends[1]), 0);
    step_for(running, 20000, &r);
    assert_non_null(r);
    assert_int_equal(strtoul(r->stdout_data, NULL, 10), taken);
    tc_result_free(r);
    tc_call_free(running);
    assert_int_equal(close(ends[0]), 0);
}

static void test_closed_standard_streams_of_the_host_do_no_harm(void **state)
{
    int saved = dup(0);
    struct tc_result *r;
    (void)state;
    assert_true(saved > 2);
    assert_int_equal(close(0), 0);
    r = call(engine, &(struct tc_request){ .argv = SH("cat; echo out; echo err >&2"),
                                           .input = "in ",
                                           .input_length = 3 });
    assert_int_equal(dup2(saved, 0), 0);
    assert_int_equal(close(saved), 0);
    assert_string_equal(r->stdout_data, "in out\n");
    assert_string_equal(r->stderr_data, "err\n");
    tc_result_free(r);
}

/* ---- event loops ------------------------------------------------------------------------------ */

static void test_step_never_waits_and_reads_a_bounded_amount(void **state)
{
    struct heard heard = { .chunks = 0 };
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct tc_request request = { .tool = "endless",
                                  .argv = SH("yes & yes >&2 & wait"),
                                  .on_output = hear,
                                  .context = &heard,
                                  .flags = TC_REQUEST_KEEP_NOTHING };
    (void)state;
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    for (int i = 0; i < 200 || (!(heard.bytes[1] && heard.bytes[2]) && i < 20000); i++) {
        size_t before = heard.bytes[1] + heard.bytes[2];
        assert_int_equal(tc_call_step(running, &r, NULL), 0);
        assert_null(r);
        assert_true(heard.bytes[1] + heard.bytes[2] - before <= 256 * 1024);
        (void)usleep(500);
    }
    assert_true(heard.bytes[1] > 0 && heard.bytes[2] > 0);
    tc_call_free(running);
    assert_int_equal(double_runs, 0);
}

static void test_step_without_news_changes_nothing(void **state)
{
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct pollfd wait;
    int before = count_descriptors();
    (void)state;
    assert_int_equal(
        tc_call_start(engine, &(struct tc_request){ .argv = ARGV("sleep", "60") }, &running, NULL),
        0);
    /* The epoll, the timer, two reading ends, and the double's own: nothing else is kept open. */
    assert_int_equal(count_descriptors(), before + 5);
    for (int i = 0; i < 10; i++)
        assert_int_equal(tc_call_step(running, &r, NULL), 0);
    assert_null(r);
    wait = (struct pollfd){ .fd = tc_call_fd(running), .events = POLLIN };
    assert_int_equal(poll(&wait, 1, 50), 0); /* nothing to do: an event loop can sleep */
    tc_call_cancel(running);
    tc_call_cancel(running);
    step_for(running, 10000, &r);
    assert_non_null(r);
    assert_int_equal(r->verdict, TC_VERDICT_ERROR);
    assert_non_null(strstr(r->reason, "cancelled"));
    tc_result_free(r);
    tc_call_cancel(running); /* too late: harmless */
    assert_true(tc_call_step(running, &r, NULL) < 0);
    tc_call_free(running);
}

static void test_refused_call_is_readable_at_once(void **state)
{
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct tc_request request = { .tool = "absent", .argv = ARGV("true") };
    struct pollfd wait;
    (void)state;
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    wait = (struct pollfd){ .fd = tc_call_fd(running), .events = POLLIN };
    assert_int_equal(poll(&wait, 1, 0), 1);
    tc_call_cancel(running);
    assert_int_equal(tc_call_step(running, &r, NULL), 0);
    assert_non_null(r);
    assert_int_equal(r->verdict, TC_VERDICT_DENIED);
    tc_result_free(r);
    tc_call_free(running);
    tc_call_free(NULL);
    tc_call_cancel(NULL);
}

static void test_held_output_waits_in_the_pipe(void **state)
{
    struct heard heard = { .chunks = 0 };
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct tc_request request = { .argv = SH("echo one; read -r line; echo two; sleep 60"),
                                  .on_output = hear,
                                  .context = &heard };
    struct pollfd wait;
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    request.input_fd = ends[0];
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    heard.hold = running;
    step_until(running, &heard, "one\n");
    assert_int_equal(write(ends[1], "\n", 1), 1);
    step_for(running, 200, &r);
    assert_string_equal(heard.text, "one\n");
    wait = (struct pollfd){ .fd = tc_call_fd(running), .events = POLLIN };
    assert_int_equal(poll(&wait, 1, 0), 0);
    heard.hold = NULL;
    assert_int_equal(tci_call_hold(running, false), 0);
    step_until(running, &heard, "one\ntwo\n");
    tc_call_free(running);
    (void)close(ends[0]);
    (void)close(ends[1]);
    /* A held call still has its timeout. */
    request = (struct tc_request){ .argv = SH("echo one; sleep 60"), .limits.timeout_ms = 300 };
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    assert_int_equal(tci_call_hold(running, true), 0);
    step_for(running, 30000, &r);
    assert_non_null(r);
    assert_int_equal(r->verdict, TC_VERDICT_TIMEOUT);
    tc_result_free(r);
    tc_call_free(running);
}

static void test_held_output_is_not_lost_when_the_call_ends(void **state)
{
    struct heard heard = { .chunks = 0 };
    struct tc_call *running = NULL;
    struct tc_result *r = NULL;
    struct tc_request request = { .argv = SH(
                                      "echo one; sleep 0.2; echo two; echo three >&2; exit 3"),
                                  .on_output = hear,
                                  .context = &heard };
    (void)state;
    assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
    heard.hold = running;
    step_for(running, 20000, &r);
    assert_non_null(r);
    assert_int_equal(r->exit_code, 3);
    assert_string_equal(heard.text, "one\ntwo\nthree\n");
    assert_string_equal(r->stderr_data, "three\n");
    tc_result_free(r);
    tc_call_free(running);
}

/* ---- ends ------------------------------------------------------------------------------------- */

static void test_call_can_be_cancelled_or_freed_at_any_moment(void **state)
{
    static const char *const scripts[] = { "true", "sleep 60", "yes", "cat >/dev/null; sleep 60",
                                           "echo x; exit 3" };
    int before = count_descriptors();
    char *input = calloc(1, 1 << 20);
    (void)state;
    for (size_t s = 0; s < sizeof scripts / sizeof *scripts; s++) {
        for (int moment = 0; moment < 12; moment++) {
            struct tc_call *running = NULL;
            struct tc_result *r = NULL;
            struct tc_request request = { .argv = SH(scripts[s]),
                                          .input = input,
                                          .input_length = 1 << 20 };
            assert_int_equal(tc_call_start(engine, &request, &running, NULL), 0);
            for (int i = 0; i < moment / 2 && !r; i++) {
                (void)usleep(1000);
                assert_int_equal(tc_call_step(running, &r, NULL), 0);
            }
            if (moment % 2) {
                tc_call_cancel(running);
                if (!r)
                    step_for(running, 10000, &r);
                assert_non_null(r);
            }
            tc_result_free(r);
            tc_call_free(running);
            assert_int_equal(double_runs, 0);
        }
    }
    free(input);
    assert_int_equal(count_descriptors(), before);
}

static void test_descriptors_do_not_leak(void **state)
{
    int before = count_descriptors();
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct tc_request request = { .argv = i % 2 ? ARGV("true") : ARGV("no-such-program"),
                                      .input = "x",
                                      .input_length = i % 3 ? 1 : 0 };
        request.input = i % 3 ? "x" : NULL;
        tc_result_free(call(engine, &request));
        request.argv = ARGV("double:refused");
        tc_result_free(call(engine, &request));
    }
    assert_int_equal(count_descriptors(), before);
}

static void *call_often(void *context)
{
    long *good = calloc(1, sizeof *good);
    for (int i = 0; i < 25; i++) {
        char expected[40], script[80];
        struct tc_result *result = NULL;
        struct tc_request request = { .argv = SH(script), .input = "in", .input_length = 2 };
        (void)snprintf(expected, sizeof expected, "%ld-%d in", (long)(intptr_t)context, i);
        (void)snprintf(script, sizeof script, "printf '%ld-%d '; cat", (long)(intptr_t)context, i);
        request.limits.files = (uint64_t)(100 + i % 3);
        if (tc_call(engine, &request, &result, NULL) == 0)
            *good += strcmp(result->stdout_data, expected) == 0 && result->verdict == TC_VERDICT_OK;
        tc_result_free(result);
    }
    return good;
}

static void test_two_hundred_calls_from_eight_threads(void **state)
{
    pthread_t threads[8];
    long total = 0;
    int before = count_descriptors();
    (void)state;
    for (intptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, (void *)i), 0);
    for (int i = 0; i < 8; i++) {
        void *good = NULL;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        total += *(long *)good;
        free(good);
    }
    assert_int_equal(total, 200);
    assert_int_equal(count_descriptors(), before);
}

/* ---- files ------------------------------------------------------------------------------------ */

static void test_files_come_back(void **state)
{
    char out[] = "/tmp/toolcage-test-out-XXXXXX", deeper[100], saved[200] = "";
    struct stat st;
    struct tc_request request = {
        .tool = "files",
        .argv = SH("mkdir -p /tmp/toolcage-test-streams && cd /tmp/toolcage-test-streams && "
                   "echo hello >a.txt && echo no >b.other; exit 1"),
        .out_directory = deeper,
    };
    struct tc_result *r;
    (void)state;
    assert_non_null(mkdtemp(out));
    (void)snprintf(deeper, sizeof deeper, "%s/made", out);
    r = call(engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_FAILED); /* files of a failed command come back, too */
    assert_int_equal(r->file_count, 1);
    assert_string_equal(r->files[0].path, "/tmp/toolcage-test-streams/a.txt");
    assert_int_equal(r->files[0].size, 6);
    assert_non_null(r->files[0].saved);
    (void)snprintf(saved, sizeof saved, "%s", r->files[0].saved);
    assert_int_equal(stat(saved, &st), 0);
    assert_int_equal(st.st_size, 6);
    tc_result_free(r);
    request.out_directory = NULL;
    r = call(engine, &request);
    assert_int_equal(r->file_count, 1);
    assert_null(r->files[0].saved);
    tc_result_free(r);
    tc_result_free(call(engine, &(struct tc_request){
                                    .argv = ARGV("rm", "-r", "/tmp/toolcage-test-streams", out) }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_is_cut_at_exactly_the_limit),
        cmocka_unit_test(test_both_streams_share_the_limit),
        cmocka_unit_test(test_call_without_limits_ends_by_itself),
        cmocka_unit_test(test_flood_is_stopped),
        cmocka_unit_test(test_output_is_streamed_in_order_as_it_comes),
        cmocka_unit_test(test_nothing_is_kept_when_asked),
        cmocka_unit_test(test_output_function_can_end_the_call),
        cmocka_unit_test(test_last_words_are_not_lost),
        cmocka_unit_test(test_leaked_writer_does_not_keep_the_call),
        cmocka_unit_test(test_without_input_stdin_is_at_its_end),
        cmocka_unit_test(test_huge_input_arrives_whole),
        cmocka_unit_test(test_input_that_nobody_reads_is_no_failure),
        cmocka_unit_test(test_input_of_a_file_and_of_a_pipe),
        cmocka_unit_test(test_bad_input_is_the_end_of_input),
        cmocka_unit_test(test_input_is_passed_on_as_it_comes),
        cmocka_unit_test(test_slow_reader_slows_the_source_down),
        cmocka_unit_test(test_closed_standard_streams_of_the_host_do_no_harm),
        cmocka_unit_test(test_step_never_waits_and_reads_a_bounded_amount),
        cmocka_unit_test(test_step_without_news_changes_nothing),
        cmocka_unit_test(test_refused_call_is_readable_at_once),
        cmocka_unit_test(test_held_output_waits_in_the_pipe),
        cmocka_unit_test(test_held_output_is_not_lost_when_the_call_ends),
        cmocka_unit_test(test_call_can_be_cancelled_or_freed_at_any_moment),
        cmocka_unit_test(test_descriptors_do_not_leak),
        cmocka_unit_test(test_two_hundred_calls_from_eight_threads),
        cmocka_unit_test(test_files_come_back),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
