/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the few packets that the gate reads and writes inside of a cage's network namespace. What is
 * read is hostile; what is written goes nowhere but to that cage. Pure functions.
 */
#ifndef TCI_GATE_PACKET_H
#define TCI_GATE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/address.h"

enum { TCI_PACKET_MAX = 256, TCI_TCP_HEAD_MAX = 60 };

/* The first packet of a connection that the cage wants. */
struct tci_syn {
    struct tci_address from, to; /* of one family */
    uint16_t from_port, to_port;
    uint8_t tcp[TCI_TCP_HEAD_MAX]; /* header and options, as they came */
    size_t length;
};

/* An IPv4 packet with its header; the part of an IPv6 packet behind its headers. False: not one. */
bool tci_packet_read_syn4(const uint8_t *bytes, size_t length, struct tci_syn *ret);
bool tci_packet_read_syn6(const uint8_t *bytes, size_t length, const struct tci_address *from,
                          const struct tci_address *to, struct tci_syn *ret);
/* Same connection, same try. */
bool tci_syn_equal(const struct tci_syn *a, const struct tci_syn *b);
bool tci_syn_same_ends(const struct tci_syn *a, const struct tci_syn *b);

/* The destination of a lost datagram. */
bool tci_packet_read_udp4(const uint8_t *bytes, size_t length, struct tci_address *ret_to,
                          uint16_t *ret_port);

/* Each writes a whole packet and returns its length. */
size_t tci_packet_write_syn(const struct tci_syn *syn, uint8_t ret[TCI_PACKET_MAX]);
/* connect() ends with ECONNREFUSED. */
size_t tci_packet_write_reset(const struct tci_syn *syn, uint8_t ret[TCI_PACKET_MAX]);
/* With ENETUNREACH, or EHOSTUNREACH. */
size_t tci_packet_write_unreachable(const struct tci_syn *syn, bool network,
                                    uint8_t ret[TCI_PACKET_MAX]);

#endif
