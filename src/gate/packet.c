/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: see packet.h. */
#include "gate/packet.h"

#include <string.h>

enum {
    v4_head = 20,
    v6_head = 40,
    tcp_head = 20,
    icmp_head = 8,
    protocol_icmp = 1,
    protocol_tcp = 6,
    protocol_udp = 17,
    protocol_icmp6 = 58,
    hops = 64,
    reset_and_ack = 0x14,
    syn = 0x02,
    syn_or_ack = 0x12,
    quoted_tcp = 8, /* as much of it as an ICMP error must carry */
};

static unsigned get16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool read_tcp(const uint8_t *tcp, size_t length, struct tci_syn *ret)
{
    size_t head;
    if (length < tcp_head)
        return false;
    head = (size_t)(tcp[12] >> 4) * 4;
    if (head < tcp_head || head > length || (tcp[13] & syn_or_ack) != syn)
        return false;
    memcpy(ret->tcp, tcp, head);
    ret->length = head; /* data in a SYN (fast open) is not repeated: the cage sends it again */
    ret->from_port = (uint16_t)get16(tcp);
    ret->to_port = (uint16_t)get16(tcp + 2);
    return true;
}

/* Where the payload of an IPv4 packet begins; 0: it has none of this protocol. */
static size_t payload4(const uint8_t *bytes, size_t length, uint8_t protocol)
{
    size_t head;
    if (length < v4_head || bytes[0] >> 4 != 4 || bytes[9] != protocol)
        return 0;
    head = (size_t)(bytes[0] & 15) * 4;
    return head < v4_head || head > length ? 0 : head;
}

bool tci_packet_read_syn4(const uint8_t *bytes, size_t length, struct tci_syn *ret)
{
    size_t head = payload4(bytes, length, protocol_tcp);
    memset(ret, 0, sizeof *ret);
    if (!head)
        return false;
    memcpy(ret->from.bytes, bytes + 12, 4);
    memcpy(ret->to.bytes, bytes + 16, 4);
    return read_tcp(bytes + head, length - head, ret);
}

bool tci_packet_read_syn6(const uint8_t *bytes, size_t length, const struct tci_address *from,
                          const struct tci_address *to, struct tci_syn *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->from = *from;
    ret->to = *to;
    return from->is_v6 && to->is_v6 && read_tcp(bytes, length, ret);
}

bool tci_packet_read_udp4(const uint8_t *bytes, size_t length, struct tci_address *ret_to,
                          uint16_t *ret_port)
{
    size_t head = payload4(bytes, length, protocol_udp);
    if (!head || length - head < 8)
        return false;
    memset(ret_to, 0, sizeof *ret_to);
    memcpy(ret_to->bytes, bytes + 16, 4);
    *ret_port = (uint16_t)get16(bytes + head + 2);
    return true;
}

static bool same_address(const struct tci_address *a, const struct tci_address *b)
{
    return a->is_v6 == b->is_v6 && memcmp(a->bytes, b->bytes, a->is_v6 ? 16 : 4) == 0;
}

bool tci_syn_same_ends(const struct tci_syn *a, const struct tci_syn *b)
{
    return a->from_port == b->from_port && a->to_port == b->to_port &&
           same_address(&a->from, &b->from) && same_address(&a->to, &b->to);
}

bool tci_syn_equal(const struct tci_syn *a, const struct tci_syn *b)
{
    return tci_syn_same_ends(a, b) && memcmp(a->tcp + 4, b->tcp + 4, 4) == 0; /* sequence */
}

/* ---- writing ---------------------------------------------------------------------------------- */

static uint32_t add_up(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += get16(bytes + i);
    if (length & 1)
        sum += (uint32_t)bytes[length - 1] << 8;
    return sum;
}

static unsigned fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

/* The checksum of what is behind the header, with the addresses counted in where the protocol does. */
static unsigned checksum(const struct tci_address *from, const struct tci_address *to,
                         uint8_t protocol, const uint8_t *bytes, size_t length)
{
    const size_t size = from->is_v6 ? 16 : 4;
    uint32_t sum = add_up(0, bytes, length);
    if (protocol == protocol_icmp)
        return fold(sum);
    sum = add_up(add_up(sum, from->bytes, size), to->bytes, size);
    return fold(sum + protocol + (uint32_t)length);
}

/* The header in front of `length` bytes; returns where they go. The kernel fills in an IPv4 packet's
 * own checksum. */
static uint8_t *write_head(const struct tci_address *from, const struct tci_address *to,
                           uint8_t protocol, size_t length, uint8_t *ret)
{
    if (!from->is_v6) {
        memset(ret, 0, v4_head);
        ret[0] = 0x45;
        put16(ret + 2, (unsigned)(v4_head + length));
        ret[6] = 0x40; /* never in fragments */
        ret[8] = hops;
        ret[9] = protocol;
        memcpy(ret + 12, from->bytes, 4);
        memcpy(ret + 16, to->bytes, 4);
        put16(ret + 10, fold(add_up(0, ret, v4_head)));
        return ret + v4_head;
    }
    memset(ret, 0, v6_head);
    ret[0] = 0x60;
    put16(ret + 4, (unsigned)length);
    ret[6] = protocol;
    ret[7] = hops;
    memcpy(ret + 8, from->bytes, 16);
    memcpy(ret + 24, to->bytes, 16);
    return ret + v6_head;
}

size_t tci_packet_write_syn(const struct tci_syn *syn_, uint8_t ret[TCI_PACKET_MAX])
{
    uint8_t *tcp = write_head(&syn_->from, &syn_->to, protocol_tcp, syn_->length, ret);
    memcpy(tcp, syn_->tcp, syn_->length);
    put16(tcp + 16, 0); /* left open by the sender, who thought that hardware would do it */
    put16(tcp + 16, checksum(&syn_->from, &syn_->to, protocol_tcp, tcp, syn_->length));
    return (size_t)(tcp - ret) + syn_->length;
}

size_t tci_packet_write_reset(const struct tci_syn *syn_, uint8_t ret[TCI_PACKET_MAX])
{
    uint8_t *tcp = write_head(&syn_->to, &syn_->from, protocol_tcp, tcp_head, ret);
    const uint32_t sequence = (uint32_t)get16(syn_->tcp + 4) << 16 | get16(syn_->tcp + 6);
    memset(tcp, 0, tcp_head);
    put16(tcp, syn_->to_port);
    put16(tcp + 2, syn_->from_port);
    put16(tcp + 8, (sequence + 1) >> 16);
    put16(tcp + 10, (sequence + 1) & 0xffff);
    tcp[12] = 0x50;
    tcp[13] = reset_and_ack;
    put16(tcp + 16, checksum(&syn_->to, &syn_->from, protocol_tcp, tcp, tcp_head));
    return (size_t)(tcp - ret) + tcp_head;
}

size_t tci_packet_write_unreachable(const struct tci_syn *syn_, bool network,
                                    uint8_t ret[TCI_PACKET_MAX])
{
    const bool v6 = syn_->to.is_v6;
    const uint8_t protocol = v6 ? protocol_icmp6 : protocol_icmp;
    const size_t length = (size_t)icmp_head + (v6 ? v6_head : v4_head) +
                          (v6 ? tcp_head : quoted_tcp);
    uint8_t *icmp = write_head(&syn_->to, &syn_->from, protocol, length, ret), *quoted;
    memset(icmp, 0, icmp_head);
    icmp[0] = v6 ? 1 : 3;
    icmp[1] = network ? 0 : v6 ? 3 : 1;
    quoted = write_head(&syn_->from, &syn_->to, protocol_tcp, syn_->length, icmp + icmp_head);
    memcpy(quoted, syn_->tcp, v6 ? tcp_head : quoted_tcp);
    put16(icmp + 2, checksum(&syn_->to, &syn_->from, protocol, icmp, length));
    return (size_t)(icmp - ret) + length;
}
