/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the cage's side of a gate, made in the network namespace that the caller is in. Freestanding. */
#ifndef TCI_BACKEND_FURNISH_H
#define TCI_BACKEND_FURNISH_H

#include "backend/sealed_abi.h"

/* Sends the sockets over `line` (tci_gate_new) and keeps none. `gate` is in the sealed file `config`. 0, or a
 * negative errno and which step it was: 0 to 2 messages, 3 to 7 the fixed sockets, 8 and on listeners, 100
 * the handing over. */
long tci_furnish_network(const void *config, const struct tci_sealed_gate *gate, int line,
                         uint32_t *ret_item);

#endif
