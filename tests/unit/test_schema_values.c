/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of json/schema.h: that numbers are exact, and that regular expressions mean what
 * ECMA-262 says.
 */
#include "schema_support.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- numbers ---------------------------------------------------------------------------------- */

static void test_numbers_compare_exactly(void **state)
{
    (void)state;
    /* 2^63 - 1 and 2^63 are the same double. */
    assert_true(is_valid("{\"exclusiveMaximum\":9223372036854775808.0}", "9223372036854775807"));
    assert_false(is_valid("{\"maximum\":9223372036854775806}", "9223372036854775807"));
    assert_false(is_valid("{\"minimum\":9007199254740993}", "9007199254740992"));
    assert_true(is_valid("{\"minimum\":9007199254740993}", "9007199254740993"));
    assert_false(is_valid("{\"const\":9007199254740993}", "9007199254740992.0"));
    assert_true(is_valid("{\"const\":1.0}", "1"));
    assert_true(is_valid("{\"const\":-0.0}", "0"));
    assert_false(is_valid("{\"const\":1}", "true"));
    assert_true(is_valid("{\"type\":\"integer\"}", "1e300"));
    assert_false(
        is_valid("{\"uniqueItems\":true}", "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,7.0]"));
    assert_true(is_valid("{\"uniqueItems\":true}",
                         "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,9007199254740993,"
                         "9007199254740992.0]"));
}

static void test_multiples_are_decimal(void **state)
{
    (void)state;
    assert_true(is_valid("{\"multipleOf\":0.01}", "19.99"));
    assert_true(is_valid("{\"multipleOf\":0.01}", "4.02"));
    assert_false(is_valid("{\"multipleOf\":0.01}", "4.021"));
    assert_true(is_valid("{\"multipleOf\":0.1}", "123456789012.3"));
    assert_true(is_valid("{\"multipleOf\":10}", "1e23"));
    assert_false(is_valid("{\"multipleOf\":7}", "1e23"));
    assert_true(is_valid("{\"multipleOf\":1e-300}", "1e300"));
    assert_false(is_valid("{\"multipleOf\":1e300}", "1e-300"));
    assert_true(is_valid("{\"multipleOf\":2.5}", "-7.5"));
    assert_true(is_valid("{\"multipleOf\":9007199254740993}", "-9007199254740993"));
    assert_false(is_valid("{\"multipleOf\":9007199254740993}", "9007199254740992"));
    assert_true(is_valid("{\"multipleOf\":3}", "-9223372036854775806"));
}

/* ---- regular expressions ---------------------------------------------------------------------- */

struct match {
    const char *pattern, *text;
    bool matches;
};

static const struct match matches[] = {
    { "^a$", "a\\n", false },
    { "^.$", "\\n", false },
    { "^.$", "\\u2028", false },
    { "^.$", "\\ud83d\\udc32", true },
    { "^..$", "\\ud83d\\udc32", false },
    { "^[^x]$", "\\ud83d\\udc32", true },
    { "^[\\\\w-]+$", "a-b", true },
    { "^[\\\\w-.]+$", "a-b.c", true },
    { "^[a-\\\\d]+$", "a-5", true },
    { "[]", "a", false },
    { "^[^]$", "\\n", true },
    { "^[[:alpha:]]$", "a]", true }, /* a class and a ], not one of POSIX */
    { "^\\\\Da$", "\\u00e9a", true },
    { "^\\\\u{1f432}$", "\\ud83d\\udc32", true },
    { "^\\\\ud83d\\\\udc32$", "\\ud83d\\udc32", true },
    { "^\\\\ud83d", "\\ud83d\\udc32", false },
    { "^[\\\\ud7ff-\\\\ue000]$", "\\ue000", true },
    { "^(?<year>\\\\d{4})-\\\\k<year>$", "2026-2026", true },
    { "^(?<year>\\\\d{4})-\\\\k<year>$", "2026-2027", false },
    { "^(a)?\\\\1b$", "b", true }, /* a group that took no part is empty */
    { "^\\\\bx\\\\b.\\\\B", "x..", true },
    { "(?<=\\\\$)\\\\d+", "$5", true },
    { "^(?!a)", "a", false },
    { "^a{2,3}?$", "aaa", true },
    { "^\\\\cJ$", "\\n", true },
    { "^\\\\x41\\\\0$", "A\\u0000", true },
    { "^\\\\p{Script=Greek}+$", "\\u03b1\\u03b2", true },
    { "^\\\\p{sc=Greek}+$", "a", false },
    { "^\\\\P{Lu}$", "a", true },
    { "^[\\\\p{Lu}\\\\p{Nd}]$", "\\u0664", true },
    { "^\\\\p{Emoji_Presentation}$", "\\ud83d\\udc32", true },
    { "^\\\\p{ASCII}$", "\\u00e9", false },
    { "^[^\\\\P{Any}]$", "x", true },
    { "^\\\\/\\\\-\\\\@$", "/-@", true },
    { "^a]}$", "a]}", true },
    { "", "anything", true },
    { "^$", "", true },
    { "^a*$", "", true },
    { "^[a-z]*b?c$", "abc", true }, /* not simple: the first part takes the b and the c too */
    { "^[a-z]{2}[a-z0-9]{0,3}$", "ab9zz", true },
    { "^[a-z]{2}[a-z0-9]{0,3}$", "ab9zzz", false },
    { "^x[^y]*", "xyz", true },
};

static void test_regular_expressions_mean_what_ecma_262_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof matches[0]; i++) {
        char schema[256], instance[64];
        (void)snprintf(schema, sizeof schema, "{\"pattern\":\"%s\"}", matches[i].pattern);
        (void)snprintf(instance, sizeof instance, "\"%s\"", matches[i].text);
        if (is_valid(schema, instance) != matches[i].matches)
            fail_msg("%s on %s", matches[i].pattern, matches[i].text);
    }
}

static const char *const not_ecma[] = {
    "\\\\a",
    "\\\\A",
    "\\\\z",
    "\\\\Q",
    "\\\\h",
    "\\\\R",
    "\\\\C",
    "\\\\G",
    "\\\\K",
    "\\\\1",
    "(a)\\\\2",
    "\\\\k<a>",
    "(?<a>x)(?<a>y)",
    "(?P<a>x)",
    "(?'a'x)",
    "(?#x)",
    "(?>a)",
    "(?|a)",
    "(?R)",
    "(?1)",
    "(?C1)",
    "(?(1)a)",
    "a++",
    "a{2}{3}",
    "^*",
    "(?=a)*",
    "a{",
    "a{,3}",
    "a{3,2}",
    "{",
    "[",
    "(",
    ")",
    "\\\\u{110000}",
    "\\\\u12",
    "\\\\x1",
    "\\\\c1",
    "\\\\p{Greek}",
    "\\\\p{greek}",
    "\\\\p{L&}",
    "\\\\p",
    "\\\\pL",
    "\\\\p{^L}",
    "[\\\\B]",
    "[\\\\1]",
    "\\\\01",
    "(*UCP)a",
    "(*ANYCRLF)",
    "\\\\",
};

static void test_what_only_pcre2_knows_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof not_ecma / sizeof not_ecma[0]; i++) {
        char schema[128];
        (void)snprintf(schema, sizeof schema, "{\"pattern\":\"%s\"}", not_ecma[i]);
        assert_int_equal(refusal_with(schema, NULL).code, TC_ERROR_SYNTAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_compare_exactly),
        cmocka_unit_test(test_multiples_are_decimal),
        cmocka_unit_test(test_regular_expressions_mean_what_ecma_262_says),
        cmocka_unit_test(test_what_only_pcre2_knows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
