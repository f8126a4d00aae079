/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the stages of a call and the list of tools ask about tools of the host's own. */
#ifndef TCI_CORE_ENGINE_TOOLS_H
#define TCI_CORE_ENGINE_TOOLS_H

#include "core/call.h"

/* Calls `each` for the policy's tools and then for the host's own, in the order of their definition.
 * A result other than 0 ends it and is returned. */
int tci_engine_each_tool(struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context);

/* What the tool brings into its cage, for the plan. */
void tci_engine_brings(struct tc_engine *engine, const struct tci_tool *tool, struct tc_spec *spec);

/* The same for one call, whose request has no argv of its own: fills io->program and io->function. */
int tci_engine_start_with(struct tc_engine *engine, const struct tc_call *call,
                          const struct tc_spec *spec, struct tc_io *io, struct tc_error *reterr);

#endif
