/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the rules of a session, without an engine: tools/call is replaced by one that the test
 * answers when it likes (link_args: --wrap).
 */
#include "support.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "mcp/list.h"
#include "mcp/resources.h"
#include "mcp/server.h"

enum { calls_max = 160 };

static struct {
    struct tci_mcp_options options;
    struct tci_mcp_server server;
    struct tci_mcp_session *session;
    struct tci_mcp_request *calls[calls_max]; /* under way, by the order in which they came */
    size_t call_count, cancel_count;
    char *sent[256]; /* what the client got; "" for no answer */
    uint64_t streams[256];
    bool last[256];
    size_t sent_count;
    bool close_on_send;
    unsigned answers, refusals; /* to what we asked */
} t;

enum tci_mcp_outcome __wrap_tci_mcp_tools_call(struct tci_mcp_request *request,
                                               const struct json_t *params, struct tci_buf *result,
                                               struct tci_mcp_failure *failure);

static void on_cancel(void *context)
{
    (void)context;
    t.cancel_count++;
}

enum tci_mcp_outcome __wrap_tci_mcp_tools_call(struct tci_mcp_request *request,
                                               const struct json_t *params, struct tci_buf *result,
                                               struct tci_mcp_failure *failure)
{
    (void)params, (void)result, (void)failure;
    request->cancel = on_cancel;
    t.calls[t.call_count++] = request;
    return TCI_MCP_LATER;
}

static void on_send(void *context, uint64_t stream, bool last, const char *text, size_t length)
{
    (void)context;
    assert_true(t.sent_count < tci_array_size(t.sent));
    t.streams[t.sent_count] = stream;
    t.last[t.sent_count] = last;
    t.sent[t.sent_count++] = text ? strndup(text, length) : strdup("");
    if (t.close_on_send)
        tci_mcp_session_close(tc_take(t.session));
}

static int set_up(void **state)
{
    const struct tci_mcp_transport transport = { .send = on_send };
    (void)state;
    memset(&t, 0, sizeof t);
    t.server.options = &t.options;
    t.server.store_lock = -1;
    return tci_mcp_session_open(&t.server, NULL, &transport, &t.session, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    if (t.session)
        tci_mcp_session_close(t.session);
    for (size_t i = 0; i < t.sent_count; i++)
        free(t.sent[i]);
    return t.server.session_count || t.server.sessions ? -1 : 0;
}

/* A message of the client. Returns whether it will be answered. */
static bool say_on(uint64_t stream, const char *text)
{
    struct tci_mcp_message message;
    bool answered;
    assert_int_equal(tci_mcp_read(text, strlen(text), &message, NULL), 0);
    answered = tci_mcp_session_take(t.session, &message, stream);
    tci_mcp_message_free(&message);
    return answered;
}

static bool say(const char *text)
{
    return say_on(1, text);
}

static void initialize(const char *version)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{\"elicitation\":{}},"
                   "\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}",
                   version);
    assert_true(say(text));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
}

static const char *newest(void)
{
    return t.sent_count ? t.sent[t.sent_count - 1] : "";
}

static void assert_error(int code)
{
    json_t *value = json_loads(newest(), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(value, "error"), "code")),
                     code);
    json_decref(value);
}

#define CALL(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{}}"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

/* ---- beginning ---------------------------------------------------------------------------- */

static void test_versions_are_agreed_on(void **state)
{
    static const char *const versions[][2] = {
        { "2025-03-26", "2025-03-26" }, { "2025-06-18", "2025-06-18" },
        { "2025-11-25", "2025-11-25" }, { "2024-11-05", "2025-11-25" },
        { "2099-01-01", "2025-11-25" }, { "", "2025-11-25" },
    };
    for (size_t i = 0; i < tci_array_size(versions); i++) {
        json_t *message, *value;
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
        initialize(versions[i][0]);
        message = json_loads(newest(), 0, NULL);
        value = json_object_get(message, "result");
        assert_string_equal(json_string_value(json_object_get(value, "protocolVersion")),
                            versions[i][1]);
        assert_true(
            json_is_object(json_object_get(json_object_get(value, "capabilities"), "tools")));
        assert_int_equal(t.session->state, TCI_MCP_READY);
        assert_int_equal(t.session->can_elicit, strcmp(versions[i][1], "2025-03-26") != 0);
        assert_int_equal(strstr(newest(), "\"title\"") != NULL,
                         strcmp(versions[i][1], "2025-03-26") != 0);
        json_decref(message);
    }
}

static void test_nothing_but_ping_comes_before_initialize(void **state)
{
    (void)state;
    assert_true(say(PING("1")));
    assert_string_equal(newest(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_true(say(CALL("2")));
    assert_error(TCI_MCP_INVALID_REQUEST);
    assert_int_equal(t.call_count, 0);
    assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\"}"));
    assert_error(TCI_MCP_NO_METHOD);
    /* And it may still be initialized. */
    initialize("2025-11-25");
    assert_int_equal(t.session->state, TCI_MCP_READY);
}

static void test_a_session_is_initialized_once(void **state)
{
    (void)state;
    assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"));
    assert_error(TCI_MCP_INVALID_PARAMS);
    initialize("2025-06-18");
    assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                    "\"protocolVersion\":\"2025-03-26\"}}"));
    assert_error(TCI_MCP_INVALID_REQUEST);
    assert_int_equal(t.session->version, TCI_MCP_2025_06_18);
}

/* ---- requests ----------------------------------------------------------------------------- */

static void test_answers_may_come_in_any_order(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_true(say_on(5, CALL("1")));
    assert_true(say_on(6, CALL("\"1\"")));
    assert_int_equal(t.call_count, 2);
    tci_mcp_answer(t.calls[1], "{\"n\":2}");
    assert_string_equal(newest(), "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"n\":2}}");
    assert_int_equal(t.streams[t.sent_count - 1], 6);
    tci_mcp_answer(t.calls[0], "{\"n\":1}");
    assert_string_equal(newest(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1}}");
    assert_int_equal(t.streams[t.sent_count - 1], 5);
    assert_true(t.last[t.sent_count - 1]);
    assert_int_equal(tci_mcp_session_busy(t.session), 0);
}

static void test_an_id_that_is_in_use_is_refused(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_true(say(CALL("1")));
    assert_true(say(CALL("1")));
    assert_error(TCI_MCP_INVALID_REQUEST);
    assert_true(say(PING("1")));
    assert_error(TCI_MCP_INVALID_REQUEST);
    assert_int_equal(t.call_count, 1);
    tci_mcp_answer(t.calls[0], "{}");
    assert_true(say(CALL("1")));
    assert_int_equal(t.call_count, 2);
    tci_mcp_answer(t.calls[1], "{}");
}

static void test_requests_under_way_are_bounded(void **state)
{
    char text[128];
    (void)state;
    initialize("2025-11-25");
    for (int i = 0; i <= TCI_MCP_REQUESTS_MAX; i++) {
        (void)snprintf(text, sizeof text, CALL("%d"), i + 100);
        assert_true(say(text));
    }
    assert_int_equal(t.call_count, TCI_MCP_REQUESTS_MAX);
    assert_error(TCI_MCP_BUSY);
    for (size_t i = 0; i < t.call_count; i++)
        tci_mcp_answer(t.calls[i], "{}");
}

static void test_a_cancelled_request_gets_no_answer(void **state)
{
    size_t before;
    (void)state;
    initialize("2025-11-25");
    assert_true(say_on(9, CALL("1")));
    before = t.sent_count;
    assert_false(say(CANCEL("2")));
    assert_false(say(CANCEL("\"1\"")));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}"));
    assert_int_equal(t.cancel_count, 0);
    assert_false(say(CANCEL("1")));
    assert_false(say(CANCEL("1")));
    assert_int_equal(t.cancel_count, 1);
    assert_int_equal(t.sent_count, before);
    tci_mcp_answer(t.calls[0], "{}");
    /* Only that the stream is over. */
    assert_int_equal(t.sent_count, before + 1);
    assert_string_equal(newest(), "");
    assert_int_equal(t.streams[before], 9);
    assert_true(t.last[before]);
}

static void test_an_answer_that_is_too_large_becomes_an_error(void **state)
{
    char *large = malloc(TCI_MCP_ANSWER_MAX + 1);
    (void)state;
    memset(large, '1', TCI_MCP_ANSWER_MAX);
    large[TCI_MCP_ANSWER_MAX] = '\0';
    initialize("2025-11-25");
    assert_true(say(CALL("1")));
    tci_mcp_answer(t.calls[0], large);
    assert_error(TCI_MCP_INTERNAL);
    assert_non_null(strstr(newest(), "\"id\":1"));
    free(large);
}

static void test_a_closed_session_sends_nothing_and_kills_its_calls(void **state)
{
    size_t before;
    (void)state;
    initialize("2025-11-25");
    assert_true(say(CALL("1")));
    assert_true(say(CALL("2")));
    before = t.sent_count;
    tci_mcp_session_close(tc_take(t.session));
    assert_int_equal(t.cancel_count, 2);
    tci_mcp_notify(t.calls[0]->session, 0, "notifications/message", "{}");
    tci_mcp_answer(t.calls[0], "{}");
    tci_mcp_answer(t.calls[1], "{}");
    assert_int_equal(t.sent_count, before);
}

static void test_a_transport_may_close_the_session_while_it_sends(void **state)
{
    (void)state;
    initialize("2025-03-26");
    assert_true(say(CALL("1")));
    t.close_on_send = true;
    (void)say("[" PING("2") "," PING("3") ",7]");
    assert_null(t.session);
    assert_int_equal(t.cancel_count, 1);
    tci_mcp_answer(t.calls[0], "{}");
}

/* ---- batches ------------------------------------------------------------------------------ */

static void test_a_batch_is_answered_together_when_its_last_is(void **state)
{
    size_t before;
    (void)state;
    initialize("2025-03-26");
    before = t.sent_count;
    assert_true(say_on(
        3, "[" CALL("1") "," PING(
               "2") ","
                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},3," CALL("4") "]"));
    assert_int_equal(t.call_count, 2);
    tci_mcp_answer(t.calls[1], "{\"n\":4}");
    assert_int_equal(t.sent_count, before);
    tci_mcp_answer(t.calls[0], "{\"n\":1}");
    assert_int_equal(t.sent_count, before + 1);
    assert_int_equal(t.streams[before], 3);
    assert_string_equal(newest(),
                        "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},"
                        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":"
                        "\"a message must be an object\"}},"
                        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"n\":4}},"
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1}}]");
}

static void test_a_batch_without_requests_is_not_answered(void **state)
{
    size_t before;
    (void)state;
    initialize("2025-03-26");
    before = t.sent_count;
    assert_false(say("[{\"jsonrpc\":\"2.0\",\"method\":\"a\"},"
                     "{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"result\":{}}]"));
    assert_int_equal(t.sent_count, before);
}

static void test_a_cancelled_member_is_left_out_of_the_batch(void **state)
{
    (void)state;
    initialize("2025-03-26");
    assert_true(say("[" CALL("1") "," CALL("2") "]"));
    assert_false(say(CANCEL("1")));
    tci_mcp_answer(t.calls[0], "{}");
    tci_mcp_answer(t.calls[1], "{}");
    assert_string_equal(newest(), "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
    assert_true(say("[" CALL("1") "]"));
    assert_false(say(CANCEL("1")));
    tci_mcp_answer(t.calls[2], "{}");
    assert_string_equal(newest(), "");
}

static void test_batches_belong_to_one_version(void **state)
{
    (void)state;
    assert_true(say("[" PING("1") "]"));
    assert_error(TCI_MCP_INVALID_REQUEST);
    initialize("2025-06-18");
    assert_true(say("[" PING("1") "]"));
    assert_error(TCI_MCP_INVALID_REQUEST);
}

/* ---- questions to the client -------------------------------------------------------------- */

static void on_answer(void *context, const struct json_t *result)
{
    (void)context;
    if (result)
        t.answers++;
    else
        t.refusals++;
}

static void test_a_question_is_answered_once(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_int_equal(tci_mcp_ask(t.session, 4, "elicitation/create", "{}", on_answer, NULL), 1);
    assert_string_equal(newest(), "{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"method\":"
                                  "\"elicitation/create\",\"params\":{}}");
    assert_int_equal(t.streams[t.sent_count - 1], 4);
    assert_false(t.last[t.sent_count - 1]);
    /* Others' ids, other spellings, and numbers. */
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-2\",\"result\":{}}"));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-01\",\"result\":{}}"));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-0\",\"result\":{}}"));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"));
    assert_int_equal(t.answers + t.refusals, 0);
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"result\":{}}"));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"result\":{}}"));
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.refusals, 0);
    assert_int_equal(tci_mcp_ask(t.session, 0, "elicitation/create", "{}", on_answer, NULL), 2);
    assert_false(
        say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-2\",\"error\":{\"code\":1,\"message\":\"\"}}"));
    assert_int_equal(t.refusals, 1);
}

static void test_a_question_that_is_taken_back_is_not_answered(void **state)
{
    uint64_t question;
    (void)state;
    initialize("2025-11-25");
    question = tci_mcp_ask(t.session, 0, "elicitation/create", "{}", on_answer, NULL);
    tci_mcp_unask(t.session, question);
    assert_non_null(strstr(newest(), "notifications/cancelled"));
    assert_non_null(strstr(newest(), "tc-1"));
    assert_false(say("{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"result\":{}}"));
    assert_int_equal(t.answers + t.refusals, 0);
}

static void test_open_questions_are_refused_when_the_client_goes(void **state)
{
    (void)state;
    initialize("2025-11-25");
    for (int i = 0; i < TCI_MCP_ASKED_MAX; i++)
        assert_true(tci_mcp_ask(t.session, 0, "ping", NULL, on_answer, NULL));
    assert_int_equal(tci_mcp_ask(t.session, 0, "ping", NULL, on_answer, NULL), 0);
    tci_mcp_session_close(tc_take(t.session));
    assert_int_equal(t.refusals, TCI_MCP_ASKED_MAX);
}

/* ---- log lines and pages ------------------------------------------------------------------ */

static void test_log_lines_below_the_level_are_not_sent(void **state)
{
    size_t before;
    (void)state;
    tci_mcp_log(t.session, 0, TCI_MCP_EMERGENCY, NULL, "early", 5);
    assert_int_equal(t.sent_count, 0);
    initialize("2025-11-25");
    before = t.sent_count;
    tci_mcp_log(t.session, 0, TCI_MCP_DEBUG, "x", "a", 1);
    assert_int_equal(t.sent_count, before);
    tci_mcp_log(t.session, 0, TCI_MCP_INFO, "x", "a\nb\xff", 4);
    assert_string_equal(newest(), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                                  "\"params\":{\"level\":\"info\",\"logger\":\"x\",\"data\":"
                                  "\"a\\nb\\ufffd\"}}");
    assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{"
                    "\"level\":\"error\"}}"));
    before = t.sent_count;
    tci_mcp_log(t.session, 0, TCI_MCP_WARNING, "x", "a", 1);
    assert_int_equal(t.sent_count, before);
    assert_true(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{"
                    "\"level\":\"loud\"}}"));
    assert_error(TCI_MCP_INVALID_PARAMS);
}

static enum tci_mcp_outcome page(const char *cursor, uint64_t generation, size_t *ret)
{
    struct tci_mcp_failure failure = { 0 };
    json_t *params = json_pack("{s:s}", "cursor", cursor);
    enum tci_mcp_outcome outcome = tci_mcp_page(params, generation, ret, &failure);
    assert_int_equal(failure.code, outcome == TCI_MCP_DONE ? 0 : TCI_MCP_INVALID_PARAMS);
    json_decref(params);
    return outcome;
}

static void test_a_cursor_is_good_for_its_own_list_only(void **state)
{
    static const char *const bad[] = { "",       "-",      "3-",    "3-0",    "3--1", "3-100 ",
                                       "03-100", "3-0100", "4-100", "3-+100", "x" };
    struct tci_mcp_failure failure = { 0 };
    char cursor[40];
    size_t first = 5;
    (void)state;
    tci_mcp_page_cursor(3, 100, cursor);
    assert_int_equal(page(cursor, 3, &first), TCI_MCP_DONE);
    assert_int_equal(first, 100);
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        assert_int_equal(page(bad[i], 3, &first), TCI_MCP_FAILED);
        assert_int_equal(first, 0);
    }
    assert_int_equal(tci_mcp_page(NULL, 3, &first, &failure), TCI_MCP_DONE);
    assert_int_equal(first, 0);
}

static void test_sessions_are_bounded(void **state)
{
    const struct tci_mcp_transport transport = { .send = on_send };
    struct tci_mcp_session *session;
    (void)state;
    while (t.server.session_count < TCI_MCP_SESSIONS_MAX)
        assert_int_equal(tci_mcp_session_open(&t.server, "a", &transport, &session, NULL), 0);
    assert_int_equal(tci_mcp_session_open(&t.server, "a", &transport, &session, NULL), -1);
    t.session = NULL;
    while (t.server.sessions)
        tci_mcp_session_close(t.server.sessions);
}

static char *large_result(size_t length)
{
    char *text = malloc(length + 16);
    assert_non_null(text);
    memcpy(text, "{\"a\":\"", 6);
    memset(text + 6, 'x', length);
    strcpy(text + 6 + length, "\"}");
    return text;
}

/* What has no room is an error of its own; the others are there. */
static void test_a_large_answer_of_a_batch_does_not_take_the_others_away(void **state)
{
    char *large = large_result(10 * 1024 * 1024);
    json_t *answers;
    (void)state;
    initialize("2025-03-26");
    say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"},"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"},"
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\"}]");
    tci_mcp_answer(t.calls[0], large);
    tci_mcp_answer(t.calls[1], large);
    tci_mcp_answer(t.calls[2], "{}");
    free(large);
    answers = json_loads(newest(), 0, NULL);
    assert_int_equal(json_array_size(answers), 3);
    assert_non_null(json_object_get(json_array_get(answers, 0), "result"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(answers, 1), "id")), 2);
    assert_non_null(json_object_get(json_array_get(answers, 1), "error"));
    assert_non_null(json_object_get(json_array_get(answers, 2), "result"));
    json_decref(answers);
}

static struct tci_mcp_session *open_for_batches(const char *agent)
{
    const struct tci_mcp_transport transport = { .send = on_send };
    assert_int_equal(tci_mcp_session_open(&t.server, agent, &transport, &t.session, NULL), 0);
    initialize("2025-03-26");
    return t.session;
}

/* A batch of the session whose first call has a large answer and whose second goes on. Returns whether it got in, as
 * its end shows: that is when `end`. */
static bool gets_in(struct tci_mcp_session *session, const char *large, bool end)
{
    size_t before = t.sent_count, first = t.call_count;
    t.session = session;
    assert_true(say("[" CALL("1") "," CALL("2") "]"));
    tci_mcp_answer(t.calls[first], large);
    assert_int_equal(t.sent_count, before);
    if (!end)
        return false;
    tci_mcp_answer(t.calls[first + 1], "{}");
    assert_int_equal(t.sent_count, before + 1);
    if (strstr(newest(), "take too much memory"))
        assert_non_null(strstr(newest(), "\"id\":1,\"error\":{\"code\":-32000"));
    return strlen(newest()) > strlen(large);
}

static void test_answers_of_an_agents_batches_are_bounded_until_they_are_sent(void **state)
{
    char *large = large_result(12 * 1024 * 1024);
    struct tci_mcp_session *of_a[3], *of_b;
    size_t first = t.call_count;
    (void)state;
    tci_mcp_session_close(t.session);
    of_b = open_for_batches("b");
    for (size_t i = 0; i < tci_array_size(of_a); i++)
        of_a[i] = open_for_batches("a");
    (void)gets_in(of_a[0], large, false);
    (void)gets_in(of_a[1], large, false);
    assert_false(gets_in(of_a[2], large, true));
    assert_true(gets_in(of_b, large, true));
    /* What is sent gives its room back, and so does a session that ends, while its call is still being killed. */
    tci_mcp_answer(t.calls[first + 1], "{}");
    assert_true(gets_in(of_a[2], large, true));
    assert_true(gets_in(of_a[2], large, true));
    (void)gets_in(of_a[0], large, false);
    assert_false(gets_in(of_a[2], large, true));
    tci_mcp_session_close(of_a[1]);
    assert_true(gets_in(of_a[2], large, true));
    tci_mcp_answer(t.calls[first + 3], "{}");
    tci_mcp_session_close(of_a[0]);
    tci_mcp_answer(t.calls[t.call_count - 5], "{}");
    tci_mcp_session_close(of_a[2]);
    t.session = of_b;
    free(large);
}

/* Many agents together: each leaves something to the next. */
static void test_answers_of_all_batches_are_bounded(void **state)
{
    enum { agents = 12, large_size = 10 * 1024 * 1024 };
    char *large = large_result(large_size), name[8];
    struct tci_mcp_session *sessions[agents];
    size_t waiting = 0, bytes = 0;
    (void)state;
    tci_mcp_session_close(t.session);
    for (size_t i = 0; i < agents; i++) {
        (void)snprintf(name, sizeof name, "a%zu", i);
        sessions[i] = open_for_batches(name);
        for (int k = 0; k < 3; k++) {
            char text[256];
            (void)snprintf(text, sizeof text, "[" CALL("%d") "," CALL("%d") "]", k, 10 + k);
            assert_true(say(text));
            tci_mcp_answer(t.calls[t.call_count - 2], large);
            t.calls[waiting++] = t.calls[t.call_count - 1];
            t.call_count = waiting;
        }
    }
    t.session = sessions[agents - 1];
    (void)gets_in(t.session, "{}", true);
    assert_null(strstr(newest(), "error"));
    for (size_t i = 0; i < waiting; i++) {
        tci_mcp_answer(t.calls[i], "{}");
        bytes += strlen(newest());
        free(t.sent[--t.sent_count]);
    }
    assert_in_range(bytes, 4 * large_size, 128 << 20);
    for (size_t i = 0; i < agents; i++)
        tci_mcp_session_close(sessions[i]);
    t.session = NULL;
    free(large);
}

/* Each has a call that goes on, and 63 answers at once that are mostly id. */
static void test_batches_with_small_answers_are_bounded(void **state)
{
    struct tci_mcp_session *sessions[3];
    struct tci_buf text = TCI_BUF_INIT(1 << 20);
    size_t before, calls;
    json_t *answers;
    (void)state;
    tci_mcp_session_close(t.session);
    for (size_t i = 0; i < tci_array_size(sessions); i++) {
        sessions[i] = open_for_batches("a");
        before = t.sent_count;
        for (int batch = 0; batch < (i < 2 ? TCI_MCP_REQUESTS_MAX : 1); batch++) {
            tci_buf_free(&text);
            tci_buf_printf(&text, "[" CALL("%d"), batch);
            for (int k = 1; k < TCI_MCP_BATCH_MAX; k++)
                tci_buf_printf(
                    &text, ",{\"jsonrpc\":\"2.0\",\"id\":\"\\u0001%0200d\",\"method\":\"ping\"}",
                    k);
            tci_buf_char(&text, ']');
            calls = t.call_count;
            assert_true(say(text.data));
            if (i < 2)
                assert_int_equal(t.call_count, calls + 1);
        }
        if (i < 2)
            assert_int_equal(t.sent_count, before);
    }
    assert_int_equal(t.call_count, 2 * TCI_MCP_REQUESTS_MAX);
    answers = json_loads(newest(), 0, NULL);
    assert_int_equal(json_array_size(answers), TCI_MCP_BATCH_MAX);
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(json_array_get(answers, 0), "error"), "code")),
                     TCI_MCP_BUSY);
    json_decref(answers);
    for (size_t i = 0; i < t.call_count; i++)
        tci_mcp_answer(t.calls[i], "{}");
    assert_true(gets_in(sessions[2], "{}", true));
    for (size_t i = 0; i < tci_array_size(sessions); i++)
        tci_mcp_session_close(sessions[i]);
    t.session = NULL;
    tci_buf_free(&text);
}

/* By their bytes, too: what a tool leaves is in memory where /tmp is. */
static void test_large_files_make_room_for_each_other(void **state)
{
    static char store[] = "/nonexistent/store";
    struct tc_file file = { .path = "/tmp/a", .media_type = "text/plain", .size = 200 << 20 };
    char *first;
    (void)state;
    t.server.store = store;
    file.saved = "/nonexistent/store/session/call1/a";
    first = strdup(tci_mcp_files_add(t.session, "call1", &file));
    tci_mcp_files_done(t.session, "/nonexistent/store/session/call1");
    assert_non_null(tci_mcp_files_find(t.session, first));
    file.saved = "/nonexistent/store/session/call2/a";
    assert_non_null(tci_mcp_files_add(t.session, "call2", &file));
    assert_null(tci_mcp_files_find(t.session, first));
    assert_int_equal(t.session->file_count, 1);
    free(first);
}

/* Nobody says anything any more: questions that come later are not asked. */
static void test_after_the_end_of_the_input_nothing_is_asked(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_int_not_equal(tci_mcp_ask(t.session, 1, "elicitation/create", "{}", on_answer, NULL), 0);
    tci_mcp_session_hung_up(t.session);
    assert_int_equal(tci_mcp_ask(t.session, 1, "elicitation/create", "{}", on_answer, NULL), 0);
}

/* ---- a policy that is being loaded --------------------------------------------------------- */

static void *settle_later(void *context)
{
    (void)usleep(20000);
    tci_mcp_policy_pending(context, false);
    return NULL;
}

static void test_calls_wait_for_a_policy_but_not_for_ever(void **state)
{
    struct tci_mcp_engine engine = { .users = 1, .server = &t.server };
    pthread_t thread;
    (void)state;
    (void)pthread_mutex_init(&t.server.policy_lock, NULL);
    (void)pthread_cond_init(&t.server.policy_settled, NULL);
    t.server.engine = &engine;
    assert_ptr_equal(tci_mcp_engine_take(&t.server), &engine);

    tci_mcp_policy_pending(&t.server, true);
    assert_int_equal(pthread_create(&thread, NULL, settle_later, &t.server), 0);
    assert_true(tci_mcp_policy_await(&t.server));
    assert_int_equal(t.server.policy_pending, 0);
    pthread_join(thread, NULL);

    /* It hangs: the policy in force may be one that allows too much. */
    tci_mcp_policy_pending(&t.server, true);
    t.server.policy_pending -= TCI_MCP_POLICY_MS * 1000ULL;
    assert_null(tci_mcp_engine_take(&t.server));
    assert_int_equal(engine.users, 2);
    (void)pthread_cond_destroy(&t.server.policy_settled);
    (void)pthread_mutex_destroy(&t.server.policy_lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- files of many sessions ----------------------------------------------------------------- */

static void keep_file(struct tci_mcp_session *session, unsigned number)
{
    char saved[64], directory[48], id[37];
    struct tc_file file = { .path = "/w/f", .media_type = "text/plain", .size = 250 << 20 };
    (void)snprintf(directory, sizeof directory, "/nonexistent/store/s/c%u", number);
    (void)snprintf(saved, sizeof saved, "%s/f", directory);
    (void)snprintf(id, sizeof id, "00000000-0000-7000-8000-%012u", number);
    file.saved = saved;
    assert_non_null(tci_mcp_files_add(session, id, &file));
    tci_mcp_files_done(session, directory);
}

static void test_files_of_an_agent_are_bounded_over_all_its_sessions(void **state)
{
    enum { count = 8 };
    const struct tci_mcp_transport transport = { .send = on_send };
    struct tci_mcp_session *sessions[count], *other;
    char store[] = "/nonexistent/store";
    size_t kept = 0;

    (void)state;
    t.server.store = store;
    assert_int_equal(tci_mcp_session_open(&t.server, "b", &transport, &other, NULL), 0);
    keep_file(other, 100);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(tci_mcp_session_open(&t.server, "a", &transport, &sessions[i], NULL), 0);
        keep_file(sessions[i], i);
        assert_int_equal(sessions[i]->file_count, 1); /* the newest is there */
    }
    for (unsigned i = 0; i < count; i++) {
        kept += sessions[i]->file_count;
        tci_mcp_session_close(sessions[i]);
    }
    assert_int_equal(kept, 4);
    assert_int_equal(other->file_count, 1);
    tci_mcp_session_close(other);
    t.server.store = NULL;
}

static void test_store_that_cannot_be_opened_leaves_no_directory(void **state)
{
    char directory[] = "/tmp/test_mcp_store.XXXXXX";
    struct tci_mcp_server server = { .store_lock = -1 };
    struct tc_error error = { 0 };
    struct rlimit limit, none;
    int r;
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("TMPDIR", directory, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = tci_mcp_store_make(&server, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(r < 0);
    assert_null(server.store);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(rmdir(directory), 0); /* it is empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_files_of_an_agent_are_bounded_over_all_its_sessions),
        TEST(test_store_that_cannot_be_opened_leaves_no_directory),
        TEST(test_versions_are_agreed_on),
        TEST(test_nothing_but_ping_comes_before_initialize),
        TEST(test_a_session_is_initialized_once),
        TEST(test_answers_may_come_in_any_order),
        TEST(test_an_id_that_is_in_use_is_refused),
        TEST(test_requests_under_way_are_bounded),
        TEST(test_a_cancelled_request_gets_no_answer),
        TEST(test_an_answer_that_is_too_large_becomes_an_error),
        TEST(test_a_closed_session_sends_nothing_and_kills_its_calls),
        TEST(test_a_transport_may_close_the_session_while_it_sends),
        TEST(test_a_batch_is_answered_together_when_its_last_is),
        TEST(test_a_batch_without_requests_is_not_answered),
        TEST(test_a_cancelled_member_is_left_out_of_the_batch),
        TEST(test_batches_belong_to_one_version),
        TEST(test_a_question_is_answered_once),
        TEST(test_a_question_that_is_taken_back_is_not_answered),
        TEST(test_open_questions_are_refused_when_the_client_goes),
        TEST(test_log_lines_below_the_level_are_not_sent),
        TEST(test_a_cursor_is_good_for_its_own_list_only),
        TEST(test_sessions_are_bounded),
        TEST(test_a_large_answer_of_a_batch_does_not_take_the_others_away),
        TEST(test_answers_of_an_agents_batches_are_bounded_until_they_are_sent),
        TEST(test_answers_of_all_batches_are_bounded),
        TEST(test_batches_with_small_answers_are_bounded),
        TEST(test_large_files_make_room_for_each_other),
        TEST(test_after_the_end_of_the_input_nothing_is_asked),
        TEST(test_calls_wait_for_a_policy_but_not_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
