/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the settings that are plain numbers, as one table. */
#ifndef TCI_POLICY_LIMITS_H
#define TCI_POLICY_LIMITS_H

#include "policy/model.h"

/* The value of a numeric setting (timeout, memory, cpu, ...); the key must be one of them. */
uint64_t tci_limit(const struct tci_settings *settings, enum tci_key key);

/* Is the key a numeric setting? */
bool tci_key_is_limit(enum tci_key key);

/* What holds for a call under a grant (NULL: none): the smaller of the tool's and the grant's. */
uint64_t tci_effective_limit(const struct tci_tool *tool, const struct tci_grant *grant,
                             enum tci_key key);

#endif
