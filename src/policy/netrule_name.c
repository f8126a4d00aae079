/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: host names: their canonical form, and which texts are names at all.
 * Trusts: that tci_span_check_bytes has seen the text (so it is printable ASCII).
 * Invariant: a name that is accepted is lower-case, has no dot at the end, is a legal DNS name, and
 * is not read as an IPv4 address by any resolver.
 */
#include "policy/netrule_internal.h"

#include <stdint.h>

enum { label_max = 63 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Would inet_aton, or the URL standard's "ends in a number" check, take a name with this last label
 * for an IPv4 address? Then one reader dials 127.0.0.1 where another looks up "127.1". */
static bool label_is_number(struct tci_span label)
{
    bool hex = label.length >= 2 && label.at[0] == '0' && label.at[1] == 'x';

    for (size_t i = hex ? 2 : 0; i < label.length; i++)
        if (!is_digit(label.at[i]) && !(hex && label.at[i] >= 'a' && label.at[i] <= 'f'))
            return false;
    return true;
}

/* RFC 3492, 6.1. */
static uint32_t punycode_adapt(uint32_t delta, uint32_t points, bool first)
{
    uint32_t k = 0;

    delta = first ? delta / 700 : delta / 2;
    delta += delta / points;
    for (; delta > (36 - 1) * 26 / 2; k += 36)
        delta /= 36 - 1;
    return k + (36 - 1 + 1) * delta / (delta + 38);
}

/* Does the part behind "xn--" decode (RFC 3492, 6.2) to at least one character outside ASCII? What
 * does not decode has no meaning that two programs agree on. The text itself is not needed, only
 * its length, so nothing is stored. A label is short: nothing here overflows 64 bits. */
static bool punycode_is_valid(struct tci_span text)
{
    uint64_t point = 128, position = 0;
    uint32_t count = 0, bias = 72;
    size_t in = 0;

    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] == '-')
            count = (uint32_t)i;
    if (count > 0)
        in = count + 1;
    if (in == text.length)
        return false;
    while (in < text.length) {
        uint64_t start = position, weight = 1;
        for (uint32_t k = 36;; k += 36) {
            char c = in < text.length ? text.at[in++] : '-';
            if (!is_digit(c) && !(c >= 'a' && c <= 'z'))
                return false;
            uint32_t digit = (uint32_t)(is_digit(c) ? c - '0' + 26 : c - 'a');
            uint32_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
            position += digit * weight;
            if (position > UINT32_MAX)
                return false;
            if (digit < threshold)
                break;
            weight *= 36 - threshold;
            if (weight > UINT32_MAX)
                return false;
        }
        count++;
        bias = punycode_adapt((uint32_t)(position - start), count, start == 0);
        point += position / count;
        position = position % count + 1;
        if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            return false;
    }
    return true;
}

/* NULL, or what is wrong with a lower-cased label. */
static const char *label_problem(struct tci_span label)
{
    if (label.length == 0)
        return "has an empty label (two dots, or a dot at the start)";
    if (label.length > label_max)
        return "has a label of more than 63 bytes";
    for (size_t i = 0; i < label.length; i++) {
        char c = label.at[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
            return "contains a character that no host name has";
    }
    if (label.at[0] == '-' || label.at[label.length - 1] == '-')
        return "has a label that starts or ends with \"-\"";
    if (tci_span_starts_with(label, "xn--") && !punycode_is_valid(tci_span_from(label, 4)))
        return "has an \"xn--\" label that is not valid punycode";
    return NULL;
}

int tci_name_parse(struct tci_span text, size_t reserved, struct tci_host *ret,
                   struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    size_t length = text.length;

    tci_span_excerpt(text, &excerpt);
    if (length > 1 && text.at[length - 1] == '.')
        length--;
    if (length + reserved > TCI_NAME_MAX) {
        tci_problem_message(problem, "%s is longer than 253 bytes", excerpt.text);
        return tci_problem_remedy(problem, "write a host name, e.g. \"api.example.com\"");
    }
    for (size_t i = 0; i < length; i++)
        ret->name[i] = tci_lower(text.at[i]);
    ret->name[length] = '\0';

    struct tci_span rest = { ret->name, length };
    for (;;) {
        struct tci_span label = tci_span_until(rest, tci_span_find(rest, '.'));
        const char *wrong = label_problem(label);
        if (wrong) {
            tci_problem_message(problem, "%s %s", excerpt.text, wrong);
            return tci_problem_remedy(problem, "write a host name, e.g. \"api.example.com\"");
        }
        if (label.length == rest.length && label_is_number(label)) {
            tci_problem_message(problem, "%s is not an IPv4 address that every program reads alike",
                                excerpt.text);
            return tci_problem_remedy(problem, "write the address in four decimal parts, "
                                               "e.g. \"192.0.2.1\"");
        }
        if (label.length == rest.length)
            return 0;
        rest = tci_span_from(rest, label.length + 1);
    }
}
