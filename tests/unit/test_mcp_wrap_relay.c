/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the relay keeps of calls, and what lists of the server may cost, without a server: what is sent to it goes
 * into a pipe, and its lines are made here. */
#include "support.h"

#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/call.h"
#include "mcp/wrap_internal.h"
#include "policy/units.h"

struct relay {
    struct tci_mcp_wrap_options options;
    struct tc_call call; /* runs nothing: it cannot be killed either */
    struct tci_tool tool;
    struct tci_wrap wrap;
};

static int begin(void **state)
{
    struct relay *relay = calloc(1, sizeof *relay);
    struct tci_wrap *wrap = &relay->wrap;
    char problem[256];
    *state = relay;
    relay->tool.settings.timeout = 60000;
    wrap->tool = &relay->tool;
    wrap->options = &relay->options;
    wrap->call = &relay->call;
    wrap->has_list = wrap->is_shown = true;
    wrap->unasked = (struct tci_wrap_bucket){ .most = 1000, .a_second = 1000 };
    wrap->unasked_work = (struct tci_wrap_bucket){ .most = 10000, .a_second = 0.001 };
    if (tci_wrap_list_complete(&wrap->list, problem, NULL) != 0 ||
        tci_pipe(wrap->server_in, 0) < 0 || tci_mcp_loop_new(1, false, &wrap->loop, NULL) < 0)
        return -1;
    wrap->base = tci_mcp_loop_base(wrap->loop);
    return tci_wrap_server_open_input(wrap, NULL);
}

static int end(void **state)
{
    struct relay *relay = *state;
    struct tci_wrap *wrap = &relay->wrap;
    while (wrap->pending)
        tci_wrap_pending_free(wrap->pending);
    tci_mcp_channel_free(wrap->to_server);
    if (wrap->failing)
        event_free(wrap->failing);
    if (wrap->relist)
        event_free(wrap->relist);
    tci_mcp_loop_free(wrap->loop);
    tci_wrap_list_free(&wrap->list);
    tci_wrap_list_free(&wrap->next_list);
    (void)tci_close(wrap->server_in[0]);
    (void)tci_close(wrap->server_in[1]);
    free(relay);
    return 0;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void test_arguments_of_a_call_are_not_kept_once_it_is_sent(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    struct tci_wrap_pending *pending = tci_wrap_pending_new(wrap, TCI_WRAP_CALL, NULL,
                                                            "tools/call");
    pending->arguments = json_pack("{s:s,s:{}}", "name", "a", "arguments");
    pending->arguments_text = strdup("{\"arguments\":{},\"name\":\"a\"}");
    tci_wrap_send(pending, pending->arguments, TCI_UNLIMITED);
    assert_null(pending->arguments);
    assert_null(pending->arguments_text);
    assert_false(wrap->is_failed);
}

static void test_arguments_of_a_call_are_not_kept_once_nobody_waits(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    struct tci_wrap_pending *pending = tci_wrap_pending_new(wrap, TCI_WRAP_CALL, NULL,
                                                            "tools/call");
    pending->arguments = json_object();
    pending->arguments_text = strdup("{}");
    tci_wrap_abandon(pending, "cancelled");
    assert_int_equal(pending->kind, TCI_WRAP_ABANDONED);
    assert_null(pending->arguments);
    assert_null(pending->arguments_text);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* The server answers the last request, with that many values that nobody needs. */
static int answer(struct tci_wrap *wrap, const char *result, size_t values)
{
    struct tci_buf line = TCI_BUF_INIT(1000000);
    int r;
    tci_buf_printf(&line,
                   "{\"jsonrpc\":\"2.0\",\"id\":\"tc-%" PRIu64 "\",\"result\":{%s\"junk\":[0",
                   wrap->last_id, result);
    for (size_t i = 1; i < values; i++)
        tci_buf_string(&line, ",0");
    tci_buf_string(&line, "]}}");
    assert_int_equal(tci_buf_check(&line, NULL), 0);
    r = tci_wrap_server_line(wrap, line.data, line.length);
    tci_buf_free(&line);
    return r;
}

static void test_lists_that_nobody_but_the_server_wants_count_as_unasked(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    int pages = 0;
    tci_wrap_list_again(wrap);
    while (pages < 50 && answer(wrap, "\"tools\":[],\"nextCursor\":\"c\",", 100) == 0)
        pages++;
    assert_true(pages > 0 && pages < 10);
    assert_true(wrap->is_failed);
    assert_non_null(strstr(wrap->error.message, "the server floods"));
}

static void test_answer_to_a_ping_of_ours_counts_as_unasked(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    int r = 0;
    for (int i = 0; i < 10 && r == 0; i++) {
        tci_wrap_send(tci_wrap_pending_new(wrap, TCI_WRAP_PING, NULL, "ping"), NULL, TCI_UNLIMITED);
        r = answer(wrap, "", 200);
    }
    assert_int_not_equal(r, 0);
    assert_non_null(strstr(wrap->error.message, "the server floods"));
}

static void test_answer_that_the_client_waits_for_does_not_count(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    for (int i = 0; i < 10; i++) {
        tci_wrap_send(tci_wrap_pending_new(wrap, TCI_WRAP_PLAIN, NULL, "resources/list"), NULL,
                      TCI_UNLIMITED);
        assert_int_equal(answer(wrap, "", 200), 0);
    }
    assert_false(wrap->is_failed);
}

static void test_list_that_was_just_read_is_read_again_later(void **state)
{
    struct tci_wrap *wrap = &((struct relay *)*state)->wrap;
    uint64_t began = tci_clock_us();
    tci_wrap_list_again(wrap); /* the first time at once */
    assert_int_equal(wrap->last_id, 1);
    tci_wrap_list_again(wrap);
    assert_int_equal(answer(wrap, "\"tools\":[],", 1), 0);
    for (int i = 0; i < 3; i++)
        tci_wrap_list_again(wrap);
    if (tci_clock_us() - began >= 1000000)
        skip(); /* a second has passed here */
    assert_int_equal(wrap->last_id, 1);
    assert_true(wrap->list_again && !wrap->is_listing);
    while (wrap->last_id == 1 && !wrap->is_failed)
        assert_int_equal(event_base_loop(wrap->base, EVLOOP_ONCE), 0);
    assert_int_equal(wrap->last_id, 2);
    assert_true(wrap->is_listing && !wrap->is_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arguments_of_a_call_are_not_kept_once_it_is_sent,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_arguments_of_a_call_are_not_kept_once_nobody_waits,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            test_lists_that_nobody_but_the_server_wants_count_as_unasked, begin, end),
        cmocka_unit_test_setup_teardown(test_answer_to_a_ping_of_ours_counts_as_unasked, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_answer_that_the_client_waits_for_does_not_count, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_list_that_was_just_read_is_read_again_later, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
