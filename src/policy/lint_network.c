/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: lint of network rules. The attacks: data leaves through a host that anybody can rent below
 * an allowed wildcard; a tool talks to services of the machine, its network or its cloud provider.
 */
#include "policy/lint_internal.h"

#include <stdio.h>
#include <string.h>

enum kind { KIND_STRANGERS, KIND_LOCAL, KIND_METADATA };

static const struct {
    enum kind kind;
    const char *name;
} domains[] = {
#define STRANGERS(name) { KIND_STRANGERS, name },
#define LOCAL(name)     { KIND_LOCAL, name },
#define METADATA(name)  { KIND_METADATA, name },
#include "policy/lint_domains.def"
#undef STRANGERS
#undef LOCAL
#undef METADATA
};

enum { many_ports = 10000, many_addresses = 1 << 20 };

/* ---- whose hosts ---------------------------------------------------------------------------- */

/* "us-east-1", "ap-southeast-2": letters and dashes, then a number. */
static bool is_region(const char *label, size_t length)
{
    size_t letters = strspn(label, "abcdefghijklmnopqrstuvwxyz-"), dashes = 0;
    for (size_t i = 0; i < letters && i < length; i++)
        dashes += label[i] == '-';
    return dashes >= 2 && letters < length && label[letters - 1] == '-' &&
           letters + strspn(label + letters, "0123456789") >= length;
}

static void without_regions(const char *name, char buffer[TCI_NAME_MAX + 1])
{
    size_t used = 0;
    while (*name) {
        size_t length = strcspn(name, ".");
        if (!is_region(name, length)) {
            memcpy(buffer + used, name, length);
            used += length;
            if (name[length])
                buffer[used++] = '.';
        }
        name += length + (name[length] == '.');
    }
    buffer[used] = '\0';
}

static bool is_below(const char *name, const char *parent)
{
    size_t length = strlen(name), parent_length = strlen(parent);
    return length > parent_length && name[length - parent_length - 1] == '.' &&
           strcmp(name + length - parent_length, parent) == 0;
}

static bool is_metadata(const struct tci_host *host)
{
    for (size_t i = 0; i < tci_array_size(domains); i++)
        if (domains[i].kind == KIND_METADATA &&
            (host->kind == TCI_HOST_WILDCARD ? is_below(domains[i].name, host->name)
                                             : strcmp(domains[i].name, host->name) == 0))
            return true;
    return false;
}

/* What a name, or a name below a wildcard, is known to lead to. */
static enum tci_address_class class_of_name(const struct tci_host *host)
{
    bool wildcard = host->kind == TCI_HOST_WILDCARD, dotted = strchr(host->name, '.');
    /* Without a dot it is completed by the resolver, with a domain of this network. */
    bool local = !wildcard && !dotted;

    for (size_t i = 0; !local && i < tci_array_size(domains); i++)
        local = domains[i].kind == KIND_LOCAL &&
                (strcmp(host->name, domains[i].name) == 0 || is_below(host->name, domains[i].name));
    /* "*.com" covers such services too, but there are worse things to say about it. */
    if ((local || dotted) && is_metadata(host))
        return TCI_ADDRESS_METADATA;
    return local ? TCI_ADDRESS_PRIVATE : TCI_ADDRESS_PUBLIC;
}

/* Does anybody get names below this one? */
static bool is_for_strangers(const char *name)
{
    char plain[TCI_NAME_MAX + 1];
    if (!strchr(name, '.'))
        return true;
    without_regions(name, plain);
    for (size_t i = 0; i < tci_array_size(domains); i++)
        if (domains[i].kind == KIND_STRANGERS && strcmp(plain, domains[i].name) == 0)
            return true;
    return false;
}

/* The last address of the range. */
static struct tci_address last_address(const struct tci_host *host)
{
    struct tci_address last = host->address;
    for (unsigned bit = host->prefix; bit < (last.is_v6 ? 128U : 32U); bit++)
        last.bytes[bit / 8] |= (uint8_t)(0x80U >> (bit % 8));
    return last;
}

/* 10.0.0.0/8 is wide, but it is not the hosts of strangers. */
static bool is_wide_range(const struct tci_host *host)
{
    struct tci_address last = last_address(host);
    enum tci_address_class first_class = tci_address_classify(&host->address);
    return host->prefix < (host->address.is_v6 ? 32U : 16U) &&
           (first_class == TCI_ADDRESS_PUBLIC || first_class != tci_address_classify(&last));
}

static void lint_wide(struct tci_lint *lint, const struct tci_network_entry *entry,
                      const char *text)
{
    const struct tci_host *host = &entry->rule.host;
    if (host->kind == TCI_HOST_WILDCARD && class_of_name(host) == TCI_ADDRESS_PUBLIC &&
        is_for_strangers(host->name))
        tci_lint_add(lint, TCI_FINDING_WIDE_WILDCARD, entry->pos,
                     "name the hosts that the tool needs",
                     "\"%s\": anybody can get a name below %s", text, host->name);
    else if (host->kind == TCI_HOST_ADDRESS && is_wide_range(host))
        tci_lint_add(lint, TCI_FINDING_WIDE_WILDCARD, entry->pos,
                     "name the hosts or a smaller range",
                     "\"%s\" covers a very large range of addresses", text);
}

/* ---- special places ------------------------------------------------------------------------- */

static void lint_special(struct tci_lint *lint, const struct tci_network_entry *entry,
                         const char *text)
{
    const struct tci_host *host = &entry->rule.host;
    bool is_address = host->kind == TCI_HOST_ADDRESS;
    enum tci_address_class address_class = is_address
                                               ? tci_prefix_classify(&host->address, host->prefix)
                                               : class_of_name(host);

    if (is_address && tci_prefix_is_of_gate(&host->address, host->prefix))
        tci_lint_add(lint, TCI_FINDING_GATE_RANGE, entry->pos,
                     "give the host a name and allow the name too: this rule then lets its address "
                     "through",
                     "\"%s\": the gate gives such addresses to names, and never dials them itself",
                     text);
    else if (address_class == TCI_ADDRESS_METADATA)
        tci_lint_add(lint, TCI_FINDING_METADATA_RANGE, entry->pos,
                     "remove it: that service hands out the machine's credentials",
                     "\"%s\" reaches a cloud metadata service", text);
    else if (address_class != TCI_ADDRESS_PUBLIC && is_address)
        tci_lint_add(lint, TCI_FINDING_PRIVATE_RANGE, entry->pos,
                     "make sure that the tool is meant to reach services of this machine or "
                     "network",
                     "\"%s\" reaches an address that is %s", text,
                     tci_address_class_name(address_class));
    else if (address_class != TCI_ADDRESS_PUBLIC)
        tci_lint_add(lint, TCI_FINDING_PRIVATE_RANGE, entry->pos,
                     "remove it; if the tool is meant to go there, allow the address as well",
                     "\"%s\" is a name of this machine or network: it is refused unless a rule "
                     "allows its address too",
                     text);
}

static void lint_ports(struct tci_lint *lint, const struct tci_network_entry *entry,
                       const char *text)
{
    unsigned ports = (unsigned)(entry->rule.port_high - entry->rule.port_low) + 1;
    if (ports == 65535)
        tci_lint_add(lint, TCI_FINDING_WILDCARD_PORT, entry->pos,
                     "name the ports that the tool needs", "\"%s\" allows every port", text);
    else if (ports >= many_ports)
        tci_lint_add(lint, TCI_FINDING_WILDCARD_PORT, entry->pos,
                     "name the ports that the tool needs", "\"%s\" allows %u ports", text, ports);
}

/* Many ranges that are not wide each can be wide together. */
static void lint_sum(struct tci_lint *lint, const struct tci_network *network)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_host *host = &network->rules[i].rule.host;
        if (network->rules[i].rule.deny || host->kind != TCI_HOST_ADDRESS || host->address.is_v6 ||
            is_wide_range(host) ||
            tci_prefix_classify(&host->address, host->prefix) != TCI_ADDRESS_PUBLIC)
            continue;
        sum += (uint64_t)1 << (32 - host->prefix);
        if (sum < many_addresses)
            continue;
        tci_lint_add(lint, TCI_FINDING_WIDE_WILDCARD, network->rules[i].pos,
                     "name the hosts or smaller ranges",
                     "the rules up to this one cover more than a million addresses");
        return;
    }
}

/* ---- rules without effect -------------------------------------------------------------------- */

static bool overlap(const struct tci_netrule *a, const struct tci_netrule *b)
{
    struct tci_netrule wide_a = *a, wide_b = *b;
    if (a->port_high < b->port_low || b->port_high < a->port_low)
        return false;
    /* A name is checked once more by its addresses, so any address rule may concern it. */
    if ((a->host.kind == TCI_HOST_ADDRESS) != (b->host.kind == TCI_HOST_ADDRESS))
        return b->host.kind == TCI_HOST_ADDRESS;
    if (a->host.kind == TCI_HOST_ADDRESS && a->host.address.is_v6 != b->host.address.is_v6)
        return true;
    wide_a.port_low = wide_b.port_low = 1;
    wide_a.port_high = wide_b.port_high = 65535;
    return tci_netrule_covers(&wide_a, &wide_b) || tci_netrule_covers(&wide_b, &wide_a);
}

/* What is not allowed is denied anyway. People write a list of denials and expect the rest of the
 * internet: they must hear that nothing is allowed. */
static void lint_denial(struct tci_lint *lint, const struct tci_network *network,
                        const struct tci_network_entry *entry, const char *text)
{
    for (size_t i = 0; i < network->count; i++)
        if (!network->rules[i].rule.deny && overlap(&network->rules[i].rule, &entry->rule))
            return;
    tci_lint_add(lint, TCI_FINDING_REPEATED_RULE, entry->pos,
                 "remove it: what no rule allows is denied anyway",
                 "\"%s\" has no effect: no rule allows what it denies", text);
}

/* A rule that a deny rule takes back whole, or that a wider one makes needless. */
static void lint_shadowed(struct tci_lint *lint, const struct tci_network *network,
                          const struct tci_network_entry *entry, const char *text)
{
    const struct tci_netrule *by = NULL;
    char other[TCI_RULE_TEXT_MAX];
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_netrule *rule = &network->rules[i].rule;
        if (rule != &entry->rule && tci_netrule_covers(rule, &entry->rule) &&
            (!by || (rule->deny && !by->deny)))
            by = rule;
    }
    if (by)
        tci_lint_add(lint, TCI_FINDING_REPEATED_RULE, entry->pos, "remove one of the two",
                     by->deny ? "\"%s\" has no effect: \"%s\" takes it back"
                              : "\"%s\" has no effect: \"%s\" allows it already",
                     text, tci_netrule_format(by, other));
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool same_place(struct tci_pos a, struct tci_pos b)
{
    return a.line == b.line && a.column == b.column;
}

static void lint_rules(struct tci_lint *lint, const struct tci_network *network)
{
    for (size_t i = 0; i < network->count; i++) {
        const struct tci_network_entry *entry = &network->rules[i];
        char text[TCI_RULE_TEXT_MAX];
        tci_netrule_format(&entry->rule, text);
        if (entry->rule.deny) {
            lint_denial(lint, network, entry, text);
            continue;
        }
        lint_shadowed(lint, network, entry, text);
        /* One entry of allowed_hosts makes two rules, for the two ports of HTTP. */
        if (i > 0 && same_place(entry->pos, network->rules[i - 1].pos))
            continue;
        lint_ports(lint, entry, text);
        lint_wide(lint, entry, text);
        lint_special(lint, entry, text);
    }
    lint_sum(lint, network);
    for (size_t i = 0; i < network->ignored.count; i++)
        if (i == 0 || !same_place(network->ignored.items[i].pos, network->ignored.items[i - 1].pos))
            tci_lint_add(lint, TCI_FINDING_REPEATED_RULE, network->ignored.items[i].pos,
                         "remove it", "this rule is already there");
}

/* Without a gate there is nothing to limit and nothing to look at. */
static void lint_no_gate(struct tci_lint *lint)
{
    static const enum tci_key keys[] = { TCI_KEY_NETWORK_LIMITS, TCI_KEY_INSPECT };
    const struct tci_tool *tool = lint->tool;
    if (tool->settings.network.mode != TCI_NETWORK_NONE)
        return;
    for (size_t i = 0; i < tci_array_size(keys); i++)
        if (tool->source[keys[i]] == TCI_FROM_TOOL)
            tci_lint_add(lint, TCI_FINDING_NO_GATE, tool->settings.pos[keys[i]],
                         "remove it, or name the hosts that the tool needs in \"network\"",
                         "\"%s\" has no effect: the tool has no network", tci_key_name(keys[i]));
}

/* The confirmation may be a tool's own while the network is inherited: then each of the two cases
 * is a finding of its own. */
static void lint_host_network(struct tci_lint *lint, bool inherited)
{
    const struct tci_settings *s = &lint->tool->settings;
    bool *seen = &lint->seen_host_network[s->allow_host_network];
    if (inherited && *seen)
        return;
    *seen |= inherited;
    if (s->allow_host_network)
        tci_lint_add(lint, TCI_FINDING_HOST_NETWORK_CONFIRMED, s->pos[TCI_KEY_NETWORK],
                     "name the hosts in a list instead, if that is possible",
                     "the tool has the host's network, unrestricted");
    else
        tci_lint_add(lint, TCI_FINDING_HOST_NETWORK, s->pos[TCI_KEY_NETWORK],
                     "name the hosts in a list, or confirm with allow_host_network = true",
                     "the tool would have the host's network, unrestricted");
}

void tci_lint_network(struct tci_lint *lint)
{
    const struct tci_network *network = &lint->tool->settings.network;
    bool inherited = lint->tool->source[TCI_KEY_NETWORK] == TCI_FROM_DEFAULTS;

    lint_no_gate(lint);
    if (network->mode == TCI_NETWORK_HOST)
        lint_host_network(lint, inherited);
    if (!network->rules || (inherited && network->rules == lint->seen_rules))
        return;
    if (inherited)
        lint->seen_rules = network->rules;
    lint_rules(lint, network);
}
