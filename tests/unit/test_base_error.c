/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of errors: the first cause wins, nothing overflows, every code has its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "base/attr.h"
#include "base/error.h"

static void test_first_cause_wins(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(tci_error_set(&error, TC_ERROR_SYNTAX, "first %d", 1), -1);
    assert_int_equal(tci_error_set(&error, TC_ERROR_IO, "second"), -1);
    assert_int_equal(tci_error_errno(&error, EACCES, "third"), -1);
    assert_int_equal(tci_error_no_memory(&error), -1);
    assert_int_equal(error.code, TC_ERROR_SYNTAX);
    assert_string_equal(error.message, "first 1");
    tci_error_id(&error, "TC-P005");
    tci_error_id(&error, "TC-P006");
    assert_string_equal(error.id, "TC-P005");
}

static void test_remedy_and_place_are_said_once(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    tci_error_set(&error, TC_ERROR_POLICY, "m");
    tci_error_remedy(&error, "do %s", "this");
    tci_error_remedy(&error, "do that");
    assert_string_equal(error.remedy, "do this");
    tci_error_place(&error, NULL, 3, 4);
    tci_error_place(&error, "outer.toml", 9, 9); /* the file was not known yet, the line was */
    tci_error_place(&error, "other.toml", 7, 7);
    assert_string_equal(error.file, "outer.toml");
    assert_int_equal(error.line, 3);
    assert_int_equal(error.column, 4);
}

static void test_setting_an_error_clears_what_was_left_in_it(void **state)
{
    struct tc_error error;
    (void)state;
    memset(&error, 'x', sizeof error);
    error.code = TC_ERROR_NONE;
    tci_error_set(&error, TC_ERROR_USAGE, "m");
    assert_string_equal(error.message, "m");
    assert_string_equal(error.remedy, "");
    assert_string_equal(error.file, "");
    assert_string_equal(error.id, "");
    assert_int_equal(error.line, 0);
}

static void test_wrap_puts_context_in_front(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    tci_error_set(&error, TC_ERROR_IO, "inner");
    tci_error_remedy(&error, "mend it");
    assert_int_equal(tci_error_wrap(&error, "policy %s", "a.toml"), -1);
    assert_int_equal(tci_error_wrap(&error, "engine"), -1);
    assert_string_equal(error.message, "engine: policy a.toml: inner");
    assert_string_equal(error.remedy, "mend it");
    assert_int_equal(error.code, TC_ERROR_IO);
}

static void test_errno_text_follows_the_message(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    tci_error_errno(&error, ENOENT, "cannot open %s", "x");
    assert_int_equal(error.code, TC_ERROR_IO);
    assert_string_equal(error.message, "cannot open x: No such file or directory");
    error = (struct tc_error){ 0 };
    tci_error_errno(&error, 99999, "m");
    assert_string_equal(error.message, "m: unknown error");
}

static void test_long_texts_are_cut_and_stay_terminated(void **state)
{
    struct tc_error error = { 0 };
    char text[5000];
    (void)state;
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    tci_error_set(&error, TC_ERROR_IO, "%s", text);
    tci_error_id(&error, text);
    tci_error_remedy(&error, "%s", text);
    tci_error_place(&error, text, 1, 1);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.id), sizeof error.id - 1);
    assert_int_equal(strlen(error.remedy), sizeof error.remedy - 1);
    assert_int_equal(strlen(error.file), sizeof error.file - 1);
    /* Wrapping a full message cuts its end, never the context. */
    tci_error_wrap(&error, "context");
    assert_memory_equal(error.message, "context: yyy", 12);
    assert_true(strlen(error.message) < sizeof error.message);
    tci_error_wrap(&error, "%s", text);
    assert_true(strlen(error.message) < sizeof error.message);
    assert_non_null(strstr(error.message, ": context: y"));
    error = (struct tc_error){ 0 };
    tci_error_errno(&error, EIO, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void test_nobody_has_to_want_the_error(void **state)
{
    (void)state;
    assert_int_equal(tci_error_set(NULL, TC_ERROR_IO, "m"), -1);
    assert_int_equal(tci_error_errno(NULL, EIO, "m"), -1);
    assert_int_equal(tci_error_no_memory(NULL), -1);
    assert_int_equal(tci_error_wrap(NULL, "m"), -1);
    tci_error_id(NULL, "x");
    tci_error_remedy(NULL, "x");
    tci_error_place(NULL, "x", 1, 1);
}

static void test_every_error_code_has_a_name_and_a_failing_status(void **state)
{
    static const enum tc_error_code codes[] = {
        TC_ERROR_NO_MEMORY, TC_ERROR_IO,    TC_ERROR_TOO_LARGE,   TC_ERROR_SYNTAX,
        TC_ERROR_POLICY,    TC_ERROR_USAGE, TC_ERROR_UNSUPPORTED, TC_ERROR_INTERNAL,
    };
    (void)state;
    assert_string_equal(tc_error_name(TC_ERROR_NONE), "none");
    assert_int_equal(tc_error_exit_status(TC_ERROR_NONE), 0);
    for (size_t i = 0; i < tci_array_size(codes); i++) {
        assert_int_equal(tc_error_exit_status(codes[i]), 125);
        assert_in_range(tc_error_http_status(codes[i]), 400, 599);
        assert_true(tc_error_jsonrpc_code(codes[i]) <= -32000);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tc_error_name(codes[i]), tc_error_name(codes[j]));
    }
    /* A number that is no code is treated as a bug and not as success. */
    assert_string_equal(tc_error_name((enum tc_error_code)9), "internal");
    assert_int_equal(tc_error_exit_status((enum tc_error_code)1000), 125);
    assert_int_equal(tc_error_http_status((enum tc_error_code)(-1)), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_cause_wins),
        cmocka_unit_test(test_remedy_and_place_are_said_once),
        cmocka_unit_test(test_setting_an_error_clears_what_was_left_in_it),
        cmocka_unit_test(test_wrap_puts_context_in_front),
        cmocka_unit_test(test_errno_text_follows_the_message),
        cmocka_unit_test(test_long_texts_are_cut_and_stay_terminated),
        cmocka_unit_test(test_nobody_has_to_want_the_error),
        cmocka_unit_test(test_every_error_code_has_a_name_and_a_failing_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
