/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the three questions that a policy answers, with the clause that gives the answer;
 * and a comparison, over random small policies, with a second implementation that is slow and plain.
 */
#include "support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/buf.h"

/* ---- helpers ---------------------------------------------------------------------------------- */

static struct tc_decision decide_call(const struct tc_policy *policy, const char *agent,
                                      const char *tool, int64_t now, uint64_t calls_made)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_call(policy, agent, tool, now, calls_made, &d);
    return d;
}

static struct tc_decision decide_network(const struct tc_policy *policy, const char *agent,
                                         const char *host, unsigned port)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_network(policy, agent, "t", host, port, &d);
    return d;
}

static struct tc_decision decide_path(const struct tc_policy *policy, const char *agent,
                                      const char *path, enum tc_access access)
{
    struct tc_decision d;
    memset(&d, 'x', sizeof d);
    tc_decide_path(policy, agent, "t", path, access, &d);
    return d;
}

/* What every answer has. */
static void assert_well_formed(const struct tc_decision *d)
{
    assert_true(d->allowed == 0 || d->allowed == 1);
    assert_true(d->key[0] && d->reason[0]);
    assert_int_equal(d->fix[0] == '\0', d->allowed);
}

struct question {
    const char *target;
    bool allowed;
};

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

/* "r PATH" or "w PATH". */
static void check_paths(const char *settings, const char *agent, const struct question *questions,
                        size_t count)
{
    char text[2000];
    struct tc_policy *policy;
    (void)snprintf(text, sizeof text, "[tool.t]\n%s\n", settings);
    policy = load_text(text);
    for (size_t i = 0; i < count; i++) {
        const char *target = questions[i].target;
        struct tc_decision d = decide_path(policy, agent, target + 2,
                                           *target == 'w' ? TC_ACCESS_WRITE : TC_ACCESS_READ);
        assert_well_formed(&d);
        if (d.allowed != questions[i].allowed)
            fail_msg("%s with %s: %s", target, settings, d.reason);
    }
    tc_policy_free(policy);
}

#define network_table(settings, ...) network_table_for(settings, NULL, __VA_ARGS__)
#define network_table_for(settings, agent, ...)                                                    \
    do {                                                                                           \
        static const struct question questions_[] = { __VA_ARGS__ };                               \
        check_network(settings, agent, questions_, tci_array_size(questions_));                    \
    } while (0)
#define path_table(settings, ...) path_table_for(settings, NULL, __VA_ARGS__)
#define path_table_for(settings, agent, ...)                                                       \
    do {                                                                                           \
        static const struct question questions_[] = { __VA_ARGS__ };                               \
        check_paths(settings, agent, questions_, tci_array_size(questions_));                      \
    } while (0)

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

/* ---- paths ------------------------------------------------------------------------------------ */

static void test_most_specific_path_wins(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/d\"], writable = [\"/d/w\"], hidden = [\"/d/w/h\"] }",
               { "r /d", true }, { "w /d", false }, { "r /d/x", true }, { "w /d/x", false },
               { "r /d/w", true }, { "w /d/w", true }, { "w /d/w/x/y", true },
               { "r /d/w/h", false }, { "w /d/w/h", false }, { "r /d/w/h/x", false },
               { "w /d/w/hh", true }, { "r /", false }, { "r /x", false });
    path_table("filesystem = { writable = [\"/a\"], hidden = [\"/a/b\"], readable = [\"/a/b/c\"] }",
               { "w /a/x", true }, { "r /a/b/x", false }, { "r /a/b/c/x", true },
               { "w /a/b/c/x", false });
    path_table("filesystem = { hidden = [\"/\"], writable = [\"/a\"] }", { "w /a/x", true },
               { "r /b", false }, { "r /usr/bin/env", false }, { "r /tmp", false });
    path_table("filesystem = { hidden = [\"/etc\"] }", { "r /etc/passwd", false },
               { "r /usr/bin/env", true });
}

static void test_at_one_path_hidden_beats_readable_beats_writable(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/p\"], writable = [\"/p\"] }", { "r /p/x", true },
               { "w /p/x", false });
    path_table("filesystem = { writable = [\"/p\"], hidden = [\"/p\"] }", { "r /p", false },
               { "w /p/x", false });
    path_table("filesystem = { hidden = [\"/p\"], readable = [\"/p\"], writable = [\"/p\"] }",
               { "r /p", false }, { "w /p", false });
}

static void test_prefix_of_a_name_is_no_directory(void **state)
{
    (void)state;
    path_table("filesystem = { writable = [\"/workspace\"] }", { "w /workspace", true },
               { "w /workspace/x", true }, { "r /workspacefoo", false },
               { "w /workspacefoo/x", false }, { "r /workspac", false }, { "r /Workspace", false });
}

static void test_dots_in_the_asked_path_do_not_escape(void **state)
{
    (void)state;
    path_table("filesystem = { writable = [\"/w\"], hidden = [\"/w/h\"] }",
               { "r /w/../etc/shadow", false }, { "r /w/x/../../root", false },
               { "w /w/x/../y", true }, { "w /x/../w/y", true }, { "r /w/./h", false },
               { "r /w/x/../h/y", false }, { "r /w/h/../x", true }, { "r /../w", false },
               { "r /w/../../w", false }, { "r //w", false }, { "r /w//x", false },
               { "r w", false }, { "r ", false }, { "r .", false }, { "r ../w", false },
               { "r /w/\n", false }, { "r /w/\177", false }, { "r /w/x/", true },
               { "r ~/x", false });
}

static void test_mapped_path_is_asked_for_by_its_name_in_the_cage(void **state)
{
    (void)state;
    path_table("filesystem = { readable = [\"/srv/data:/data\"] }", { "r /data/x", true },
               { "r /srv/data/x", false });
    path_table("filesystem = { readable = [\"rel\"] }", { "r /policy/rel", true },
               { "r /rel", false });
}

static void test_scratch_is_there_unless_switched_off(void **state)
{
    (void)state;
    path_table("", { "w /tmp", true }, { "w /tmp/x", true }, { "w /dev/shm/x", true },
               { "r /tmpx", false }, { "w /var/tmp", false });
    path_table("filesystem = { scratch = \"0B\" }", { "r /tmp", false }, { "w /tmp/x", false },
               { "w /dev/shm/x", false });
    path_table("filesystem = { hidden = [\"/tmp/h\"], readable = [\"/tmp/r\"] }",
               { "r /tmp/h", false }, { "w /tmp/r/x", false }, { "w /tmp/x", true });
    path_table("filesystem = { hidden = [\"/tmp\"] }", { "r /tmp", false }, { "r /tmp/x", false });
}

static void test_system_directories_are_readable_unless_switched_off(void **state)
{
    (void)state;
    path_table("", { "r /usr/bin/env", true }, { "w /usr/bin/env", false }, { "r /bin/sh", true },
               { "r /lib64/x", true }, { "r /etc/passwd", true }, { "w /etc/passwd", false },
               { "r /etc/shadow", false }, { "r /etc", false }, { "r /etc/ssl/certs/x.pem", true },
               { "r /etc/ssl/private/x", false }, { "r /root", false }, { "r /home/u", false },
               { "r /var/lib", false }, { "r /usrx", false }, { "r /", false });
    path_table("system = false", { "r /usr/bin/env", false }, { "r /bin/sh", false },
               { "r /etc/passwd", false }, { "r /lib/x", false });
    path_table("filesystem = { hidden = [\"/usr/share\"], writable = [\"/usr/local\"] }",
               { "r /usr/share/x", false }, { "w /usr/local/x", true }, { "w /usr/x", false });
    path_table("backend = \"wasm\"", { "r /usr/bin/env", false });
}

static void test_every_cage_has_its_own_devices(void **state)
{
    (void)state;
    path_table("system = false\nfilesystem = { scratch = \"0B\" }", { "w /dev/null", true },
               { "r /dev/urandom", true }, { "w /dev/urandom", false }, { "r /proc/self", true },
               { "w /proc/self/mem", false }, { "r /dev/sda", false }, { "r /dev/mem", false },
               { "r /dev", false }, { "r /sys", false });
    /* Links out of the cage's own trees lead anywhere: no name can answer for them. */
    path_table("filesystem = { readable = [\"/\"] }", { "r /proc/self/root/etc/shadow", false },
               { "r /proc/1/cwd", false }, { "r /proc/self/fd/5", false },
               { "r /proc/self/exe", false }, { "r /proc/self/status", true },
               { "r /dev/fd/1", true }, { "r /dev/fd/3", false }, { "r /dev/fd/10", false },
               { "r /proc/thread-self/root", false }, { "r /proc/self/task/1/root", false });
    path_table("filesystem = { writable = [\"/\"] }", { "w /proc/sys/kernel", false },
               { "w /dev/null", true }, { "w /usr/x", false }, { "w /home", true });
}

static void test_image_and_rootfs_give_a_readable_root(void **state)
{
    (void)state;
    path_table("backend = \"oci\"", { "r /", true }, { "r /any/thing", true }, { "w /any", false },
               { "w /tmp/x", true });
    path_table("rootfs = \"/srv/root\"", { "r /opt/x", true }, { "w /opt/x", false });
    path_table("backend = \"oci\"\ncontainer = { read_only_rootfs = false }", { "w /any", true },
               { "w /proc/x", false });
    path_table("backend = \"oci\"\nfilesystem = { hidden = [\"/opt\"], writable = [\"/w\"] }",
               { "r /opt/x", false }, { "w /w/x", true }, { "r /x", true });
    path_table("backend = \"oci\"\ncontainer = { mounts = [\"/h:/m\", \"/i:/n:rw\"] }",
               { "w /m/x", false }, { "w /n/x", true });
    /* Inherited container settings do not open a jail's root. */
    path_table("rootfs = \"/srv\"\n[defaults]\ncontainer = { read_only_rootfs = false }",
               { "w /opt/x", false });
}

static void test_grant_narrows_the_file_system_and_never_widens(void **state)
{
    (void)state;
    path_table_for("filesystem = { writable = [\"/w\"], readable = [\"/r\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = { readable = [\"/w\"], "
                   "writable = [\"/r\", \"/z\"] } }]\n",
                   "a", { "r /w/x", true }, { "w /w/x", false }, { "r /r/x", true },
                   { "w /r/x", false }, { "r /z", false }, { "w /tmp/x", true },
                   { "r /usr/bin/env", true });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n",
                   "a", { "r /w", false }, { "w /tmp/x", true });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = { writable = [\"/w\"], "
                   "hidden = [\"/w/h\", \"/usr/bin\"] } }]\n",
                   "a", { "w /w/x", true }, { "r /w/h", false }, { "r /usr/bin/env", false });
    /* Without scratch in the grant, the agent has no /tmp; with it, none that the tool lacks. */
    path_table_for("[agent.a]\ngrants = [{ tool = \"t\", filesystem = { scratch = \"0B\" } }]\n",
                   "a", { "w /tmp/x", false }, { "r /tmp", false }, { "w /dev/shm/x", false },
                   { "r /usr/bin/env", true });
    path_table_for("filesystem = { scratch = \"0B\" }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n",
                   "a", { "w /tmp/x", false });
    path_table_for("filesystem = { writable = [\"/w\"] }\n[agent.a]\n"
                   "grants = [{ tool = \"t\", filesystem = \"none\" }]\n[agent.b]\n"
                   "grants = [\"t\"]\n",
                   "b", { "w /w", true });
}

static void test_path_answer_names_the_deciding_rule(void **state)
{
    struct tc_policy *policy = load_text(
        "[tool.t]\n"
        "filesystem = { readable = [\"/d\", \"/h:/m\"],\n"
        "               hidden = [\"/d/s\"] }\n"
        "[agent.a]\n"
        "grants = [{ tool = \"t\", filesystem = { hidden = [\"/d/x\"] } }]\n");
    struct tc_decision d = decide_path(policy, NULL, "/d/a/../b", TC_ACCESS_READ);
    (void)state;
    assert_true(d.allowed && d.line == 2 && d.column == 28);
    assert_string_equal(d.key, "filesystem");
    assert_string_equal(d.rule, "readable: /d");
    d = decide_path(policy, NULL, "/d/s/k", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 3 && d.column == 26);
    assert_string_equal(d.rule, "hidden: /d/s");
    assert_non_null(strstr(d.fix, "\"/d/s\""));
    d = decide_path(policy, NULL, "/d/b", TC_ACCESS_WRITE);
    assert_true(!d.allowed && d.line == 2);
    assert_non_null(strstr(d.fix, "writable"));
    d = decide_path(policy, NULL, "/nowhere", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 2 && d.column == 14);
    assert_string_equal(d.rule, "");
    d = decide_path(policy, NULL, "/usr/bin", TC_ACCESS_READ);
    assert_true(d.allowed && d.line == 0);
    assert_string_equal(d.key, "system");
    d = decide_path(policy, NULL, "/tmp", TC_ACCESS_WRITE);
    assert_true(d.allowed && d.line == 0);
    d = decide_path(policy, "a", "/d/x", TC_ACCESS_READ);
    assert_true(!d.allowed && d.line == 5);
    assert_int_equal(d.column, 50);
    d = decide_path(policy, "a", "/d/y", TC_ACCESS_READ); /* not in the grant's table at all */
    assert_true(!d.allowed && d.line == 5);
    assert_int_equal(d.column, 38);
    tc_policy_free(policy);
}

static void test_longest_paths_are_answered_whole_or_refused(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\nfilesystem = { writable = [\"/w\"] }\n");
    char path[6000];
    (void)state;
    for (size_t length = 4000; length < 4200; length++) {
        struct tc_decision d;
        memset(path, 'a', length);
        memcpy(path, "/w/", 3);
        for (size_t i = 200; i < length - 1; i += 200)
            path[i] = '/';
        path[length] = '\0';
        d = decide_path(policy, NULL, path, TC_ACCESS_WRITE);
        assert_well_formed(&d);
        assert_int_equal(d.allowed, length <= 4095);
        assert_true(strlen(d.reason) < sizeof d.reason && strlen(d.fix) < sizeof d.fix);
    }
    tc_policy_free(policy);
}

/* ---- against a second implementation ---------------------------------------------------------- */

static uint64_t random_state;

/* xorshift64*: the same policies in every run. */
static unsigned pick(unsigned below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

#define pick_of(array) ((array)[pick((unsigned)tci_array_size(array))])

static const char *const rule_hosts[] = {
    "a.example",      "b.a.example", "*.a.example", "*.example", "xa.example",
    "10.0.0.0/8",     "10.1.2.3",    "8.8.8.8",     "0.0.0.0/0", "169.254.0.0/16",
    "[2606:4700::1]", "[2606::/16]", "[::/0]",      "127.0.0.1", "10.1.0.0/16",
};
static const char *const rule_ports[] = { "443", "80", "80-443", "*", "22" };
static const char *const asked_hosts[] = {
    "a.example",       "A.Example.",   "b.a.example",     "c.b.a.example",
    "xa.example",      "example",      "y.example",       "10.1.2.3",
    "10.2.3.4",        "8.8.8.8",      "169.254.169.254", "127.0.0.1",
    "::ffff:10.1.2.3", "2606:4700::1", "[2606:4700::2]",  "::1",
    "localhost",       "LOCALHOST.",   "a.localhost",     "fe80::1",
    "1.1.1.1",
};
static const unsigned asked_ports[] = { 443, 80, 81, 22, 65535, 0, 65536 };
static const char *const path_names[] = { "/",    "/a",       "/a/b", "/a/b/c", "/ab",     "/usr",
                                          "/tmp", "/usr/bin", "/etc", "/tmp/x", "/a/b/c/d" };
static const char *const asked_steps[] = { "a",   "b",      "c",  "ab", "usr", "bin",  "tmp", "x",
                                           "etc", "passwd", "..", ".",  "dev", "null", "proc" };

enum { rules_max = 5, mode_none = 0, mode_rules, mode_public, mode_host };

struct reference_rule {
    bool deny;
    const char *host, *port;
};

struct reference_network {
    int mode;
    struct reference_rule rules[rules_max];
    unsigned count;
};

struct reference_paths {
    /* [0] hidden, [1] readable, [2] writable */
    const char *paths[3][rules_max];
    unsigned count[3];
    bool scratch;
};

struct reference {
    struct reference_network network, grant_network;
    struct reference_paths paths, grant_paths;
    bool has_grant_network, has_grant_paths, system, rootfs;
    bool has_expiry, has_max_calls;
    unsigned max_calls;
};

static struct reference_network random_network(struct tci_buf *out)
{
    static const char *const words[] = { "\"none\"", NULL, "\"public\"", "\"host\"" };
    struct reference_network n = { .mode = (int)pick(8) };
    n.mode = n.mode > 3 ? mode_rules : n.mode;
    if (n.mode != mode_rules) {
        tci_buf_string(out, words[n.mode]);
        return n;
    }
    n.count = pick(rules_max + 1);
    tci_buf_string(out, "[");
    for (unsigned i = 0; i < n.count; i++) {
        n.rules[i] = (struct reference_rule){ pick(4) == 0, pick_of(rule_hosts),
                                              pick_of(rule_ports) };
        tci_buf_printf(out, "%s\"%s%s:%s\"", i ? ", " : "",
                       n.rules[i].deny ? "deny:"
                       : pick(2)       ? "allowlist:"
                                       : "",
                       n.rules[i].host, n.rules[i].port);
    }
    tci_buf_string(out, "]");
    return n;
}

static struct reference_paths random_paths(struct tci_buf *out)
{
    static const char *const names[] = { "hidden", "readable", "writable" };
    struct reference_paths p = { .scratch = pick(3) > 0 };
    tci_buf_printf(out, "{ scratch = \"%s\"", p.scratch ? "1MB" : "0B");
    for (unsigned a = 0; a < 3; a++) {
        tci_buf_printf(out, ", %s = [", names[a]);
        for (unsigned tries = pick(rules_max); tries; tries--) {
            const char *path = pick_of(path_names);
            bool repeated = false;
            for (unsigned i = 0; i < p.count[a]; i++)
                repeated |= strcmp(p.paths[a][i], path) == 0;
            if (repeated)
                continue;
            tci_buf_printf(out, "%s\"%s\"", p.count[a] ? ", " : "", path);
            p.paths[a][p.count[a]++] = path;
        }
        tci_buf_string(out, "]");
    }
    tci_buf_string(out, " }");
    return p;
}

static struct tc_policy *random_policy(struct reference *ref)
{
    struct tci_buf out = TCI_BUF_INIT(100000);
    struct tc_policy *policy;
    char *text;
    memset(ref, 0, sizeof *ref);
    ref->system = pick(2);
    ref->rootfs = pick(4) == 0;
    tci_buf_printf(&out, "[tool.t]\nsystem = %s\n%snetwork = ", ref->system ? "true" : "false",
                   ref->rootfs ? "rootfs = \"/srv\"\n" : "");
    ref->network = random_network(&out);
    tci_buf_string(&out, "\nfilesystem = ");
    ref->paths = random_paths(&out);
    tci_buf_string(&out, "\n[agent.a]\ngrants = [{ tool = \"t\"");
    if ((ref->has_grant_network = pick(2))) {
        tci_buf_string(&out, ", network = ");
        ref->grant_network = random_network(&out);
    }
    if ((ref->has_grant_paths = pick(2))) {
        tci_buf_string(&out, ", filesystem = ");
        ref->grant_paths = random_paths(&out);
    }
    if ((ref->has_expiry = pick(2)))
        tci_buf_string(&out, ", expires = \"1970-01-01T00:00:05Z\"");
    if ((ref->has_max_calls = pick(2))) {
        ref->max_calls = pick(6);
        tci_buf_printf(&out, ", max_calls = %u", ref->max_calls);
    }
    tci_buf_string(&out, " }]\n");
    text = tci_buf_take(&out, NULL);
    assert_non_null(text);
    policy = load_text(text);
    free(text);
    return policy;
}

/* An address as 128 bits; IPv4 as ::ffff:a.b.c.d. */
static bool address_bits(const char *text, unsigned char bits[128], bool *v4)
{
    unsigned char bytes[16] = { [10] = 0xff, [11] = 0xff };
    char bare[60];
    size_t length = strlen(text);
    if (text[0] == '[') {
        text++;
        length -= 2;
    }
    (void)snprintf(bare, sizeof bare, "%.*s", (int)length, text);
    if (inet_pton(AF_INET, bare, bytes + 12) != 1 && inet_pton(AF_INET6, bare, bytes) != 1)
        return false;
    *v4 = memcmp(bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
    for (unsigned i = 0; i < 128; i++)
        bits[i] = (bytes[i / 8] >> (7 - i % 8)) & 1;
    return true;
}

static bool prefix_matches(const char *rule, const char *host)
{
    unsigned char rule_bits[128], host_bits[128];
    char network[60];
    const char *slash = strchr(rule, '/');
    bool rule_v4, host_v4;
    unsigned prefix;
    (void)snprintf(network, sizeof network, "%.*s%s", (int)(slash ? slash - rule : 50), rule,
                   slash && rule[0] == '[' ? "]" : "");
    if (!address_bits(network, rule_bits, &rule_v4) || !address_bits(host, host_bits, &host_v4) ||
        rule_v4 != host_v4)
        return false;
    prefix = slash ? (unsigned)atoi(slash + 1) + (rule_v4 ? 96 : 0) : 128;
    for (unsigned i = 0; i < prefix; i++)
        if (rule_bits[i] != host_bits[i])
            return false;
    return true;
}

/* A name without its final dot, in small letters. */
static void plain_name(const char *host, char name[100])
{
    size_t length = strlen(host);
    (void)snprintf(name, 100, "%s", host);
    if (length && name[length - 1] == '.')
        name[length - 1] = '\0';
    for (char *p = name; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
}

static bool reference_matches(const struct reference_rule *rule, const char *host, unsigned port)
{
    char name[100];
    unsigned low, high;
    if (strcmp(rule->port, "*") == 0) {
        low = 1;
        high = 65535;
    } else if (sscanf(rule->port, "%u-%u", &low, &high) < 2) {
        high = low;
    }
    if (port < low || port > high)
        return false;
    if (prefix_matches(rule->host, host))
        return true;
    plain_name(host, name);
    if (rule->host[0] == '*') {
        size_t length = strlen(name), ending = strlen(rule->host) - 1;
        return length > ending && strcmp(name + length - ending, rule->host + 1) == 0;
    }
    return strcmp(name, rule->host) == 0;
}

static bool reference_is_public(const char *host)
{
    static const char *const near[] = { "10.0.0.0/8", "169.254.0.0/16", "127.0.0.0/8", "[::1/128]",
                                        "[fe80::/10]" };
    for (size_t i = 0; i < tci_array_size(near); i++)
        if (prefix_matches(near[i], host))
            return false;
    return true;
}

static bool reference_network(const struct reference_network *n, const char *host, unsigned port)
{
    bool allowed = false;
    if (port < 1 || port > 65535 || n->mode == mode_none)
        return false;
    if (n->mode == mode_host)
        return true;
    if (n->mode == mode_public)
        return !strcasestr(host, "localhost") && reference_is_public(host);
    if (strcasestr(host, "localhost") && !reference_network(n, "127.0.0.1", port) &&
        !reference_network(n, "::1", port))
        return false;
    for (unsigned i = 0; i < n->count; i++) {
        if (!reference_matches(&n->rules[i], host, port))
            continue;
        if (n->rules[i].deny)
            return false;
        allowed = true;
    }
    return allowed;
}

static void go_up(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path ? 1 : 0] = '\0';
}

enum { hidden = 0, no_rule = 3 };

/* What the policy's own rule for the path says. */
static unsigned reference_rule_of(const struct reference_paths *p, const char *path)
{
    char here[200];
    (void)snprintf(here, sizeof here, "%s", path);
    for (;;) {
        for (unsigned access = 0; access < 3; access++)
            for (unsigned i = 0; i < p->count[access]; i++)
                if (strcmp(p->paths[access][i], here) == 0)
                    return access;
        if (strcmp(here, "/") == 0)
            return no_rule;
        go_up(here);
    }
}

/*
 * From the path upwards to the root: the first directory about which anything is said decides; but
 * what the policy hides stays hidden, also where the cage has something of its own below.
 */
static bool reference_path(const struct reference *ref, const struct reference_paths *p,
                           const char *path, bool write)
{
    static const char *const always_writable[] = { "/dev/null" }, *const always_readable[] = {
        "/proc"
    };
    static const char *const system_paths[] = { "/usr", "/bin", "/etc/passwd" };
    char here[200];
    if (reference_rule_of(p, path) == hidden)
        return false;
    (void)snprintf(here, sizeof here, "%s", path);
    for (;;) {
        for (unsigned access = 0; access < 3; access++)
            for (unsigned i = 0; i < p->count[access]; i++)
                if (strcmp(p->paths[access][i], here) == 0)
                    return !write || access == 2;
        for (size_t i = 0; i < tci_array_size(always_writable); i++)
            if (strcmp(always_writable[i], here) == 0)
                return true;
        for (size_t i = 0; i < tci_array_size(always_readable); i++)
            if (strcmp(always_readable[i], here) == 0)
                return !write;
        if (p->scratch && strcmp(here, "/tmp") == 0)
            return true;
        for (size_t i = 0; ref->system && i < tci_array_size(system_paths); i++)
            if (strcmp(system_paths[i], here) == 0)
                return !write;
        if (strcmp(here, "/") == 0)
            return ref->rootfs && !write;
        go_up(here);
    }
}

/* A path of random steps, and its normal form; false when it leaves the root. */
static bool random_path(char asked[200], char normal[200])
{
    const char *stack[8];
    unsigned depth = 0, steps = pick(7);
    bool inside = true;
    size_t used = 0;
    asked[used] = '\0';
    for (unsigned i = 0; i < steps; i++) {
        const char *step = pick_of(asked_steps);
        used += (size_t)snprintf(asked + used, 200 - used, "/%s", step);
        if (strcmp(step, "..") == 0) {
            inside = inside && depth > 0;
            depth -= depth > 0;
        } else if (strcmp(step, ".") != 0) {
            stack[depth++] = step;
        }
    }
    if (steps == 0 || pick(5) == 0)
        (void)snprintf(asked + used, 200 - used, "/");
    used = 0;
    for (unsigned i = 0; i < depth; i++)
        used += (size_t)snprintf(normal + used, 200 - used, "/%s", stack[i]);
    if (depth == 0)
        (void)snprintf(normal, 200, "/");
    return inside;
}

/* A call that may never be made reaches nothing either. */
static bool reference_may_ask(const struct reference *ref, const char *agent)
{
    return !agent || !ref->has_max_calls || ref->max_calls > 0;
}

static void ask_network(const struct tc_policy *policy, const struct reference *ref,
                        const char *agent, unsigned allowed[2])
{
    const char *host = pick_of(asked_hosts);
    unsigned port = pick_of(asked_ports);
    struct tc_decision d = decide_network(policy, agent, host, port);
    bool expected = reference_may_ask(ref, agent) && reference_network(&ref->network, host, port);
    if (agent && ref->has_grant_network)
        expected = expected && reference_network(&ref->grant_network, host, port);
    assert_well_formed(&d);
    if (d.allowed != expected)
        fail_msg("%s:%u for %s: %s", host, port, agent ? agent : "the owner", d.reason);
    allowed[d.allowed]++;
}

static void ask_path(const struct tc_policy *policy, const struct reference *ref, const char *agent,
                     unsigned allowed[2])
{
    char asked[200], normal[200];
    bool inside = random_path(asked, normal), write = pick(2);
    struct tc_decision d = decide_path(policy, agent, asked,
                                       write ? TC_ACCESS_WRITE : TC_ACCESS_READ);
    bool expected = inside && reference_may_ask(ref, agent) &&
                    reference_path(ref, &ref->paths, normal, write);
    if (agent && ref->has_grant_paths)
        expected = expected && reference_path(ref, &ref->grant_paths, normal, write);
    assert_well_formed(&d);
    if (d.allowed != expected)
        fail_msg("%s %s for %s: %s", write ? "write" : "read", asked, agent ? agent : "the owner",
                 d.reason);
    allowed[d.allowed]++;
}

static void ask_call(const struct tc_policy *policy, const struct reference *ref,
                     unsigned allowed[2])
{
    int64_t now = (int64_t)pick(10);
    unsigned made = pick(6);
    struct tc_decision d = decide_call(policy, "a", "t", now, made);
    bool expected = !(ref->has_expiry && now >= 5) &&
                    !(ref->has_max_calls && made >= ref->max_calls);
    assert_well_formed(&d);
    assert_int_equal(d.allowed, expected);
    allowed[d.allowed]++;
}

static void test_random_policies_agree_with_the_reference(void **state)
{
    unsigned network[2] = { 0 }, path[2] = { 0 }, call[2] = { 0 };
    (void)state;
    random_state = 0x746f6f6c63616765;
    for (int i = 0; i < 1500; i++) {
        struct reference ref;
        struct tc_policy *policy = random_policy(&ref);
        for (int q = 0; q < 60; q++) {
            const char *agent = pick(2) ? "a" : NULL;
            ask_network(policy, &ref, agent, network);
            ask_path(policy, &ref, agent, path);
            ask_call(policy, &ref, call);
        }
        tc_policy_free(policy);
    }
    /* Questions that all have one answer would prove nothing. */
    assert_true(network[0] > 10000 && network[1] > 10000);
    assert_true(path[0] > 10000 && path[1] > 10000);
    assert_true(call[0] > 10000 && call[1] > 10000);
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
        cmocka_unit_test(test_most_specific_path_wins),
        cmocka_unit_test(test_at_one_path_hidden_beats_readable_beats_writable),
        cmocka_unit_test(test_prefix_of_a_name_is_no_directory),
        cmocka_unit_test(test_dots_in_the_asked_path_do_not_escape),
        cmocka_unit_test(test_mapped_path_is_asked_for_by_its_name_in_the_cage),
        cmocka_unit_test(test_scratch_is_there_unless_switched_off),
        cmocka_unit_test(test_system_directories_are_readable_unless_switched_off),
        cmocka_unit_test(test_every_cage_has_its_own_devices),
        cmocka_unit_test(test_image_and_rootfs_give_a_readable_root),
        cmocka_unit_test(test_grant_narrows_the_file_system_and_never_widens),
        cmocka_unit_test(test_path_answer_names_the_deciding_rule),
        cmocka_unit_test(test_longest_paths_are_answered_whole_or_refused),
        cmocka_unit_test(test_random_policies_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
