/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of policy/netrule.h: whatever is no rule or no destination is refused, with a remedy. */
#include "netrule_support.h"

static void assert_shown_text_is_harmless(const char *text)
{
    assert_true(strlen(text) > 0);
    assert_true(strlen(text) < TCI_NETRULE_PROBLEM_MAX - 1);
    for (; *text; text++)
        assert_true(*text >= 0x20 && *text < 0x7f);
}

/* Text, and a piece of the remedy (or of the message when it starts with '!'). */
static const char *const bad[][2] = {
    /* Not a host and a port. */
    { "", "api.example.com" },
    { ":443", "!host is missing" },
    { ":", "!host is missing" },
    { "api.example.com", "add the port, e.g. \"api.example.com:443\"" },
    { "Example.Org.", "add the port, e.g. \"example.org:443\"" },
    { "deny:example.org", "add the port, e.g. \"deny:example.org:443\"" },
    { "192.0.2.1", "add the port, e.g. \"192.0.2.1:443\"" },
    { "192.0.2.0/24", "add the port, e.g. \"192.0.2.0/24:443\"" },
    { "[::1]", "add the port, e.g. \"[::1]:443\"" },
    { "[2001:db8::]/32", "add the port, e.g. \"[2001:db8::/32]:443\"" },
    { "*.example.com", "add the port, e.g. \"*.example.com:443\"" },
    { N253, "add the port, e.g. \"api.example.com:443\"" },
    { "a.b:80:443", "HOST:PORT" },
    { "a.b::443", "HOST:PORT" },
    { "tcp:a.b:443", "HOST:PORT" },

    /* Prefixes. */
    { "allow:a.b:443", "\"allowlist:\"" },
    { "allow:443", "\"allowlist:\"" },
    { "Allowlist:a.b:443", "lower case" },
    { "ALLOWLIST:a.b:443", "lower case" },
    { "whitelist:a.b:443", "\"allowlist:\"" },
    { "permit:a.b:443", "\"allowlist:\"" },
    { "Deny:a.b:443", "\"deny:\"" },
    { "DENY:a.b:443", "\"deny:\"" },
    { "block:a.b:443", "\"deny:\"" },
    { "denylist:a.b:443", "\"deny:\"" },
    { "blacklist:a.b:443", "\"deny:\"" },
    { "deny:deny:a.b:443", "once" },
    { "deny:allowlist:a.b:443", "once" },
    { "allowlist:deny:a.b:443", "once" },
    { "allowlist:deny:443", "once" },
    { "allowlist:allowlist:443", "once" },
    { "Deny:443", "\"deny:\"" },
    { "deny.:443", "\"deny:\"" },
    { "allowlist:DENY.:443", "\"deny:\"" },
    { "deny:", "!host is missing" },
    { "deny:443", "" },
    { "allowlist:", "!host is missing" },
    { "deny", "\"deny:\"" },
    { "deny :a.b:443", "remove it" },

    /* URLs. */
    { "https://x.y/path", "write \"x.y:443\"" },
    { "http://x.y/path", "write \"x.y:80\"" },
    { "HTTPS://X.Y", "write \"x.y:443\"" },
    { "ws://x.y", "write \"x.y:80\"" },
    { "wss://x.y?q", "write \"x.y:443\"" },
    { "https://x.y#f", "write \"x.y:443\"" },
    { "https://x.y:8443/path", "write \"x.y:8443\"" },
    { "deny:https://x.y/path", "write \"deny:x.y:443\"" },
    { "https://[::1]/", "write \"[::1]:443\"" },
    { "http://[::1]:8080/", "write \"[::1]:8080\"" },
    { "https://192.0.2.1/", "write \"192.0.2.1:443\"" },
    { "https://good.example@evil.example/", "write the host and the port" },
    { "https://127.1/", "write the host and the port" },
    { "https://deny/", "write the host and the port" },
    { "https:///", "write the host and the port" },
    { "https://", "write the host and the port" },
    { "ftp://x.y/", "write the host and the port" },
    { "://x.y", "write the host and the port" },
    { "x.y/path:443", "without a path" },
    { "x.y:443/path", "1 to 65535" },

    /* Ports. */
    { "a.b:", "1 to 65535" },
    { "a.b:0", "1 to 65535" },
    { "a.b:65536", "1 to 65535" },
    { "a.b:99999", "1 to 65535" },
    { "a.b:100000", "1 to 65535" },
    { "a.b:4294967739", "1 to 65535" },
    { "a.b:0443", "1 to 65535" },
    { "a.b:00", "1 to 65535" },
    { "a.b:+443", "1 to 65535" },
    { "a.b:-443", "1 to 65535" },
    { "a.b:443-", "1 to 65535" },
    { "a.b:-", "1 to 65535" },
    { "a.b:1-2-3", "1 to 65535" },
    { "a.b:1--2", "1 to 65535" },
    { "a.b:0-443", "1 to 65535" },
    { "a.b:1-65536", "1 to 65535" },
    { "a.b:01-2", "1 to 65535" },
    { "a.b:1-02", "1 to 65535" },
    { "a.b:0x1bb", "1 to 65535" },
    { "a.b:https", "1 to 65535" },
    { "a.b:80,443", "1 to 65535" },
    { "a.b:**", "1 to 65535" },
    { "a.b:*-443", "1 to 65535" },
    { "a.b:443-*", "1 to 65535" },
    { "a.b:443.", "1 to 65535" },
    { "a.b:8010-8000", "write 8000-8010" },
    { "a.b: 443", "remove it" },
    { "a.b:443 ", "remove it" },
    { "[::1]:443:443", "1 to 65535" },

    /* Bytes. */
    { " a.b:443", "remove it" },
    { "a b:443", "!the byte \\x20" },
    { "a\tb:443", "!the byte \\x09" },
    { "a.b:443\n", "!the byte \\x0a" },
    { "a.b\r:443", "!the byte \\x0d" },
    { "\x1b[31m:443", "!the byte \\x1b" },
    { "a\x7f:443", "!the byte \\x7f" },
    { "caf\xc3\xa9.example:443", "punycode" },
    { "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:443", "punycode" },
    { "127\xe3\x80\x82"
      "0.0.1:443",
      "punycode" },
    { "\x80:443", "punycode" },
    { "\xff:443", "!the byte \\xff" },
    { "a.b:\xd9\xa4\xd9\xa4\xd9\xa3", "punycode" },

    /* Names. */
    { ".:443", "!empty label" },
    { "..:443", "!empty label" },
    { ".a.b:443", "!empty label" },
    { "a..b:443", "!empty label" },
    { "a.b..:443", "!empty label" },
    { "-a.b:443", "!\"-\"" },
    { "a-.b:443", "!\"-\"" },
    { "a.-b:443", "!\"-\"" },
    { "a.b-:443", "!\"-\"" },
    { "a.b-.:443", "!\"-\"" },
    { "-:443", "!\"-\"" },
    { L63 "a.example:443", "!63 bytes" },
    { "a" N253 ":443", "" },
    { "a." N253 ":443", "!253 bytes" },
    { N253 "..:443", "!253 bytes" },
    { "a!b:443", "!no host name" },
    { "a@b:443", "!no host name" },
    { "a%2eb:443", "!no host name" },
    { "a\\b:443", "!\\x5c" },
    { "a\"b:443", "!\\x22" },
    { "a'b:443", "!no host name" },
    { "a,b:443", "!no host name" },
    { "a;b:443", "!no host name" },
    { "{a}:443", "!no host name" },
    { "$HOST:443", "!no host name" },
    { "~a:443", "!no host name" },
    { "a]:443", "!no host name" },
    { "xn--:443", "" },
    { "xn--a-:443", "" },
    { "xn--abc-.example:443", "" },
    { "xn---abc.example:443", "!punycode" },
    { "xn--0.example:443", "!punycode" },
    { "xn--a_b.example:443", "!punycode" },
    { "xn--99999999.example:443", "!punycode" },
    { "xn--zzzzzzzzzzzzzz.example:443", "!punycode" },
    { "xn--ib9b:443", "!punycode" },                 /* U+D800, a surrogate */
    { "xn--zy0c:443", "!punycode" },                 /* U+DFFF */
    { "xn--en32g:443", "!punycode" },                /* U+110000 */
    { "xn--k0902716a:443", "!punycode" },            /* delta 2^32 - 1 */
    { "xn--l0902716a:443", "!punycode" },            /* delta 2^32 */
    { "xn--jj09724212927395847g:443", "!punycode" }, /* delta 2^70 */

    /* Wildcards. */
    { "*:443", "network = \"public\"" },
    { "*", "network = \"public\"" },
    { "*:*", "network = \"public\"" },
    { "deny:*:*", "denied anyway" },
    { "**:443", "\"*.example.com\"" },
    { "*.:443", "\"*.example.com\"" },
    { "*..:443", "" },
    { "*.*:443", "\"*.example.com\"" },
    { "*.*.example.com:443", "\"*.example.com\"" },
    { "**.example.com:443", "\"*.example.com\"" },
    { "*example.com:443", "\"*.example.com\"" },
    { "a*.example.com:443", "\"*.example.com\"" },
    { "a.*.com:443", "\"*.example.com\"" },
    { "example.*:443", "\"*.example.com\"" },
    { "example.com*:443", "\"*.example.com\"" },
    { "*.192.0.2.1:443", "192.0.2.0/24" },
    { "*.0.2.1:443", "four decimal parts" },
    { "*.127.1:443", "four decimal parts" },
    { "*.[::1]:443", "" },
    { "*/8:443", "" },
    { "*.example.com/24:443", "" },
    { "*." N253 ":443", "!253 bytes" },
    { "*.a" N251 ":443", "!253 bytes" },
    { "*.a." N251 ":443", "!253 bytes" },
    { "?.example.com:443", "!no host name" },

    /* Every other spelling of 127.0.0.1 and its like. */
    { "127.1:80", "four decimal parts" },
    { "127.0.1:80", "four decimal parts" },
    { "127:80", "four decimal parts" },
    { "0:80", "four decimal parts" },
    { "2130706433:80", "four decimal parts" },
    { "017700000001:80", "four decimal parts" },
    { "0x7f000001:80", "four decimal parts" },
    { "0X7F000001:80", "four decimal parts" },
    { "0xa:80", "four decimal parts" },
    { "0xff:80", "four decimal parts" },
    { "0x7f.0.0.1:80", "four decimal parts" },
    { "0x7f.1:80", "four decimal parts" },
    { "0x7f.0x1:80", "four decimal parts" },
    { "127.0.0.0x1:80", "four decimal parts" },
    { "127.0.0.0X1:80", "four decimal parts" },
    { "127.0x000001:80", "four decimal parts" },
    { "0177.0.0.1:80", "four decimal parts" },
    { "0177.0.0.01:80", "four decimal parts" },
    { "127.0.0.01:80", "four decimal parts" },
    { "127.0.0.001:80", "four decimal parts" },
    { "127.00.0.1:80", "four decimal parts" },
    { "010.0.0.1:80", "four decimal parts" },
    { "127.0.0.1.:80", "four decimal parts" },
    { "127.1.:80", "four decimal parts" },
    { "0x7f000001.:80", "four decimal parts" },
    { "127.0.0.1..:80", "!empty label" },
    { "127..0.1:80", "!empty label" },
    { "127.0.0.256:80", "four decimal parts" },
    { "383.0.0.1:80", "four decimal parts" },
    { "127.0.0.1.5:80", "four decimal parts" },
    { "1.2.3.4.5:80", "four decimal parts" },
    { "127.0.0.4294967297:80", "four decimal parts" },
    { "4294967296:80", "four decimal parts" },
    { "0x:80", "four decimal parts" },
    { "a.0x:80", "four decimal parts" },
    { "localhost.1:80", "four decimal parts" },
    { "127.0.0.1%00:80", "!no host name" },
    { "%31%32%37.1.example:80", "!no host name" },
    { "+127.0.0.1:80", "!no host name" },
    { "127.0.0.1\\.example:80", "!no host name" },
    { "127.0.0.1#a:80", "!no host name" },
    { "[127.0.0.1]:80", "hexadecimal" },
    { "[::ffff:127.0.0.1]:80", "write 127.0.0.1" },
    { "[::FFFF:127.0.0.1]:80", "write 127.0.0.1" },
    { "[::ffff:7f00:1]:80", "write 127.0.0.1" },
    { "[::ffff:7f00:1/128]:80", "write 127.0.0.1" },
    { "[0:0:0:0:0:ffff:7f00:1]:80", "write 127.0.0.1" },
    { "[0:0:0:0:0:ffff:127.0.0.1]:80", "hexadecimal" },
    { "[::ffff:127.1]:80", "hexadecimal" },
    { "[::ffff:0177.0.0.1]:80", "hexadecimal" },
    { "[::ffff:7f00:0/104]:80", "write 127.0.0.0/8" },
    { "[::ffff:0:0/96]:80", "write 0.0.0.0/0" },
    { "[::ffff:0:0]/96:80", "write 0.0.0.0/0" },
    { "[::7f00:1]:80", "write 127.0.0.1" },
    { "[::7f00:0/104]:80", "write 127.0.0.0/8" },
    { "[::/96]:80", "write 0.0.0.0/0" },
    { "[::127.0.0.1]:80", "hexadecimal" },
    { "[64:ff9b::127.0.0.1]:80", "hexadecimal" },
    { "::ffff:7f00:1:80", "" },
    { "::ffff:127.0.0.1", "" },
    { "::1", "\"[::1]:443\"" },
    { "::1:80", "\"[::1]:80\"" },

    /* IPv4 prefixes. */
    { "10.1.2.3/16:443", "write 10.1.0.0/16" },
    { "10.0.0.1/0:443", "write 0.0.0.0/0" },
    { "192.0.2.1/31:443", "write 192.0.2.0/31" },
    { "10.0.0.0/33:443", "0 to 32" },
    { "10.0.0.0/:443", "0 to 32" },
    { "10.0.0.0/08:443", "0 to 32" },
    { "10.0.0.0/00:443", "0 to 32" },
    { "10.0.0.0/+8:443", "0 to 32" },
    { "10.0.0.0/-8:443", "0 to 32" },
    { "10.0.0.0/8/8:443", "0 to 32" },
    { "10.0.0.0/255.0.0.0:443", "0 to 32" },
    { "10.0.0.0/0x8:443", "0 to 32" },
    { "10/8:443", "four decimal parts" },
    { "10.0.0/8:443", "four decimal parts" },
    { "010.0.0.0/8:443", "four decimal parts" },
    { "example.com/24:443", "without a path" },
    { "/8:443", "four decimal parts" },

    /* IPv6. */
    { "2001:db8::1", "\"[2001:db8::1]:443\"" },
    { "2001:db8::1:443", "\"[2001:db8::1]:443\"" },
    { "deny:2001:db8::1:443", "\"deny:[2001:db8::1]:443\"" },
    { "2001:db8::/32:443", "brackets" },
    { "1:2:3:4:5:6:7:8", "\"[1:2:3:4:5:6:7:8]:443\"" },
    { "[]:443", "\"[2001:db8::1]\"" },
    { "[:]:443", "\"[2001:db8::1]\"" },
    { "[::1:443", "" },
    { "[::1", "" },
    { "::1]:443", "" },
    { "[[::1]]:443", "" },
    { "[::1]]:443", "" },
    { "[::1]a:443", "" },
    { "[::1]443", "" },
    { "[::1%25eth0]:443", "\"%\"" },
    { "[fe80::1%eth0]:443", "\"%\"" },
    { "[v1.a]:443", "" },
    { "[example.com]:443", "" },
    { "[1:2:3:4:5:6:7:8:9]:443", "" },
    { "[1::2::3]:443", "" },
    { "[12345::]:443", "" },
    { "[::g]:443", "" },
    { "[2001:db8::1/32]:443", "write [2001:db8::/32]" },
    { "[2001:db8::1]/32:443", "write [2001:db8::/32]" },
    { "[::1/0]:443", "write [::/0]" },
    { "[2001:db8::/129]:443", "0 to 128" },
    { "[2001:db8::/]:443", "0 to 128" },
    { "[2001:db8::]/:443", "0 to 128" },
    { "[2001:db8::/032]:443", "0 to 128" },
    { "[2001:db8::/32]/32:443", "" },
    { "[2001:db8::/32/32]:443", "0 to 128" },
};

static void test_bad_rules_are_refused_with_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        const char *text = bad[i][0], *piece = bad[i][1];
        struct tci_netrule rule, untouched;
        struct tci_netrule_problem problem;
        memset(&rule, 0x55, sizeof rule);
        memcpy(&untouched, &rule, sizeof rule);
        if (parse_rule(text, &rule, &problem) != -1)
            fail_msg("accepted: %s", text);
        assert_memory_equal(&rule, &untouched, sizeof rule);
        assert_shown_text_is_harmless(problem.message);
        assert_shown_text_is_harmless(problem.remedy);
        if (!strstr(*piece == '!' ? problem.message : problem.remedy, piece + (*piece == '!')))
            fail_msg("%s: wanted \"%s\", got: %s; %s", text, piece, problem.message,
                     problem.remedy);
    }
}

static void test_nul_and_long_texts_are_refused_and_cut(void **state)
{
    struct tci_netrule rule;
    struct tci_netrule_problem problem;
    char huge[100000];
    (void)state;

    assert_int_equal(tci_netrule_parse("a.b\0:443", 8, &rule, &problem), -1);
    assert_non_null(strstr(problem.message, "\\x00"));
    assert_int_equal(tci_netrule_parse("a.b:443\0", 8, &rule, &problem), -1);
    assert_int_equal(tci_netrule_parse("good.example\0.evil.example:443", 30, &rule, &problem), -1);
    static const char fillers[] = "a.:1/[*\x01\xff";
    for (size_t i = 0; i < sizeof fillers; i++) {
        memset(huge, fillers[i], sizeof huge);
        assert_int_equal(tci_netrule_parse(huge, sizeof huge, &rule, &problem), -1);
        assert_shown_text_is_harmless(problem.message);
        assert_shown_text_is_harmless(problem.remedy);
    }
}

static void test_byte_by_byte_only_name_characters_are_in_names(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char text[] = "ab.example:443";
        struct tci_netrule rule;
        struct tci_netrule_problem problem;
        text[1] = (char)byte;
        bool name = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                    (byte >= '0' && byte <= '9') || byte == '_';
        int r = tci_netrule_parse(text, sizeof text - 1, &rule, &problem);
        if ((r == 0) != name)
            fail_msg("byte 0x%02x: %s", (unsigned)byte, r == 0 ? "accepted" : problem.message);
    }
}

static void test_odd_destinations_are_refused(void **state)
{
    static const char *const refused[] = {
        "",
        ".",
        "*",
        "*.example.com",
        "10.0.0.0/8",
        "10.0.0.1/32",
        "[2001:db8::/32]",
        "2001:db8::/32",
        "[2001:db8::]/32",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "[127.0.0.1]",
        "::127.0.0.1",
        "::7f00:1",
        "::ffff:127.1",
        "0:0:0:0:0:ffff:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "[::1",
        "::1]",
        "[]",
        "[",
        "]",
        ":",
        "example.com:443",
        "[::1]:443",
        "https://example.com",
        "user@example.com",
        "example.com/",
        "example..com",
        "example.com..",
        "exa mple.com",
        "ex\xc3\xa4mple.com",
        "xn--0.com",
        "-a.com",
    };
    struct tci_host host;
    struct tci_netrule_problem problem;
    (void)state;

    for (size_t i = 0; i < tci_array_size(refused); i++) {
        if (parse_destination(refused[i], &host, &problem) != -1)
            fail_msg("accepted: %s", refused[i]);
        assert_shown_text_is_harmless(problem.message);
        assert_shown_text_is_harmless(problem.remedy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_rules_are_refused_with_a_remedy),
        cmocka_unit_test(test_nul_and_long_texts_are_refused_and_cut),
        cmocka_unit_test(test_byte_by_byte_only_name_characters_are_in_names),
        cmocka_unit_test(test_odd_destinations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
