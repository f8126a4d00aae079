/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the jail's words for furnishing its network namespace (backend/furnish.h). */
#include "backend/native/init.h"

#include "backend/furnish.h"

void furnish_network(const struct init *init)
{
    uint32_t item = 0;
    long result = tci_furnish_network(init->config, &init->config->gate, TCI_INIT_FD_GATE, &item);
    must(TCI_INIT_STEP_GATE, item, result);
    (void)CALL(close, TCI_INIT_FD_GATE, 0, 0, 0, 0);
}
