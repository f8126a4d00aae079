/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: keys, and the lines `key = value`. Trusts nothing but the encoding of the text.
 */
#include "policy/toml_internal.h"

static int fail_no_key(struct tci_toml *t)
{
    char c = tci_toml_peek(t);

    tci_toml_fail(t, t->at, "expected a key, found %s", tci_toml_found(t, t->at).text);
    if (c == ',')
        tci_error_remedy(t->reterr, "remove the extra comma");
    else if (c == '=')
        tci_error_remedy(t->reterr, "write a name before the '='");
    else if ((unsigned char)c > 0x7f)
        tci_error_remedy(t->reterr, "put a key with other characters than A-Z a-z 0-9 _ - in "
                                    "quotes");
    else if (c == '{' && !t->open.line)
        tci_error_remedy(t->reterr, "a TOML document has no braces around it");
    else if (c == '/' || c == ';')
        tci_error_remedy(t->reterr, "a comment starts with #");
    return -1;
}

static int quoted_key(struct tci_toml *t, struct tci_text *ret)
{
    const char *p = t->at;

    if (t->end - p >= 3 && p[1] == *p && p[2] == *p) {
        tci_toml_fail(t, p, "a key cannot be a string of several lines");
        tci_error_remedy(t->reterr, "use one quote on each side instead of three");
        return -1;
    }
    return tci_toml_line_string(t, ret);
}

int tci_toml_key(struct tci_toml *t, struct tci_toml_key *ret)
{
    const char *start = t->at;

    ret->pos = tci_toml_pos(t, start);
    if (tci_toml_peek(t) == '"' || tci_toml_peek(t) == '\'')
        return quoted_key(t, &ret->text);
    while (t->at < t->end && tci_toml_is_bare(*t->at))
        t->at++;
    if (t->at == start)
        return fail_no_key(t);
    ret->text = tci_toml_text(start, t->at);
    ret->text.data = tci_arena_strndup(t->arena, start, ret->text.length);
    return ret->text.data ? 0 : tci_error_no_memory(t->reterr);
}

static int fail_no_equals(struct tci_toml *t, const struct tci_toml_key *key)
{
    struct tci_toml_excerpt name = tci_toml_quoted(key->text);
    char c = tci_toml_peek(t);

    tci_toml_fail(t, t->at, "expected '=' after the key %s, found %s", name.text,
                  tci_toml_found(t, t->at).text);
    if (c == ':')
        tci_error_remedy(t->reterr, "TOML writes key = value: use '=' instead of ':'");
    else if (c == '[')
        tci_error_remedy(t->reterr, "put a key with other characters than A-Z a-z 0-9 _ - in "
                                    "quotes");
    else if (c != '\r' && c != '\n' && c != '#' && c != '\0')
        tci_error_remedy(t->reterr, "write key = value; put a key with blanks or other characters "
                                    "than A-Z a-z 0-9 _ - in quotes");
    return -1;
}

/* The parts of a dotted key are followed while they are read: each makes or finds its table. */
int tci_toml_key_value(struct tci_toml *t, struct tci_node *table, unsigned depth)
{
    struct tci_toml_key key;
    struct tci_node *value = NULL;

    for (;;) {
        if (++depth > TCI_TOML_DEPTH_MAX)
            return tci_toml_fail_deep(t, t->at);
        if (tci_toml_key(t, &key) < 0)
            return -1;
        tci_toml_skip_blank(t);
        if (tci_toml_peek(t) != '.')
            break;
        t->at++;
        tci_toml_skip_blank(t);
        if (tci_toml_enter_dotted(t, &key, &table) < 0)
            return -1;
    }
    if (tci_toml_peek(t) != '=')
        return fail_no_equals(t, &key);
    t->at++;
    tci_toml_skip_blank(t);
    if (tci_toml_check_unset(t, table, &key) < 0 || tci_toml_value(t, depth, &value) < 0)
        return -1;
    if (!tci_table_add(t->arena, table, key.text, key.pos, value))
        return tci_error_no_memory(t->reterr);
    return 0;
}
