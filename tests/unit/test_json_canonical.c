/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of src/json: the one text of a value (RFC 8785). */
#include "json_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <jansson.h>
#include "base/arena.h"
#include "base/attr.h"
#include "json/canonical.h"

static void assert_canonical(const char *text, const char *expected)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    const char *once = NULL, *twice = NULL;
    assert_non_null(arena);
    if (tci_json_canonical(arena, text, strlen(text), &once, &error) < 0)
        fail_msg("%s: %s", text, error.message);
    assert_string_equal(once, expected);
    if (tci_json_canonical(arena, once, strlen(once), &twice, &error) < 0)
        fail_msg("%s: %s", once, error.message);
    assert_string_equal(twice, expected);
}

static void test_example_of_rfc_8785_section_3_2_2(void **state)
{
    (void)state;
    assert_canonical("{\n"
                     "  \"numbers\": [333333333.33333329, 1E30, 4.50,\n"
                     "              2e-3, 0.000000000000000000000000001],\n"
                     "  \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
                     "  \"literals\": [null, true, false]\n"
                     "}",
                     "{\"literals\":[null,true,false],"
                     "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
                     "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
    /* Only what people read has escapes for what they would not see. */
    assert_canonical("[\"\\u202e\\ud834\\udd73\"]", "[\"\xe2\x80\xae\xf0\x9d\x85\xb3\"]");
}

static void test_keys_are_sorted_by_utf16_code_units(void **state)
{
    (void)state;
    assert_canonical("{\n"
                     "  \"\\u20ac\": \"Euro Sign\",\n"
                     "  \"\\r\": \"Carriage Return\",\n"
                     "  \"\\ufb33\": \"Hebrew Letter Dalet With Dagesh\",\n"
                     "  \"1\": \"One\",\n"
                     "  \"\\ud83d\\ude00\": \"Emoji: Grinning Face\",\n"
                     "  \"\\u0080\": \"Control\",\n"
                     "  \"\\u00f6\": \"Latin Small Letter O With Diaeresis\"\n"
                     "}",
                     "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
                     "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\","
                     "\"\xe2\x82\xac\":\"Euro Sign\","
                     "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\","
                     "\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
    /* Prefixes, the empty key, and keys that differ inside a character. */
    assert_canonical("{\"ab\":1,\"a\":2,\"\":3,\"b\":4,\"aa\":5}",
                     "{\"\":3,\"a\":2,\"aa\":5,\"ab\":1,\"b\":4}");
    assert_canonical("{\"x\\u00e9\":1,\"x\\u00e8\":2,\"x\\u0153\":3,\"x\":4,\"xe\":5}",
                     "{\"x\":4,\"xe\":5,\"x\xc3\xa8\":2,\"x\xc3\xa9\":1,\"x\xc5\x93\":3}");
    /* Two characters with the same first unit are told apart by the second. */
    assert_canonical("{\"\\ud83d\\ude01\":1,\"\\ud83d\\ude00\":2,\"\\ud83c\\udf00\":3}",
                     "{\"\xf0\x9f\x8c\x80\":3,\"\xf0\x9f\x98\x80\":2,\"\xf0\x9f\x98\x81\":1}");
}

static void test_one_value_has_one_text(void **state)
{
    static const char *const pairs[][2] = {
        { " [ 1 , 2 ] ", "[1,2]" },
        { "1.0", "1" },
        { "-0", "0" },
        { "-0.0", "0" },
        { "1e3", "1000" },
        { "1000", "1000" },
        { "4611686018427387904", "4611686018427388000" },
        { "4611686018427387904.0", "4611686018427388000" },
        { "9223372036854775807", "9223372036854776000" },
        { "1e19", "10000000000000000000" },
        { "123456789012345678901234567890", "1.2345678901234568e+29" },
        { "-99999999999999999999", "-100000000000000000000" },
        { "\"\\u0061\\/\\b\\f\\n\\r\\t\\u001F\\u007f\"", "\"a/\\b\\f\\n\\r\\t\\u001f\x7f\"" },
        { "\"\\uD83D\\uDE00\"", "\"\xf0\x9f\x98\x80\"" },
        { "\"\\u2028\"", "\"\xe2\x80\xa8\"" },
        { "{}", "{}" },
        { "[]", "[]" },
        { "null", "null" },
        { "true", "true" },
        { "{\"b\":{\"d\":1,\"c\":[{\"z\":1,\"y\":2}]},\"a\":0}",
          "{\"a\":0,\"b\":{\"c\":[{\"y\":2,\"z\":1}],\"d\":1}}" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(pairs); i++)
        assert_canonical(pairs[i][0], pairs[i][1]);
}

static struct tc_error canonical_error(const char *text, size_t length)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    const char *untouched = "untouched", *canonical = untouched;
    assert_non_null(arena);
    if (tci_json_canonical(arena, text, length, &canonical, &error) == 0)
        fail_msg("\"%s\" was accepted as %s", text, canonical);
    assert_ptr_equal(canonical, untouched);
    assert_true(error.message[0]);
    return error;
}

static void test_duplicate_keys_are_refused(void **state)
{
    static const char *const texts[] = { "{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"\\u0061\":3}",
                                         "[{\"x\":{\"k\":1,\n\"k\":2}}]" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        struct tc_error error = canonical_error(texts[i], strlen(texts[i]));
        assert_int_equal(error.code, TC_ERROR_SYNTAX);
        assert_non_null(strstr(error.message, "duplicate"));
        assert_int_equal(error.line, i == 2 ? 2 : 1);
    }
}

static void test_text_that_is_not_json_is_refused_with_its_place(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{'a':1}",
        "{a:1}",
        "[1 2]",
        "01",
        "1.",
        ".5",
        "+1",
        "0x10",
        "NaN",
        "Infinity",
        "nul",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ude00\\ud83d\"",
        "\"\\u0000\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\xef\xbb\xbf{}",
        "{} {}",
        "// comment\n{}",
        "1e400",
        "-1e400",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        struct tc_error error = canonical_error(texts[i], strlen(texts[i]));
        assert_int_equal(error.code, TC_ERROR_SYNTAX);
        assert_in_range(error.line, 1, 2);
    }
    assert_int_equal(canonical_error("[1,\0 2]", 7).code, TC_ERROR_SYNTAX);
    assert_int_equal(canonical_error("{\n\n  \"a\": x}", 12).line, 3);
}

static void test_huge_depth_is_refused_without_a_crash(void **state)
{
    enum { deep = 200000, allowed = 2000 };
    char *text = malloc(2 * deep + 1);
    (void)state;
    assert_non_null(text);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    text[2 * deep] = '\0';
    assert_int_equal(canonical_error(text, 2 * deep).code, TC_ERROR_SYNTAX);
    for (size_t i = 0; i < deep; i++)
        memcpy(text + i / 5 * 5, "{\"a\":", 5);
    assert_int_equal(canonical_error(text, deep).code, TC_ERROR_SYNTAX);
    memset(text, '[', allowed);
    memset(text + allowed, ']', allowed);
    text[2 * allowed] = '\0';
    assert_canonical(text, text);
    free(text);
}

static void test_output_has_a_maximum(void **state)
{
    enum { items = 1000000 };
    char *text = malloc(items * 5 + 2);
    (void)state;
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < items; i++)
        memcpy(text + 1 + i * 5, "1e20,", 5); /* 21 digits each */
    text[items * 5] = ']';
    text[items * 5 + 1] = '\0';
    assert_int_equal(canonical_error(text, items * 5 + 1).code, TC_ERROR_TOO_LARGE);
    free(text);
}

static void test_random_values_have_a_fixpoint(void **state)
{
    (void)state;
    random_state = 8785;
    for (int i = 0; i < 3000; i++) {
        tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
        struct tci_buf buf = TCI_BUF_INIT(65536);
        struct tci_json json = { .out = &buf };
        struct tc_error error = { 0 };
        const char *once = NULL, *twice = NULL;
        char *text;
        unsigned depth = 0;
        json_t *before, *after;
        assert_non_null(arena);
        tci_json_array_begin(&json, NULL);
        for (uint64_t n = next_random() % 40; n; n--) {
            uint64_t r = next_random();
            char key[24], bytes[8];
            (void)snprintf(key, sizeof key, "%c%llx", (char)(' ' + r % 90), (unsigned long long)n);
            memcpy(bytes, &r, sizeof bytes);
            if (r % 7 == 0 && depth < 20) {
                tci_json_object_begin(&json, depth ? key : NULL);
                depth++;
            } else if (r % 7 == 1 && depth) {
                tci_json_object_end(&json);
                depth--;
            } else if (r % 7 < 4) {
                tci_json_double(&json, depth ? key : NULL, from_bits(next_random()));
            } else if (r % 7 == 4) {
                tci_json_integer(&json, depth ? key : NULL,
                                 (int64_t)(next_random() % 9007199254740992));
            } else {
                for (size_t j = 0; j < sizeof bytes; j++)
                    bytes[j] = bytes[j] ? bytes[j] : 'x';
                tci_json_bytes(&json, depth ? key : NULL, bytes, sizeof bytes);
            }
        }
        while (depth--)
            tci_json_object_end(&json);
        tci_json_array_end(&json);
        text = finish(&buf);
        if (tci_json_canonical(arena, text, strlen(text), &once, &error) < 0)
            fail_msg("%s: %s", text, error.message);
        assert_int_equal(tci_json_canonical(arena, once, strlen(once), &twice, &error), 0);
        assert_string_equal(once, twice);
        before = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
        after = json_loads(once, JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(before);
        assert_int_equal(json_equal(before, after), 1);
        json_decref(before);
        json_decref(after);
        free(text);
    }
}

static void test_canonical_text_is_read_and_other_text_is_refused(void **state)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    json_t *value;
    (void)state;
    assert_non_null(arena);
    value = tci_json_read_canonical(arena, "{\"a\":[1,\"x\"],\"b\":null}", &error);
    assert_non_null(value);
    json_decref(value);
    assert_null(tci_json_read_canonical(arena, "{\"b\":1,\"a\":2}", &error));
    assert_int_equal(error.code, TC_ERROR_NO_MEMORY);
    error = (struct tc_error){ 0 };
    assert_null(tci_json_read_canonical(arena, "{", &error));
    assert_int_equal(error.code, TC_ERROR_SYNTAX);
    tci_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_text_is_read_and_other_text_is_refused),
        cmocka_unit_test(test_example_of_rfc_8785_section_3_2_2),
        cmocka_unit_test(test_keys_are_sorted_by_utf16_code_units),
        cmocka_unit_test(test_one_value_has_one_text),
        cmocka_unit_test(test_duplicate_keys_are_refused),
        cmocka_unit_test(test_text_that_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(test_huge_depth_is_refused_without_a_crash),
        cmocka_unit_test(test_output_has_a_maximum),
        cmocka_unit_test(test_random_values_have_a_fixpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
