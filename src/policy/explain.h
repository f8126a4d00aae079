/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the effective policy of a tool, with where each value comes from. */
#ifndef TCI_POLICY_EXPLAIN_H
#define TCI_POLICY_EXPLAIN_H

#include "base/buf.h"
#include "policy/model.h"

enum { TCI_EXPLAIN_MAX = 64 * 1024 * 1024 };

/* For people: a line a key. `tool` NULL: every tool. */
void tci_explain_text(const struct tc_policy *policy, const struct tci_tool *tool,
                      struct tci_buf *out);
/* For programs: schemas/explain.json. */
void tci_explain_json(const struct tc_policy *policy, const struct tci_tool *tool,
                      struct tci_buf *out);

/* The registry: one line a tool, or schemas/tools.json. */
void tci_tools_text(const struct tc_policy *policy, struct tci_buf *out);
void tci_tools_json(const struct tc_policy *policy, struct tci_buf *out);

/* A decision for programs, part of schemas/explain.json. */
void tci_decision_json(const struct tc_policy *policy, const char *question, const char *target,
                       const struct tc_decision *decision, struct tci_buf *out);

#endif
