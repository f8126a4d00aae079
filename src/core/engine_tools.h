/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the stages of a call and the list of tools ask about tools of the host's own. */
#ifndef TCI_CORE_ENGINE_TOOLS_H
#define TCI_CORE_ENGINE_TOOLS_H

#include "base/buf.h"
#include "core/call.h"

/* Calls `each` for the policy's tools and then for the host's own, in the order of their definition.
 * A result other than 0 ends it and is returned. */
int tci_engine_each_tool(struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context);

/* definitions.c: a part of tc_engine_tools(engine, agent, "mcp"), as an array without a line break. 1: more
 * follow; 0: that is all; -1: an error. */
struct tci_tools_page {
    size_t first, count;
    bool no_outputs; /* without outputSchema */
};
int tci_engine_tools_page(struct tc_engine *engine, const char *agent,
                          const struct tci_tools_page *page, struct tci_buf *out,
                          struct tc_error *reterr) tci_must_check;

/* What the tool brings into its cage, for the plan. */
void tci_engine_brings(struct tc_engine *engine, const struct tci_tool *tool, struct tc_spec *spec);

/* The same for one call, whose request has no argv of its own: fills io->program and io->function. */
int tci_engine_start_with(struct tc_engine *engine, const struct tc_call *call,
                          const struct tc_spec *spec, struct tc_io *io, struct tc_error *reterr);

#endif
