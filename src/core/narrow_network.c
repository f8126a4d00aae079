/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the network of a tool under a grant that has one of its own: what both allow, minus what
 * either denies. Two rules that overlap in another way than one inside the other have nothing in
 * common here, which is narrower than it could be and never wider.
 */
#include "core/narrow.h"

#include <string.h>

enum { rules_max = 4096 };

struct list {
    struct tci_network_entry *items;
    size_t count, capacity;
};

static int add(struct list *list, const struct tci_network_entry *entry, struct tc_error *reterr)
{
    if (list->count == list->capacity) {
        tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                      "the network rules of tool and grant have more than %d pairs in common",
                      rules_max);
        tci_error_remedy(reterr, "write fewer rules, or leave \"network\" out of the grant");
        return -1;
    }
    list->items[list->count++] = *entry;
    return 0;
}

/* The ports of both, the hosts of the narrower: false when neither holds the other. */
static bool common(const struct tci_network_entry *a, const struct tci_network_entry *b,
                   struct tci_network_entry *ret)
{
    uint16_t low = a->rule.port_low > b->rule.port_low ? a->rule.port_low : b->rule.port_low;
    uint16_t high = a->rule.port_high < b->rule.port_high ? a->rule.port_high : b->rule.port_high;
    struct tci_network_entry x = *a, y = *b;
    if (low > high)
        return false;
    x.rule.port_low = y.rule.port_low = low;
    x.rule.port_high = y.rule.port_high = high;
    if (tci_netrule_covers(&x.rule, &y.rule))
        *ret = y;
    else if (tci_netrule_covers(&y.rule, &x.rule))
        *ret = x;
    else
        return false;
    return true;
}

static int add_denied(const struct tci_network *network, struct list *list, struct tc_error *reterr)
{
    for (size_t i = 0; i < network->count; i++)
        if (network->rules[i].rule.deny && add(list, &network->rules[i], reterr) < 0)
            return -1;
    return 0;
}

static int intersect(const struct tci_network *a, const struct tci_network *b, struct list *list,
                     struct tc_error *reterr)
{
    struct tci_network_entry both;
    if (add_denied(a, list, reterr) < 0 || add_denied(b, list, reterr) < 0)
        return -1;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (!a->rules[i].rule.deny && !b->rules[j].rule.deny &&
                common(&a->rules[i], &b->rules[j], &both) && add(list, &both, reterr) < 0)
                return -1;
    return 0;
}

/* "public" beside a list: the list without what is not public. A name stays; the addresses that it
 * resolves to are checked when it is dialled, and no rule for an address that is not public is left. */
static int only_public(const struct tci_network *rules, struct list *list, struct tc_error *reterr)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct tci_netrule *rule = &rules->rules[i].rule;
        bool special = rule->host.kind == TCI_HOST_ADDRESS &&
                       tci_prefix_classify(&rule->host.address, rule->host.prefix) !=
                           TCI_ADDRESS_PUBLIC;
        if ((rule->deny || !special) && add(list, &rules->rules[i], reterr) < 0)
            return -1;
    }
    return 0;
}

/* Also what was cut out of "public" before: a second grant must not give back what the first took. */
static bool is_only_public(const struct tci_network *network)
{
    return network->mode == TCI_NETWORK_PUBLIC || network->only_public;
}

static int make_rules(struct tci_arena *arena, const struct tci_network *tool,
                      const struct tci_network *grant, struct tci_network *ret,
                      struct tc_error *reterr)
{
    size_t room = tool->count + grant->count + tool->count * grant->count;
    struct list list = { .capacity = room < rules_max ? room : rules_max };
    int r;

    list.items = tci_arena_new_array(arena, list.capacity, struct tci_network_entry);
    if (!list.items)
        return tci_error_no_memory(reterr);
    if (tool->mode == TCI_NETWORK_PUBLIC)
        r = only_public(grant, &list, reterr);
    else if (grant->mode == TCI_NETWORK_PUBLIC)
        r = only_public(tool, &list, reterr);
    else
        r = intersect(tool, grant, &list, reterr);
    if (r < 0)
        return -1;
    *ret = (struct tci_network){ .mode = TCI_NETWORK_NONE };
    for (size_t i = 0; i < list.count; i++)
        if (!list.items[i].rule.deny)
            *ret = (struct tci_network){
                .mode = TCI_NETWORK_RULES,
                .rules = list.items,
                .count = list.count,
                .only_public = is_only_public(tool) || is_only_public(grant),
            };
    return 0;
}

int tci_narrow_network(struct tci_arena *arena, const struct tci_network *tool,
                       const struct tci_network *grant, struct tci_network *ret,
                       struct tc_error *reterr)
{
    if (tool->mode == TCI_NETWORK_NONE || grant->mode == TCI_NETWORK_NONE)
        *ret = (struct tci_network){ .mode = TCI_NETWORK_NONE };
    else if (grant->mode == TCI_NETWORK_HOST || tool->mode == TCI_NETWORK_HOST)
        *ret = grant->mode == TCI_NETWORK_HOST ? *tool : *grant;
    else if (tool->mode == TCI_NETWORK_PUBLIC && grant->mode == TCI_NETWORK_PUBLIC)
        *ret = *tool;
    else
        return make_rules(arena, tool, grant, ret, reterr);
    return 0;
}

/* 0 is no limit, so it is never the smaller one; TCI_UNLIMITED is a grant that says nothing. */
static uint64_t smaller(uint64_t tool, uint64_t grant)
{
    bool says = grant && grant != TCI_UNLIMITED;
    return says && (!tool || grant < tool) ? grant : tool;
}

struct tci_network_limits tci_narrow_network_limits(const struct tci_network_limits *tool,
                                                    const struct tci_network_limits *grant)
{
    return (struct tci_network_limits){
        .connections = smaller(tool->connections, grant->connections),
        .bytes_in = smaller(tool->bytes_in, grant->bytes_in),
        .bytes_out = smaller(tool->bytes_out, grant->bytes_out),
        .rate = smaller(tool->rate, grant->rate),
    };
}
