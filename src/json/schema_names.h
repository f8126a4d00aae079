/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a table of names that is built once and then only asked: properties, and choices of `enum`.
 * Its hash has a key that nobody outside knows, so that a schema with a million names that collide
 * cannot be written.
 */
#ifndef TCI_JSON_SCHEMA_NAMES_H
#define TCI_JSON_SCHEMA_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/arena.h"

struct tci_name {
    const char *text; /* ends with NUL; may contain NULs too */
    size_t length;
};

struct tci_names {
    struct tci_name *items; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *slots; /* index + 1; 0: free */
    size_t slot_mask;
    uint64_t key;
};

enum { TCI_NAMES_NONE = -1 };

/* The index of the name, which is added (copied) if it is new; -1: no memory. */
long tci_names_add(struct tci_arena *arena, struct tci_names *names, const char *text,
                   size_t length) tci_must_check;

static inline uint64_t tci_names_word(const char *text, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, text, size);
    return word;
}

/* Not cryptographic; mixes every byte with the key. */
static inline uint64_t tci_names_hash(uint64_t key, const char *text, size_t length)
{
    const uint64_t factor = 0x9e3779b97f4a7c15U;
    uint64_t hash = (key ^ length) * factor;
    size_t i = 0;

    for (; length - i > 8; i += 8)
        hash = (hash ^ (hash >> 29) ^ tci_names_word(text + i, 8)) * factor;
    if (length >= 8)
        hash ^= tci_names_word(text + length - 8, 8);
    else if (length >= 4)
        hash ^= tci_names_word(text, 4) | tci_names_word(text + length - 4, 4) << 32;
    else if (length > 0)
        hash ^= (uint64_t)(unsigned char)text[0] | (uint64_t)(unsigned char)text[length / 2] << 8 |
                (uint64_t)(unsigned char)text[length - 1] << 16;
    hash = (hash ^ (hash >> 29)) * factor;
    return hash ^ (hash >> 32);
}

/* The index of the name, or TCI_NAMES_NONE. */
static inline long tci_names_find(const struct tci_names *names, const char *text, size_t length)
{
    if (names->count == 0)
        return TCI_NAMES_NONE;
    for (size_t slot = tci_names_hash(names->key, text, length) & names->slot_mask;;
         slot = (slot + 1) & names->slot_mask) {
        uint32_t index = names->slots[slot];
        if (index == 0)
            return TCI_NAMES_NONE;
        const struct tci_name *name = &names->items[index - 1];
        if (name->length == length && memcmp(name->text, text, length) == 0)
            return (long)index - 1;
    }
}

/* Names that lead to something. */
struct tci_name_map {
    struct tci_names names;
    void **values; /* by index of the name */
    size_t capacity;
};

/* Adds or replaces; false: no memory. */
bool tci_name_map_put(struct tci_arena *arena, struct tci_name_map *map, const char *text,
                      size_t length, void *value) tci_must_check;

static inline void *tci_name_map_get(const struct tci_name_map *map, const char *text,
                                     size_t length)
{
    long index = tci_names_find(&map->names, text, length);
    return index < 0 ? NULL : map->values[index];
}

#endif
