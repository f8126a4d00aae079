/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/netrule.h: one spelling of each host, everything else refused with a remedy,
 * and what rules match. test_netrule_differential.py compares the same code with a second one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "policy/netrule.h"

/* Labels of 63 and 61 bytes, names of 253 and 251. */
#define L63  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define N253 L63 "." L63 "." L63 "." L61
#define N251 L61 "." L63 "." L63 "." L61

/* A copy that ends where the text does, so that the sanitizer sees a byte read too many. */
static char *exact_copy(const char *text, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static int parse_rule(const char *text, struct tci_netrule *ret,
                      struct tci_netrule_problem *problem)
{
    char *copy = exact_copy(text, strlen(text));
    int r = tci_netrule_parse(copy, strlen(text), ret, problem);
    free(copy);
    return r;
}

static int parse_destination(const char *text, struct tci_host *ret,
                             struct tci_netrule_problem *problem)
{
    char *copy = exact_copy(text, strlen(text));
    int r = tci_destination_parse(copy, strlen(text), ret, problem);
    free(copy);
    return r;
}

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

static void assert_shown_text_is_harmless(const char *text)
{
    assert_true(strlen(text) > 0);
    assert_true(strlen(text) < TCI_NETRULE_PROBLEM_MAX - 1);
    for (; *text; text++)
        assert_true(*text >= 0x20 && *text < 0x7f);
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
        cmocka_unit_test(test_bad_rules_are_refused_with_a_remedy),
        cmocka_unit_test(test_nul_and_long_texts_are_refused_and_cut),
        cmocka_unit_test(test_byte_by_byte_only_name_characters_are_in_names),
        cmocka_unit_test(test_host_alone_has_no_port_and_no_scheme),
        cmocka_unit_test(test_destinations_come_to_the_same_canonical_form),
        cmocka_unit_test(test_odd_destinations_are_refused),
        cmocka_unit_test(test_rules_match_what_they_say),
        cmocka_unit_test(test_mapped_bytes_are_denied_but_never_allowed),
        cmocka_unit_test(test_covers_means_matches_at_least_as_much),
        cmocka_unit_test(test_covers_and_matches_agree),
        cmocka_unit_test(test_equal_looks_at_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
