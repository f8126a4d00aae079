/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: values: which kind one is, arrays, inline tables.
 * Trusts nothing but the encoding of the text. Invariant: tci_toml_value() recurses only one level
 * deeper than it was called, and refuses to go beyond TCI_TOML_DEPTH_MAX.
 */
#include "policy/toml_internal.h"

/* ---- arrays ------------------------------------------------------------------------------ */

static int fail_in_array(struct tci_toml *t, struct tci_pos open)
{
    if (t->at == t->end) {
        tci_toml_fail_pos(t, open, "the array opened here is never closed");
        tci_error_remedy(t->reterr, "add the closing ]");
        return -1;
    }
    return tci_toml_fail(t, t->at, "expected ',' or ']' in the array opened at line %u, found %s",
                         open.line, tci_toml_found(t, t->at).text);
}

static int read_array(struct tci_toml *t, unsigned depth, struct tci_node *array)
{
    t->at++;
    for (;;) {
        struct tci_node *item = NULL;

        tci_toml_skip_space(t);
        if (tci_toml_peek(t) == ']')
            break;
        if (t->at == t->end)
            return fail_in_array(t, array->pos);
        if (tci_toml_value(t, depth + 1, &item) < 0)
            return -1;
        if (tci_array_add(t->arena, array, item) < 0)
            return tci_error_no_memory(t->reterr);
        tci_toml_skip_space(t);
        if (tci_toml_peek(t) == ']')
            break;
        if (tci_toml_peek(t) != ',')
            return fail_in_array(t, array->pos);
        t->at++;
    }
    t->at++;
    return 0;
}

/* ---- inline tables ----------------------------------------------------------------------- */

/* Since TOML 1.1 an inline table may span lines. */
static void skip_inline_space(struct tci_toml *t)
{
    if (t->version >= TCI_TOML_1_1)
        tci_toml_skip_space(t);
    else
        tci_toml_skip_blank(t);
}

static int fail_in_table(struct tci_toml *t, struct tci_pos open, const char *expected)
{
    char c = tci_toml_peek(t);

    if (t->at == t->end) {
        tci_toml_fail_pos(t, open, "the inline table opened here is never closed");
        tci_error_remedy(t->reterr, "add the closing }");
        return -1;
    }
    tci_toml_fail(t, t->at, "expected %s in the inline table opened at line %u, found %s", expected,
                  open.line, tci_toml_found(t, t->at).text);
    if (c == '\r' || c == '\n' || c == '#')
        tci_error_remedy(t->reterr, "in TOML 1.0 an inline table is on one line: close it with }, "
                                    "or use a [table] header");
    else if (c == ']')
        tci_error_remedy(t->reterr, "close the table with }");
    return -1;
}

static int fail_trailing_comma(struct tci_toml *t, const char *comma)
{
    tci_toml_fail(t, comma, "a comma before the } of an inline table is not allowed in TOML 1.0");
    tci_error_remedy(t->reterr, "remove the comma");
    return -1;
}

static int read_inline_table(struct tci_toml *t, unsigned depth, struct tci_node *table)
{
    const char *comma = NULL;

    table->table.reader_flags = TCI_TOML_INLINE;
    t->at++;
    for (;;) {
        skip_inline_space(t);
        if (tci_toml_peek(t) == '}')
            break;
        if (t->at == t->end || tci_toml_peek(t) == '\r' || tci_toml_peek(t) == '\n')
            return fail_in_table(t, table->pos, "a key");
        if (tci_toml_key_value(t, table, depth) < 0)
            return -1;
        skip_inline_space(t);
        comma = NULL;
        if (tci_toml_peek(t) == '}')
            break;
        if (tci_toml_peek(t) != ',')
            return fail_in_table(t, table->pos, "',' or '}'");
        comma = t->at++;
    }
    if (comma && t->version < TCI_TOML_1_1)
        return fail_trailing_comma(t, comma);
    t->at++;
    return 0;
}

/* ---- any value --------------------------------------------------------------------------- */

static int fail_no_value(struct tci_toml *t)
{
    tci_toml_fail(t, t->at, "expected a value, found %s", tci_toml_found(t, t->at).text);
    if (tci_toml_peek(t) == ',')
        tci_error_remedy(t->reterr, "remove the extra comma");
    else if (tci_toml_peek(t) == '=')
        tci_error_remedy(t->reterr, "write one '=' between key and value");
    else if (!t->open.line)
        tci_error_remedy(t->reterr, "write \"\" for an empty text, or remove the key");
    return -1;
}

static int read_value(struct tci_toml *t, unsigned depth, struct tci_node *node)
{
    struct tci_pos outer = t->open;
    int r;

    switch (tci_toml_peek(t)) {
    case '"':
    case '\'':
        node->type = TCI_NODE_STRING;
        return tci_toml_string(t, &node->string);
    case '[':
    case '{':
        t->open = node->pos;
        node->type = *t->at == '[' ? TCI_NODE_ARRAY : TCI_NODE_TABLE;
        r = *t->at == '[' ? read_array(t, depth, node) : read_inline_table(t, depth, node);
        t->open = outer;
        return r;
    default:
        if (tci_toml_word_end(t, t->at) == t->at)
            return fail_no_value(t);
        return tci_toml_is_date(t) ? tci_toml_date(t, node) : tci_toml_number(t, node);
    }
}

int tci_toml_value(struct tci_toml *t, unsigned depth, struct tci_node **ret)
{
    struct tci_node *node;

    if (depth > TCI_TOML_DEPTH_MAX)
        return tci_toml_fail_deep(t, t->at);
    node = tci_node_new(t->arena, TCI_NODE_STRING, tci_toml_pos(t, t->at));
    if (!node)
        return tci_error_no_memory(t->reterr);
    if (read_value(t, depth, node) < 0)
        return -1;
    *ret = node;
    return 0;
}
