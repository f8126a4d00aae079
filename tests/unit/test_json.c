/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of src/json: the writer, and numbers as ECMAScript writes them. */
#include "json_support.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <jansson.h>
#include "json/canonical.h"
#include "json/number.h"
#include "policy/toml.h"

/* ---- the writer ------------------------------------------------------------------------------- */

enum { text_max = 4096 };

static void assert_string_written(const char *bytes, size_t length, const char *expected)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf };
    char *text;
    json_t *read;
    tci_json_bytes(&json, NULL, bytes, length);
    text = finish(&buf);
    assert_string_equal(text, expected);
    /* Whatever went in: what comes out is JSON, and a TOML string too. */
    read = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(read);
    json_decref(read);
    free(text);
}

static void test_strings_are_escaped(void **state)
{
    (void)state;
    assert_string_written("", 0, "\"\"");
    assert_string_written("plain", 5, "\"plain\"");
    assert_string_written("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    assert_string_written("\n\t\r\b\f\0\x1f", 7, "\"\\n\\t\\r\\u0008\\u000c\\u0000\\u001f\"");
    assert_string_written("\x1b[31m", 5, "\"\\u001b[31m\"");
    assert_string_written("\x7f", 1, "\"\\u007f\"");
    assert_string_written("caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
    /* C1 controls and the line separators, next to characters that stay. */
    assert_string_written("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", 8,
                          "\"\\u0080\\u009b\\u009f\xc2\xa0\"");
    assert_string_written("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xb0", 12,
                          "\"\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xb0\"");
    /* What reorders or hides text: overrides, zero-width characters, tags (beyond U+FFFF). */
    assert_string_written("\xe2\x80\xae\xe2\x80\x8b\xef\xbb\xbf", 9, "\"\\u202e\\u200b\\ufeff\"");
    assert_string_written("a\xf3\xa0\x81\x81z", 6, "\"a\\udb40\\udc41z\"");
    assert_string_written("a\xf0\x9d\x85\xb3z", 6, "\"a\\ud834\\udd73z\"");
}

static void test_bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    assert_string_written("\xff", 1, "\"\\ufffd\"");
    assert_string_written("a\x80z", 3, "\"a\\ufffdz\"");
    assert_string_written("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");
    assert_string_written("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");
    assert_string_written("\xe2\x82", 2, "\"\\ufffd\\ufffd\"");
    assert_string_written("ok\xf0\x9f\x98", 5, "\"ok\\ufffd\\ufffd\\ufffd\"");
}

static void write_document(struct tci_json *json)
{
    tci_json_object_begin(json, NULL);
    tci_json_array_begin(json, "list");
    tci_json_integer(json, NULL, INT64_MIN);
    tci_json_unsigned(json, NULL, UINT64_MAX);
    tci_json_array_begin(json, NULL);
    tci_json_array_end(json);
    tci_json_object_begin(json, NULL);
    tci_json_object_end(json);
    tci_json_array_end(json);
    tci_json_object_begin(json, "table");
    tci_json_bool(json, "yes", true);
    tci_json_bool(json, "no", false);
    tci_json_object_end(json);
    tci_json_string(json, "text", "x");
    tci_json_double(json, "half", 0.5);
    tci_json_printf(json, "made", "%s-%d", "a", 7);
    tci_json_object_end(json);
}

static void test_separators_between_nested_values(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf };
    char *text;
    (void)state;
    write_document(&json);
    text = finish(&buf);
    assert_string_equal(text, "{\"list\":[-9223372036854775808,18446744073709551615,[],{}],"
                              "\"table\":{\"yes\":true,\"no\":false},"
                              "\"text\":\"x\",\"half\":0.5,\"made\":\"a-7\"}");
    free(text);
}

static void test_pretty_form_indents_by_level(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf, .pretty = true };
    char *text;
    (void)state;
    write_document(&json);
    text = finish(&buf);
    assert_string_equal(text, "{\n"
                              "  \"list\": [\n"
                              "    -9223372036854775808,\n"
                              "    18446744073709551615,\n"
                              "    [],\n"
                              "    {}\n"
                              "  ],\n"
                              "  \"table\": {\n"
                              "    \"yes\": true,\n"
                              "    \"no\": false\n"
                              "  },\n"
                              "  \"text\": \"x\",\n"
                              "  \"half\": 0.5,\n"
                              "  \"made\": \"a-7\"\n"
                              "}");
    free(text);
}

static void test_nothing_and_not_finite_are_null(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf };
    char *text;
    (void)state;
    tci_json_array_begin(&json, NULL);
    tci_json_null(&json, NULL);
    tci_json_string(&json, NULL, NULL);
    tci_json_double(&json, NULL, HUGE_VAL);
    tci_json_double(&json, NULL, -HUGE_VAL);
    tci_json_double(&json, NULL, (double)NAN);
    tci_json_raw(&json, NULL, "{\"raw\":1}");
    tci_json_array_end(&json);
    text = finish(&buf);
    assert_string_equal(text, "[null,null,null,null,null,{\"raw\":1}]");
    free(text);
}

static void test_formatted_string_is_cut_at_its_maximum(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf };
    char *text;
    (void)state;
    tci_json_printf(&json, NULL, "%02000d", 1);
    text = finish(&buf);
    assert_int_equal(strlen(text), 1023 + 2);
    free(text);
}

static void test_toml_syntax_differs_in_keys_only(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    static const char *const keys[] = {
        "bare-key_1",  "",     "a b",      "a.b",          "\"",
        "caf\xc3\xa9", "\x7f", "\xc2\x85", "\xe2\x80\xae", "\xf3\xa0\x81\x81"
    };
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf, .syntax = TCI_SYNTAX_TOML };
    struct tc_error error = { 0 };
    struct tci_node *root = NULL;
    struct tci_entry *table;
    char *text;
    (void)state;
    assert_non_null(arena);
    tci_json_object_begin(&json, "table");
    for (size_t i = 0; i < tci_array_size(keys); i++)
        tci_json_string(&json, keys[i], keys[i]);
    tci_json_array_begin(&json, "list");
    tci_json_unsigned(&json, NULL, 1);
    tci_json_unsigned(&json, NULL, 2);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    text = finish(&buf);
    assert_string_equal(text,
                        "table = { bare-key_1 = \"bare-key_1\", \"\" = \"\", \"a b\" = \"a b\", "
                        "\"a.b\" = \"a.b\", \"\\\"\" = \"\\\"\", "
                        "\"caf\xc3\xa9\" = \"caf\xc3\xa9\", \"\\u007f\" = \"\\u007f\", "
                        "\"\\u0085\" = \"\\u0085\", \"\\u202e\" = \"\\u202e\", \"\\U000e0041\" = "
                        "\"\\U000e0041\", list = [1, 2] }");
    if (tci_toml_parse(arena, text, strlen(text), TCI_TOML_1_0, &root, &error) < 0)
        fail_msg("%s", error.message);
    table = tci_table_find(root, "table", 5);
    assert_non_null(table);
    for (size_t i = 0; i < tci_array_size(keys); i++) {
        struct tci_entry *entry = tci_table_find(table->value, keys[i], strlen(keys[i]));
        assert_non_null(entry);
        assert_true(tci_text_is(entry->value->string, keys[i]));
    }
    free(text);
}

static void test_empty_containers_are_toml_too(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_buf buf = TCI_BUF_INIT(text_max);
    struct tci_json json = { .out = &buf, .syntax = TCI_SYNTAX_TOML };
    struct tc_error error = { 0 };
    struct tci_node *root = NULL;
    char *text;
    (void)state;
    assert_non_null(arena);
    tci_json_object_begin(&json, "outer");
    tci_json_object_begin(&json, "table");
    tci_json_object_end(&json);
    tci_json_array_begin(&json, "list");
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    text = finish(&buf);
    if (tci_toml_parse(arena, text, strlen(text), TCI_TOML_1_0, &root, &error) < 0)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(tci_table_find(root, "outer", 5)->value->table.count, 2);
    free(text);
}

static void test_output_past_the_maximum_fails_as_a_whole(void **state)
{
    (void)state;
    for (size_t room = 0; room < 120; room++) {
        struct tci_buf buf = TCI_BUF_INIT(room);
        struct tci_json json = { .out = &buf };
        write_document(&json);
        assert_int_equal(tci_buf_check(&buf, NULL), -1);
        assert_true(buf.length <= room);
        tci_buf_free(&buf);
    }
}

/* ---- numbers ---------------------------------------------------------------------------------- */

/* RFC 8785, appendix B, and the borders of ECMAScript's four notations. */
static const struct {
    uint64_t bits;
    const char *text;
} samples[] = {
    { 0x0000000000000000, "0" },
    { 0x8000000000000000, "0" },
    { 0x0000000000000001, "5e-324" },
    { 0x8000000000000001, "-5e-324" },
    { 0x7fefffffffffffff, "1.7976931348623157e+308" },
    { 0xffefffffffffffff, "-1.7976931348623157e+308" },
    { 0x4340000000000000, "9007199254740992" },
    { 0xc340000000000000, "-9007199254740992" },
    { 0x4430000000000000, "295147905179352830000" },
    { 0x44b52d02c7e14af5, "9.999999999999997e+22" },
    { 0x44b52d02c7e14af6, "1e+23" },
    { 0x44b52d02c7e14af7, "1.0000000000000001e+23" },
    { 0x444b1ae4d6e2ef4e, "999999999999999700000" },
    { 0x444b1ae4d6e2ef4f, "999999999999999900000" },
    { 0x444b1ae4d6e2ef50, "1e+21" },
    { 0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7" },
    { 0x3eb0c6f7a0b5ed8d, "0.000001" },
    { 0x41b3de4355555553, "333333333.3333332" },
    { 0x41b3de4355555554, "333333333.33333325" },
    { 0x41b3de4355555555, "333333333.3333333" },
    { 0x41b3de4355555556, "333333333.3333334" },
    { 0x41b3de4355555557, "333333333.33333343" },
    { 0xbecbf647612f3696, "-0.0000033333333333333333" },
    { 0x43143ff3c1cb0959, "1424953923781206.2" },
};

static const struct {
    double value;
    const char *text;
} plain_samples[] = {
    { 1, "1" },
    { -1, "-1" },
    { 10, "10" },
    { 0.1, "0.1" },
    { 0.5, "0.5" },
    { 4.50, "4.5" },
    { 100, "100" },
    { 1e20, "100000000000000000000" },
    { 1e21, "1e+21" },
    { 1e-6, "0.000001" },
    { 1e-7, "1e-7" },
    { 1.5e-7, "1.5e-7" },
    { 123456789012345680000.0, "123456789012345680000" },
    { 1234567890123456800000.0, "1.2345678901234568e+21" },
    { 333333333.33333329, "333333333.3333333" },
    { 0.1 + 0.2, "0.30000000000000004" },
    { 5e-324, "5e-324" },
    { DBL_MAX, "1.7976931348623157e+308" },
    { DBL_MIN, "2.2250738585072014e-308" },
    { DBL_EPSILON, "2.220446049250313e-16" },
    { 1e300, "1e+300" },
    { -1e-300, "-1e-300" },
    { 123.456, "123.456" },
    { 9007199254740991, "9007199254740991" },
    { 4611686018427387904.0, "4611686018427388000" },
    { 2e-3, "0.002" },
};

static void check_samples(void)
{
    char text[TCI_JSON_NUMBER_MAX];
    for (size_t i = 0; i < tci_array_size(samples); i++)
        assert_string_equal(tci_json_number(from_bits(samples[i].bits), text), samples[i].text);
    for (size_t i = 0; i < tci_array_size(plain_samples); i++)
        assert_string_equal(tci_json_number(plain_samples[i].value, text), plain_samples[i].text);
}

static void test_numbers_are_written_as_ecmascript_does(void **state)
{
    (void)state;
    check_samples();
}

/* A locale that was made for this test, if the system has none: localedef is part of glibc. */
static bool set_comma_locale(char *directory, size_t size)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                         "nl_NL.UTF-8" };
    char command[300];
    for (size_t i = 0; i < tci_array_size(names); i++)
        if (setlocale(LC_NUMERIC, names[i]))
            return true;
    (void)snprintf(directory, size, "/tmp/toolcage-test-locale-XXXXXX");
    if (!mkdtemp(directory))
        return false;
    (void)snprintf(command, sizeof command,
                   "localedef -i de_DE -f UTF-8 --no-archive %s/de_DE.UTF-8 >/dev/null 2>&1",
                   directory);
    return system(command) >= 0 && setenv("LOCPATH", directory, 1) == 0 &&
           setlocale(LC_NUMERIC, "de_DE.UTF-8");
}

static void test_decimal_comma_of_a_locale_stays_out(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    char directory[100] = "", command[150];
    bool comma = set_comma_locale(directory, sizeof directory);
    const char *canonical = NULL;
    (void)state;
    assert_non_null(arena);
    if (comma) {
        assert_string_equal(localeconv()->decimal_point, ",");
        check_samples();
        assert_int_equal(tci_json_canonical(arena, "[1.50,2e-3]", 11, &canonical, NULL), 0);
        assert_string_equal(canonical, "[1.5,0.002]");
    }
    (void)setlocale(LC_NUMERIC, "C");
    (void)unsetenv("LOCPATH");
    if (directory[0]) {
        (void)snprintf(command, sizeof command, "rm -rf %s", directory);
        assert_int_equal(system(command), 0);
    }
    /* Not skip(): cmocka writes that as "not ok", which counts as a failure. */
    if (!comma)
        print_message("# no locale with a decimal comma, and localedef cannot make one\n");
}

static void test_random_numbers_read_back_as_themselves(void **state)
{
    (void)state;
    random_state = 20270101;
    for (int i = 0; i < 30000; i++) {
        uint64_t bits = next_random(), read_bits;
        char text[TCI_JSON_NUMBER_MAX];
        double value, read;
        /* Half of them near 1, where the plain notations are. */
        if (i % 2)
            bits = (bits & 0x800fffffffffffff) | ((uint64_t)(1023 - 30 + bits % 110) << 52);
        value = from_bits(bits);
        if (!isfinite(value) || bits << 1 == 0)
            continue;
        tci_json_number(value, text);
        assert_true(strlen(text) < TCI_JSON_NUMBER_MAX);
        assert_true(strspn(text, "0123456789.e+-") == strlen(text));
        read = strtod(text, NULL);
        memcpy(&read_bits, &read, sizeof read_bits);
        if (read_bits != bits)
            fail_msg("%a became %s", value, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_are_escaped),
        cmocka_unit_test(test_bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(test_separators_between_nested_values),
        cmocka_unit_test(test_pretty_form_indents_by_level),
        cmocka_unit_test(test_nothing_and_not_finite_are_null),
        cmocka_unit_test(test_formatted_string_is_cut_at_its_maximum),
        cmocka_unit_test(test_toml_syntax_differs_in_keys_only),
        cmocka_unit_test(test_empty_containers_are_toml_too),
        cmocka_unit_test(test_output_past_the_maximum_fails_as_a_whole),
        cmocka_unit_test(test_numbers_are_written_as_ecmascript_does),
        cmocka_unit_test(test_decimal_comma_of_a_locale_stays_out),
        cmocka_unit_test(test_random_numbers_read_back_as_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
