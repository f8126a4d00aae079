/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading, writing and comparing IP addresses. What they are is address_class.c's.
 * Trusts: nothing about the text it reads; `prefix` arguments larger than the address count as the
 * whole address.
 * Invariant: each address has one text (what tci_address_format writes), and reading that text
 * gives the same bytes back. A spelling that another reader might take for a different address
 * (octal, hexadecimal or missing IPv4 parts, zones, mixed notation) is not an address here.
 */
#include "policy/address.h"

#include <stdio.h>
#include <string.h>

enum { v4_bits = 32, v6_bits = 128, v6_groups = 8 };

/* ---- Reading ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit, or -1. */
static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* One part of an IPv4 address at text[*at]. A leading zero is refused: inet_aton reads octal there,
 * so "010.0.0.1" would be 10.0.0.1 for one reader and 8.0.0.1 for another. */
static bool read_v4_part(const char *text, size_t length, size_t *at, uint8_t *ret)
{
    size_t start = *at;
    unsigned value = 0;

    while (*at < length && *at - start < 4 && is_digit(text[*at]))
        value = value * 10 + (unsigned)(text[(*at)++] - '0');
    size_t digits = *at - start;
    if (digits < 1 || digits > 3 || value > 255 || (digits > 1 && text[start] == '0'))
        return false;
    *ret = (uint8_t)value;
    return true;
}

bool tci_address_parse_v4(const char *text, size_t length, struct tci_address *ret)
{
    struct tci_address address = { .is_v6 = false };
    size_t at = 0;

    for (unsigned part = 0; part < 4; part++) {
        if (part > 0 && (at >= length || text[at++] != '.'))
            return false;
        if (!read_v4_part(text, length, &at, &address.bytes[part]))
            return false;
    }
    if (at != length)
        return false;
    *ret = address;
    return true;
}

/* One to four hexadecimal digits at text[*at]. */
static bool read_v6_group(const char *text, size_t length, size_t *at, uint8_t ret[2])
{
    unsigned value = 0, digits = 0;

    for (; *at < length && digits < 5 && hex_value(text[*at]) >= 0; digits++)
        value = value * 16 + (unsigned)hex_value(text[(*at)++]);
    if (digits < 1 || digits > 4)
        return false;
    ret[0] = (uint8_t)(value >> 8);
    ret[1] = (uint8_t)(value & 0xff);
    return true;
}

/* Groups are collected front to back; `gap` remembers how many stood before "::", and the ones
 * behind it move to the end when the text is over. */
bool tci_address_parse_v6(const char *text, size_t length, struct tci_address *ret)
{
    struct tci_address address = { .is_v6 = true };
    size_t at = 0, count = 0, gap = SIZE_MAX;

    while (at < length) {
        if (length - at >= 2 && text[at] == ':' && text[at + 1] == ':') {
            if (gap != SIZE_MAX)
                return false;
            gap = count;
            at += 2;
            if (at == length)
                break;
        } else if (count > 0 && text[at++] != ':') {
            return false;
        }
        if (count == v6_groups || !read_v6_group(text, length, &at, &address.bytes[2 * count]))
            return false;
        count++;
    }
    if (gap == SIZE_MAX ? count != v6_groups : count >= v6_groups)
        return false;
    if (gap != SIZE_MAX) {
        size_t behind = 2 * (count - gap);
        memmove(&address.bytes[16 - behind], &address.bytes[2 * gap], behind);
        memset(&address.bytes[2 * gap], 0, 16 - behind - 2 * gap);
    }
    *ret = address;
    return true;
}

/* ---- Writing ---- */

static unsigned group_of(const struct tci_address *address, unsigned index)
{
    return (unsigned)address->bytes[(size_t)2 * index] << 8 | address->bytes[(size_t)2 * index + 1];
}

/* RFC 5952, 4.2: the longest run of at least two zero groups, the first one of equal ones. */
static unsigned longest_zero_run(const struct tci_address *address, unsigned *ret_start)
{
    unsigned best = 1, run = 0;

    *ret_start = v6_groups;
    for (unsigned i = 0; i < v6_groups; i++) {
        run = group_of(address, i) == 0 ? run + 1 : 0;
        if (run > best) {
            best = run;
            *ret_start = i + 1 - run;
        }
    }
    return best;
}

const char *tci_address_format(const struct tci_address *address, char buffer[TCI_ADDRESS_TEXT_MAX])
{
    if (!address->is_v6) {
        const uint8_t *b = address->bytes;
        snprintf(buffer, TCI_ADDRESS_TEXT_MAX, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        return buffer;
    }
    unsigned gap, gap_length = longest_zero_run(address, &gap);
    size_t used = 0;
    buffer[0] = '\0';
    for (unsigned i = 0; i < v6_groups; i++) {
        if (i == gap) {
            used += (size_t)snprintf(buffer + used, TCI_ADDRESS_TEXT_MAX - used, "::");
            i += gap_length - 1;
            continue;
        }
        const char *separator = used > 0 && buffer[used - 1] != ':' ? ":" : "";
        used += (size_t)snprintf(buffer + used, TCI_ADDRESS_TEXT_MAX - used, "%s%x", separator,
                                 group_of(address, i));
    }
    return buffer;
}

/* ---- Prefixes ---- */

static unsigned bits_of(const struct tci_address *address)
{
    return address->is_v6 ? v6_bits : v4_bits;
}

bool tci_address_in_prefix(const struct tci_address *address, const struct tci_address *network,
                           unsigned prefix)
{
    if (address->is_v6 != network->is_v6)
        return false;
    if (prefix > bits_of(network))
        prefix = bits_of(network);
    unsigned whole = prefix / 8, rest = prefix % 8;
    if (memcmp(address->bytes, network->bytes, whole) != 0)
        return false;
    return rest == 0 || (address->bytes[whole] ^ network->bytes[whole]) >> (8 - rest) == 0;
}

bool tci_address_has_host_bits(const struct tci_address *network, unsigned prefix)
{
    for (unsigned bit = prefix; bit < bits_of(network); bit++)
        if (network->bytes[bit / 8] & (0x80U >> (bit % 8)))
            return true;
    return false;
}
