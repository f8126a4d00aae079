/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what must hold for the TOML reader whatever the bytes: a tree or an error, both with places
 * inside the document, nothing deeper than promised, every text UTF-8, every message printable.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "policy/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bounds {
    const char *bytes;
    size_t size;
    size_t lines;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static size_t count_lines(const char *bytes, size_t size)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    return lines;
}

/* A column can be one behind the line, where something was missing, but no further. */
static void check_pos(const struct bounds *b, unsigned line, unsigned column)
{
    check(line >= 1 && line <= b->lines);
    check(column >= 1 && column <= b->size + 1);
}

/* The exact test, for one place per document: it takes a pass over the document. */
static void check_pos_in_line(const struct bounds *b, unsigned line, unsigned column)
{
    const char *p = b->bytes, *end = b->bytes + b->size;
    check_pos(b, line, column);
    for (; line > 1; line--)
        p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    for (; column > 1; column--, p++)
        check(p < end && *p != '\n');
}

static void check_utf8(const char *text, size_t length)
{
    uint32_t code_point;
    for (size_t size, done = 0; done < length; done += size) {
        size = tci_utf8_decode(text + done, length - done, &code_point);
        check(size > 0);
    }
}

static void check_text(struct tci_text text)
{
    check(text.data && text.data[text.length] == '\0');
    check_utf8(text.data, text.length);
}

static void check_message(const char *text)
{
    uint32_t code_point;
    for (size_t size, done = 0, length = strlen(text); done < length; done += size) {
        size = tci_utf8_decode(text + done, length - done, &code_point);
        check(size > 0 && code_point >= ' ' && !(code_point >= 0x7f && code_point <= 0xa0));
        check(!(code_point >= 0x200b && code_point <= 0x200f));
        check(!(code_point >= 0x2028 && code_point <= 0x202e));
    }
}

static void check_node(const struct bounds *b, const struct tci_node *node, unsigned depth)
{
    check(depth <= TCI_TOML_DEPTH_MAX);
    check_pos(b, node->pos.line, node->pos.column);
    if (node->type == TCI_NODE_TABLE) {
        size_t count = 0;
        tci_table_foreach (entry, node) {
            check_text(entry->key);
            check_pos(b, entry->key_pos.line, entry->key_pos.column);
            check(tci_table_find(node, entry->key.data, entry->key.length) == entry);
            check_node(b, entry->value, depth + 1);
            count++;
        }
        check(count == node->table.count);
    } else if (node->type == TCI_NODE_ARRAY) {
        for (size_t i = 0; i < node->array.count; i++)
            check_node(b, node->array.items[i], depth + 1);
    } else if (node->type == TCI_NODE_STRING) {
        check_text(node->string);
    }
}

static bool read_as(const struct bounds *b, enum tci_toml_version version)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_node *root = NULL;
    struct tc_error error = { 0 };
    bool good;

    check(arena);
    good = tci_toml_parse(arena, b->bytes, b->size, version, &root, &error) == 0;
    check(good == (root != NULL));
    check(good == (error.code == TC_ERROR_NONE));
    if (good) {
        check_node(b, root, 0);
    } else {
        check(error.code == TC_ERROR_SYNTAX || error.code == TC_ERROR_TOO_LARGE);
        check(error.message[0]);
        check_pos_in_line(b, error.line, error.column);
        check_message(error.message);
        check_message(error.remedy);
    }
    tci_arena_free(arena);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of the exact size, so that a read beyond the end is one beyond an allocation. */
    char *bytes = malloc(size ? size : 1);
    struct bounds b = { bytes, size, 0 };

    check(bytes);
    if (size)
        memcpy(bytes, data, size);
    b.lines = count_lines(bytes, size);
    /* Whatever TOML 1.0 allows, TOML 1.1 allows. */
    bool good = read_as(&b, TCI_TOML_1_0);
    check(read_as(&b, TCI_TOML_1_1) || !good);
    free(bytes);
    return 0;
}
