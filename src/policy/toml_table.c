/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which table or array may be defined or extended by what, and what is said when it may not.
 *
 *   made by                         a later [header]   [header.child]   key.child = in its parent
 *   a header that names a child     defines it         enters           enters, and defines it
 *   [header], [[header]] element    refused            enters           refused
 *   a dotted key                    refused            enters           enters
 *   braces, brackets, a value       refused            refused          refused
 *   [[header]], as an array         [[header]] only    last element     refused
 *
 * A dotted key can meet a table that a dotted key made only below the same header: from any other
 * the way leads through a table that has a header, which is refused.
 */
#include "policy/toml_internal.h"

/* Where the author will look for what is in the way: a table's header, otherwise its key. */
static unsigned line_of(const struct tci_entry *entry)
{
    const struct tci_node *value = entry->value;
    bool header = value->type == TCI_NODE_TABLE && value->table.reader_flags == TCI_TOML_EXPLICIT;
    return header ? value->pos.line : entry->key_pos.line;
}

static const char *kind_of(const struct tci_node *value)
{
    bool inline_table = value->type == TCI_NODE_TABLE &&
                        value->table.reader_flags & TCI_TOML_INLINE;
    return inline_table ? "an inline table" : tci_node_type_name(value->type);
}

/* The key is there and cannot be stepped into. */
static int fail_enter(struct tci_toml *t, const struct tci_toml_key *key,
                      const struct tci_entry *entry)
{
    const struct tci_node *value = entry->value;
    struct tci_toml_excerpt name = tci_toml_quoted(key->text);
    unsigned line = line_of(entry);

    if (value->type == TCI_NODE_TABLE && value->table.reader_flags & TCI_TOML_INLINE) {
        tci_toml_fail_pos(t, key->pos, "%s is an inline table, complete since line %u", name.text,
                          line);
        tci_error_remedy(t->reterr, "add the key between its braces, or turn it into a [table]");
    } else if (value->type == TCI_NODE_TABLE) {
        tci_toml_fail_pos(t, key->pos, "the table %s was already defined at line %u", name.text,
                          line);
        tci_error_remedy(t->reterr, "put the key below that header");
    } else if (value->type == TCI_NODE_ARRAY && value->array.reader_flags) {
        tci_toml_fail_pos(t, key->pos, "%s is an array of tables since line %u", name.text, line);
        tci_error_remedy(t->reterr, "put the key below one of its [[headers]]");
    } else {
        tci_toml_fail_pos(t, key->pos, "%s was already set to %s at line %u: it cannot have keys",
                          name.text, kind_of(value), line);
    }
    return -1;
}

/* A child table that is not there yet. */
static int add_table(struct tci_toml *t, const struct tci_toml_key *key, struct tci_pos pos,
                     unsigned flags, struct tci_node **table)
{
    struct tci_node *child = tci_node_new(t->arena, TCI_NODE_TABLE, pos);

    if (!child || !tci_table_add(t->arena, *table, key->text, key->pos, child))
        return tci_error_no_memory(t->reterr);
    child->table.reader_flags = flags;
    *table = child;
    return 0;
}

int tci_toml_enter_dotted(struct tci_toml *t, const struct tci_toml_key *key,
                          struct tci_node **table)
{
    struct tci_entry *entry = tci_table_find(*table, key->text.data, key->text.length);

    if (!entry)
        return add_table(t, key, key->pos, TCI_TOML_DOTTED, table);
    if (entry->value->type != TCI_NODE_TABLE ||
        entry->value->table.reader_flags & (TCI_TOML_INLINE | TCI_TOML_EXPLICIT))
        return fail_enter(t, key, entry);
    *table = entry->value;
    (*table)->table.reader_flags = TCI_TOML_DOTTED;
    return 0;
}

int tci_toml_enter_header(struct tci_toml *t, const struct tci_toml_key *key,
                          struct tci_node **table, unsigned *depth)
{
    struct tci_entry *entry = tci_table_find(*table, key->text.data, key->text.length);
    struct tci_node *child = entry ? entry->value : NULL;

    if (!child)
        return add_table(t, key, key->pos, 0, table);
    if (child->type == TCI_NODE_ARRAY && child->array.reader_flags & TCI_TOML_ARRAY_OF_TABLES) {
        child = child->array.items[child->array.count - 1];
        ++*depth;
    }
    if (child->type != TCI_NODE_TABLE || child->table.reader_flags & TCI_TOML_INLINE)
        return fail_enter(t, key, entry);
    *table = child;
    return 0;
}

/* The key is there and a header cannot define it. */
static int fail_define(struct tci_toml *t, struct tci_pos pos, struct tci_text header,
                       const struct tci_entry *entry)
{
    const struct tci_node *value = entry->value;
    struct tci_toml_excerpt name = tci_toml_plain(header);
    bool table = value->type == TCI_NODE_TABLE;
    unsigned line = line_of(entry);

    if (table && value->table.reader_flags == TCI_TOML_EXPLICIT) {
        tci_toml_fail_pos(t, pos, "%s was already defined at line %u", name.text, line);
        tci_error_remedy(t->reterr, header.data[1] == '[' ? "write both with [[...]]"
                                                          : "put the keys of both in one place");
    } else if (table && value->table.reader_flags == TCI_TOML_DOTTED) {
        tci_toml_fail_pos(t, pos, "%s was already defined by a dotted key at line %u", name.text,
                          line);
        tci_error_remedy(t->reterr, "write all of its keys with dots, or all below the header");
    } else if (value->type == TCI_NODE_ARRAY && value->array.reader_flags) {
        tci_toml_fail_pos(t, pos, "%s is already an array of tables since line %u", name.text,
                          line);
        tci_error_remedy(t->reterr, "write [[...]] to add one more element");
    } else if (table && !value->table.reader_flags) {
        tci_toml_fail_pos(t, pos, "%s is already a table since line %u", name.text, line);
        tci_error_remedy(t->reterr, "move the [[...]] before it");
    } else {
        tci_toml_fail_pos(t, pos, "%s was already set to %s at line %u", name.text, kind_of(value),
                          line);
    }
    return -1;
}

int tci_toml_define_table(struct tci_toml *t, const struct tci_toml_key *key, struct tci_pos pos,
                          struct tci_text header, struct tci_node **table)
{
    struct tci_entry *entry = tci_table_find(*table, key->text.data, key->text.length);

    if (!entry)
        return add_table(t, key, pos, TCI_TOML_EXPLICIT, table);
    if (entry->value->type != TCI_NODE_TABLE || entry->value->table.reader_flags)
        return fail_define(t, pos, header, entry);
    *table = entry->value;
    (*table)->table.reader_flags = TCI_TOML_EXPLICIT;
    (*table)->pos = pos;
    return 0;
}

int tci_toml_define_element(struct tci_toml *t, const struct tci_toml_key *key, struct tci_pos pos,
                            struct tci_text header, struct tci_node **table)
{
    struct tci_entry *entry = tci_table_find(*table, key->text.data, key->text.length);
    struct tci_node *array = entry ? entry->value : tci_node_new(t->arena, TCI_NODE_ARRAY, pos);
    struct tci_node *element = tci_node_new(t->arena, TCI_NODE_TABLE, pos);

    if (!array || !element)
        return tci_error_no_memory(t->reterr);
    if (!entry) {
        array->array.reader_flags = TCI_TOML_ARRAY_OF_TABLES;
        if (!tci_table_add(t->arena, *table, key->text, key->pos, array))
            return tci_error_no_memory(t->reterr);
    } else if (array->type != TCI_NODE_ARRAY || !array->array.reader_flags) {
        return fail_define(t, pos, header, entry);
    }
    element->table.reader_flags = TCI_TOML_EXPLICIT;
    if (tci_array_add(t->arena, array, element) < 0)
        return tci_error_no_memory(t->reterr);
    *table = element;
    return 0;
}

int tci_toml_check_unset(struct tci_toml *t, const struct tci_node *table,
                         const struct tci_toml_key *key)
{
    const struct tci_entry *entry = tci_table_find(table, key->text.data, key->text.length);

    if (!entry)
        return 0;
    tci_toml_fail_pos(t, key->pos, "%s was already set at line %u", tci_toml_quoted(key->text).text,
                      line_of(entry));
    tci_error_remedy(t->reterr, "keep one of the two");
    return -1;
}
