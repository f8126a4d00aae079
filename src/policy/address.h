/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: IP addresses as bytes: strict reading, canonical writing, prefixes, and which ranges are
 * not the public internet. Pure functions; no resolver, no sockets.
 */
#ifndef TCI_POLICY_ADDRESS_H
#define TCI_POLICY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tci_address {
    bool is_v6;
    uint8_t bytes[16]; /* IPv4: the first four */
};

enum { TCI_ADDRESS_TEXT_MAX = 46 }; /* with the NUL */

/* IPv4: exactly four decimal parts without leading zeros. IPv6: RFC 4291 text without zone and
 * without an embedded dotted IPv4 part. False for everything else, including any byte besides. */
bool tci_address_parse_v4(const char *text, size_t length, struct tci_address *ret);
bool tci_address_parse_v6(const char *text, size_t length, struct tci_address *ret);

/* RFC 5952 for IPv6. Returns `buffer`. */
const char *tci_address_format(const struct tci_address *address,
                               char buffer[TCI_ADDRESS_TEXT_MAX]);

/* Are the first `prefix` bits of both equal (and are they of one family)? */
bool tci_address_in_prefix(const struct tci_address *address, const struct tci_address *network,
                           unsigned prefix);

/* Is any bit behind the first `prefix` bits set? */
bool tci_address_has_host_bits(const struct tci_address *network, unsigned prefix);

/* The IPv4 address that an IPv6 one carries (mapped, compatible, NAT64 64:ff9b::/96 and
 * 64:ff9b:1::/48, 6to4, Teredo), so that no spelling hides one. False when there is none. */
bool tci_address_embedded_v4(const struct tci_address *address, struct tci_address *ret_v4);

/* All of them: Teredo carries two addresses, and 64:ff9b:1::/48 does not say which of the four
 * layouts of RFC 6052 a site has chosen. What refuses an address looks at each. Returns how many;
 * the first one is tci_address_embedded_v4's. */
enum { TCI_ADDRESS_EMBEDDED_MAX = 4 };
unsigned tci_address_embedded_v4_all(const struct tci_address *address,
                                     struct tci_address ret_v4[TCI_ADDRESS_EMBEDDED_MAX]);

/* ::ffff:0:0/96 alone: not a translation but another spelling, which the kernel dials as IPv4. */
bool tci_address_is_mapped(const struct tci_address *address, struct tci_address *ret_v4);

/* What a range is, when it is not the public internet. */
enum tci_address_class {
    TCI_ADDRESS_PUBLIC,
    TCI_ADDRESS_UNSPECIFIED,
    TCI_ADDRESS_LOOPBACK,
    TCI_ADDRESS_PRIVATE,
    TCI_ADDRESS_LINK_LOCAL,
    TCI_ADDRESS_METADATA, /* cloud instance credentials: 169.254.169.254 and its kin */
    TCI_ADDRESS_CGNAT,
    TCI_ADDRESS_MULTICAST,
    TCI_ADDRESS_RESERVED, /* documentation, benchmarking, broadcast, future use, translation */
};

/* The most alarming class that the address, or an IPv4 address embedded in it, falls into. */
enum tci_address_class tci_address_classify(const struct tci_address *address);
const char *tci_address_class_name(enum tci_address_class address_class);

/* The most alarming class that any address of the prefix falls into (PUBLIC: none is special). */
enum tci_address_class tci_prefix_classify(const struct tci_address *network, unsigned prefix);

/* Does the range lie within the addresses that the gate makes up for names in each cage
 * (198.18.0.0/15 and 2001:2::/48, which nobody has on a network)? In a cage they mean a name. */
bool tci_prefix_is_of_gate(const struct tci_address *network, unsigned prefix);

#endif
