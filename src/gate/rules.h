/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the network rules of a tool say to the gate: about a name that is asked for, about the
 * address that it has, about an address that is dialled without a name, and which ports matter.
 * Pure functions. Deny beats allow. What is not allowed is refused.
 */
#ifndef TCI_GATE_RULES_H
#define TCI_GATE_RULES_H

#include "gate/record.h"
#include "policy/model.h"

enum { TCI_GATE_PORTS_MAX = 32 };

/* The ports at which a connection can be allowed. Beyond TCI_GATE_PORTS_MAX: every port. */
struct tci_gate_ports {
    bool every;
    uint16_t items[TCI_GATE_PORTS_MAX];
    unsigned count;
};
void tci_gate_ports(const struct tci_network *network, struct tci_gate_ports *ret);

static inline bool tci_gate_ports_has(const struct tci_gate_ports *ports, uint16_t port)
{
    for (unsigned i = 0; i < ports->count; i++)
        if (ports->items[i] == port)
            return true;
    return ports->every;
}

struct tci_gate_verdict {
    bool allowed;
    /* Allowed by a rule for a name, or by "public" for a name: what is said is checked. */
    bool by_name;
    char rule[TCI_RULE_TEXT_MAX];     /* that allowed it (or "public") or denied it; "": none */
    char reason[TCI_GATE_REASON_MAX]; /* refused: why */
    char fix[TCI_GATE_REASON_MAX];    /* refused: the smallest change of the policy */
};

/* May the name be resolved at all? True when it is allowed at one port at least. Everything else never
 * leaves the host, not even as a question to a name server. */
bool tci_gate_allows_question(const struct tci_network *network, const struct tci_host *name,
                              struct tci_gate_verdict *ret);

/* May the name be reached at this port, as long as its address may? */
bool tci_gate_allows_name(const struct tci_network *network, const struct tci_host *name,
                          uint16_t port, struct tci_gate_verdict *ret);

/* May this address of an allowed name be dialled? Public ones may, unless denied; others, and those of
 * the host itself (`is_own`), only when a rule for addresses allows them too. The attack: a name whose
 * owner points it at 127.0.0.1, at the router, or at the cloud's metadata. */
bool tci_gate_allows_resolved(const struct tci_network *network, const struct tci_host *name,
                              const struct tci_address *address, bool is_own, uint16_t port,
                              struct tci_gate_verdict *ret);

/* May this address be dialled that no name stands for? */
bool tci_gate_allows_address(const struct tci_network *network, const struct tci_address *address,
                             bool is_own, uint16_t port, struct tci_gate_verdict *ret);

#endif
