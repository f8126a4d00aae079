/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: who speaks about a path of a cage. The same order of precedence for jails and containers: the most
 * specific path wins; at one path hidden beats readable beats writable; the policy beats what every cage has,
 * and hidden does so even below it.
 */
#ifndef TCI_BACKEND_PLACES_H
#define TCI_BACKEND_PLACES_H

#include "base/arena.h"
#include "policy/cage_paths.h"
#include "policy/model.h"

/* A path of the cage and what the policy says about it; `rule` NULL: what every cage has. */
struct tci_place {
    const char *path;
    const struct tci_path_rule *rule;
    const struct tci_cage_path *own; /* of a jail, without a rule */
};

struct tci_places {
    struct tci_place *items;
    size_t count;
};

/* The shared object of a tool's handler, seen at `cage`: no rule of the policy, and so no grant can take it
 * away. -1: no memory. There is room for it. */
int tci_places_add_library(struct tci_places *places, struct tci_arena *arena, const char *library,
                           const char *cage);
/* What every cage has disappears inside what the policy hides. */
bool tci_places_is_hidden(const struct tci_filesystem *fs, const char *path);
/* Parents first, and of each path only the one that counts. */
void tci_places_settle(struct tci_places *places);
/* Is anything placed below it? */
bool tci_places_has_inside(const struct tci_places *places, const char *path);

#endif
