/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the names of the native backends, for the registry. */
#ifndef TCI_BACKEND_NATIVE_BACKENDS_H
#define TCI_BACKEND_NATIVE_BACKENDS_H

#include "backend/backend.h"

extern const struct tc_backend tci_backend_process, tci_backend_jail;

#endif
