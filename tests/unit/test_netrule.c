/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/netrule.h: one spelling of each host, and what rules match.
 * test_netrule_differential.py compares the same code with a second one.
 */
#include "netrule_support.h"

static struct tci_netrule rule_of(const char *text)
{
    struct tci_netrule rule;
    struct tci_netrule_problem problem;
    if (parse_rule(text, &rule, &problem) < 0)
        fail_msg("refused %s: %s; %s", text, problem.message, problem.remedy);
    return rule;
}

static struct tci_host destination_of(const char *text)
{
    struct tci_host host;
    struct tci_netrule_problem problem;
    if (parse_destination(text, &host, &problem) < 0)
        fail_msg("refused %s: %s; %s", text, problem.message, problem.remedy);
    return host;
}

static const char *const good[][2] = {
    /* Names. */
    { "api.example.com:443", "api.example.com:443" },
    { "allowlist:api.example.com:443", "api.example.com:443" },
    { "deny:api.example.com:443", "deny:api.example.com:443" },
    { "API.Example.COM:443", "api.example.com:443" },
    { "api.example.com.:443", "api.example.com:443" },
    { "localhost:8080", "localhost:8080" },
    { "LOCALHOST.:8080", "localhost:8080" },
    { "a:1", "a:1" },
    { "a.b:65535", "a.b:65535" },
    { "_dmarc.example.com:53", "_dmarc.example.com:53" },
    { "a_b.example:53", "a_b.example:53" },
    { "a-b.c--d.example:53", "a-b.c--d.example:53" },
    { "r3---sn-4g5e6nsz.example:443", "r3---sn-4g5e6nsz.example:443" },
    { "1.example:80", "1.example:80" },
    { "127.0.0.1.example:80", "127.0.0.1.example:80" },
    { "1e3:80", "1e3:80" },
    { "example.0x7g:80", "example.0x7g:80" },
    { "example.x7f:80", "example.x7f:80" },
    { "0x7f.example:80", "0x7f.example:80" },
    { "xn--bcher-kva.example:443", "xn--bcher-kva.example:443" },
    { "XN--BCHER-KVA.example:443", "xn--bcher-kva.example:443" },
    { "xn--fiqs8s:443", "xn--fiqs8s:443" },
    { "xn--80ak6aa92e.com:443", "xn--80ak6aa92e.com:443" },
    { "xn--ls8h.la:443", "xn--ls8h.la:443" },
    { "xn--hb9b:443", "xn--hb9b:443" },   /* U+D7FF */
    { "xn--0y0c:443", "xn--0y0c:443" },   /* U+E000 */
    { "xn--dn32g:443", "xn--dn32g:443" }, /* U+10FFFF */
    { "xn:443", "xn:443" },
    { "deny.example.com:443", "deny.example.com:443" },
    { "allowlist.example.com:443", "allowlist.example.com:443" },
    { "deny:denys:443", "deny:denys:443" },
    { "http:80", "http:80" },
    { L63 ".example:443", L63 ".example:443" },
    { N253 ":443", N253 ":443" },
    { N253 ".:443", N253 ":443" },
    { "deny:" N253 ":10000-20000", "deny:" N253 ":10000-20000" },

    /* Wildcards. */
    { "*.example.com:443", "*.example.com:443" },
    { "*.Example.com.:443", "*.example.com:443" },
    { "allowlist:*.example.com:*", "*.example.com:*" },
    { "deny:*.example.com:*", "deny:*.example.com:*" },
    { "*.com:443", "*.com:443" },
    { "*._tcp.example:443", "*._tcp.example:443" },
    { "*." N251 ":443", "*." N251 ":443" }, /* 253 with its star */

    /* Ports. */
    { "a.b:1", "a.b:1" },
    { "a.b:*", "a.b:*" },
    { "a.b:1-65535", "a.b:*" },
    { "a.b:443-443", "a.b:443" },
    { "a.b:1-1", "a.b:1" },
    { "a.b:65535-65535", "a.b:65535" },
    { "a.b:8000-8010", "a.b:8000-8010" },
    { "a.b:1-65534", "a.b:1-65534" },
    { "a.b:2-65535", "a.b:2-65535" },

    /* IPv4. */
    { "192.0.2.1:443", "192.0.2.1:443" },
    { "192.0.2.1/32:443", "192.0.2.1:443" },
    { "192.0.2.0/24:443", "192.0.2.0/24:443" },
    { "0.0.0.0/0:443", "0.0.0.0/0:443" },
    { "0.0.0.0:443", "0.0.0.0:443" },
    { "10.1.0.0/16:*", "10.1.0.0/16:*" },
    { "128.0.0.0/1:*", "128.0.0.0/1:*" },
    { "255.255.255.255:1", "255.255.255.255:1" },
    { "deny:169.254.169.254:*", "deny:169.254.169.254:*" },
    { "127.0.0.1:8080", "127.0.0.1:8080" },

    /* IPv6. */
    { "[2001:db8::1]:443", "[2001:db8::1]:443" },
    { "[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443" },
    { "[2001:0db8::0001]:443", "[2001:db8::1]:443" },
    { "[2001:db8::1/128]:443", "[2001:db8::1]:443" },
    { "[2001:db8::1]/128:443", "[2001:db8::1]:443" },
    { "[2001:db8::/32]:443", "[2001:db8::/32]:443" },
    { "[2001:db8::]/32:443", "[2001:db8::/32]:443" },
    { "[::/0]:*", "[::/0]:*" },
    { "[::]/0:*", "[::/0]:*" },
    { "[::]:80", "[::]:80" },
    { "[::1]:80", "[::1]:80" },
    { "[0:0:0:0:0:0:0:1]:80", "[::1]:80" },
    { "[64:ff9b::7f00:1]:80", "[64:ff9b::7f00:1]:80" },
    { "[64:ff9b::/96]:80", "[64:ff9b::/96]:80" },
    { "[2002:7f00:1::/48]:80", "[2002:7f00:1::/48]:80" },
    { "[1:0:0:2::3]:80", "[1:0:0:2::3]:80" },
    { "deny:[fc00::/7]:1-1024", "deny:[fc00::/7]:1-1024" },
    { "allowlist:[fe80::1]:1", "[fe80::1]:1" },
};

static void test_good_rules_have_one_spelling(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(good); i++) {
        struct tci_netrule rule = rule_of(good[i][0]);
        char text[TCI_RULE_TEXT_MAX], again[TCI_RULE_TEXT_MAX];
        assert_string_equal(tci_netrule_format(&rule, text), good[i][1]);
        struct tci_netrule copy = rule_of(text);
        assert_true(tci_netrule_equal(&rule, &copy));
        assert_string_equal(tci_netrule_format(&copy, again), text);
        assert_true(tci_netrule_covers(&rule, &copy));
    }
}

static void test_host_alone_has_no_port_and_no_scheme(void **state)
{
    static const char *const fine[][2] = {
        { "deny", "deny" },
        { "Example.COM.", "example.com" },
        { "*.example.com", "*.example.com" },
        { "10.0.0.0/8", "10.0.0.0/8" },
        { "[FE80::]/10", "[fe80::/10]" },
        { "[::1]", "[::1]" },
    };
    static const char *const refused[][2] = {
        { "https://x.y/", "without scheme, port or path" },
        { "x.y:443", "without scheme, port or path" },
        { "2001:DB8::1", "\"[2001:db8::1]\"" },
        { "[::1]:443", "" },
        { "*", "network = \"public\"" },
        { "127.1", "four decimal parts" },
    };
    struct tci_host host;
    struct tci_netrule_problem problem;
    (void)state;

    for (size_t i = 0; i < tci_array_size(fine); i++) {
        char text[TCI_RULE_TEXT_MAX];
        assert_int_equal(tci_host_parse(fine[i][0], strlen(fine[i][0]), &host, &problem), 0);
        assert_string_equal(tci_host_format(&host, text), fine[i][1]);
    }
    for (size_t i = 0; i < tci_array_size(refused); i++) {
        assert_int_equal(tci_host_parse(refused[i][0], strlen(refused[i][0]), &host, &problem), -1);
        assert_non_null(strstr(problem.remedy, refused[i][1]));
    }
}

static void test_destinations_come_to_the_same_canonical_form(void **state)
{
    static const char *const pairs[][2] = {
        { "API.Example.com.", "api.example.com" },
        { "localhost", "localhost" },
        { "_a._tcp.example", "_a._tcp.example" },
        { "192.0.2.1", "192.0.2.1" },
        { "0.0.0.0", "0.0.0.0" },
        { "2001:DB8::1", "[2001:db8::1]" },
        { "[2001:db8:0::1]", "[2001:db8::1]" },
        { "::", "[::]" },
        { "::1", "[::1]" },
        { "[::1]", "[::1]" },
        { "::ffff:10.0.0.1", "10.0.0.1" },
        { "[::FFFF:10.0.0.1]", "10.0.0.1" },
        { "::ffff:a00:1", "10.0.0.1" },
        { "0:0:0:0:0:ffff:a00:1", "10.0.0.1" },
        { "::ffff:0:0", "0.0.0.0" },
        { "64:ff9b::a00:1", "[64:ff9b::a00:1]" },
        { "2002:a00:1::1", "[2002:a00:1::1]" },
    };
    (void)state;

    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        struct tci_host host = destination_of(pairs[i][0]);
        char text[TCI_RULE_TEXT_MAX];
        assert_string_equal(tci_host_format(&host, text), pairs[i][1]);
        if (host.kind == TCI_HOST_ADDRESS)
            assert_int_equal(host.prefix, host.address.is_v6 ? 128 : 32);
    }
}

static const struct {
    const char *rule, *destination;
    uint16_t port;
    bool matches;
} matching[] = {
    { "a.example:443", "a.example", 443, true },
    { "a.example:443", "A.EXAMPLE.", 443, true },
    { "a.example:443", "a.example", 80, false },
    { "a.example:443", "b.a.example", 443, false },
    { "a.example:443", "example", 443, false },
    { "a.example:443", "aa.example", 443, false },
    { "a.example:443", "a.example.com", 443, false },
    { "a.example:400-500", "a.example", 400, true },
    { "a.example:400-500", "a.example", 500, true },
    { "a.example:400-500", "a.example", 399, false },
    { "a.example:400-500", "a.example", 501, false },
    { "a.example:*", "a.example", 1, true },
    { "a.example:*", "a.example", 65535, true },
    { "a.example:*", "a.example", 0, false },
    { "*.example.com:443", "a.example.com", 443, true },
    { "*.example.com:443", "a.b.c.example.com", 443, true },
    { "*.example.com:443", "example.com", 443, false },
    { "*.example.com:443", "badexample.com", 443, false },
    { "*.example.com:443", "example.com.evil.example", 443, false },
    { "*.example.com:443", "com", 443, false },
    { "*.example.com:443", "a.example.com", 80, false },
    { "*.example.com:443", "192.0.2.1", 443, false },
    { "*.com:443", "a.com", 443, true },
    { "localhost:80", "127.0.0.1", 80, false },
    { "127.0.0.1:80", "localhost", 80, false },
    { "192.0.2.1:443", "192.0.2.1", 443, true },
    { "192.0.2.1:443", "192.0.2.2", 443, false },
    { "192.0.2.0/24:443", "192.0.2.255", 443, true },
    { "192.0.2.0/24:443", "192.0.3.0", 443, false },
    { "0.0.0.0/0:443", "8.8.8.8", 443, true },
    { "0.0.0.0/0:443", "::1", 443, false },
    { "[::/0]:443", "::1", 443, true },
    { "[::/0]:443", "8.8.8.8", 443, false },
    { "[::/0]:443", "::ffff:8.8.8.8", 443, false }, /* that is IPv4 */
    { "[2001:db8::/33]:443", "2001:db8:7fff::1", 443, true },
    { "[2001:db8::/33]:443", "2001:db8:8000::1", 443, false },
    { "[2001:db8::1]:443", "[2001:DB8:0::1]", 443, true },

    /* No spelling slips past a deny; no detour is an allow. */
    { "127.0.0.1:80", "::ffff:127.0.0.1", 80, true },
    { "deny:127.0.0.1:80", "::ffff:7f00:1", 80, true },
    { "10.0.0.0/8:80", "64:ff9b::a00:1", 80, false },
    { "deny:10.0.0.0/8:80", "64:ff9b::a00:1", 80, true },
    { "deny:10.0.0.0/8:80", "64:ff9b::a00:1", 81, false },
    { "deny:10.0.0.0/8:80", "64:ff9b::b00:1", 80, false },
    { "deny:10.0.0.0/8:80", "64:ff9b:1::a00:1", 80, true },
    { "deny:10.0.0.0/8:80", "64:ff9b:1:a00:0:100::", 80, true },
    { "deny:10.0.0.0/8:80", "64:ff9b:1:ff0a:0:1::", 80, true },
    { "deny:10.0.0.0/8:80", "64:ff9b:1:ffff:a:0:100::", 80, true },
    { "deny:10.0.0.0/8:80", "2002:a00:1::1", 80, true },
    { "10.0.0.0/8:80", "2002:a00:1::1", 80, false },
    { "deny:192.0.2.45:80", "2001:0:a00:1::3fff:fdd2", 80, true },
    { "deny:10.0.0.0/8:80", "2001:0:a00:1::3fff:fdd2", 80, true },
    { "192.0.2.45:80", "2001:0:a00:1::3fff:fdd2", 80, false },
    { "deny:0.0.0.0/0:*", "2606:4700::1", 80, false },
    { "deny:0.0.0.0/0:*", "::1", 80, false },
    { "deny:[64:ff9b::/96]:*", "10.0.0.1", 80, false },
    { "deny:[::/0]:*", "10.0.0.1", 80, false },
    { "deny:a.example:*", "a.example", 80, true },
};

static void test_rules_match_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(matching); i++) {
        struct tci_netrule rule = rule_of(matching[i].rule);
        struct tci_host destination = destination_of(matching[i].destination);
        if (tci_netrule_matches(&rule, &destination, matching[i].port) != matching[i].matches)
            fail_msg("%s and %s port %u", matching[i].rule, matching[i].destination,
                     matching[i].port);
    }
}

/* An address that arrives as bytes (a resolver's answer), and so was never read as text. */
static void test_mapped_bytes_are_denied_but_never_allowed(void **state)
{
    static const char mapped[] = "::ffff:a00:1";
    struct tci_netrule allow = rule_of("10.0.0.0/8:80"), deny = rule_of("deny:10.0.0.0/8:80");
    struct tci_host destination = { .kind = TCI_HOST_ADDRESS, .prefix = 128 };
    (void)state;

    assert_true(tci_address_parse_v6(mapped, sizeof mapped - 1, &destination.address));
    assert_false(tci_netrule_matches(&allow, &destination, 80));
    assert_true(tci_netrule_matches(&deny, &destination, 80));
}

static const struct {
    const char *outer, *inner;
    bool covers;
} covering[] = {
    { "a.b:443", "a.b:443", true },
    { "a.b:*", "a.b:443", true },
    { "a.b:443", "a.b:*", false },
    { "a.b:400-500", "a.b:443", true },
    { "a.b:400-500", "a.b:500-501", false },
    { "a.b:400-500", "a.b:399-500", false },
    { "a.b:443", "c.b:443", false },
    { "*.b:443", "a.b:443", true },
    { "*.b:443", "b:443", false },
    { "*.b:443", "*.b:443", true },
    { "*.b:443", "*.a.b:443", true },
    { "*.a.b:443", "*.b:443", false },
    { "*.b:443", "*.ab:443", false },
    { "a.b:443", "*.a.b:443", false },
    { "*.b:443", "10.0.0.1:443", false },
    { "10.0.0.0/8:443", "a.b:443", false },
    { "10.0.0.0/8:443", "10.1.0.0/16:443", true },
    { "10.0.0.0/8:443", "10.0.0.1:443", true },
    { "10.1.0.0/16:443", "10.0.0.0/8:443", false },
    { "10.1.0.0/16:443", "10.2.0.0/16:443", false },
    { "0.0.0.0/0:*", "[::/0]:*", false },
    { "[::/0]:*", "0.0.0.0/0:*", false },
    { "[::/0]:*", "[2001:db8::1]:1", true },
    { "[2001:db8::/32]:*", "[2001:db8:1::/48]:1", true },
    { "deny:*.b:*", "a.b:443", true },
    { "a.b:443", "deny:a.b:443", true },
};

static void test_covers_means_matches_at_least_as_much(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(covering); i++) {
        struct tci_netrule outer = rule_of(covering[i].outer), inner = rule_of(covering[i].inner);
        if (tci_netrule_covers(&outer, &inner) != covering[i].covers)
            fail_msg("%s over %s", covering[i].outer, covering[i].inner);
    }
}

/* Each allow rule against each other, with all destinations and ports of the tables above. */
static void test_covers_and_matches_agree(void **state)
{
    unsigned pairs = 0;
    (void)state;

    for (size_t o = 0; o < tci_array_size(good); o++) {
        struct tci_netrule outer = rule_of(good[o][0]);
        for (size_t i = 0; i < tci_array_size(good); i++) {
            struct tci_netrule inner = rule_of(good[i][0]);
            outer.deny = inner.deny = false;
            if (!tci_netrule_covers(&outer, &inner))
                continue;
            pairs += o != i;
            for (size_t d = 0; d < tci_array_size(matching); d++) {
                struct tci_host destination = destination_of(matching[d].destination);
                for (unsigned port = 1; port <= 65535; port = port * 3 + 1)
                    if (tci_netrule_matches(&inner, &destination, (uint16_t)port) &&
                        !tci_netrule_matches(&outer, &destination, (uint16_t)port))
                        fail_msg("%s over %s: %s", good[o][0], good[i][0], matching[d].destination);
            }
        }
    }
    assert_true(pairs > 20);
}

static void test_equal_looks_at_everything(void **state)
{
    static const char *const different[] = {
        "a.b:443",
        "deny:a.b:443",
        "a.b:444",
        "a.b:443-444",
        "c.b:443",
        "*.a.b:443",
        "10.0.0.0/8:443",
        "10.0.0.0/9:443",
        "10.0.0.0:443",
        "[2001:db8::]:443",
        "[2001:db8::/32]:443",
        "[2001:db8::1]:443",
        "deny:10.0.0.0:443",
    };
    (void)state;

    for (size_t a = 0; a < tci_array_size(different); a++)
        for (size_t b = 0; b < tci_array_size(different); b++) {
            struct tci_netrule x = rule_of(different[a]), y = rule_of(different[b]);
            if (tci_netrule_equal(&x, &y) != (a == b))
                fail_msg("%s and %s", different[a], different[b]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_rules_have_one_spelling),
        cmocka_unit_test(test_host_alone_has_no_port_and_no_scheme),
        cmocka_unit_test(test_destinations_come_to_the_same_canonical_form),
        cmocka_unit_test(test_rules_match_what_they_say),
        cmocka_unit_test(test_mapped_bytes_are_denied_but_never_allowed),
        cmocka_unit_test(test_covers_means_matches_at_least_as_much),
        cmocka_unit_test(test_covers_and_matches_agree),
        cmocka_unit_test(test_equal_looks_at_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
