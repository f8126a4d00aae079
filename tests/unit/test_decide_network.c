/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of which host and port a tool may reach, with the clause that gives the answer. */
#include "decide_support.h"

#include <stdio.h>
#include <stdlib.h>

static void split_port(const char *target, char host[300], unsigned *port)
{
    const char *colon = strrchr(target, ':');
    assert_non_null(colon);
    (void)snprintf(host, 300, "%.*s", (int)(colon - target), target);
    *port = (unsigned)strtoul(colon + 1, NULL, 10);
}

static void check_network(const char *settings, const char *agent, const struct question *questions,
                          size_t count)
{
    char text[2000];
    struct tc_policy *policy;
    (void)snprintf(text, sizeof text, "[tool.t]\n%s\n", settings);
    policy = load_text(text);
    for (size_t i = 0; i < count; i++) {
        char host[300];
        unsigned port;
        struct tc_decision d;
        split_port(questions[i].target, host, &port);
        d = decide_network(policy, agent, host, port);
        assert_well_formed(&d);
        if (d.allowed != questions[i].allowed)
            fail_msg("%s with %s: %s", questions[i].target, settings, d.reason);
    }
    tc_policy_free(policy);
}

#define network_table(settings, ...) network_table_for(settings, NULL, __VA_ARGS__)
#define network_table_for(settings, agent, ...)                                                    \
    do {                                                                                           \
        static const struct question questions_[] = { __VA_ARGS__ };                               \
        check_network(settings, agent, questions_, tci_array_size(questions_));                    \
    } while (0)

/* ---- network ---------------------------------------------------------------------------------- */

static void test_network_modes(void **state)
{
    (void)state;
    network_table("network = \"none\"", { "a.example:443", false }, { "127.0.0.1:80", false });
    network_table("", { "a.example:443", false });
    network_table("network = []", { "a.example:443", false });
    network_table("network = \"host\"", { "a.example:443", true }, { "127.0.0.1:80", true },
                  { "169.254.169.254:80", true });
    network_table("network = [\"a.example:443\"]", { "a.example:443", true },
                  { "b.example:443", false }, { "a.example:80", false });
}

static void test_public_is_the_internet_and_nothing_near(void **state)
{
    (void)state;
    network_table(
        "network = \"public\"", { "a.example:443", true }, { "8.8.8.8:53", true },
        { "[2606:4700:4700::1111]:443", true }, { "127.0.0.1:80", false },
        { "127.255.255.254:80", false }, { "0.0.0.0:80", false }, { "10.0.0.1:80", false },
        { "172.16.0.1:80", false }, { "172.31.255.255:80", false }, { "172.32.0.1:80", true },
        { "192.168.1.1:80", false }, { "100.64.0.1:80", false }, { "169.254.169.254:80", false },
        { "169.254.1.1:80", false }, { "224.0.0.1:80", false }, { "255.255.255.255:80", false },
        { "[::1]:80", false }, { "[::]:80", false }, { "[fe80::1]:80", false },
        { "[fc00::1]:80", false }, { "[fd00:ec2::254]:80", false }, { "[ff02::1]:80", false },
        { "[::ffff:127.0.0.1]:80", false }, { "[::ffff:a9fe:a9fe]:80", false },
        { "[::ffff:8.8.8.8]:53", true }, { "[64:ff9b::10.0.0.1]:80", false },
        { "[64:ff9b::a00:1]:80", false }, { "[2002:a00:1::]:80", false });
}

static void test_deny_beats_allow_in_any_order(void **state)
{
    (void)state;
    network_table("network = [\"*.example:*\", \"deny:bad.example:*\"]", { "good.example:1", true },
                  { "bad.example:1", false }, { "sub.bad.example:1", true });
    network_table("network = [\"deny:bad.example:*\", \"*.example:*\"]", { "good.example:1", true },
                  { "bad.example:1", false });
    network_table("network = [\"a.example:443\", \"deny:a.example:443\"]",
                  { "a.example:443", false });
    network_table("network = [\"10.0.0.0/8:*\", \"deny:10.1.0.0/16:22\"]", { "10.2.0.1:22", true },
                  { "10.1.0.1:22", false }, { "10.1.0.1:23", true });
    network_table("network = [\"deny:a.example:*\"]", { "a.example:1", false },
                  { "b.example:1", false }); /* denials alone allow nothing */
}

static void test_wildcard_is_for_names_below_and_not_the_apex(void **state)
{
    (void)state;
    network_table("network = [\"*.a.example:443\"]", { "x.a.example:443", true },
                  { "y.x.a.example:443", true }, { "a.example:443", false },
                  { "xa.example:443", false }, { ".a.example:443", false },
                  { "a.example.evil:443", false }, { "x.a.example.evil:443", false });
}

static void test_name_is_that_name_and_no_other(void **state)
{
    (void)state;
    network_table(
        "network = [\"a.example:443\"]", { "A.EXAMPLE:443", true }, { "a.example.:443", true },
        { "x.a.example:443", false }, { "a.example..:443", false }, { "a.exampl:443", false },
        { "ba.example:443", false }, { "a.example/:443", false }, { "user@a.example:443", false },
        { "a.example#b:443", false }, { " a.example:443", false }, { "*.example:443", false },
        { "*:443", false }, { ":443", false });
}

static void test_localhost_is_this_machine_and_needs_its_address(void **state)
{
    (void)state;
    network_table("network = \"public\"", { "localhost:80", false }, { "a.localhost:80", false },
                  { "Localhost.:80", false }, { "localhost.example:80", true },
                  { "notlocalhost:80", true });
    network_table("network = [\"localhost:80\"]", { "localhost:80", false });
    network_table("network = [\"localhost:80\", \"127.0.0.1:80\"]", { "localhost:80", true },
                  { "localhost:81", false }, { "a.localhost:80", false });
    network_table("network = [\"localhost:80\", \"[::1]:*\"]", { "localhost:80", true });
    network_table("network = [\"localhost:*\", \"127.0.0.1:*\", \"deny:127.0.0.0/8:22\"]",
                  { "localhost:80", true }, { "localhost:22", false });
    network_table("network = \"host\"", { "localhost:80", true });
}

static void test_ports(void **state)
{
    (void)state;
    network_table("network = [\"a.example:80-90\", \"b.example:*\", \"c.example:65535\"]",
                  { "a.example:79", false }, { "a.example:80", true }, { "a.example:90", true },
                  { "a.example:91", false }, { "b.example:1", true }, { "b.example:65535", true },
                  { "b.example:0", false }, { "b.example:65536", false },
                  { "b.example:4294967295", false }, { "c.example:65535", true },
                  { "c.example:131071", false });
}

static void test_addresses_have_one_spelling(void **state)
{
    (void)state;
    network_table("network = [\"192.0.2.1:80\", \"10.0.0.0/8:22\", \"[2001:db8::1]:80\"]",
                  { "192.0.2.1:80", true }, { "10.255.0.1:22", true }, { "11.0.0.1:22", false },
                  { "192.0.2.01:80", false }, { "0xc0.0.2.1:80", false }, { "192.0.513:80", false },
                  { "3221225985:80", false }, { "0300.0.2.1:80", false },
                  { "192.0.2.1.:80", false }, { "[::ffff:192.0.2.1]:80", true },
                  { "[::ffff:c000:201]:80", true }, { "[::192.0.2.1]:80", false },
                  { "[2001:db8::1]:80", true }, { "2001:db8::1:80", true },
                  { "[2001:0db8:0:0:0:0:0:1]:80", true }, { "[2001:DB8::1]:80", true },
                  { "[2001:db8::1%eth0]:80", false }, { "[2001:db8::2]:80", false },
                  { "[2001:db8::1:80", false });
}

static void test_names_and_addresses_do_not_mix(void **state)
{
    (void)state;
    network_table("network = [\"*.example:80\", \"a.example:80\"]", { "192.0.2.1:80", false });
    network_table("network = [\"192.0.2.1:80\"]", { "a.example:80", false });
}

static const char narrowing[] =
    "network = %s\n[agent.a]\ngrants = [{ tool = \"t\", network = %s }]";

static void check_narrowed(const char *tool, const char *grant, const struct question *questions,
                           size_t count)
{
    char text[1000];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(text, sizeof text, narrowing, tool, grant);
#pragma GCC diagnostic pop
    check_network(text, "a", questions, count);
}

static void test_grant_narrows_the_network_and_never_widens(void **state)
{
    static const struct question nothing[] = { { "a.example:443", false },
                                               { "b.example:443", false },
                                               { "8.8.8.8:53", false } };
    static const struct question only_a[] = { { "a.example:443", true },
                                              { "b.example:443", false },
                                              { "8.8.8.8:53", false } };
    static const struct question names[] = { { "a.example:443", true },
                                             { "b.example:443", true },
                                             { "127.0.0.1:80", false } };
    static const char both[] = "[\"a.example:443\", \"b.example:443\"]",
                      a[] = "[\"a.example:443\"]";
    (void)state;
    check_narrowed(both, "false", nothing, 3);
    check_narrowed(both, "\"none\"", nothing, 3);
    check_narrowed(both, "[]", nothing, 3);
    check_narrowed("\"host\"", "false", nothing, 3);
    check_narrowed("\"public\"", "false", nothing, 3);
    check_narrowed(both, a, only_a, 3);
    check_narrowed("\"host\"", a, only_a, 3);
    check_narrowed("\"public\"", a, only_a, 3);
    check_narrowed(a, both, only_a, 3);
    check_narrowed(a, "\"host\"", only_a, 3);
    check_narrowed(a, "\"public\"", only_a, 3);
    check_narrowed("\"none\"", both, nothing, 3);
    check_narrowed("\"host\"", "\"public\"", names, 3);
    check_narrowed(both, "[\"*.example:*\", \"deny:b.example:*\"]", only_a, 3);
    /* An address that is not public is not reached through the grant's rule alone. */
    static const struct question private_address[] = { { "10.0.0.1:80", false } };
    check_narrowed("\"public\"", "[\"10.0.0.1:80\"]", private_address, 1);
}

static void test_other_agents_and_the_owner_keep_the_tools_network(void **state)
{
    network_table_for("network = [\"a.example:443\"]\n[agent.a]\n"
                      "grants = [{ tool = \"t\", network = false }]\n"
                      "[agent.b]\ngrants = [\"t\"]\n",
                      "b", { "a.example:443", true }, { "b.example:443", false });
    network_table("network = [\"a.example:443\"]\n[agent.a]\n"
                  "grants = [{ tool = \"t\", network = false }]\n",
                  { "a.example:443", true });
    (void)state;
}

static void test_network_answer_names_the_deciding_rule(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\n"
        "network = [\n"
        "    \"a.example:443\",\n"
        "    \"*.example:443\",\n"
        "  \"deny:B.example:*\"]\n"
        "[agent.a]\n"
        "grants = [{ tool = \"t\", network = [\"c.example:443\"] }]\n"
        "[agent.n]\n"
        "grants = [{ tool = \"t\", network = false }]\n");
    struct tc_decision d = decide_network(policy, NULL, "A.example", 443);
    (void)state;
    assert_true(d.allowed && d.line == 3 && d.column == 5);
    assert_string_equal(d.rule, "a.example:443");
    assert_string_equal(d.key, "network");
    d = decide_network(policy, NULL, "b.example.", 443);
    assert_true(!d.allowed && d.line == 5 && d.column == 3);
    assert_string_equal(d.rule, "deny:b.example:*");
    assert_non_null(strstr(d.fix, "deny:b.example:*"));
    d = decide_network(policy, NULL, "c.test", 80); /* no rule: the clause as a whole */
    assert_true(!d.allowed && d.line == 2 && d.column == 11);
    assert_string_equal(d.rule, "");
    assert_non_null(strstr(d.fix, "\"c.test:80\""));
    d = decide_network(policy, "a", "a.example", 443); /* the grant's clause */
    assert_true(!d.allowed && d.line == 7);
    assert_int_equal(d.column, 35);
    d = decide_network(policy, "a", "c.example", 443); /* the tool's rule gave the permission */
    assert_true(d.allowed && d.line == 4);
    assert_string_equal(d.rule, "*.example:443");
    d = decide_network(policy, "n", "a.example", 443);
    assert_true(!d.allowed && d.line == 9 && d.column == 35);
    tc_policy_free(policy);
    policy = load_text("[tool.t]\n");
    d = decide_network(policy, NULL, "a.example", 443); /* built-in: no line */
    assert_true(!d.allowed && d.line == 0 && d.column == 0);
    tc_policy_free(policy);
}

static void test_fix_of_a_network_denial_works(void **state)
{
    static const char *const targets[] = { "a.example:443", "192.0.2.1:80", "[2001:db8::1]:22" };
    struct tc_policy *policy = load_text("[tool.t]\n");
    (void)state;
    for (size_t i = 0; i < tci_array_size(targets); i++) {
        char host[300], text[700];
        unsigned port;
        struct tc_decision d;
        struct tc_policy *mended;
        split_port(targets[i], host, &port);
        d = decide_network(policy, NULL, host, port);
        assert_memory_equal(d.fix, "set network = ", 14);
        (void)snprintf(text, sizeof text, "[tool.t]\n%s\n", d.fix + 4);
        mended = load_text(text);
        assert_true(decide_network(mended, NULL, host, port).allowed);
        tc_policy_free(mended);
    }
    tc_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network_modes),
        cmocka_unit_test(test_public_is_the_internet_and_nothing_near),
        cmocka_unit_test(test_deny_beats_allow_in_any_order),
        cmocka_unit_test(test_wildcard_is_for_names_below_and_not_the_apex),
        cmocka_unit_test(test_name_is_that_name_and_no_other),
        cmocka_unit_test(test_localhost_is_this_machine_and_needs_its_address),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_addresses_have_one_spelling),
        cmocka_unit_test(test_names_and_addresses_do_not_mix),
        cmocka_unit_test(test_grant_narrows_the_network_and_never_widens),
        cmocka_unit_test(test_other_agents_and_the_owner_keep_the_tools_network),
        cmocka_unit_test(test_network_answer_names_the_deciding_rule),
        cmocka_unit_test(test_fix_of_a_network_denial_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
