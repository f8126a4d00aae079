/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files that write a bundle's config.json share. */
#ifndef TCI_BACKEND_OCI_SPEC_H
#define TCI_BACKEND_OCI_SPEC_H

#include "backend/oci/plan.h"
#include "json/write.h"

/* Has the container a user namespace of its own, besides the stage's? */
bool tci_oci_has_user_namespace(const struct tci_oci_plan *plan);
/* spec_mounts.c: the member "mounts". */
void tci_oci_spec_mounts(struct tci_json *json, const struct tci_oci_plan *plan);
/* spec_resources.c: the member "resources" of "linux". */
void tci_oci_spec_resources(struct tci_json *json, const struct tci_oci_plan *plan);

#endif
