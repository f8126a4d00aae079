/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: which paths a cage has: the rules of the policy, and what every cage has besides. One table
 * for decisions and for backends. */
#ifndef TCI_POLICY_CAGE_PATHS_H
#define TCI_POLICY_CAGE_PATHS_H

#include "policy/model.h"

struct tci_cage_path {
    const char *path;
    enum tci_access access;
    const char *key; /* the policy key that gives it; "" for what every cage has */
};

/* The most specific one that contains `path`, for this tool; NULL when there is none. */
const struct tci_cage_path *tci_cage_path_find(const struct tci_settings *settings,
                                               const char *path);

/* All of them for this tool, one by one; NULL behind the last. */
const struct tci_cage_path *tci_cage_path_at(const struct tci_settings *settings, size_t index);

/* The rule of the policy that speaks about `path` (normal form): the most specific one, and at the
 * same path hidden beats readable beats writable. NULL when there is none. */
const struct tci_path_rule *tci_path_rule_find(const struct tci_filesystem *fs, const char *path);

#endif
