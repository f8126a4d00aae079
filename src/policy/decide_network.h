/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a network setting says about one place, for whoever asks before (tc_decide_network) and
 * for the gate, which asks when a program goes there: one answer, in the same words. Pure functions.
 * Each sets `allowed`, `key`, `rule`, `reason` and, when refused, `fix`; the place in the file only
 * where a rule decided. *d is zeroed before.
 */
#ifndef TCI_POLICY_DECIDE_NETWORK_H
#define TCI_POLICY_DECIDE_NETWORK_H

#include "policy/model.h"

struct tci_destination {
    struct tci_host host; /* a NAME or a single ADDRESS */
    uint16_t port;
    char text[TCI_RULE_TEXT_MAX + 8]; /* canonical "HOST:PORT" */
};

/* For a name that has been read, and for the bytes of an address: there is no address that can be reached by
 * its bytes and not by its text. False: this is no place to go to; *d says why. */
bool tci_destination_of_name(const struct tci_host *name, unsigned port,
                             struct tci_destination *ret, struct tc_decision *d);
bool tci_destination_of_address(const struct tci_address *address, unsigned port,
                                struct tci_destination *ret, struct tc_decision *d);

/* May it be reached? For a name: as long as its address may. `is_own`: it is known to be an address
 * of this machine; "public" does not include those. */
void tci_decide_destination(const struct tci_network *network, const struct tci_destination *to,
                            bool is_own, struct tc_decision *d);

/* May the name be reached at some port? Only then somebody may be asked for its address. */
void tci_decide_question(const struct tci_network *network, const struct tci_host *name,
                         struct tc_decision *d);

/* May the name `to` be reached at this address, which a resolver gave for it? */
void tci_decide_resolved(const struct tci_network *network, const struct tci_destination *to,
                         const struct tci_address *address, bool is_own, struct tc_decision *d);

#endif
