/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of policy/yaml.h: what each scalar means, and which are refused. */
#include "yaml_support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The value of "v" in "v: <scalar>"; lives in d->arena. */
static const struct tci_node *scalar_of(struct document *d, const char *scalar)
{
    char text[512];
    (void)snprintf(text, sizeof text, "v: %s\n", scalar);
    *d = parse(text);
    return value_of(d->root, "v");
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
