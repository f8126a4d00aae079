/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the environment of a cage, and where its command starts. */
#ifndef TCI_BACKEND_ENVIRONMENT_H
#define TCI_BACKEND_ENVIRONMENT_H

#include "base/arena.h"
#include "base/error.h"
#include "policy/model.h"

/* Where a cage looks for programs. */
extern const char tci_search_path[];

/* NAME=VALUE, ends with NULL; NULL: no memory. */
const char **tci_environment(struct tci_arena *arena, const struct tci_settings *settings);

const char *tci_start_directory(const struct tci_settings *settings);

#endif
