/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about agents: grants that give nothing, too much or no longer; child
 * agents and approval.
 */
#include "lint_support.h"

#include <stdio.h>
#include "policy/lint.h"

/* ---- agents --------------------------------------------------------------------------------- */

static void test_grant_for_a_tool_that_is_not_there(void **state)
{
    static const struct row rows[] = {
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = ['web_fetch']\n", 0 },
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = ['webfetch']\n", 1 },
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = [{ tool = 'Web_Fetch' }]\n", 1 },
        { "version = 1\n[agent.a]\ngrants = ['x', 'y']\n", 2 },
    };
    (void)state;
    CHECK_POLICIES(rows, UNKNOWN_TOOL);
    check_message("[tool.web_fetch]\n[agent.a]\ngrants = ['webfetch']\n", TCI_FINDING_UNKNOWN_TOOL,
                  "\"webfetch\"", "did you mean \"web_fetch\"?");
    check_message("[tool.web_fetch]\n[agent.a]\ngrants = ['completely_else']\n",
                  TCI_FINDING_UNKNOWN_TOOL, "\"completely_else\"", "define the tool");
}

static void test_tool_that_nobody_may_call(void **state)
{
    static const struct row rows[] = {
        { "[tool.a]\n[tool.b]\n[agent.x]\ngrants = ['a']\n", 1 },
        { "[tool.a]\n[tool.b]\n[agent.x]\ngrants = ['a']\n[agent.y]\ngrants = ['b']\n", 0 },
        { "[tool.a]\n[agent.x]\ngrants = []\n", 1 },
        { "[tool.a]\n[agent.x]\n", 1 },
        { "[tool.a]\n", 0 }, /* no agent at all is another finding */
    };
    (void)state;
    CHECK_POLICIES(rows, UNGRANTED_TOOL);
}

static void test_policy_without_agents_is_a_note(void **state)
{
    static const struct row rows[] = {
        { "[tool.a]\n", 1 },
        { "[tool.a]\n[agent.x]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_AGENTS);
}

static void test_grant_has_expired_from_its_moment_on(void **state)
{
    static const char text[] = "[tool.t]\n[agent.a]\n"
                               "grants = [{ tool = 't', expires = '2027-01-01' }]\n";
    const int64_t moment = 1798761600; /* 2027-01-01T00:00:00Z */
    struct tci_lint_options options = { .now = moment - 1 };
    (void)state;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 0);
    options.now = moment;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    options.now = moment + 1;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    options.now = 0;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 0);
}

static void test_expiry_of_a_grant_for_nothing_is_still_told(void **state)
{
    struct tci_lint_options options = { .now = 4102444800 };
    static const char text[] = "[tool.t]\n[agent.a]\n"
                               "grants = [{ tool = 'gone', expires = 2020-01-01T00:00:00Z }]\n";
    (void)state;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    check_count(text, &options, TCI_FINDING_UNKNOWN_TOOL, 1);
}

static void check_grant(const char *tool, const char *grant, size_t expected)
{
    struct tci_lint_options options = { .now = 0 };
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "version = 1\n[tool.t]\n%s\n[agent.a]\ngrants = [{ tool = 't', %s }]\n", tool,
                   grant);
    check_count(text, &options, TCI_FINDING_WIDER_GRANT, expected);
}

static void test_grant_with_a_limit_above_the_tools(void **state)
{
    (void)state;
    check_grant("memory = '1GB'", "memory = '2GB'", 1);
    check_grant("memory = '1GB'", "memory = '1GB'", 0);
    check_grant("memory = '1GB'", "memory = '500MB'", 0);
    check_grant("", "memory = '1GB'", 1); /* above the built-in value */
    check_grant("", "timeout = '10s'", 0);
    check_grant("memory = 'unlimited'", "memory = '1TB'", 0);
    check_grant("", "memory = 'unlimited'", 1);
    check_grant("cpu_time = '1s'", "cpu_time = '2s', pids = 65, files = 1000", 3);
    check_grant("network_limits = { rate = '1MB' }",
                "network_limits = { rate = '2MB', bytes_in = '1GB', connections = 257 }", 2);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = { rate = '1MB' }", 0);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = { rate = 'unlimited' }", 1);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = {}", 0);
    check_grant("inspect = 'strict'", "inspect = 'names'", 1);
    check_grant("inspect = 'names'", "inspect = 'strict'", 0);
}

static void test_grant_with_network_that_the_tool_does_not_have(void **state)
{
    (void)state;
    check_grant("network = ['a.example.com:443']", "network = ['a.example.com:443']", 0);
    check_grant("network = ['*.example.com:443']", "network = ['a.example.com:443']", 0);
    check_grant("network = ['a.example.com:443']", "network = ['*.example.com:443']", 1);
    check_grant("network = ['a.example.com:443']", "network = ['a.example.com:80']", 1);
    check_grant("network = ['a.example.com:443']", "network = 'public'", 1);
    check_grant("network = ['a.example.com:443']", "network = 'none'", 0);
    check_grant("network = ['a.example.com:443']", "network = false", 0);
    check_grant("network = 'none'", "network = ['a.example.com:443']", 1);
    check_grant("network = 'none'", "network = []", 0);
    check_grant("network = 'public'", "network = ['a.example.com:443']", 0);
    check_grant("network = 'public'", "network = ['8.8.8.8:53']", 0);
    check_grant("network = 'public'", "network = ['10.0.0.1:53']", 1);
    check_grant("network = 'public'", "network = 'host'", 1);
    check_grant("network = 'host'\nallow_host_network = true", "network = ['10.0.0.1:53']", 0);
    check_grant("network = ['*.example.com:443', 'deny:a.example.com:443']",
                "network = ['a.example.com:443']", 1);
    check_grant("network = ['a.example.com:443']", "network = ['deny:b.example.com:443']", 0);
}

static void test_grant_with_paths_that_the_tool_does_not_have(void **state)
{
    (void)state;
    check_grant("filesystem = { writable = ['/w'] }", "filesystem = { writable = ['/w'] }", 0);
    check_grant("filesystem = { writable = ['/w'] }", "filesystem = { readable = ['/w/sub'] }", 0);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { writable = ['/w'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { readable = ['/x'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { readable = ['/'] }", 1);
    check_grant("filesystem = { readable = ['/w'], hidden = ['/w/s'] }",
                "filesystem = { readable = ['/w/s'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { hidden = ['/x'] }", 0);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = 'none'", 0);
    check_grant("", "filesystem = { readable = ['/usr'] }", 0); /* the system is there anyway */
    check_grant("", "filesystem = { writable = ['/usr'] }", 1);
}

static void test_paths_of_a_grant_are_not_expanded_either(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', filesystem = { hidden = ['~/x'] } }]\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, NOT_EXPANDED);
}

/* ---- child agents and approval -------------------------------------------------------------- */

static void test_grants_of_children_without_their_parents_are_found(void **state)
{
    static const struct row policies[] = {
        { "[tool.t]\n[agent.a]\ngrants = ['t']\n[agent.b]\nparent = 'a'\ngrants = ['t']\n", 0 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = ['t']\n", 1 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = [{ tool = 't' }]\n", 1 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = ['missing']\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(policies, CHILD_WITHOUT_PARENT);
}

static void test_grants_that_would_silence_the_question_are_found(void **state)
{
    static const struct row policies[] = {
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval = 'ask' }]\n", 0 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval = 'never' }]\n", 0 },
        { "[tool.t]\napproval = 'ask'\n[agent.a]\ngrants = [{ tool = 't', approval = 'never' }]\n",
          1 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval_timeout = '5s' }]\n", 0 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval_timeout = '5h' }]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(policies, WIDER_GRANT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grants_of_children_without_their_parents_are_found),
        cmocka_unit_test(test_grants_that_would_silence_the_question_are_found),
        cmocka_unit_test(test_grant_for_a_tool_that_is_not_there),
        cmocka_unit_test(test_tool_that_nobody_may_call),
        cmocka_unit_test(test_policy_without_agents_is_a_note),
        cmocka_unit_test(test_grant_has_expired_from_its_moment_on),
        cmocka_unit_test(test_expiry_of_a_grant_for_nothing_is_still_told),
        cmocka_unit_test(test_grant_with_a_limit_above_the_tools),
        cmocka_unit_test(test_grant_with_network_that_the_tool_does_not_have),
        cmocka_unit_test(test_grant_with_paths_that_the_tool_does_not_have),
        cmocka_unit_test(test_paths_of_a_grant_are_not_expanded_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
