/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what becomes of a gate's records: connections and denials of a result, and events. */
#include "call_support.h"

#include "core/network.h"

static const struct tci_gate_record records[] = {
    { .event = TCI_GATE_CLOSED,
      .protocol = "tcp",
      .host = "api.example.com",
      .address = "192.0.2.7",
      .port = 443,
      .rule = "api.example.com:443",
      .reason = "no server name in TLS",
      .started_us = 1500,
      .duration_us = 45250,
      .bytes_in = 1234,
      .bytes_out = 300 },
    { .event = TCI_GATE_REFUSED,
      .protocol = "dns",
      .host = "evil.example",
      .reason = "no rule allows it",
      .fix = "add \"evil.example:443\" to \"network\"",
      .count = 2 },
    { .event = TCI_GATE_FAILED,
      .protocol = "tcp",
      .host = "2001:db8::1",
      .port = 80,
      .rule = "[2001:db8::/32]:*",
      .reason = "Connection refused",
      .duration_us = 90 },
    { .event = TCI_GATE_REFUSED,
      .protocol = "udp",
      .host = "192.0.2.1",
      .address = "192.0.2.1",
      .port = 123,
      .reason = "datagrams do not leave a cage" },
    { .event = TCI_GATE_REFUSED,
      .protocol = "dns",
      .host = "evil.example",
      .reason = "no rule allows it",
      .fix = "add \"evil.example:443\" to \"network\"",
      .count = 3 },
    { .event = TCI_GATE_FAILED, .protocol = "dns", .host = "gone.example" },
};

static int open_engine(void **state)
{
    static struct fixture fixture;
    open_fixture(&fixture, "version = 1\n[tool.plain]\n");
    *state = &fixture;
    return 0;
}

static int close_engine(void **state)
{
    close_fixture(*state);
    return 0;
}

static int use_records(void **state)
{
    (void)state;
    double_records = records;
    double_record_count = tci_array_size(records);
    double_dropped = 0;
    return 0;
}

static int drop_records(void **state)
{
    (void)state;
    double_records = NULL;
    double_record_count = double_dropped = 0;
    return 0;
}

static struct tc_result *run(void **state, const char *const *argv)
{
    return call(((struct fixture *)*state)->engine, &(struct tc_request){ .argv = argv });
}

/* ---- connections ------------------------------------------------------------------------------ */

static void test_connections_are_in_the_result(void **state)
{
    struct tc_result *r = run(state, ARGV("double:exit", "0"));
    const struct tc_connection *c = r->connections;
    assert_int_equal(r->connection_count, 3);
    assert_string_equal(c[0].name, "api.example.com");
    assert_string_equal(c[0].address, "192.0.2.7");
    assert_int_equal(c[0].port, 443);
    assert_string_equal(c[0].protocol, "tcp");
    assert_string_equal(c[0].rule, "api.example.com:443");
    assert_string_equal(c[0].note, "no server name in TLS");
    assert_null(c[0].error);
    assert_int_equal(c[0].started_us, 1500);
    assert_int_equal(c[0].duration_us, 45250);
    assert_int_equal(c[0].bytes_in, 1234);
    assert_int_equal(c[0].bytes_out, 300);
    assert_null(c[1].name); /* an address is no name */
    assert_string_equal(c[1].address, "2001:db8::1");
    assert_string_equal(c[1].error, "Connection refused");
    assert_null(c[1].note);
    assert_string_equal(c[2].name, "gone.example");
    assert_null(c[2].address);
    assert_int_equal(c[2].port, 0);
    assert_string_equal(c[2].protocol, "dns");
    assert_null(c[2].rule);
    assert_true(c[2].error && *c[2].error); /* a failure never looks like success */
    assert_int_equal(r->network_unlisted, 0);
    tc_result_free(r);
}

static void test_records_without_room_are_counted(void **state)
{
    struct tc_result *r;
    double_dropped = 77;
    r = run(state, ARGV("double:exit", "0"));
    assert_int_equal(r->network_unlisted, 77);
    assert_non_null(strstr(tc_result_json(r), "\"network_unlisted\":77"));
    tc_result_free(r);
}

static void test_call_without_a_gate_has_no_connections(void **state)
{
    struct tc_result *r;
    (void)drop_records(state);
    r = run(state, ARGV("double:exit", "1"));
    assert_int_equal(r->connection_count, 0);
    assert_null(r->connections);
    assert_int_equal(r->denial_count, 0);
    assert_string_equal(r->reason, "the command ended with exit status 1");
    assert_non_null(strstr(tc_result_json(r), "\"connections\":[]"));
    tc_result_free(r);
}

/* ---- denials ---------------------------------------------------------------------------------- */

static void test_refusals_are_denials_and_equal_ones_are_counted(void **state)
{
    struct tc_result *r = run(state, ARGV("double:exit", "0"));
    assert_int_equal(r->denial_count, 2);
    assert_string_equal(r->denials[0].kind, "network");
    assert_string_equal(r->denials[0].target, "evil.example");
    assert_string_equal(r->denials[0].rule,
                        "network: no rule allows it; add \"evil.example:443\" to \"network\"");
    assert_int_equal(r->denial_times[0], 5);
    assert_string_equal(r->denials[1].target, "192.0.2.1:123/udp");
    assert_string_equal(r->denials[1].rule, "network: datagrams do not leave a cage");
    assert_int_equal(r->denial_times[1], 1);
    /* The command did well without them. */
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    assert_string_equal(r->reason, "");
    assert_string_equal(r->fix, "");
    tc_result_free(r);
}

static void test_command_that_failed_has_the_first_refusal_named(void **state)
{
    struct tc_result *r = run(state, ARGV("double:exit", "6"));
    assert_int_equal(r->verdict, TC_VERDICT_FAILED);
    assert_string_equal(r->reason, "the command ended with exit status 6; it was refused: network "
                                   "evil.example, and more");
    assert_string_equal(r->fix,
                        "network: no rule allows it; add \"evil.example:443\" to \"network\"");
    tc_result_free(r);
    double_record_count = 2;
    r = run(state, SH("kill -SEGV $$"));
    assert_int_equal(r->verdict, TC_VERDICT_SIGNALED);
    assert_non_null(strstr(r->reason, "; it was refused: network evil.example"));
    assert_null(strstr(r->reason, "and more"));
    tc_result_free(r);
}

static void test_failed_connection_alone_is_not_blamed(void **state)
{
    struct tc_result *r;
    double_records = &records[2];
    double_record_count = 1;
    r = run(state, ARGV("double:exit", "6"));
    assert_string_equal(r->reason, "the command ended with exit status 6");
    assert_string_equal(r->fix, "");
    assert_int_equal(r->connection_count, 1);
    tc_result_free(r);
}

static void test_limits_and_missing_programs_keep_their_own_reason(void **state)
{
    struct tc_result *r = run(state, ARGV("double:memory"));
    assert_int_equal(r->verdict, TC_VERDICT_MEMORY);
    assert_null(strstr(r->reason, "refused"));
    assert_int_equal(r->denial_count, 2);
    tc_result_free(r);
    r = run(state, ARGV("double:errno", "2"));
    assert_int_equal(r->exit_code, 127);
    assert_non_null(strstr(r->fix, "name a program"));
    tc_result_free(r);
}

static void test_refusals_without_end_are_cut_and_counted(void **state)
{
    static struct tci_gate_record many[1000];
    struct tc_result *r;
    for (size_t i = 0; i < tci_array_size(many); i++) {
        many[i] = records[1];
        (void)snprintf(many[i].host, sizeof many[i].host, "h%zu.example", i);
    }
    double_records = many;
    double_record_count = tci_array_size(many);
    r = run(state, ARGV("double:exit", "0"));
    assert_int_equal(r->denial_count, TCI_DENIALS_MAX + 1);
    assert_string_equal(r->denials[TCI_DENIALS_MAX].kind, "more");
    assert_int_equal(r->denial_times[TCI_DENIALS_MAX], 2 * (1000 - TCI_DENIALS_MAX));
    tc_result_free(r);
}

static void test_targets_are_written_as_in_a_rule(void **state)
{
    static const struct {
        const char *host, *protocol;
        unsigned port;
        const char *target;
    } cases[] = {
        { "evil.example", "dns", 0, "evil.example" },
        { "evil.example", "tcp", 443, "evil.example:443" },
        { "192.0.2.1", "tcp", 65535, "192.0.2.1:65535" },
        { "2001:db8::1", "tcp", 80, "[2001:db8::1]:80" },
        { "[2001:db8::1]", "udp", 80, "[2001:db8::1]:80/udp" },
    };
    char buffer[TCI_NETWORK_TARGET_MAX], longest[TCI_NAME_MAX + 1];
    struct tc_network_event event = { .host = longest, .protocol = "udp", .port = 65535 };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        event = (struct tc_network_event){ .host = cases[i].host,
                                           .protocol = cases[i].protocol,
                                           .port = cases[i].port };
        assert_string_equal(tci_network_target(&event, buffer), cases[i].target);
    }
    memset(longest, 'a', TCI_NAME_MAX);
    longest[TCI_NAME_MAX] = '\0';
    event = (struct tc_network_event){ .host = longest, .protocol = "udp", .port = 65535 };
    assert_int_equal(strlen(tci_network_target(&event, buffer)), TCI_NAME_MAX + 10);
}

/* ---- events ----------------------------------------------------------------------------------- */

struct seen {
    size_t count;
    char text[1024];
    struct tc_call *cancel; /* when the first event comes */
};

static void see(void *context, const struct tc_network_event *event)
{
    struct seen *seen = context;
    char target[TCI_NETWORK_TARGET_MAX];
    size_t used = strlen(seen->text);
    seen->count++;
    assert_true(event->host && event->address && event->protocol && event->rule && event->reason &&
                event->fix);
    (void)snprintf(seen->text + used, sizeof seen->text - used, "%s %s %s %llu %llu %llu\n",
                   event->kind, tci_network_target(event, target), event->address,
                   (unsigned long long)event->bytes_in, (unsigned long long)event->duration_us,
                   (unsigned long long)event->count);
    if (seen->cancel)
        tc_call_cancel(seen->cancel);
}

static void test_events_come_while_the_call_runs(void **state)
{
    struct seen seen = { 0 };
    struct tc_request request = { .argv = ARGV("double:exit", "0"),
                                  .on_network = see,
                                  .network_context = &seen };
    tc_result_free(call(((struct fixture *)*state)->engine, &request));
    assert_string_equal(seen.text, "closed api.example.com:443 192.0.2.7 1234 45250 0\n"
                                   "refused evil.example  0 0 2\n"
                                   "failed [2001:db8::1]:80  0 90 0\n"
                                   "refused 192.0.2.1:123/udp 192.0.2.1 0 0 0\n"
                                   "refused evil.example  0 0 3\n"
                                   "failed gone.example  0 0 0\n");
}

static void test_event_may_cancel_the_call(void **state)
{
    struct seen seen = { 0 };
    struct tc_request request = { .argv = ARGV("double:waits"),
                                  .on_network = see,
                                  .network_context = &seen };
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(
        tc_call_start(((struct fixture *)*state)->engine, &request, &seen.cancel, &error), 0);
    while (!result)
        assert_int_equal(tc_call_step(seen.cancel, &result, &error), 0);
    assert_int_equal(seen.count, tci_array_size(records));
    assert_string_equal(result->reason, "cancelled by the caller");
    assert_int_equal(double_misused, 0);
    tc_result_free(result);
    tc_call_free(seen.cancel);
}

static void test_call_that_is_freed_tells_nothing_more(void **state)
{
    struct seen seen = { 0 };
    struct tc_request request = { .argv = ARGV("double:waits"),
                                  .on_network = see,
                                  .network_context = &seen };
    struct tc_call *call = NULL;
    struct tc_error error = { 0 };
    assert_int_equal(tc_call_start(((struct fixture *)*state)->engine, &request, &call, &error), 0);
    tc_call_free(call);
    assert_int_equal(seen.count, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define WITH_RECORDS(test) cmocka_unit_test_setup_teardown(test, use_records, drop_records)
        WITH_RECORDS(test_connections_are_in_the_result),
        WITH_RECORDS(test_records_without_room_are_counted),
        WITH_RECORDS(test_call_without_a_gate_has_no_connections),
        WITH_RECORDS(test_refusals_are_denials_and_equal_ones_are_counted),
        WITH_RECORDS(test_command_that_failed_has_the_first_refusal_named),
        WITH_RECORDS(test_failed_connection_alone_is_not_blamed),
        WITH_RECORDS(test_limits_and_missing_programs_keep_their_own_reason),
        WITH_RECORDS(test_refusals_without_end_are_cut_and_counted),
        WITH_RECORDS(test_targets_are_written_as_in_a_rule),
        WITH_RECORDS(test_events_come_while_the_call_runs),
        WITH_RECORDS(test_event_may_cancel_the_call),
        WITH_RECORDS(test_call_that_is_freed_tells_nothing_more),
#undef WITH_RECORDS
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
