/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the parts of the relay that need no server: lines, lists of tools and their hashes, pins, and what
 * may pass. */
#include "support.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/call.h"
#include "mcp/hide.h"
#include "mcp/wrap_internal.h"

/* ---- lines ---------------------------------------------------------------------------------- */

static int join(void *context, const char *line, size_t length)
{
    tci_buf_append(context, line, length);
    tci_buf_char(context, '|');
    return length == 4 && memcmp(line, "stop", 4) == 0 ? 7 : 0;
}

static void test_lines_are_the_same_however_their_bytes_come(void **state)
{
    static const char text[] = "one\n\ntwo two\nx\ntail";
    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct tci_wrap_lines lines = { .part = TCI_BUF_INIT(7) };
        struct tci_buf seen = TCI_BUF_INIT(1000);
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t left = sizeof text - 1 - at;
            assert_int_equal(
                tci_wrap_lines_add(&lines, text + at, left < piece ? left : piece, join, &seen), 0);
        }
        assert_string_equal(seen.data, "one||two two|x|");
        assert_int_equal(lines.part.length, 4);
        tci_buf_free(&lines.part);
        tci_buf_free(&seen);
    }
}

static void test_line_that_is_too_long_ends_it(void **state)
{
    struct tci_buf seen = TCI_BUF_INIT(1000);
    struct tci_wrap_lines whole = { .part = TCI_BUF_INIT(7) }, parts = { .part = TCI_BUF_INIT(7) };
    (void)state;
    assert_int_equal(tci_wrap_lines_add(&whole, "12345678\n", 9, join, &seen), 1);
    assert_int_equal(tci_wrap_lines_add(&parts, "1234", 4, join, &seen), 0);
    assert_int_equal(tci_wrap_lines_add(&parts, "5678", 4, join, &seen), 1);
    assert_int_equal(seen.length, 0);
    tci_buf_free(&whole.part);
    tci_buf_free(&parts.part);
    whole.part = (struct tci_buf)TCI_BUF_INIT(7);
    assert_int_equal(tci_wrap_lines_add(&whole, "stop\nmore\n", 10, join, &seen), 7);
    assert_string_equal(seen.data, "stop|");
    tci_buf_free(&whole.part);
    tci_buf_free(&seen);
}

static int code_of(const char *text)
{
    json_t *code = json_loads(text, JSON_DECODE_ANY, NULL);
    int r;
    assert_non_null(code);
    r = tci_wrap_code(code);
    json_decref(code);
    return r;
}

static void test_code_is_a_whole_number_of_32_bits_or_ours(void **state)
{
    static const char *const others[] = { "1.5",         "-0.5", "2147483648", "2147483647.5",
                                          "-2147483649", "1e99", "\"1\"",      "null" };
    (void)state;
    assert_int_equal(code_of("-32700"), -32700);
    assert_int_equal(code_of("1.0"), 1);
    assert_int_equal(code_of("2147483647"), 2147483647);
    assert_int_equal(code_of("-2147483648"), INT32_MIN);
    for (size_t i = 0; i < tci_array_size(others); i++)
        assert_int_equal(code_of(others[i]), TCI_MCP_INTERNAL);
    assert_int_equal(tci_wrap_code(NULL), TCI_MCP_INTERNAL);
}

/* Each has a member that is never answered. */
static void test_answers_of_all_batches_together_are_bounded(void **state)
{
    enum { batches = 6, answer_size = 5 << 20, most = 16 << 20 };
    struct tci_wrap wrap = { 0 };
    size_t bytes = 0, empty = 0;
    (void)state;
    for (int i = 0; i < batches; i++) {
        json_t *members = json_pack("[{s:s,s:i,s:s},{s:s,s:i,s:s}]", "jsonrpc", "2.0", "id", i,
                                    "method", "ping", "jsonrpc", "2.0", "id", 100 + i, "method",
                                    "tools/call");
        json_t *id = json_integer(i);
        struct tci_buf answer = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
        char *text = malloc(answer_size);
        assert_non_null(text);
        memset(text, ' ', answer_size);
        tci_buf_append(&answer, text, answer_size);
        assert_int_equal(tci_wrap_batch_begin(&wrap, members), 0);
        tci_wrap_batch_end(&wrap);
        tci_wrap_client_answer(&wrap, id, &answer);
        free(text);
        json_decref(id);
        json_decref(members);
    }
    for (const struct tci_wrap_batch *batch = wrap.batches; batch; batch = batch->next) {
        bytes += batch->text.length;
        empty += batch->text.length == 0;
    }
    assert_int_equal(bytes, 3 * (answer_size + 1));
    assert_true(bytes <= most);
    assert_int_equal(empty, 3); /* the client has got those */
    tci_wrap_batches_free(&wrap);
}

static void test_bucket_gives_so_many_at_once_and_then_waits(void **state)
{
    struct tci_wrap_bucket bucket = { .most = 3, .a_second = 0.001 };
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(tci_wrap_bucket_take(&bucket));
    assert_false(tci_wrap_bucket_take(&bucket));
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int add(struct tci_wrap_list *list, const char *text, char problem[256])
{
    json_t *tool = json_loads(text, 0, NULL);
    int r;
    assert_non_null(tool);
    r = tci_wrap_list_add(list, tool, problem, NULL);
    json_decref(tool);
    return r;
}

static struct tci_wrap_list list_of(const char *one, const char *other, const char *instructions)
{
    struct tci_wrap_list list = { 0 };
    char problem[256];
    assert_int_equal(add(&list, one, problem), 0);
    if (other)
        assert_int_equal(add(&list, other, problem), 0);
    list.instructions = instructions ? strdup(instructions) : NULL;
    assert_int_equal(tci_wrap_list_complete(&list, problem, NULL), 0);
    return list;
}

#define SCHEMA "\"inputSchema\":{\"type\":\"object\"}"
static const char alpha[] = "{\"name\":\"alpha\",\"description\":\"A.\"," SCHEMA "}";
static const char beta[] = "{\"name\":\"beta\"," SCHEMA "}";

static void assert_differ(const struct tci_wrap_list *was, struct tci_wrap_list is,
                          const char *expected)
{
    struct tci_buf out = TCI_BUF_INIT(10000);
    tci_buf_append(&out, "", 0);
    tci_wrap_list_compare(was, &is, &out);
    assert_string_equal(out.data ? out.data : "", expected);
    assert_int_equal(strcmp(was->hash, is.hash) == 0, expected[0] == '\0');
    tci_buf_free(&out);
    tci_wrap_list_free(&is);
}

static void test_everything_a_model_reads_is_in_the_hash(void **state)
{
    struct tci_wrap_list list = list_of(alpha, beta, "Be kind.");
    (void)state;
    assert_differ(&list, list_of(beta, alpha, "Be kind."), "");
    /* The order of members, and what clients do not get, make no difference. */
    assert_differ(&list,
                  list_of("{" SCHEMA ",\"_meta\":{\"x\":1},\"description\":\"A.\","
                          "\"name\":\"alpha\"}",
                          beta, "Be kind."),
                  "");
    assert_differ(&list,
                  list_of("{\"name\":\"alpha\",\"description\":\"B.\",\"title\":\"t\"," SCHEMA "}",
                          beta, "Be kind."),
                  "tool \"alpha\" has another title, description\n");
    assert_differ(&list,
                  list_of(alpha,
                          "{\"name\":\"beta\",\"inputSchema\":{\"type\":\"object\","
                          "\"description\":\"x\"}}",
                          "Be kind."),
                  "tool \"beta\" has another inputSchema\n");
    assert_differ(&list,
                  list_of(alpha, "{\"name\":\"beta\",\"annotations\":{}," SCHEMA "}", "Be kind."),
                  "tool \"beta\" has another annotations\n");
    assert_differ(&list, list_of(alpha, "{\"name\":\"gamma\"," SCHEMA "}", "Be kind."),
                  "tool \"gamma\" is new\ntool \"beta\" is gone\n");
    assert_differ(&list, list_of(alpha, beta, NULL),
                  "the server has other instructions for the model\n");
    tci_wrap_list_free(&list);
}

static void test_lines_become_one_sentence(void **state)
{
    char text[12];
    (void)state;
    tci_wrap_join("one\ntwo\n", text, sizeof text);
    assert_string_equal(text, "one; two");
    tci_wrap_join("one\n", text, sizeof text);
    assert_string_equal(text, "one");
    tci_wrap_join("0123456\n\n\n\n\n0123", text, sizeof text);
    assert_true(strlen(text) < sizeof text);
    tci_wrap_join("0123456789012345", text, sizeof text);
    assert_true(strlen(text) < sizeof text && strstr("0123456789012345", text));
}

static void test_tool_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {
        "{}",
        "[]",
        "{\"name\":5," SCHEMA "}",
        "{\"name\":\"\"," SCHEMA "}",
        "{\"name\":\"a b\"," SCHEMA "}",
        "{\"name\":\"a\\u001b\"," SCHEMA "}",
        "{\"name\":\"a\\u200bb\"," SCHEMA "}",
        "{\"name\":\"r\\u0435ad\"," SCHEMA "}",
        "{\"name\":\"\\u202eevil\"," SCHEMA "}",
        "{\"name\":\"a\"}",
        "{\"name\":\"a\",\"inputSchema\":{}}",
        "{\"name\":\"a\",\"inputSchema\":{\"type\":\"string\"}}",
        "{\"name\":\"a\",\"description\":{}," SCHEMA "}",
        "{\"name\":\"a\",\"outputSchema\":[]," SCHEMA "}",
        "{\"name\":\"a\",\"annotations\":1," SCHEMA "}",
    };
    struct tci_wrap_list list = { 0 };
    char problem[256];
    (void)state;
    for (size_t i = 0; i < tci_array_size(wrong); i++) {
        problem[0] = '\0';
        assert_int_equal(add(&list, wrong[i], problem), 1);
        assert_true(problem[0]);
    }
    assert_int_equal(add(&list, alpha, problem), 0);
    assert_int_equal(add(&list, alpha, problem), 0);
    assert_int_equal(tci_wrap_list_complete(&list, problem, NULL), 1);
    assert_string_equal(problem, "tool \"alpha\" is in the list twice");
    tci_wrap_list_free(&list);
}

static void test_pin_reads_back_as_it_was_written(void **state)
{
    struct tci_wrap_list list = list_of(
        "{\"name\":\"alpha\",\"description\":\"a\\u202eb \\u001b[31m\"," SCHEMA "}", beta, "x\ny");
    struct tci_wrap_list again;
    struct tc_error error = { 0 };
    char problem[256], path[] = "/tmp/toolcage-pin-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(list.version, sizeof list.version, "2025-11-25");
    list.server_info = json_pack("{s:s,s:s}", "name", "n", "version", "1");
    list.capabilities = json_object();
    assert_int_equal(tci_wrap_list_complete(&list, problem, &error), 0);
    assert_int_equal(tci_pin_write(path, &list, &error), 0);
    if (tci_pin_read(path, NULL, &again, &error) < 0)
        fail_msg("%s", error.message);
    assert_string_equal(list.hash, again.hash);
    assert_differ(&list, again, "");
    tci_wrap_list_free(&list);
    (void)unlink(path);
}

/* ---- what may pass -------------------------------------------------------------------------- */

static void test_only_what_the_policy_names_may_pass(void **state)
{
    static struct tci_string patterns[] = { { .text = "read_*" }, { .text = "list" } };
    struct tci_wrapped rules = { .features = TCI_FEATURE_PROMPTS, .tools = { patterns, 2 } };
    struct tci_wrap wrap = { .rules = &rules };
    (void)state;
    assert_true(tci_wrap_is_visible(&wrap, "read_file") && tci_wrap_is_visible(&wrap, "list"));
    assert_false(tci_wrap_is_visible(&wrap, "listing") || tci_wrap_is_visible(&wrap, "xread_file"));
    rules.tools.count = 0;
    assert_false(tci_wrap_is_visible(&wrap, "list"));
    rules.any_tool = true;
    assert_true(tci_wrap_is_visible(&wrap, "anything"));
    assert_true(tci_wrap_may_pass(&wrap, TCI_WRAP_CLIENT, true, "prompts/get"));
    assert_false(tci_wrap_may_pass(&wrap, TCI_WRAP_CLIENT, false, "prompts/get"));
    assert_false(tci_wrap_may_pass(&wrap, TCI_WRAP_SERVER, true, "prompts/get"));
    assert_false(tci_wrap_may_pass(&wrap, TCI_WRAP_CLIENT, true, "resources/read"));
    assert_false(tci_wrap_may_pass(&wrap, TCI_WRAP_SERVER, true, "sampling/createMessage"));
    rules.features = ~0U;
    assert_true(tci_wrap_may_pass(&wrap, TCI_WRAP_SERVER, true, "sampling/createMessage"));
    assert_false(tci_wrap_may_pass(&wrap, TCI_WRAP_SERVER, true, "something/new"));
}

static void test_result_must_be_one(void **state)
{
    static const struct {
        const char *text;
        bool valid;
    } results[] = {
        { "{\"content\":[]}", false }, /* the tool has an outputSchema */
        { "{\"content\":[],\"structuredContent\":{\"n\":1}}", true },
        { "{\"structuredContent\":{\"n\":1}}", true },
        { "{\"content\":[],\"structuredContent\":{\"n\":\"x\"}}", false },
        { "{\"content\":[],\"structuredContent\":[]}", false },
        { "{\"content\":{},\"structuredContent\":{\"n\":1}}", false },
        { "{\"content\":[5],\"structuredContent\":{\"n\":1}}", false },
        { "{\"content\":[],\"isError\":true}", true },
        { "{\"content\":[],\"isError\":\"no\"}", false },
        { "{}", false },
    };
    struct tci_wrap_list list = list_of("{\"name\":\"t\"," SCHEMA ",\"outputSchema\":{\"type\":"
                                        "\"object\",\"properties\":{\"n\":{\"type\":\"number\"}}}}",
                                        NULL, NULL);
    (void)state;
    assert_true(tci_wrap_tool_compile(&list.tools[0]));
    for (size_t i = 0; i < tci_array_size(results); i++) {
        json_t *result = json_loads(results[i].text, 0, NULL);
        char problem[512] = "";
        assert_int_equal(tci_wrap_check_result(&list.tools[0], result, problem), results[i].valid);
        assert_int_equal(problem[0] == '\0', results[i].valid);
        json_decref(result);
    }
    tci_wrap_list_free(&list);
}

static void test_schema_that_cannot_be_used_refuses_every_call(void **state)
{
    struct tci_wrap_list list = list_of("{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\","
                                        "\"$ref\":\"http://192.0.2.1/x\"}}",
                                        NULL, NULL);
    struct tci_relayed_refusal refusal;
    json_t *arguments = json_object();
    (void)state;
    assert_false(tci_wrap_check_arguments(&list.tools[0], arguments, &refusal));
    assert_int_equal(refusal.verdict, TC_VERDICT_DENIED);
    assert_non_null(strstr(refusal.reason, "inputSchema cannot be used"));
    json_decref(arguments);
    tci_wrap_list_free(&list);
}

/* ---- what agents are not told ---------------------------------------------------------------- */

static void assert_told(const char *agent, const char *reason, const char *expected)
{
    struct tci_path_rule rules[] = {
        { .host = "/srv/secret", .cage = "/data" },
        { .host = "/srv/secret/deep", .cage = "/deep" },
        { .host = "/usr/share", .cage = "/usr/share" },
        { .host = NULL, .cage = "/data/hidden" },
        { .host = "/", .cage = "/host" },
    };
    struct tci_tool tool = { .name = "t",
                             .settings = { .rootfs = "/var/roots/one",
                                           .filesystem = { .rules = rules, .count = 5 } } };
    struct tc_result result = { 0 };
    (void)snprintf(result.reason, sizeof result.reason, "%s", reason);
    (void)snprintf(result.fix, sizeof result.fix, "%.500s", reason);
    tci_mcp_hide(&tool, agent, &result);
    assert_string_equal(result.reason, expected);
    assert_string_equal(result.fix, expected);
}

static void test_reasons_name_neither_other_agents_nor_places_of_the_host(void **state)
{
    static const char gone[] = "the granted path /srv/secret: No such file or directory";
    (void)state;
    assert_told("a", gone, "the granted path /data: No such file or directory");
    assert_told(NULL, gone, gone); /* the owner */
    assert_told("a", "/srv/secret/deep/x, (/srv/secret/y).", "/deep/x, (/data/y).");
    assert_told("a", "/srv/secret-not /other/srv/secret /usr/share/x /etc",
                "/srv/secret-not /other/srv/secret /usr/share/x /etc");
    assert_told("a", "the root directory /var/roots/one: gone",
                "the root directory (rootfs): gone");
    assert_told("a", "the grant of \"t\" for agent \"boss\" expired",
                "the grant of \"t\" for an agent that this one works for expired");
    assert_told("a", "agent \"a\" holds no grant, agent \"ab\" does, agent \"",
                "agent \"a\" holds no grant, an agent that this one works for does, agent \"");
    assert_told("a", "", "");
}

/* ---- the server's input ---------------------------------------------------------------------- */

/* A relay whose server is no more than a pipe that somebody reads, or does not. */
struct input {
    struct tci_mcp_wrap_options options;
    struct tc_call call; /* runs nothing: it cannot be killed either */
    struct tci_wrap wrap;
};

static int open_input(void **state)
{
    struct input *input = calloc(1, sizeof *input);
    struct tci_wrap *wrap = &input->wrap;
    *state = input;
    wrap->options = &input->options;
    wrap->call = &input->call;
    if (tci_pipe(wrap->server_in, 0) < 0 || tci_mcp_loop_new(1, false, &wrap->loop, NULL) < 0)
        return -1;
    wrap->base = tci_mcp_loop_base(wrap->loop);
    return tci_wrap_server_open_input(wrap, NULL);
}

static int close_input(void **state)
{
    struct input *input = *state;
    struct tci_wrap *wrap = &input->wrap;
    tci_mcp_channel_free(wrap->to_server);
    if (wrap->failing)
        event_free(wrap->failing);
    tci_mcp_loop_free(wrap->loop);
    (void)tci_close(wrap->server_in[0]);
    (void)tci_close(wrap->server_in[1]);
    free(input);
    return 0;
}

static struct tci_wrap *stop_reading(void **state)
{
    struct tci_wrap *wrap = &((struct input *)*state)->wrap;
    wrap->server_in[0] = tci_close(wrap->server_in[0]);
    return wrap;
}

static void put(struct tci_wrap *wrap, size_t length)
{
    struct tci_buf text = TCI_BUF_INIT(length);
    char *bytes = calloc(1, length);
    assert_non_null(bytes);
    tci_buf_append(&text, bytes, length);
    free(bytes);
    tci_wrap_server_put(wrap, &text);
}

static void run_a_moment(const struct tci_wrap *wrap)
{
    const struct timeval moment = { .tv_usec = 20000 };
    assert_int_equal(event_base_loopexit(wrap->base, &moment), 0);
    assert_true(event_base_dispatch(wrap->base) >= 0);
}

static void run_until_failed(struct tci_wrap *wrap)
{
    for (int i = 0; i < 500 && !wrap->is_reported; i++)
        run_a_moment(wrap);
    assert_true(wrap->is_failed && wrap->is_reported);
}

static void test_input_that_nobody_reads_any_more_stops_the_server(void **state)
{
    struct tci_wrap *wrap = stop_reading(state);
    run_until_failed(wrap); /* also when there is nothing to say to it */
    assert_non_null(strstr(wrap->error.message, "has closed its standard input"));
    assert_non_null(strstr(wrap->error.remedy, "must read"));
    put(wrap, 100); /* to nobody, and without a signal */
}

static void test_too_much_that_waits_for_the_server_stops_it(void **state)
{
    struct tci_wrap *wrap = &((struct input *)*state)->wrap;
    for (int i = 0; i < 3; i++)
        put(wrap, TCI_MCP_QUEUE_MAX / 2);
    assert_false(wrap->is_failed); /* not while somebody is in the middle of a message */
    run_until_failed(wrap);
    assert_non_null(strstr(wrap->error.message, "reads nothing, and 67108864 bytes wait"));
    assert_int_equal(tci_mcp_channel_waiting(wrap->to_server), 0);
}

static void test_server_that_is_told_to_end_may_close_its_input(void **state)
{
    struct tci_wrap *wrap = stop_reading(state);
    wrap->is_ending = true;
    run_a_moment(wrap);
    assert_false(wrap->is_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_the_same_however_their_bytes_come),
        cmocka_unit_test(test_line_that_is_too_long_ends_it),
        cmocka_unit_test(test_code_is_a_whole_number_of_32_bits_or_ours),
        cmocka_unit_test(test_answers_of_all_batches_together_are_bounded),
        cmocka_unit_test(test_bucket_gives_so_many_at_once_and_then_waits),
        cmocka_unit_test(test_everything_a_model_reads_is_in_the_hash),
        cmocka_unit_test(test_lines_become_one_sentence),
        cmocka_unit_test(test_tool_that_is_none_is_refused),
        cmocka_unit_test(test_pin_reads_back_as_it_was_written),
        cmocka_unit_test(test_only_what_the_policy_names_may_pass),
        cmocka_unit_test(test_result_must_be_one),
        cmocka_unit_test(test_schema_that_cannot_be_used_refuses_every_call),
        cmocka_unit_test(test_reasons_name_neither_other_agents_nor_places_of_the_host),
        cmocka_unit_test_setup_teardown(test_input_that_nobody_reads_any_more_stops_the_server,
                                        open_input, close_input),
        cmocka_unit_test_setup_teardown(test_too_much_that_waits_for_the_server_stops_it,
                                        open_input, close_input),
        cmocka_unit_test_setup_teardown(test_server_that_is_told_to_end_may_close_its_input,
                                        open_input, close_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
