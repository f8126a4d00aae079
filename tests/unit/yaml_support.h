/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of policy/yaml.h share: documents, and how one is refused. */
#ifndef TCI_TESTS_YAML_SUPPORT_H
#define TCI_TESTS_YAML_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "policy/yaml.h"

struct document {
    struct tci_arena *arena;
    struct tci_node *root;
    struct tc_error error;
    int result;
};

static inline struct document parse_bytes(const char *bytes, size_t length)
{
    struct document d = { .arena = tci_arena_new() };
    assert_non_null(d.arena);
    d.result = tci_yaml_parse(d.arena, bytes, length, &d.root, &d.error);
    return d;
}

static inline struct document parse(const char *text)
{
    struct document d = parse_bytes(text, strlen(text));
    if (d.result < 0)
        fail_msg("%s\n%u:%u: %s", text, d.error.line, d.error.column, d.error.message);
    return d;
}

static inline const struct tci_entry *entry_of(const struct tci_node *table, const char *key)
{
    assert_int_equal(table->type, TCI_NODE_TABLE);
    const struct tci_entry *entry = tci_table_find(table, key, strlen(key));
    if (!entry)
        fail_msg("no key %s", key);
    return entry;
}

static inline const struct tci_node *value_of(const struct tci_node *table, const char *key)
{
    return entry_of(table, key)->value;
}

static inline void assert_string(const struct tci_node *node, const char *expected)
{
    assert_int_equal(node->type, TCI_NODE_STRING);
    assert_string_equal(node->string.data, expected);
    assert_int_equal(node->string.length, strlen(expected));
}

static inline void assert_printable(const char *text)
{
    for (; *text; text++)
        assert_true((unsigned char)*text >= 0x20 && *text != 0x7f);
}

struct refusal {
    const char *text;
    unsigned line, column;
    const char *message, *remedy; /* parts of them */
};

static inline void assert_refused_bytes(const char *bytes, size_t length,
                                        const struct refusal *expected)
{
    struct document d = parse_bytes(bytes, length);
    if (d.result == 0)
        fail_msg("accepted: %s", bytes);
    if (!strstr(d.error.message, expected->message) || !strstr(d.error.remedy, expected->remedy) ||
        d.error.line != expected->line || d.error.column != expected->column)
        fail_msg("%s\n%u:%u: %s; %s", bytes, d.error.line, d.error.column, d.error.message,
                 d.error.remedy);
    assert_null(d.root);
    assert_int_equal(d.error.code, TC_ERROR_SYNTAX);
    assert_printable(d.error.message);
    assert_printable(d.error.remedy);
    tci_arena_free(d.arena);
}

static inline void assert_all_refused(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused_bytes(refusals[i].text, strlen(refusals[i].text), &refusals[i]);
}

#endif
