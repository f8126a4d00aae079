/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the reading of HOST, in a rule and as a program asks for it.
 * Trusts: nothing. Rules come from a file that a person wrote, destinations from inside a cage.
 * Invariant: what is accepted has one canonical form. A spelling that some resolver, browser or
 * libc would read as something else than is written here is refused, with what to write instead.
 */
#include "policy/netrule_internal.h"

#include <stdint.h>

enum { v4_bits = 32, v6_bits = 128, v4_in_v6_bits = 96 };

static int parse_wildcard(struct tci_span text, struct tci_host *ret,
                          struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    struct tci_address address;

    tci_span_excerpt(text, &excerpt);
    if (text.length == 1) {
        tci_problem_message(problem, "\"*\" as a host would allow every host");
        return tci_problem_remedy(problem, "write network = \"public\" for the whole internet; "
                                           "what no rule allows is denied anyway");
    }
    struct tci_span name = tci_span_from(text, 1);
    if (text.at[0] != '*' || name.at[0] != '.' || tci_span_has(name, '*')) {
        tci_problem_message(problem, "%s has a \"*\" that is not its whole first label",
                            excerpt.text);
        return tci_problem_remedy(problem, "write \"*.\" and a name, e.g. \"*.example.com\"");
    }
    name = tci_span_from(name, 1);
    if (name.length == 0 || tci_address_parse_v4(name.at, name.length, &address) ||
        name.at[0] == '[') {
        tci_problem_message(problem, "%s has no name behind \"*.\"", excerpt.text);
        return tci_problem_remedy(problem, "write a name, e.g. \"*.example.com\", "
                                           "or a prefix, e.g. \"192.0.2.0/24\"");
    }
    ret->kind = TCI_HOST_WILDCARD;
    return tci_name_parse(name, sizeof "*." - 1, ret, problem);
}

/* ---- Addresses ---- */

/* "::ffff:" and four decimal parts: the only mixed notation that is understood. */
static bool parse_mapped_dotted(struct tci_span text, struct tci_address *ret_v4)
{
    static const char mapped[] = "::ffff:";
    if (!tci_span_starts_with(text, mapped))
        return false;
    struct tci_span v4 = tci_span_from(text, sizeof mapped - 1);
    return tci_address_parse_v4(v4.at, v4.length, ret_v4);
}

/* ::a.b.c.d, long deprecated (RFC 4291, 2.5.5.1). */
static bool is_compatible(const struct tci_address *address, unsigned prefix,
                          struct tci_address *ret_v4)
{
    static const struct tci_address zero = { .is_v6 = true };
    if (prefix < v4_in_v6_bits || !tci_address_in_prefix(address, &zero, v4_in_v6_bits))
        return false;
    if (prefix == v6_bits)
        return tci_address_embedded_v4(address, ret_v4);
    *ret_v4 = (struct tci_address){ .is_v6 = false };
    memcpy(ret_v4->bytes, &address->bytes[12], 4);
    return true;
}

static int refuse_v6(struct tci_span text, struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;

    tci_span_excerpt(text, &excerpt);
    if (tci_span_has(text, '%')) {
        tci_problem_message(problem, "%s names a network interface (\"%%\")", excerpt.text);
        return tci_problem_remedy(problem, "write the address without the part from \"%%\" on");
    }
    tci_problem_message(problem, "%s is not an IPv6 address", excerpt.text);
    if (tci_span_has(text, '.'))
        return tci_problem_remedy(problem, "write all of it in hexadecimal groups, "
                                           "e.g. \"[2001:db8::1]\"");
    return tci_problem_remedy(problem, "write e.g. \"[2001:db8::1]\" or \"[2001:db8::/32]\"");
}

/* "[::ffff:10.0.0.1]" and "10.0.0.1" are one destination; if both were rules, a deny could be
 * written with one spelling and dodged with the other. */
static int refuse_v4_in_v6(struct tci_span text, const struct tci_address *v4, unsigned prefix,
                           struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    char address[TCI_ADDRESS_TEXT_MAX];

    tci_problem_message(problem, "%s is an IPv4 address in IPv6 clothing",
                        tci_span_excerpt(text, &excerpt));
    tci_address_format(v4, address);
    if (prefix >= v4_bits)
        return tci_problem_remedy(problem, "write %s", address);
    return tci_problem_remedy(problem, "write %s/%u", address, prefix);
}

/* The number behind "/". */
static int parse_prefix(struct tci_span text, struct tci_host *host,
                        struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    unsigned max = host->address.is_v6 ? v6_bits : v4_bits;

    if (!tci_span_number(text, max, &host->prefix)) {
        tci_problem_message(problem, "%s is not a prefix length", tci_span_excerpt(text, &excerpt));
        return tci_problem_remedy(problem, "write a number from 0 to %u behind \"/\"", max);
    }
    return 0;
}

/* "10.1.2.3/16": was one host meant, or 65536? The author decides, not the parser. */
static int check_host_bits(const struct tci_host *host, struct tci_netrule_problem *problem)
{
    struct tci_host network = *host;
    char text[TCI_RULE_TEXT_MAX];

    if (!tci_address_has_host_bits(&host->address, host->prefix))
        return 0;
    for (unsigned bit = host->prefix; bit < v6_bits; bit++)
        network.address.bytes[bit / 8] &= (uint8_t) ~(0x80U >> (bit % 8));
    tci_host_format(host, text);
    tci_problem_message(problem, "%s has bits set behind its prefix", text);
    return tci_problem_remedy(problem, "write %s", tci_host_format(&network, text));
}

static int parse_v4_prefix(struct tci_span text, struct tci_host *ret,
                           struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    size_t slash = tci_span_find(text, '/');

    if (!tci_address_parse_v4(text.at, slash, &ret->address)) {
        tci_problem_message(problem, "%s has a \"/\" but is not an address prefix",
                            tci_span_excerpt(text, &excerpt));
        return tci_problem_remedy(problem,
                                  "write the host without a path, or an IPv4 prefix in four "
                                  "decimal parts, e.g. \"192.0.2.0/24\"");
    }
    ret->kind = TCI_HOST_ADDRESS;
    if (parse_prefix(tci_span_from(text, slash + 1), ret, problem) < 0)
        return -1;
    return check_host_bits(ret, problem);
}

/* "[address]", "[address/length]" or "[address]/length". The prefix comes with its "/". */
static bool split_brackets(struct tci_span text, struct tci_span *ret_address,
                           struct tci_span *ret_prefix)
{
    size_t close = tci_span_find(text, ']');

    if (close == text.length)
        return false;
    struct tci_span inside = tci_span_from(tci_span_until(text, close), 1);
    struct tci_span behind = tci_span_from(text, close + 1);
    size_t slash = tci_span_find(inside, '/');
    *ret_address = tci_span_until(inside, slash);
    *ret_prefix = tci_span_from(inside, slash);
    if (behind.length == 0)
        return true;
    if (ret_prefix->length > 0 || behind.at[0] != '/')
        return false;
    *ret_prefix = behind;
    return true;
}

static int parse_bracketed(struct tci_span text, struct tci_host *ret,
                           struct tci_netrule_problem *problem)
{
    struct tci_span address, prefix;
    struct tci_address v4;

    if (!split_brackets(text, &address, &prefix))
        return refuse_v6(text, problem);
    ret->kind = TCI_HOST_ADDRESS;
    ret->prefix = v6_bits;
    if (parse_mapped_dotted(address, &v4))
        return refuse_v4_in_v6(text, &v4, v4_bits, problem);
    if (!tci_address_parse_v6(address.at, address.length, &ret->address))
        return refuse_v6(address, problem);
    if (prefix.length > 0 && parse_prefix(tci_span_from(prefix, 1), ret, problem) < 0)
        return -1;
    if ((ret->prefix >= v4_in_v6_bits && tci_address_is_mapped(&ret->address, &v4)) ||
        is_compatible(&ret->address, ret->prefix, &v4))
        return refuse_v4_in_v6(text, &v4, ret->prefix - v4_in_v6_bits, problem);
    return check_host_bits(ret, problem);
}

/* A ":" outside brackets: an IPv6 address that lacks them, or a port where only a host goes. */
static int refuse_colon(struct tci_span text, struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    struct tci_address address;
    char canonical[TCI_ADDRESS_TEXT_MAX];

    tci_span_excerpt(text, &excerpt);
    if (tci_address_parse_v6(text.at, text.length, &address)) {
        tci_problem_message(problem, "%s is an IPv6 address without brackets", excerpt.text);
        return tci_problem_remedy(problem, "write \"[%s]\"",
                                  tci_address_format(&address, canonical));
    }
    tci_problem_message(problem, "%s is more than a host", excerpt.text);
    return tci_problem_remedy(problem, "write the host alone, without scheme, port or path, "
                                       "e.g. \"api.example.com\"");
}

/* What has no bracket, colon, slash or star. */
static int parse_v4_or_name(struct tci_span text, struct tci_host *ret,
                            struct tci_netrule_problem *problem)
{
    if (!tci_address_parse_v4(text.at, text.length, &ret->address))
        return tci_name_parse(text, 0, ret, problem);
    ret->kind = TCI_HOST_ADDRESS;
    ret->prefix = v4_bits;
    return 0;
}

typedef int parser(struct tci_span text, struct tci_host *ret, struct tci_netrule_problem *problem);

/* Nobody sees half of a host: `ret` is set only when all of the text was read. */
static int parse_checked(parser *parse, struct tci_span text, struct tci_host *ret,
                         struct tci_netrule_problem *problem)
{
    struct tci_host host = { .kind = TCI_HOST_NAME };

    if (tci_span_check_bytes(text, problem) < 0 || parse(text, &host, problem) < 0)
        return -1;
    *ret = host;
    return 0;
}

static int parse_rule(struct tci_span text, struct tci_host *ret,
                      struct tci_netrule_problem *problem)
{
    if (text.at[0] == '[')
        return parse_bracketed(text, ret, problem);
    if (tci_span_has(text, '*') && !tci_span_has(text, '/'))
        return parse_wildcard(text, ret, problem);
    if (tci_span_has(text, ':'))
        return refuse_colon(text, problem);
    if (tci_span_has(text, '/'))
        return parse_v4_prefix(text, ret, problem);
    return parse_v4_or_name(text, ret, problem);
}

int tci_host_parse(const char *text, size_t length, struct tci_host *ret,
                   struct tci_netrule_problem *problem)
{
    return parse_checked(parse_rule, (struct tci_span){ text, length }, ret, problem);
}

/* ---- Destinations ---- */

/* An IPv6 address that a program asks for. A mapped one becomes the IPv4 address that the kernel
 * would dial, so that IPv4 rules apply to it. */
static int parse_v6_destination(struct tci_span text, struct tci_host *ret,
                                struct tci_netrule_problem *problem)
{
    struct tci_address v4;

    ret->kind = TCI_HOST_ADDRESS;
    ret->prefix = v4_bits;
    if (parse_mapped_dotted(text, &ret->address))
        return 0;
    if (!tci_address_parse_v6(text.at, text.length, &ret->address))
        return refuse_v6(text, problem);
    if (is_compatible(&ret->address, v6_bits, &v4))
        return refuse_v4_in_v6(text, &v4, v4_bits, problem);
    if (tci_address_is_mapped(&ret->address, &v4))
        ret->address = v4;
    else
        ret->prefix = v6_bits;
    return 0;
}

static int parse_destination(struct tci_span text, struct tci_host *ret,
                             struct tci_netrule_problem *problem)
{
    if (text.length >= 2 && text.at[0] == '[' && text.at[text.length - 1] == ']')
        return parse_v6_destination((struct tci_span){ text.at + 1, text.length - 2 }, ret,
                                    problem);
    if (tci_span_has(text, ':'))
        return parse_v6_destination(text, ret, problem);
    return parse_v4_or_name(text, ret, problem);
}

int tci_destination_parse(const char *text, size_t length, struct tci_host *ret,
                          struct tci_netrule_problem *problem)
{
    return parse_checked(parse_destination, (struct tci_span){ text, length }, ret, problem);
}
