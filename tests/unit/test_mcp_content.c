/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of what a client of the MCP server is told about a call: its result as content, the question
 * to a person, log lines and progress. No cage is made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/approval.h"
#include "mcp/job.h"

/* ---- content -------------------------------------------------------------------------------------- */

static struct tc_result plain_result(const char *out)
{
    struct tc_result result = {
        .call_id = "01", .backend = "jail", .layers = "", .mode = TC_MODE_LIVE
    };
    result.stdout_data = out;
    result.stdout_length = strlen(out);
    result.stderr_data = "";
    return result;
}

static json_t *write_with(const struct tci_mcp_content *content, size_t maximum)
{
    struct tci_buf out = TCI_BUF_INIT(maximum);
    struct tc_error error = { 0 };
    json_t *json;
    if (tci_mcp_content_write(content, &out, &error) < 0)
        fail_msg("%s", error.message);
    assert_null(memchr(out.data, '\n', out.length)); /* one message is one line */
    json = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    tci_buf_free(&out);
    return json;
}

static json_t *answer_of(const struct tc_result *result)
{
    return write_with(&(struct tci_mcp_content){ .version = TCI_MCP_2025_11_25, .result = result },
                      TCI_MCP_ANSWER_MAX);
}

static json_t *item(const json_t *answer, size_t number)
{
    return json_array_get(json_object_get(answer, "content"), number);
}

static const char *member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *meta(const json_t *answer)
{
    return json_object_get(json_object_get(answer, "_meta"), "toolcage");
}

static void test_only_ok_is_no_error(void **state)
{
    (void)state;
    for (int verdict = TC_VERDICT_OK; verdict <= TC_VERDICT_ERROR; verdict++) {
        struct tc_result result = plain_result("x");
        json_t *answer;
        char begin[64];
        result.verdict = (enum tc_verdict)verdict;
        (void)snprintf(result.reason, sizeof result.reason, "because");
        (void)snprintf(result.fix, sizeof result.fix, "do so");
        (void)snprintf(begin, sizeof begin, "%s: because\nFix: do so",
                       tc_verdict_name(result.verdict));
        answer = answer_of(&result);
        assert_int_equal(json_is_true(json_object_get(answer, "isError")),
                         verdict != TC_VERDICT_OK);
        assert_string_equal(member(item(answer, 0), "text"), verdict ? begin : "x");
        assert_string_equal(member(meta(answer), "verdict"), tc_verdict_name(result.verdict));
        json_decref(answer);
    }
}

static void test_cut_output_ends_before_the_torn_character(void **state)
{
    (void)state;
    struct tc_result result = plain_result("a\xe2\x82");
    json_t *answer = answer_of(&result);
    assert_string_equal(member(item(answer, 0), "type"), "resource"); /* whole, so it is no text */
    json_decref(answer);
    result.stdout_truncated = 1;
    answer = answer_of(&result);
    assert_string_equal(member(item(answer, 0), "text"), "a");
    json_decref(answer);
    result = plain_result("a\xff\xff\xff\xff");
    result.stdout_truncated = 1;
    answer = answer_of(&result);
    assert_string_equal(member(json_object_get(item(answer, 0), "resource"), "blob"), "Yf////8=");
    json_decref(answer);
}

static void test_more_than_a_message_holds_is_cut_and_said(void **state)
{
    const size_t length = 3 * 1024 * 1024;
    char *text = malloc(length + 1);
    struct tc_result result;
    json_t *answer;
    (void)state;
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    result = plain_result(text);
    answer = write_with(
        &(struct tci_mcp_content){ .version = TCI_MCP_2025_11_25, .result = &result },
        2 * 1024 * 1024);
    assert_int_equal(json_string_length(json_object_get(item(answer, 0), "text")), 1024 * 1024);
    assert_true(json_is_true(json_object_get(meta(answer), "stdout_truncated")));
    json_decref(answer);
    free(text);
}

static void test_structured_output_is_for_objects_and_new_clients(void **state)
{
    struct tc_result result = plain_result(" {\"a\":1} ");
    json_t *answer;
    (void)state;
    result.output_json = "{\"a\":1}";
    answer = answer_of(&result);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(answer, "structuredContent"), "a")), 1);
    assert_string_equal(member(item(answer, 0), "text"), "{\"a\":1}");
    json_decref(answer);
    answer = write_with(
        &(struct tci_mcp_content){ .version = TCI_MCP_2025_03_26, .result = &result },
        TCI_MCP_ANSWER_MAX);
    assert_null(json_object_get(answer, "structuredContent"));
    assert_string_equal(member(item(answer, 0), "text"), " {\"a\":1} ");
    json_decref(answer);
    result.output_json = "[1]";
    answer = answer_of(&result);
    assert_null(json_object_get(answer, "structuredContent"));
    json_decref(answer);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/toolcage-content-XXXXXX";

static int make_directory(void **state)
{
    char path[128];
    int fd;
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/toolcage-content-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    (void)snprintf(path, sizeof path, "%s/t.txt", directory);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || tci_write_all(fd, "hello", 5) < 0)
        return -1;
    (void)close(fd);
    (void)snprintf(path, sizeof path, "%s/link.txt", directory);
    if (symlink("/etc/hostname", path) < 0)
        return -1;
    return 0;
}

static int remove_directory(void **state)
{
    static const char *const names[] = { "t.txt", "link.txt" };
    char path[128];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    return rmdir(directory);
}

/* One file of a result, at `saved`. */
static json_t *file_content(const char *saved, const char *type, uint64_t size, const char *uri)
{
    struct tc_file file = {
        .path = "/tmp/\x1b[2Jt.txt", .size = size, .media_type = type, .saved = saved
    };
    struct tc_result result = plain_result("");
    const char *uris[] = { uri };
    struct tci_mcp_content content = {
        .version = TCI_MCP_2025_11_25, .result = &result, .out_directory = directory, .uris = uris
    };
    result.files = &file;
    result.file_count = 1;
    return write_with(&content, TCI_MCP_ANSWER_MAX);
}

static void expect_type(const char *name, const char *type, uint64_t size, const char *uri,
                        const char *expected)
{
    char saved[256];
    json_t *answer;
    (void)snprintf(saved, sizeof saved, "%s%s", *name == '/' ? "" : directory, name);
    answer = file_content(saved, type, size, uri);
    assert_string_equal(member(item(answer, 0), "type"), expected);
    json_decref(answer);
}

static void test_a_file_is_read_below_its_directory_only(void **state)
{
    (void)state;
    char whole[128];
    (void)snprintf(whole, sizeof whole, "%s/t.txt", directory);
    json_t *answer = file_content(whole, "text/plain", 5, "toolcage://file/1");
    assert_string_equal(member(json_object_get(item(answer, 0), "resource"), "text"), "hello");
    json_decref(answer);
    (void)snprintf(whole, sizeof whole, "%s/link.txt", directory);
    answer = file_content(whole, "text/plain", 5, "toolcage://file/1");
    assert_string_equal(member(item(answer, 0), "type"), "resource_link");
    json_decref(answer);
    (void)snprintf(whole, sizeof whole, "%s/../../etc/hostname", directory);
    answer = file_content(whole, "text/plain", 5, "toolcage://file/1");
    assert_string_equal(member(item(answer, 0), "type"), "resource_link");
    json_decref(answer);
    expect_type("/etc/hostname", "text/plain", 5, "toolcage://file/1", "resource_link");
    expect_type("/etc/hostname", "text/plain", 5, NULL, "text"); /* a note */
    answer = file_content(NULL, "text/plain", 5, NULL);
    assert_string_equal(member(item(answer, 0), "type"), "text");
    assert_non_null(strstr(member(item(answer, 0), "text"), "not kept here"));
    json_decref(answer);
}

static void test_the_kind_of_a_file_decides_its_form(void **state)
{
    (void)state;
    const char *uri = "toolcage://file/1";
    expect_type("x/t.txt", "text/plain", 5, uri, "resource_link"); /* beside the directory */
    static const struct {
        const char *type;
        uint64_t size;
        const char *expected;
    } cases[] = {
        { "image/png", 5, "image" },
        { "image/png", 2 * 1024 * 1024, "resource_link" },
        { "image/svg+xml", 5, "resource" },
        { "audio/wav", 5, "audio" },
        { "application/json", 5, "resource" },
        { "application/x-ipynb+json", 5, "resource" },
        { "text/plain", 64 * 1024 + 1, "resource_link" },
        { "application/pdf", 5, "resource_link" },
        { "application/octet-stream", 5, "resource_link" },
    };
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        char saved[128];
        json_t *answer;
        (void)snprintf(saved, sizeof saved, "%s/t.txt", directory);
        answer = file_content(saved, cases[i].type, cases[i].size, uri);
        assert_string_equal(member(item(answer, 0), "type"), cases[i].expected);
        json_decref(answer);
    }
}

static void test_an_answer_is_written_as_a_whole_message(void **state)
{
    struct tc_result result = plain_result("x");
    json_t *id = json_string("a\n\"b"), *answer;
    struct tci_mcp_content content = { .version = TCI_MCP_2025_11_25, .result = &result, .id = id };
    (void)state;
    answer = write_with(&content, TCI_MCP_ANSWER_MAX);
    assert_string_equal(member(answer, "jsonrpc"), "2.0");
    assert_string_equal(member(answer, "id"), "a\n\"b");
    assert_string_equal(member(item(json_object_get(answer, "result"), 0), "text"), "x");
    assert_int_equal(json_object_size(answer), 3);
    json_decref(answer);
    result.output_json = "{\n\"a\":\r\n1}"; /* one line all the same: see write_with */
    answer = write_with(&content, TCI_MCP_ANSWER_MAX);
    assert_non_null(json_object_get(json_object_get(answer, "result"), "structuredContent"));
    json_decref(answer);
    json_decref(id);
}

/* Too little here would let many answers need more than there is. */
static void test_the_memory_of_an_answer_is_known_before(void **state)
{
    enum { size = 1000000 };
    char *bytes = malloc(size);
    struct tc_result result = plain_result("");
    struct tci_mcp_content content = { .version = TCI_MCP_2025_11_25, .result = &result };
    struct tci_buf out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 1, size);
    result.stdout_data = result.stderr_data = bytes;
    result.stdout_length = result.stderr_length = size;
    assert_int_equal(tci_mcp_content_write(&content, &out, NULL), 0);
    assert_in_range(tci_mcp_content_most(&content), out.length, out.length + 100000);
    result.stdout_length = SIZE_MAX;
    assert_int_equal(tci_mcp_content_most(&content), TCI_MCP_ANSWER_MAX);
    tci_buf_free(&out);
    free(bytes);
}

/* ---- the question --------------------------------------------------------------------------------- */

static char *question(const struct tc_approval *approval)
{
    struct tci_buf out = TCI_BUF_INIT(65536);
    char *text;
    tci_mcp_elicit_text(&out, approval);
    text = tci_buf_take(&out, NULL);
    assert_non_null(text);
    return text;
}

static const char *const none[] = { NULL };

static void test_a_question_shows_everything_escaped(void **state)
{
    struct tc_approval approval = {
        .tool = "t\nTool: \"harmless\"",
        .agent = "a",
        .arguments_json = "{\"x\":\"\xe2\x80\xae\"}",
        .argv = (const char *const[]){ "rm", "-rf", "\x1b[2J\"\\", "\xff", NULL },
        .readable = none,
        .writable = (const char *const[]){ "/home:/work", NULL },
        .network = (const char *const[]){ "none", NULL },
    };
    char *text = question(&approval);
    (void)state;
    assert_string_equal(text, "A tool call needs your approval.\n"
                              "Tool: \"t\\u{a}Tool: \\\"harmless\\\"\"\n"
                              "Agent: \"a\"\n"
                              "Arguments: {\"x\":\"\\u{202e}\"}\n"
                              "Command: \"rm\" \"-rf\" \"\\u{1b}[2J\\\"\\\\\" \"\\x{ff}\"\n"
                              "Writes: \"/home:/work\"\n"
                              "Network: \"none\"");
    free(text);
}

static void test_blanks_and_marks_cannot_put_anything_out_of_sight(void **state)
{
    static const struct {
        const char *value, *shown;
    } cases[] = {
        { "a        b", "a        b" },
        { "a         b", "a\\u{20 x9}b" },
        { "a         5", "a\\u{20 x9}5" }, /* the number ends */
        { "\xc2\xa0\xe2\x80\x83\xe3\x80\x80", "\\u{a0}\\u{2003}\\u{3000}" },
        { "\xe3\x80\x80\xe3\x80\x80\xe3\x80\x80\xe3\x80\x80.", "\\u{3000 x4}." },
        { "\n\n\n\n\n", "\\u{a x5}" },
        { "\xff\xff\xff\xff", "\\x{ff x4}" },
        { "\\u{20 x9}", "\\\\u{20 x9}" },
        { "....................", "...................." },
        { "a\xcc\xb6\xcc\x81", "a\\u{336}\\u{301}" }, /* struck out */
        { "\xcd\xaf\xcd\xaf\xcd\xaf\xcd\xaf", "\\u{36f x4}" },
        { "\xee\x80\x80\xef\xbf\xbe", "\\u{e000}\\u{fffe}" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_approval approval = { .tool = "t",
                                        .argv = (const char *const[]){ cases[i].value, NULL },
                                        .readable = none,
                                        .writable = none,
                                        .network = none };
        char *text = question(&approval), expected[128];
        (void)snprintf(expected, sizeof expected, "\nCommand: \"%s\"", cases[i].shown);
        assert_string_equal(strstr(text, "\nCommand"), expected);
        free(text);
    }
}

/* What strangers say is shown whole or not at all; how long it is stays known. */
static void test_a_question_is_whole_or_too_long(void **state)
{
    char *value = calloc(1, 1000001);
    struct tc_approval approval = { .tool = "t",
                                    .argv = (const char *const[]){ "sh", value, NULL },
                                    .readable = none,
                                    .writable = none,
                                    .network = none };
    static const size_t sizes[] = { 12000, 16000, 1000000 };
    (void)state;
    assert_non_null(value);
    for (size_t i = 0; i < tci_array_size(sizes); i++) {
        struct tci_buf out = TCI_BUF_INIT(TCI_APPROVAL_SHOWN_MAX);
        size_t length;
        for (size_t at = 0; at < sizes[i]; at++)
            value[at] = at % 2 ? 'x' : '.';
        length = tci_mcp_elicit_text(&out, &approval);
        assert_in_range(length, sizes[i] + 50, sizes[i] + 80);
        if (length <= TCI_APPROVAL_SHOWN_MAX)
            assert_non_null(strstr(out.data, value));
        assert_true(length == out.length || length > TCI_APPROVAL_SHOWN_MAX);
        assert_true(out.length <= TCI_APPROVAL_SHOWN_MAX);
        tci_buf_free(&out);
    }
    approval.argv = none;
    approval.input = value;
    approval.input_length = 20000;
    assert_true(tci_mcp_elicit_text(&(struct tci_buf)TCI_BUF_INIT(0), &approval) > 20000);
    approval.arguments_json = value;
    approval.input_length = 1000001;
    assert_in_range(tci_mcp_elicit_text(&(struct tci_buf)TCI_BUF_INIT(0), &approval), 1000000,
                    1000100); /* "the arguments" */
    free(value);
}

static void test_long_lists_of_the_policy_are_cut_in_their_middle(void **state)
{
    const char *paths[1002] = { "/first" };
    struct tc_approval approval = {
        .tool = "t", .argv = none, .readable = none, .writable = paths, .network = none
    };
    char *text;
    (void)state;
    for (size_t i = 1; i < 1000; i++)
        paths[i] = "/more/more";
    paths[1000] = "/last";
    text = question(&approval);
    assert_non_null(strstr(text, "\nWrites: \"/first\" \"/more/more\" "));
    assert_non_null(strstr(text, "\"/more/more\" [843 more of the policy are not shown here, "
                                 "8430 bytes] \"/more/more\""));
    assert_string_equal(text + strlen(text) - 8, " \"/last\"");
    assert_true(strlen(text) < 2300);
    free(text);
}

/* ---- lines and progress --------------------------------------------------------------------------- */

struct heard {
    struct tci_mcp_loop *loop;
    struct tci_mcp_session session;
    struct tci_mcp_request request;
    struct tci_mcp_job job;
    char text[65536];
    size_t messages;
};

static void hear(void *context, uint64_t stream, bool last, const char *text, size_t length)
{
    struct heard *heard = context;
    json_t *json = json_loadb(text, length, 0, NULL), *params = json_object_get(json, "params");
    size_t at = strlen(heard->text);
    assert_int_equal(stream, 5);
    assert_false(last);
    assert_non_null(json);
    if (json_object_get(params, "data"))
        (void)snprintf(heard->text + at, sizeof heard->text - at, "<%s>", member(params, "data"));
    else
        (void)snprintf(heard->text + at, sizeof heard->text - at, "(%g %s)",
                       json_number_value(json_object_get(params, "progress")),
                       member(params, "message"));
    heard->messages++;
    json_decref(json);
}

static struct heard *begin_hearing(bool wants_progress)
{
    struct heard *heard = calloc(1, sizeof *heard);
    assert_non_null(heard);
    assert_int_equal(tci_mcp_loop_new(1, false, &heard->loop, NULL), 0);
    heard->session.transport = (struct tci_mcp_transport){ .send = hear, .context = heard };
    heard->session.state = TCI_MCP_READY;
    heard->session.level = TCI_MCP_INFO;
    heard->request.session = &heard->session;
    heard->request.stream = 5;
    heard->request.progress_token = json_integer(1);
    heard->job.request = &heard->request;
    heard->job.loop = heard->loop;
    heard->job.tool = strdup("t");
    heard->job.wants_progress = wants_progress;
    heard->job.timeout_ms = UINT64_MAX;
    assert_int_equal(pthread_mutex_init(&heard->job.lock, NULL), 0);
    tci_mcp_lines_begin(&heard->job);
    return heard;
}

static void print(struct heard *heard, const char *text)
{
    assert_int_equal(tci_mcp_lines_output(&heard->job, TC_STREAM_STDERR, text, strlen(text)), 0);
}

static void end_hearing(struct heard *heard, const char *expected)
{
    tci_mcp_lines_end(&heard->job);
    tci_mcp_loop_drain(heard->loop);
    if (expected)
        assert_string_equal(heard->text, expected);
    json_decref(heard->request.progress_token);
    tci_mcp_lines_free(&heard->job.lines);
    (void)pthread_mutex_destroy(&heard->job.lock);
    tci_mcp_loop_free(heard->loop);
    free(heard->job.tool);
    free(heard);
}

static void test_lines_end_with_either_break_and_may_come_in_pieces(void **state)
{
    struct heard *heard = begin_hearing(false);
    (void)state;
    print(heard, "one\r\nt");
    print(heard, "wo\n\n\nthree\rfo");
    assert_int_equal(tci_mcp_lines_output(&heard->job, TC_STREAM_STDOUT, "no\n", 3), 0);
    print(heard, "ur");
    end_hearing(heard, "<one><two><three><four>");
}

static void test_the_first_sane_percentage_counts(void **state)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {
        { "50%", "(50 50%)" },
        { "\x1b[32m 7.5%\x1b[0m of 10", "(7.5  7.5% of 10)" },
        { "700% then 20%", "(20 700% then 20%)" },
        { "%", "" },
        { "a % b", "" },
        { "-5%", "" },
        { "1,000%", "" },
        { "100.1%", "" },
        { ".5%", "" },
        { "1.2.3%", "" },
        { "00000000000000000000000000000000005%", "" },
        { "0%", "(0 0%)" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct heard *heard = begin_hearing(true);
        char expected[128];
        print(heard, cases[i].line);
        print(heard, "\n");
        heard->session.level = TCI_MCP_ERROR; /* lines are not what this is about */
        (void)snprintf(expected, sizeof expected, "%s", cases[i].expected);
        end_hearing(heard, expected);
    }
}

static void test_a_flood_makes_one_post_and_is_bounded(void **state)
{
    struct heard *heard = begin_hearing(false);
    char line[4097];
    (void)state;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int i = 0; i < 1000; i++) {
        print(heard, line);
        print(heard, "\n");
    }
    assert_true(heard->job.lines.ready.length <= TCI_MCP_LINES_BYTES);
    assert_int_equal(heard->messages, 0); /* the loop had no turn yet */
    heard->text[0] = '\0';
    heard->session.level = TCI_MCP_NOTICE;
    end_hearing(heard, "<937 more lines of stderr were left out here>");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(name)
        TEST(test_only_ok_is_no_error),
        TEST(test_cut_output_ends_before_the_torn_character),
        TEST(test_more_than_a_message_holds_is_cut_and_said),
        TEST(test_structured_output_is_for_objects_and_new_clients),
        TEST(test_a_file_is_read_below_its_directory_only),
        TEST(test_the_kind_of_a_file_decides_its_form),
        TEST(test_a_question_shows_everything_escaped),
        TEST(test_blanks_and_marks_cannot_put_anything_out_of_sight),
        TEST(test_a_question_is_whole_or_too_long),
        TEST(test_long_lists_of_the_policy_are_cut_in_their_middle),
        TEST(test_an_answer_is_written_as_a_whole_message),
        TEST(test_the_memory_of_an_answer_is_known_before),
        TEST(test_lines_end_with_either_break_and_may_come_in_pieces),
        TEST(test_the_first_sane_percentage_counts),
        TEST(test_a_flood_makes_one_post_and_is_bounded),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
