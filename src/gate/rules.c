/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the gate's questions to the network rules. What they say, and in which words, is decided in
 * policy/decide_network.c, where `explain` asks too.
 * Trusts: nobody; a network that has no gate ("none", "host") refuses everything here.
 */
#include "gate/rules.h"

#include <stdio.h>
#include <string.h>
#include "policy/decide_network.h"

/* ---- ports -------------------------------------------------------------------------------------- */

/* In order, each once. False: there is no room for it. */
static bool add_port(struct tci_gate_ports *ports, uint16_t port)
{
    unsigned at = ports->count;
    while (at > 0 && ports->items[at - 1] > port)
        at--;
    if (at > 0 && ports->items[at - 1] == port)
        return true;
    if (ports->count == TCI_GATE_PORTS_MAX)
        return false;
    memmove(&ports->items[at + 1], &ports->items[at], (ports->count - at) * sizeof ports->items[0]);
    ports->items[at] = port;
    ports->count++;
    return true;
}

void tci_gate_ports(const struct tci_network *network, struct tci_gate_ports *ret)
{
    *ret = (struct tci_gate_ports){ .every = network->mode == TCI_NETWORK_PUBLIC };
    for (size_t i = 0; network->mode == TCI_NETWORK_RULES && i < network->count; i++) {
        const struct tci_netrule *rule = &network->rules[i].rule;
        for (unsigned port = rule->port_low; !rule->deny && port <= rule->port_high; port++) {
            if (add_port(ret, (uint16_t)port))
                continue;
            *ret = (struct tci_gate_ports){ .every = true };
            return;
        }
    }
}

/* ---- verdicts ----------------------------------------------------------------------------------- */

/* The end of what does not fit is cut off, and that can be seen. Only a name near the longest that
 * there is makes a text so long. */
static void copy_text(char to[TCI_GATE_REASON_MAX], const char *from)
{
    if ((size_t)snprintf(to, TCI_GATE_REASON_MAX, "%s", from) >= TCI_GATE_REASON_MAX)
        memcpy(to + TCI_GATE_REASON_MAX - 4, "...", 4);
}

static bool give(const struct tci_network *network, const struct tc_decision *d, bool by_name,
                 struct tci_gate_verdict *ret)
{
    /* What only did not suffice is not the rule that refused. */
    const char *rule = d->allowed || strncmp(d->rule, "deny:", 5) == 0 ? d->rule : "";
    *ret = (struct tci_gate_verdict){ .allowed = d->allowed != 0 };
    ret->by_name = ret->allowed && by_name;
    if (d->allowed && network->mode == TCI_NETWORK_PUBLIC)
        rule = tci_network_mode_name(network->mode);
    (void)snprintf(ret->rule, sizeof ret->rule, "%.*s", (int)sizeof ret->rule - 1, rule);
    if (!ret->allowed) {
        copy_text(ret->reason, d->reason);
        copy_text(ret->fix, d->fix);
    }
    return ret->allowed;
}

/* A gate that was made for the host's network is a mistake: it opens nothing. */
static const struct tci_network *guarded(const struct tci_network *network)
{
    static const struct tci_network nothing;
    return tci_network_has_gate(network) ? network : &nothing;
}

bool tci_gate_allows_question(const struct tci_network *network, const struct tci_host *name,
                              struct tci_gate_verdict *ret)
{
    struct tc_decision d = { 0 };
    tci_decide_question(guarded(network), name, &d);
    return give(network, &d, true, ret);
}

bool tci_gate_allows_name(const struct tci_network *network, const struct tci_host *name,
                          uint16_t port, struct tci_gate_verdict *ret)
{
    struct tc_decision d = { 0 };
    struct tci_destination to;
    if (tci_destination_of_name(name, port, &to, &d))
        tci_decide_destination(guarded(network), &to, false, &d);
    return give(network, &d, true, ret);
}

bool tci_gate_allows_resolved(const struct tci_network *network, const struct tci_host *name,
                              const struct tci_address *address, bool is_own, uint16_t port,
                              struct tci_gate_verdict *ret)
{
    struct tc_decision d = { 0 };
    struct tci_destination to;
    if (tci_destination_of_name(name, port, &to, &d))
        tci_decide_resolved(guarded(network), &to, address, is_own, &d);
    return give(network, &d, true, ret);
}

bool tci_gate_allows_address(const struct tci_network *network, const struct tci_address *address,
                             bool is_own, uint16_t port, struct tci_gate_verdict *ret)
{
    struct tc_decision d = { 0 };
    struct tci_destination to;
    if (tci_destination_of_address(address, port, &to, &d))
        tci_decide_destination(guarded(network), &to, is_own, &d);
    return give(network, &d, false, ret);
}
