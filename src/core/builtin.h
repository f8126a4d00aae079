/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the policy of those who have none. */
#ifndef TCI_CORE_BUILTIN_H
#define TCI_CORE_BUILTIN_H

#include "policy/load.h"

/* The present directory readable at /workspace, which is where commands start; every other value is
 * the built-in one. It has no tools: only calls that name none run under it. */
int tci_builtin_policy(struct tc_policy **ret, struct tc_error *reterr) tci_must_check;

#endif
