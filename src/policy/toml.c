/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a TOML document as lines: headers, keys with values, comments.
 * Trusts nothing. Invariant: no state outlives a call, and all memory is the caller's arena, so
 * that a failure at any place leaves nothing behind.
 *
 * The other parts, each with its own file: toml_scan (encoding, places, space), toml_message
 * (errors), toml_string, toml_number, toml_date, toml_value (arrays, inline tables), toml_key,
 * toml_table (what may define what).
 */
#include "policy/toml.h"

#include "policy/toml_internal.h"

static int fail_header(struct tci_toml *t, const char *open, bool element)
{
    const char *close = element ? "]]" : "]";

    tci_toml_fail(t, t->at, "expected '%s' at the end of the header, found %s", close,
                  tci_toml_found(t, t->at).text);
    if (element && tci_toml_peek(t) == ']')
        tci_error_remedy(t->reterr, "a header that opens with [[ closes with ]]");
    else if (tci_toml_peek(t) == '\r' || tci_toml_peek(t) == '\n' || t->at == t->end)
        tci_error_remedy(t->reterr, "close it: %s%s",
                         tci_toml_plain(tci_toml_text(open, t->at)).text, close);
    else
        tci_error_remedy(t->reterr, "put a name with other characters than A-Z a-z 0-9 _ - in "
                                    "quotes");
    return -1;
}

/* The path in a header up to its last part, which comes back in `key`. */
static int read_header_path(struct tci_toml *t, struct tci_toml_key *key, struct tci_node **table,
                            unsigned *depth)
{
    for (;;) {
        tci_toml_skip_blank(t);
        if (++*depth > TCI_TOML_DEPTH_MAX)
            return tci_toml_fail_deep(t, t->at);
        if (tci_toml_key(t, key) < 0)
            return -1;
        tci_toml_skip_blank(t);
        if (tci_toml_peek(t) != '.')
            return 0;
        t->at++;
        if (tci_toml_enter_header(t, key, table, depth) < 0)
            return -1;
    }
}

/* [a.b] or [[a.b]]: *table and *depth become those of the table that it opens. */
static int read_header(struct tci_toml *t, struct tci_node **table, unsigned *depth)
{
    const char *open = t->at;
    struct tci_pos pos = tci_toml_pos(t, open);
    bool element = t->end - open > 1 && open[1] == '[';
    struct tci_toml_key key;
    struct tci_text header;

    t->at += element ? 2 : 1;
    if (read_header_path(t, &key, table, depth) < 0)
        return -1;
    if (tci_toml_peek(t) != ']' || (element && (t->end - t->at < 2 || t->at[1] != ']')))
        return fail_header(t, open, element);
    t->at += element ? 2 : 1;
    header = tci_toml_text(open, t->at);
    if (!element)
        return tci_toml_define_table(t, &key, pos, header, table);
    if (++*depth > TCI_TOML_DEPTH_MAX)
        return tci_toml_fail_deep(t, open);
    return tci_toml_define_element(t, &key, pos, header, table);
}

static int fail_line_end(struct tci_toml *t, const char *line)
{
    char c = *t->at, before = t->at > line ? t->at[-1] : '\0';
    bool text = tci_toml_is_bare(c) || c == before || (unsigned char)c > 0x7f;

    tci_toml_fail(t, t->at, "expected a line break after the %s, found %s",
                  *line == '[' ? "header" : "value", tci_toml_found(t, t->at).text);
    if (before == '\'' && text)
        tci_error_remedy(t->reterr, "a string in single quotes cannot hold a single quote: use "
                                    "\"...\"");
    else if (before == '"' && text)
        tci_error_remedy(t->reterr, "inside \"...\" write \\\" for a quote");
    else if (c == ',' || c == ';')
        tci_error_remedy(t->reterr, "remove the '%c': a line has one key and one value", c);
    else
        tci_error_remedy(t->reterr, "put each key on a line of its own");
    return -1;
}

static int read_line_end(struct tci_toml *t, const char *line)
{
    tci_toml_skip_blank(t);
    (void)tci_toml_skip_comment(t);
    if (tci_toml_skip_newline(t) || t->at == t->end)
        return 0;
    return fail_line_end(t, line);
}

static int read_document(struct tci_toml *t, struct tci_node *root)
{
    struct tci_node *table = root;
    unsigned depth = 0;

    for (;;) {
        const char *line;
        int r;

        tci_toml_skip_space(t);
        line = t->at;
        if (line == t->end)
            return 0;
        if (*line == '[') {
            table = root;
            depth = 0;
            r = read_header(t, &table, &depth);
        } else {
            r = tci_toml_key_value(t, table, depth);
        }
        if (r < 0 || read_line_end(t, line) < 0)
            return -1;
    }
}

int tci_toml_parse(struct tci_arena *arena, const char *bytes, size_t length,
                   enum tci_toml_version version, struct tci_node **ret_root,
                   struct tc_error *reterr)
{
    const char *text = length ? bytes : "";
    struct tci_toml t = {
        .arena = arena,
        .reterr = reterr,
        .version = version,
        .begin = text,
        .end = text + length,
        .at = text,
        .mark = text,
        .mark_pos = tci_pos(1, 1),
    };
    struct tci_node *root = tci_node_new(arena, TCI_NODE_TABLE, t.mark_pos);

    if (!root)
        return tci_error_no_memory(reterr);
    root->table.reader_flags = TCI_TOML_EXPLICIT;
    if (tci_toml_check_text(&t) < 0 || read_document(&t, root) < 0)
        return -1;
    *ret_root = root;
    return 0;
}
