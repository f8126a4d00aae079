/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a refusal does not say to an agent. Reasons are written for the policy's owner, and the journal keeps
 * them as they are. An agent gets them without names that it cannot see otherwise: of other agents, and of places of
 * the host, which stand under other names in its cage. What is wrong with the journal it does not hear either, only that
 * something is: it says where the journal is, and how much room there is.
 */
#ifndef TCI_MCP_HIDE_H
#define TCI_MCP_HIDE_H

#include <stdbool.h>
#include <stddef.h>

struct tc_result;
struct tci_tool;

/* In place. `agent` NULL: the owner, who may see everything. `tool` may be NULL. */
void tci_mcp_hide_text(const struct tci_tool *tool, const char *agent, char *text, size_t size);
/* Does the text say what is wrong with the journal? Then somebody else than the agent should hear it. */
bool tci_mcp_is_of_journal(const char *text);
/* The same for the reason and the fix of a result. */
void tci_mcp_hide(const struct tci_tool *tool, const char *agent, struct tc_result *result);

#endif
