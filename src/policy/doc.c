/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tables and arrays of the document tree.
 * Invariant: a table has buckets once it holds more than `linear_max` keys, and then each entry is
 * in exactly one chain. The hash is keyed with a value that differs from run to run, so that a
 * hostile file cannot choose keys that all fall into one chain.
 */
#include "policy/doc.h"

#include <string.h>
#include <sys/auxv.h>
#include "base/siphash.h"

enum { linear_max = 8 };

const char *tci_node_type_name(enum tci_node_type type)
{
    static const char *const names[] = {
        [TCI_NODE_TABLE] = "a table",
        [TCI_NODE_ARRAY] = "an array",
        [TCI_NODE_STRING] = "a string",
        [TCI_NODE_INTEGER] = "an integer",
        [TCI_NODE_FLOAT] = "a float",
        [TCI_NODE_BOOLEAN] = "a boolean",
        [TCI_NODE_DATETIME] = "a date and time",
        [TCI_NODE_LOCAL_DATETIME] = "a local date and time",
        [TCI_NODE_LOCAL_DATE] = "a date",
        [TCI_NODE_LOCAL_TIME] = "a time",
    };
    return (size_t)type < tci_array_size(names) ? names[type] : "a value";
}

struct tci_node *tci_node_new(struct tci_arena *arena, enum tci_node_type type, struct tci_pos pos)
{
    struct tci_node *node = tci_arena_new_of(arena, struct tci_node);
    if (!node)
        return NULL;
    node->type = type;
    node->pos = pos;
    return node;
}

/* Keyed with what the kernel chose for this process (AT_RANDOM: 16 random bytes). */
static uint64_t hash_key(const char *key, size_t length)
{
    uint64_t seed[2] = { 0, 0 };
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    if (random)
        memcpy(seed, random, sizeof seed);
    return tci_siphash(seed, key, length);
}

bool tci_text_equal(struct tci_text a, struct tci_text b)
{
    return a.length == b.length && (!a.length || memcmp(a.data, b.data, a.length) == 0);
}

bool tci_text_is(struct tci_text text, const char *literal)
{
    return tci_text_equal(text, (struct tci_text){ literal, strlen(literal) });
}

struct tci_entry *tci_table_find(const struct tci_node *table, const char *key, size_t length)
{
    const struct tci_table *t = &table->table;
    struct tci_text wanted = { key, length };

    if (!t->buckets) {
        for (struct tci_entry *e = t->first; e; e = e->next)
            if (tci_text_equal(e->key, wanted))
                return e;
        return NULL;
    }
    uint64_t hash = hash_key(key, length);
    for (struct tci_entry *e = t->buckets[hash & (t->bucket_count - 1)]; e; e = e->next_bucket)
        if (e->hash == hash && tci_text_equal(e->key, wanted))
            return e;
    return NULL;
}

static void put_in_bucket(struct tci_table *t, struct tci_entry *e)
{
    struct tci_entry **bucket = &t->buckets[e->hash & (t->bucket_count - 1)];
    e->next_bucket = *bucket;
    *bucket = e;
}

/* Doubles the number of buckets. The old array stays in the arena: at most as large again. */
static int grow_buckets(struct tci_arena *arena, struct tci_table *t)
{
    size_t count = t->bucket_count ? t->bucket_count * 2 : (size_t)4 * linear_max;
    struct tci_entry **buckets = tci_arena_new_array(arena, count, struct tci_entry *);
    if (!buckets)
        return -1;
    t->buckets = buckets;
    t->bucket_count = count;
    for (struct tci_entry *e = t->first; e; e = e->next) {
        e->hash = hash_key(e->key.data, e->key.length);
        put_in_bucket(t, e);
    }
    return 0;
}

struct tci_entry *tci_table_add(struct tci_arena *arena, struct tci_node *table,
                                struct tci_text key, struct tci_pos key_pos, struct tci_node *value)
{
    struct tci_table *t = &table->table;
    struct tci_entry *e = tci_arena_new_of(arena, struct tci_entry);
    if (!e)
        return NULL;
    if (t->count >= linear_max && t->count >= t->bucket_count && grow_buckets(arena, t) < 0)
        return NULL;
    e->key = key;
    e->key_pos = key_pos;
    e->value = value;
    if (t->last)
        t->last->next = e;
    else
        t->first = e;
    t->last = e;
    t->count++;
    if (t->buckets) {
        e->hash = hash_key(key.data, key.length);
        put_in_bucket(t, e);
    }
    return e;
}

int tci_array_add(struct tci_arena *arena, struct tci_node *array, struct tci_node *item)
{
    struct tci_array *a = &array->array;
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? a->capacity * 2 : 4;
        struct tci_node **items = tci_arena_new_array(arena, capacity, struct tci_node *);
        if (!items)
            return -1;
        if (a->count)
            memcpy(items, a->items, a->count * sizeof *items);
        a->items = items;
        a->capacity = capacity;
    }
    a->items[a->count++] = item;
    return 0;
}

/* Trees are at most as deep as the readers allow (64), so that recursion is bounded. */
void tci_node_set_file(struct tci_node *node, uint32_t file)
{
    node->pos.file = file;
    if (node->type == TCI_NODE_ARRAY)
        for (size_t i = 0; i < node->array.count; i++)
            tci_node_set_file(node->array.items[i], file);
    if (node->type != TCI_NODE_TABLE)
        return;
    tci_table_foreach (entry, node) {
        entry->key_pos.file = file;
        tci_node_set_file(entry->value, file);
    }
}
