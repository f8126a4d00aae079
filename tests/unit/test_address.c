/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of policy/address.h: which texts are addresses, and which addresses are not public. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "policy/address.h"

/* From memory that ends where the text does, so that the sanitizer sees a byte read too many. */
static bool parse_v4(const char *text, struct tci_address *ret)
{
    size_t length = strlen(text);
    char *exact = malloc(length > 0 ? length : 1);
    assert_non_null(exact);
    memcpy(exact, text, length);
    bool good = tci_address_parse_v4(exact, length, ret);
    free(exact);
    return good;
}

static bool parse_v6(const char *text, struct tci_address *ret)
{
    size_t length = strlen(text);
    char *exact = malloc(length > 0 ? length : 1);
    assert_non_null(exact);
    memcpy(exact, text, length);
    bool good = tci_address_parse_v6(exact, length, ret);
    free(exact);
    return good;
}

static struct tci_address address_of(const char *text)
{
    struct tci_address address;
    if (!parse_v4(text, &address) && !parse_v6(text, &address))
        fail_msg("not an address: %s", text);
    return address;
}

static void assert_address(const struct tci_address *address, const char *expected)
{
    char buffer[TCI_ADDRESS_TEXT_MAX];
    assert_string_equal(tci_address_format(address, buffer), expected);
}

static void test_v4_needs_four_plain_decimal_parts(void **state)
{
    static const char *const good[] = { "0.0.0.0", "1.2.3.4", "255.255.255.255", "10.0.0.9" };
    static const char *const bad[] = {
        "",          "1",         "1.2",         "1.2.3",      "1.2.3.",   "1.2.3.4.",
        "1.2.3.4.5", ".1.2.3.4",  "1..2.3",      "01.2.3.4",   "1.2.3.00", "1.2.3.256",
        "1.2.3.999", "1.2.3.4 ",  " 1.2.3.4",    "1.2.3.+4",   "1.2.3.-4", "0x1.2.3.4",
        "1.2.3.0x4", "1.2.3.4/8", "1.2.3.0004",  "1,2,3,4",    "1.2.3.4a", "a.b.c.d",
        "1.2.3.4%1", "::1",       "1.2.3.12345", "4294967296", "1.2.3.",   "...",
    };
    struct tci_address address;
    (void)state;

    for (size_t i = 0; i < tci_array_size(good); i++) {
        assert_true(parse_v4(good[i], &address));
        assert_false(address.is_v6);
        assert_address(&address, good[i]);
    }
    for (size_t i = 0; i < tci_array_size(bad); i++)
        if (parse_v4(bad[i], &address))
            fail_msg("accepted: %s", bad[i]);
    assert_false(tci_address_parse_v4("1.2.3.4\0", 8, &address));
    assert_true(tci_address_parse_v4("1.2.3.45", 7, &address));
    assert_address(&address, "1.2.3.4");
}

static void test_v6_is_written_as_rfc_5952_says(void **state)
{
    static const char *const pairs[][2] = {
        { "::", "::" },
        { "::1", "::1" },
        { "1::", "1::" },
        { "0:0:0:0:0:0:0:0", "::" },
        { "0000:0000:0000:0000:0000:0000:0000:0001", "::1" },
        { "2001:DB8::ABCD", "2001:db8::abcd" },
        { "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
        { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
        { "2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
        { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
        { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
        { "1:0:0:4:0:0:0:8", "1:0:0:4::8" },
        { "1:0:0:0:5:0:0:0", "1::5:0:0:0" },
        { "0:0:1::", "0:0:1::" },
        { "1::0:0", "1::" },
        { "::ffff:0102:0304", "::ffff:102:304" },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    };
    (void)state;

    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        struct tci_address address;
        assert_true(parse_v6(pairs[i][0], &address));
        assert_true(address.is_v6);
        assert_address(&address, pairs[i][1]);
    }
}

static void test_v6_refuses_everything_else(void **state)
{
    static const char *const bad[] = {
        "",
        ":",
        ":::",
        "1",
        "1:",
        ":1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8:",
        ":1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::",
        "::1:2:3:4:5:6:7:8",
        "1:2:3:4::5:6:7:8",
        "1::2::3",
        "::1::",
        "1:::2",
        "12345::",
        "00001::",
        "g::",
        "::1%eth0",
        "fe80::1%1",
        "::1.2.3.4",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
        "[::1]",
        "::1/128",
        "::1 ",
        " ::1",
        "::-1",
        "::+1",
        "::0x1",
        "1.2.3.4",
    };
    struct tci_address address;
    (void)state;

    for (size_t i = 0; i < tci_array_size(bad); i++)
        if (parse_v6(bad[i], &address))
            fail_msg("accepted: %s", bad[i]);
    assert_false(tci_address_parse_v6("::1\0", 4, &address));
    assert_true(tci_address_parse_v6("::12", 3, &address));
    assert_address(&address, "::1");
}

static void test_prefix_counts_bits_and_keeps_families_apart(void **state)
{
    struct tci_address a = address_of("10.1.2.3"), net = address_of("10.1.0.0"),
                       v6 = address_of("a01:203::"), zero = address_of("::");
    (void)state;

    assert_true(tci_address_in_prefix(&a, &net, 0));
    assert_true(tci_address_in_prefix(&a, &net, 16));
    assert_true(tci_address_in_prefix(&a, &net, 22));
    assert_false(tci_address_in_prefix(&a, &net, 23));
    assert_false(tci_address_in_prefix(&a, &net, 32));
    assert_false(tci_address_in_prefix(&a, &net, 4000));
    assert_true(tci_address_in_prefix(&a, &a, 4000));
    assert_false(tci_address_in_prefix(&v6, &a, 0));
    assert_false(tci_address_in_prefix(&a, &zero, 0));
    assert_true(tci_address_in_prefix(&v6, &zero, 4));
    assert_false(tci_address_in_prefix(&v6, &zero, 5));

    assert_true(tci_address_has_host_bits(&a, 31));
    assert_false(tci_address_has_host_bits(&a, 32));
    assert_false(tci_address_has_host_bits(&net, 16));
    assert_true(tci_address_has_host_bits(&net, 15));
    assert_false(tci_address_has_host_bits(&zero, 0));
    assert_false(tci_address_has_host_bits(&v6, 32));
    assert_true(tci_address_has_host_bits(&v6, 31));
    assert_false(tci_address_has_host_bits(&v6, 4000));
}

static void test_embedded_v4_is_found_wherever_it_hides(void **state)
{
    static const char *const pairs[][2] = {
        { "::ffff:7f00:1", "127.0.0.1" },
        { "::7f00:1", "127.0.0.1" },
        { "::ffff:0:7f00:1", "127.0.0.1" },
        { "64:ff9b::a9fe:a9fe", "169.254.169.254" },
        { "64:ff9b:1::a00:1", "10.0.0.1" },
        { "64:ff9b:1:a00:0:100::", "10.0.0.1" },    /* RFC 6052, /48 */
        { "64:ff9b:1:ff0a:0:1::", "10.0.0.1" },     /* /56 */
        { "64:ff9b:1:ffff:a:0:100::", "10.0.0.1" }, /* /64 */
        { "2002:a00:1::", "10.0.0.1" },
        { "2002:c0a8:101:1234::5", "192.168.1.1" },
        { "2001:0:a00:1:0:0:3fff:fdd2", "192.0.2.45" }, /* Teredo: the client */
        { "2001:0:a00:1:0:0:3fff:fdd2", "10.0.0.1" },   /* and the server */
        { "::2", "0.0.0.2" },
        { "::c0a8:1", "192.168.0.1" },
        { "::ffff:0:c0a8:1", "192.168.0.1" },
        { "64:ff9b:1:8000::a00:1", "10.0.0.1" },
    };
    (void)state;

    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        struct tci_address address = address_of(pairs[i][0]), wanted = address_of(pairs[i][1]),
                           found[TCI_ADDRESS_EMBEDDED_MAX], first;
        unsigned count = tci_address_embedded_v4_all(&address, found), hits = 0;
        for (unsigned k = 0; k < count; k++)
            hits += tci_address_in_prefix(&found[k], &wanted, 32);
        if (hits != 1)
            fail_msg("%s not found in %s", pairs[i][1], pairs[i][0]);
        assert_true(tci_address_embedded_v4(&address, &first));
        assert_true(tci_address_in_prefix(&first, &found[0], 32));
    }
}

static void test_other_addresses_embed_nothing(void **state)
{
    static const char *const none[] = {
        "::",
        "::1",
        "2606:4700::1111",
        "fe80::1",
        "2003:a00:1::",
        "64:ff9b:2::a00:1",
        "64:ff9b::1:a00:1",
        "::1:7f00:1",
        "::fffe:7f00:1",
        "::fffe:0:7f00:1",
        "2001:1::1",
        "127.0.0.1",
        "64:ff9b:0:1::7f00:1",
    };
    struct tci_address ignored;
    (void)state;

    for (size_t i = 0; i < tci_array_size(none); i++) {
        struct tci_address address = address_of(none[i]);
        if (tci_address_embedded_v4(&address, &ignored))
            fail_msg("found something in %s", none[i]);
    }
}

static void test_only_mapped_is_mapped(void **state)
{
    struct tci_address v4, mapped = address_of("::ffff:102:304"),
                           compatible = address_of("::102:304"),
                           nat64 = address_of("64:ff9b::102:304"), plain = address_of("1.2.3.4");
    (void)state;

    assert_true(tci_address_is_mapped(&mapped, &v4));
    assert_address(&v4, "1.2.3.4");
    assert_false(tci_address_is_mapped(&compatible, &v4));
    assert_false(tci_address_is_mapped(&nat64, &v4));
    assert_false(tci_address_is_mapped(&plain, &v4));
}

static const struct {
    const char *text;
    enum tci_address_class address_class;
} classes[] = {
    /* IPv4: both ends of each range, and the neighbours. */
    { "0.0.0.0", TCI_ADDRESS_UNSPECIFIED },
    { "0.255.255.255", TCI_ADDRESS_UNSPECIFIED },
    { "1.0.0.0", TCI_ADDRESS_PUBLIC },
    { "8.8.8.8", TCI_ADDRESS_PUBLIC },
    { "9.255.255.255", TCI_ADDRESS_PUBLIC },
    { "10.0.0.0", TCI_ADDRESS_PRIVATE },
    { "10.255.255.255", TCI_ADDRESS_PRIVATE },
    { "11.0.0.0", TCI_ADDRESS_PUBLIC },
    { "100.63.255.255", TCI_ADDRESS_PUBLIC },
    { "100.64.0.0", TCI_ADDRESS_CGNAT },
    { "100.100.100.200", TCI_ADDRESS_METADATA },
    { "100.100.100.201", TCI_ADDRESS_CGNAT },
    { "100.127.255.255", TCI_ADDRESS_CGNAT },
    { "100.128.0.0", TCI_ADDRESS_PUBLIC },
    { "126.255.255.255", TCI_ADDRESS_PUBLIC },
    { "127.0.0.0", TCI_ADDRESS_LOOPBACK },
    { "127.0.0.1", TCI_ADDRESS_LOOPBACK },
    { "127.255.255.255", TCI_ADDRESS_LOOPBACK },
    { "128.0.0.0", TCI_ADDRESS_PUBLIC },
    { "168.63.129.15", TCI_ADDRESS_PUBLIC },
    { "168.63.129.16", TCI_ADDRESS_METADATA },
    { "168.63.129.17", TCI_ADDRESS_PUBLIC },
    { "169.253.255.255", TCI_ADDRESS_PUBLIC },
    { "169.254.0.0", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.0.23", TCI_ADDRESS_METADATA },
    { "169.254.0.22", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.42.42", TCI_ADDRESS_METADATA },
    { "169.254.42.43", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.169.253", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.169.254", TCI_ADDRESS_METADATA },
    { "169.254.169.255", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.170.2", TCI_ADDRESS_METADATA },
    { "169.254.170.3", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.170.23", TCI_ADDRESS_METADATA },
    { "169.254.170.22", TCI_ADDRESS_LINK_LOCAL },
    { "169.254.255.255", TCI_ADDRESS_LINK_LOCAL },
    { "169.255.0.0", TCI_ADDRESS_PUBLIC },
    { "172.15.255.255", TCI_ADDRESS_PUBLIC },
    { "172.16.0.0", TCI_ADDRESS_PRIVATE },
    { "172.31.255.255", TCI_ADDRESS_PRIVATE },
    { "172.32.0.0", TCI_ADDRESS_PUBLIC },
    { "191.255.255.255", TCI_ADDRESS_PUBLIC },
    { "192.0.0.0", TCI_ADDRESS_RESERVED },
    { "192.0.0.9", TCI_ADDRESS_RESERVED },
    { "192.0.0.192", TCI_ADDRESS_METADATA },
    { "192.0.0.193", TCI_ADDRESS_RESERVED },
    { "192.0.0.255", TCI_ADDRESS_RESERVED },
    { "192.0.1.0", TCI_ADDRESS_PUBLIC },
    { "192.0.2.0", TCI_ADDRESS_RESERVED },
    { "192.0.2.255", TCI_ADDRESS_RESERVED },
    { "192.0.3.0", TCI_ADDRESS_PUBLIC },
    { "192.88.98.255", TCI_ADDRESS_PUBLIC },
    { "192.88.99.0", TCI_ADDRESS_RESERVED },
    { "192.88.99.255", TCI_ADDRESS_RESERVED },
    { "192.88.100.0", TCI_ADDRESS_PUBLIC },
    { "192.167.255.255", TCI_ADDRESS_PUBLIC },
    { "192.168.0.0", TCI_ADDRESS_PRIVATE },
    { "192.168.255.255", TCI_ADDRESS_PRIVATE },
    { "192.169.0.0", TCI_ADDRESS_PUBLIC },
    { "198.17.255.255", TCI_ADDRESS_PUBLIC },
    { "198.18.0.0", TCI_ADDRESS_RESERVED },
    { "198.19.255.255", TCI_ADDRESS_RESERVED },
    { "198.20.0.0", TCI_ADDRESS_PUBLIC },
    { "198.51.99.255", TCI_ADDRESS_PUBLIC },
    { "198.51.100.0", TCI_ADDRESS_RESERVED },
    { "198.51.100.255", TCI_ADDRESS_RESERVED },
    { "198.51.101.0", TCI_ADDRESS_PUBLIC },
    { "203.0.112.255", TCI_ADDRESS_PUBLIC },
    { "203.0.113.0", TCI_ADDRESS_RESERVED },
    { "203.0.113.255", TCI_ADDRESS_RESERVED },
    { "203.0.114.0", TCI_ADDRESS_PUBLIC },
    { "223.255.255.255", TCI_ADDRESS_PUBLIC },
    { "224.0.0.0", TCI_ADDRESS_MULTICAST },
    { "239.255.255.255", TCI_ADDRESS_MULTICAST },
    { "240.0.0.0", TCI_ADDRESS_RESERVED },
    { "255.255.255.254", TCI_ADDRESS_RESERVED },
    { "255.255.255.255", TCI_ADDRESS_RESERVED },

    /* IPv6. */
    { "::", TCI_ADDRESS_UNSPECIFIED },
    { "::1", TCI_ADDRESS_LOOPBACK },
    { "::1:0:0", TCI_ADDRESS_RESERVED },
    { "100::1", TCI_ADDRESS_RESERVED },
    { "100:0:0:1::", TCI_ADDRESS_RESERVED },
    { "200::1", TCI_ADDRESS_RESERVED },
    { "1fff:ffff::1", TCI_ADDRESS_RESERVED },
    { "2000::1", TCI_ADDRESS_PUBLIC },
    { "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", TCI_ADDRESS_PUBLIC },
    { "2001:1::1", TCI_ADDRESS_RESERVED },
    { "2001:10::1", TCI_ADDRESS_RESERVED },
    { "2001:1ff:ffff::1", TCI_ADDRESS_RESERVED },
    { "2001:200::1", TCI_ADDRESS_PUBLIC },
    { "2001:4860:4860::8888", TCI_ADDRESS_PUBLIC },
    { "2001:db7:ffff::1", TCI_ADDRESS_PUBLIC },
    { "2001:db8::1", TCI_ADDRESS_RESERVED },
    { "2001:db9::1", TCI_ADDRESS_PUBLIC },
    { "2003::1", TCI_ADDRESS_PUBLIC },
    { "2606:4700:4700::1111", TCI_ADDRESS_PUBLIC },
    { "3ffe:ffff::1", TCI_ADDRESS_PUBLIC },
    { "3fff::1", TCI_ADDRESS_RESERVED },
    { "3fff:fff:ffff::1", TCI_ADDRESS_RESERVED },
    { "3fff:1000::1", TCI_ADDRESS_PUBLIC },
    { "4000::1", TCI_ADDRESS_RESERVED },
    { "5f00::1", TCI_ADDRESS_RESERVED },
    { "6000::1", TCI_ADDRESS_RESERVED },
    { "8000::1", TCI_ADDRESS_RESERVED },
    { "fbff::1", TCI_ADDRESS_RESERVED },
    { "fc00::1", TCI_ADDRESS_PRIVATE },
    { "fd00:42::42", TCI_ADDRESS_METADATA },
    { "fd00:42::43", TCI_ADDRESS_PRIVATE },
    { "fd00:c1::a9fe:a9fe", TCI_ADDRESS_METADATA },
    { "fd00:c1::a9fe:a9ff", TCI_ADDRESS_PRIVATE },
    { "fd00:ec2::23", TCI_ADDRESS_METADATA },
    { "fd00:ec2::22", TCI_ADDRESS_PRIVATE },
    { "fd00:ec2::254", TCI_ADDRESS_METADATA },
    { "fd00:ec2::253", TCI_ADDRESS_PRIVATE },
    { "fd00:ec2::255", TCI_ADDRESS_PRIVATE },
    { "fd20:ce::254", TCI_ADDRESS_METADATA },
    { "fd20:ce::255", TCI_ADDRESS_PRIVATE },
    { "fdff:ffff::1", TCI_ADDRESS_PRIVATE },
    { "fe00::1", TCI_ADDRESS_RESERVED },
    { "fe80::1", TCI_ADDRESS_LINK_LOCAL },
    { "fe80::a9fe:a9fe", TCI_ADDRESS_METADATA },
    { "fe80::a9fe:a9ff", TCI_ADDRESS_LINK_LOCAL },
    { "febf:ffff::1", TCI_ADDRESS_LINK_LOCAL },
    { "fec0::1", TCI_ADDRESS_PRIVATE },
    { "feff::1", TCI_ADDRESS_PRIVATE },
    { "ff00::", TCI_ADDRESS_MULTICAST },
    { "ff02::1", TCI_ADDRESS_MULTICAST },
    { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", TCI_ADDRESS_MULTICAST },

    /* IPv4 inside. A public one in a translation prefix is still not public. */
    { "::ffff:808:808", TCI_ADDRESS_RESERVED },
    { "::ffff:7f00:1", TCI_ADDRESS_LOOPBACK },
    { "::ffff:a9fe:a9fe", TCI_ADDRESS_METADATA },
    { "::ffff:0:0", TCI_ADDRESS_UNSPECIFIED },
    { "::808:808", TCI_ADDRESS_RESERVED },
    { "::7f00:1", TCI_ADDRESS_LOOPBACK },
    { "::ffff:0:a00:1", TCI_ADDRESS_PRIVATE },
    { "64:ff9b::808:808", TCI_ADDRESS_RESERVED },
    { "64:ff9b::a00:1", TCI_ADDRESS_PRIVATE },
    { "64:ff9b::a9fe:a9fe", TCI_ADDRESS_METADATA },
    { "64:ff9b:1::7f00:1", TCI_ADDRESS_LOOPBACK },
    { "64:ff9b:1:a9fe:a9:fe00::", TCI_ADDRESS_METADATA },
    { "2002:808:808::1", TCI_ADDRESS_RESERVED },
    { "2002:d000:1::1", TCI_ADDRESS_RESERVED },
    { "2002:7f00:1::1", TCI_ADDRESS_LOOPBACK },
    { "2002:6440:1::1", TCI_ADDRESS_CGNAT },
    { "2002:e000:1::1", TCI_ADDRESS_MULTICAST },
    { "2001:0:808:808:0:0:f7f7:f7f7", TCI_ADDRESS_RESERVED },
    { "2001:0:808:808:0:0:80ff:fffe", TCI_ADDRESS_LOOPBACK },
    { "2001:0:a9fe:a9fe:0:0:f7f7:f7f7", TCI_ADDRESS_METADATA },
};

static void test_each_range_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(classes); i++) {
        struct tci_address address = address_of(classes[i].text);
        enum tci_address_class found = tci_address_classify(&address);
        if (found != classes[i].address_class)
            fail_msg("%s is %s", classes[i].text, tci_address_class_name(found));
    }
}

static const struct {
    const char *text;
    unsigned prefix;
    enum tci_address_class address_class;
} prefix_classes[] = {
    { "0.0.0.0", 0, TCI_ADDRESS_METADATA },
    { "::", 0, TCI_ADDRESS_METADATA },
    { "8.0.0.0", 8, TCI_ADDRESS_PUBLIC },
    { "8.0.0.0", 7, TCI_ADDRESS_PUBLIC },
    { "8.0.0.0", 6, TCI_ADDRESS_PRIVATE },
    { "10.1.0.0", 16, TCI_ADDRESS_PRIVATE },
    { "100.0.0.0", 8, TCI_ADDRESS_METADATA },
    { "100.64.0.0", 16, TCI_ADDRESS_CGNAT },
    { "168.63.129.0", 24, TCI_ADDRESS_METADATA },
    { "168.63.128.0", 24, TCI_ADDRESS_PUBLIC },
    { "169.254.0.0", 16, TCI_ADDRESS_METADATA },
    { "169.254.1.0", 24, TCI_ADDRESS_LINK_LOCAL },
    { "126.0.0.0", 7, TCI_ADDRESS_LOOPBACK },
    { "192.0.0.0", 16, TCI_ADDRESS_METADATA },
    { "192.0.0.0", 25, TCI_ADDRESS_RESERVED },
    { "192.0.2.0", 24, TCI_ADDRESS_RESERVED },
    { "224.0.0.0", 3, TCI_ADDRESS_MULTICAST },
    { "2000::", 3, TCI_ADDRESS_METADATA }, /* 6to4 and Teredo are in it */
    { "2000::", 16, TCI_ADDRESS_PUBLIC },
    { "2606:4700::", 32, TCI_ADDRESS_PUBLIC },
    { "2001::", 32, TCI_ADDRESS_METADATA },
    { "2001:0:808:808::", 64, TCI_ADDRESS_METADATA }, /* any client */
    { "2001:200::", 24, TCI_ADDRESS_PUBLIC },
    { "2001:800::", 21, TCI_ADDRESS_RESERVED },
    { "2002::", 16, TCI_ADDRESS_METADATA },
    { "2002:a00::", 24, TCI_ADDRESS_PRIVATE },
    { "2002:800::", 24, TCI_ADDRESS_RESERVED },
    { "64:ff9b::", 96, TCI_ADDRESS_METADATA },
    { "64:ff9b::7f00:0", 104, TCI_ADDRESS_LOOPBACK },
    { "64:ff9b::808:0", 112, TCI_ADDRESS_RESERVED },
    { "64:ff9b:1:a00::", 56, TCI_ADDRESS_METADATA },
    { "4000::", 2, TCI_ADDRESS_RESERVED },
    { "fc00::", 7, TCI_ADDRESS_METADATA },
    { "fc00::", 8, TCI_ADDRESS_PRIVATE },
    { "fe80::", 10, TCI_ADDRESS_METADATA },
    { "fe80:1::", 32, TCI_ADDRESS_LINK_LOCAL },
    { "::1", 128, TCI_ADDRESS_LOOPBACK },
    { "::1", 4000, TCI_ADDRESS_LOOPBACK },
};

static void test_prefix_has_the_worst_class_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(prefix_classes); i++) {
        struct tci_address network = address_of(prefix_classes[i].text);
        enum tci_address_class found = tci_prefix_classify(&network, prefix_classes[i].prefix);
        if (found != prefix_classes[i].address_class)
            fail_msg("%s/%u is %s", prefix_classes[i].text, prefix_classes[i].prefix,
                     tci_address_class_name(found));
    }
}

/* The order that address_class.c states, written down a second time. */
static unsigned alarm_of(enum tci_address_class address_class)
{
    static const enum tci_address_class order[] = {
        TCI_ADDRESS_PUBLIC,      TCI_ADDRESS_RESERVED, TCI_ADDRESS_MULTICAST,
        TCI_ADDRESS_CGNAT,       TCI_ADDRESS_PRIVATE,  TCI_ADDRESS_LINK_LOCAL,
        TCI_ADDRESS_UNSPECIFIED, TCI_ADDRESS_LOOPBACK, TCI_ADDRESS_METADATA,
    };
    unsigned i = 0;
    while (order[i] != address_class)
        i++;
    return i;
}

static void test_wider_prefix_is_never_less_alarming(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(classes); i++) {
        struct tci_address address = address_of(classes[i].text);
        unsigned bits = address.is_v6 ? 128 : 32, last = alarm_of(classes[i].address_class);
        for (unsigned prefix = bits + 1; prefix-- > 0;) {
            unsigned alarm = alarm_of(tci_prefix_classify(&address, prefix));
            if (alarm < last)
                fail_msg("%s/%u is less alarming than /%u", classes[i].text, prefix, prefix + 1);
            last = alarm;
        }
        assert_int_equal(last, alarm_of(TCI_ADDRESS_METADATA));
    }
}

static void test_each_class_has_its_own_name(void **state)
{
    (void)state;
    for (int a = TCI_ADDRESS_PUBLIC; a <= TCI_ADDRESS_RESERVED; a++)
        for (int b = TCI_ADDRESS_PUBLIC; b < a; b++)
            assert_string_not_equal(tci_address_class_name((enum tci_address_class)a),
                                    tci_address_class_name((enum tci_address_class)b));
    assert_string_equal(tci_address_class_name((enum tci_address_class)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v4_needs_four_plain_decimal_parts),
        cmocka_unit_test(test_v6_is_written_as_rfc_5952_says),
        cmocka_unit_test(test_v6_refuses_everything_else),
        cmocka_unit_test(test_prefix_counts_bits_and_keeps_families_apart),
        cmocka_unit_test(test_embedded_v4_is_found_wherever_it_hides),
        cmocka_unit_test(test_other_addresses_embed_nothing),
        cmocka_unit_test(test_only_mapped_is_mapped),
        cmocka_unit_test(test_each_range_has_its_class),
        cmocka_unit_test(test_prefix_has_the_worst_class_in_it),
        cmocka_unit_test(test_wider_prefix_is_never_less_alarming),
        cmocka_unit_test(test_each_class_has_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
