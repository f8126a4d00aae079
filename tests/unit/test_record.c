/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a journal keeps of calls, and what it must not keep. */
#include "record_support.h"

#include "base/sha256.h"
#include "core/record.h"

/* ---- recording ---------------------------------------------------------------------------- */

static void test_request_is_kept_in_canonical_form(void **state)
{
    struct place *place = *state;
    char *texts[2];
    tc_result_free(call(place->engine, &(struct tc_request){
                                           .tool = "echo",
                                           .agent = "reader",
                                           .arguments_json = "{ \"word\" : \"a\", \"b\": 1.0 }",
                                           .input = "in",
                                           .input_length = 2,
                                           .limits = { .timeout_ms = 5000, .memory = 1000000 } }));
    last_record(place, texts);
    assert_string_equal(
        texts[0], "{\"agent\":\"reader\",\"arguments\":{\"b\":1,\"word\":\"a\"},\"input_sha256\":"
                  "\"582967534d0f909d196b97f9e6921342777aea87b46fa52df165389db1fb8ccf\","
                  "\"limits\":{\"memory\":1000000,\"timeout_ms\":5000},\"tool\":\"echo\"}");
    free(texts[0]);
    free(texts[1]);
    tc_result_free(call(place->engine, &(struct tc_request){ .argv = ARGV("true", "\xff") }));
    last_record(place, texts);
    assert_string_equal(texts[0], "{\"argv\":[\"true\",{\"base64\":\"/w==\"}]}");
    free(texts[0]);
    free(texts[1]);
}

static void test_result_has_the_state_of_its_session(void **state)
{
    struct place *place = *state;
    struct tc_result *first = call_tool(place->engine, "state", "echo", "{\"word\":\"a\"}");
    struct tc_result *second = call_tool(place->engine, "state", "echo", "{\"word\":\"a\"}");
    struct tc_result *quiet = call_tool(place->engine, "state", "quiet", "{\"word\":\"a\"}");
    assert_int_equal(strlen(first->state_hash), 64);
    assert_int_equal(strlen(second->state_hash), 64);
    assert_string_not_equal(first->state_hash, second->state_hash);
    assert_string_equal(quiet->state_hash, "");
    assert_string_equal(quiet->stdout_data, "a");
    assert_int_equal(count_rows(place, "state"), 2);
    tc_result_free(first);
    tc_result_free(second);
    tc_result_free(quiet);
}

static void test_call_without_a_journal_makes_no_request_text(void **state)
{
    const struct place *place = *state;
    struct tc_engine_options options = { .policy = place->policy };
    struct tc_engine *engine = NULL;
    struct tc_call *started = NULL;
    struct tc_request request = { .tool = "echo", .arguments_json = "{\"word\":\"a\"}" };
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, NULL), 0);
    assert_int_equal(tc_call_start(engine, &request, &started, NULL), 0);
    assert_null(started->recorded);
    tc_call_free(started);
    tc_engine_close(engine);
}

static void test_refusals_are_recorded_too(void **state)
{
    struct place *place = *state;
    struct tc_result *result = call_tool(place->engine, "refused", "no-such-tool", "{}");
    assert_int_equal(result->verdict, TC_VERDICT_DENIED);
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    result = call_tool(place->engine, "refused", "echo", "not JSON");
    assert_int_equal(result->verdict, TC_VERDICT_INVALID_INPUT);
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    assert_int_equal(count_rows(place, "refused"), 2);
}

/* Whether there is such a tool, and what it records, must not show to an agent that may not call it; nor
 * may arguments be stored that the tool would keep out of the journal. */
static void test_calls_without_a_grant_are_recorded_alike(void **state)
{
    struct place *place = *state;
    static const char *const tools[] = { "no-such-tool", "quiet", "hashed", "secret", "typed" };
    struct tc_request request = { .agent = "reader",
                                  .session = "ungranted",
                                  .arguments_json = "{\"token\":\"never-in-the-journal\"}" };
    struct tc_engine *replay;
    char *live[tci_array_size(tools)], *texts[2];

    for (size_t i = 0; i < tci_array_size(tools); i++) {
        struct tc_result *result;
        request.tool = tools[i];
        result = call(place->engine, &request);
        assert_int_equal(result->verdict, TC_VERDICT_DENIED);
        assert_int_equal(strlen(result->state_hash), 64);
        live[i] = json_of(result);
        last_record(place, texts);
        assert_null(texts[0]);
        assert_non_null(texts[1]);
        free(texts[1]);
    }
    assert_int_equal(count_rows(place, "ungranted"), tci_array_size(tools));
    assert_false(is_stored(place, "never-in-the-journal"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    for (size_t i = 0; i < tci_array_size(tools); i++) {
        request.tool = tools[i];
        assert_same(live[i], json_of(call(replay, &request)));
    }
    tc_engine_close(replay);
}

static void test_calls_without_a_grant_leave_no_record_if_defaults_say_so(void **state)
{
    struct place other = *(struct place *)*state;
    static const char *const tools[] = { "no-such-tool", "loud" };
    other.policy = load_text("version = 1\n[defaults]\nrecord = false\n"
                             "[tool.loud]\nrecord = true\ncommand = [\"true\"]\n"
                             "[agent.none]\ngrants = []\n[agent.one]\ngrants = [\"loud\"]\n");
    other.engine = open_mode(&other, TC_MODE_LIVE, 0);
    for (size_t i = 0; i < tci_array_size(tools); i++) {
        struct tc_result *result = call(
            other.engine,
            &(struct tc_request){ .agent = "none", .session = "defaults", .tool = tools[i] });
        assert_int_equal(result->verdict, TC_VERDICT_DENIED);
        assert_string_equal(result->state_hash, "");
        tc_result_free(result);
    }
    assert_int_equal(count_rows(&other, "defaults"), 0);
    tc_result_free(call(other.engine, &(struct tc_request){
                                          .agent = "one", .session = "defaults", .tool = "loud" }));
    assert_int_equal(count_rows(&other, "defaults"), 1);
    tc_engine_close(other.engine);
    tc_policy_free(other.policy);
}

static void test_cancelled_call_is_recorded_and_a_freed_one_is_not(void **state)
{
    struct place *place = *state;
    struct tc_request request = { .session = "cancel", .argv = ARGV("double:waits") };
    struct tc_result *result = NULL;
    struct tc_call *started = NULL;

    assert_int_equal(tc_call_start(place->engine, &request, &started, NULL), 0);
    tc_call_free(started);
    assert_int_equal(count_rows(place, "cancel"), 0);
    assert_int_equal(tc_call_start(place->engine, &request, &started, NULL), 0);
    tc_call_cancel(started);
    while (!result)
        assert_int_equal(tc_call_step(started, &result, NULL), 0);
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_int_equal(strlen(result->state_hash), 64);
    assert_int_equal(count_rows(place, "cancel"), 1);
    tc_result_free(result);
    tc_call_free(started);
}

static int count_bytes(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    (void)stream, (void)bytes;
    *(size_t *)context += length;
    return 0;
}

static void test_output_that_only_passes_through_is_recorded_all_the_same(void **state)
{
    struct place *place = *state;
    size_t seen = 0;
    struct tc_request request = { .argv = SH("echo passing"),
                                  .on_output = count_bytes,
                                  .context = &seen,
                                  .flags = TC_REQUEST_KEEP_NOTHING };
    char *texts[2];
    tc_result_free(call(place->engine, &request));
    assert_int_equal(seen, 8);
    last_record(place, texts);
    assert_non_null(strstr(texts[1], "\"stdout\":\"passing\\n\""));
    free(texts[0]);
    free(texts[1]);
}

static void test_sessions_that_cannot_be_recorded_are_refused(void **state)
{
    struct place *place = *state;
    char longer[300];
    const char *const names[] = { "", "a\nb", "\xff", longer };
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < tci_array_size(names); i++) {
        struct tc_request request = { .session = names[i], .argv = ARGV("true") };
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        assert_int_equal(tc_call(place->engine, &request, &result, &error), -1);
        assert_int_equal(error.code, TC_ERROR_USAGE);
    }
}

/* ---- redaction ---------------------------------------------------------------------------- */

static void test_redacted_values_are_never_stored(void **state)
{
    struct place *place = *state;
    const char *arguments = "{\"token\":{\"user\":\"caf\\u00e9 "
                            "\\\"X\\\"\",\"password\":\"hunter2hunter2\",\"n\":[\"abc\"]},"
                            "\"list\":[\"shown\",\"gone-from-here\"],\"open\":\"this stays\"}";
    struct tc_result *result = call_tool(place->engine, "redact", "secret", arguments);
    char *texts[2];

    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_non_null(strstr(result->stdout_data, "hunter2hunter2")); /* the caller has it all */
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"token\":{\"redacted\":\"sha256:"));
    assert_non_null(strstr(texts[0], "[\"shown\",{\"redacted\":\"sha256:"));
    assert_non_null(strstr(texts[0], "this stays"));
    assert_non_null(strstr(texts[1], "[redacted]"));
    assert_non_null(strstr(texts[1], "\"stdout\""));
    assert_true(is_stored(place, "this stays"));
    assert_false(is_stored(place, "hunter2hunter2"));
    assert_false(is_stored(place, "gone-from-here"));
    assert_false(is_stored(place, "caf\xc3\xa9 \\\"X"));
    assert_false(is_stored(place, "caf\xc3\xa9 \\\\\\\"X"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(result);
}

static void test_arguments_that_are_not_json_are_kept_as_hash_if_anything_is_redacted(void **state)
{
    struct place *place = *state;
    char *texts[2];
    tc_result_free(call_tool(place->engine, NULL, "secret", "{\"token\":\"not-to-be-seen\""));
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"arguments_text\":{\"redacted\":\"sha256:"));
    assert_false(is_stored(place, "not-to-be-seen"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(call_tool(place->engine, NULL, "echo", "{\"token\":\"to-be-seen\""));
    last_record(place, texts);
    assert_non_null(strstr(texts[0], "\"arguments_text\":\"{\\\"token\\\":\\\"to-be-seen\\\"\""));
    free(texts[0]);
    free(texts[1]);
}

static void test_reasons_show_nothing_of_arguments_that_could_not_be_read(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *arguments, *secret, *live;
    } cases[] = {
        { "{\"token\" \"unread-colon\"}", "unread-colon", "unread-colon" },
        { "{\"unread-key\":1,\"unread-key\":2}", "unread-key", "unread-key" },
        { "{\"token\":98765432109876543210}", "98765432109876543210", "98765432109876543210" },
        { "\"{\\\"token\\\":\\\"twice-encoded\\\"}\"", "twice-encoded", "are a string" },
        { "[\"in-a-list\"]", "in-a-list", "are an array" },
    };
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_result *result = call_tool(place->engine, "unread", "secret", cases[i].arguments);
        struct tc_engine *replay;
        char *texts[2], reason[768];

        assert_int_equal(result->verdict, TC_VERDICT_INVALID_INPUT);
        assert_non_null(strstr(result->reason, cases[i].live)); /* the caller is told all */
        (void)snprintf(reason, sizeof reason, "%s",
                       i < 3 ? "the reason is not recorded: the arguments could not be read, and "
                               "the tool has \"redact\""
                             : result->reason);
        tc_result_free(result);
        last_record(place, texts);
        assert_non_null(strstr(texts[0], "{\"redacted\":\"sha256:"));
        assert_false(is_stored(place, cases[i].secret));
        free(texts[0]);
        free(texts[1]);
        replay = open_mode(place, TC_MODE_REPLAY, 0);
        for (size_t step = 0; step <= i; step++) {
            result = call_tool(replay, "unread", "secret", cases[step].arguments);
            if (step == i)
                assert_string_equal(result->reason, reason);
            tc_result_free(result);
        }
        tc_engine_close(replay);
    }
}

/* Beyond the bound, nothing is searched, so nothing is stored. */
static void test_secrets_beyond_the_bound_leave_only_hashes(void **state)
{
    struct place *place = *state;
    struct tci_buf arguments = TCI_BUF_INIT(SIZE_MAX / 4);
    char *texts[2];

    tci_buf_string(&arguments, "{\"token\":\"beyond-the-bound");
    for (int i = 0; i < 150000; i++)
        tci_buf_string(&arguments, "A/\xc3\xa9");
    tci_buf_string(&arguments, "\"}");
    tc_result_free(call_tool(place->engine, "large", "secret", arguments.data));
    assert_int_equal(count_rows(place, "large"), 1);
    last_record(place, texts);
    assert_null(texts[0]);
    assert_null(texts[1]);
    assert_false(is_stored(place, "beyond-the-bound"));
    tci_buf_free(&arguments);
}

static void test_numbers_and_keys_of_redacted_values_are_never_stored(void **state)
{
    struct place *place = *state;
    const char *arguments = "{\"token\":{\"k3y-of-a-member\":[4929123456781234,-7.6543e2]}}";
    struct tc_result *result = call_tool(place->engine, "redact", "secret", arguments);
    char *texts[2];
    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_non_null(strstr(result->output_json, "4929123456781234"));
    last_record(place, texts);
    assert_non_null(strstr(texts[1], "\"output\":{\"token\":{\"[redacted]\":[\"[redacted]\","
                                     "\"[redacted]\"]}}"));
    assert_false(is_stored(place, "4929123456781234"));
    assert_false(is_stored(place, "765.43"));
    assert_false(is_stored(place, "k3y-of-a-member"));
    free(texts[0]);
    free(texts[1]);
    tc_result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_is_kept_in_canonical_form),
        cmocka_unit_test(test_result_has_the_state_of_its_session),
        cmocka_unit_test(test_call_without_a_journal_makes_no_request_text),
        cmocka_unit_test(test_refusals_are_recorded_too),
        cmocka_unit_test(test_calls_without_a_grant_are_recorded_alike),
        cmocka_unit_test(test_calls_without_a_grant_leave_no_record_if_defaults_say_so),
        cmocka_unit_test(test_cancelled_call_is_recorded_and_a_freed_one_is_not),
        cmocka_unit_test(test_output_that_only_passes_through_is_recorded_all_the_same),
        cmocka_unit_test(test_sessions_that_cannot_be_recorded_are_refused),
        cmocka_unit_test(test_redacted_values_are_never_stored),
        cmocka_unit_test(test_arguments_that_are_not_json_are_kept_as_hash_if_anything_is_redacted),
        cmocka_unit_test(test_reasons_show_nothing_of_arguments_that_could_not_be_read),
        cmocka_unit_test(test_secrets_beyond_the_bound_leave_only_hashes),
        cmocka_unit_test(test_numbers_and_keys_of_redacted_values_are_never_stored),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
