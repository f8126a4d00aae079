/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what comes back in replay: results that were stored, in their order, or where it diverged. */
#include "record_support.h"

#include <jansson.h>
#include <signal.h>
#include "core/record.h"
#include "json/canonical.h"

/* ---- results ------------------------------------------------------------------------------ */

static const struct tc_file files[] = {
    { "/workspace/caf\xc3\xa9.png", 12,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "image/png", "out/1" },
    { "/tmp/x", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "text/plain",
      NULL },
};
static const struct tc_connection connections[] = {
    { "api.example.com", "2001:db8::7", 443, "tcp", "*.example.com:443", "a note", NULL, 123456,
      789, 1501, 2000003 },
    { NULL, NULL, 0, "dns", NULL, NULL, "no such name", 0, 0, 0, 17 },
};

static struct tci_result *full_result(void)
{
    struct tci_result *result = tci_result_new(NULL);
    struct tc_result *public = &result->public;

    (void)snprintf(public->sandbox_id, sizeof public->sandbox_id, "tc-0123456789abcdef");
    public->tool = "calc";
    public->agent = "reader";
    public->session = "monday 1";
    public->backend = "jail";
    public->layers = "userns landlock:7 cgroup:v2";
    public->files = files;
    public->file_count = tci_array_size(files);
    public->connections = connections;
    public->connection_count = tci_array_size(connections);
    public->network_unlisted = 12;
    public->usage = (struct tc_usage){ 12345, 678, 1048576, 3, 4096 };
    public->output_json = "{\"a\":[1,2.5,null],\"b\":\"\xe2\x80\xae\"}";
    public->signal = SIGRTMIN + 1;
    tci_result_verdict(result, TC_VERDICT_SIGNALED, "fix \xff", "why \x1b[31m");
    result->output_room = 20;
    assert_int_equal(tci_result_keep(result, TC_STREAM_STDERR, "\0\xff", 2), 0);
    assert_int_equal(
        tci_result_keep(result, TC_STREAM_STDOUT, "0123456789abcdef\xc3\xa9\xc3\xa9", 20),
        1); /* cut in the middle of a character */
    assert_int_equal(tci_result_deny(result, "read", "/etc/shadow\n\xff", "filesystem"), 0);
    assert_int_equal(tci_result_deny_times(result, "network", "x.example", "no rule", 3), 0);
    return result;
}

static void test_result_reads_back_to_the_same_json(void **state)
{
    struct tci_result *before = full_result(), *after = tci_result_new(NULL);
    char *text = tci_result_canonical(&before->public), *again;
    struct tc_error error = { 0 };
    (void)state;
    if (tci_result_read(after, text, &error) < 0)
        fail_msg("%s", error.message);
    again = tci_result_canonical(&after->public);
    assert_string_equal(again, text);
    assert_string_equal(tc_result_json(&after->public), tc_result_json(&before->public));
    free(text);
    free(again);
    tc_result_free(&before->public);
    tc_result_free(&after->public);
}

static void test_every_member_of_a_stored_result_is_needed(void **state)
{
    struct tci_result *before = full_result();
    char *text = tci_result_canonical(&before->public);
    json_t *object = tci_json_read(text, strlen(text), NULL);
    const char *key;
    json_t *value;
    void *tmp;
    (void)state;

    json_object_foreach_safe(object, tmp, key, value)
    {
        for (int kind = 0; kind < 3; kind++) {
            json_t *copy = json_deep_copy(object);
            struct tci_result *after = tci_result_new(NULL);
            struct tc_error error = { 0 };
            char *changed;
            if (kind == 0)
                json_object_del(copy, key);
            else if (kind == 1)
                json_object_set_new(copy, key, json_pack("[{}]"));
            else
                json_object_set_new(copy, "another", json_null());
            changed = json_dumps(copy, JSON_COMPACT);
            /* Anything may be the output of a tool. */
            assert_int_equal(tci_result_read(after, changed, &error),
                             kind == 1 && strcmp(key, "output") == 0 ? 0 : -1);
            tc_result_free(&after->public);
            json_decref(copy);
            free(changed);
        }
    }
    json_decref(object);
    free(text);
    tc_result_free(&before->public);
}

/* ---- replay ------------------------------------------------------------------------------- */

static void test_replay_gives_the_same_bytes_and_runs_nothing(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    char *live[4];
    int plans;

    live[0] = json_of(call_tool(place->engine, "bytes", "echo", "{\"word\":\"one\"}"));
    live[1] = json_of(call_tool(place->engine, "bytes", "typed", "{\"x\":[1,2]}"));
    live[2] = json_of(call_tool(place->engine, "bytes", "no-such-tool", "{}"));
    live[3] = json_of(
        call(place->engine,
             &(struct tc_request){ .session = "bytes", .argv = SH("printf '\\377'; exit 3") }));
    plans = double_plans_made;
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    assert_same(live[0], json_of(call_tool(replay, "bytes", "echo", "{ \"word\": \"one\" }")));
    assert_same(live[1], json_of(call_tool(replay, "bytes", "typed", "{\"x\":[1,2]}")));
    assert_same(live[2], json_of(call_tool(replay, "bytes", "no-such-tool", "{}")));
    assert_same(
        live[3],
        json_of(call(replay, &(struct tc_request){ .session = "bytes",
                                                   .argv = SH("printf '\\377'; exit 3") })));
    assert_int_equal(double_plans_made, plans);
    assert_int_equal(count_rows(place, "bytes"), 4);
    tc_engine_close(replay);
}

static void test_identical_requests_are_consumed_in_order(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    struct tc_result *result;
    char *live[3];
    for (int i = 0; i < 3; i++)
        live[i] = json_of(call_tool(place->engine, "same", "echo", "{\"word\":\"x\"}"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    for (int i = 0; i < 3; i++)
        assert_same(live[i], json_of(call_tool(replay, "same", "echo", "{\"word\":\"x\"}")));
    result = call_tool(replay, "same", "echo", "{\"word\":\"x\"}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_int_equal(result->mode, TC_MODE_REPLAY);
    assert_string_equal(result->reason,
                        "replay diverged at step 4 of session \"same\": it has only 3 steps");
    tc_result_free(result);
    result = call_tool(replay, "never", "echo", "{\"word\":\"x\"}");
    assert_non_null(strstr(result->reason, "there is no session \"never\" in journal "));
    tc_result_free(result);
    tc_engine_close(replay);
}

static void test_divergence_says_where_and_shows_both_requests(void **state)
{
    struct place *place = *state;
    struct tc_engine *replay;
    struct tc_result *result;
    char *live;
    tc_result_free(call_tool(place->engine, "part", "echo", "{\"word\":\"a\",\"n\":1}"));
    live = json_of(call_tool(place->engine, "part", "echo", "{\"word\":\"b\"}"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    tc_result_free(call_tool(replay, "part", "echo", "{\"word\":\"a\",\"n\":1}"));
    result = call_tool(replay, "part", "echo", "{\"word\":\"c\\u001b\",\"n\":[1]}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_string_equal(result->state_hash, "");
    assert_string_equal(
        result->reason,
        "replay diverged at step 2 of session \"part\": /arguments/word was \"b\", is "
        "\"c\\x1b\"; /arguments/n was absent, is [1]");
    tc_result_free(result);
    /* What was expected is still there. */
    assert_same(live, json_of(call_tool(replay, "part", "echo", "{\"word\":\"b\"}")));
    tc_engine_close(replay);
}

static void test_reading_can_go_on_in_another_engine(void **state)
{
    struct place *place = *state;
    struct tc_result *result;
    for (int i = 0; i < 2; i++)
        tc_result_free(call_tool(place->engine, "resume", "echo", "{\"word\":\"r\"}"));
    for (int i = 0; i < 3; i++) {
        struct tc_engine *replay = open_mode(place, TC_MODE_REPLAY, TC_ENGINE_REPLAY_RESUME);
        result = call_tool(replay, "resume", "echo", "{\"word\":\"r\"}");
        assert_int_equal(result->verdict, i < 2 ? TC_VERDICT_OK : TC_VERDICT_ERROR);
        tc_result_free(result);
        tc_engine_close(replay);
    }
}

static void test_hash_only_keeps_hashes_and_cannot_be_replayed(void **state)
{
    struct place *place = *state;
    struct tc_result *result = call_tool(place->engine, "hashed", "hashed",
                                         "{\"word\":\"unseen-word\"}");
    struct tc_engine *replay;
    char *texts[2];
    assert_int_equal(strlen(result->state_hash), 64);
    tc_result_free(result);
    last_record(place, texts);
    assert_null(texts[0]);
    assert_null(texts[1]);
    assert_false(is_stored(place, "unseen-word"));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    result = call_tool(replay, "hashed", "hashed", "{\"word\":\"unseen-word\"}");
    assert_int_equal(result->verdict, TC_VERDICT_ERROR);
    assert_string_equal(
        result->reason,
        "step 1 of session \"hashed\" cannot be replayed: the record holds only hashes");
    tc_result_free(result);
    tc_engine_close(replay);
}

static void test_replay_counts_no_grant(void **state)
{
    struct place *place = *state;
    struct tc_request request = {
        .tool = "echo", .agent = "reader", .session = "grants", .arguments_json = "{\"word\":\"g\"}"
    };
    struct tc_engine *replay;
    char *live = json_of(call(place->engine, &request));
    uint64_t before = 0, after = 0;
    const char *key = "reader\x1f"
                      "echo\x1ftest.toml";
    assert_non_null(strstr(live, "\"verdict\":\"ok\""));
    assert_int_equal(tci_journal_counted(place->engine->journal, key, &before, NULL), 0);
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    assert_same(live, json_of(call(replay, &request)));
    tc_engine_close(replay);
    assert_int_equal(tci_journal_counted(place->engine->journal, key, &after, NULL), 0);
    assert_int_equal(before, after);
}

struct seen {
    char text[64];
    size_t length;
};

static int keep_bytes(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    struct seen *seen = &((struct seen *)context)[stream - 1];
    memcpy(seen->text + seen->length, bytes, length);
    seen->length += length;
    return 0;
}

static void test_recorded_output_goes_to_on_output_in_the_step(void **state)
{
    struct place *place = *state;
    struct seen seen[2] = { { .length = 0 } };
    struct tc_request request = { .session = "streams", .argv = SH("echo out; echo err >&2") };
    struct tc_engine *replay;
    struct tc_result *result = NULL;
    struct tc_call *started = NULL;

    tc_result_free(call(place->engine, &request));
    replay = open_mode(place, TC_MODE_REPLAY, 0);
    request.on_output = keep_bytes;
    request.context = seen;
    assert_int_equal(tc_call_start(replay, &request, &started, NULL), 0);
    assert_int_equal(seen[0].length, 0);
    assert_int_equal(tc_call_step(started, &result, NULL), 0);
    assert_non_null(result);
    assert_string_equal(seen[0].text, "out\n");
    assert_string_equal(seen[1].text, "err\n");
    tc_result_free(result);
    tc_call_free(started);
    tc_engine_close(replay);
}

static void test_replay_needs_a_journal_that_is_there(void **state)
{
    const struct place *place = *state;
    struct tc_engine_options options = { .policy = place->policy, .mode = TC_MODE_REPLAY };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, &error), -1);
    assert_int_equal(error.code, TC_ERROR_USAGE);
    options.journal_path = "/tmp/test_record.no.such.journal";
    assert_int_equal(tci_engine_open_with(&options, double_for, &engine, &error), -1);
    assert_int_equal(access(options.journal_path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_reads_back_to_the_same_json),
        cmocka_unit_test(test_every_member_of_a_stored_result_is_needed),
        cmocka_unit_test(test_replay_gives_the_same_bytes_and_runs_nothing),
        cmocka_unit_test(test_identical_requests_are_consumed_in_order),
        cmocka_unit_test(test_divergence_says_where_and_shows_both_requests),
        cmocka_unit_test(test_reading_can_go_on_in_another_engine),
        cmocka_unit_test(test_hash_only_keeps_hashes_and_cannot_be_replayed),
        cmocka_unit_test(test_replay_counts_no_grant),
        cmocka_unit_test(test_recorded_output_goes_to_on_output_in_the_step),
        cmocka_unit_test(test_replay_needs_a_journal_that_is_there),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
