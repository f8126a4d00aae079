/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/yaml.h: what each scalar means, where things are, what is refused and how
 * it is said, bounds on depth, size and time, and behaviour without memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "alloc_support.h"
#include "base/buf.h"
#include "policy/yaml.h"

/* ---- helpers ---------------------------------------------------------------------------- */

struct document {
    struct tci_arena *arena;
    struct tci_node *root;
    struct tc_error error;
    int result;
};

static struct document parse_bytes(const char *bytes, size_t length)
{
    struct document d = { .arena = tci_arena_new() };
    assert_non_null(d.arena);
    d.result = tci_yaml_parse(d.arena, bytes, length, &d.root, &d.error);
    return d;
}

static struct document parse(const char *text)
{
    struct document d = parse_bytes(text, strlen(text));
    if (d.result < 0)
        fail_msg("%s\n%u:%u: %s", text, d.error.line, d.error.column, d.error.message);
    return d;
}

static const struct tci_entry *entry_of(const struct tci_node *table, const char *key)
{
    assert_int_equal(table->type, TCI_NODE_TABLE);
    const struct tci_entry *entry = tci_table_find(table, key, strlen(key));
    if (!entry)
        fail_msg("no key %s", key);
    return entry;
}

static const struct tci_node *value_of(const struct tci_node *table, const char *key)
{
    return entry_of(table, key)->value;
}

/* The value of "v" in "v: <scalar>"; lives in d->arena. */
static const struct tci_node *scalar_of(struct document *d, const char *scalar)
{
    char text[512];
    (void)snprintf(text, sizeof text, "v: %s\n", scalar);
    *d = parse(text);
    return value_of(d->root, "v");
}

static void assert_pos(struct tci_pos pos, unsigned line, unsigned column)
{
    assert_int_equal(pos.line, line);
    assert_int_equal(pos.column, column);
}

static void assert_string(const struct tci_node *node, const char *expected)
{
    assert_int_equal(node->type, TCI_NODE_STRING);
    assert_string_equal(node->string.data, expected);
    assert_int_equal(node->string.length, strlen(expected));
}

static void assert_printable(const char *text)
{
    for (; *text; text++)
        assert_true((unsigned char)*text >= 0x20 && *text != 0x7f);
}

struct refusal {
    const char *text;
    unsigned line, column;
    const char *message, *remedy; /* parts of them */
};

static void assert_refused_bytes(const char *bytes, size_t length, const struct refusal *expected)
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

static void assert_all_refused(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused_bytes(refusals[i].text, strlen(refusals[i].text), &refusals[i]);
}

/* ---- what scalars mean ------------------------------------------------------------------ */

static void test_booleans_are_those_of_the_core_schema(void **state)
{
    static const char *const words[] = { "true", "True", "TRUE", "false", "False", "FALSE" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(words); i++) {
        struct document d;
        const struct tci_node *node = scalar_of(&d, words[i]);
        assert_int_equal(node->type, TCI_NODE_BOOLEAN);
        assert_int_equal(node->boolean, i < 3);
        tci_arena_free(d.arena);
    }
}

static void test_integers_are_decimal_or_hexadecimal(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        { "0", 0 },
        { "-0", 0 },
        { "+12", 12 },
        { "-7", -7 },
        { "0xfF", 255 },
        { "0x00ff", 255 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
        { "0x7fffffffffffffff", INT64_MAX },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct document d;
        const struct tci_node *node = scalar_of(&d, cases[i].text);
        assert_int_equal(node->type, TCI_NODE_INTEGER);
        assert_true(node->integer == cases[i].value);
        tci_arena_free(d.arena);
    }
}

static void test_floats_are_those_of_the_core_schema_in_any_locale(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        { "1.5", 1.5 },
        { ".5", 0.5 },
        { "-0.5e+1", -5 },
        { "1.", 1 },
        { "+1.e+3", 1000 },
        { "1.0E-2", 0.01 },
        { "0.25", 0.25 },
        { "010.5", 10.5 },
        { "-0.0", 0 },
        { "1.0e-999", 0 },
        { ".inf", HUGE_VAL },
        { "-.INF", -HUGE_VAL },
        { "2.5e+1", 25 },
        { "+.Inf", HUGE_VAL },
        { "1.7976931348623157e+308", 1.7976931348623157e308 },
    };
    static const char *const with_comma[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR" };
    const char *found = NULL;
    (void)state;
    for (size_t i = 0; i < tci_array_size(with_comma) && !found; i++)
        found = setlocale(LC_ALL, with_comma[i]);
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct document d;
        const struct tci_node *node = scalar_of(&d, cases[i].text);
        assert_int_equal(node->type, TCI_NODE_FLOAT);
        if (node->number < cases[i].value || node->number > cases[i].value)
            fail_msg("%s is %g", cases[i].text, node->number);
        tci_arena_free(d.arena);
    }
    struct document d;
    assert_true(isnan(scalar_of(&d, ".NaN")->number));
    tci_arena_free(d.arena);
    (void)setlocale(LC_ALL, "C");
    if (!found)
        print_message("no locale with a decimal comma here: checked in C only\n");
}

static void test_dates_are_the_same_as_in_toml(void **state)
{
    static const struct {
        const char *text;
        enum tci_node_type type;
        struct tci_datetime value;
    } cases[] = {
        { "2027-01-31", TCI_NODE_LOCAL_DATE, { 2027, 1, 31, 0, 0, 0, 0, 0 } },
        { "2000-02-29", TCI_NODE_LOCAL_DATE, { 2000, 2, 29, 0, 0, 0, 0, 0 } },
        { "0000-12-31", TCI_NODE_LOCAL_DATE, { 0, 12, 31, 0, 0, 0, 0, 0 } },
        { "2027-01-01T23:59:60Z", TCI_NODE_DATETIME, { 2027, 1, 1, 23, 59, 60, 0, 0 } },
        { "2027-01-01t01:02:03Z", TCI_NODE_DATETIME, { 2027, 1, 1, 1, 2, 3, 0, 0 } },
        { "2027-01-01 01:02:03.5-01:30",
          TCI_NODE_DATETIME,
          { 2027, 1, 1, 1, 2, 3, 500000000, -90 } },
        { "2027-01-01T01:02:03.1234567899+23:59",
          TCI_NODE_DATETIME,
          { 2027, 1, 1, 1, 2, 3, 123456789, 1439 } },
        { "2027-01-01T01:02:03", TCI_NODE_LOCAL_DATETIME, { 2027, 1, 1, 1, 2, 3, 0, 0 } },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct document d;
        const struct tci_node *node = scalar_of(&d, cases[i].text);
        const struct tci_datetime *a = &node->datetime, *b = &cases[i].value;
        assert_int_equal(node->type, cases[i].type);
        assert_true(a->year == b->year && a->month == b->month && a->day == b->day);
        assert_true(a->hour == b->hour && a->minute == b->minute && a->second == b->second);
        assert_int_equal(a->nanosecond, b->nanosecond);
        assert_int_equal(a->offset_minutes, b->offset_minutes);
        tci_arena_free(d.arena);
    }
}

static void test_everything_else_is_a_string(void **state)
{
    static const char *const texts[] = {
        "30s",
        "128MB",
        "1:60",
        "12:30:45:x",
        "1.2.3",
        "10.0.0.1",
        "_1",
        "0b12",
        "0b",
        "-0o7",
        "0o",
        "-0xG",
        "1_x",
        "1.5e+",
        "._",
        "_.5",
        "0o8",
        "0x",
        "0X1F",
        "+",
        ".",
        "..",
        "+.",
        "e5",
        "1e",
        "1e+",
        "-.",
        ".e1",
        "tRue",
        "nUll",
        "yEs",
        "nan",
        "inf",
        ".inF",
        "2027-1-1",
        "2027-01-01x",
        "2027-01-0",
        "27-01-01",
        "2027-01-01T10:00",
        "2027-01-01T10:00:00 UTC",
        "2027-01-01T10:00:00+",
        "2027-01-01T10:00:00+1:5",
        "2027-01-01T10:00:0",
        "a.example.com:443",
        "allowlist:api.example.com:443",
        "==",
        "<<<",
        "yes please",
        "no-network",
        "~/.ssh",
        "x",
        "y",
        "n",
        "null-device",
        "/workspace",
        "C:\\x",
        "--",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        struct document d;
        assert_string(scalar_of(&d, texts[i]), texts[i]);
        tci_arena_free(d.arena);
    }
}

static void test_quoted_and_block_scalars_are_strings_whatever_they_hold(void **state)
{
    (void)state;
    struct document d = parse("a: \"12\"\nb: 'true'\nc: |\n  12\nd: >-\n  yes\n  no\ne: \"\"\n"
                              "f: 'null'\ng: \"x\\0y\"\nh: \"\\u00e9\\x41\"\ni: 'it''s'\n");
    assert_string(value_of(d.root, "a"), "12");
    assert_string(value_of(d.root, "b"), "true");
    assert_string(value_of(d.root, "c"), "12\n");
    assert_string(value_of(d.root, "d"), "yes no");
    assert_string(value_of(d.root, "e"), "");
    assert_string(value_of(d.root, "f"), "null");
    assert_int_equal(value_of(d.root, "g")->string.length, 3);
    assert_memory_equal(value_of(d.root, "g")->string.data, "x\0y", 4);
    assert_string(value_of(d.root, "h"), "\xc3\xa9"
                                         "A");
    assert_string(value_of(d.root, "i"), "it's");
    tci_arena_free(d.arena);
}

static void test_spellings_that_readers_disagree_about_are_refused(void **state)
{
    static const char *const words[] = { "yes", "Yes", "YES", "on",  "On",  "ON",
                                         "no",  "No",  "NO",  "off", "Off", "OFF" };
    static const struct refusal refusals[] = {
        { "v: 010", 1, 4, "010 is octal to some", "leave out the leading zeros" },
        { "v: 08", 1, 4, "08 is octal", "leave out the leading zeros" },
        { "v: -010", 1, 4, "-010 is octal", "in quotes" },
        { "v: [1, 0755]", 1, 8, "0755", "leave out the leading zeros" },
        { "v: 2001-12-14\t21:59:43", 1, 4, "2001-12-14\\u000921:59:43 is a date", "in quotes" },
        { "v: =", 1, 4, "= is a sign with a meaning to some", "put it in quotes" },
        { "v: <<", 1, 4, "<< is a sign with a meaning to some", "put it in quotes" },
        { "=: 1", 1, 1, "the value key = is not allowed", "in quotes" },
        { "%YAML 1.1\n---\nv: 1", 1, 1, "YAML 1.1, not 1.2", "remove the %YAML line" },
    };
    /* To one of YAML 1.1 and 1.2, or with another value. */
    static const char *const numbers[] = {
        "1:30",     "190:20:30", "-1:30",  "0:30",     "08:59",   "10:00:00", "1_0:30", "4:5.6",
        "20:30.15", "1:30.",     "0b101",  "-0b1",     "+0b_1",   "1_000",    "1_",     "0_7",
        "-1_0",     "-0x1F",     "+0x1",   "0xF_F",    "0o17",    "0o0",      "1e3",    "12e03",
        "1e+3",     "1E-2",      "1.5e3",  ".5e3",     ".5_0",    "1._5",     "1_0.5",  "-.5",
        "+.5",      "1_0e+3",    "-.5e+1", "1.0_0e+3", "0o777777"
    };
    static const char *const dates[] = { "2001-12-14 21:59:43.10 -5", "2001-12-14t21:59:43.10-5",
                                         "2001-12-14 21:59:43 Z",     "2001-12-14T21:59:43.",
                                         "2001-12-14T21:59:43z",      "2001-1-4 1:59:43",
                                         "2001-12-14   21:59:43",     "2001-12-14T21:59:43+5:30",
                                         "2001-2-30T21:59:43Z",       "2001-12-14T1:59:43",
                                         "2001-12-14T21:59:43 +05:00" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(words); i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "v: %s", words[i]);
        assert_refused_bytes(text, strlen(text),
                             &(struct refusal){ text, 1, 4, "is a boolean to some YAML readers",
                                                i < 6 ? "write true" : "write false" });
    }
    for (size_t i = 0; i < tci_array_size(numbers); i++) {
        char text[32], message[96];
        (void)snprintf(text, sizeof text, "v: %s", numbers[i]);
        (void)snprintf(message, sizeof message, "%s is a number to some", numbers[i]);
        assert_refused_bytes(text, strlen(text),
                             &(struct refusal){ text, 1, 4, message, "in quotes" });
    }
    for (size_t i = 0; i < tci_array_size(dates); i++) {
        char text[64], message[96];
        (void)snprintf(text, sizeof text, "v: %s", dates[i]);
        (void)snprintf(message, sizeof message, "%s is a date to some", dates[i]);
        assert_refused_bytes(text, strlen(text),
                             &(struct refusal){ text, 1, 4, message, "in quotes" });
    }
    assert_all_refused(refusals, tci_array_size(refusals));
}

static void test_numbers_and_dates_that_do_not_exist_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        { "v: 9223372036854775808", 1, 4, "does not fit into 64 bits", "in quotes" },
        { "v: -9223372036854775809", 1, 4, "does not fit into 64 bits", "in quotes" },
        { "v: 0x8000000000000000", 1, 4, "does not fit into 64 bits", "in quotes" },
        { "v: 0xffffffffffffffff", 1, 4, "does not fit into 64 bits", "in quotes" },
        { "v: 123456789012345678901234567890123456789012345678901234567890", 1, 4,
          "1234567890123456789012345678901234567890... does not fit", "in quotes" },
        { "v: 1.0e+309", 1, 4, "1.0e+309 is too large", "in quotes" },
        { "v: -1.2e+4567", 1, 4, "is too large", "in quotes" },
        { "v: 2027-02-29", 1, 4, "2027-02-29 looks like a date", "in quotes" },
        { "v: 1900-02-29", 1, 4, "no such day", "in quotes" },
        { "v: 2027-13-01", 1, 4, "no such day", "in quotes" },
        { "v: 2027-00-01", 1, 4, "no such day", "in quotes" },
        { "v: 2027-04-31", 1, 4, "no such day", "in quotes" },
        { "v: 2027-04-00", 1, 4, "no such day", "in quotes" },
        { "v: 2027-01-01T24:00:00Z", 1, 4, "no such date and time", "in quotes" },
        { "v: 2027-01-01T10:60:00Z", 1, 4, "no such date and time", "in quotes" },
        { "v: 2027-01-01 10:00:61", 1, 4, "no such date and time", "in quotes" },
        { "v: 2027-01-01T10:00:00+24:00", 1, 4, "no such date and time", "in quotes" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));

    char text[300] = "v: 1.";
    memset(text + 5, '1', 200);
    assert_refused_bytes(text, strlen(text),
                         &(struct refusal){ text, 1, 4, "... is too long", "in quotes" });
}

static void test_null_is_refused_in_all_its_forms(void **state)
{
    static const struct refusal refusals[] = {
        { "a: 1\nb:\nc: 2\n", 2, 1, "the key \"b\" has no value", "remove the key or give it" },
        { "a: ~", 1, 4, "the key \"a\" has no value", "remove the key" },
        { "a: null", 1, 4, "the key \"a\" has no value", "remove the key" },
        { "a: Null", 1, 4, "has no value", "remove the key" },
        { "a: NULL", 1, 4, "has no value", "remove the key" },
        { "a: # nothing\n", 1, 1, "the key \"a\" has no value", "remove the key" },
        { "? a\n", 1, 3, "the key \"a\" has no value", "remove the key" },
        { "a: [1, ~]", 1, 8, "an item of the list has no value", "remove the item" },
        { "a:\n-\n- 1", 2, 2, "an item of the list has no value", "remove the item" },
        { "--- ~\n", 1, 5, "the file has no value", "key: value" },
        { "command: [curl, {url}]", 1, 18, "\"url\" has no value", "use quotes: \"{name}\"" },
        { "a: {b:1}", 1, 5, "\"b:1\" has no value", "a blank after the ':'" },
        { "~: 1", 1, 1, "a key is missing", "put it in quotes" },
        { "null: 1", 1, 1, "a key is missing", "put it in quotes" },
        { "{: 1}", 1, 2, "a value or a key is missing", "write a value" },
        { "?\n: 1\n", 1, 2, "a key is missing", "write a key" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));
}

/* ---- structure -------------------------------------------------------------------------- */

static void test_keys_are_text_whatever_they_look_like(void **state)
{
    (void)state;
    struct document d = parse("1: a\n010: b\ntrue: c\nyes: d\non: e\n2027-01-01: f\n\"<<\": g\n"
                              "'~': h\n\"\": i\n? j\n: k\n1.5: l\n");
    static const char *const keys[] = { "1",  "010", "true", "yes", "on", "2027-01-01",
                                        "<<", "~",   "",     "j",   "1.5" };
    size_t i = 0;
    tci_table_foreach (entry, d.root) {
        assert_true(i < tci_array_size(keys));
        assert_string_equal(entry->key.data, keys[i++]);
    }
    assert_int_equal(i, tci_array_size(keys));
    tci_arena_free(d.arena);
}

static void test_a_policy_becomes_the_tree_that_it_shows(void **state)
{
    (void)state;
    struct document d = parse("# a policy\n"
                              "version: 1\n"
                              "tool:\n"
                              "  web_fetch:\n"
                              "    network: [\"allowlist:api.example.com:443\", b.example.com:80]\n"
                              "    command:\n"
                              "    - curl\n"
                              "    - \"{url}\"\n"
                              "    filesystem: {writable: [/workspace], readable: []}\n"
                              "agent: {}\n");
    const struct tci_node *web = value_of(value_of(d.root, "tool"), "web_fetch");
    const struct tci_node *network = value_of(web, "network"), *command = value_of(web, "command");
    const struct tci_node *filesystem = value_of(web, "filesystem");
    assert_int_equal(value_of(d.root, "version")->integer, 1);
    assert_int_equal(network->array.count, 2);
    assert_string(network->array.items[0], "allowlist:api.example.com:443");
    assert_string(network->array.items[1], "b.example.com:80");
    assert_int_equal(command->array.count, 2);
    assert_string(command->array.items[1], "{url}");
    assert_string(value_of(filesystem, "writable")->array.items[0], "/workspace");
    assert_int_equal(value_of(filesystem, "readable")->array.count, 0);
    assert_int_equal(value_of(d.root, "agent")->type, TCI_NODE_TABLE);
    assert_int_equal(d.root->table.count, 3);
    tci_arena_free(d.arena);
}

static void test_an_empty_document_is_an_empty_table(void **state)
{
    static const char *const texts[] = {
        "",      "\n",           "# only a comment", "---\n",      "---",
        "--- #", "\xef\xbb\xbf", "%YAML 1.2\n---\n", "---\n...\n", "  \n\n",
        "{}",    "\r\n# x\r\n"
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        struct document d = parse(texts[i]);
        assert_int_equal(d.root->type, TCI_NODE_TABLE);
        assert_int_equal(d.root->table.count, 0);
        assert_pos(d.root->pos, 1, 1);
        tci_arena_free(d.arena);
    }
    struct document d = parse_bytes(NULL, 0);
    assert_int_equal(d.result, 0);
    tci_arena_free(d.arena);
}

static void test_every_key_and_value_has_its_place(void **state)
{
    (void)state;
    struct document d = parse("\xef\xbb\xbf"
                              "a: \xc3\xa9\xc3\xa9\r\n"
                              "\xc3\xa9\t: [\xf0\x9f\x98\x80, x]\r\n"
                              "b:\r\n"
                              "  c: |\r\n"
                              "    text\r\n"
                              "  \"d\": {e: 1}\r\n"
                              "f:\t'x'\r\n"
                              "g:\r\n"
                              "- 1\r\n");
    const struct tci_entry *a = entry_of(d.root, "a"), *e_acute = entry_of(d.root, "\xc3\xa9");
    assert_pos(d.root->pos, 1, 1);
    assert_pos(a->key_pos, 1, 1);
    assert_pos(a->value->pos, 1, 4);
    assert_pos(e_acute->key_pos, 2, 1);
    assert_pos(e_acute->value->pos, 2, 5);
    assert_pos(e_acute->value->array.items[0]->pos, 2, 6);
    assert_pos(e_acute->value->array.items[1]->pos, 2, 9);
    const struct tci_node *b = value_of(d.root, "b");
    assert_pos(b->pos, 4, 3);
    assert_pos(entry_of(b, "c")->key_pos, 4, 3);
    assert_pos(value_of(b, "c")->pos, 4, 6);
    assert_string(value_of(b, "c"), "text\n");
    assert_pos(entry_of(b, "d")->key_pos, 6, 3);
    assert_pos(value_of(b, "d")->pos, 6, 8);
    assert_pos(value_of(value_of(b, "d"), "e")->pos, 6, 12);
    assert_pos(value_of(d.root, "f")->pos, 7, 4);
    assert_pos(value_of(d.root, "g")->pos, 9, 1);
    assert_pos(value_of(d.root, "g")->array.items[0]->pos, 9, 3);
    tci_arena_free(d.arena);
}

static void test_a_key_given_twice_is_refused_and_names_the_first(void **state)
{
    static const struct refusal refusals[] = {
        { "a: 1\nb: 2\n\"a\": 3\n", 3, 1, "\"a\" is given twice, first in line 1, column 1",
          "remove one" },
        { "x:\n  {k: 1, 'k': 2}", 2, 10, "\"k\" is given twice, first in line 2, column 4", "" },
        { "1: a\n'1': b", 2, 1, "first in line 1, column 1", "" },
        { "\"a\\0\": 1\n\"a\\0\": 2", 2, 1, "\"a\\u0000\" is given twice", "" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));
    struct document d = parse("\"a\\0\": 1\na: 2\n");
    assert_int_equal(d.root->table.count, 2);
    tci_arena_free(d.arena);
}

static void test_what_hides_meaning_is_refused_with_a_remedy(void **state)
{
    static const struct refusal refusals[] = {
        { "a: &x 1", 1, 4, "'&' starts an anchor", "write the value out" },
        { "&x a: 1", 1, 1, "'&' starts an anchor", "write the value out" },
        { "a: &x [1]", 1, 4, "'&' starts an anchor", "write the value out" },
        { "a: &x {b: 1}", 1, 4, "'&' starts an anchor", "write the value out" },
        { "a: &", 1, 4, "'&' starts an anchor", "use quotes" },
        { "a: 1\nb: *x", 2, 4, "'*' starts an alias", "use quotes: \"*.example.com\"" },
        { "a: *.example.com:443", 1, 4, "'*' starts an alias", "use quotes" },
        { "a: [*.example.com:443]", 1, 5, "'*' starts an alias", "use quotes" },
        { "*x : 1", 1, 1, "'*' starts an alias", "use quotes" },
        { "a: !!str 1", 1, 4, "'!' starts a tag", "remove it" },
        { "a: !!binary aGk=", 1, 4, "'!' starts a tag", "remove it" },
        { "a: !x [1]", 1, 4, "'!' starts a tag", "remove it" },
        { "a: !x {b: 1}", 1, 4, "'!' starts a tag", "remove it" },
        { "a: ! 12", 1, 4, "'!' starts a tag", "remove it" },
        { "a: ! \"12\"", 1, 4, "'!' starts a tag", "remove it" },
        { "a: ! [12]", 1, 4, "'!' starts a tag", "remove it" },
        { "\xc3\xa9: 1\n! b: 1", 2, 1, "'!' starts a tag", "remove it" },
        { "a: !<tag:yaml.org,2002:str> 1", 1, 4, "'!' starts a tag", "remove it" },
        { "a: !<x", 1, 4, "'!' starts a tag", "remove it" },
        { "a: !h!x 1", 1, 4, "'!' starts a tag", "remove it" },
        { "--- !x\na: 1", 1, 5, "'!' starts a tag", "remove it" },
        { "<<: {a: 1}", 1, 1, "the merge key << is not allowed", "write the keys" },
        { "b: 1\n<< : 2", 2, 1, "the merge key << is not allowed", "write the keys" },
        { "%TAG ! tag:x,2000:\n---\na: 1", 1, 1, "%TAG directives are not", "remove the line" },
        { "# x\n\n%YAML 1.2\n%TAG ! x\n---\na: 1", 4, 1, "%TAG directives", "remove the line" },
        { "? [a]\n: 1", 1, 3, "a key must be text, and this is an array", "quotes" },
        { "{a: 1}: 1", 1, 1, "a key must be text, and this is a table", "quotes" },
        { "a: [[b]: c]", 1, 5, "a key must be text, and this is an array", "quotes" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));
}

static void test_there_is_one_document_and_it_is_a_table(void **state)
{
    static const struct refusal refusals[] = {
        { "a: 1\n---\nb: 2", 2, 1, "a second document", "a file of its own" },
        { "---\n---\n", 2, 1, "a second document", "a file of its own" },
        { "---\n# x\n--- {}\n", 3, 1, "a second document", "a file of its own" },
        { "a: 1\n...\n# x\n\n---\n", 5, 1, "a second document", "a file of its own" },
        { "a: 1\n...\n%TAG ! x\n---\n", 3, 1, "a second document", "a file of its own" },
        { "a: 1\n%YAML 1.2\n---\n", 2, 1, "a second document", "a file of its own" },
        { "a: 1\n... x\n", 2, 5, "more text where the document has ended", "" },
        { "a: 1\n...\nb: 2\n", 3, 1, "more text where the document has ended", "" },
        { "{a: 1} b", 1, 8, "more text where the document has ended", "" },
        { "{a: 1} %TAG", 1, 8, "cannot start with '%'", "quotes" },
        { "- a\n- b\n", 1, 1, "the file holds an array", "key: value" },
        { "[]", 1, 1, "the file holds an array", "key: value" },
        { "\n  text", 2, 3, "the file holds a string", "key: value" },
        { "--- \"\"", 1, 5, "the file holds a string", "key: value" },
        { "42", 1, 1, "the file holds an integer", "key: value" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));
    tci_arena_free(parse("a: 1\n...\n").arena);
    tci_arena_free(parse("a: 1\n...\n# x\n\n...\n").arena);
    tci_arena_free(parse("%YAML 1.2\n---\na: 1").arena);
    /* Inside a text these are no document lines. */
    tci_arena_free(parse("a: |\n  ---\n  %TAG x\nb: \"\n  %TAG\"\n").arena);
}

static void test_errors_of_syntax_are_said_in_words_for_people(void **state)
{
    static const struct refusal refusals[] = {
        { "a:\n\tb: 1", 2, 1, "a tab cannot be used for indentation", "indent with spaces" },
        { "a:\n  b: 1\n\tc: 2\n", 3, 1, "a tab cannot be used", "indent with spaces" },
        { "a: |\n\tx", 2, 1, "a tab cannot be used", "indent with spaces" },
        { "a: b: c", 1, 5, "a ':' that cannot be here", "quotes" },
        { "a: 1\n  b: 2\n", 2, 4, "a ':' that cannot be here", "check the indentation" },
        { "a: [b:]", 1, 6, "a ':' that cannot be here", "a blank after the ':'" },
        { "a: ? b", 1, 4, "a '?' that cannot be here", "quotes" },
        { "a: - b", 1, 4, "a '-' that cannot be here", "line of its own" },
        { "a: 1\nfoo\nb: 2\n", 2, 1, "a key without a ':'", "key: value" },
        { "a:\n    b: 1\n  c: 2\n", 3, 3,
          "expected a key, indented like those above (start: line 1", "the same column" },
        { "a:\n  - b\n  c: 1\n", 3, 3, "expected a '-', indented", "the same column" },
        { ": 1", 1, 1, "expected a key", "" },
        { "a: [1, 2", 1, 9, "expected ',' or ']' in the list (start: line 1, column 4)", "']'" },
        { "a: [1, 2\n", 2, 1, "expected ',' or ']'", "close the list" },
        { "a: {b: 1\n", 2, 1, "expected ',' or '}' after a value (start: line 1, column 4)", "," },
        { "a: [1, , 2]", 1, 8, "a value or a key is missing here", "quotes" },
        { "a: \"x\n  y", 2, 4, "the closing quote is missing (start: line 1, column 4)", "close" },
        { "a: 'x", 1, 6, "the closing quote is missing", "close" },
        { "a: 'x\n--- y'", 2, 1, "the closing quote is missing before ---", "close" },
        { "a: \"\\d\"", 1, 5, "an escape that YAML does not have", "\\\\ for a backslash" },
        { "a: \"\\x4\"", 1, 7, "\\x takes 2", "backslash" },
        { "a: \"\\ud800\"", 1, 7, "no character", "the character itself" },
        { "a: | x\n  y", 1, 6, "cannot follow '|' or '>'", "next line" },
        { "a: @x", 1, 4, "a value cannot start with '@'", "in quotes" },
        { "a: `x`", 1, 4, "a value cannot start with '`'", "in quotes" },
        { "a: %x", 1, 4, "a value cannot start with '%'", "in quotes" },
        { "%YAML 1.3\n---\n", 1, 1, "not YAML 1.2", "remove the %YAML line" },
        { "%YAML 1.2\n%YAML 1.2\n---\n", 2, 1, "a second %YAML line", "remove" },
        { "%YAML x\n---\n", 1, 1, "a %YAML line without a version", "remove" },
        { "%FOO x\n---\n", 1, 1, "is a directive", "remove" },
        { "a: 1\n%TAG\n", 2, 1, "is a directive", "remove" },
        { "%YAML 1.2\na: 1\n", 2, 1, "more text where", "write ---" },
    };
    (void)state;
    assert_all_refused(refusals, tci_array_size(refusals));
}

static void test_bad_encodings_and_hidden_characters_are_refused_with_a_place(void **state)
{
#define BYTES(bytes)                                                                               \
    {                                                                                              \
        bytes, sizeof bytes - 1                                                                    \
    }
    static const struct {
        struct tci_text bytes;
        struct refusal refusal;
    } cases[] = {
        { BYTES("\xff\xfe"
                "a\0:\0"),
          { "", 1, 1, "UTF-16", "save the file as UTF-8" } },
        { BYTES("\xfe\xff\0a\0:"), { "", 1, 1, "UTF-16", "save the file as UTF-8" } },
        { BYTES("a\0:\0 \0b\0"), { "", 1, 1, "UTF-16", "save the file as UTF-8" } },
        { BYTES("\0a\0:\0 \0b"), { "", 1, 1, "UTF-16", "save the file as UTF-8" } },
        { BYTES("\0\0\xfe\xff"), { "", 1, 1, "UTF-32", "save the file as UTF-8" } },
        { BYTES("a\0\0\0:\0\0\0"), { "", 1, 1, "UTF-32", "save the file as UTF-8" } },
        { BYTES("a: b\0c"), { "", 1, 5, "a NUL byte", "write \\0" } },
        { BYTES("a: 1\n\0"), { "", 2, 1, "a NUL byte", "write \\0" } },
        { BYTES("a: \xc3("), { "", 1, 4, "the byte \\xC3 is not UTF-8", "UTF-8" } },
        { BYTES("\xc3\xa9: \xff"), { "", 1, 4, "the byte \\xFF is not UTF-8", "UTF-8" } },
        { BYTES("a: 1\n# \xed\xa0\x80"), { "", 2, 3, "the byte \\xED", "UTF-8" } },
        { BYTES("a: \xc0\xaf"), { "", 1, 4, "the byte \\xC0", "UTF-8" } },
        { BYTES("a: \xe2\x82"), { "", 1, 4, "the byte \\xE2", "UTF-8" } },
        { BYTES("a: \x1b[1m"), { "", 1, 4, "control character U+001B", "\"\\u001B\"" } },
        { BYTES("a: \x7f"), { "", 1, 4, "control character U+007F", "escape" } },
        { BYTES("a: \xc2\x80"), { "", 1, 4, "control character U+0080", "escape" } },
        { BYTES("a: \xef\xbf\xbf"), { "", 1, 4, "control character U+FFFF", "escape" } },
        { BYTES("# x\xc2\x85"
                "a: 1"),
          { "", 1, 4, "U+0085 is the end of a line to some", "" } },
        { BYTES("# x\xe2\x80\xa8"
                "a: 1"),
          { "", 1, 4, "U+2028 is the end of a line", "" } },
        { BYTES("# x\xe2\x80\xa9"
                "a: 1"),
          { "", 1, 4, "U+2029 is the end of a line", "" } },
        { BYTES("# x\ra: 1"), { "", 1, 4, "a carriage return without", "LF or CRLF" } },
        { BYTES("a: 1\r"), { "", 1, 5, "a carriage return without", "LF or CRLF" } },
        { BYTES("a: 1\n\xef\xbb\xbf"
                "b: 2"),
          { "", 2, 1, "byte order mark", "remove it" } },
        { BYTES("\xef\xbb\xbf\xef\xbb\xbf"
                "b: 2"),
          { "", 1, 1, "byte order mark", "remove" } },
    };
#undef BYTES
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        assert_refused_bytes(cases[i].bytes.data, cases[i].bytes.length, &cases[i].refusal);
    /* The same characters as escapes are text like any other. */
    struct document d = parse("a: \"\\u2028\\x1b\\ufeff\\N\"\n");
    assert_string(value_of(d.root, "a"), "\xe2\x80\xa8\x1b\xef\xbb\xbf\xc2\x85");
    tci_arena_free(d.arena);
}

static void test_excerpts_are_short_and_show_no_hidden_characters(void **state)
{
    (void)state;
    const struct refusal hidden = {
        "\"\\e[1m\\u202E\\\"\\\\ \\U0001F600\xc3\xa9\":", 1, 1,
        "\"\\u001B[1m\\u202E\\\"\\\\ \\U0001F600\xc3\xa9\" has no value", ""
    };
    assert_all_refused(&hidden, 1);
    char text[1000] = "";
    for (size_t i = 0; i < 900; i += 3)
        memcpy(text + i, "\xe4\xb8\xad", 3);
    text[900] = ':';
    struct document d = parse_bytes(text, 901);
    assert_int_equal(d.result, -1);
    assert_true(strlen(d.error.message) < 150);
    assert_non_null(strstr(d.error.message, "\xe4\xb8\xad...\" has no value"));
    tci_arena_free(d.arena);
}

static void test_errors_can_be_left_out(void **state)
{
    static const char *const texts[] = { "a:", "a: yes", "a: [", "- a", "a: \x1b", "a: 1\na: 2" };
    struct tci_arena *arena = tci_arena_new();
    struct tci_node *root = NULL;
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++)
        assert_int_equal(tci_yaml_parse(arena, texts[i], strlen(texts[i]), &root, NULL), -1);
    assert_null(root);
    tci_arena_free(arena);
}

/* ---- bounds ----------------------------------------------------------------------------- */

/* "a: " and then `depth` brackets around a number. */
static struct document nested(unsigned depth)
{
    char text[512];
    struct tci_buf buf = TCI_BUF_INIT(sizeof text);
    tci_buf_string(&buf, "a: ");
    for (unsigned i = 0; i < depth; i++)
        tci_buf_char(&buf, '[');
    tci_buf_char(&buf, '1');
    for (unsigned i = 0; i < depth; i++)
        tci_buf_char(&buf, ']');
    struct document d = parse_bytes(buf.data, buf.length);
    tci_buf_free(&buf);
    return d;
}

static void test_depth_has_a_limit_as_in_toml(void **state)
{
    (void)state;
    struct document d = nested(TCI_YAML_DEPTH_MAX - 1);
    assert_int_equal(d.result, 0);
    tci_arena_free(d.arena);
    d = nested(TCI_YAML_DEPTH_MAX);
    assert_int_equal(d.result, -1);
    assert_int_equal(d.error.code, TC_ERROR_TOO_LARGE);
    assert_int_equal(d.error.line, 1);
    assert_int_equal(d.error.column, 4 + TCI_YAML_DEPTH_MAX);
    assert_non_null(strstr(d.error.message, "more than 64 levels"));
    tci_arena_free(d.arena);
}

static void test_size_has_a_limit(void **state)
{
    char *text = malloc(TCI_YAML_SIZE_MAX + 1);
    (void)state;
    assert_non_null(text);
    memset(text, '#', TCI_YAML_SIZE_MAX + 1);
    struct document d = parse_bytes(text, TCI_YAML_SIZE_MAX);
    assert_int_equal(d.result, 0);
    tci_arena_free(d.arena);
    d = parse_bytes(text, TCI_YAML_SIZE_MAX + 1);
    assert_int_equal(d.result, -1);
    assert_int_equal(d.error.code, TC_ERROR_TOO_LARGE);
    assert_non_null(strstr(d.error.message, "1048577 bytes"));
    tci_arena_free(d.arena);
    free(text);
}

/* A text of this size: the prefix, and then the unit again and again; %u in a unit counts. */
static void fill(struct tci_buf *buf, const char *prefix, const char *unit, size_t size)
{
    const char *number = strstr(unit, "%u");
    tci_buf_string(buf, prefix);
    for (unsigned i = 0; buf->length + 32 < size; i++) {
        if (!number) {
            tci_buf_string(buf, unit);
            continue;
        }
        tci_buf_append(buf, unit, (size_t)(number - unit));
        tci_buf_printf(buf, "%u", i);
        tci_buf_string(buf, number + 2);
    }
}

static double reading_time(const char *prefix, const char *unit, size_t size)
{
    struct tci_buf buf = TCI_BUF_INIT(TCI_YAML_SIZE_MAX);
    fill(&buf, prefix, unit, size);
    clock_t start = clock();
    tci_arena_free(parse_bytes(buf.data, buf.length).arena);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    tci_buf_free(&buf);
    return seconds;
}

#define BRACKETS_60 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["

/* libyaml alone takes minutes for the first few of them. */
static void test_hostile_texts_take_time_in_proportion_to_their_size(void **state)
{
    static const char *const shapes[][2] = {
        { "a: ", "[" },
        { "a: ", "[\n" },
        { "a: ", "{a: " },
        { "a: ", "[{a: " },
        { "", "%TAG !a%u! b\n" },
        { "a: 1\n...\n", "%TAG !a%u! b\n" },
        { "a: 1\n", "%TAG !a%u! b\n" },
        { "a: ", BRACKETS_60 },
        { "a: " BRACKETS_60, "a," },
        { "a: " BRACKETS_60, "a,\n" },
        { "a: " BRACKETS_60, "[]," },
        { "a: [", "a," },
        { "a: [", "a: b, " },
        { "a: {", "k%u: v, " },
        { "", "k%u: v\n" },
        { "", "? k%u\n: v\n" },
        { "a:\n", "- a\n" },
        { "a:\n", "- " },
        { "a:\n  ", "? " },
        { "a:\n  ", ": " },
        { "a: ", "x" },
        { "a: ", "x\n " },
        { "a: \"", "\n" },
        { "a: \"", "\\u00e9" },
        { "a: |\n", "   \n" },
        { "a: >\n", "  x\n\n" },
        { "a: ", "1" },
        { "a: 1.", "1" },
        { "", "# x\n" },
        { "a:", " " },
        { "", "---\n" },
        { "", "...\n" },
        { "a: ", "&a " },
        { "a: !", "%41" },
    };
#ifdef SANITIZED
    const size_t small = 40000; /* each node is a malloc of its own there */
#else
    const size_t small = 120000;
#endif
    (void)state;
    for (size_t i = 0; i < tci_array_size(shapes); i++) {
        double before = reading_time(shapes[i][0], shapes[i][1], small);
        double after = reading_time(shapes[i][0], shapes[i][1], 4 * small);
        /* Linear is 4 and quadratic 16; caches and a busy machine ask for slack. */
        if (after > 10 * before + 0.25)
            fail_msg("%s%s...: %.3f s, then %.3f s for four times as much", shapes[i][0],
                     shapes[i][1], before, after);
    }
}

#ifdef SANITIZED
static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    (void)state;
    skip(); /* malloc belongs to the sanitizer */
}
#else
/* One of everything, and texts of 70 kB: those get chunks of their own in the arena, so that each
 * of its callers meets a failure. They come last: what is before them is read again and again. */
static void fill_chunks(struct tci_buf *buf)
{
    static char filler[70001];
    memset(filler, 'x', sizeof filler - 1);
    tci_buf_string(buf, "%YAML 1.2\n---\na: [1, 1.5, true, 2027-01-01, 'b', \"\\n\"]\n");
    tci_buf_string(buf, "deep: [[[[[[[[[[[[[[[[[[{a: {b: {c: d}}}]]]]]]]]]]]]]]]]]]\nmany:\n");
    for (unsigned i = 0; i < 100; i++)
        tci_buf_printf(buf, "  k%u: v\n", i);
    tci_buf_string(buf, "list: [");
    for (unsigned i = 0; i < 100; i++)
        tci_buf_string(buf, "a,");
    tci_buf_printf(buf, "]\n? \"%s\"\n: %s\n...\n", filler, filler);
}

/* Not so under valgrind, which puts its own functions before ours. */
static bool allocations_are_counted(void)
{
    begin_round(1);
    struct tci_arena *arena = tci_arena_new();
    begin_round(0);
    free(arena);
    return !arena;
}

static int parse_counted(const struct tci_buf *text, long successes, struct document *d)
{
    long before = allocations.live;
    *d = (struct document){ .arena = tci_arena_new() };
    begin_round(successes + 1);
    allocations.failing_on = true;
    d->result = tci_yaml_parse(d->arena, text->data, text->length, &d->root, &d->error);
    begin_round(0);
    tci_arena_free(d->arena);
    assert_int_equal(allocations.live, before);
    return d->result;
}

static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_YAML_SIZE_MAX);
    struct document d;
    long successes = 0;
    (void)state;
    if (!allocations_are_counted())
        skip();
    fill_chunks(&text);
    for (; parse_counted(&text, successes, &d) < 0 && successes < 100000; successes++) {
        if (d.error.code != TC_ERROR_NO_MEMORY)
            fail_msg("%ld: %u:%u: %s", successes, d.error.line, d.error.column, d.error.message);
        assert_null(d.root);
    }
    assert_int_equal(d.result, 0);
    if (successes < 300)
        fail_msg("only %ld allocations were tried", successes);
    tci_buf_free(&text);
}
#endif

/*
 * For tests/e2e/test_yaml_differential.py: with --types, what each line of the input means as a
 * value, as one line of type and value. A float is printed so that no bit is lost.
 */
static void print_type(const char *scalar)
{
    char text[512];
    struct document d;
    const struct tci_node *node;
    (void)snprintf(text, sizeof text, "v: %s\n", scalar);
    d = parse_bytes(text, strlen(text));
    node = d.result < 0 ? NULL : value_of(d.root, "v");
    if (!node)
        printf("refused\t%s\n", d.error.message);
    else if (node->type == TCI_NODE_STRING)
        printf("string\t%s\n", node->string.data);
    else if (node->type == TCI_NODE_BOOLEAN)
        printf("boolean\t%d\n", node->boolean);
    else if (node->type == TCI_NODE_INTEGER)
        printf("integer\t%lld\n", (long long)node->integer);
    else if (node->type == TCI_NODE_FLOAT)
        printf("float\t%a\n", node->number);
    else if (node->type == TCI_NODE_ARRAY || node->type == TCI_NODE_TABLE)
        printf("collection\n");
    else
        printf("%s\t%04d-%02d-%02d %02d:%02d:%02d.%09u %d\n",
               node->type == TCI_NODE_DATETIME         ? "datetime"
               : node->type == TCI_NODE_LOCAL_DATETIME ? "local-datetime"
                                                       : "date",
               node->datetime.year, node->datetime.month, node->datetime.day, node->datetime.hour,
               node->datetime.minute, node->datetime.second, (unsigned)node->datetime.nanosecond,
               node->datetime.offset_minutes);
    tci_arena_free(d.arena);
}

static int print_types(void)
{
    char line[400];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        print_type(line);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--types") == 0)
        return print_types();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_booleans_are_those_of_the_core_schema),
        cmocka_unit_test(test_integers_are_decimal_or_hexadecimal),
        cmocka_unit_test(test_floats_are_those_of_the_core_schema_in_any_locale),
        cmocka_unit_test(test_dates_are_the_same_as_in_toml),
        cmocka_unit_test(test_everything_else_is_a_string),
        cmocka_unit_test(test_quoted_and_block_scalars_are_strings_whatever_they_hold),
        cmocka_unit_test(test_spellings_that_readers_disagree_about_are_refused),
        cmocka_unit_test(test_numbers_and_dates_that_do_not_exist_are_refused),
        cmocka_unit_test(test_null_is_refused_in_all_its_forms),
        cmocka_unit_test(test_keys_are_text_whatever_they_look_like),
        cmocka_unit_test(test_a_policy_becomes_the_tree_that_it_shows),
        cmocka_unit_test(test_an_empty_document_is_an_empty_table),
        cmocka_unit_test(test_every_key_and_value_has_its_place),
        cmocka_unit_test(test_a_key_given_twice_is_refused_and_names_the_first),
        cmocka_unit_test(test_what_hides_meaning_is_refused_with_a_remedy),
        cmocka_unit_test(test_there_is_one_document_and_it_is_a_table),
        cmocka_unit_test(test_errors_of_syntax_are_said_in_words_for_people),
        cmocka_unit_test(test_bad_encodings_and_hidden_characters_are_refused_with_a_place),
        cmocka_unit_test(test_excerpts_are_short_and_show_no_hidden_characters),
        cmocka_unit_test(test_errors_can_be_left_out),
        cmocka_unit_test(test_depth_has_a_limit_as_in_toml),
        cmocka_unit_test(test_size_has_a_limit),
        cmocka_unit_test(test_hostile_texts_take_time_in_proportion_to_their_size),
        cmocka_unit_test(test_no_memory_is_reported_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
