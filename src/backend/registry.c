/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: which backends this build has. A kind that is not here is refused, never replaced. */
#include "backend/backend.h"
#include "backend/native/backends.h"
#include "backend/oci/backends.h"

const struct tc_backend *tci_backend_for(enum tci_backend_kind kind)
{
    switch (kind) {
    case TCI_BACKEND_PROCESS:
        return &tci_backend_process;
    case TCI_BACKEND_JAIL:
        return &tci_backend_jail;
    case TCI_BACKEND_OCI:
        return &tci_backend_oci;
    case TCI_BACKEND_GVISOR:
        return &tci_backend_gvisor;
    case TCI_BACKEND_WASM:
    case TCI_BACKEND_MICROVM:
    case TCI_BACKEND_KIND_COUNT:
        break;
    }
    return NULL;
}
