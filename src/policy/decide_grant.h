/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is said about one grant, wherever it was made: in the policy or at run time. Pure
 * functions; *d is zeroed before.
 */
#ifndef TCI_POLICY_DECIDE_GRANT_H
#define TCI_POLICY_DECIDE_GRANT_H

#include "policy/model.h"

/* Does the grant allow a call at the moment `now`, after `calls_made` of them? */
void tci_decide_grant(const struct tci_grant *grant, const char *agent, int64_t now,
                      uint64_t calls_made, struct tc_decision *d);

/* One answer for "not granted", "no longer granted" and "no such tool": an agent must not learn what
 * else exists. `has_parent`: it works for another agent, which needs a grant, too. */
void tci_decide_no_grant(const char *agent, const char *tool, bool has_parent,
                         struct tc_decision *d);

/* What the policy's owner is told, who needs no grant. `tool` NULL: there is none of that name. */
void tci_decide_owner(const struct tci_tool *tool, const char *name, struct tc_decision *d);

#endif
