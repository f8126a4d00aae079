/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: guessing which known word a misspelt one was meant to be. */
#ifndef TCI_BASE_NEAREST_H
#define TCI_BASE_NEAREST_H

#include <stddef.h>

/*
 * The word that needs the fewest edits (insert, delete, replace, swap neighbours; letter case is
 * half an edit, and half of one for the whole word when nothing else differs), or NULL when none
 * is near enough to be worth suggesting. `words` ends with NULL.
 */
const char *tci_nearest_word(const char *text, size_t length, const char *const *words);

#endif
