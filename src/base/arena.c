/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the chunks behind an arena. Invariant: every chunk is on the list of exactly one arena. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { alignment = _Alignof(max_align_t) };

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TCI_ARENA_EXACT
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(TCI_ARENA_EXACT)
enum { first_chunk = 0, largest_chunk = 0 };
#else
/* Each is twice as large as the one before: most arenas are small, and every byte is cleared. */
enum { first_chunk = 2 * 1024, largest_chunk = 64 * 1024 };
#endif

struct chunk {
    struct chunk *next;
    _Alignas(max_align_t) unsigned char data[];
};

struct tci_arena {
    struct chunk *chunks;
    unsigned char *free_from;
    size_t free_bytes;
    size_t next_chunk;
};

struct tci_arena *tci_arena_new(void)
{
    struct tci_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->next_chunk = first_chunk;
    return arena;
}

void tci_arena_free(struct tci_arena *arena)
{
    struct chunk *next;
    if (!arena)
        return;
    for (struct chunk *c = arena->chunks; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

void tci_arena_freep(struct tci_arena **arena)
{
    tci_arena_free(*arena);
    *arena = NULL;
}

/* A new chunk with room for `size` bytes, put on the list. */
static struct chunk *add_chunk(struct tci_arena *arena, size_t size)
{
    struct chunk *c;
    if (size > SIZE_MAX - sizeof *c)
        return NULL;
    c = calloc(1, sizeof *c + size);
    if (!c)
        return NULL;
    c->next = arena->chunks;
    arena->chunks = c;
    return c;
}

void *tci_arena_alloc(struct tci_arena *arena, size_t size)
{
    size_t rounded;
    struct chunk *c;
    void *p;

    if (size == 0)
        size = 1; /* NULL means failure, so even nothing has an address */
    if (size > SIZE_MAX / 2)
        return NULL;
    rounded = (size + alignment - 1) & ~(size_t)(alignment - 1);
    if (rounded > arena->free_bytes) {
        /* Large requests get a chunk of their own and leave the present one in use. */
        size_t chunk = arena->next_chunk;
        bool own_chunk = rounded > chunk / 4;
        c = add_chunk(arena, own_chunk ? size : chunk);
        if (!c)
            return NULL;
        if (own_chunk)
            return c->data;
        arena->free_from = c->data;
        arena->free_bytes = chunk;
        arena->next_chunk = chunk == largest_chunk ? chunk : 2 * chunk;
    }
    p = arena->free_from;
    arena->free_from += rounded;
    arena->free_bytes -= rounded;
    return p;
}

void *tci_arena_array(struct tci_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return tci_arena_alloc(arena, count * size);
}

void *tci_arena_grow(struct tci_arena *arena, const void *items, size_t count, size_t size,
                     size_t *room)
{
    size_t wanted = *room ? 2 * *room : 16;
    void *grown = tci_arena_array(arena, wanted, size);
    if (!grown)
        return NULL;
    if (count)
        memcpy(grown, items, count * size);
    *room = wanted;
    return grown;
}

char *tci_arena_strndup(struct tci_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? tci_arena_alloc(arena, length + 1) : NULL;
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *tci_arena_strdup(struct tci_arena *arena, const char *text)
{
    return tci_arena_strndup(arena, text, strlen(text));
}

char *tci_arena_printf(struct tci_arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    text = tci_arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
