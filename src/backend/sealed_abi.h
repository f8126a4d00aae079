/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what every sealed configuration is made of (init_abi.h, stage_abi.h): a header, then arrays and text,
 * addressed by their offset in the file. Read by programs without a C library. */
#ifndef TCI_BACKEND_SEALED_ABI_H
#define TCI_BACKEND_SEALED_ABI_H

#include <stdint.h>

struct tci_sealed_array {
    uint32_t offset, count;
};

/* The cage's side of its gate. `v4`, `v6` and `catcher` are netlink messages (gate/setup.h), their counts
 * bytes. */
struct tci_sealed_gate {
    uint32_t is_there, has_v6;
    struct tci_sealed_array v4, v6, catcher;
    struct tci_sealed_array ports; /* uint16_t: where to listen */
};

#endif
