/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the conformance suite (tests/e2e/test_toml_suite.py) does not look at: places, wording
 * of errors, bounds on depth, time and memory, and behaviour without memory.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/buf.h"
#include "policy/toml.h"
#include "sanitized.h"

/* ---- allocations of the arena, counted and made to fail ---------------------------------- */

static bool counting;
static size_t allocated;

#ifndef SANITIZED
static long fail_after = -1; /* this many succeed; -1: all */

void *__libc_calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
    if (counting) {
        allocated += count * size;
        if (fail_after == 0)
            return NULL;
        if (fail_after > 0)
            fail_after--;
    }
    return __libc_calloc(count, size);
}
#endif

/* ---- helpers ----------------------------------------------------------------------------- */

struct document {
    struct tci_arena *arena;
    struct tci_node *root;
    struct tc_error error;
    int result;
};

static struct document parse_bytes(const char *bytes, size_t length, enum tci_toml_version version)
{
    struct document d = { .arena = tci_arena_new() };
    assert_non_null(d.arena);
    d.result = tci_toml_parse(d.arena, bytes, length, version, &d.root, &d.error);
    return d;
}

static struct document parse(const char *text)
{
    struct document d = parse_bytes(text, strlen(text), TCI_TOML_1_0);
    if (d.result < 0)
        print_error("%u:%u: %s\n", d.error.line, d.error.column, d.error.message);
    assert_int_equal(d.result, 0);
    return d;
}

static struct tci_entry *entry_of(const struct tci_node *table, const char *key)
{
    assert_int_equal(table->type, TCI_NODE_TABLE);
    struct tci_entry *entry = tci_table_find(table, key, strlen(key));
    assert_non_null(entry);
    return entry;
}

static struct tci_node *value_of(const struct tci_node *table, const char *key)
{
    return entry_of(table, key)->value;
}

static void assert_pos(struct tci_pos pos, unsigned line, unsigned column)
{
    assert_int_equal(pos.line, line);
    assert_int_equal(pos.column, column);
}

/* Nothing that a terminal would not simply show. */
static void assert_safe(const char *text)
{
    static const char *const bad[] = { "\u202e", "\u200b", "\xc2\x85", "\ufeff", "\u2028" };
    for (const char *p = text; *p; p++)
        assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
    for (size_t i = 0; i < tci_array_size(bad); i++)
        assert_null(strstr(text, bad[i]));
}

static void assert_refused_bytes(const char *bytes, size_t length, enum tci_toml_version version,
                                 unsigned line, unsigned column, const char *message,
                                 const char *remedy)
{
    struct document d = parse_bytes(bytes, length, version);
    assert_int_equal(d.result, -1);
    assert_null(d.root);
    assert_int_equal(d.error.code, TC_ERROR_SYNTAX);
    if (d.error.line != line || d.error.column != column || !strstr(d.error.message, message) ||
        !strstr(d.error.remedy, remedy))
        fail_msg("%.*s\n=> %u:%u: %s\n(%s)", (int)length, bytes, d.error.line, d.error.column,
                 d.error.message, d.error.remedy);
    assert_safe(d.error.message);
    assert_safe(d.error.remedy);
    tci_arena_free(d.arena);
}

struct refusal {
    const char *text;
    unsigned line, column;
    const char *message, *remedy; /* parts of them */
};

static void assert_refusals(const struct refusal *list, size_t count, enum tci_toml_version version)
{
    for (size_t i = 0; i < count; i++)
        assert_refused_bytes(list[i].text, strlen(list[i].text), version, list[i].line,
                             list[i].column, list[i].message, list[i].remedy);
}

#define REFUSALS_1_0(list) assert_refusals(list, tci_array_size(list), TCI_TOML_1_0)
#define REFUSALS_1_1(list) assert_refusals(list, tci_array_size(list), TCI_TOML_1_1)

/* ---- values ------------------------------------------------------------------------------ */

static void test_every_type_is_read(void **state)
{
    (void)state;
    struct document d = parse("text = \"a\\tb\\u0000c\"\n"
                              "integer = -0\nleast = -9223372036854775808\nhex = 0xdead_BEEF\n"
                              "float = 6.626e-34\nminus = -inf\nnone = nan\nyes = true\n"
                              "moment = 1979-05-27 07:32:00.1234567899-07:30\n"
                              "local = 1979-05-27T23:59:60\nday = 2024-02-29\ntime = 00:00:01.5\n");
    assert_int_equal(value_of(d.root, "text")->string.length, 5);
    assert_memory_equal(value_of(d.root, "text")->string.data, "a\tb\0c", 6);
    assert_int_equal(value_of(d.root, "integer")->integer, 0);
    assert_true(value_of(d.root, "least")->integer == INT64_MIN);
    assert_true(value_of(d.root, "hex")->integer == 0xdeadbeef);
    assert_true(fabs(value_of(d.root, "float")->number - 6.626e-34) < 1e-50);
    assert_true(isinf(value_of(d.root, "minus")->number) && value_of(d.root, "minus")->number < 0);
    assert_true(isnan(value_of(d.root, "none")->number));
    assert_true(value_of(d.root, "yes")->boolean);

    const struct tci_node *moment = value_of(d.root, "moment");
    assert_int_equal(moment->type, TCI_NODE_DATETIME);
    assert_int_equal(moment->datetime.offset_minutes, -450);
    assert_int_equal(moment->datetime.nanosecond, 123456789);
    assert_int_equal(value_of(d.root, "local")->type, TCI_NODE_LOCAL_DATETIME);
    assert_int_equal(value_of(d.root, "local")->datetime.second, 60);
    assert_int_equal(value_of(d.root, "day")->type, TCI_NODE_LOCAL_DATE);
    assert_int_equal(value_of(d.root, "day")->datetime.day, 29);
    assert_int_equal(value_of(d.root, "time")->type, TCI_NODE_LOCAL_TIME);
    assert_int_equal(value_of(d.root, "time")->datetime.nanosecond, 500000000);
    tci_arena_free(d.arena);
}

static void test_keys_keep_the_order_of_the_file(void **state)
{
    (void)state;
    static const char *const order[] = { "z", "a", "m", "b" };
    struct document d = parse("z = 1\na.x = 1\nm = 2\na.y = 3\n[b]\n");
    size_t i = 0;
    tci_table_foreach (entry, d.root)
        assert_true(tci_text_is(entry->key, order[i++]));
    assert_int_equal(i, 4);
    tci_arena_free(d.arena);
}

static void test_line_breaks_in_strings_come_out_as_lf(void **state)
{
    (void)state;
    struct document d = parse("a = \"\"\"\r\none\r\ntwo \\\r\n   three\"\"\"\r\n"
                              "b = '''\r\none\r\n\\two'''\r\n");
    assert_string_equal(value_of(d.root, "a")->string.data, "one\ntwo three");
    assert_string_equal(value_of(d.root, "b")->string.data, "one\n\\two");
    tci_arena_free(d.arena);
}

static void test_floats_do_not_depend_on_the_locale(void **state)
{
    static const char *const with_comma[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR" };
    const char *found = NULL;
    (void)state;
    for (size_t i = 0; i < tci_array_size(with_comma) && !found; i++)
        found = setlocale(LC_ALL, with_comma[i]);
    struct document d = parse("f = 1.5\nlong = 1.50000000000000000000000000000000000000000000000000"
                              "0000000000000000000000000000000000000000000000000000000000000000\n");
    (void)setlocale(LC_ALL, "C");
    assert_true(fabs(value_of(d.root, "f")->number - 1.5) < 1e-9);
    assert_true(fabs(value_of(d.root, "long")->number - 1.5) < 1e-9);
    tci_arena_free(d.arena);
    if (!found)
        print_message("no locale with a decimal comma here: checked in C only\n");
}

static void test_toml_1_1_adds_what_it_adds_and_1_0_refuses_it(void **state)
{
    static const char *const additions[] = {
        "a = \"\\e\"",    "a = \"\\x7e\"",    "a = 07:32",    "a = 1979-05-27T07:32Z",
        "a = { b = 1, }", "a = {\n b = 1\n}", "a = { # c\n}", "a = { b = 1 # c\n , c=2\n}",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(additions); i++) {
        size_t length = strlen(additions[i]);
        struct document old = parse_bytes(additions[i], length, TCI_TOML_1_0);
        struct document new = parse_bytes(additions[i], length, TCI_TOML_1_1);
        assert_int_equal(old.result, -1);
        assert_int_equal(new.result, 0);
        tci_arena_free(old.arena);
        tci_arena_free(new.arena);
    }
}

/* ---- places ------------------------------------------------------------------------------ */

static void test_keys_and_values_know_their_place(void **state)
{
    (void)state;
    struct document d = parse("a = 1\n"
                              "\t'\u00e4' . b=[ 1, '''\n'''  , {x.y = 2} ]\n");
    assert_pos(d.root->pos, 1, 1);
    assert_pos(entry_of(d.root, "a")->key_pos, 1, 1);
    assert_pos(value_of(d.root, "a")->pos, 1, 5);
    assert_pos(entry_of(d.root, "\u00e4")->key_pos, 2, 2);
    assert_pos(value_of(d.root, "\u00e4")->pos, 2, 2);

    const struct tci_entry *b = entry_of(value_of(d.root, "\u00e4"), "b");
    assert_pos(b->key_pos, 2, 8);
    assert_pos(b->value->pos, 2, 10);
    assert_pos(b->value->array.items[0]->pos, 2, 12);
    assert_pos(b->value->array.items[1]->pos, 2, 15);
    assert_pos(b->value->array.items[2]->pos, 3, 8);
    const struct tci_entry *x = entry_of(b->value->array.items[2], "x");
    assert_pos(x->key_pos, 3, 9);
    assert_pos(entry_of(x->value, "y")->key_pos, 3, 11);
    assert_pos(value_of(x->value, "y")->pos, 3, 15);
    tci_arena_free(d.arena);
}

static void test_tables_have_the_place_of_their_header(void **state)
{
    (void)state;
    struct document d = parse("  [ a . b ]\r\n"
                              "[[l.m]]\n[[l.m]]\n"
                              " [a]\n");
    assert_pos(entry_of(d.root, "a")->key_pos, 1, 5);
    assert_pos(value_of(d.root, "a")->pos, 4, 2);
    assert_pos(entry_of(value_of(d.root, "a"), "b")->key_pos, 1, 9);
    assert_pos(value_of(value_of(d.root, "a"), "b")->pos, 1, 3);
    assert_pos(value_of(d.root, "l")->pos, 2, 3);

    const struct tci_node *list = value_of(value_of(d.root, "l"), "m");
    assert_int_equal(list->array.count, 2);
    assert_pos(list->pos, 2, 1);
    assert_pos(list->array.items[0]->pos, 2, 1);
    assert_pos(list->array.items[1]->pos, 3, 1);
    tci_arena_free(d.arena);
}

static void test_byte_order_mark_takes_no_column(void **state)
{
    (void)state;
    struct document d = parse("\xef\xbb\xbf"
                              "a = 1");
    assert_pos(entry_of(d.root, "a")->key_pos, 1, 1);
    tci_arena_free(d.arena);
}

/* ---- errors ------------------------------------------------------------------------------ */

static void test_errors_name_what_was_found_and_what_helps(void **state)
{
    static const struct refusal list[] = {
        { "timeout\n", 1, 8, "expected '=' after the key \"timeout\", found a line break", "" },
        { "timeout: 30", 1, 8, "found ':'", "use '=' instead of ':'" },
        { "my key = 1", 1, 4, "after the key \"my\", found \"key\"", "in quotes" },
        { "a = 30s # c", 1, 5, "found \"30s\" without quotes", "put the value in quotes: \"30s\"" },
        { "a = [x y, 1]", 1, 6, "found \"x y\"", "put the value in quotes: \"x y\"" },
        { "a = hello world", 1, 5, "\"hello world\"", "in quotes: \"hello world\"" },
        { "a = True", 1, 5, "\"True\"", "write true" },
        { "a = null", 1, 5, "\"null\"", "no null" },
        { "a = \u201cx\u201d", 1, 5, "without quotes", "plain quotes" },
        { "a = [1\nb = 2", 2, 1, "array opened at line 1, found \"b\"", "" },
        { "a = [1,\nb = 2", 2, 1, "found the key \"b\"", "opened at line 1" },
        { "\na = [1,", 2, 5, "the array opened here is never closed", "]" },
        { "a = {b = 1", 1, 5, "the inline table opened here is never closed", "}" },
        { "a = {b = 1\n}", 1, 11, "found a line break", "on one line" },
        { "a = {b = 1,}", 1, 11, "a comma before the }", "remove" },
        { "\n b = \"x\n", 2, 6, "the string opened here has no closing \"", "add the closing \"" },
        { "b = \"x'\n", 1, 5, "no closing \"", "not with '" },
        { "b = \"C:\\\"", 1, 5, "no closing \"", "\\\" does not close a string" },
        { "b = 'it's'", 1, 9, "found \"s\"", "cannot hold a single quote" },
        { "b = \"say \"x\"\"", 1, 11, "found \"x\"", "write \\\"" },
        { "b = '''\n\n", 1, 5, "the string opened here is never closed", "'''" },
        { "b = \"\\q\"", 1, 6, "a backslash followed by \"q\"", "\\\\" },
        { "b = \"\"\"\n\n  \\uD800\"\"\"", 3, 3, "U+D800 is not a character", "" },
        { "a = 0755", 1, 5, "must not start with 0", "0o755" },
        { "a = 1__0", 1, 5, "underscore", "" },
        { "a = .5", 1, 5, "decimal point", "" },
        { "a = 9223372036854775808", 1, 5, "does not fit into 64 bits", "" },
        { "a = 0x8000000000000000", 1, 5, "does not fit into 64 bits", "" },
        { "a = 1e999", 1, 5, "too large", "inf" },
        { "a = 2023-02-29", 1, 5, "no day 29 in 2023-02, which has 28 days", "" },
        { "a = 2023-13-01", 1, 5, "no month 13", "" },
        { "a = 25:00:00", 1, 5, "no hour 25", "" },
        { "a = 8080:80", 1, 5, "not a time", "quotes" },
        { "a = 1 b = 2", 1, 7, "expected a line break after the value", "line of its own" },
        { "[a\n", 1, 3, "expected ']'", "close it: [a]" },
        { "[[a]\n", 1, 4, "expected ']]'", "]]" },
        { "[a b]\n", 1, 4, "found \"b\"", "quotes" },
        { "// c", 1, 1, "expected a key, found '/'", "#" },
        { "{ \"a\": 1 }", 1, 1, "expected a key, found '{'", "braces" },
        { "a = [1,,2]", 1, 8, "expected a value, found ','", "extra comma" },
        { "a = \n", 1, 5, "expected a value, found a line break", "\"\"" },
    };
    (void)state;
    REFUSALS_1_0(list);
}

static void test_a_second_definition_names_the_first(void **state)
{
    static const struct refusal list[] = {
        { "a = 1\n\na = 2", 3, 1, "\"a\" was already set at line 1", "" },
        { "[a]\n[b]\n[a]", 3, 1, "[a] was already defined at line 1", "" },
        { "[a.b]\n[a]\nb = 1", 3, 1, "\"b\" was already set at line 1", "" },
        { "[a.b]\n\n[a]\n[a]", 4, 1, "[a] was already defined at line 3", "" },
        { "[a]\nb.c = 1\n[a.b]", 3, 1, "by a dotted key at line 2", "" },
        { "[a.b]\n[a]\nb.c = 1", 3, 1, "the table \"b\" was already defined at line 1", "header" },
        { "a = {}\n[a.b]", 2, 2, "\"a\" is an inline table, complete since line 1", "braces" },
        { "a = []\n[[a]]", 2, 1, "[[a]] was already set to an array at line 1", "" },
        { "[[a]]\n[a]", 2, 1, "[a] is already an array of tables since line 1", "[[...]]" },
        { "[a]\n[[a]]", 2, 1, "[[a]] was already defined at line 1", "[[...]]" },
        { "[[a.b]]\n[a]\nb.c = 1", 3, 1, "\"b\" is an array of tables since line 1", "" },
        { "a = 1\na.b = 2", 2, 1, "\"a\" was already set to an integer at line 1", "" },
        { "a = {b.c = 1, b = 2}", 1, 15, "\"b\" was already set at line 1", "" },
    };
    (void)state;
    REFUSALS_1_0(list);
    REFUSALS_1_1(list);
}

static void test_dotted_keys_may_fill_a_table_that_only_a_child_named(void **state)
{
    (void)state;
    struct document d = parse("[a.b.c]\nx = 1\n[a]\nb.y = 2\n[a.b.d]\nz = 3\n");
    const struct tci_node *b = value_of(value_of(d.root, "a"), "b");
    assert_int_equal(b->table.count, 3);
    tci_arena_free(d.arena);
}

struct bytes {
    const char *data;
    size_t length;
    unsigned line, column;
    const char *message;
};

#define BYTES(text) text, sizeof(text) - 1

static void test_bad_encoding_is_refused_with_a_place(void **state)
{
    static const struct bytes list[] = {
        { BYTES("a = \"\xc3\""), 1, 6, "\\xC3" },               /* cut short */
        { BYTES("\n# \xc0\xaf"), 2, 3, "\\xC0" },               /* overlong */
        { BYTES("# \xe0\x80\xaf"), 1, 3, "\\xE0" },             /* overlong */
        { BYTES("# \xf0\x80\x80\xaf"), 1, 3, "\\xF0" },         /* overlong */
        { BYTES("# \u00e4\u00e4\xed\xa0\x80"), 1, 5, "\\xED" }, /* surrogate */
        { BYTES("# \xf4\x90\x80\x80"), 1, 3, "\\xF4" },         /* beyond U+10FFFF */
        { BYTES("# 12345678901234567890\x80"), 1, 23, "\\x80" },
        { BYTES("a = 1\rb = 2"), 1, 6, "carriage return" },
        { BYTES("a = 1 # \r"), 1, 9, "carriage return" },
        { BYTES("a = '''\r'''"), 1, 8, "carriage return" },
        { BYTES("a = \"\0\""), 1, 6, "NUL" },
        { BYTES("# \x07 bell"), 1, 3, "U+0007" },
        { BYTES("a = 'del\x7f'"), 1, 9, "U+007F" },
        { BYTES("\xff\xfe\x61\x00"), 1, 1, "UTF-16" },
        { BYTES("\xfe\xff\x00\x61"), 1, 1, "UTF-16" },
        { BYTES("\xff\xfe\x00\x00\x61\x00\x00\x00"), 1, 1, "UTF-32" },
        { BYTES("\x00\x00\xfe\xff\x00\x00\x00\x61"), 1, 1, "UTF-32" },
        { BYTES("\xef\xbb\xbf\xef\xbb\xbf"), 1, 1, "U+FEFF" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(list); i++)
        assert_refused_bytes(list[i].data, list[i].length, TCI_TOML_1_1, list[i].line,
                             list[i].column, list[i].message, "");
}

static void test_excerpts_are_short_and_show_no_hidden_characters(void **state)
{
    char text[4096];
    (void)state;
    REFUSALS_1_0(((const struct refusal[]){
        { "a = x\u202ey", 1, 5, "\"x\\u202Ey\"", "" },
        { "\"\\u001b[2J\" 1", 1, 13, "\"\\u001B[2J\"", "" },
        { "\u200b = 1", 1, 1, "found U+200B", "" },
        { "\"\\n\" = 1\n\"\\n\" = 2", 2, 1, "\"\\u000A\" was already set", "" },
        { "[\"\u2028\"]\n[\"\u2028\"]", 2, 1, "[\"\\u2028\"] was already", "" },
    }));
    memset(text, 'x', sizeof text);
    memcpy(text, "a = ", 4);
    struct document d = parse_bytes(text, sizeof text, TCI_TOML_1_0);
    assert_int_equal(d.result, -1);
    assert_non_null(strstr(d.error.message, "xxx...\""));
    assert_true(strlen(d.error.message) < 200);
    tci_arena_free(d.arena);
}

static void test_errors_can_be_left_out(void **state)
{
    (void)state;
    struct tci_arena *arena = tci_arena_new();
    struct tci_node *root = NULL;
    assert_int_equal(tci_toml_parse(arena, "a = [", 5, TCI_TOML_1_0, &root, NULL), -1);
    assert_int_equal(tci_toml_parse(arena, NULL, 0, TCI_TOML_1_0, &root, NULL), 0);
    assert_non_null(root);
    tci_arena_free(arena);
}

/* ---- bounds ------------------------------------------------------------------------------ */

static void repeat(struct tci_buf *buf, const char *text, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        tci_buf_string(buf, text);
}

/* Something that nests: `open` and `close` come levels - 1 times. */
static void assert_depth(const char *before, const char *open, const char *middle,
                         const char *close, unsigned levels, bool allowed)
{
    struct tci_buf buf = TCI_BUF_INIT(1 << 20);
    tci_buf_string(&buf, before);
    repeat(&buf, open, levels - 1);
    tci_buf_string(&buf, middle);
    repeat(&buf, close, levels - 1);
    struct document d = parse_bytes(buf.data, buf.length, TCI_TOML_1_0);
    assert_int_equal(d.result, allowed ? 0 : -1);
    if (!allowed) {
        assert_int_equal(d.error.code, TC_ERROR_TOO_LARGE);
        assert_true(d.error.line > 0);
    }
    tci_arena_free(d.arena);
    tci_buf_free(&buf);
}

static void test_depth_is_bounded_for_every_kind_of_nesting(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        unsigned levels = TCI_TOML_DEPTH_MAX + more;
        assert_depth("a = ", "[", "1", "]", levels, more == 0);
        assert_depth("a = ", "{a = ", "1", "}", levels, more == 0);
        assert_depth("", "a.", "a = 1", "", levels, more == 0);
        assert_depth("[", "a.", "a]", "", levels, more == 0);
        assert_depth("[[", "a.", "a]]", "", levels - 1, more == 0);
        assert_depth("[b.c]\nd.e = ", "[", "1", "]", levels - 3, more == 0);
        assert_depth("[[b]]\n[b.c]\nd = ", "{a = ", "1", "}", levels - 3, more == 0);
    }
    assert_depth("a = ", "[", "", "", 1000000, false);
    assert_depth("", "a.", "", "", 400000, false);
}

typedef void shape(struct tci_buf *buf, size_t size);

static void many_keys(struct tci_buf *buf, size_t size)
{
    for (unsigned i = 0; buf->length < size; i++)
        tci_buf_printf(buf, "k%x = 1\n", i);
}

static void many_elements(struct tci_buf *buf, size_t size)
{
    while (buf->length < size)
        tci_buf_string(buf, "[[a]]\n");
}

static void many_elements_with_tables(struct tci_buf *buf, size_t size)
{
    while (buf->length < size)
        tci_buf_string(buf, "[[a]]\n[a.b]\n[[a.b.c]]\n");
}

static void many_dotted_keys(struct tci_buf *buf, size_t size)
{
    for (unsigned i = 0; buf->length < size; i++)
        tci_buf_printf(buf, "a.b.k%x = 1\n", i);
}

static void many_deep_headers(struct tci_buf *buf, size_t size)
{
    for (unsigned i = 0; buf->length < size; i++) {
        tci_buf_string(buf, "[");
        repeat(buf, "a.", TCI_TOML_DEPTH_MAX - 1);
        tci_buf_printf(buf, "k%x]\n", i);
    }
}

static void one_long_inline_table(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = {");
    for (unsigned i = 0; buf->length < size; i++)
        tci_buf_printf(buf, "k%x=1,", i);
    tci_buf_string(buf, "z=1}");
}

static void one_long_line_of_umlauts(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = [");
    while (buf->length < size)
        tci_buf_string(buf, "'\u00e4\u00f6\u00fc',");
    tci_buf_string(buf, "]");
}

static void one_long_array(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = [");
    while (buf->length < size)
        tci_buf_string(buf, "{},");
    tci_buf_string(buf, "]");
}

static void one_long_string(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = \"");
    while (buf->length < size)
        tci_buf_string(buf, "\\u00e4 \\\" ");
    tci_buf_string(buf, "\"");
}

static void one_long_text(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = \"\"\"");
    while (buf->length < size)
        tci_buf_string(buf, "\"\"x\\\r\n  \r\n\"\\n");
    tci_buf_string(buf, "\"\"\"");
}

static void long_comments(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "# ");
    while (buf->length < size / 2)
        tci_buf_string(buf, "comment \u00e4 ");
    while (buf->length < size)
        tci_buf_string(buf, "\r\n\t # comment");
}

static void long_numbers(struct tci_buf *buf, size_t size)
{
    tci_buf_string(buf, "a = 0x0");
    while (buf->length < size / 2)
        tci_buf_string(buf, "_00");
    tci_buf_string(buf, "\nb = 0.1");
    while (buf->length < size)
        tci_buf_string(buf, "_23");
}

/* CPU time of one reading, in seconds. */
static double reading_time(shape *make, size_t size)
{
    struct tci_buf buf = TCI_BUF_INIT(2 * size);
    struct timespec start, stop;
    make(&buf, size);
    assert_false(buf.too_large || buf.no_memory);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start), 0);
    allocated = 0;
    counting = true;
    struct document d = parse_bytes(buf.data, buf.length, TCI_TOML_1_0);
    counting = false;
    tci_arena_free(d.arena);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &stop), 0);
    assert_int_equal(d.result, 0);
    assert_true(allocated < 100 * buf.length + (1 << 20));
    tci_buf_free(&buf);
    return (double)(stop.tv_sec - start.tv_sec) + (double)(stop.tv_nsec - start.tv_nsec) / 1e9;
}

static void test_time_and_memory_grow_with_the_input_only(void **state)
{
    static shape *const shapes[] = {
        many_keys,
        many_elements,
        many_elements_with_tables,
        many_dotted_keys,
        many_deep_headers,
        one_long_inline_table,
        one_long_line_of_umlauts,
        one_long_array,
        one_long_string,
        one_long_text,
        long_comments,
        long_numbers,
    };
#ifdef SANITIZED
    const size_t small = 320 * 1024; /* each node is a malloc of its own there */
#else
    const size_t small = 1280 * 1024;
#endif
    (void)state;
    for (size_t i = 0; i < tci_array_size(shapes); i++) {
        double before = reading_time(shapes[i], small), after = reading_time(shapes[i], 4 * small);
        /* Linear is 4 and quadratic 16; caches and a busy machine ask for slack. */
        if (after > 10 * before + 0.25)
            fail_msg("shape %zu: %.3f s, then %.3f s for four times as much", i, before, after);
    }
}

#ifdef SANITIZED
static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    (void)state;
    skip(); /* calloc belongs to the sanitizer */
}
#else
/* Every kind of allocation, each with a text of 70 kB: that gets a chunk of its own, so that each
 * of them can be made to fail. */
static void fill_chunks(struct tci_buf *buf)
{
    static const char *const pieces[] = {
        "[%s.a]\nb = 1\n[[%s]]\n",
        "%s.c = 1\n",
        "k = \"%s\"\n",
        "l = '''%s'''\n",
        "m = [\"\\n%s\"]",
        "\n\"%s\" = {%s = 2}\n",
        "f = 0.0%s",
    };
    static char filler[70001];
    memset(filler, '0', sizeof filler - 1);
    for (size_t i = 0; i < tci_array_size(pieces); i++)
        for (const char *p = pieces[i]; *p; p++) {
            if (*p == '%') {
                filler[0]++; /* no key twice */
                tci_buf_string(buf, filler);
                p++;
            } else {
                tci_buf_char(buf, *p);
            }
        }
}

static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(1 << 24);
    long successes = 0;
    (void)state;
    fill_chunks(&buf);
    for (;; successes++) {
        struct document d = { .arena = tci_arena_new() };
        counting = true;
        fail_after = successes;
        d.result = tci_toml_parse(d.arena, buf.data, buf.length, TCI_TOML_1_0, &d.root, &d.error);
        counting = false;
        fail_after = -1;
        tci_arena_free(d.arena);
        if (d.result == 0)
            break;
        if (d.error.code != TC_ERROR_NO_MEMORY)
            fail_msg("%u:%u: %s", d.error.line, d.error.column, d.error.message);
        assert_null(d.root);
    }
    assert_true(successes >= 10);
    tci_buf_free(&buf);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_is_read),
        cmocka_unit_test(test_keys_keep_the_order_of_the_file),
        cmocka_unit_test(test_line_breaks_in_strings_come_out_as_lf),
        cmocka_unit_test(test_floats_do_not_depend_on_the_locale),
        cmocka_unit_test(test_toml_1_1_adds_what_it_adds_and_1_0_refuses_it),
        cmocka_unit_test(test_keys_and_values_know_their_place),
        cmocka_unit_test(test_tables_have_the_place_of_their_header),
        cmocka_unit_test(test_byte_order_mark_takes_no_column),
        cmocka_unit_test(test_errors_name_what_was_found_and_what_helps),
        cmocka_unit_test(test_a_second_definition_names_the_first),
        cmocka_unit_test(test_dotted_keys_may_fill_a_table_that_only_a_child_named),
        cmocka_unit_test(test_bad_encoding_is_refused_with_a_place),
        cmocka_unit_test(test_excerpts_are_short_and_show_no_hidden_characters),
        cmocka_unit_test(test_errors_can_be_left_out),
        cmocka_unit_test(test_depth_is_bounded_for_every_kind_of_nesting),
        cmocka_unit_test(test_time_and_memory_grow_with_the_input_only),
        cmocka_unit_test(test_no_memory_is_reported_at_every_allocation),
    };
    return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
