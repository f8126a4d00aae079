/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/yaml.h: structure, where things are, what is refused and how it is said.
 */
#include "yaml_support.h"

#include <string.h>
#include "policy/yaml.h"

static void assert_pos(struct tci_pos pos, unsigned line, unsigned column)
{
    assert_int_equal(pos.line, line);
    assert_int_equal(pos.column, column);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
