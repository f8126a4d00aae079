/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is known of JSON text before anybody parses it. */
#include "support.h"

#include "json/scan.h"

static enum tci_json_excess scan(const char *text, size_t values, unsigned depth, bool exact,
                                 struct tci_json_scanned *ret)
{
    const struct tci_json_bounds bounds = { .values = values, .depth = depth, .exact = exact };
    return tci_json_scan(text, strlen(text), &bounds, ret);
}

static void test_values_are_counted_and_bounded(void **state)
{
    static const struct {
        const char *text;
        size_t values;
    } texts[] = {
        { "1", 1 },
        { "[1,2,3]", 4 },
        { "{\"a\":1,\"b\":[true,null]}", 5 },
        { "[[],{}]", 5 }, /* an empty one counts as two: never too few */
        { "\"[,{,\\\",[\"", 1 },
        { "[\"\\\\\",\"\\\"\"]", 3 },
        { "[\"not ended,,,", 2 },
        { "\"\\", 1 },
        { "", 1 },
    };
    struct tci_json_scanned scanned;
    (void)state;
    for (size_t i = 0; i < tci_array_size(texts); i++) {
        assert_int_equal(scan(texts[i].text, texts[i].values, 0, true, &scanned), TCI_JSON_WITHIN);
        assert_int_equal(scanned.values, texts[i].values);
        if (texts[i].values > 1)
            assert_int_equal(scan(texts[i].text, texts[i].values - 1, 0, true, &scanned),
                             TCI_JSON_TOO_MANY);
    }
}

static void test_depth_is_bounded_only_if_asked(void **state)
{
    struct tci_json_scanned scanned;
    (void)state;
    assert_int_equal(scan("[[{\"a\":[]}]]", 100, 4, false, &scanned), TCI_JSON_WITHIN);
    assert_int_equal(scan("[[{\"a\":[]}]]", 100, 3, false, &scanned), TCI_JSON_TOO_DEEP);
    assert_int_equal(scan("[[{\"a\":[]}]]", 100, 0, false, &scanned), TCI_JSON_WITHIN);
    assert_int_equal(scan("]]]][]", 100, 1, false, &scanned), TCI_JSON_WITHIN);
}

static void test_the_first_integer_that_is_not_exact_is_found(void **state)
{
    struct tci_json_scanned scanned;
    (void)state;
    assert_int_equal(
        scan("[1,9007199254740992,0.1234567890123456789,1e300,1e-9]", 100, 0, true, &scanned),
        TCI_JSON_WITHIN);
    assert_int_equal(scan("[1,9007199254740993,100000000000000001]", 100, 0, true, &scanned),
                     TCI_JSON_INEXACT);
    assert_int_equal(scanned.inexact.length, 16);
    assert_memory_equal(scanned.inexact.text, "9007199254740993", 16);
    assert_int_equal(scan("[1,9007199254740993]", 100, 0, false, &scanned), TCI_JSON_WITHIN);
    /* The bounds come first: what is too much is not looked at. */
    assert_int_equal(scan("[9007199254740993,1,2]", 2, 0, true, &scanned), TCI_JSON_TOO_MANY);
}

static void assert_member(const char *text, size_t count, const char *value)
{
    struct tci_json_part part = { 0 };
    assert_int_equal(tci_json_scan_member(text, strlen(text), "id", &part), count);
    if (count) {
        assert_int_equal(part.length, strlen(value));
        assert_memory_equal(part.text, value, part.length);
    }
}

static void test_a_member_is_found_without_reading_the_rest(void **state)
{
    (void)state;
    assert_member("{\"id\":7,\"a\":[", 1, "7");
    assert_member("{\"a\":{\"id\":1},\"id\" : \"x\\\"y\" }", 1, "\"x\\\"y\"");
    assert_member("{\"id\":1,\"id\":2}", 2, "1");
    assert_member("{\"a\":\"id\",\"b\":[\"id\",{\"id\":3}]}", 0, "");
    assert_member("[{\"id\":3}]", 0, "");
    assert_member("{\"id\":{\"a\":1}}", 1, "");
    assert_member("{\"id\":", 1, "");
    assert_member("{\"id\"", 0, "");
    assert_member("{\"id", 0, "");
}

static void assert_members(const char *text, const char *a, const char *bc)
{
    static const char *const keys[] = { "a", "bc" };
    const char *expected[] = { a, bc };
    struct tci_json_part parts[2];
    tci_json_scan_members(text, strlen(text), keys, 2, parts);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(parts[i].length, strlen(expected[i]));
        if (parts[i].length)
            assert_memory_equal(parts[i].text, expected[i], parts[i].length);
    }
}

static void test_several_members_are_found_whole_in_one_pass(void **state)
{
    (void)state;
    assert_members("{\"a\":7,\"bc\":null}", "7", "null");
    assert_members(" { \"x\" : \"a\\\",\\\"bc\\\":1\" , \"bc\" : \"y\\\\\" } ", "", "\"y\\\\\"");
    assert_members("{\"a\":{\"bc\":[1,{\"a\":\"}\"}]},\"x\":[{\"bc\":2}]}",
                   "{\"bc\":[1,{\"a\":\"}\"}]}", "");
    assert_members("{\"a\":[],\"bc\":{}}", "[]", "{}");
    assert_members("{\"a\":1,\"a\":2}", "2", "");
    /* No objects, or only parts of them. */
    assert_members("[{\"a\":1}]", "", "");
    assert_members("\"a\"", "", "");
    assert_members("", "", "");
    assert_members("{", "", "");
    assert_members("{}", "", "");
    assert_members("{\"a\"", "", "");
    assert_members("{\"a", "", "");
    assert_members("{\"a\":", "", "");
    assert_members("{\"a\":[1,\"", "[1,\"", "");
    assert_members("{\"a\":[1}}", "[1}", "");
    assert_members("{\"a\":1 \"bc\":2}", "1", "");
    assert_members("{\"a\":?,\"bc\":2}", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_counted_and_bounded),
        cmocka_unit_test(test_depth_is_bounded_only_if_asked),
        cmocka_unit_test(test_the_first_integer_that_is_not_exact_is_found),
        cmocka_unit_test(test_a_member_is_found_without_reading_the_rest),
        cmocka_unit_test(test_several_members_are_found_whole_in_one_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
