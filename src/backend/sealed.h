/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing down, once for each plan, what a program of ours reads in every cage: one sealed file of
 * memory (sealed_abi.h). Begin with room for the header, and copy it there when all offsets are known. */
#ifndef TCI_BACKEND_SEALED_H
#define TCI_BACKEND_SEALED_H

#include <stdbool.h>
#include "backend/sealed_abi.h"
#include "base/buf.h"
#include "gate/rules.h"

enum { TCI_SEALED_MAX = 16 << 20 };

/* Each returns where it is; that there was no room, the buffer knows. `text` NULL: an empty one. */
uint32_t tci_sealed_text(struct tci_buf *out, const char *text);
struct tci_sealed_array tci_sealed_put(struct tci_buf *out, const void *items, size_t count,
                                       size_t size);
void tci_sealed_put_gate(struct tci_buf *out, const struct tci_network *network,
                         const struct tci_gate_ports *ports, bool has_v6,
                         struct tci_sealed_gate *ret);

/* The file, for the caller to close: what is read in the cage is what was checked, even if somebody gets
 * hold of the descriptor. -1: *reterr says that `what` cannot be kept. */
int tci_sealed_store(const struct tci_buf *out, const char *name, const char *what,
                     struct tc_error *reterr);

#endif
