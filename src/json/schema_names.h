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

/* The bytes of a name as two numbers: up to 16 bytes, equal lengths and equal numbers mean equal
 * names. */
struct tci_name_tag {
    uint64_t first, last;
};

struct tci_name {
    const char *text; /* ends with NUL; may contain NULs too */
    size_t length;
    struct tci_name_tag tag;
};

struct tci_names {
    struct tci_name *items; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *slots; /* index + 1; 0: free */
    size_t slot_mask;
    unsigned slot_shift; /* slots are found by the upper bits of the hash */
    uint64_t key;
};

enum { TCI_NAMES_NONE = -1 };

/* The index of the name, which is added (copied) if it is new; -1: no memory. */
long tci_names_add(struct tci_arena *arena, struct tci_names *names, const char *text,
                   size_t length) tci_must_check;

static inline uint64_t tci_name_word(const char *text, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, text, size);
    return word;
}

/* Reads nothing behind the end: pieces that overlap cover every length. */
static inline struct tci_name_tag tci_name_tag(const char *text, size_t length)
{
    if (length >= 8)
        return (struct tci_name_tag){ tci_name_word(text, 8), tci_name_word(text + length - 8, 8) };
    if (length >= 4)
        return (struct tci_name_tag){ tci_name_word(text, 4) | tci_name_word(text + length - 4, 4)
                                                                   << 32,
                                      0 };
    if (length == 0)
        return (struct tci_name_tag){ 0, 0 };
    return (struct tci_name_tag){ (uint64_t)(unsigned char)text[0] |
                                      (uint64_t)(unsigned char)text[length / 2] << 8 |
                                      (uint64_t)(unsigned char)text[length - 1] << 16,
                                  0 };
}

/* Not cryptographic; mixes every byte with the key. The upper bits are the best. */
static inline uint64_t tci_name_hash(uint64_t key, struct tci_name_tag tag, const char *text,
                                     size_t length)
{
    const uint64_t one = 0x9e3779b97f4a7c15U, two = 0xc2b2ae3d27d4eb4fU;
    uint64_t hash = (tag.first ^ key) * one + (tag.last ^ length) * two;
    for (size_t i = 8; i + 8 < length; i += 8)
        hash = (hash ^ (hash >> 29) ^ tci_name_word(text + i, 8)) * one;
    return (hash ^ (hash >> 29)) * two;
}

static inline size_t tci_name_slot(const struct tci_names *names, struct tci_name_tag tag,
                                   const char *text, size_t length)
{
    return (size_t)(tci_name_hash(names->key, tag, text, length) >> names->slot_shift);
}

static inline bool tci_name_is(const struct tci_name *name, struct tci_name_tag tag,
                               const char *text, size_t length)
{
    return name->length == length && name->tag.first == tag.first && name->tag.last == tag.last &&
           (length <= 16 || memcmp(name->text, text, length) == 0);
}

/* The index of the name, or TCI_NAMES_NONE. The name at `guess` is looked at first: those of an
 * object often come in the order of the schema. */
static inline long tci_names_find_from(const struct tci_names *names, const char *text,
                                       size_t length, size_t guess)
{
    struct tci_name_tag tag;
    if (names->count == 0)
        return TCI_NAMES_NONE;
    tag = tci_name_tag(text, length);
    if (guess < names->count && tci_name_is(&names->items[guess], tag, text, length))
        return (long)guess;
    for (size_t slot = tci_name_slot(names, tag, text, length);;
         slot = (slot + 1) & names->slot_mask) {
        uint32_t index = names->slots[slot];
        if (index == 0)
            return TCI_NAMES_NONE;
        if (tci_name_is(&names->items[index - 1], tag, text, length))
            return (long)index - 1;
    }
}

static inline long tci_names_find(const struct tci_names *names, const char *text, size_t length)
{
    return tci_names_find_from(names, text, length, SIZE_MAX);
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
