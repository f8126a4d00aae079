/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what an IP address is: public, or one of the ranges that a tool must not reach by accident;
 * and which IPv4 address hides in an IPv6 one.
 * Trusts: nobody; all functions are total.
 * Invariant: an address is PUBLIC only if no row of the tables speaks about it or about an IPv4
 * address inside it, and a prefix only if that is true of each of its addresses.
 */
#include "policy/address.h"

#include "base/attr.h"

enum { v4_bits = 32, v6_bits = 128 };

/* clang-format off */
#define V4(a, b, c, d) { .is_v6 = false, .bytes = { a, b, c, d } }
#define GROUP(g)       (uint8_t)((g) >> 8), (uint8_t)((g) & 0xff)
#define V6(a, b, c, d, e, f, g, h)                                                \
    { .is_v6 = true, .bytes = { GROUP(a), GROUP(b), GROUP(c), GROUP(d),           \
                                GROUP(e), GROUP(f), GROUP(g), GROUP(h) } }
/* clang-format on */

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Two prefixes either are disjoint or one contains the other. */
static bool prefixes_overlap(const struct tci_address *a, unsigned a_prefix,
                             const struct tci_address *b, unsigned b_prefix)
{
    return tci_address_in_prefix(a, b, smaller(a_prefix, b_prefix));
}

/* ---- IPv4 inside IPv6 ---- */

/* Where an IPv6 prefix keeps the bytes of an IPv4 address; Teredo stores the client's inverted.
 * ISATAP is left out on purpose: it hides an address in the interface part of *any* prefix, so a
 * check for it would find every IPv6 prefix alarming; and no route leads there by default. */
static const struct embedding {
    struct tci_address network;
    unsigned prefix;
    uint8_t at[4];
    uint8_t inverted;
} embeddings[] = {
    { V6(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, { 12, 13, 14, 15 }, 0 },    /* mapped */
    { V6(0, 0, 0, 0, 0, 0, 0, 0), 96, { 12, 13, 14, 15 }, 0 },         /* compatible */
    { V6(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, { 12, 13, 14, 15 }, 0 },    /* translated, RFC 2765 */
    { V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, { 12, 13, 14, 15 }, 0 }, /* NAT64, RFC 6052 */
    /* NAT64 of a site's own (RFC 8215): it chooses one of the layouts of RFC 6052, 2.2. */
    { V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, { 12, 13, 14, 15 }, 0 },
    { V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, { 6, 7, 9, 10 }, 0 },
    { V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, { 7, 9, 10, 11 }, 0 },
    { V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, { 9, 10, 11, 12 }, 0 },
    { V6(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, { 2, 3, 4, 5 }, 0 },        /* 6to4 */
    { V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, { 12, 13, 14, 15 }, 0xff }, /* Teredo: client */
    { V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, { 4, 5, 6, 7 }, 0 },        /* Teredo: server */
};

/* The IPv4 address at the embedding's place. Returns how many of its bits lie within the first
 * `prefix` bits of the IPv6 address. */
static unsigned extract_v4(const struct embedding *embedding, const struct tci_address *address,
                           unsigned prefix, struct tci_address *ret_v4)
{
    unsigned bits = 0;

    *ret_v4 = (struct tci_address){ .is_v6 = false };
    for (unsigned i = 0; i < 4; i++) {
        unsigned at = embedding->at[i];
        ret_v4->bytes[i] = address->bytes[at] ^ embedding->inverted;
        bits += prefix > 8 * at ? smaller(prefix - 8 * at, 8) : 0;
    }
    return bits;
}

/* "::" and "::1" lie in the compatible range but are no IPv4 addresses (RFC 4291, 2.5.5.1). */
static bool is_unspecified_or_loopback_v6(const struct tci_address *address)
{
    static const struct tci_address zero = V6(0, 0, 0, 0, 0, 0, 0, 0);
    return tci_address_in_prefix(address, &zero, v6_bits - 1);
}

unsigned tci_address_embedded_v4_all(const struct tci_address *address,
                                     struct tci_address ret_v4[TCI_ADDRESS_EMBEDDED_MAX])
{
    unsigned count = 0;

    if (!address->is_v6 || is_unspecified_or_loopback_v6(address))
        return 0;
    for (size_t i = 0; i < tci_array_size(embeddings); i++) {
        const struct embedding *e = &embeddings[i];
        if (count < TCI_ADDRESS_EMBEDDED_MAX &&
            tci_address_in_prefix(address, &e->network, e->prefix))
            extract_v4(e, address, v6_bits, &ret_v4[count++]);
    }
    return count;
}

bool tci_address_embedded_v4(const struct tci_address *address, struct tci_address *ret_v4)
{
    struct tci_address all[TCI_ADDRESS_EMBEDDED_MAX];

    if (tci_address_embedded_v4_all(address, all) == 0)
        return false;
    *ret_v4 = all[0];
    return true;
}

bool tci_address_is_mapped(const struct tci_address *address, struct tci_address *ret_v4)
{
    const struct embedding *mapped = &embeddings[0];

    if (!tci_address_in_prefix(address, &mapped->network, mapped->prefix))
        return false;
    extract_v4(mapped, address, v6_bits, ret_v4);
    return true;
}

/* ---- What is not the public internet ---- */

/* From IANA's special-purpose address registries for IPv4 and IPv6, plus the addresses at which
 * cloud providers hand out credentials. Rows overlap; the most alarming one counts. Blocks inside
 * a special range that IANA calls globally reachable (192.0.0.9, 2001:20::/28, ...) stay special:
 * nothing that a tool needs is there. */
static const struct range {
    struct tci_address network;
    unsigned prefix;
    enum tci_address_class address_class;
} ranges[] = {
    { V4(0, 0, 0, 0), 8, TCI_ADDRESS_UNSPECIFIED }, /* Linux connects 0.0.0.0 to loopback */
    { V4(10, 0, 0, 0), 8, TCI_ADDRESS_PRIVATE },
    { V4(100, 64, 0, 0), 10, TCI_ADDRESS_CGNAT },
    { V4(100, 100, 100, 200), 32, TCI_ADDRESS_METADATA }, /* Alibaba */
    { V4(127, 0, 0, 0), 8, TCI_ADDRESS_LOOPBACK },
    { V4(168, 63, 129, 16), 32, TCI_ADDRESS_METADATA }, /* Azure's wire server */
    { V4(169, 254, 0, 0), 16, TCI_ADDRESS_LINK_LOCAL },
    { V4(169, 254, 0, 23), 32, TCI_ADDRESS_METADATA },    /* Tencent */
    { V4(169, 254, 42, 42), 32, TCI_ADDRESS_METADATA },   /* Scaleway */
    { V4(169, 254, 169, 254), 32, TCI_ADDRESS_METADATA }, /* AWS, Azure, Google, and most others */
    { V4(169, 254, 170, 2), 32, TCI_ADDRESS_METADATA },   /* AWS: containers */
    { V4(169, 254, 170, 23), 32, TCI_ADDRESS_METADATA },  /* AWS: pods */
    { V4(172, 16, 0, 0), 12, TCI_ADDRESS_PRIVATE },
    { V4(192, 0, 0, 0), 24, TCI_ADDRESS_RESERVED },   /* protocol assignments */
    { V4(192, 0, 0, 192), 32, TCI_ADDRESS_METADATA }, /* Oracle */
    { V4(192, 0, 2, 0), 24, TCI_ADDRESS_RESERVED },   /* documentation */
    { V4(192, 88, 99, 0), 24, TCI_ADDRESS_RESERVED }, /* 6to4 relays, deprecated */
    { V4(192, 168, 0, 0), 16, TCI_ADDRESS_PRIVATE },
    { V4(198, 18, 0, 0), 15, TCI_ADDRESS_RESERVED },   /* benchmarking */
    { V4(198, 51, 100, 0), 24, TCI_ADDRESS_RESERVED }, /* documentation */
    { V4(203, 0, 113, 0), 24, TCI_ADDRESS_RESERVED },  /* documentation */
    { V4(224, 0, 0, 0), 4, TCI_ADDRESS_MULTICAST },
    { V4(240, 0, 0, 0), 4, TCI_ADDRESS_RESERVED }, /* future use, and broadcast */

    /* Everything but 2000::/3, which is all that was ever given out as global unicast. */
    { V6(0, 0, 0, 0, 0, 0, 0, 0), 3, TCI_ADDRESS_RESERVED },
    { V6(0x4000, 0, 0, 0, 0, 0, 0, 0), 2, TCI_ADDRESS_RESERVED },
    { V6(0x8000, 0, 0, 0, 0, 0, 0, 0), 1, TCI_ADDRESS_RESERVED },

    { V6(0, 0, 0, 0, 0, 0, 0, 0), 128, TCI_ADDRESS_UNSPECIFIED },
    { V6(0, 0, 0, 0, 0, 0, 0, 1), 128, TCI_ADDRESS_LOOPBACK },
    { V6(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, TCI_ADDRESS_RESERVED },     /* IPv4-mapped */
    { V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, TCI_ADDRESS_RESERVED },  /* NAT64 */
    { V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, TCI_ADDRESS_RESERVED },  /* NAT64 of a site's own */
    { V6(0x100, 0, 0, 0, 0, 0, 0, 0), 64, TCI_ADDRESS_RESERVED },      /* discard */
    { V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, TCI_ADDRESS_RESERVED },     /* protocols, Teredo */
    { V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, TCI_ADDRESS_RESERVED }, /* documentation */
    { V6(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, TCI_ADDRESS_RESERVED },     /* 6to4 */
    { V6(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, TCI_ADDRESS_RESERVED },     /* documentation */
    { V6(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, TCI_ADDRESS_RESERVED },     /* segment routing */
    { V6(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, TCI_ADDRESS_PRIVATE },
    { V6(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, TCI_ADDRESS_METADATA },        /* Scaleway */
    { V6(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, TCI_ADDRESS_METADATA }, /* Oracle */
    { V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), 128, TCI_ADDRESS_METADATA },       /* AWS: pods */
    { V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, TCI_ADDRESS_METADATA },      /* AWS */
    { V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, TCI_ADDRESS_METADATA },       /* Google */
    { V6(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, TCI_ADDRESS_LINK_LOCAL },
    { V6(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, TCI_ADDRESS_METADATA }, /* OpenStack */
    { V6(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, TCI_ADDRESS_PRIVATE },             /* site-local */
    { V6(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, TCI_ADDRESS_MULTICAST },
};

bool tci_prefix_is_of_gate(const struct tci_address *network, unsigned prefix)
{
    static const struct tci_address v4 = V4(198, 18, 0, 0), v6 = V6(0x2001, 2, 0, 0, 0, 0, 0, 0);
    return network->is_v6 ? prefix >= 48 && tci_address_in_prefix(network, &v6, 48)
                          : prefix >= 15 && tci_address_in_prefix(network, &v4, 15);
}

/* The order of alarm, least first: how much somebody wins who talks a tool into going there.
 * public < reserved (nobody answers) < multicast < carrier NAT (a neighbour) < private (the
 * site's own servers) < link-local < unspecified (often this host) < loopback (this host's
 * services, which trust whoever is local) < metadata (the credentials of the whole machine). */
static unsigned alarm_of(enum tci_address_class address_class)
{
    static const unsigned char order[] = {
        [TCI_ADDRESS_PUBLIC] = 0,      [TCI_ADDRESS_RESERVED] = 1, [TCI_ADDRESS_MULTICAST] = 2,
        [TCI_ADDRESS_CGNAT] = 3,       [TCI_ADDRESS_PRIVATE] = 4,  [TCI_ADDRESS_LINK_LOCAL] = 5,
        [TCI_ADDRESS_UNSPECIFIED] = 6, [TCI_ADDRESS_LOOPBACK] = 7, [TCI_ADDRESS_METADATA] = 8,
    };
    return order[address_class];
}

static enum tci_address_class more_alarming(enum tci_address_class a, enum tci_address_class b)
{
    return alarm_of(a) >= alarm_of(b) ? a : b;
}

static enum tci_address_class look_up(const struct tci_address *network, unsigned prefix)
{
    enum tci_address_class worst = TCI_ADDRESS_PUBLIC;

    for (size_t i = 0; i < tci_array_size(ranges); i++)
        if (prefixes_overlap(network, prefix, &ranges[i].network, ranges[i].prefix))
            worst = more_alarming(worst, ranges[i].address_class);
    return worst;
}

enum tci_address_class tci_prefix_classify(const struct tci_address *network, unsigned prefix)
{
    enum tci_address_class worst = look_up(network, prefix);

    /* An embedded 127.0.0.1 is as alarming as a plain one: a translator on the way, or the
     * kernel itself, turns the one into the other. */
    for (size_t i = 0; network->is_v6 && i < tci_array_size(embeddings); i++) {
        const struct embedding *e = &embeddings[i];
        struct tci_address v4;
        if (!prefixes_overlap(network, prefix, &e->network, e->prefix))
            continue;
        unsigned v4_prefix = extract_v4(e, network, prefix, &v4);
        worst = more_alarming(worst, look_up(&v4, v4_prefix));
    }
    return worst;
}

enum tci_address_class tci_address_classify(const struct tci_address *address)
{
    return tci_prefix_classify(address, address->is_v6 ? v6_bits : v4_bits);
}

const char *tci_address_class_name(enum tci_address_class address_class)
{
    static const char *const names[] = {
        [TCI_ADDRESS_PUBLIC] = "public",         [TCI_ADDRESS_UNSPECIFIED] = "unspecified",
        [TCI_ADDRESS_LOOPBACK] = "loopback",     [TCI_ADDRESS_PRIVATE] = "private",
        [TCI_ADDRESS_LINK_LOCAL] = "link-local", [TCI_ADDRESS_METADATA] = "metadata",
        [TCI_ADDRESS_CGNAT] = "carrier-nat",     [TCI_ADDRESS_MULTICAST] = "multicast",
        [TCI_ADDRESS_RESERVED] = "reserved",
    };
    return (size_t)address_class < tci_array_size(names) ? names[address_class] : "unknown";
}
