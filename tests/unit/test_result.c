/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of core/result.h: verdicts, exit statuses, what is kept of output, JSON and its hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/sha256.h"
#include "core/result.h"
#include "json/canonical.h"

static const char trace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

static struct tci_result *new_result(void)
{
    struct tci_result *result = tci_result_new(trace);
    assert_non_null(result);
    result->output_room = 1000;
    return result;
}

/* The JSON of a result, read back. */
static json_t *read_json(struct tci_result *result)
{
    const char *text = tc_result_json(&result->public);
    json_error_t error;
    json_t *json;
    assert_non_null(text);
    json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s in %s", error.text, text);
    return json;
}

static const char *text_in(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    assert_non_null(value);
    if (!json_is_string(value))
        fail_msg("%s is not a text", key);
    return json_string_value(value);
}

static bool is_null_in(const json_t *json, const char *key)
{
    assert_non_null(json_object_get(json, key));
    return json_is_null(json_object_get(json, key));
}

static void keep(struct tci_result *result, enum tc_stream stream, const char *bytes, size_t length)
{
    assert_true(tci_result_keep(result, stream, bytes, length) >= 0);
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static void test_every_verdict_has_its_name_and_sentence(void **state)
{
    static const char *const names[] = {
        [TC_VERDICT_OK] = "ok",
        [TC_VERDICT_FAILED] = "failed",
        [TC_VERDICT_SIGNALED] = "signaled",
        [TC_VERDICT_TIMEOUT] = "timeout",
        [TC_VERDICT_MEMORY] = "memory",
        [TC_VERDICT_CPU] = "cpu",
        [TC_VERDICT_PIDS] = "pids",
        [TC_VERDICT_DISK] = "disk",
        [TC_VERDICT_OUTPUT] = "output",
        [TC_VERDICT_DENIED] = "denied",
        [TC_VERDICT_INVALID_INPUT] = "invalid_input",
        [TC_VERDICT_INVALID_OUTPUT] = "invalid_output",
        [TC_VERDICT_ERROR] = "error",
    };
    (void)state;
    for (unsigned i = 0; i < tci_array_size(names); i++) {
        const char *sentence = tci_verdict_sentence((enum tc_verdict)i);
        assert_string_equal(tc_verdict_name((enum tc_verdict)i), names[i]);
        assert_true(strlen(sentence) > 10 && sentence[strlen(sentence) - 1] == '.');
    }
    assert_string_equal(tc_verdict_name((enum tc_verdict)99), "error");
    assert_string_equal(tc_verdict_name((enum tc_verdict) - 1), "error");
}

static int status_of(enum tc_verdict verdict, int exit_code, int signal)
{
    struct tc_result result = { .verdict = verdict, .exit_code = exit_code, .signal = signal };
    return tc_result_exit_status(&result);
}

static void test_exit_status_follows_the_verdict(void **state)
{
    static const enum tc_verdict refusals[] = { TC_VERDICT_DENIED, TC_VERDICT_INVALID_INPUT,
                                                TC_VERDICT_INVALID_OUTPUT, TC_VERDICT_ERROR,
                                                (enum tc_verdict)99 };
    (void)state;
    assert_int_equal(status_of(TC_VERDICT_OK, 0, 0), 0);
    assert_int_equal(status_of(TC_VERDICT_FAILED, 3, 0), 3);
    assert_int_equal(status_of(TC_VERDICT_FAILED, 126, 0), 126);
    assert_int_equal(status_of(TC_VERDICT_FAILED, 127, 0), 127);
    assert_int_equal(status_of(TC_VERDICT_FAILED, 255, 0), 255);
    assert_int_equal(status_of(TC_VERDICT_SIGNALED, -1, SIGSEGV), 139);
    assert_int_equal(status_of(TC_VERDICT_SIGNALED, -1, SIGKILL), 137);
    /* How the command died says nothing when a limit ended it. */
    assert_int_equal(status_of(TC_VERDICT_TIMEOUT, -1, SIGKILL), 124);
    assert_int_equal(status_of(TC_VERDICT_TIMEOUT, 0, 0), 124);
    assert_int_equal(status_of(TC_VERDICT_MEMORY, 1, 0), 137);
    assert_int_equal(status_of(TC_VERDICT_CPU, -1, SIGKILL), 152);
    assert_int_equal(status_of(TC_VERDICT_DISK, -1, SIGXFSZ), 153);
    assert_int_equal(status_of(TC_VERDICT_OUTPUT, 0, 0), 141);
    /* A refused process is the command's to deal with. */
    assert_int_equal(status_of(TC_VERDICT_PIDS, 0, 0), 0);
    assert_int_equal(status_of(TC_VERDICT_PIDS, 2, 0), 2);
    assert_int_equal(status_of(TC_VERDICT_PIDS, -1, SIGABRT), 134);
    for (size_t i = 0; i < tci_array_size(refusals); i++) {
        assert_int_equal(status_of(refusals[i], -1, 0), 125);
        assert_int_equal(status_of(refusals[i], 0, 0), 125);
        assert_int_equal(status_of(refusals[i], 1, 0), 125);
        assert_int_equal(status_of(refusals[i], -1, SIGKILL), 125);
        assert_int_equal(status_of(refusals[i], 126, 0), 126);
        assert_int_equal(status_of(refusals[i], 127, 0), 127);
    }
    /* Neither an exit code nor a signal: never success. */
    assert_int_equal(status_of(TC_VERDICT_OK, -1, 0), 125);
}

static void test_signals_have_their_usual_names(void **state)
{
    char name[TCI_SIGNAL_NAME_MAX];
    (void)state;
    assert_string_equal(tci_signal_name(SIGKILL, name), "SIGKILL");
    assert_string_equal(tci_signal_name(SIGSYS, name), "SIGSYS");
    assert_string_equal(tci_signal_name(SIGRTMIN, name), "SIGRTMIN+0");
    assert_string_equal(tci_signal_name(SIGRTMAX, name), "SIGRTMIN+30");
    assert_string_equal(tci_signal_name(32, name), "SIG32");
    assert_string_equal(tci_signal_name(1000, name), "SIG1000");
}

/* ---- life ------------------------------------------------------------------------------------- */

static void test_new_result_is_an_error_without_missing_texts(void **state)
{
    struct tci_result *result = tci_result_new(NULL), *other = tci_result_new(NULL);
    struct tc_result *public = &result->public;
    (void)state;
    assert_non_null(result);
    assert_non_null(other);
    assert_int_equal(public->verdict, TC_VERDICT_ERROR);
    assert_int_equal(public->exit_code, -1);
    assert_non_null(public->backend);
    assert_non_null(public->layers);
    assert_string_equal(public->stdout_data, "");
    assert_string_equal(public->stderr_data, "");
    assert_int_equal(strlen(public->call_id), 36);
    assert_true(tci_trace_id_is_valid(public->trace_id));
    assert_string_not_equal(public->call_id, other->public.call_id);
    assert_string_not_equal(public->trace_id, other->public.trace_id);
    assert_int_equal(tc_result_exit_status(public), 125);
    tc_result_free(public);
    tc_result_free(&other->public);
    tc_result_free(NULL);
}

static void test_trace_id_of_the_caller_is_kept_in_one_spelling(void **state)
{
    struct tci_result *result = tci_result_new("4BF92F3577B34DA6A3CE929D0E0E4736");
    (void)state;
    assert_non_null(result);
    assert_string_equal(result->public.trace_id, trace);
    tc_result_free(&result->public);
    assert_true(tci_trace_id_is_valid(trace));
    assert_false(tci_trace_id_is_valid(""));
    assert_false(tci_trace_id_is_valid("4bf92f3577b34da6a3ce929d0e0e473"));
    assert_false(tci_trace_id_is_valid("4bf92f3577b34da6a3ce929d0e0e47366"));
    assert_false(tci_trace_id_is_valid("4bf92f3577b34da6a3ce929d0e0e473g"));
    assert_false(tci_trace_id_is_valid("00000000000000000000000000000000"));
}

static void test_long_reason_is_cut_between_characters(void **state)
{
    struct tci_result *result = new_result();
    char text[2000];
    (void)state;
    /* Two-byte characters behind an even and an odd number of letters: one of them is cut in half. */
    for (int odd = 0; odd < 2; odd++) {
        memset(text, 'x', 2);
        for (size_t i = (size_t)odd; i + 2 < sizeof text; i += 2)
            memcpy(text + i, "\xc3\xa9", 2);
        text[sizeof text - 1] = '\0';
        text[sizeof text - 2] = '\0';
        tci_result_verdict(result, TC_VERDICT_FAILED, text, "%s", text);
        assert_int_equal(result->public.verdict, TC_VERDICT_FAILED);
        assert_int_equal(strlen(result->public.reason), odd ? 767 : 766);
        assert_int_equal(strlen(result->public.fix), odd ? 511 : 510);
    }
    tci_result_verdict(result, TC_VERDICT_OK, NULL, "%s", "");
    assert_string_equal(result->public.fix, "");
    assert_string_equal(result->public.reason, "");
    tc_result_free(&result->public);
}

/* ---- output ----------------------------------------------------------------------------------- */

static void test_output_is_kept_up_to_its_room_and_counted_beyond(void **state)
{
    struct tci_result *result = new_result();
    struct tc_result *public = &result->public;
    (void)state;
    result->output_room = 10;
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDOUT, "12345", 5), 0);
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDERR, "abc", 3), 0);
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDOUT, "67890", 5), 1);
    assert_string_equal(public->stdout_data, "1234567");
    assert_int_equal(public->stdout_length, 7);
    assert_int_equal(public->stdout_bytes, 10);
    assert_int_equal(public->stdout_truncated, 1);
    assert_int_equal(public->stderr_truncated, 0);
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDERR, "d", 1), 1);
    assert_string_equal(public->stderr_data, "abc");
    assert_int_equal(public->stderr_bytes, 4);
    assert_int_equal(public->stderr_truncated, 1);
    tc_result_free(public);
}

static void test_output_that_fits_exactly_is_not_truncated(void **state)
{
    struct tci_result *result = new_result();
    (void)state;
    result->output_room = 5;
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDOUT, "12345", 5), 0);
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDOUT, "", 0), 0);
    assert_int_equal(result->public.stdout_truncated, 0);
    tc_result_free(&result->public);
}

static void test_new_result_keeps_nothing(void **state)
{
    struct tci_result *result = tci_result_new(NULL);
    (void)state;
    assert_non_null(result);
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDOUT, "x", 1), 1);
    assert_int_equal(result->public.stdout_length, 0);
    assert_string_equal(result->public.stdout_data, "");
    tc_result_free(&result->public);
}

static void test_text_stays_text_in_json(void **state)
{
    static const char text[] = "caf\xc3\xa9 \xf0\x9f\x8e\xb2\n\t\x1b[31m\"\\\x7f\xc2\x9b"
                               "31m\xe2\x80\xae\xef\xbf\xbd</script>";
    struct tci_result *result = new_result();
    json_t *json;
    (void)state;
    keep(result, TC_STREAM_STDOUT, text, strlen(text));
    json = read_json(result);
    assert_string_equal(text_in(json, "stdout"), text);
    assert_string_equal(text_in(json, "stdout_encoding"), "utf-8");
    assert_string_equal(text_in(json, "stderr"), "");
    assert_string_equal(text_in(json, "stderr_encoding"), "utf-8");
    /* Nothing in the JSON itself acts on a terminal. */
    for (const char *p = tc_result_json(&result->public); *p; p++)
        assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
    assert_null(strstr(tc_result_json(&result->public), "\xc2\x9b"));
    json_decref(json);
    tc_result_free(&result->public);
}

static void test_bytes_that_are_not_text_become_base64(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *expected;
    } cases[] = {
        { "a\0b", 3, "YQBi" },         /* NUL */
        { "\xff\xfe", 2, "//4=" },     /* no UTF-8 at all */
        { "ok\xc3", 3, "b2vD" },       /* half a character, and nothing was cut */
        { "\xed\xa0\x80", 3, "7aCA" }, /* a surrogate */
        { "\xc0\xaf", 2, "wK8=" },     /* overlong */
        { "\xc3\x28 text", 7, "wyggdGV4dA==" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tci_result *result = new_result();
        json_t *json;
        keep(result, TC_STREAM_STDERR, cases[i].bytes, cases[i].length);
        json = read_json(result);
        assert_string_equal(text_in(json, "stderr"), cases[i].expected);
        assert_string_equal(text_in(json, "stderr_encoding"), "base64");
        assert_string_equal(text_in(json, "stdout_encoding"), "utf-8");
        json_decref(json);
        tc_result_free(&result->public);
    }
}

/* Cut after each byte of a text of characters of one to four bytes. */
static void test_cut_text_ends_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb2z";
    static const size_t ends[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };
    (void)state;
    for (size_t room = 0; room < strlen(text); room++) {
        struct tci_result *result = new_result();
        json_t *json;
        result->output_room = room;
        keep(result, TC_STREAM_STDOUT, text, strlen(text));
        json = read_json(result);
        assert_string_equal(text_in(json, "stdout_encoding"), "utf-8");
        assert_int_equal(strlen(text_in(json, "stdout")), ends[room]);
        assert_memory_equal(text_in(json, "stdout"), text, ends[room]);
        assert_true(json_is_true(json_object_get(json, "stdout_truncated")));
        assert_int_equal(json_integer_value(json_object_get(json, "stdout_bytes")), strlen(text));
        json_decref(json);
        tc_result_free(&result->public);
    }
}

static void test_cut_binary_output_is_still_base64(void **state)
{
    static const char *const bytes[] = { "ab\xff\xc3(", "ab\x80(", "ab\xc3\xc3(", "ab\xf8\x80(" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(bytes); i++) {
        struct tci_result *result = new_result();
        json_t *json;
        result->output_room = strlen(bytes[i]) - 1;
        keep(result, TC_STREAM_STDOUT, bytes[i], strlen(bytes[i]));
        json = read_json(result);
        assert_string_equal(text_in(json, "stdout_encoding"), "base64");
        json_decref(json);
        tc_result_free(&result->public);
    }
}

/* ---- denials ---------------------------------------------------------------------------------- */

static void test_denials_are_listed_once_and_not_without_end(void **state)
{
    struct tci_result *result = new_result();
    struct tc_result *public = &result->public;
    char target[32];
    (void)state;
    for (int round = 0; round < 3; round++)
        assert_int_equal(tci_result_deny(result, "read", "/etc/shadow", "filesystem"), 0);
    assert_int_equal(tci_result_deny(result, "write", "/etc/shadow", "filesystem"), 0);
    assert_int_equal(public->denial_count, 2);
    assert_int_equal(public->denial_times[0], 3);
    assert_int_equal(public->denial_times[1], 1);
    assert_int_equal(tci_result_deny_times(result, "write", "/etc/shadow", "filesystem", 40), 0);
    assert_int_equal(public->denial_times[1], 41);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(target, sizeof target, "/file/%d", i);
        assert_int_equal(tci_result_deny(result, "read", target, "filesystem"), 0);
    }
    assert_int_equal(public->denial_count, TCI_DENIALS_MAX + 1);
    assert_string_equal(public->denials[0].target, "/etc/shadow");
    assert_string_equal(public->denials[2].target, "/file/0");
    assert_string_equal(public->denials[TCI_DENIALS_MAX - 1].target, "/file/253");
    assert_string_equal(public->denials[TCI_DENIALS_MAX].kind, "more");
    assert_non_null(strstr(public->denials[TCI_DENIALS_MAX].rule, "256"));
    assert_int_equal(public->denial_times[TCI_DENIALS_MAX], 1002 - TCI_DENIALS_MAX);
    /* What is listed is still counted where it stands. */
    assert_int_equal(tci_result_deny(result, "read", "/etc/shadow", "filesystem"), 0);
    assert_int_equal(public->denial_times[0], 4);
    assert_int_equal(public->denial_times[TCI_DENIALS_MAX], 1002 - TCI_DENIALS_MAX);
    tc_result_free(public);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static void fill(struct tci_result *result)
{
    static const struct tc_file files[] = {
        { "/workspace/a.png", 12, "00", "image/png", "out/a.png" },
        { "/workspace/b.bin", INT64_MAX, "11", "application/octet-stream", NULL },
    };
    static const struct tc_connection connections[] = {
        { .name = "api.example.com",
          .address = "192.0.2.7",
          .port = 443,
          .protocol = "tcp",
          .rule = "api.example.com:443",
          .note = "no \"server\" name",
          .bytes_in = INT64_MAX,
          .bytes_out = 9007199254740993,
          .started_us = 1,
          .duration_us = 45250 },
        { .port = 80, .protocol = "tcp", .error = "Connection \x1b refused\xff" },
    };
    struct tc_result *public = &result->public;
    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "tc-0011223344556677");
    public->tool = "calc";
    public->agent = "researcher";
    public->backend = "jail";
    public->layers = "userns mountns  landlock:7 ";
    tci_result_verdict(result, TC_VERDICT_SIGNALED, "do\n\"that\"", "it \xff failed \xc3");
    public->signal = SIGKILL;
    keep(result, TC_STREAM_STDOUT, "caf\xc3\xa9\x01\x7f\xe2\x80\xae\n\"\\/", 14);
    keep(result, TC_STREAM_STDERR, "\xff\0\x01", 3);
    public->files = files;
    public->file_count = tci_array_size(files);
    public->connections = connections;
    public->connection_count = tci_array_size(connections);
    public->network_unlisted = 5;
    assert_int_equal(tci_result_deny(result, "read", "/a\xff\x80z\n", "x"), 0);
    assert_int_equal(tci_result_deny(result, "network", "\xf0\x9f\x8e", ""), 0);
    public->usage = (struct tc_usage){ .duration_us = 12345,
                                       .cpu_us = 1,
                                       .memory_peak_bytes = (uint64_t)1 << 62,
                                       .bytes_written = 9007199254740993 };
}

static void test_json_has_every_member_with_its_value(void **state)
{
    struct tci_result *result = new_result();
    json_t *json, *usage, *layers, *file, *connection;
    (void)state;
    fill(result);
    json = read_json(result);
    assert_int_equal(json_object_size(json), 30);
    assert_string_equal(text_in(json, "call_id"), result->public.call_id);
    assert_string_equal(text_in(json, "sandbox_id"), "tc-0011223344556677");
    assert_string_equal(text_in(json, "trace_id"), trace);
    assert_string_equal(text_in(json, "tool"), "calc");
    assert_string_equal(text_in(json, "agent"), "researcher");
    assert_true(is_null_in(json, "session"));
    assert_string_equal(text_in(json, "mode"), "live");
    assert_string_equal(text_in(json, "backend"), "jail");
    layers = json_object_get(json, "layers");
    assert_int_equal(json_array_size(layers), 3);
    assert_string_equal(json_string_value(json_array_get(layers, 0)), "userns");
    assert_string_equal(json_string_value(json_array_get(layers, 2)), "landlock:7");
    assert_string_equal(text_in(json, "verdict"), "signaled");
    assert_string_equal(text_in(json, "reason"), "it \xef\xbf\xbd failed \xef\xbf\xbd");
    assert_string_equal(text_in(json, "fix"), "do\n\"that\"");
    assert_true(is_null_in(json, "exit_code"));
    assert_string_equal(text_in(json, "signal"), "SIGKILL");
    assert_true(is_null_in(json, "output"));
    assert_true(is_null_in(json, "state_hash"));
    usage = json_object_get(json, "usage");
    assert_true(json_real_value(json_object_get(usage, "duration_ms")) == 12.345);
    assert_true(json_real_value(json_object_get(usage, "cpu_ms")) == 0.001);
    assert_true(is_null_in(usage, "processes_peak"));
    assert_int_equal(json_integer_value(json_object_get(usage, "bytes_written")), 9007199254740993);
    file = json_array_get(json_object_get(json, "files"), 0);
    assert_string_equal(text_in(file, "path"), "/workspace/a.png");
    assert_string_equal(text_in(file, "saved"), "out/a.png");
    assert_string_equal(text_in(file, "media_type"), "image/png");
    assert_true(is_null_in(json_array_get(json_object_get(json, "files"), 1), "saved"));
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(json, "denials"), 0), "count")),
                     1);
    connection = json_array_get(json_object_get(json, "connections"), 0);
    assert_string_equal(text_in(connection, "name"), "api.example.com");
    assert_string_equal(text_in(connection, "address"), "192.0.2.7");
    assert_int_equal(json_integer_value(json_object_get(connection, "port")), 443);
    assert_string_equal(text_in(connection, "protocol"), "tcp");
    assert_string_equal(text_in(connection, "rule"), "api.example.com:443");
    assert_string_equal(text_in(connection, "note"), "no \"server\" name");
    assert_true(is_null_in(connection, "error"));
    assert_true(json_real_value(json_object_get(connection, "duration_ms")) == 45.25);
    assert_true(json_real_value(json_object_get(connection, "started_ms")) == 0.001);
    connection = json_array_get(json_object_get(json, "connections"), 1);
    assert_true(is_null_in(connection, "name") && is_null_in(connection, "address"));
    assert_true(is_null_in(connection, "rule") && is_null_in(connection, "note"));
    assert_string_equal(text_in(connection, "error"), "Connection \x1b refused\xef\xbf\xbd");
    assert_int_equal(json_integer_value(json_object_get(json, "network_unlisted")), 5);
    json_decref(json);
    tc_result_free(&result->public);
}

static void test_exit_code_is_a_number_and_signal_null(void **state)
{
    struct tci_result *result = new_result();
    json_t *json;
    (void)state;
    result->public.verdict = TC_VERDICT_OK;
    result->public.exit_code = 0;
    json = read_json(result);
    assert_true(json_is_integer(json_object_get(json, "exit_code")));
    assert_int_equal(json_integer_value(json_object_get(json, "exit_code")), 0);
    assert_true(is_null_in(json, "signal"));
    assert_true(is_null_in(json, "sandbox_id"));
    assert_true(is_null_in(json, "backend"));
    assert_int_equal(json_array_size(json_object_get(json, "layers")), 0);
    json_decref(json);
    tc_result_free(&result->public);
}

static void test_json_is_made_once(void **state)
{
    struct tci_result *result = new_result();
    (void)state;
    assert_ptr_equal(tc_result_json(&result->public), tc_result_json(&result->public));
    tc_result_free(&result->public);
}

/* What a stranger does to check the hash: read, remove two members, canonical form, SHA-256. */
static void assert_hash_is_right(struct tci_result *result)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    json_t *json = read_json(result);
    const char *said = text_in(json, "hash"), *canonical = NULL;
    char *copy = strdup(said), *rest;
    assert_non_null(arena);
    assert_non_null(copy);
    json_object_del(json, "mode");
    json_object_del(json, "hash");
    json_object_del(json, "state_hash");
    rest = json_dumps(json, 0);
    assert_non_null(rest);
    if (tci_json_canonical(arena, rest, strlen(rest), &canonical, &error) < 0)
        fail_msg("%s", error.message);
    tci_sha256_text(canonical, strlen(canonical), hash);
    assert_string_equal(hash, copy);
    free(rest);
    free(copy);
    json_decref(json);
}

static void test_hash_is_that_of_the_canonical_form(void **state)
{
    struct tci_result *result = new_result();
    (void)state;
    fill(result);
    assert_hash_is_right(result);
    tc_result_free(&result->public);
    result = new_result();
    assert_hash_is_right(result);
    tc_result_free(&result->public);
}

static void test_hash_of_random_bytes_can_be_checked(void **state)
{
    uint32_t x = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct tci_result *result = new_result();
        char bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++) {
            x = x * 1664525 + 1013904223;
            /* Mostly text, so that both encodings come up. */
            bytes[i] = (char)(round % 3 ? (x >> 24) & 0x7f : x >> 24);
            bytes[i] = bytes[i] ? bytes[i] : 'x';
        }
        result->output_room = x % 80;
        keep(result, TC_STREAM_STDOUT, bytes, 40);
        keep(result, TC_STREAM_STDERR, bytes + 40, 23);
        bytes[63] = '\0';
        tci_result_verdict(result, TC_VERDICT_FAILED, bytes + 30, "%s", bytes);
        result->public.usage.cpu_us = x;
        result->public.usage.bytes_written = (uint64_t)x << (x % 32);
        assert_hash_is_right(result);
        tc_result_free(&result->public);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_verdict_has_its_name_and_sentence),
        cmocka_unit_test(test_exit_status_follows_the_verdict),
        cmocka_unit_test(test_signals_have_their_usual_names),
        cmocka_unit_test(test_new_result_is_an_error_without_missing_texts),
        cmocka_unit_test(test_trace_id_of_the_caller_is_kept_in_one_spelling),
        cmocka_unit_test(test_long_reason_is_cut_between_characters),
        cmocka_unit_test(test_output_is_kept_up_to_its_room_and_counted_beyond),
        cmocka_unit_test(test_output_that_fits_exactly_is_not_truncated),
        cmocka_unit_test(test_new_result_keeps_nothing),
        cmocka_unit_test(test_text_stays_text_in_json),
        cmocka_unit_test(test_bytes_that_are_not_text_become_base64),
        cmocka_unit_test(test_cut_text_ends_between_characters),
        cmocka_unit_test(test_cut_binary_output_is_still_base64),
        cmocka_unit_test(test_denials_are_listed_once_and_not_without_end),
        cmocka_unit_test(test_json_has_every_member_with_its_value),
        cmocka_unit_test(test_exit_code_is_a_number_and_signal_null),
        cmocka_unit_test(test_json_is_made_once),
        cmocka_unit_test(test_hash_is_that_of_the_canonical_form),
        cmocka_unit_test(test_hash_of_random_bytes_can_be_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
