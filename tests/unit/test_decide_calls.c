/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of who may call which tool, with the clause that gives the answer; and of answers as
 * such.
 */
#include "decide_support.h"

/* ---- calls ------------------------------------------------------------------------------------ */

static const char agents_policy[] =
    "[tool.granted]\n"
    "[tool.limited]\n"
    "[tool.other]\n"
    "[agent.a]\n"
    "grants = [\"granted\", \"missing\",\n"
    "          { tool = \"limited\", max_calls = 3, expires = \"2027-01-01T00:00:00Z\" }]\n"
    "[agent.idle]\n";

static void test_owner_needs_no_grant_but_a_tool(void **state)
{
    struct tc_policy *policy = load_text(agents_policy);
    struct tc_decision d = decide_call(policy, NULL, "other", 0, 0);
    (void)state;
    assert_well_formed(&d);
    assert_true(d.allowed);
    assert_string_equal(d.key, "tool");
    assert_int_equal(d.line, 3);
    assert_int_equal(d.column, 7);
    d = decide_call(policy, NULL, "missing", 0, 0);
    assert_well_formed(&d);
    assert_false(d.allowed);
    assert_int_equal(d.line, 0);
    /* The owner is not bound by an agent's limits. */
    assert_true(decide_call(policy, NULL, "limited", INT64_MAX, UINT64_MAX).allowed);
    tc_policy_free(policy);
}

static void test_agent_may_call_what_it_was_granted(void **state)
{
    struct tc_policy *policy = load_text(agents_policy);
    struct tc_decision d = decide_call(policy, "a", "granted", INT64_MAX, UINT64_MAX);
    (void)state;
    assert_well_formed(&d);
    assert_true(d.allowed);
    assert_string_equal(d.key, "grants");
    assert_int_equal(d.line, 5);
    assert_int_equal(d.column, 11);
    tc_policy_free(policy);
}

/* Apart from the tool's name, which the asker brought, the answers must not differ in a byte. */
static void test_not_granted_and_no_such_tool_are_one_answer(void **state)
{
    static const char *const agents[] = { "a", "idle", "stranger", "" };
    /* "other" exists; "missing" is granted to `a` but does not exist; "never" is in no place. */
    static const char *const tools[] = { "other", "missing", "never" };
    struct tc_policy *policy = load_text(agents_policy);
    (void)state;
    for (size_t a = 0; a < tci_array_size(agents); a++) {
        struct tc_decision first = { 0 };
        for (size_t t = 0; t < tci_array_size(tools); t++) {
            struct tc_decision d = decide_call(policy, agents[a], tools[t], 0, 0);
            char *fields[] = { d.reason, d.fix };
            assert_well_formed(&d);
            assert_false(d.allowed);
            for (size_t f = 0; f < tci_array_size(fields); f++) {
                char *name = strstr(fields[f], tools[t]);
                size_t length = strlen(tools[t]);
                assert_non_null(name);
                memmove(name, name + length, strlen(name + length) + 1);
                memset(fields[f] + strlen(fields[f]), 0, length); /* what the move left behind */
            }
            if (t == 0)
                first = d;
            else
                assert_memory_equal(&d, &first, sizeof d);
        }
    }
    tc_policy_free(policy);
}

static void test_network_and_path_questions_keep_that_secret(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.hidden]\nnetwork = \"host\"\nfilesystem = { writable = [\"/w\"] }\n"
        "[agent.a]\n");
    struct tc_decision exists, missing;
    (void)state;
    tc_decide_network(policy, "a", "hidden", "a.example", 443, &exists);
    tc_decide_network(policy, "a", "hidder", "a.example", 443, &missing);
    assert_false(exists.allowed || missing.allowed);
    assert_int_equal(strlen(exists.reason), strlen(missing.reason));
    assert_int_equal(exists.line, missing.line);
    assert_string_equal(exists.key, missing.key);
    tc_decide_path(policy, "a", "hidden", "/w", TC_ACCESS_READ, &exists);
    tc_decide_path(policy, "a", "hidder", "/w", TC_ACCESS_READ, &missing);
    assert_false(exists.allowed || missing.allowed);
    assert_int_equal(strlen(exists.reason), strlen(missing.reason));
    assert_int_equal(exists.line, missing.line);
    /* Not even a malformed question is answered before the grant is looked at. */
    tc_decide_path(policy, "a", "hidden", "..", TC_ACCESS_READ, &exists);
    assert_string_equal(exists.key, "grants");
    tc_decide_network(policy, "a", "hidden", "***", 0, &exists);
    assert_string_equal(exists.key, "grants");
    tc_policy_free(policy);
}

static void test_grant_is_void_from_the_second_it_expires(void **state)
{
    struct tc_policy *policy = load_text(agents_policy);
    const int64_t expires = 1798761600;
    struct tc_decision d;
    (void)state;
    assert_true(decide_call(policy, "a", "limited", INT64_MIN, 0).allowed);
    assert_true(decide_call(policy, "a", "limited", expires - 1, 0).allowed);
    d = decide_call(policy, "a", "limited", expires, 0);
    assert_well_formed(&d);
    assert_false(d.allowed);
    assert_string_equal(d.key, "expires");
    assert_int_equal(d.line, 6);
    assert_int_equal(d.column, 56);
    assert_non_null(strstr(d.reason, "2027-01-01T00:00:00Z"));
    assert_false(decide_call(policy, "a", "limited", INT64_MAX, 0).allowed);
    tc_policy_free(policy);
}

static void test_max_calls_is_the_number_of_calls(void **state)
{
    struct tc_policy *policy = load_text(agents_policy);
    struct tc_decision d;
    (void)state;
    assert_true(decide_call(policy, "a", "limited", 0, 0).allowed);
    assert_true(decide_call(policy, "a", "limited", 0, 2).allowed);
    d = decide_call(policy, "a", "limited", 0, 3);
    assert_well_formed(&d);
    assert_false(d.allowed);
    assert_string_equal(d.key, "max_calls");
    assert_int_equal(d.line, 6);
    assert_int_equal(d.column, 43);
    assert_false(decide_call(policy, "a", "limited", 0, UINT64_MAX).allowed);
    tc_policy_free(policy);
    policy = load_text("[tool.t]\n[agent.a]\ngrants = [{ tool = \"t\", max_calls = 0 }]\n");
    assert_false(decide_call(policy, "a", "t", 0, 0).allowed);
    tc_policy_free(policy);
}

static void test_names_are_compared_byte_by_byte(void **state)
{
    static const char *const near[] = { "Granted",  "granted ", " granted", "grante",
                                        "granted2", "granted.", "",         "\xff" };
    struct tc_policy *policy = load_text(agents_policy);
    char long_name[5000];
    (void)state;
    for (size_t i = 0; i < tci_array_size(near); i++) {
        assert_false(decide_call(policy, "a", near[i], 0, 0).allowed);
        assert_false(decide_call(policy, NULL, near[i], 0, 0).allowed);
    }
    assert_false(decide_call(policy, "A", "granted", 0, 0).allowed);
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    assert_false(decide_call(policy, long_name, long_name, 0, 0).allowed);
    tc_policy_free(policy);
}

static void test_answers_show_strangers_bytes_safely(void **state)
{
    struct tc_policy *policy = load_text(agents_policy);
    static const char odd[] = "a\033[31m\n\xe2\x80\xae";
    struct tc_decision answers[4];
    (void)state;
    answers[0] = decide_call(policy, odd, odd, 0, 0);
    answers[1] = decide_call(policy, NULL, odd, 0, 0);
    tc_decide_network(policy, NULL, "granted", odd, 80, &answers[2]);
    tc_decide_path(policy, NULL, "granted", odd, TC_ACCESS_READ, &answers[3]);
    for (size_t i = 0; i < tci_array_size(answers); i++) {
        assert_false(answers[i].allowed);
        for (const char *p = answers[i].reason; *p; p++)
            assert_in_range(*p, 0x20, 0x7e);
        for (const char *p = answers[i].fix; *p; p++)
            assert_in_range(*p, 0x20, 0x7e);
    }
    tc_policy_free(policy);
}

static void test_questions_about_nothing_are_denied(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\nnetwork = \"host\"\n"
                                         "filesystem = { writable = [\"/\"] }\n[agent.a]\n");
    struct tc_decision d;
    (void)state;
    tc_decide_call(policy, NULL, NULL, 0, 0, &d);
    assert_well_formed(&d);
    assert_false(d.allowed);
    tc_decide_call(policy, "a", NULL, 0, 0, &d);
    assert_false(d.allowed);
    tc_decide_network(policy, NULL, "t", NULL, 80, &d);
    assert_well_formed(&d);
    assert_false(d.allowed);
    tc_decide_path(policy, NULL, "t", NULL, TC_ACCESS_READ, &d);
    assert_well_formed(&d);
    assert_false(d.allowed);
    tc_decide_path(policy, NULL, "t", "/w", (enum tc_access)2, &d); /* no kind of access */
    assert_well_formed(&d);
    assert_false(d.allowed);
    tc_policy_free(policy);
}

static void test_empty_policies_deny(void **state)
{
    struct tc_policy *policy = load_text("version = 1\n");
    (void)state;
    assert_false(decide_call(policy, NULL, "t", 0, 0).allowed);
    assert_false(decide_call(policy, "a", "t", 0, 0).allowed);
    assert_false(decide_network(policy, NULL, "a.example", 80).allowed);
    assert_false(decide_path(policy, NULL, "/", TC_ACCESS_READ).allowed);
    tc_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owner_needs_no_grant_but_a_tool),
        cmocka_unit_test(test_agent_may_call_what_it_was_granted),
        cmocka_unit_test(test_not_granted_and_no_such_tool_are_one_answer),
        cmocka_unit_test(test_network_and_path_questions_keep_that_secret),
        cmocka_unit_test(test_grant_is_void_from_the_second_it_expires),
        cmocka_unit_test(test_max_calls_is_the_number_of_calls),
        cmocka_unit_test(test_names_are_compared_byte_by_byte),
        cmocka_unit_test(test_answers_show_strangers_bytes_safely),
        cmocka_unit_test(test_questions_about_nothing_are_denied),
        cmocka_unit_test(test_empty_policies_deny),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
