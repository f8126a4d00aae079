/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about the network: rules that are too wide, addresses that are near,
 * rules without effect.
 */
#include "lint_support.h"

#include "policy/lint.h"

/* ---- network -------------------------------------------------------------------------------- */

static void test_host_network_is_an_error_until_it_is_confirmed(void **state)
{
    static const struct row unconfirmed[] = {
        { "network = 'host'", 1 },
        { "network = 'host'\nallow_host_network = false", 1 },
        { "network = 'host'\nallow_host_network = true", 0 },
        { "network = 'public'", 0 },
        { "network = 'none'\nallow_host_network = true", 0 },
    };
    static const struct row confirmed[] = {
        { "network = 'host'\nallow_host_network = true", 1 },
        { "network = 'host'", 0 },
        { "network = 'public'\nallow_host_network = true", 0 },
    };
    (void)state;
    CHECK(unconfirmed, HOST_NETWORK);
    CHECK(confirmed, HOST_NETWORK_CONFIRMED);
}

static void test_one_tools_confirmation_is_not_anothers(void **state)
{
    static const char text[] = "[defaults]\nnetwork = 'host'\n"
                               "[tool.a]\nallow_host_network = true\n[tool.b]\n[tool.c]\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOST_NETWORK, 1);
    check_count(text, &options, TCI_FINDING_HOST_NETWORK_CONFIRMED, 1);
}

static void test_rules_for_every_port(void **state)
{
    static const struct row rows[] = {
        { "network = ['a.example.com:*']", 1 },
        { "network = ['a.example.com:1-65535']", 1 },
        { "network = ['a.example.com:1024-65535']", 1 },
        { "network = ['a.example.com:1-40000', 'a.example.com:40001-65535']", 2 },
        { "network = ['a.example.com:30000-39998']", 0 },
        { "network = ['a.example.com:8000-8010']", 0 },
        { "network = ['a.example.com:443', 'deny:b.example.com:*']", 0 },
        { "network = ['a.example.com:*', 'b.example.com:*']", 2 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com:*']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com']", 0 },
    };
    (void)state;
    CHECK(rows, WILDCARD_PORT);
}

static void test_wildcards_below_which_anybody_gets_a_name(void **state)
{
    static const struct row rows[] = {
        { "network = ['*.com:443']", 1 },
        { "network = ['*.io:443']", 1 },
        { "network = ['*.co.uk:443']", 1 },
        { "network = ['*.github.io:443']", 1 },
        { "network = ['*.GitHub.IO.:443']", 1 },
        { "network = ['*.s3.amazonaws.com:443']", 1 },
        { "network = ['*.s3.eu-west-1.amazonaws.com:443']", 1 },
        { "network = ['*.us-east-1.amazonaws.com:443']", 1 },
        { "network = ['*.execute-api.us-gov-west-1.amazonaws.com:443']", 1 },
        { "network = ['*.lambda-url.us-east-2.on.aws:443']", 1 },
        { "network = ['*.ngrok-free.app:443']", 1 },
        { "network = ['*.workers.dev:443']", 1 },
        { "network = ['*.on.aws:443']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['*.com']", 1 },
        { "network = ['*.example.com:443']", 0 },
        { "network = ['*.me.github.io:443']", 0 },
        { "network = ['me.github.io:443']", 0 },
        { "network = ['*.bucket.s3.amazonaws.com:443']", 0 },
        { "network = ['*.notgithub.io:443']", 0 },
        { "network = ['a.example.com:443', 'deny:*.com:443']", 0 },
    };
    (void)state;
    CHECK(rows, WIDE_WILDCARD);
}

static void test_wide_ranges_of_addresses(void **state)
{
    static const struct row rows[] = {
        { "network = ['0.0.0.0/0:443']", 1 },
        { "network = ['8.0.0.0/8:443']", 1 },
        { "network = ['8.0.0.0/15:443']", 1 },
        { "network = ['8.8.0.0/16:443']", 0 },
        { "network = ['8.8.8.8:443']", 0 },
        { "network = ['[::]/0:443']", 1 },
        { "network = ['[2600::]/16:443']", 1 },
        { "network = ['[2606:4700::]/32:443']", 0 },
        /* Wide, but nobody else's: that is another finding. */
        { "network = ['10.0.0.0/8:443']", 0 },
        { "network = ['127.0.0.0/8:443']", 0 },
        { "network = ['[fc00::]/7:443']", 0 },
        /* Together they are wide. */
        { "network = ['8.0.0.0/16:443', '8.1.0.0/16:443', '8.2.0.0/16:443', '8.3.0.0/16:443', "
          "'8.4.0.0/16:443', '8.5.0.0/16:443', '8.6.0.0/16:443', '8.7.0.0/16:443', "
          "'8.8.0.0/16:443', '8.9.0.0/16:443', '8.10.0.0/16:443', '8.11.0.0/16:443', "
          "'8.12.0.0/16:443', '8.13.0.0/16:443', '8.14.0.0/16:443', '8.15.0.0/16:443']",
          1 },
        { "network = ['8.0.0.0/16:443', '8.1.0.0/16:443', '8.2.0.0/16:443']", 0 },
        /* Half of it is the internet. */
        { "network = ['10.0.0.0/7:443']", 1 },
    };
    (void)state;
    CHECK(rows, WIDE_WILDCARD);
}

static void test_private_addresses_and_local_names(void **state)
{
    static const struct row rows[] = {
        { "network = ['10.1.2.3:5432']", 1 },
        { "network = ['192.168.0.0/16:80']", 1 },
        { "network = ['172.16.0.0/12:80']", 1 },
        { "network = ['127.0.0.1:8080']", 1 },
        { "network = ['allowlist:127.0.0.1:5432']", 1 },
        { "network = ['[::1]:8080']", 1 },
        { "network = ['[fd00::1]:8080']", 1 },
        { "network = ['0.0.0.0:8080']", 1 },
        { "network = ['100.64.0.1:80']", 1 },
        { "network = ['localhost:8080']", 1 },
        { "network = ['LOCALHOST.:8080']", 1 },
        { "network = ['app.localhost:8080']", 1 },
        { "network = ['*.localhost:8080']", 1 },
        { "network = ['host.docker.internal:80']", 1 },
        { "network = ['printer.local:631']", 1 },
        { "network = ['*.local:80']", 1 },
        { "network = ['db:5432']", 1 },
        { "network = ['router.lan:80']", 1 },
        { "network = ['kubernetes.default.svc:443']", 1 },
        { "network = ['api.example.com:443', '8.8.8.8:53']", 0 },
        { "network = ['localhost.example.com:443']", 0 },
        { "network = ['notlocalhost.com:443']", 0 },
        { "network = ['api.example.com:443', 'deny:10.0.0.0/8:*']", 0 },
        { "network = 'public'", 0 },
    };
    (void)state;
    CHECK(rows, PRIVATE_RANGE);
}

static void test_metadata_services(void **state)
{
    static const struct row rows[] = {
        { "network = ['169.254.169.254:80']", 1 },
        { "network = ['169.254.0.0/16:80']", 1 },
        { "network = ['0.0.0.0/0:80']", 1 },
        { "network = ['[fd00:ec2::254]:80']", 1 },
        { "network = ['100.100.100.200:80']", 1 },
        { "network = ['[64:ff9b::a9fe:a9fe]:80']", 1 },
        { "network = ['metadata.google.internal:80']", 1 },
        { "network = ['Metadata.Google.Internal.:80']", 1 },
        { "network = ['*.google.internal:80']", 1 },
        { "network = ['*.internal:80']", 1 },
        { "network = ['metadata:80']", 1 },
        { "network = ['169.254.1.1:80']", 0 },
        { "network = ['metadata.example.com:443']", 0 },
        { "network = ['api.example.com:443', 'deny:169.254.169.254:*']", 0 },
    };
    (void)state;
    CHECK(rows, METADATA_RANGE);
}

static void test_metadata_service_is_not_reported_as_private_too(void **state)
{
    static const struct row rows[] = {
        { "network = ['169.254.169.254:80', 'metadata.google.internal:80']", 0 },
    };
    (void)state;
    CHECK(rows, PRIVATE_RANGE);
}

static void test_addresses_of_the_gate(void **state)
{
    static const struct row rows[] = {
        { "network = ['198.18.0.1:80']", 1 },
        { "network = ['198.19.255.255:80']", 1 },
        { "network = ['198.18.0.0/15:80', '[2001:2::]/48:443']", 2 },
        { "network = ['[2001:2:0:1::7]:443']", 1 },
        { "network = ['198.20.0.1:80', '[2001:2:1::]/48:80']", 0 },
        { "network = ['198.16.0.0/13:80']", 0 }, /* more than the gate's: not meant for it */
        { "network = ['a.example.com:80', 'deny:198.18.0.1:80']", 0 },
    };
    (void)state;
    CHECK(rows, GATE_RANGE);
    check_message("[tool.t]\nnetwork = ['198.18.0.1:80']\n", TCI_FINDING_GATE_RANGE, "never dials",
                  "name");
    check_rows((struct row[]){ { "network = ['198.18.0.1:80']", 0 } }, 1,
               TCI_FINDING_PRIVATE_RANGE);
}

static void test_limits_of_a_network_that_is_not_there(void **state)
{
    static const struct row rows[] = {
        { "network_limits = { connections = 5 }", 1 },
        { "network = 'none'\nnetwork_limits = { rate = '1MB' }\ninspect = 'strict'", 2 },
        { "network = []\ninspect = 'names'", 1 },
        { "network = ['a.example.com:443']\ninspect = 'strict'\nnetwork_limits = {}", 0 },
        { "network = 'public'\ninspect = 'strict'\nnetwork_limits = {}", 0 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com']\ninspect = 'strict'", 0 },
        { "capabilities = []\nallowed_hosts = ['a.example.com']\ninspect = 'strict'", 1 },
    };
    static const struct row policies[] = {
        { "[defaults]\ninspect = 'strict'\nnetwork_limits = { rate = '1MB' }\n[tool.t]\n", 0 },
    };
    (void)state;
    CHECK(rows, NO_GATE);
    CHECK_POLICIES(policies, NO_GATE);
}

static void test_limits_of_the_network_that_a_tool_drops(void **state)
{
    static const struct row policies[] = {
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB', rate = '1kB' }\n"
          "[tool.t]\nnetwork = ['a.example.com:443']\nnetwork_limits = { bytes_in = '1MB' }\n",
          2 },
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB', connections = 5 }\n"
          "[tool.t]\nnetwork_limits = { bytes_out = '2MB' }\n[tool.u]\n",
          0 },
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB' }\ninspect = 'strict'\n"
          "[tool.t]\nnetwork = 'host'\n[tool.u]\nnetwork = 'public'\n",
          2 },
    };
    (void)state;
    CHECK_POLICIES(policies, DROPPED_DEFAULT);
}

static void test_rules_that_have_no_effect(void **state)
{
    static const struct row rows[] = {
        { "network = ['a.example.com:443', 'a.example.com:443']", 1 },
        { "network = ['a.example.com:443', 'allowlist:A.Example.com.:443']", 1 },
        { "network = ['a.example.com:443', 'deny:*.example.com:*']", 1 },
        { "network = ['*.example.com:443', 'deny:a.example.com:443']", 0 },
        { "network = ['a.example.com:80-443', 'deny:a.example.com:80']", 0 },
        { "network = ['*.example.com:443', 'a.example.com:443']", 1 },
        { "network = ['*.example.com:443', 'a.example.com:80']", 0 },
        { "network = ['*.example.com:443', 'example.com:443']", 0 },
        { "network = ['192.0.2.0/24:443', '192.0.2.7:443']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.org', 'a.org']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.org', 'a.org:443']", 1 },
    };
    (void)state;
    CHECK(rows, REPEATED_RULE);
}

static void test_denials_of_what_is_not_allowed_have_no_effect(void **state)
{
    static const struct row rows[] = {
        { "network = ['deny:evil.example.com:443']", 1 },
        { "network = ['deny:evil.example.com:443', 'deny:10.0.0.0/8:*']", 2 },
        { "network = ['api.example.com:443', 'deny:evil.example.org:443']", 1 },
        { "network = ['api.example.com:443', 'deny:api.example.com:80']", 1 },
        { "network = ['*.example.com:443', 'deny:*.b.example.com:443']", 0 },
        { "network = ['*.example.com:1-1000', 'deny:a.example.com:900-2000']", 0 },
        /* A name's addresses are checked as well. */
        { "network = ['api.example.com:443', 'deny:10.0.0.0/8:*']", 0 },
        { "network = ['192.0.2.0/24:443', 'deny:192.0.2.7:443']", 0 },
        { "network = ['192.0.2.0/24:443', 'deny:198.51.100.7:443']", 1 },
    };
    (void)state;
    CHECK(rows, REPEATED_RULE);
    check_message("[tool.t]\nnetwork = ['deny:evil.example.com:443']\n", TCI_FINDING_REPEATED_RULE,
                  "no rule allows what it denies", "denied anyway");
}

static void test_deny_is_named_rather_than_a_wider_allow(void **state)
{
    (void)state;
    check_message("[tool.t]\nnetwork = ['a.example.com:443', '*.example.com:443', "
                  "'deny:*.example.com:443']\n",
                  TCI_FINDING_REPEATED_RULE, "takes it back", "remove one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_network_is_an_error_until_it_is_confirmed),
        cmocka_unit_test(test_one_tools_confirmation_is_not_anothers),
        cmocka_unit_test(test_rules_for_every_port),
        cmocka_unit_test(test_wildcards_below_which_anybody_gets_a_name),
        cmocka_unit_test(test_wide_ranges_of_addresses),
        cmocka_unit_test(test_private_addresses_and_local_names),
        cmocka_unit_test(test_metadata_services),
        cmocka_unit_test(test_metadata_service_is_not_reported_as_private_too),
        cmocka_unit_test(test_addresses_of_the_gate),
        cmocka_unit_test(test_limits_of_a_network_that_is_not_there),
        cmocka_unit_test(test_limits_of_the_network_that_a_tool_drops),
        cmocka_unit_test(test_rules_that_have_no_effect),
        cmocka_unit_test(test_denials_of_what_is_not_allowed_have_no_effect),
        cmocka_unit_test(test_deny_is_named_rather_than_a_wider_allow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
