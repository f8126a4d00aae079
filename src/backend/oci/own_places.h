/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the directories that decide what containers run, and so no tool may write. */
#ifndef TCI_BACKEND_OCI_OWN_PLACES_H
#define TCI_BACKEND_OCI_OWN_PLACES_H

#include "base/arena.h"
#include "policy/reach.h"

struct tci_oci_plan;

enum { TCI_OWN_PLACES_MAX = 8 };

/* Who takes something from there. Bits. */
enum { TCI_OWN_BARE = 1, TCI_OWN_PODMAN = 2, TCI_OWN_DOCKER = 4, TCI_OWN_ALL = 7 };

struct tci_own_places {
    struct tci_own_place items[TCI_OWN_PLACES_MAX];
    size_t count;
};

/* Texts are in the arena. Places that are not there yet are named, too. -1: no memory. */
int tci_own_places(struct tci_arena *arena, unsigned who,
                   struct tci_own_places *ret) tci_must_check;

/* Refuses a plan that would run what a tool of its policy could have changed. */
int tci_oci_check_places(const struct tci_oci_plan *plan, struct tc_error *reterr) tci_must_check;

#endif
