/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of what network rules say to the gate, and that they say the same, in the same words,
 * to whoever asks before (tc_decide_network).
 */
#include "support.h"

#include <stdio.h>
#include "gate/rules.h"
#include "policy/address.h"

enum ask { QUESTION, NAME, ADDRESS, RESOLVED };

struct row {
    const char *network; /* as in a policy */
    enum ask ask;
    const char *host; /* RESOLVED: the name */
    unsigned port;
    const char *address;  /* RESOLVED; with "own " in front: it is one of this machine's */
    const char *expected; /* "yes", or a part of the reason */
    const char *fix;      /* a part of it */
};

static struct tc_policy *policy_of(const char *network)
{
    char text[4096];
    assert_in_range(snprintf(text, sizeof text, "[tool.t]\nnetwork = %s\n", network), 1, 4095);
    return load_text(text);
}

static struct tci_host host_of(const char *text)
{
    struct tci_netrule_problem problem;
    struct tci_host host;
    if (tci_destination_parse(text, strlen(text), &host, &problem) < 0)
        fail_msg("%s: %s", text, problem.message);
    return host;
}

/* Bytes of an address, in any spelling: also one that no program could write as a destination. */
static struct tci_address address_of(const char *text)
{
    struct tci_address address;
    if (!tci_address_parse_v4(text, strlen(text), &address) &&
        !tci_address_parse_v6(text, strlen(text), &address))
        fail_msg("%s is no address", text);
    return address;
}

static bool take_word(const char **text, const char *word)
{
    if (!*text || strncmp(*text, word, strlen(word)) != 0)
        return false;
    *text += strlen(word);
    return true;
}

static struct tci_gate_verdict ask(const struct tci_network *network, const struct row *row)
{
    struct tci_gate_verdict verdict;
    const char *text = row->ask == ADDRESS ? row->host : row->address;
    bool own = take_word(&text, "own "), allowed = false;
    struct tci_host host = { 0 };
    struct tci_address address = { 0 };

    memset(&verdict, 0xff, sizeof verdict); /* each byte that counts is set */
    if (row->ask == ADDRESS || row->ask == RESOLVED)
        address = address_of(text);
    if (row->ask != ADDRESS)
        host = host_of(row->host);
    switch (row->ask) {
    case QUESTION:
        allowed = tci_gate_allows_question(network, &host, &verdict);
        break;
    case NAME:
        allowed = tci_gate_allows_name(network, &host, (uint16_t)row->port, &verdict);
        break;
    case ADDRESS:
        allowed = tci_gate_allows_address(network, &address, own, (uint16_t)row->port, &verdict);
        break;
    case RESOLVED:
        allowed = tci_gate_allows_resolved(network, &host, &address, own, (uint16_t)row->port,
                                           &verdict);
        break;
    }
    assert_int_equal(allowed, verdict.allowed);
    return verdict;
}

static void check_row(const struct row *row)
{
    struct tc_policy *policy = policy_of(row->network);
    struct tci_gate_verdict v = ask(&policy->tools[0].settings.network, row);
    bool expected = strcmp(row->expected, "yes") == 0;

    if (v.allowed != expected || (!expected && !strstr(v.reason, row->expected)) ||
        (row->fix && !strstr(v.fix, row->fix)))
        fail_msg("%s %s %u %s: %d \"%s\" (%s), not \"%s\" (%s)", row->network, row->host, row->port,
                 row->address ? row->address : "", v.allowed, v.reason, v.fix, row->expected,
                 row->fix ? row->fix : "");
    if (v.allowed) {
        assert_string_equal(v.reason, "");
        assert_string_equal(v.fix, "");
        assert_string_not_equal(v.rule, "");
        assert_int_equal(v.by_name, row->ask != ADDRESS);
    } else {
        assert_string_not_equal(v.fix, "");
        assert_false(v.by_name);
    }
    tc_policy_free(policy);
}

#define CHECK(rows)                                                                                \
    for (size_t i = 0; i < tci_array_size(rows); i++)                                              \
    check_row(&(rows)[i])

/* ---- names -------------------------------------------------------------------------------------- */

static void test_names_are_allowed_at_the_ports_of_their_rules(void **state)
{
    static const struct row rows[] = {
        { "['api.example.com:443']", NAME, "api.example.com", 443, NULL, "yes", NULL },
        { "['api.example.com:443']", NAME, "API.Example.COM.", 443, NULL, "yes", NULL },
        { "['api.example.com:443']", NAME, "api.example.com", 80, NULL,
          "no rule allows api.example.com:80", "add \"api.example.com:80\" to \"network\"" },
        { "['api.example.com:443']", NAME, "xapi.example.com", 443, NULL, "no rule", NULL },
        { "['api.example.com:443']", NAME, "a.api.example.com", 443, NULL, "no rule", NULL },
        { "['api.example.com:443']", NAME, "example.com", 443, NULL, "no rule", NULL },
        { "['*.example.com:443']", NAME, "a.b.example.com", 443, NULL, "yes", NULL },
        { "['*.example.com:443']", NAME, "example.com", 443, NULL, "no rule", NULL },
        { "['*.example.com:443']", NAME, "badexample.com", 443, NULL, "no rule", NULL },
        { "['*.example.com:8000-8010']", NAME, "a.example.com", 8000, NULL, "yes", NULL },
        { "['*.example.com:8000-8010']", NAME, "a.example.com", 8010, NULL, "yes", NULL },
        { "['*.example.com:8000-8010']", NAME, "a.example.com", 7999, NULL, "no rule", NULL },
        { "['*.example.com:8000-8010']", NAME, "a.example.com", 8011, NULL, "no rule", NULL },
        { "['*.example.com:*']", NAME, "a.example.com", 65535, NULL, "yes", NULL },
        { "['*.example.com:*']", NAME, "a.example.com", 0, NULL, "not a port", "1 to 65535" },
        { "'public'", NAME, "a.example.com", 0, NULL, "not a port", "1 to 65535" },
        { "['10.0.0.1:80', '0.0.0.0/0:443']", NAME, "a.example.com", 443, NULL, "no rule", NULL },
        { "'none'", NAME, "a.example.com", 443, NULL, "the network is \"none\"",
          "a.example.com:443" },
        { "[]", NAME, "a.example.com", 443, NULL, "the network is \"none\"", NULL },
        { "'public'", NAME, "a.example.com", 443, NULL, "yes", NULL },
    };
    (void)state;
    CHECK(rows);
}

static void test_deny_beats_allow_in_any_order(void **state)
{
    static const struct row rows[] = {
        { "['*.example.com:443', 'deny:a.example.com:443']", NAME, "a.example.com", 443, NULL,
          "a.example.com:443 is denied by the rule \"deny:a.example.com:443\"",
          "remove the rule \"deny:a.example.com:443\"" },
        { "['deny:*.example.com:443', 'a.example.com:443']", NAME, "a.example.com", 443, NULL,
          "is denied", NULL },
        { "['*.example.com:1-1000', 'deny:a.example.com:80']", NAME, "a.example.com", 443, NULL,
          "yes", NULL },
        { "['*.example.com:1-1000', 'deny:a.example.com:80']", NAME, "b.example.com", 80, NULL,
          "yes", NULL },
        { "['deny:*.example.com:*']", NAME, "b.example.com", 80, NULL, "is denied", NULL },
    };
    (void)state;
    CHECK(rows);
}

static void test_names_are_resolved_only_if_some_port_is_allowed(void **state)
{
    static const struct row rows[] = {
        { "['a.example.com:443']", QUESTION, "a.example.com", 0, NULL, "yes", NULL },
        { "['*.example.com:9-9000']", QUESTION, "x.example.com", 0, NULL, "yes", NULL },
        { "['*.example.com:443']", QUESTION, "example.com", 0, NULL, "no rule allows example.com",
          "add \"example.com:443\" to \"network\"" },
        { "['a.example.com:443']", QUESTION, "evil.example", 0, NULL, "no rule allows evil.example",
          "add \"evil.example:443\" to \"network\"" },
        /* A secret in a name that is not allowed goes to no name server. */
        { "['a.example.com:443']", QUESTION, "c2VjcmV0.evil.example", 0, NULL, "no rule", NULL },
        { "['deny:a.example.com:*']", QUESTION, "a.example.com", 0, NULL,
          "a.example.com is denied by the rule \"deny:a.example.com:*\"", "remove the rule" },
        { "['*.example.com:443', 'deny:a.example.com:443']", QUESTION, "a.example.com", 0, NULL,
          "is denied by the rule", NULL },
        { "['*.example.com:443', 'deny:a.example.com:*']", QUESTION, "a.example.com", 0, NULL,
          "is denied by the rule", NULL },
        /* Denials that leave one port, at either end and in between. */
        { "['*.example.com:10-20', 'deny:a.example.com:10-19']", QUESTION, "a.example.com", 0, NULL,
          "yes", NULL },
        { "['*.example.com:10-20', 'deny:a.example.com:11-65535']", QUESTION, "a.example.com", 0,
          NULL, "yes", NULL },
        { "['*.example.com:10-20', 'deny:a.example.com:1-14', 'deny:a.example.com:16-30']",
          QUESTION, "a.example.com", 0, NULL, "yes", NULL },
        { "['*.example.com:10-20', 'deny:a.example.com:1-14', 'deny:a.example.com:15-30']",
          QUESTION, "a.example.com", 0, NULL, "is denied", NULL },
        { "['*.example.com:65535', 'deny:a.example.com:1-65534']", QUESTION, "a.example.com", 0,
          NULL, "yes", NULL },
        { "'public'", QUESTION, "anything.example", 0, NULL, "yes", NULL },
        { "'none'", QUESTION, "anything.example", 0, NULL, "\"none\"", "anything.example:443" },
        /* An address is not asked for, whatever allows it. */
        { "['10.0.0.1:80']", QUESTION, "10.0.0.1", 0, NULL, "10.0.0.1 is not a name", "name" },
        { "'public'", QUESTION, "8.8.8.8", 0, NULL, "not a name", NULL },
        { "'public'", NAME, "8.8.8.8", 80, NULL, "not a name", NULL },
        { "'public'", RESOLVED, "8.8.8.8", 80, "8.8.8.8", "not a name", NULL },
    };
    (void)state;
    CHECK(rows);
}

static void test_localhost_needs_a_rule_for_its_address(void **state)
{
    static const struct row rows[] = {
        { "['localhost:80']", NAME, "localhost", 80, NULL, "is this machine", "127.0.0.1:80" },
        { "['*.localhost:80']", NAME, "app.localhost", 80, NULL, "is this machine", NULL },
        { "['localhost:80', '127.0.0.1:80']", NAME, "localhost", 80, NULL, "yes", NULL },
        { "['localhost:80', '[::1]:80']", NAME, "localhost", 80, NULL, "yes", NULL },
        { "['localhost:80', '127.0.0.1:81']", NAME, "localhost", 80, NULL, "is this machine",
          NULL },
        { "['localhost:80', '127.0.0.0/8:80', 'deny:127.0.0.1:80']", NAME, "localhost", 80, NULL,
          "is this machine", NULL },
        { "['localhost:80']", QUESTION, "localhost", 0, NULL, "is this machine", "127.0.0.1:80" },
        { "['localhost:1-100', '127.0.0.1:80']", QUESTION, "localhost", 0, NULL, "yes", NULL },
        { "['localhost:1-100', '127.0.0.1:1-200', 'deny:127.0.0.1:1-99']", QUESTION, "localhost", 0,
          NULL, "yes", NULL },
        { "['localhost:1-100', '127.0.0.1:101']", QUESTION, "localhost", 0, NULL, "is this machine",
          NULL },
        { "'public'", NAME, "localhost", 80, NULL, "does not include this machine",
          "127.0.0.1:80" },
        { "'public'", QUESTION, "x.localhost", 0, NULL, "does not include this machine", NULL },
        { "['localhost:80', '127.0.0.1:80']", RESOLVED, "localhost", 80, "127.0.0.1", "yes", NULL },
        { "['localhost:80', '127.0.0.1:80']", RESOLVED, "localhost", 80, "own 127.0.0.1", "yes",
          NULL },
        { "['localhost:80', '127.0.0.1:80']", RESOLVED, "localhost", 80, "::1", "which is loopback",
          "[::1]:80" },
        { "['localhostess.example:80']", NAME, "localhostess.example", 80, NULL, "yes", NULL },
    };
    (void)state;
    CHECK(rows);
}

/* ---- addresses of names ------------------------------------------------------------------------- */

static void test_name_leads_to_public_addresses_only(void **state)
{
    static const char *const special[] = {
        "127.0.0.1",
        "127.255.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "168.63.129.16",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "2001:2::1",
        "4000::1",
        /* 127.0.0.1 and 8.8.8.8 in other clothes: mapped, NAT64, 6to4, Teredo */
        "::ffff:7f00:1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2001:0:a00:1::",
        "2001::80ff:fffe",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "::ffff:0:7f00:1",
    };
    static const char *const global[] = { "8.8.8.8", "93.184.215.14", "2606:4700::1111",
                                          "::ffff:808:808" };
    static const char *const networks[] = { "['a.example:443']", "'public'",
                                            "['a.example:443', '0.0.0.0/0:80', '[::]/0:80']" };
    (void)state;
    for (size_t n = 0; n < tci_array_size(networks); n++) {
        for (size_t i = 0; i < tci_array_size(special); i++)
            check_row(&(struct row){ networks[n], RESOLVED, "a.example", 443, special[i],
                                     "a.example:443 resolves to ", "\"network\"" });
        for (size_t i = 0; i < tci_array_size(global); i++)
            check_row(
                &(struct row){ networks[n], RESOLVED, "a.example", 443, global[i], "yes", NULL });
    }
}

static void test_other_addresses_of_a_name_need_a_rule_of_their_own(void **state)
{
    static const struct row rows[] = {
        { "['a.example:443', '10.0.0.0/8:443']", RESOLVED, "a.example", 443, "10.1.2.3", "yes",
          NULL },
        { "['a.example:443', '10.0.0.0/8:443']", RESOLVED, "a.example", 443, "::ffff:a01:203",
          "yes", NULL },
        { "['a.example:443', '10.0.0.0/8:80']", RESOLVED, "a.example", 443, "10.1.2.3",
          "resolves to 10.1.2.3, which is private", "add \"10.1.2.3:443\" to \"network\" too" },
        /* Who allows an IPv4 address has not allowed a way there through a translator. */
        { "['a.example:443', '10.0.0.0/8:443']", RESOLVED, "a.example", 443, "64:ff9b::a01:203",
          "private", "[64:ff9b::a01:203]:443" },
        { "['a.example:443', '[64:ff9b::]/96:443']", RESOLVED, "a.example", 443, "64:ff9b::a01:203",
          "yes", NULL },
        { "['a.example:443', '[64:ff9b::]/96:443', 'deny:10.0.0.0/8:*']", RESOLVED, "a.example",
          443, "64:ff9b::a01:203", "denied by the rule \"deny:10.0.0.0/8:*\"", NULL },
        /* The rule for the address alone does not make the name right. */
        { "['10.0.0.0/8:443']", RESOLVED, "a.example", 443, "10.1.2.3", "no rule allows a.example",
          NULL },
        { "['a.example:443', '10.0.0.0/8:443']", RESOLVED, "b.example", 443, "10.1.2.3",
          "no rule allows b.example", NULL },
        { "['a.example:443', '10.0.0.0/8:443', 'deny:a.example:443']", RESOLVED, "a.example", 443,
          "10.1.2.3", "a.example:443 is denied", NULL },
        { "'public'", RESOLVED, "a.example", 443, "10.1.2.3", "which is private",
          "list with \"a.example:443\" and \"10.1.2.3:443\"" },
        /* By its name a host can have an address that the gate uses itself. */
        { "['a.example:443', '198.18.0.9:443']", RESOLVED, "a.example", 443, "198.18.0.9", "yes",
          NULL },
        { "'none'", RESOLVED, "a.example", 443, "8.8.8.8", "\"none\"", NULL },
        { "['a.example:443', '[::]/0:443']", RESOLVED, "a.example", 443, "::a00:1",
          "no address to go to", NULL },
    };
    (void)state;
    CHECK(rows);
}

static void test_denied_addresses_are_denied_to_names_too(void **state)
{
    static const struct row rows[] = {
        { "['a.example:443', 'deny:8.8.8.0/24:*']", RESOLVED, "a.example", 443, "8.8.8.8",
          "a.example:443 resolves to 8.8.8.8, which is denied by the rule \"deny:8.8.8.0/24:*\"",
          "remove the rule \"deny:8.8.8.0/24:*\"" },
        { "['a.example:443', 'deny:8.8.8.0/24:*']", RESOLVED, "a.example", 443, "::ffff:808:808",
          "is denied", NULL },
        { "['a.example:443', 'deny:8.8.8.0/24:80']", RESOLVED, "a.example", 443, "8.8.8.8", "yes",
          NULL },
        { "['a.example:443', 'deny:8.8.8.0/24:*']", RESOLVED, "a.example", 443, "8.8.9.8", "yes",
          NULL },
        { "['a.example:443', '8.8.8.8:443', 'deny:8.8.8.8:443']", RESOLVED, "a.example", 443,
          "8.8.8.8", "is denied", NULL },
        { "['a.example:443', 'deny:[2606:4700::]/32:443']", RESOLVED, "a.example", 443,
          "2606:4700::1", "is denied", NULL },
    };
    (void)state;
    CHECK(rows);
}

/* A server has public addresses of its own, with services behind its own firewall. */
static void test_this_machine_is_reached_by_a_rule_for_its_address_only(void **state)
{
    static const struct row rows[] = {
        { "['a.example:443']", RESOLVED, "a.example", 443, "own 8.8.8.8",
          "which is an address of this machine", "add \"8.8.8.8:443\" to \"network\" too" },
        { "['a.example:443', '8.8.8.8:443']", RESOLVED, "a.example", 443, "own 8.8.8.8", "yes",
          NULL },
        { "'public'", RESOLVED, "a.example", 443, "own 8.8.8.8",
          "which is an address of this machine", NULL },
        { "'public'", ADDRESS, "own 8.8.8.8", 443, NULL,
          "\"public\" does not include 8.8.8.8:443, which is an address of this machine",
          "list with \"8.8.8.8:443\"" },
        { "'public'", ADDRESS, "own ::ffff:808:808", 443, NULL, "an address of this machine",
          NULL },
        { "['8.8.8.0/24:443']", ADDRESS, "own 8.8.8.8", 443, NULL, "yes", NULL },
        { "['127.0.0.1:5432']", ADDRESS, "own 127.0.0.1", 5432, NULL, "yes", NULL },
    };
    (void)state;
    CHECK(rows);
}

/* ---- addresses ---------------------------------------------------------------------------------- */

static void test_addresses_without_a_name(void **state)
{
    static const struct row rows[] = {
        { "['8.8.8.8:53']", ADDRESS, "8.8.8.8", 53, NULL, "yes", NULL },
        { "['8.8.8.8:53']", ADDRESS, "8.8.8.8", 443, NULL, "no rule allows 8.8.8.8:443",
          "add \"8.8.8.8:443\"" },
        { "['8.8.8.8:53']", ADDRESS, "8.8.8.9", 53, NULL, "no rule", NULL },
        { "['8.8.8.8:53']", ADDRESS, "::ffff:808:808", 53, NULL, "yes", NULL },
        { "['8.8.8.8:53']", ADDRESS, "64:ff9b::808:808", 53, NULL,
          "no rule allows [64:ff9b::808:808]:53", NULL },
        { "['dns.google:443']", ADDRESS, "8.8.8.8", 443, NULL, "no rule", NULL },
        { "['10.0.0.0/8:*']", ADDRESS, "10.9.9.9", 1, NULL, "yes", NULL },
        { "['10.0.0.0/8:*', 'deny:10.9.0.0/16:*']", ADDRESS, "10.9.9.9", 1, NULL, "is denied",
          NULL },
        { "['10.0.0.0/8:*', 'deny:10.9.0.0/16:*']", ADDRESS, "::ffff:a09:909", 1, NULL, "is denied",
          NULL },
        { "['[::]/0:443', 'deny:10.0.0.0/8:*']", ADDRESS, "64:ff9b::a01:203", 443, NULL,
          "is denied", NULL },
        { "['[::]/0:443', 'deny:10.0.0.0/8:*']", ADDRESS, "2002:a01:203::", 443, NULL, "is denied",
          NULL },
        { "['[::]/0:443', 'deny:10.0.0.0/8:*']", ADDRESS, "2001::f5fe:fdfc", 443, NULL, "is denied",
          NULL },
        { "['[::]/0:443', 'deny:10.0.0.0/8:*']", ADDRESS, "64:ff9b::808:808", 443, NULL, "yes",
          NULL },
        { "['[::]/0:443']", ADDRESS, "::a00:1", 443, NULL, "is not a host", NULL },
        { "'public'", ADDRESS, "8.8.8.8", 25, NULL, "yes", NULL },
        { "'public'", ADDRESS, "2606:4700::1111", 25, NULL, "yes", NULL },
        { "'public'", ADDRESS, "10.0.0.1", 25, NULL, "which is private", "\"10.0.0.1:25\"" },
        { "'public'", ADDRESS, "169.254.169.254", 80, NULL, "which is metadata", NULL },
        { "'public'", ADDRESS, "::ffff:a9fe:a9fe", 80, NULL, "which is metadata", NULL },
        { "'public'", ADDRESS, "64:ff9b::a9fe:a9fe", 80, NULL, "which is metadata", NULL },
        { "'public'", ADDRESS, "2002:a9fe:a9fe::", 80, NULL, "which is metadata", NULL },
        { "'public'", ADDRESS, "::1", 80, NULL, "which is loopback", "[::1]:80" },
        { "'none'", ADDRESS, "8.8.8.8", 53, NULL, "\"none\"", NULL },
        { "['8.8.8.8:*']", ADDRESS, "8.8.8.8", 0, NULL, "not a port", NULL },
        /* What the gate gives to names is nobody's address. */
        { "['198.18.0.0/15:80']", ADDRESS, "198.18.0.2", 80, NULL, "the gate gives to names",
          "a name" },
        { "['0.0.0.0/0:80']", ADDRESS, "198.19.255.255", 80, NULL, "the gate gives to names",
          NULL },
        { "['[2001:2::]/48:80']", ADDRESS, "2001:2::2", 80, NULL, "the gate gives to names", NULL },
        { "['0.0.0.0/0:80']", ADDRESS, "198.20.0.1", 80, NULL, "yes", NULL },
        { "'public'", ADDRESS, "198.18.0.2", 80, NULL, "which is reserved", NULL },
    };
    (void)state;
    CHECK(rows);
}

/* A gate that was made by mistake opens nothing. */
static void test_gate_for_the_hosts_network_refuses_everything(void **state)
{
    static const struct row rows[] = {
        { "'host'", NAME, "a.example", 80, NULL, "none", NULL },
        { "'host'", QUESTION, "a.example", 0, NULL, "none", NULL },
        { "'host'", ADDRESS, "8.8.8.8", 53, NULL, "none", NULL },
        { "'host'", RESOLVED, "a.example", 80, "8.8.8.8", "none", NULL },
    };
    (void)state;
    CHECK(rows);
}

/* What a grant leaves of "public" is public. */
static void test_rules_cut_out_of_public_stay_public(void **state)
{
    static const struct row rows[] = {
        { NULL, ADDRESS, "8.8.8.8", 443, NULL, "yes", NULL },
        { NULL, ADDRESS, "own 8.8.8.8", 443, NULL, "an address of this machine", NULL },
        { NULL, ADDRESS, "9.9.9.9", 443, NULL, "no rule allows", NULL },
        { NULL, RESOLVED, "a.example", 443, "own 8.8.8.8", "an address of this machine", "list" },
        { NULL, RESOLVED, "a.example", 443, "9.9.9.9", "yes", NULL },
        { NULL, RESOLVED, "a.example", 443, "7.7.7.7", "is denied", NULL },
        { NULL, NAME, "localhost", 443, NULL, "does not include this machine", NULL },
        { NULL, QUESTION, "localhost", 0, NULL, "does not include this machine", NULL },
    };
    struct tc_policy *policy = policy_of(
        "['a.example:443', '8.8.8.0/24:443', 'localhost:443', 'deny:7.7.7.7:*']");
    struct tci_network network = policy->tools[0].settings.network;
    (void)state;
    network.only_public = true;
    for (size_t i = 0; i < tci_array_size(rows); i++) {
        struct tci_gate_verdict v = ask(&network, &rows[i]);
        if (strcmp(v.allowed ? "yes" : v.reason, rows[i].expected) != 0 &&
            (v.allowed || !strstr(v.reason, rows[i].expected)))
            fail_msg("%s: %d %s", rows[i].host, v.allowed, v.reason);
    }
    tc_policy_free(policy);
}

/* ---- one meaning everywhere ----------------------------------------------------------------------- */

static const char *const some_networks[] = {
    "'none'",
    "'public'",
    "['*.example:1-1000', 'deny:b.example:*', '10.1.0.0/16:80', 'localhost:80']",
    "['a.example:440-450', '192.0.2.1:80', 'deny:10.1.2.3:80', '0.0.0.0/0:80', '[::]/0:443']",
    "['localhost:80', '127.0.0.0/8:80', '198.18.0.1:80', 'deny:[2001:db8::]/32:*']",
};
static const char *const some_names[] = { "a.example",   "b.example", "a.b.example", "localhost",
                                          "x.localhost", "example",   NULL };
static const char *const some_addresses[] = {
    "10.1.2.3",       "10.1.2.4",  "8.8.8.8",     "192.0.2.1", "127.0.0.1",        "127.0.0.2",
    "198.18.0.1",     "::1",       "2001:db8::1", "2606::1",   "64:ff9b::a01:203", "::a00:1",
    "::ffff:a01:203", "224.0.0.1", NULL,
};

static void assert_same(const struct tci_gate_verdict *v, const struct tc_decision *d,
                        const char *network, const char *host)
{
    if (v->allowed != (d->allowed != 0) || strcmp(v->reason, d->allowed ? "" : d->reason) != 0 ||
        strcmp(v->fix, d->fix) != 0 ||
        (v->allowed && strcmp(v->rule, d->rule) != 0 && strcmp(v->rule, "public") != 0))
        fail_msg("%s %s: gate %d \"%s\" (%s), policy %d \"%s\" (%s)", network, host, v->allowed,
                 v->reason, v->fix, d->allowed, d->reason, d->fix);
}

static void test_gate_says_what_the_policy_says_in_the_same_words(void **state)
{
    static const uint16_t ports[] = { 0, 1, 80, 443, 445, 1000, 1001, 65535 };
    unsigned compared = 0;
    (void)state;
    for (size_t n = 0; n < tci_array_size(some_networks); n++) {
        struct tc_policy *policy = policy_of(some_networks[n]);
        const struct tci_network *network = &policy->tools[0].settings.network;
        for (size_t p = 0; p < tci_array_size(ports); p++) {
            struct tci_gate_verdict v;
            struct tc_decision d;
            for (size_t i = 0; some_names[i]; i++, compared++) {
                struct tci_host host = host_of(some_names[i]);
                tci_gate_allows_name(network, &host, ports[p], &v);
                tc_decide_network(policy, NULL, "t", some_names[i], ports[p], &d);
                assert_same(&v, &d, some_networks[n], some_names[i]);
            }
            for (size_t i = 0; some_addresses[i]; i++, compared++) {
                struct tci_address address = address_of(some_addresses[i]);
                tci_gate_allows_address(network, &address, false, ports[p], &v);
                tc_decide_network(policy, NULL, "t", some_addresses[i], ports[p], &d);
                assert_same(&v, &d, some_networks[n], some_addresses[i]);
            }
        }
        tc_policy_free(policy);
    }
    assert_int_equal(compared, tci_array_size(some_networks) * tci_array_size(ports) * (6 + 14));
}

/* The question is answered with yes exactly where one of all ports would be. */
static void test_question_agrees_with_every_port(void **state)
{
    (void)state;
    for (size_t n = 0; n < tci_array_size(some_networks); n++) {
        struct tc_policy *policy = policy_of(some_networks[n]);
        const struct tci_network *network = &policy->tools[0].settings.network;
        for (size_t i = 0; some_names[i]; i++) {
            struct tci_host host = host_of(some_names[i]);
            struct tci_gate_verdict v;
            bool somewhere = false;
            for (unsigned port = 1; port <= 65535 && !somewhere; port++)
                somewhere = tci_gate_allows_name(network, &host, (uint16_t)port, &v);
            assert_int_equal(tci_gate_allows_question(network, &host, &v), somewhere);
        }
        tc_policy_free(policy);
    }
}

static void test_rule_that_spoke_is_named(void **state)
{
    static const struct {
        const char *network, *name, *address, *rule;
    } cases[] = {
        { "['*.example:443', 'a.example:443']", "a.example", "8.8.8.8", "*.example:443" },
        { "['*.example:443', '10.0.0.1:443']", "a.example", "10.0.0.1", "*.example:443" },
        { "['*.example:443', 'deny:8.8.8.8:*']", "a.example", "8.8.8.8", "deny:8.8.8.8:*" },
        { "['*.example:443', 'deny:a.example:1-443']", "a.example", "8.8.8.8",
          "deny:a.example:1-443" },
        { "['b.example:443']", "a.example", "8.8.8.8", "" },
        { "'public'", "a.example", "8.8.8.8", "public" },
        { "'public'", "a.example", "10.0.0.1", "" },
        { "['*.example:443']", "a.example", "10.0.0.1", "" },
        { "['localhost:443']", "localhost", "127.0.0.1", "" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_policy *policy = policy_of(cases[i].network);
        struct tci_host host = host_of(cases[i].name);
        struct tci_address address = address_of(cases[i].address);
        struct tci_gate_verdict v;
        tci_gate_allows_resolved(&policy->tools[0].settings.network, &host, &address, false, 443,
                                 &v);
        assert_string_equal(v.rule, cases[i].rule);
        tc_policy_free(policy);
    }
}

static void test_longest_names_fit_or_are_seen_to_be_cut(void **state)
{
    struct tci_host host = { .kind = TCI_HOST_NAME };
    struct tci_gate_verdict v;
    struct tc_policy *policy = policy_of("['a.example:443']");
    (void)state;
    memset(host.name, 'a', TCI_NAME_MAX);
    for (size_t i = 50; i < TCI_NAME_MAX; i += 50)
        host.name[i] = '.';
    assert_false(tci_gate_allows_name(&policy->tools[0].settings.network, &host, 65535, &v));
    assert_int_equal(strlen(v.reason), TCI_GATE_REASON_MAX - 1);
    assert_string_equal(v.reason + TCI_GATE_REASON_MAX - 4, "...");
    assert_string_equal(v.fix + TCI_GATE_REASON_MAX - 4, "...");
    tc_policy_free(policy);
}

/* ---- ports -------------------------------------------------------------------------------------- */

static void check_ports(const char *network, bool every, unsigned count, const uint16_t *expected)
{
    struct tc_policy *policy = policy_of(network);
    struct tci_gate_ports ports;
    tci_gate_ports(&policy->tools[0].settings.network, &ports);
    if (ports.every != every || ports.count != count)
        fail_msg("%s: every %d, %u ports", network, ports.every, ports.count);
    for (unsigned i = 0; expected && i < count; i++)
        assert_int_equal(ports.items[i], expected[i]);
    tc_policy_free(policy);
}

static void test_ports_are_those_of_all_allow_rules(void **state)
{
    (void)state;
    check_ports("'none'", false, 0, NULL);
    check_ports("'host'", false, 0, NULL);
    check_ports("'public'", true, 0, NULL);
    check_ports("['deny:a.example:*']", false, 0, NULL);
    check_ports("['a.example:443', '10.0.0.1:443', '*.b.example:80']", false, 2,
                (const uint16_t[]){ 80, 443 });
    check_ports("['a.example:443', 'deny:a.example:443', 'deny:b.example:1-9']", false, 1,
                (const uint16_t[]){ 443 });
    check_ports("['a.example:20-22', 'b.example:21-24', 'c.example:1', 'd.example:65535']", false,
                7, (const uint16_t[]){ 1, 20, 21, 22, 23, 24, 65535 });
    check_ports("['a.example:65504-65535']", false, 32, NULL);
    check_ports("['a.example:1-32', 'b.example:2-31', 'c.example:1-32']", false, 32, NULL);
    check_ports("['a.example:1-33']", true, 0, NULL);
    check_ports("['a.example:1-32', 'b.example:40']", true, 0, NULL);
    check_ports("['b.example:40', 'a.example:1-31', 'c.example:39']", true, 0, NULL);
    check_ports("['a.example:*']", true, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_allowed_at_the_ports_of_their_rules),
        cmocka_unit_test(test_deny_beats_allow_in_any_order),
        cmocka_unit_test(test_names_are_resolved_only_if_some_port_is_allowed),
        cmocka_unit_test(test_localhost_needs_a_rule_for_its_address),
        cmocka_unit_test(test_name_leads_to_public_addresses_only),
        cmocka_unit_test(test_other_addresses_of_a_name_need_a_rule_of_their_own),
        cmocka_unit_test(test_denied_addresses_are_denied_to_names_too),
        cmocka_unit_test(test_this_machine_is_reached_by_a_rule_for_its_address_only),
        cmocka_unit_test(test_addresses_without_a_name),
        cmocka_unit_test(test_gate_for_the_hosts_network_refuses_everything),
        cmocka_unit_test(test_rules_cut_out_of_public_stay_public),
        cmocka_unit_test(test_gate_says_what_the_policy_says_in_the_same_words),
        cmocka_unit_test(test_question_agrees_with_every_port),
        cmocka_unit_test(test_rule_that_spoke_is_named),
        cmocka_unit_test(test_longest_names_fit_or_are_seen_to_be_cut),
        cmocka_unit_test(test_ports_are_those_of_all_allow_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
