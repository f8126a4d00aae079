/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the lines of `exec --net-log`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/exec.h"

static const struct tc_network_event refusal = {
    .kind = "refused",
    .protocol = "dns",
    .host = "evil.example",
    .address = "",
    .rule = "",
    .reason = "no rule allows it",
    .fix = "add \"evil.example:443\" to \"network\"",
    .count = 1,
};

static struct tc_network_event connection(const char *kind)
{
    return (struct tc_network_event){ .kind = kind,
                                      .protocol = "tcp",
                                      .host = "api.example.com",
                                      .address = "192.0.2.7",
                                      .port = 443,
                                      .rule = "api.example.com:443",
                                      .reason = "",
                                      .fix = "" };
}

static void expect_line(const struct tc_network_event *event, bool colours, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    exec_net_line(stream, event, colours);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- lines ------------------------------------------------------------------------------------ */

static void test_each_kind_has_its_line(void **state)
{
    struct tc_network_event event = connection("opened");
    (void)state;
    expect_line(&event, false,
                "net: opened api.example.com:443 (192.0.2.7) by \"api.example.com:443\"");
    event.rule = "";
    expect_line(&event, false, "net: opened api.example.com:443 (192.0.2.7)");
    event.host = event.address;
    expect_line(&event, false, "net: opened 192.0.2.7:443");
    event = connection("closed");
    event.bytes_in = 1234;
    event.bytes_out = 300;
    event.duration_us = 45250;
    expect_line(&event, false, "net: closed api.example.com:443 1.2 kB in, 300 B out, 45 ms");
    event.reason = "no server name in TLS";
    expect_line(&event, false,
                "net: closed api.example.com:443 1.2 kB in, 300 B out, 45 ms; no server name in "
                "TLS");
    event = connection("failed");
    event.reason = "Connection refused";
    expect_line(&event, false, "net: failed api.example.com:443 (192.0.2.7): Connection refused");
    expect_line(&refusal, false,
                "net: refused evil.example: no rule allows it; add \"evil.example:443\" to "
                "\"network\"");
    event = refusal;
    event.count = 100;
    event.reason = "";
    expect_line(&event, false,
                "net: refused evil.example, 100 times: add \"evil.example:443\" to \"network\"");
}

static void test_numbers_have_units(void **state)
{
    static const struct {
        uint64_t bytes, microseconds;
        const char *expected;
    } cases[] = {
        { 0, 0, "0 B in, 0 B out, 0.0 ms" },
        { 999, 149, "999 B in, 0 B out, 0.1 ms" },
        { 1000, 9949, "1.0 kB in, 0 B out, 9.9 ms" },
        { 999949, 9950, "999.9 kB in, 0 B out, 10 ms" },
        { 999950, 999499, "1.0 MB in, 0 B out, 999 ms" },
        { 123456789, 999500, "123.5 MB in, 0 B out, 1.0 s" },
        { 5000000000, 90000000, "5.0 GB in, 0 B out, 90.0 s" },
        { 5000000000000000, 1, "5000.0 TB in, 0 B out, 0.0 ms" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_network_event event = connection("closed");
        char expected[128];
        event.bytes_in = cases[i].bytes;
        event.duration_us = cases[i].microseconds;
        (void)snprintf(expected, sizeof expected, "net: closed api.example.com:443 %s",
                       cases[i].expected);
        expect_line(&event, false, expected);
    }
}

static void test_only_the_kind_is_coloured(void **state)
{
    struct tc_network_event event = connection("opened");
    (void)state;
    event.rule = "";
    expect_line(&event, true, "net: \033[32mopened\033[0m api.example.com:443 (192.0.2.7)");
    event = refusal;
    event.fix = event.reason = "";
    expect_line(&event, true, "net: \033[31mrefused\033[0m evil.example");
}

static void test_names_cannot_act_on_a_terminal(void **state)
{
    struct tc_network_event event = refusal;
    (void)state;
    event.host = "a\033[2J\nnet: opened b\xff\xe2\x80\xae";
    event.reason = "x\r";
    event.fix = "y\x7f";
    expect_line(&event, false,
                "net: refused a<U+001B>[2J<U+000A>net: opened b<\\xFF><U+202E>: x<U+000D>; "
                "y<U+007F>");
}

/* ---- the log ---------------------------------------------------------------------------------- */

struct pipe {
    int ends[2];
    struct exec_writer out;
    struct exec_net_log log;
};

static void open_pipe(struct pipe *pipe)
{
    assert_int_equal(pipe2(pipe->ends, O_CLOEXEC | O_NONBLOCK), 0);
    exec_writer_init(&pipe->out, pipe->ends[1]);
    pipe->log = (struct exec_net_log){ .out = &pipe->out };
}

/* Everything that is in the pipe now; free() it. */
static char *read_pipe(const struct pipe *pipe)
{
    const size_t room = 1 << 20;
    char *text = calloc(1, room);
    size_t length = 0;
    ssize_t n;
    assert_non_null(text);
    while (length < room && (n = read(pipe->ends[0], text + length, room - 1 - length)) > 0)
        length += (size_t)n;
    return text;
}

static void close_pipe(struct pipe *pipe)
{
    (void)close(pipe->ends[0]);
    (void)close(pipe->ends[1]);
    tci_buf_free(&pipe->out.pending);
}

static void test_repeated_refusal_is_shown_ever_less_often(void **state)
{
    struct tc_network_event event = refusal;
    struct pipe pipe;
    char *text;
    size_t lines = 0;
    (void)state;
    open_pipe(&pipe);
    for (event.count = 1; event.count <= 2000; event.count++)
        exec_net_log(&pipe.log, &event);
    text = read_pipe(&pipe);
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 4);
    assert_non_null(strstr(text, "evil.example, 1000 times: "));
    free(text);
    close_pipe(&pipe);
}

static void test_lines_that_nobody_reads_are_counted_and_not_kept(void **state)
{
    struct tc_network_event event = connection("opened");
    struct pipe pipe;
    char *text;
    uint64_t lost;
    (void)state;
    open_pipe(&pipe);
    for (int i = 0; i < 10000; i++)
        exec_net_log(&pipe.log, &event);
    assert_true(exec_writer_is_behind(&pipe.out));
    assert_true(pipe.out.pending.length < 70000);
    lost = pipe.log.lost;
    assert_true(lost > 1000);
    for (int i = 0; exec_writer_is_behind(&pipe.out); i++) {
        free(read_pipe(&pipe));
        assert_int_equal(exec_writer_flush(&pipe.out), 0);
        assert_true(i < 1000);
    }
    free(read_pipe(&pipe));
    exec_net_log_end(&pipe.log);
    exec_net_log_end(&pipe.log);
    text = read_pipe(&pipe);
    assert_int_equal(strtoull(text + strlen("net: "), NULL, 10), lost);
    assert_string_equal(strchr(text, 'l'), "lines were lost: nobody read them in time\n");
    free(text);
    close_pipe(&pipe);
}

static void test_raw_terminal_gets_carriage_returns(void **state)
{
    struct exec_terminal *terminal = calloc(1, sizeof *terminal);
    struct pipe pipe;
    char *text;
    (void)state;
    assert_non_null(terminal);
    open_pipe(&pipe);
    pipe.log.terminal = terminal;
    exec_net_log(&pipe.log, &refusal);
    text = read_pipe(&pipe);
    assert_null(strchr(text, '\r'));
    free(text);
    terminal->raw = true;
    exec_net_log(&pipe.log, &refusal);
    text = read_pipe(&pipe);
    assert_string_equal(strchr(text, '\r'), "\r\n");
    free(text);
    close_pipe(&pipe);
    free(terminal);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_has_its_line),
        cmocka_unit_test(test_numbers_have_units),
        cmocka_unit_test(test_only_the_kind_is_coloured),
        cmocka_unit_test(test_names_cannot_act_on_a_terminal),
        cmocka_unit_test(test_repeated_refusal_is_shown_ever_less_often),
        cmocka_unit_test(test_lines_that_nobody_reads_are_counted_and_not_kept),
        cmocka_unit_test(test_raw_terminal_gets_carriage_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
