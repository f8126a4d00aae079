/* SPDX-License-Identifier: Apache-2.0 */
/* The packets that the gate reads and writes inside of a cage's network namespace. That the kernel
 * takes them as they are meant is tested end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include "base/attr.h"
#include "gate/packet.h"

enum { v4_head = 20, v6_head = 40 };

/* From port 40000 to port 443, with 20 bytes of options. */
static const uint8_t syn_tcp[40] = {
    0x9c, 0x40, 0x01, 0xbb, 0x11, 0x22, 0x33, 0xff, 0, 0, 0, 0,
    0xa0, 0x02, 0xff, 0xff, 0xbe, 0xef, 0,    0,    2, 4, 5, 0xb4
};

static struct tci_syn make(bool is_v6)
{
    static const struct tci_address from6 = { .is_v6 = true, .bytes = { 0x20, 1, 0, 2, [15] = 1 } };
    static const struct tci_address to6 = { .is_v6 = true, .bytes = { 0x20, 1, 0, 2, [15] = 7 } };
    uint8_t packet[v4_head + sizeof syn_tcp] = { 0x45, 0, 0,   60, 0, 0, 0x40, 0,  64, 6,
                                                 0,    0, 198, 18, 0, 1, 198,  18, 0,  7 };
    struct tci_syn syn;
    memcpy(packet + v4_head, syn_tcp, sizeof syn_tcp);
    if (is_v6)
        assert_true(tci_packet_read_syn6(syn_tcp, sizeof syn_tcp, &from6, &to6, &syn));
    else
        assert_true(tci_packet_read_syn4(packet, sizeof packet, &syn));
    return syn;
}

static uint32_t sum(uint32_t start, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        start += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    return start;
}

/* A right checksum makes the whole add up to all ones. */
static void check_sum(const uint8_t *packet, size_t length)
{
    const bool is_v6 = packet[0] >> 4 == 6;
    const size_t head = is_v6 ? v6_head : v4_head;
    const uint8_t protocol = packet[is_v6 ? 6 : 9];
    uint32_t total = sum(0, packet + head, length - head);
    if (protocol != 1)
        total += sum(0, packet + (is_v6 ? 8 : 12), is_v6 ? 32 : 8) + protocol +
                 (uint32_t)(length - head);
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    assert_int_equal(total, 0xffff);
    if (!is_v6) {
        total = sum(0, packet, v4_head);
        while (total >> 16)
            total = (total & 0xffff) + (total >> 16);
        assert_int_equal(total, 0xffff);
    }
}

static void test_syn_is_read(void **state)
{
    (void)state;
    for (int is_v6 = 0; is_v6 <= 1; is_v6++) {
        const struct tci_syn syn = make(is_v6);
        assert_int_equal(syn.from_port, 40000);
        assert_int_equal(syn.to_port, 443);
        assert_int_equal(syn.to.bytes[is_v6 ? 15 : 3], 7);
        assert_int_equal(syn.length, 40);
    }
}

static void test_syn_is_sent_again_as_it_was(void **state)
{
    uint8_t packet[TCI_PACKET_MAX];
    (void)state;
    for (int is_v6 = 0; is_v6 <= 1; is_v6++) {
        const struct tci_syn syn = make(is_v6);
        const size_t length = tci_packet_write_syn(&syn, packet), head = is_v6 ? v6_head : v4_head;
        assert_int_equal(length, head + 40);
        assert_memory_equal(packet + head, syn_tcp, 16); /* up to the checksum */
        assert_memory_equal(packet + head + 18, syn_tcp + 18, sizeof syn_tcp - 18);
        check_sum(packet, length);
    }
}

static void test_refusals_answer_the_syn(void **state)
{
    uint8_t packet[TCI_PACKET_MAX];
    (void)state;
    for (int is_v6 = 0; is_v6 <= 1; is_v6++) {
        const struct tci_syn syn = make(is_v6);
        const size_t head = is_v6 ? v6_head : v4_head;
        size_t length = tci_packet_write_reset(&syn, packet);
        check_sum(packet, length);
        assert_int_equal(packet[head + 13], 0x14);
        assert_memory_equal(packet + head + 8, "\x11\x22\x34\x00", 4); /* the sequence and one */
        for (int network = 0; network <= 1; network++) {
            length = tci_packet_write_unreachable(&syn, network, packet);
            check_sum(packet, length);
            assert_int_equal(packet[head], is_v6 ? 1 : 3);
            assert_int_equal(packet[head + 1], network ? 0 : is_v6 ? 3 : 1);
            assert_memory_equal(packet + head + 8 + head, syn_tcp, 8);
        }
    }
}

static void test_nothing_else_is_a_syn(void **state)
{
    uint8_t packet[v4_head + sizeof syn_tcp] = { 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6 };
    struct tci_syn syn;
    (void)state;
    memcpy(packet + v4_head, syn_tcp, sizeof syn_tcp);
    for (size_t n = 0; n < sizeof packet; n++)
        assert_false(tci_packet_read_syn4(packet, n, &syn));
    packet[v4_head + 13] = 0x12; /* SYN and ACK */
    assert_false(tci_packet_read_syn4(packet, sizeof packet, &syn));
    packet[v4_head + 13] = 0x02;
    packet[9] = 17;
    assert_false(tci_packet_read_syn4(packet, sizeof packet, &syn));
    packet[9] = 6;
    packet[0] = 0x4f; /* options that fill the packet */
    assert_false(tci_packet_read_syn4(packet, sizeof packet, &syn));
    packet[0] = 0x44; /* a header that is too short */
    assert_false(tci_packet_read_syn4(packet, sizeof packet, &syn));
    packet[0] = 0x45;
    packet[v4_head + 12] = 0x40; /* a TCP header that is too short */
    assert_false(tci_packet_read_syn4(packet, sizeof packet, &syn));
}

static void test_random_bytes_are_harmless(void **state)
{
    static const struct tci_address any = { .is_v6 = true };
    uint8_t bytes[TCI_PACKET_MAX], out[TCI_PACKET_MAX];
    struct tci_address to;
    struct tci_syn syn;
    uint16_t port;
    (void)state;
    srand(7);
    for (int i = 0; i < 200000; i++) {
        const size_t length = (size_t)rand() % sizeof bytes;
        for (size_t j = 0; j < length; j++)
            bytes[j] = (uint8_t)rand();
        if (i % 2) {
            bytes[0] = (uint8_t)(0x40 | rand() % 16);
            bytes[9] = rand() % 2 ? 6 : 17;
        }
        (void)tci_packet_read_udp4(bytes, length, &to, &port);
        if (tci_packet_read_syn4(bytes, length, &syn) ||
            tci_packet_read_syn6(bytes, length, &any, &any, &syn)) {
            assert_true(tci_packet_write_syn(&syn, out) <= sizeof out);
            assert_true(tci_packet_write_unreachable(&syn, false, out) <= sizeof out);
        }
    }
}

static void test_same_try_is_recognised(void **state)
{
    const struct tci_syn a = make(false);
    struct tci_syn b = a;
    (void)state;
    assert_true(tci_syn_equal(&a, &b));
    b.tcp[7]++;
    assert_true(tci_syn_same_ends(&a, &b));
    assert_false(tci_syn_equal(&a, &b));
    b.from_port++;
    assert_false(tci_syn_same_ends(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syn_is_read),
        cmocka_unit_test(test_syn_is_sent_again_as_it_was),
        cmocka_unit_test(test_refusals_answer_the_syn),
        cmocka_unit_test(test_nothing_else_is_a_syn),
        cmocka_unit_test(test_random_bytes_are_harmless),
        cmocka_unit_test(test_same_try_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
