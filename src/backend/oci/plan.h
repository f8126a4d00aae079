/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files that compile a container's plan share among themselves. */
#ifndef TCI_BACKEND_OCI_PLAN_H
#define TCI_BACKEND_OCI_PLAN_H

#include "backend/oci/oci.h"

/* plan_limits.c: which mechanism keeps which limit; fills limits, cgroup_limits, use_cgroup, watch_*. */
void tci_oci_limits(struct tci_oci_plan *plan);
/* plan_users.c: as whom the command runs, in the container and on the host. */
int tci_oci_users(struct tci_oci_plan *plan, struct tc_error *reterr);

/* mounts.c: the path of the host behind a path of the container, in `buffer`; NULL: it is not from the
 * host (the image of an engine, memory of the cage's own). */
const char *tci_oci_host_path(const struct tci_oci_plan *plan, const char *cage, char *buffer,
                              size_t size);

#endif
