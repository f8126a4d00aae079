/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files that compile a container's mounts share: mounts.c (who speaks about a path),
 * mount_rules.c (what the policy grants and hides), mount_list.c (the list, and what lies where). */
#ifndef TCI_BACKEND_OCI_MOUNTS_H
#define TCI_BACKEND_OCI_MOUNTS_H

#include "backend/oci/plan.h"
#include "backend/places.h"

struct tci_oci_mount_build {
    struct tci_oci_plan *plan;
    struct tc_error *reterr;
    struct tci_places places;
    size_t capacity;                      /* of plan->mounts */
    size_t masked_count, masked_capacity; /* of plan->masked, without its NULL */
};

/* Files of the account that every container has of its own: passwd and group, the first of etc_files.h. */
enum { TCI_OCI_ACCOUNTS = 2 };
/* mounts.c: not where an engine's image knows the user by name. */
bool tci_oci_brings_accounts(const struct tci_oci_plan *plan);

/* ---- mount_list.c ---------------------------------------------------------------------------------- */

/* One more mount; `cage` outlives the plan. NULL: *reterr is set. */
struct tci_oci_mount *tci_oci_mount_add(struct tci_oci_mount_build *b, enum tci_oci_mount_kind kind,
                                        const char *cage);
int tci_oci_mask(struct tci_oci_mount_build *b, const char *cage);
/* The mount that `path` would lie on, so far; NULL: the image itself. */
const struct tci_oci_mount *tci_oci_mount_around(const struct tci_oci_plan *plan, const char *path);
/* What is at `cage` in the directory of the host that it lies in, or in the bundle's root. 1: a
 * directory, 0: a file, negative errno. No link is followed. */
int tci_oci_mount_look(const struct tci_oci_plan *plan, const char *cage);
/* runc gives a tmpfs the mode of what it lies on, whatever the bundle says: the stage makes it. */
bool tci_oci_stages_memory(const struct tci_oci_plan *plan);

/* ---- mount_rules.c --------------------------------------------------------------------------------- */

int tci_oci_place_rule(struct tci_oci_mount_build *b, const struct tci_path_rule *rule);

#endif
