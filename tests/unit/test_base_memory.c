/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of arenas and bounded buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/buf.h"

/* ---- arena ------------------------------------------------------------------------------------ */

static bool is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void test_arena_memory_is_aligned_zeroed_and_apart(void **state)
{
    enum { count = 4000 };
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    unsigned char **blocks = calloc(count, sizeof *blocks);
    (void)state;
    assert_non_null(arena);
    assert_non_null(blocks);
    /* Every size up to several chunks, each filled, so that an overlap shows in the next check. */
    for (size_t i = 0; i < count; i++) {
        size_t size = i < 300 ? i : i * 37 % 20011;
        blocks[i] = tci_arena_alloc(arena, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        assert_true(is_zero(blocks[i], size));
        memset(blocks[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < count; i++) {
        size_t size = i < 300 ? i : i * 37 % 20011;
        for (size_t j = 0; j < size; j++)
            assert_int_equal(blocks[i][j], i % 255 + 1);
    }
    free(blocks);
}

static void test_arena_gives_nothing_an_address_of_its_own(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    void *a, *b, *c;
    (void)state;
    assert_non_null(arena);
    a = tci_arena_alloc(arena, 0);
    b = tci_arena_alloc(arena, 0);
    c = tci_arena_array(arena, 0, sizeof(int));
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_ptr_not_equal(a, b);
    assert_ptr_not_equal(b, c);
    assert_non_null(tci_arena_array(arena, 7, 0));
}

static void test_arena_refuses_sizes_that_overflow(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    (void)state;
    assert_non_null(arena);
    assert_null(tci_arena_alloc(arena, SIZE_MAX));
    assert_null(tci_arena_alloc(arena, SIZE_MAX - 7));
    assert_null(tci_arena_alloc(arena, SIZE_MAX / 2 + 1));
    assert_null(tci_arena_array(arena, SIZE_MAX, 2));
    assert_null(tci_arena_array(arena, 2, SIZE_MAX));
    assert_null(tci_arena_array(arena, SIZE_MAX / 8 + 1, 8)); /* the product would be 0 */
    assert_null(tci_arena_strndup(arena, "x", SIZE_MAX));
    /* A refusal leaves the arena as it was. */
    assert_non_null(tci_arena_alloc(arena, 16));
}

static void test_arena_copies_text_with_its_nuls(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    char *copy;
    (void)state;
    assert_non_null(arena);
    copy = tci_arena_strndup(arena, "a\0b\0c", 5);
    assert_non_null(copy);
    assert_memory_equal(copy, "a\0b\0c\0", 6);
    copy = tci_arena_strndup(arena, NULL, 0);
    assert_non_null(copy);
    assert_string_equal(copy, "");
    assert_string_equal(tci_arena_strdup(arena, "text"), "text");
    assert_string_equal(tci_arena_printf(arena, "%d-%s", 12, "x"), "12-x");
    assert_string_equal(tci_arena_printf(arena, "%s", ""), "");
    copy = tci_arena_printf(arena, "%0*d", 100000, 7);
    assert_non_null(copy);
    assert_int_equal(strlen(copy), 100000);
}

static void test_freeing_no_arena_is_allowed(void **state)
{
    struct tci_arena *arena = NULL;
    (void)state;
    tci_arena_free(NULL);
    tci_arena_freep(&arena);
    arena = tci_arena_new();
    tci_arena_freep(&arena);
    assert_null(arena);
}

/* ---- buf -------------------------------------------------------------------------------------- */

static void test_buf_holds_exactly_its_maximum(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(1000);
    struct tc_error error = { 0 };
    (void)state;
    for (int i = 0; i < 1000; i++)
        tci_buf_char(&buf, 'x');
    assert_int_equal(tci_buf_check(&buf, &error), 0);
    assert_int_equal(buf.length, 1000);
    assert_int_equal(strlen(buf.data), 1000);
    tci_buf_append(&buf, "", 0);
    assert_int_equal(tci_buf_check(&buf, &error), 0);
    tci_buf_char(&buf, 'x');
    assert_int_equal(tci_buf_check(&buf, &error), -1);
    assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
    assert_non_null(strstr(error.message, "1000"));
    tci_buf_free(&buf);
}

static void test_buf_failure_sticks_and_never_shortens(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(10);
    struct tc_error error = { 0 };
    (void)state;
    tci_buf_string(&buf, "12345678");
    tci_buf_string(&buf, "90AB"); /* does not fit */
    tci_buf_string(&buf, "c");    /* would fit, but then the text had a hole */
    tci_buf_printf(&buf, "%d", 1);
    tci_buf_append(&buf, "", 0);
    assert_int_equal(buf.length, 8);
    assert_string_equal(buf.data, "12345678");
    assert_null(tci_buf_take(&buf, &error));
    assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
    assert_null(buf.data);
    /* Also afterwards: the flag outlives the memory. */
    tci_buf_string(&buf, "z");
    assert_int_equal(tci_buf_check(&buf, NULL), -1);
    assert_null(buf.data);
}

static void test_buf_printf_obeys_the_maximum(void **state)
{
    struct tci_buf fits = TCI_BUF_INIT(5), too_long = TCI_BUF_INIT(4);
    (void)state;
    tci_buf_printf(&fits, "%05d", 42);
    assert_int_equal(tci_buf_check(&fits, NULL), 0);
    assert_string_equal(fits.data, "00042");
    tci_buf_printf(&too_long, "%05d", 42);
    assert_int_equal(tci_buf_check(&too_long, NULL), -1);
    assert_true(too_long.too_large);
    assert_false(too_long.no_memory);
    tci_buf_free(&fits);
    tci_buf_free(&too_long);
}

static void test_buf_take_hands_the_text_over(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(100), empty = TCI_BUF_INIT(0);
    char *text;
    (void)state;
    tci_buf_append(&buf, "a\0b", 3);
    text = tci_buf_take(&buf, NULL);
    assert_non_null(text);
    assert_memory_equal(text, "a\0b\0", 4);
    assert_null(buf.data);
    assert_int_equal(buf.length, 0);
    free(text);
    /* The buffer can be used again. */
    tci_buf_string(&buf, "again");
    assert_string_equal(buf.data, "again");
    tci_buf_free(&buf);
    text = tci_buf_take(&empty, NULL);
    assert_non_null(text);
    assert_string_equal(text, "");
    free(text);
}

static void test_buf_grows_through_many_sizes(void **state)
{
    struct tci_buf buf = TCI_BUF_INIT(1 << 20);
    char piece[997];
    size_t total = 0;
    (void)state;
    memset(piece, 'p', sizeof piece);
    for (size_t i = 0; i < 900; i++) {
        tci_buf_append(&buf, piece, i);
        total += i;
        assert_int_equal(buf.length, total);
        assert_int_equal(buf.data[total], '\0');
    }
    assert_int_equal(tci_buf_check(&buf, NULL), 0);
    assert_int_equal(strspn(buf.data, "p"), total);
    tci_buf_free(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_memory_is_aligned_zeroed_and_apart),
        cmocka_unit_test(test_arena_gives_nothing_an_address_of_its_own),
        cmocka_unit_test(test_arena_refuses_sizes_that_overflow),
        cmocka_unit_test(test_arena_copies_text_with_its_nuls),
        cmocka_unit_test(test_freeing_no_arena_is_allowed),
        cmocka_unit_test(test_buf_holds_exactly_its_maximum),
        cmocka_unit_test(test_buf_failure_sticks_and_never_shortens),
        cmocka_unit_test(test_buf_printf_obeys_the_maximum),
        cmocka_unit_test(test_buf_take_hands_the_text_over),
        cmocka_unit_test(test_buf_grows_through_many_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
