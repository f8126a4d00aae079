/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: calls without memory. A call is made with its first allocation failing, then its second, and
 * so on: each time there is an error or an honest result, and afterwards not one allocation, run,
 * plan or descriptor more than before.
 */
#define TCI_ARENA_EXACT
#include "base/arena.c"

#include "alloc_support.h"
#include "call_support.h"

#include <fcntl.h>
#include <unistd.h>

static const char policy_text[] =
    "version = 1\n[tool.t]\ncommand = [\"double:exit\", \"{code}\", \"{more...}\"]\n"
    "filesystem = { writable = [\"/w\"] }\nnetwork = [\"a.example:1\"]\n"
    "commands = [\"git\"]\noutputs = [\"/nowhere/at/all/*.png\"]\n"
    "[tool.real]\n"
    "[tool.contract]\ncommand = [\"printf\", '{{\"n\":[1,\"x\"]}}', \"{word}\"]\n"
    "parameters = { required = [\"word\"], properties = { word = { maxLength = 3 } } }\n"
    "returns = { type = \"object\", properties = { n = { type = \"array\" } } }\n"
    "[agent.a]\ngrants = [{ tool = \"t\", network = false, max_calls = 1000000, filesystem = { "
    "readable = [\"/w\"], hidden = [\"/w/x\"] } }]\n";

static struct tc_policy *policy;

/* One call in an engine of its own. -1: *error says why, or the result blames memory. */
static int make_call(const struct tc_request *request, enum tc_verdict expected,
                     struct tc_error *error)
{
    struct tc_engine *engine = NULL;
    struct tc_result *result = NULL;
    int r = tci_engine_open_with(&(struct tc_engine_options){ .policy = policy }, double_for,
                                 &engine, error);
    if (r == 0)
        r = tc_call(engine, request, &result, error);
    if (r == 0 && result->verdict != expected) {
        assert_non_null(strstr(result->reason, "memory"));
        r = tci_error_no_memory(error);
    }
    if (r == 0 && !tc_result_json(result))
        r = tci_error_no_memory(error);
    tc_result_free(result);
    tc_engine_close(engine);
    return r;
}

static int by_arguments(struct tc_error *error)
{
    struct tc_request request = { .tool = "t",
                                  .agent = "a",
                                  .session = "s",
                                  .arguments_json = "{\"code\":0,\"more\":[\"x\",1,true]}" };
    return make_call(&request, TC_VERDICT_OK, error);
}

static int by_contract(struct tc_error *error)
{
    struct tc_request request = { .tool = "contract", .arguments_json = "{\"word\":\"x\"}" };
    return make_call(&request, TC_VERDICT_OK, error);
}

static int against_contract(struct tc_error *error)
{
    struct tc_request request = { .tool = "contract", .arguments_json = "{\"word\":\"long\"}" };
    return make_call(&request, TC_VERDICT_INVALID_INPUT, error);
}

static int definitions(struct tc_error *error)
{
    struct tc_engine *engine = NULL;
    char *text = NULL;
    int r = tci_engine_open_with(&(struct tc_engine_options){ .policy = policy }, double_for,
                                 &engine, error);
    if (r == 0)
        r = tc_engine_tools(engine, NULL, "mcp", &text, error);
    free(text);
    tc_engine_close(engine);
    return r;
}

static int denied(struct tc_error *error)
{
    return make_call(&(struct tc_request){ .tool = "absent", .agent = "a", .argv = ARGV("x") },
                     TC_VERDICT_DENIED, error);
}

static int too_wide(struct tc_error *error)
{
    struct tc_request request = { .tool = "real", .argv = ARGV("x"), .limits.pids = 1000 };
    return make_call(&request, TC_VERDICT_DENIED, error);
}

static int not_listed(struct tc_error *error)
{
    struct tc_request request = { .tool = "t", .agent = "a", .argv = ARGV("double:errno", "13") };
    return make_call(&request, TC_VERDICT_DENIED, error);
}

/* The builtin policy, and an engine that reads it. */
static int builtin(struct tc_error *error)
{
    struct tc_engine *engine = NULL;
    int r = tci_engine_open_with(NULL, double_for, &engine, error);
    tc_engine_close(engine);
    return r;
}

static int with_input(struct tc_error *error)
{
    int ends[2], r;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    r = make_call(
        &(struct tc_request){ .tool = "real", .argv = ARGV("double:exit"), .input_fd = ends[0] },
        TC_VERDICT_OK, error);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return r;
}

/* A call whose gate has something to tell. */
static int with_network(struct tc_error *error)
{
    static const struct tci_gate_record records[] = {
        { .event = TCI_GATE_CLOSED, .protocol = "tcp", .host = "a.example", .port = 1 },
        { .event = TCI_GATE_REFUSED, .protocol = "dns", .host = "b.example", .count = 1 },
    };
    int r;
    double_records = records;
    double_record_count = tci_array_size(records);
    r = make_call(&(struct tc_request){ .tool = "real", .argv = ARGV("double:exit", "1") },
                  TC_VERDICT_FAILED, error);
    double_records = NULL;
    double_record_count = 0;
    return r;
}

typedef int scenario(struct tc_error *error);

static void check(scenario *run)
{
    struct tc_error error = { 0 };
    long rounds = 0, before, failed;
    int descriptors, r;
    if (run(&error) < 0) /* also a warm-up: some libraries allocate once and for all */
        fail_msg("%s", error.message);
    descriptors = count_descriptors();
    do {
        error = (struct tc_error){ 0 };
        before = allocations.live;
        begin_round(++rounds);
        r = run(&error);
        failed = allocations.failed;
        begin_round(0);
        if (allocations.live != before)
            fail_msg("allocation %ld failed: %ld left behind", rounds, allocations.live - before);
        if (failed && (r == 0 || error.code != TC_ERROR_NO_MEMORY))
            fail_msg("allocation %ld failed: %d, %s", rounds, r, error.message);
        if (!failed && r < 0)
            fail_msg("%s", error.message);
        assert_int_equal(double_plans, 0);
        assert_int_equal(double_runs, 0);
    } while (failed);
    assert_int_equal(count_descriptors(), descriptors);
    assert_true(rounds > 5);
}

static void test_call_by_arguments_without_memory(void **state)
{
    (void)state;
    check(by_arguments);
}

static void test_contract_without_memory(void **state)
{
    (void)state;
    check(by_contract);
    check(against_contract);
    check(definitions);
}

static void test_refusals_without_memory(void **state)
{
    (void)state;
    check(denied);
    check(too_wide);
    check(not_listed);
}

static void test_input_without_memory(void **state)
{
    (void)state;
    check(with_input);
}

static void test_connections_without_memory(void **state)
{
    (void)state;
    check(with_network);
}

static void test_builtin_policy_without_memory(void **state)
{
    (void)state;
    check(builtin);
}

static int load_policy(void **state)
{
    (void)state;
    policy = load_text(policy_text);
    return 0;
}

static int free_policy(void **state)
{
    (void)state;
    tc_policy_free(policy);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_by_arguments_without_memory),
        cmocka_unit_test(test_contract_without_memory),
        cmocka_unit_test(test_refusals_without_memory),
        cmocka_unit_test(test_input_without_memory),
        cmocka_unit_test(test_connections_without_memory),
        cmocka_unit_test(test_builtin_policy_without_memory),
    };
#ifdef SANITIZED
    (void)puts("1..0 # SKIP the sanitizer owns malloc: run this in a build without it");
    return 0;
#endif
    return cmocka_run_group_tests(tests, load_policy, free_policy);
}
