/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the cage's side of a gate, made in the network namespace that the caller is in. Freestanding. */
#ifndef TCI_BACKEND_FURNISH_H
#define TCI_BACKEND_FURNISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Netlink messages (gate/setup.h). */
struct tci_furnish_messages {
    const void *bytes;
    size_t size;
};

struct tci_furnish {
    struct tci_furnish_messages v4, v6, catcher;
    const uint16_t *ports; /* where to listen */
    uint32_t port_count;
    bool has_v6;
};

/* Sends the sockets over `line` (tci_gate_new) and keeps none. 0, or a negative errno and which step it
 * was: 0 to 2 messages, 3 to 7 the fixed sockets, 8 and on listeners, 100 the handing over. */
long tci_furnish_network(const struct tci_furnish *gate, int line, uint32_t *ret_item);

#endif
