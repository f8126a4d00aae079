/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what must hold for the YAML reader whatever the bytes: a tree or an error, both with places
 * inside the document and in its order, nothing deeper than promised, every text UTF-8, every date
 * one that exists, every message printable.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "policy/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct document {
    const char *bytes;
    size_t size;
    struct tci_pos last; /* the place that the walk has reached */
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* A pass over the document, so only for one place of it. A column can be one behind the line, where
 * something was missing, but no further. */
static void check_pos_in_line(const struct document *d, unsigned line, unsigned column)
{
    const char *p = d->bytes, *end = d->bytes + d->size;
    bool first = line == 1;
    uint32_t code_point;

    check(line >= 1 && column >= 1);
    for (; line > 1; line--) {
        p = memchr(p, '\n', (size_t)(end - p));
        check(p != NULL);
        p++;
    }
    if (first && d->size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (size_t size; column > 1; column--, p += size) {
        size = tci_utf8_decode(p, (size_t)(end - p), &code_point);
        check(size > 0 && *p != '\n');
    }
}

/* Places come in file order: a table, its first key, that key's value. */
static void check_order(struct document *d, struct tci_pos pos)
{
    check(pos.line >= 1 && pos.column >= 1);
    check(pos.line > d->last.line || (pos.line == d->last.line && pos.column >= d->last.column));
    d->last = pos;
}

static void check_text(struct tci_text text)
{
    uint32_t code_point;
    check(text.data && text.data[text.length] == '\0');
    for (size_t size, done = 0; done < text.length; done += size) {
        size = tci_utf8_decode(text.data + done, text.length - done, &code_point);
        check(size > 0);
    }
}

static void check_message(const char *text)
{
    uint32_t c;
    for (size_t size, done = 0, length = strlen(text); done < length; done += size) {
        size = tci_utf8_decode(text + done, length - done, &c);
        check(size > 0 && c >= ' ' && !(c >= 0x7f && c <= 0xa0));
        check(!(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e));
        check(!(c >= 0x2060 && c <= 0x206f) && c != 0xfeff && c != 0xad);
    }
}

static void check_date(const struct tci_datetime *t)
{
    check(t->year >= 0 && t->year <= 9999 && t->month >= 1 && t->month <= 12);
    check(t->day >= 1 && t->day <= 31 && t->hour >= 0 && t->hour <= 23);
    check(t->minute >= 0 && t->minute <= 59 && t->second >= 0 && t->second <= 60);
    check(t->nanosecond < 1000000000 && abs(t->offset_minutes) < 24 * 60);
}

static void check_node(struct document *d, const struct tci_node *node, unsigned depth)
{
    check(depth <= TCI_YAML_DEPTH_MAX);
    check_order(d, node->pos);
    switch (node->type) {
    case TCI_NODE_TABLE: {
        size_t count = 0;
        tci_table_foreach (entry, node) {
            check_text(entry->key);
            check_order(d, entry->key_pos);
            check(tci_table_find(node, entry->key.data, entry->key.length) == entry);
            check_node(d, entry->value, depth + 1);
            count++;
        }
        check(count == node->table.count);
        break;
    }
    case TCI_NODE_ARRAY:
        for (size_t i = 0; i < node->array.count; i++)
            check_node(d, node->array.items[i], depth + 1);
        break;
    case TCI_NODE_STRING:
        check_text(node->string);
        break;
    case TCI_NODE_DATETIME:
    case TCI_NODE_LOCAL_DATETIME:
    case TCI_NODE_LOCAL_DATE:
        check_date(&node->datetime);
        break;
    case TCI_NODE_INTEGER:
    case TCI_NODE_FLOAT:
    case TCI_NODE_BOOLEAN:
        break;
    case TCI_NODE_LOCAL_TIME: /* YAML has none */
        check(false);
        break;
    }
}

static void check_error(const struct document *d, const struct tc_error *error)
{
    check(error->code == TC_ERROR_SYNTAX || error->code == TC_ERROR_TOO_LARGE);
    check(error->message[0]);
    check_message(error->message);
    check_message(error->remedy);
    if (d->size <= TCI_YAML_SIZE_MAX)
        check_pos_in_line(d, error->line, error->column);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of the exact size, so that a read beyond the end is one beyond an allocation. */
    char *bytes = malloc(size ? size : 1);
    struct document d = { .bytes = bytes, .size = size };
    struct tci_arena *arena = tci_arena_new();
    struct tci_node *root = NULL;
    struct tc_error error = { 0 };

    check(bytes && arena);
    if (size)
        memcpy(bytes, data, size);
    bool good = tci_yaml_parse(arena, bytes, size, &root, &error) == 0;
    check(good == (root != NULL) && good == (error.code == TC_ERROR_NONE));
    if (good) {
        check_node(&d, root, 0);
        check_pos_in_line(&d, d.last.line, d.last.column);
    } else {
        check_error(&d, &error);
    }
    tci_arena_free(arena);
    free(bytes);
    return 0;
}
