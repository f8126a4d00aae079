/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files behind a function handler share. docs/handlers.md has the whole story. */
#ifndef TCI_BACKEND_NATIVE_FUNCTION_H
#define TCI_BACKEND_NATIVE_FUNCTION_H

#include <stdbool.h>

/*
 * function_stage.c: from a fork of the host, born in the namespaces of the cage, into the cage. `line`
 * leads to init. Returns with everything in force and no descriptor but 0, 1 and 2. Otherwise it
 * reports why, and the process ends.
 */
void tci_stage_enter(bool is_jail, bool is_mapped, int line);

/*
 * function_memory.c: takes memory away that this process shares with others, where it could write to
 * it: what a fork copies is a copy, but this is not. System calls only. 0, or -1 with errno.
 */
int tci_native_forget_shared(void);

#endif
