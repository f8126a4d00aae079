/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: memory that lives and dies together. A policy is one arena: nothing in it is freed on its
 * own, so no error path can leak or free twice.
 * In sanitizer builds every allocation is a malloc of its own, so that ASan sees each boundary.
 */
#ifndef TCI_BASE_ARENA_H
#define TCI_BASE_ARENA_H

#include <stddef.h>
#include "base/attr.h"

struct tci_arena;

/* NULL when out of memory. */
struct tci_arena *tci_arena_new(void) tci_must_check;
void tci_arena_free(struct tci_arena *arena);
void tci_arena_freep(struct tci_arena **arena);

/* Zeroed, aligned for any type, valid until the arena is freed; NULL when out of memory. */
void *tci_arena_alloc(struct tci_arena *arena, size_t size) tci_must_check;
/* The same for `count` elements; NULL also when count * size overflows. */
void *tci_arena_array(struct tci_arena *arena, size_t count, size_t size) tci_must_check;

/* A copy of `items`, which hold `count`, with twice the *room (at first some); the rest is zeroed. NULL when out
 * of memory: *room is as it was. */
void *tci_arena_grow(struct tci_arena *arena, const void *items, size_t count, size_t size,
                     size_t *room) tci_must_check;

/* Copies with a terminating NUL. The bytes may contain NULs. */
char *tci_arena_strndup(struct tci_arena *arena, const char *text, size_t length) tci_must_check;
char *tci_arena_strdup(struct tci_arena *arena, const char *text) tci_must_check;
char *tci_arena_printf(struct tci_arena *arena, const char *format, ...) tci_must_check
    tci_printf_like(2, 3);

#define tci_arena_new_of(arena, type) ((type *)tci_arena_alloc((arena), sizeof(type)))
#define tci_arena_new_array(arena, count, type)                                                    \
    ((type *)tci_arena_array((arena), (count), sizeof(type)))

#endif
