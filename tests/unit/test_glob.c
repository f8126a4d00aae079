/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of core/extract_glob.h and core/media_type.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>
#include "base/arena.h"
#include "core/extract_glob.h"
#include "core/media_type.h"

static bool matches(const char *pattern, const char *path)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_glob glob;
    assert_non_null(arena);
    assert_int_equal(tci_glob_compile(arena, pattern, &glob), 0);
    return tci_glob_matches(&glob, path);
}

struct example {
    const char *pattern, *path;
};

static void assert_all(const struct example *examples, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++)
        if (matches(examples[i].pattern, examples[i].path) != expected)
            fail_msg("\"%s\" %s \"%s\"", examples[i].pattern,
                     expected ? "does not match" : "matches", examples[i].path);
}

static void test_patterns_match_what_they_say(void **state)
{
    static const struct example examples[] = {
        { "a", "a" },
        { "a/b.c", "a/b.c" },
        { "*", "a" },
        { "*", "abc.def" },
        { "*.png", "x.png" },
        { "a*", "a" },
        { "a*b*c", "aXbYbZc" },
        { "*a*a*a*", "banana" },
        { "*/b", "a/b" },
        { "?", "a" },
        { "?", "\xc3\xa9" },         /* one character of two bytes */
        { "?", "\xf0\x9f\x8e\xb2" }, /* and of four */
        { "?", "\xff" },             /* a byte that is none */
        { "???", "a\xe2\x82\xac\xff" },
        { "[abc]", "b" },
        { "[a-c]x", "bx" },
        { "[!a-c]", "d" },
        { "[^a-c]", "d" },
        { "[]]", "]" },
        { "[!]]", "x" },
        { "[]a]", "a" },
        { "[a-]", "-" },
        { "[-a]", "-" },
        { "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9" },
        { "[\\]]", "]" },
        { "[a\\-c]", "-" },
        { "[*]", "*" },
        { "[", "[" },
        { "a[b", "a[b" },
        { "[/]", "[/]" }, /* a class does not cross a slash */
        { "\\*", "*" },
        { "\\[a]", "[a]" },
        { "a\\", "a\\" },
        { "{a,b}", "{a,b}" },
        { "**", "a" },
        { "**", "a/b/c" },
        { "a/**", "a/b" },
        { "a/**", "a/b/c" },
        { "**/c", "c" },
        { "**/c", "a/c" },
        { "**/c", "a/b/c" },
        { "a/**/c", "a/c" },
        { "a/**/c", "a/b/c" },
        { "a/**/c", "a/b/x/y/c" },
        { "a/**/**/c", "a/c" },
        { "a/**/**/c", "a/b/c" },
        { "**/*.png", "x.png" },
        { "**/*.png", "a/b/x.png" },
        { "**.png", "x.png" },
        { "**.png", "a/b/x.png" },
        { "a**z", "a/b/z" },
        { "a**z", "az" },
        { "a***", "a/b" },
        { "**/b/**/d", "a/b/c/d" },
        { "**/b/**/d", "b/d" },
        { ".git", ".git" },
        { ".*", ".git" },
        { "**/.env", ".env" },
        { "**/.env", "a/.env" },
        { "a.b/*.c", "a.b/x.c" },
        { "*.*", "a.b" },
        { "a*", "a.b" },
    };
    (void)state;
    assert_all(examples, tci_array_size(examples), true);
}

static void test_patterns_do_not_match_anything_else(void **state)
{
    static const struct example examples[] = {
        { "a", "b" },
        { "a", "aa" },
        { "a", "a/a" },
        { "a", "" },
        { "", "a" },
        { "*", "a/b" },
        { "*.png", "a/x.png" },
        { "*.png", "x.pngx" },
        { "?", "" },
        { "?", "ab" },
        { "a?b", "a/b" },
        { "a[/]b", "a/b" },
        { "a[!x]b", "a/b" },
        { "[a-c]", "d" },
        { "[!a-c]", "b" },
        { "[c-a]", "b" },
        { "[\xc3\xa0-\xc3\xbf]", "\xc3" },
        { "\\*", "a" },
        { "\\*", "\\*" },
        { "a/*/c", "a/c" },
        { "a/*/c", "a/b/b/c" },
        { "a/**", "a" },
        { "a/**", "b/a" },
        { "a/**/c", "ac" },
        { "a/**/c", "a/bc" },
        { "a/**/c", "a/xc" },
        { "**/c", "xc" },
        { "**/c", "a/xc" },
        { "**/b/**/d", "a/b/cd" },
        /* What is hidden stays so. */
        { "*", ".git" },
        { "?git", ".git" },
        { "[.]git", ".git" },
        { "[!a]git", ".git" },
        { "**", ".git" },
        { "**", "a/.git/config" },
        { "**/config", ".git/config" },
        { "**/config", "a/.git/config" },
        { "**.git", ".git" },
        { "*.env", ".env" },
        { "a/**.env", "a/b/.env" },
        { "a/**", "a/.b" },
        { "a/*/c", "a/.b/c" },
        { "**/.env", ".git/.env" },
        /* The case of letters counts. */
        { "*.PNG", "x.png" },
    };
    (void)state;
    assert_all(examples, tci_array_size(examples), false);
}

static void test_static_part_ends_before_the_first_wildcard(void **state)
{
    static const struct {
        const char *pattern;
        size_t length;
    } cases[] = {
        { "/workspace/out/*.png", 14 },
        { "/workspace/x.png", 10 },
        { "/x.png", 0 },
        { "/*", 0 },
        { "/a*/b", 0 },
        { "/a/b?/c/d", 2 },
        { "/a/[b]/c", 2 },
        { "/a/[b/c", 5 },
        { "/a/\\*/c/d", 2 },
        { "/a/**", 2 },
        { "/a/b/**/c", 4 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        if (tci_glob_static_length(cases[i].pattern) != cases[i].length)
            fail_msg("%s: %zu", cases[i].pattern, tci_glob_static_length(cases[i].pattern));
}

static void test_walk_enters_only_what_can_match(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_glob glob;
    struct tci_glob_set start, set;
    char name[TCI_COMPONENT_MAX + 1];
    (void)state;
    assert_int_equal(tci_glob_compile(arena, "a*/out/*.png", &glob), 0);
    start = tci_glob_start(&glob);
    assert_false(tci_glob_only_name(&glob, &start, name));
    set = tci_glob_name(&glob, &start, "build");
    assert_false(tci_glob_slash(&glob, &set));
    set = tci_glob_name(&glob, &start, "artifacts");
    assert_false(tci_glob_accepts(&glob, &set));
    assert_true(tci_glob_slash(&glob, &set));
    assert_true(tci_glob_only_name(&glob, &set, name));
    assert_string_equal(name, "out");
    set = tci_glob_name(&glob, &set, "out");
    assert_true(tci_glob_slash(&glob, &set));
    assert_false(tci_glob_only_name(&glob, &set, name));
    set = tci_glob_name(&glob, &set, "x.png");
    assert_true(tci_glob_accepts(&glob, &set));
    assert_false(tci_glob_slash(&glob, &set));
}

static void test_only_name_is_spelt_as_in_the_file_system(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    static const char expected[] = "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb2 *\xff";
    struct tci_glob glob;
    struct tci_glob_set set;
    char name[TCI_COMPONENT_MAX + 1];
    (void)state;
    assert_int_equal(
        tci_glob_compile(arena, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb2 \\*\xff", &glob), 0);
    set = tci_glob_start(&glob);
    assert_true(tci_glob_only_name(&glob, &set, name));
    assert_string_equal(name, expected);
    assert_int_equal(tci_glob_compile(arena, "**/x", &glob), 0);
    set = tci_glob_start(&glob);
    assert_false(tci_glob_only_name(&glob, &set, name));
}

static void test_long_patterns_are_refused(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    char pattern[TCI_GLOB_TOKENS_MAX + 2];
    struct tci_glob glob;
    (void)state;
    memset(pattern, '?', sizeof pattern);
    pattern[TCI_GLOB_TOKENS_MAX] = '\0';
    assert_int_equal(tci_glob_compile(arena, pattern, &glob), 0);
    pattern[TCI_GLOB_TOKENS_MAX] = '?';
    pattern[TCI_GLOB_TOKENS_MAX + 1] = '\0';
    assert_int_equal(tci_glob_compile(arena, pattern, &glob), 1);
}

/* The patterns that take a backtracking matcher longer than the age of the universe. */
static void test_matching_takes_linear_time(void **state)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    static const char *const pieces[] = { "*a", "**a", "**/", "*", "?*", "[a-b]*" };
    char pattern[1000], name[256];
    (void)state;
    memset(name, 'a', 255);
    name[255] = '\0';
    for (size_t i = 0; i < tci_array_size(pieces); i++) {
        struct tci_glob glob;
        clock_t before; /* of the processor: others may have it meanwhile */
        pattern[0] = '\0';
        while (strlen(pattern) + strlen(pieces[i]) + 2 < sizeof pattern)
            strcat(pattern, pieces[i]);
        strcat(pattern, "b");
        assert_int_equal(tci_glob_compile(arena, pattern, &glob), 0);
        before = clock();
        assert_false(tci_glob_matches(&glob, name));
        assert_true(clock() - before < CLOCKS_PER_SEC);
    }
}

/* ---- media types ------------------------------------------------------------------------------ */

static const char *type_of(const char *name, const char *bytes, size_t length, size_t piece)
{
    struct tci_media media = { 0 };
    for (size_t i = 0; i < length; i += piece)
        tci_media_add(&media, bytes + i, length - i < piece ? length - i : piece);
    return tci_media_type(&media, name);
}

#define BYTES(text) text, sizeof(text) - 1

static void test_media_type_follows_the_bytes_and_then_the_name(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        const char *type;
    } cases[] = {
        { "x.png", BYTES("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png" },
        { "x", BYTES("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png" },
        { "x.txt", BYTES("\xff\xd8\xff\xe0\0\x10JFIF"), "image/jpeg" },
        { "x.gif", BYTES("GIF89a\1\0\1\0"), "image/gif" },
        { "x.pdf", BYTES("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "application/pdf" },
        { "x", BYTES("%PDF-1.4\nall of it is text"), "application/pdf" },
        { "x.webp", BYTES("RIFF\0\0\0\0WEBPVP8L"), "image/webp" },
        { "x.zip", BYTES("PK\3\4\x14\0"), "application/zip" },
        { "x.xlsx", BYTES("PK\3\4\x14\0"),
          "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
        { "x.wasm", BYTES("\0asm\1\0\0\0"), "application/wasm" },
        { "x.mp3", BYTES("\xff\xfb\x90\0"), "audio/mpeg" },
        { "x.csv", BYTES("a,b\n1,2\n"), "text/csv" },
        { "x.CSV", BYTES("a,b\n1,2\n"), "text/csv" },
        { "a.csv/x", BYTES("a,b\n1,2\n"), "text/plain" },
        { ".csv", BYTES("a,b\n1,2\n"), "text/plain" },
        { "x.csv", BYTES("a,b\n\0,2\n"), "application/octet-stream" },
        { "x.svg", BYTES("<svg/>"), "image/svg+xml" },
        { "x.json", BYTES("not yet"), "application/json" },
        { "x", BYTES(" {\"a\": 1}\n"), "application/json" },
        { "x", BYTES("[1, 2]"), "application/json" },
        { "x", BYTES("{}"), "application/json" },
        { "x", BYTES("{hello}"), "text/plain" },
        { "x", BYTES("[section]\nkey = 1"), "text/plain" },
        { "x", BYTES("{\"a\": 1} and more"), "text/plain" },
        { "x", BYTES("caf\xc3\xa9 \xf0\x9f\x8e\xb2\r\n\t\x1b[1m"), "text/plain" },
        { "x", BYTES("caf\xc3"), "application/octet-stream" },
        { "x", BYTES("\xed\xa0\x80 surrogate"), "application/octet-stream" },
        { "x", BYTES("bell\a"), "application/octet-stream" },
        { "x", BYTES(""), "text/plain" },
        { "x", BYTES("BZh is how this begins"), "text/plain" },
        { "x", BYTES("\xff\xff\xff\xff"), "application/octet-stream" },
        { "x.tar.gz", BYTES("\x1f\x8b\x08\0"), "application/gzip" },
        /* A name does not make an image of a page. */
        { "x.png", BYTES("<script>alert(1)</script>"), "text/plain" },
        { "x.png", BYTES("\1\2\3"), "application/octet-stream" },
        { "x.docx", BYTES("\1\2\3"), "application/octet-stream" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        /* However the bytes come. */
        for (size_t piece = 1; piece <= 20; piece++) {
            const char *type = type_of(cases[i].name, cases[i].bytes, cases[i].length, piece);
            if (strcmp(type, cases[i].type) != 0)
                fail_msg("%zu: %s is %s and not %s", i, cases[i].name, type, cases[i].type);
        }
    }
}

static void test_tar_is_known_by_its_257th_byte(void **state)
{
    char bytes[512] = "name";
    (void)state;
    memcpy(bytes + 257, "ustar", 5);
    assert_string_equal(type_of("x", bytes, sizeof bytes, 100), "application/x-tar");
    assert_string_equal(type_of("x", bytes, 261, 100), "application/octet-stream");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_match_what_they_say),
        cmocka_unit_test(test_patterns_do_not_match_anything_else),
        cmocka_unit_test(test_static_part_ends_before_the_first_wildcard),
        cmocka_unit_test(test_walk_enters_only_what_can_match),
        cmocka_unit_test(test_only_name_is_spelt_as_in_the_file_system),
        cmocka_unit_test(test_long_patterns_are_refused),
        cmocka_unit_test(test_matching_takes_linear_time),
        cmocka_unit_test(test_media_type_follows_the_bytes_and_then_the_name),
        cmocka_unit_test(test_tar_is_known_by_its_257th_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
