/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: calls whose work somebody else does: who may make them, what holds for them, and their server. */
#include "engine_support.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/relayed.h"

static const char policy_text[] =
    "version = 1\n"
    "[defaults]\n"
    "timeout = \"100ms\"\n"
    "output = \"100B\"\n"
    "[tool.server]\n"
    "mcp = { }\n"
    "parameters = { required = [\"name\"] }\n"
    "returns = { required = [\"content\"] }\n"
    "[tool.asking]\n"
    "approval = \"ask\"\n"
    "mcp = { }\n"
    "[agent.a]\n"
    "grants = [{ tool = \"server\", max_calls = 2, output = \"50B\" }]\n";

static int open_engine(void **state)
{
    return open_engine_over(state, policy_text);
}

/* A call that must be made; NULL: it was over at once, with this verdict. */
static struct tc_call *begin(struct tc_engine *engine, const char *agent, const char *arguments,
                             const struct tci_relayed_refusal *refusal, enum tc_verdict verdict)
{
    struct tc_request request = { .tool = "server", .agent = agent, .arguments_json = arguments };
    struct tc_call *made = NULL;
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    if (tci_relayed_begin(engine, &request, refusal, &made, &result, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(!made != !result);
    if (result)
        assert_int_equal(result->verdict, verdict);
    tc_result_free(result);
    return made;
}

static void end(struct tc_call *made, const char *output, enum tc_verdict verdict)
{
    struct tci_relayed_end how = { .verdict = TC_VERDICT_OK,
                                   .output = output,
                                   .output_length = strlen(output) };
    struct tc_result *result = NULL;
    assert_non_null(made);
    assert_int_equal(tci_relayed_end(made, NULL, &how, &result, NULL), 0);
    assert_int_equal(result->verdict, verdict);
    if (verdict == TC_VERDICT_OK)
        assert_string_equal(result->stdout_data, output);
    tc_result_free(result);
}

static void test_arguments_and_result_keep_the_contract(void **state)
{
    struct tc_engine *engine = engine_of(state);
    end(begin(engine, NULL, "{\"name\":\"x\"}", NULL, TC_VERDICT_OK), "{\"content\":[]}",
        TC_VERDICT_OK);
    assert_null(begin(engine, NULL, "{}", NULL, TC_VERDICT_INVALID_INPUT));
    end(begin(engine, NULL, "{\"name\":\"x\"}", NULL, TC_VERDICT_OK), "{}",
        TC_VERDICT_INVALID_OUTPUT);
    assert_int_equal(double_runs, 0); /* no cage was made for any of them */
}

static void test_result_beyond_the_limit_is_no_result(void **state)
{
    char output[201];
    struct tc_call *made = begin(engine_of(state), NULL, "{\"name\":\"x\"}", NULL, TC_VERDICT_OK);
    memset(output, ' ', sizeof output - 1);
    output[sizeof output - 1] = '\0';
    assert_int_equal(tci_relayed_output(made), 100);
    assert_int_equal(tci_relayed_timeout(made), 100);
    end(made, output, TC_VERDICT_OUTPUT);
}

static void test_agent_has_the_calls_of_its_grant_and_a_refused_one_is_none(void **state)
{
    static const struct tci_relayed_refusal no = { TC_VERDICT_DENIED, "no", "" };
    struct tc_engine *engine = engine_of(state);
    for (int i = 0; i < 5; i++)
        assert_null(begin(engine, "a", "{\"name\":\"x\"}", &no, TC_VERDICT_DENIED));
    for (int i = 0; i < 2; i++) {
        struct tc_call *made = begin(engine, "a", "{\"name\":\"x\"}", NULL, TC_VERDICT_OK);
        assert_int_equal(tci_relayed_output(made), 50);
        end(made, "{\"content\":1}", TC_VERDICT_OK);
    }
    assert_null(begin(engine, "a", "{\"name\":\"x\"}", NULL, TC_VERDICT_DENIED));
    assert_null(begin(engine, "stranger", "{\"name\":\"x\"}", NULL, TC_VERDICT_DENIED));
}

static void test_only_what_may_ask_a_person_is_said_to(void **state)
{
    struct tc_engine *engine = engine_of(state);
    assert_false(tci_relayed_asks(engine, NULL, "server"));
    assert_true(tci_relayed_asks(engine, NULL, "asking"));
    assert_true(tci_relayed_asks(engine, "a", "server")); /* a grant made at run time may ask */
}

static int count_bytes(void *context, enum tc_stream stream, const void *bytes, size_t length)
{
    (void)stream, (void)bytes;
    *(size_t *)context += length;
    return 0;
}

/* The limits are 100 ms and 100 bytes: a call of its own would have ended by either. */
static void test_server_has_no_deadline_and_prints_without_end(void **state)
{
    size_t seen = 0;
    struct tc_request request = { .tool = "server",
                                  .argv = SH("sleep 0.3; head -c 5000 /dev/zero"),
                                  .on_output = count_bytes,
                                  .context = &seen,
                                  .flags = TC_REQUEST_KEEP_NOTHING };
    struct tc_result *result = NULL;
    struct tc_call *server;
    struct tc_error error = { 0 };

    if (tci_server_start(engine_of(state), &request, &server, &error) < 0)
        fail_msg("%s", error.message);
    while (!result) {
        struct pollfd wait = { .fd = tc_call_fd(server), .events = POLLIN };
        assert_true(poll(&wait, 1, 10000) > 0);
        assert_int_equal(tc_call_step(server, &result, &error), 0);
    }
    assert_int_equal(result->verdict, TC_VERDICT_OK);
    assert_int_equal(seen, 5000);
    assert_int_equal(result->stdout_bytes, 5000);
    assert_int_equal(result->stdout_length, 0);
    tc_result_free(result);
    tc_call_free(server);
}

/* Steps until the server is deaf, or ten seconds are over. */
static bool becomes_deaf(struct tc_call *server)
{
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    for (int i = 0; i < 100 && !result && !tci_server_is_deaf(server); i++) {
        struct pollfd wait = { .fd = tc_call_fd(server), .events = POLLIN };
        if (poll(&wait, 1, 100) > 0)
            assert_int_equal(tc_call_step(server, &result, &error), 0);
    }
    assert_null(result); /* it runs */
    return tci_server_is_deaf(server);
}

static void test_server_that_closes_its_input_and_runs_on_is_deaf(void **state)
{
    static char large[200 * 1000];
    /* At once; and after more was written than a pipe holds, of which it reads only a part. */
    static const char *const scripts[] = { "exec sleep 60 <&-",
                                           "head -c 1000 >/dev/null; exec sleep 60 <&-" };
    for (size_t i = 0; i < tci_array_size(scripts); i++) {
        struct tc_request request = { .tool = "server",
                                      .argv = SH(scripts[i]),
                                      .flags = TC_REQUEST_KEEP_NOTHING };
        struct tc_call *server;
        int ends[2];
        assert_int_equal(tci_pipe(ends, O_NONBLOCK), 0);
        request.input_fd = ends[0];
        assert_int_equal(tci_server_start(engine_of(state), &request, &server, NULL), 0);
        assert_false(tci_server_is_deaf(server));
        if (i > 0) {
            (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
            assert_true(write(ends[1], large, sizeof large) > 0);
        }
        assert_true(becomes_deaf(server)); /* and no signal has ended us */
        tc_call_cancel(server);
        tc_call_free(server);
        (void)tci_close(ends[0]);
        (void)tci_close(ends[1]);
    }
}

static struct tc_call *note(struct tc_engine *engine, const char *agent)
{
    struct tc_request request = { .tool = "server",
                                  .agent = agent,
                                  .arguments_json = "{\"method\":\"resources/read\"}" };
    struct tc_call *made = NULL;
    struct tc_result *result = NULL;
    assert_int_equal(tci_relayed_note(engine, &request, &made, &result, NULL), 0);
    assert_true(!made != !result);
    if (result)
        assert_int_equal(result->verdict, TC_VERDICT_DENIED);
    tc_result_free(result);
    return made;
}

/* Neither arguments nor output are those of a call, and the latter is longer than one may be. */
static void test_what_is_no_call_needs_a_grant_and_is_counted_by_none(void **state)
{
    static const char output[] =
        "{\"bytes\":1000000,\"sha256\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\",\"and\":\"more\"}";
    struct tc_engine *engine = engine_of(state);
    assert_true(sizeof output > 100);
    end(note(engine, NULL), output, TC_VERDICT_OK);
    for (int i = 0; i < 5; i++)
        end(note(engine, "a"), output, TC_VERDICT_OK);
    assert_null(note(engine, "stranger"));
    for (int i = 0; i < 2; i++)
        end(begin(engine, "a", "{\"name\":\"x\"}", NULL, TC_VERDICT_OK), "{\"content\":1}",
            TC_VERDICT_OK);
    assert_null(note(engine, "a")); /* its grant is used up */
}

static void test_start_of_a_server_is_no_call_of_its_grant(void **state)
{
    struct tc_engine *engine = engine_of(state);
    struct tc_request request = { .tool = "server", .agent = "a", .argv = ARGV("true") };
    struct tc_call *server;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tci_server_start(engine, &request, &server, NULL), 0);
        tc_call_free(server);
    }
    end(begin(engine, "a", "{\"name\":\"x\"}", NULL, TC_VERDICT_OK), "{\"content\":1}",
        TC_VERDICT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arguments_and_result_keep_the_contract, open_engine,
                                        close_engine),
        cmocka_unit_test_setup_teardown(test_result_beyond_the_limit_is_no_result, open_engine,
                                        close_engine),
        cmocka_unit_test_setup_teardown(
            test_agent_has_the_calls_of_its_grant_and_a_refused_one_is_none, open_engine,
            close_engine),
        cmocka_unit_test_setup_teardown(test_only_what_may_ask_a_person_is_said_to, open_engine,
                                        close_engine),
        cmocka_unit_test_setup_teardown(test_server_has_no_deadline_and_prints_without_end,
                                        open_engine, close_engine),
        cmocka_unit_test_setup_teardown(test_server_that_closes_its_input_and_runs_on_is_deaf,
                                        open_engine, close_engine),
        cmocka_unit_test_setup_teardown(test_what_is_no_call_needs_a_grant_and_is_counted_by_none,
                                        open_engine, close_engine),
        cmocka_unit_test_setup_teardown(test_start_of_a_server_is_no_call_of_its_grant, open_engine,
                                        close_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
