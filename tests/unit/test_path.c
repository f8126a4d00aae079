/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of base/path.h and base/mountinfo.h: the normal form, each way to be refused, and containment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "base/mountinfo.h"
#include "base/path.h"

/* From memory that ends where the path does, so that the sanitizer sees a byte read too many. */
static enum tci_path_problem normalise(const char *base, const char *path, size_t length,
                                       char buffer[TCI_PATH_MAX + 1])
{
    char *exact = malloc(length > 0 ? length : 1);
    assert_non_null(exact);
    memcpy(exact, path, length);
    enum tci_path_problem problem = tci_path_normalise(base, exact, length, buffer);
    free(exact);
    return problem;
}

static void assert_normal(const char *base, const char *path, const char *expected)
{
    char buffer[TCI_PATH_MAX + 1];
    enum tci_path_problem problem = normalise(base, path, strlen(path), buffer);
    if (problem != TCI_PATH_OK)
        fail_msg("\"%s\" %s", path, tci_path_problem_text(problem));
    assert_string_equal(buffer, expected);
}

static void assert_problem(const char *base, const char *path, size_t length,
                           enum tci_path_problem expected)
{
    char buffer[TCI_PATH_MAX + 1];
    enum tci_path_problem problem = normalise(base, path, length, buffer);
    if (problem != expected)
        fail_msg("\"%s\" %s", path, tci_path_problem_text(problem));
}

static void test_absolute_path_loses_dots_and_final_slash(void **state)
{
    static const char *const pairs[][2] = {
        { "/", "/" },
        { "/.", "/" },
        { "/./", "/" },
        { "/a", "/a" },
        { "/a/", "/a" },
        { "/a/.", "/a" },
        { "/a/./", "/a" },
        { "/./a", "/a" },
        { "/a/b", "/a/b" },
        { "/a/..", "/" },
        { "/a/../", "/" },
        { "/a/../b", "/b" },
        { "/a/b/..", "/a" },
        { "/a/b/../..", "/" },
        { "/a/b/../../c/", "/c" },
        { "/a/./../b/.", "/b" },
        { "/...", "/..." },
        { "/..a", "/..a" },
        { "/a..", "/a.." },
        { "/.a", "/.a" },
        { "/a/.../b", "/a/.../b" },
        { "/a b", "/a b" },
        { "/~", "/~" },
        { "/$HOME/x", "/$HOME/x" },
        { "/a\\b", "/a\\b" },
        { "/-", "/-" },
        { "/a:b", "/a:b" },
    };
    (void)state;

    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        assert_normal(NULL, pairs[i][0], pairs[i][1]);
        assert_normal("/some/base", pairs[i][0], pairs[i][1]);
        assert_normal(NULL, pairs[i][1], pairs[i][1]);
    }
}

static void test_relative_path_is_taken_below_the_base(void **state)
{
    (void)state;
    assert_normal("/", "a", "/a");
    assert_normal("/", ".", "/");
    assert_normal("/", "a/..", "/");
    assert_normal("/x", "a", "/x/a");
    assert_normal("/x", "a/", "/x/a");
    assert_normal("/x", ".", "/x");
    assert_normal("/x", "./", "/x");
    assert_normal("/x/y", "..", "/x");
    assert_normal("/x/y", "../z", "/x/z");
    assert_normal("/x/y", "../..", "/");
    assert_normal("/x/y", "../../", "/");
    assert_normal("/x/y", "a/../../..", "/");
    assert_normal("/x/y", "../../z/./w", "/z/w");
}

static void test_leaving_the_root_is_refused_not_ignored(void **state)
{
    (void)state;
    assert_problem(NULL, "/..", 3, TCI_PATH_LEAVES_ROOT);
    assert_problem(NULL, "/../a", 5, TCI_PATH_LEAVES_ROOT);
    assert_problem(NULL, "/a/../..", 8, TCI_PATH_LEAVES_ROOT);
    assert_problem(NULL, "/a/../../a", 10, TCI_PATH_LEAVES_ROOT);
    assert_problem("/", "..", 2, TCI_PATH_LEAVES_ROOT);
    assert_problem("/x", "../..", 5, TCI_PATH_LEAVES_ROOT);
    assert_problem("/x/y", "../../../x/y", 12, TCI_PATH_LEAVES_ROOT);
    assert_problem("/x", "/../x", 5, TCI_PATH_LEAVES_ROOT); /* the base does not help */
}

static void test_empty_path_and_empty_components_are_refused(void **state)
{
    (void)state;
    assert_problem(NULL, "", 0, TCI_PATH_EMPTY);
    assert_problem("/x", "", 0, TCI_PATH_EMPTY);
    assert_problem(NULL, "//", 2, TCI_PATH_EMPTY_COMPONENT);
    assert_problem(NULL, "//a", 3, TCI_PATH_EMPTY_COMPONENT);
    assert_problem(NULL, "/a//b", 5, TCI_PATH_EMPTY_COMPONENT);
    assert_problem(NULL, "/a//", 4, TCI_PATH_EMPTY_COMPONENT);
    assert_problem(NULL, "///", 3, TCI_PATH_EMPTY_COMPONENT);
    assert_problem("/x", "a//b", 4, TCI_PATH_EMPTY_COMPONENT);
    assert_problem("/x", "a//", 3, TCI_PATH_EMPTY_COMPONENT);
}

static void test_relative_path_without_base_is_refused(void **state)
{
    (void)state;
    assert_problem(NULL, "a", 1, TCI_PATH_RELATIVE);
    assert_problem(NULL, ".", 1, TCI_PATH_RELATIVE);
    assert_problem(NULL, "a/..", 4, TCI_PATH_RELATIVE);
    assert_problem(NULL, "~/x", 3, TCI_PATH_RELATIVE);
}

static void test_every_control_byte_is_refused(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char path[] = "/ab/c", buffer[TCI_PATH_MAX + 1];
        path[2] = (char)byte;
        enum tci_path_problem problem = normalise(NULL, path, 5, buffer);
        if (byte < 0x20 || byte == 0x7f)
            assert_int_equal(problem, TCI_PATH_CONTROL_BYTE);
        else if (byte == '/')
            assert_int_equal(problem, TCI_PATH_EMPTY_COMPONENT);
        else
            assert_int_equal(problem, TCI_PATH_OK);
    }
    assert_problem(NULL, "/a\0", 3, TCI_PATH_CONTROL_BYTE);
    assert_problem(NULL, "\0", 1, TCI_PATH_CONTROL_BYTE);
    assert_problem(NULL, "/a/b\0/../../..", 14, TCI_PATH_CONTROL_BYTE);
}

static void test_utf8_passes_through(void **state)
{
    (void)state;
    assert_normal(NULL, "/d\xc3\xa9p\xc3\xb4t/\xe6\x96\x87", "/d\xc3\xa9p\xc3\xb4t/\xe6\x96\x87");
    assert_normal("/\xc3\xa9", "\xff", "/\xc3\xa9/\xff");
}

/* "/aaa…/aaa…" of exactly `length` bytes, with components of at most 200. */
static void fill(char *path, size_t length)
{
    for (size_t i = 0; i < length; i++)
        path[i] = i % 201 == 0 ? '/' : 'a';
    if (length > 1 && path[length - 1] == '/')
        path[length - 1] = 'a';
    path[length] = '\0';
}

static void test_path_of_4095_bytes_is_the_longest(void **state)
{
    char path[TCI_PATH_MAX + 2], buffer[TCI_PATH_MAX + 1];
    (void)state;

    fill(path, TCI_PATH_MAX);
    assert_int_equal(normalise(NULL, path, TCI_PATH_MAX, buffer), TCI_PATH_OK);
    assert_string_equal(buffer, path);
    fill(path, TCI_PATH_MAX + 1);
    assert_problem(NULL, path, TCI_PATH_MAX + 1, TCI_PATH_TOO_LONG);
    assert_problem("/", path + 1, TCI_PATH_MAX, TCI_PATH_TOO_LONG);
    assert_problem(NULL, path, TCI_PATH_MAX, TCI_PATH_OK);
}

static void test_base_and_path_together_must_fit(void **state)
{
    char base[TCI_PATH_MAX + 1], buffer[TCI_PATH_MAX + 1];
    (void)state;

    fill(base, TCI_PATH_MAX - 5);
    assert_problem(base, "bbbb", 4, TCI_PATH_OK);
    assert_int_equal(normalise(base, "bbbb", 4, buffer), TCI_PATH_OK);
    assert_int_equal(strlen(buffer), TCI_PATH_MAX);
    assert_problem(base, "bbbbb", 5, TCI_PATH_TOO_LONG);
    assert_problem(base, "../bb", 5, TCI_PATH_TOO_LONG);
    assert_problem(base, "/bbbbb", 6, TCI_PATH_OK);
    fill(base, TCI_PATH_MAX);
    assert_problem(base, ".", 1, TCI_PATH_TOO_LONG);
    fill(base, TCI_PATH_MAX - 1);
    assert_problem(base, ".", 1, TCI_PATH_TOO_LONG);
    fill(base, TCI_PATH_MAX - 2);
    assert_problem(base, ".", 1, TCI_PATH_OK);
}

static void test_component_of_255_bytes_is_the_longest(void **state)
{
    char path[300], expected[400];
    (void)state;

    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[256] = '\0';
    assert_normal(NULL, path, path);
    snprintf(expected, sizeof expected, "/x%s", path);
    assert_normal("/x", path + 1, expected);
    path[256] = '/';
    path[257] = '\0';
    assert_problem(NULL, path, 257, TCI_PATH_OK);
    path[256] = 'a';
    assert_problem(NULL, path, 257, TCI_PATH_COMPONENT_TOO_LONG);
    assert_problem("/x", path + 1, 256, TCI_PATH_COMPONENT_TOO_LONG);
}

static void test_first_problem_in_the_order_of_the_list_wins(void **state)
{
    char path[TCI_PATH_MAX + 3];
    (void)state;

    memset(path, 'a', sizeof path);
    memcpy(path, "../", 3);
    path[10] = path[11] = '/';
    assert_problem(NULL, path, 20, TCI_PATH_EMPTY_COMPONENT);
    assert_problem(NULL, path, 500, TCI_PATH_COMPONENT_TOO_LONG);
    assert_problem(NULL, path, TCI_PATH_MAX + 1, TCI_PATH_TOO_LONG);
    path[TCI_PATH_MAX + 1] = '\n';
    assert_problem(NULL, path, TCI_PATH_MAX + 2, TCI_PATH_CONTROL_BYTE);
    assert_problem(NULL, "../a", 4, TCI_PATH_LEAVES_ROOT);
}

static void test_refused_path_leaves_nothing_to_use(void **state)
{
    static const char *const bad[] = { "", "a", "/..", "//", "/a/../..", "/\n" };
    (void)state;

    for (size_t i = 0; i < tci_array_size(bad); i++) {
        char buffer[TCI_PATH_MAX + 1] = "/old";
        assert_int_not_equal(normalise(NULL, bad[i], strlen(bad[i]), buffer), TCI_PATH_OK);
        assert_string_equal(buffer, "");
    }
}

static void test_each_problem_has_its_own_text(void **state)
{
    (void)state;
    for (int a = TCI_PATH_OK; a <= TCI_PATH_RELATIVE; a++)
        for (int b = TCI_PATH_OK; b < a; b++)
            assert_string_not_equal(tci_path_problem_text((enum tci_path_problem)a),
                                    tci_path_problem_text((enum tci_path_problem)b));
    assert_non_null(tci_path_problem_text((enum tci_path_problem)99));
    assert_string_equal(tci_path_problem_text(TCI_PATH_EMPTY_COMPONENT),
                        "contains an empty component (\"//\")");
}

static void test_within_compares_whole_components(void **state)
{
    (void)state;
    assert_true(tci_path_is_within("/a", "/a"));
    assert_true(tci_path_is_within("/a/b", "/a"));
    assert_true(tci_path_is_within("/a/b/c", "/a"));
    assert_true(tci_path_is_within("/a/b/c", "/a/b"));
    assert_true(tci_path_is_within("/", "/"));
    assert_true(tci_path_is_within("/a", "/"));
    assert_true(tci_path_is_within("/a/b", "/"));
    assert_false(tci_path_is_within("/ab", "/a"));
    assert_false(tci_path_is_within("/a", "/ab"));
    assert_false(tci_path_is_within("/a", "/a/b"));
    assert_false(tci_path_is_within("/", "/a"));
    assert_false(tci_path_is_within("/a/bc", "/a/b"));
    assert_false(tci_path_is_within("/A/b", "/a"));
}

static void test_depth_counts_components(void **state)
{
    (void)state;
    assert_int_equal(tci_path_depth("/"), 0);
    assert_int_equal(tci_path_depth("/a"), 1);
    assert_int_equal(tci_path_depth("/a/b"), 2);
    assert_int_equal(tci_path_depth("/abc/de/fghi"), 3);
}

/* ---- mountinfo ------------------------------------------------------------------------------ */

static void test_escapes_of_mountinfo(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = { { "/a\\040b", "/a b" },
                  { "\\134040", "\\040" },
                  { "/a\\04", "/a\\04" },
                  { "/a\\400", "/a\\400" },
                  { "\\", "\\" },
                  { "/\\011\\012", "/\t\n" },
                  { "", "" } };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s", cases[i].in);
        tci_mountinfo_unescape(text);
        assert_string_equal(text, cases[i].out);
    }
}

static int find_root(void *context, const struct tci_mounted *mount)
{
    *(uint64_t *)context = mount->id;
    return strcmp(mount->point, "/") == 0 ? 7 : 0;
}

static void test_mounts_are_visited_until_one_is_found(void **state)
{
    uint64_t id = 0;
    (void)state;
    assert_int_equal(tci_mountinfo_each(find_root, &id), 7);
    assert_true(id > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes_of_mountinfo),
        cmocka_unit_test(test_mounts_are_visited_until_one_is_found),
        cmocka_unit_test(test_absolute_path_loses_dots_and_final_slash),
        cmocka_unit_test(test_relative_path_is_taken_below_the_base),
        cmocka_unit_test(test_leaving_the_root_is_refused_not_ignored),
        cmocka_unit_test(test_empty_path_and_empty_components_are_refused),
        cmocka_unit_test(test_relative_path_without_base_is_refused),
        cmocka_unit_test(test_every_control_byte_is_refused),
        cmocka_unit_test(test_utf8_passes_through),
        cmocka_unit_test(test_path_of_4095_bytes_is_the_longest),
        cmocka_unit_test(test_base_and_path_together_must_fit),
        cmocka_unit_test(test_component_of_255_bytes_is_the_longest),
        cmocka_unit_test(test_first_problem_in_the_order_of_the_list_wins),
        cmocka_unit_test(test_refused_path_leaves_nothing_to_use),
        cmocka_unit_test(test_each_problem_has_its_own_text),
        cmocka_unit_test(test_within_compares_whole_components),
        cmocka_unit_test(test_depth_counts_components),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
