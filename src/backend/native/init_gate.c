/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the jail's words for furnishing its network namespace (backend/furnish.h). */
#include "backend/native/init.h"

#include "backend/furnish.h"

static struct tci_furnish_messages messages(const struct init *init,
                                            const struct tci_init_array *array)
{
    return (struct tci_furnish_messages){ config_at(init, array->offset), array->count };
}

void furnish_network(const struct init *init)
{
    const struct tci_init_gate *gate = &init->config->gate;
    const struct tci_furnish what = { .v4 = messages(init, &gate->v4),
                                      .v6 = messages(init, &gate->v6),
                                      .catcher = messages(init, &gate->catcher),
                                      .ports = config_at(init, gate->ports.offset),
                                      .port_count = gate->ports.count,
                                      .has_v6 = gate->has_v6 };
    uint32_t item = 0;
    long result = tci_furnish_network(&what, TCI_INIT_FD_GATE, &item);
    must(TCI_INIT_STEP_GATE, item, result);
    (void)CALL(close, TCI_INIT_FD_GATE, 0, 0, 0, 0);
}
