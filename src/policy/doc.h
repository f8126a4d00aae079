/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the document tree that the TOML and the YAML reader both produce: typed values, each key
 * and each value with its place in the file. Everything lives in one arena.
 */
#ifndef TCI_POLICY_DOC_H
#define TCI_POLICY_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"

/* A place in a file; both count from 1, columns in characters (code points). 0: no place. */
struct tci_pos {
    uint32_t line, column;
    uint32_t file; /* 0: the policy itself; else one of its tool files, or TCI_FILE_NONE */
};
#define tci_pos(l, c) ((struct tci_pos){ .line = (l), .column = (c) })

/* A text that is in no file of the policy: of a tool or grant that a program made. */
#define TCI_FILE_NONE UINT32_MAX

/* A file that belongs to a policy beside the policy itself; its index is pos.file - 1. */
struct tci_tool_file {
    const char *name; /* for messages: the directory as the policy names it, and the file */
    const char *path; /* absolute, normal form */
};

enum tci_node_type {
    TCI_NODE_TABLE,
    TCI_NODE_ARRAY,
    TCI_NODE_STRING,
    TCI_NODE_INTEGER,
    TCI_NODE_FLOAT,
    TCI_NODE_BOOLEAN,
    TCI_NODE_DATETIME,       /* with an offset: a moment */
    TCI_NODE_LOCAL_DATETIME, /* without one */
    TCI_NODE_LOCAL_DATE,
    TCI_NODE_LOCAL_TIME,
};

struct tci_datetime {
    int16_t year;
    int8_t month, day, hour, minute, second;
    uint32_t nanosecond;
    int16_t offset_minutes; /* only in a TCI_NODE_DATETIME */
};

/* Bytes of a string: UTF-8, NUL-terminated, and they may contain NULs (TOML allows \u0000). */
struct tci_text {
    const char *data;
    size_t length;
};

struct tci_node;

/* One key of a table, in file order. */
struct tci_entry {
    struct tci_text key;
    struct tci_pos key_pos;
    struct tci_node *value;
    struct tci_entry *next;        /* file order */
    struct tci_entry *next_bucket; /* hash chain */
    uint64_t hash;
};

struct tci_table {
    struct tci_entry *first, *last;
    struct tci_entry **buckets; /* NULL while the table is small */
    size_t count, bucket_count;
    unsigned reader_flags; /* private to the reader that builds the table */
};

struct tci_array {
    struct tci_node **items;
    size_t count, capacity;
    unsigned reader_flags;
};

struct tci_node {
    enum tci_node_type type;
    struct tci_pos pos; /* where the value starts; for a [table], its header's '[' */
    union {
        struct tci_table table;
        struct tci_array array;
        struct tci_text string;
        int64_t integer;
        double number;
        bool boolean;
        struct tci_datetime datetime;
    };
};

/* "a table", "a string", ...: for messages. */
const char *tci_node_type_name(enum tci_node_type type);

/* A new node in the arena; NULL when out of memory. */
struct tci_node *tci_node_new(struct tci_arena *arena, enum tci_node_type type, struct tci_pos pos);

/* Says of every place in the tree which file it is in. */
void tci_node_set_file(struct tci_node *node, uint32_t file);

/* The entry for a key, or NULL. Constant time, also against keys chosen to collide. */
struct tci_entry *tci_table_find(const struct tci_node *table, const char *key, size_t length);

/* Adds a key that is not there yet (the caller has looked). The key's bytes are not copied.
 * Returns the new entry, or NULL when out of memory. */
struct tci_entry *tci_table_add(struct tci_arena *arena, struct tci_node *table,
                                struct tci_text key, struct tci_pos key_pos,
                                struct tci_node *value);

/* Appends an item; -1 when out of memory. */
int tci_array_add(struct tci_arena *arena, struct tci_node *array,
                  struct tci_node *item) tci_must_check;

#define tci_table_foreach(entry, node)                                                             \
    for (struct tci_entry *entry = (node)->table.first; entry; entry = entry->next)

/* Is the text exactly this C string? */
bool tci_text_is(struct tci_text text, const char *literal);

/* Equal bytes? */
bool tci_text_equal(struct tci_text a, struct tci_text b);

#endif
