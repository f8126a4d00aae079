/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the names of the container backends' tables. */
#ifndef TCI_BACKEND_OCI_BACKENDS_H
#define TCI_BACKEND_OCI_BACKENDS_H

#include "backend/backend.h"

extern const struct tc_backend tci_backend_oci, tci_backend_gvisor;

#endif
