/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is told to the kernel, once, in a fresh network namespace, before anybody lives in it:
 * loopback up, two addresses on it, and a route that makes every address local. With every port, an
 * nf_tables rule besides, which hands all of TCP to one listener under its own address:
 *
 *   table inet toolcage { chain in { type filter hook prerouting priority -150;
 *       meta l4proto tcp ip daddr != 127.0.0.0/8 tproxy to :7     (and the same for IPv6 and ::1)
 *
 * The messages are written when a plan is made; init only sends them.
 */
#ifndef TCI_GATE_SETUP_H
#define TCI_GATE_SETUP_H

#include "gate/netlink.h"
#include "policy/model.h"

struct tci_gate_setup {
    struct tci_netlink_batch v4, v6, catcher; /* the last message of each asks for an answer */
};

/* Does a rule allow an address of loopback? Then these too are the gate's, at the ports of the rules; else
 * programs in a cage talk to themselves over them. */
bool tci_gate_catches_loopback(const struct tci_network *network);

/* Does this host have IPv6? Then a new namespace does. */
bool tci_gate_can_v6(void);

/* `catch_loopback`: 127.0.0.0/8 and ::1 too are served by the gate, at every port. */
void tci_gate_setup(bool every_port, bool catch_loopback, struct tci_gate_setup *ret);

#endif
