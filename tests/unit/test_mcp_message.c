/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is a message and what is none, and that what is written is one line that reads
 * back. */
#include "support.h"

#include <jansson.h>
#include "mcp/message.h"

static void read_text(const char *text, struct tci_mcp_message *ret)
{
    assert_int_equal(tci_mcp_read(text, strlen(text), ret, NULL), 0);
}

static void assert_kind(const char *text, enum tci_mcp_kind kind)
{
    struct tci_mcp_message message;
    read_text(text, &message);
    if (message.kind != kind)
        print_error("%s\n%s\n", text, message.problem);
    assert_int_equal(message.kind, kind);
    tci_mcp_message_free(&message);
}

/* `id`: as JSON; NULL: the answer goes to nobody in particular. */
static void assert_invalid(const char *text, int code, const char *id)
{
    struct tci_mcp_message message;
    struct tci_buf out = TCI_BUF_INIT(4096);
    read_text(text, &message);
    if (message.kind != TCI_MCP_INVALID || message.code != code)
        print_error("%s\n%d %s\n", text, message.code, message.problem);
    assert_int_equal(message.kind, TCI_MCP_INVALID);
    assert_int_equal(message.code, code);
    assert_true(message.problem[0]);
    if (id) {
        assert_non_null(message.id);
        tci_mcp_write_value(&out, message.id);
        assert_string_equal(out.data, id);
    } else {
        assert_null(message.id);
    }
    tci_buf_free(&out);
    tci_mcp_message_free(&message);
}

static void test_requests_notifications_and_responses_are_told_apart(void **state)
{
    struct tci_mcp_message message;
    (void)state;
    read_text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"a\":1}}", &message);
    assert_int_equal(message.kind, TCI_MCP_REQUEST);
    assert_string_equal(message.method, "ping");
    assert_int_equal(json_object_size(message.params), 1);
    tci_mcp_message_free(&message);

    read_text("{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":null}", &message);
    assert_int_equal(message.kind, TCI_MCP_NOTIFICATION);
    assert_null(message.params);
    assert_null(message.id);
    tci_mcp_message_free(&message);

    read_text("{\"jsonrpc\":\"2.0\",\"id\":\"tc-1\",\"result\":{}}", &message);
    assert_int_equal(message.kind, TCI_MCP_RESPONSE);
    assert_non_null(message.result);
    assert_null(message.failure);
    tci_mcp_message_free(&message);

    read_text("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\"}}",
              &message);
    assert_int_equal(message.kind, TCI_MCP_RESPONSE);
    assert_non_null(message.failure);
    assert_null(message.id);
    tci_mcp_message_free(&message);

    assert_kind("[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]", TCI_MCP_BATCH);
    assert_kind("  \t{\"jsonrpc\":\"2.0\",\"method\":\"n\"} \r", TCI_MCP_NOTIFICATION);
}

static void assert_id_comes_back(const char *id)
{
    struct tci_mcp_message message;
    struct tci_buf out = TCI_BUF_INIT(4096);
    char text[1024], expected[1024];
    (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", id);
    (void)snprintf(expected, sizeof expected, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", id);
    read_text(text, &message);
    assert_int_equal(message.kind, TCI_MCP_REQUEST);
    tci_mcp_write_result(&out, message.id, "{}");
    assert_string_equal(out.data, expected);
    tci_buf_free(&out);
    tci_mcp_message_free(&message);
}

static void test_ids_come_back_exactly(void **state)
{
    (void)state;
    assert_id_comes_back("0");
    assert_id_comes_back("-1");
    assert_id_comes_back("9007199254740991");
    assert_id_comes_back("-9007199254740991");
    assert_id_comes_back("1000000000000000");
    assert_id_comes_back("\"\"");
    assert_id_comes_back("\"1\"");
    assert_id_comes_back("\"\xc3\xa4\xe2\x82\xac \\\"\\n\"");
}

static void test_ids_that_could_not_come_back_are_refused(void **state)
{
    static const char *const ids[] = {
        "1.5", "9007199254740992", "9007199254740993", "1e300", "null", "true", "[]", "{}"
    };
    char text[1024], name[400];
    (void)state;
    for (size_t i = 0; i < tci_array_size(ids); i++) {
        (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}",
                       ids[i]);
        assert_invalid(text, TCI_MCP_INVALID_REQUEST, NULL);
    }
    memset(name, 'x', sizeof name);
    (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":\"%.256s\",\"method\":\"p\"}",
                   name);
    assert_kind(text, TCI_MCP_REQUEST);
    (void)snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":\"%.257s\",\"method\":\"p\"}",
                   name);
    assert_invalid(text, TCI_MCP_INVALID_REQUEST, NULL);
}

static void test_what_is_no_message_is_refused_with_its_id(void **state)
{
    (void)state;
    assert_invalid("nonsense", TCI_MCP_PARSE_ERROR, NULL);
    assert_invalid("{\"jsonrpc\":\"2.0\",", TCI_MCP_PARSE_ERROR, NULL);
    assert_invalid("\x80", TCI_MCP_PARSE_ERROR, NULL);
    assert_invalid("1", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("null", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("[]", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("{}", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("{\"id\":1,\"method\":\"ping\"}", TCI_MCP_INVALID_REQUEST, "1");
    assert_invalid("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", TCI_MCP_INVALID_REQUEST, "1");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":\"x\"}", TCI_MCP_INVALID_REQUEST, "\"x\"");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", TCI_MCP_INVALID_REQUEST, "1");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", TCI_MCP_INVALID_REQUEST, "1");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[1]}",
                   TCI_MCP_INVALID_PARAMS, "1");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":{}}",
                   TCI_MCP_INVALID_REQUEST, "1");
}

static void test_a_key_that_stands_twice_is_refused(void **state)
{
    (void)state;
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"tools/call\"}",
                   TCI_MCP_PARSE_ERROR, NULL);
}

static void test_a_nul_in_a_text_is_refused_for_its_request(void **state)
{
    (void)state;
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"m\",\"params\":{\"a\":\"\\u0000\"}}",
                   TCI_MCP_INVALID_REQUEST, "4");
}

/* An error with its id would look like the answer to a request of the client. */
static void test_invalid_responses_are_not_answered_by_their_id(void **state)
{
    (void)state;
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
                   TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}", TCI_MCP_INVALID_REQUEST, NULL);
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", TCI_MCP_INVALID_REQUEST,
                   NULL);
}

static void test_depth_is_bounded(void **state)
{
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":";
    const size_t most = TCI_MCP_DEPTH_MAX - 2;
    struct tci_buf text = TCI_BUF_INIT(1 << 20);
    (void)state;
    for (int more = 0; more < 2; more++) {
        size_t depth = most + (size_t)more;
        text.length = 0;
        tci_buf_string(&text, head);
        for (size_t i = 0; i < depth; i++)
            tci_buf_char(&text, '[');
        for (size_t i = 0; i < depth; i++)
            tci_buf_char(&text, ']');
        tci_buf_string(&text, "}}");
        if (more)
            assert_invalid(text.data, TCI_MCP_INVALID_REQUEST, "1");
        else
            assert_kind(text.data, TCI_MCP_REQUEST);
    }
    text.length = 0;
    for (int i = 0; i < TCI_MCP_VALUES_MAX - 1; i++)
        tci_buf_char(&text, '[');
    assert_invalid(text.data, TCI_MCP_PARSE_ERROR, NULL);
    tci_buf_free(&text);
}

/* A message of so many values, as an array among its params. */
static void many_values(struct tci_buf *text, const char *head, size_t count)
{
    text->length = 0;
    tci_buf_string(text, head);
    for (size_t i = 1; i < count; i++)
        tci_buf_string(text, "0,");
    tci_buf_string(text, "0]}}");
}

static void test_values_are_bounded_before_they_are_read(void **state)
{
    static const char head[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"m\",\"params\":{\"a\":[";
    static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"a\":[";
    struct tci_buf text = TCI_BUF_INIT(1 << 20);
    struct tci_mcp_message message;
    (void)state;
    many_values(&text, head, TCI_MCP_VALUES_MAX - 100);
    assert_kind(text.data, TCI_MCP_REQUEST);
    many_values(&text, head, TCI_MCP_VALUES_MAX);
    assert_invalid(text.data, TCI_MCP_INVALID_REQUEST, "\"x\"");
    /* An answer is not answered. */
    many_values(&text, answer, TCI_MCP_VALUES_MAX);
    assert_invalid(text.data, TCI_MCP_INVALID_REQUEST, NULL);
    assert_int_equal(tci_mcp_read_server(text.data, text.length, &message, NULL), 0);
    assert_int_equal(message.kind, TCI_MCP_RESPONSE);
    tci_mcp_message_free(&message);
    many_values(&text, answer, TCI_MCP_SERVER_VALUES_MAX);
    assert_int_equal(tci_mcp_read_server(text.data, text.length, &message, NULL), 0);
    assert_int_equal(message.kind, TCI_MCP_INVALID);
    assert_non_null(strstr(message.problem, "more than 200000 JSON values"));
    tci_mcp_message_free(&message);
    tci_buf_free(&text);
}

static void test_integers_of_a_client_are_exact_or_refused(void **state)
{
    static const char answer[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":9007199254740993}}";
    struct tci_mcp_message message;
    (void)state;
    assert_kind(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":9007199254740992}}",
        TCI_MCP_REQUEST);
    assert_invalid(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":9007199254740993}}",
        TCI_MCP_INVALID_PARAMS, "1");
    assert_invalid("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
                   "\"params\":{\"a\":100000000000000001}}",
                   TCI_MCP_INVALID_PARAMS, "1");
    assert_int_equal(tci_mcp_read_server(answer, strlen(answer), &message, NULL), 0);
    assert_int_equal(message.kind, TCI_MCP_RESPONSE);
    tci_mcp_message_free(&message);
}

static void test_batches_are_bounded(void **state)
{
    struct tci_buf text = TCI_BUF_INIT(1 << 20);
    (void)state;
    tci_buf_string(&text, "[1");
    for (int i = 1; i < TCI_MCP_BATCH_MAX; i++)
        tci_buf_string(&text, ",1");
    tci_buf_string(&text, "]");
    assert_kind(text.data, TCI_MCP_BATCH);
    text.length--;
    tci_buf_string(&text, ",1]");
    assert_invalid(text.data, TCI_MCP_INVALID_REQUEST, NULL);
    tci_buf_free(&text);
}

static void test_a_result_cannot_begin_a_line_of_its_own(void **state)
{
    struct tci_buf out = TCI_BUF_INIT(4096);
    struct tci_mcp_message message;
    (void)state;
    tci_mcp_write_result(&out, NULL, "{\n  \"a\": \"x\\ny\"\r\n}\n");
    assert_null(strpbrk(out.data, "\r\n"));
    assert_string_equal(out.data, "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{   \"a\": "
                                  "\"x\\ny\"  } }");
    tci_buf_free(&out);

    out = (struct tci_buf)TCI_BUF_INIT(4096);
    tci_mcp_write_error(&out, NULL, -32000, "a\n{\"jsonrpc\":\"2.0\"}", "[\n]");
    assert_null(strpbrk(out.data, "\r\n"));
    read_text(out.data, &message);
    assert_int_equal(message.kind, TCI_MCP_RESPONSE);
    assert_string_equal(json_string_value(json_object_get(message.failure, "message")),
                        "a\n{\"jsonrpc\":\"2.0\"}");
    tci_mcp_message_free(&message);
    tci_buf_free(&out);
}

static void test_values_are_written_as_they_were_read(void **state)
{
    static const char text[] = "{\"z\":[1,-2.5,true,false,null,{}],\"a\":\"\xc3\xa4\\\\\\\"\"}";
    struct tci_buf out = TCI_BUF_INIT(4096);
    json_t *value = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
    (void)state;
    tci_mcp_write_value(&out, value);
    assert_string_equal(out.data, text);
    tci_buf_free(&out);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_notifications_and_responses_are_told_apart),
        cmocka_unit_test(test_ids_come_back_exactly),
        cmocka_unit_test(test_ids_that_could_not_come_back_are_refused),
        cmocka_unit_test(test_what_is_no_message_is_refused_with_its_id),
        cmocka_unit_test(test_a_key_that_stands_twice_is_refused),
        cmocka_unit_test(test_a_nul_in_a_text_is_refused_for_its_request),
        cmocka_unit_test(test_invalid_responses_are_not_answered_by_their_id),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_values_are_bounded_before_they_are_read),
        cmocka_unit_test(test_integers_of_a_client_are_exact_or_refused),
        cmocka_unit_test(test_batches_are_bounded),
        cmocka_unit_test(test_a_result_cannot_begin_a_line_of_its_own),
        cmocka_unit_test(test_values_are_written_as_they_were_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
