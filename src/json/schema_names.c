/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: building tables of names. Invariant: at least half of the slots are free, so a search ends. */
#include "json/schema_names.h"

static void put(struct tci_names *names, uint32_t index)
{
    const struct tci_name *name = &names->items[index - 1];
    size_t slot = tci_name_slot(names, name->tag, name->text, name->length);
    while (names->slots[slot])
        slot = (slot + 1) & names->slot_mask;
    names->slots[slot] = index;
}

/* Doubles the room. What it had before stays in the arena: together less than what it has now. */
static bool grow(struct tci_arena *arena, struct tci_names *names)
{
    size_t capacity = names->capacity ? names->capacity * 2 : 8;
    struct tci_name *items;
    uint32_t *slots;

    if (capacity > UINT32_MAX / 4)
        return false;
    items = tci_arena_new_array(arena, capacity, struct tci_name);
    slots = tci_arena_new_array(arena, capacity * 2, uint32_t);
    if (!items || !slots)
        return false;
    if (names->count)
        memcpy(items, names->items, names->count * sizeof *items);
    names->items = items;
    names->slots = slots;
    names->slot_mask = capacity * 2 - 1;
    names->slot_shift = (unsigned)__builtin_clzll(names->slot_mask);
    names->capacity = capacity;
    for (size_t i = 0; i < names->count; i++)
        put(names, (uint32_t)i + 1);
    return true;
}

long tci_names_add(struct tci_arena *arena, struct tci_names *names, const char *text,
                   size_t length)
{
    long known = tci_names_find(names, text, length);
    char *copy;

    if (known != TCI_NAMES_NONE)
        return known;
    if (names->count == names->capacity && !grow(arena, names))
        return -1;
    copy = tci_arena_strndup(arena, text, length);
    if (!copy)
        return -1;
    names->items[names->count] = (struct tci_name){ copy, length, tci_name_tag(copy, length) };
    names->count++;
    put(names, (uint32_t)names->count);
    return (long)names->count - 1;
}

bool tci_name_map_put(struct tci_arena *arena, struct tci_name_map *map, const char *text,
                      size_t length, void *value)
{
    long index = tci_names_add(arena, &map->names, text, length);
    if (index < 0)
        return false;
    if ((size_t)index >= map->capacity) {
        void **values = tci_arena_new_array(arena, map->names.capacity, void *);
        if (!values)
            return false;
        if (map->capacity)
            memcpy(values, map->values, map->capacity * sizeof(void *));
        map->values = values;
        map->capacity = map->names.capacity;
    }
    map->values[index] = value;
    return true;
}
