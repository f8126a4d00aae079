/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of gate/rules.h. Input: a line "HOST PORT ADDRESS", then one rule a line; what
 * cannot be read is left out. Checks what must hold for all rules and places: above all that nothing
 * denied is allowed, in no spelling.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "gate/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { rules_max = 32 };

struct place {
    struct tci_host name;
    struct tci_address address;
    uint16_t port;
    bool has_name, has_address;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct text {
    const char *at;
    size_t length;
};

/* Takes what stands before the separator off the front. */
static struct text take(struct text *rest, char separator)
{
    const char *end = rest->length ? memchr(rest->at, separator, rest->length) : NULL;
    struct text word = { rest->at, end ? (size_t)(end - rest->at) : rest->length };
    rest->at += word.length + (end ? 1 : 0);
    rest->length -= word.length + (end ? 1 : 0);
    return word;
}

static void read_place(struct text line, struct place *ret)
{
    struct text host = take(&line, ' '), port = take(&line, ' ');
    struct tci_netrule_problem problem;
    unsigned number = 0;

    *ret = (struct place){ .has_name = false };
    if (tci_destination_parse(host.at, host.length, &ret->name, &problem) == 0)
        ret->has_name = ret->name.kind == TCI_HOST_NAME;
    for (size_t i = 0; i < port.length && port.at[i] >= '0' && port.at[i] <= '9'; i++)
        number = (number * 10 + (unsigned)(port.at[i] - '0')) & UINT16_MAX;
    ret->port = (uint16_t)number;
    ret->has_address = tci_address_parse_v4(line.at, line.length, &ret->address) ||
                       tci_address_parse_v6(line.at, line.length, &ret->address);
}

static void read_rules(struct text rest, struct tci_network *ret)
{
    struct tci_netrule_problem problem;
    ret->mode = TCI_NETWORK_NONE;
    ret->count = 0;
    while (rest.length && ret->count < rules_max) {
        struct text line = take(&rest, '\n');
        if (tci_netrule_parse(line.at, line.length, &ret->rules[ret->count].rule, &problem) == 0)
            ret->count++;
    }
    if (ret->count)
        ret->mode = TCI_NETWORK_RULES;
}

/* ---- what must hold ------------------------------------------------------------------------------ */

static void check_text(const char *text, size_t room)
{
    check(strlen(text) < room);
    for (; *text; text++)
        check(*text >= 0x20 && *text < 0x7f);
}

static void check_verdict(const struct tci_gate_verdict *v, bool returned)
{
    check(v->allowed == returned);
    check(v->allowed == !v->reason[0] && v->allowed == !v->fix[0]);
    check(v->allowed || !v->by_name);
    check(!v->allowed || v->rule[0]);
    check(v->allowed ? strncmp(v->rule, "deny:", 5) != 0
                     : !v->rule[0] || strncmp(v->rule, "deny:", 5) == 0);
    check_text(v->rule, sizeof v->rule);
    check_text(v->reason, sizeof v->reason);
    check_text(v->fix, sizeof v->fix);
}

static bool allows_name(const struct tci_network *network, const struct place *p)
{
    struct tci_gate_verdict v;
    bool allowed = tci_gate_allows_name(network, &p->name, p->port, &v);
    check_verdict(&v, allowed);
    return allowed;
}

static bool allows_question(const struct tci_network *network, const struct place *p)
{
    struct tci_gate_verdict v;
    bool allowed = tci_gate_allows_question(network, &p->name, &v);
    check_verdict(&v, allowed);
    return allowed;
}

static bool allows_address(const struct tci_network *network, const struct place *p, bool own)
{
    struct tci_gate_verdict v;
    bool allowed = tci_gate_allows_address(network, &p->address, own, p->port, &v);
    check_verdict(&v, allowed);
    return allowed;
}

static bool allows_resolved(const struct tci_network *network, const struct place *p, bool own)
{
    struct tci_gate_verdict v;
    bool allowed = tci_gate_allows_resolved(network, &p->name, &p->address, own, p->port, &v);
    check_verdict(&v, allowed);
    return allowed;
}

/* Does some rule of this kind match the address, in the spelling that the kernel dials? */
static bool address_matches(const struct tci_network *network, const struct place *p, bool deny)
{
    struct tci_host host = { .kind = TCI_HOST_ADDRESS, .address = p->address };
    struct tci_address v4;
    if (tci_address_is_mapped(&p->address, &v4))
        host.address = v4;
    host.prefix = host.address.is_v6 ? 128 : 32;
    for (size_t i = 0; i < network->count; i++)
        if (network->rules[i].rule.deny == deny &&
            tci_netrule_matches(&network->rules[i].rule, &host, p->port))
            return true;
    return false;
}

static bool name_is_denied(const struct tci_network *network, const struct place *p)
{
    for (size_t i = 0; i < network->count; i++)
        if (network->rules[i].rule.deny &&
            tci_netrule_matches(&network->rules[i].rule, &p->name, p->port))
            return true;
    return false;
}

static bool has_port(const struct tci_network *network, uint16_t port)
{
    struct tci_gate_ports ports;
    bool found;
    tci_gate_ports(network, &ports);
    check(ports.count <= TCI_GATE_PORTS_MAX && (!ports.every || !ports.count));
    found = ports.every;
    for (unsigned i = 0; i < ports.count; i++) {
        check(i == 0 || ports.items[i - 1] < ports.items[i]);
        found |= ports.items[i] == port;
    }
    return found;
}

static void check_name(const struct tci_network *network, const struct place *p)
{
    bool allowed = allows_name(network, p), question = allows_question(network, p);
    if (!allowed)
        return;
    check(question);
    check(!name_is_denied(network, p));
    check(has_port(network, p->port));
}

static void check_address(const struct tci_network *network, const struct place *p)
{
    bool allowed = allows_address(network, p, false), own = allows_address(network, p, true);
    check(!own || allowed);
    if (!allowed)
        return;
    check(!address_matches(network, p, true));
    check(has_port(network, p->port));
    if (network->mode == TCI_NETWORK_RULES)
        check(address_matches(network, p, false));
    if (network->mode == TCI_NETWORK_PUBLIC || network->only_public)
        check(!own &&
              allows_address(&(struct tci_network){ .mode = TCI_NETWORK_PUBLIC }, p, false));
}

static void check_resolved(const struct tci_network *network, const struct place *p)
{
    bool allowed = allows_resolved(network, p, false), own = allows_resolved(network, p, true);
    bool strict = network->mode == TCI_NETWORK_PUBLIC || network->only_public;
    check(!own || allowed);
    if (!allowed)
        return;
    check(allows_name(network, p));
    check(!address_matches(network, p, true));
    if (own)
        check(!strict && address_matches(network, p, false));
    if (strict || !address_matches(network, p, false))
        check(allows_address(&(struct tci_network){ .mode = TCI_NETWORK_PUBLIC }, p, false));
}

/* 10.0.0.1 and ::ffff:10.0.0.1 are one place. */
static void check_spellings(const struct tci_network *network, const struct place *p)
{
    struct place other = *p;
    if (p->address.is_v6)
        return;
    other.address = (struct tci_address){ .is_v6 = true, .bytes = { [10] = 0xff, [11] = 0xff } };
    memcpy(other.address.bytes + 12, p->address.bytes, 4);
    for (int own = 0; own <= 1; own++) {
        check(allows_address(network, p, own) == allows_address(network, &other, own));
        if (p->has_name)
            check(allows_resolved(network, p, own) == allows_resolved(network, &other, own));
    }
}

static void check_place(const struct tci_network *network, const struct place *p)
{
    if (p->has_name)
        check_name(network, p);
    if (p->has_address) {
        check_address(network, p);
        check_spellings(network, p);
    }
    if (p->has_name && p->has_address)
        check_resolved(network, p);
}

/* The order of rules means nothing. */
static void check_order(const struct tci_network *network, const struct place *p)
{
    struct tci_network_entry turned[rules_max];
    struct tci_network other = *network;
    for (size_t i = 0; i < network->count; i++)
        turned[i] = network->rules[network->count - 1 - i];
    other.rules = turned;
    if (p->has_name) {
        check(allows_name(network, p) == allows_name(&other, p));
        check(allows_question(network, p) == allows_question(&other, p));
    }
    if (p->has_address)
        check(allows_address(network, p, true) == allows_address(&other, p, true));
    if (p->has_name && p->has_address)
        check(allows_resolved(network, p, true) == allows_resolved(&other, p, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_network_entry rules[rules_max];
    struct tci_network network = { .rules = rules };
    struct text rest = { (const char *)data, size };
    struct place place;

    if (size == 0)
        return 0;
    read_place(take(&rest, '\n'), &place);
    read_rules(rest, &network);
    check_place(&network, &place);
    check_order(&network, &place);
    network.only_public = true;
    check_place(&network, &place);
    network = (struct tci_network){ .mode = TCI_NETWORK_PUBLIC };
    check_place(&network, &place);
    network.mode = TCI_NETWORK_HOST;
    check(!place.has_name || !allows_name(&network, &place));
    check(!place.has_address || !allows_address(&network, &place, false));
    return 0;
}
