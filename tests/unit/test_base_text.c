/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of what src/base does with text: words that are near, dates, hashing, UTF-8, quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/attr.h"
#include "base/moment.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/siphash.h"
#include "base/utf8.h"

/* ---- nearest ---------------------------------------------------------------------------------- */

static const char *const words[] = { "network", "memory", "timeout",  "pids",  "cpu",
                                     "record",  "rootfs", "env_pass", "warm",  "filesystem",
                                     "command", "cwd",    "commands", "image", NULL };

static const char *nearest(const char *text)
{
    return tci_nearest_word(text, strlen(text), words);
}

static void test_nearest_word_by_one_edit_of_each_kind(void **state)
{
    static const char *const pairs[][2] = {
        { "ipds", "pids" },        /* swapped, where two edits are too many */
        { "netwrok", "network" },  /* swapped */
        { "netwok", "network" },   /* missing */
        { "neetwork", "network" }, /* doubled */
        { "nutwork", "network" },  /* replaced */
        { "Network", "network" },  /* case */
        { "CPU", "cpu" },
        { "PIDS", "pids" },
        { "TIMEOUT", "timeout" },   /* all of it */
        { "env-pass", "env_pass" }, /* dash */
        { "file_system", "filesystem" },
        { "mem", NULL },
        { "pid", "pids" },
        { "comand", "command" },
        { "commandss", "commands" },
        { "command", "command" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(pairs); i++) {
        const char *found = nearest(pairs[i][0]);
        if (!found || !pairs[i][1])
            assert_ptr_equal(found, pairs[i][1]);
        else
            assert_string_equal(found, pairs[i][1]);
    }
}

static void test_nothing_near_gives_no_suggestion(void **state)
{
    static const char *const none[] = { NULL };
    char long_word[200];
    (void)state;
    memset(long_word, 'n', sizeof long_word);
    assert_null(nearest(""));
    assert_null(nearest("zzzzzzzz"));
    assert_null(nearest("kubernetes"));
    assert_null(nearest("xy"));
    assert_null(tci_nearest_word(long_word, sizeof long_word, words));
    assert_null(tci_nearest_word("network", 7, none));
    /* Only `length` bytes count: the text need not end there. */
    assert_string_equal(tci_nearest_word("networkXXXXXXX", 7, words), "network");
}

static void test_word_longer_than_the_table_is_passed_over(void **state)
{
    static const char *const odd[] = { "this_word_is_longer_than_forty_characters_in_all",
                                       "timeout", NULL };
    static const char forty[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddde";
    static const char *const same[] = { "aaaaaaaaaabbbbbbbbbbccccccccccddddddddde", NULL };
    (void)state;
    assert_string_equal(tci_nearest_word("timeuot", 7, odd), "timeout");
    assert_int_equal(strlen(forty), 40);
    assert_ptr_equal(tci_nearest_word(forty, 40, same), same[0]);
    assert_null(tci_nearest_word("this_word_is_longer_than_forty_characters_in_all",
                                 strlen("this_word_is_longer_than_forty_characters_in_all"), odd));
}

static void test_closest_of_several_wins(void **state)
{
    (void)state;
    assert_string_equal(nearest("commands"), "commands");
    assert_string_equal(nearest("commandz"), "command"); /* one edit each: the first in the table */
    assert_string_equal(nearest("Commands"), "commands"); /* half an edit beats one */
}

/* ---- moment ----------------------------------------------------------------------------------- */

static void assert_moment(const char *text, int64_t expected)
{
    int64_t moment = -12345;
    if (!tci_moment_parse(text, strlen(text), &moment))
        fail_msg("\"%s\" was refused", text);
    assert_int_equal(moment, expected);
}

static void test_known_moments(void **state)
{
    (void)state;
    assert_moment("1970-01-01", 0);
    assert_moment("1970-01-01T00:00:00Z", 0);
    assert_moment("1970-01-01T00:00:01z", 1);
    assert_moment("1969-12-31T23:59:59Z", -1);
    assert_moment("2000-02-29", 951782400);
    assert_moment("2027-01-01", 1798761600);
    assert_moment("2038-01-19T03:14:08Z", 2147483648);
    assert_moment("9999-12-31T23:59:59Z", 253402300799);
    assert_moment("0001-01-01", -62135596800);
    assert_moment("2027-01-01T12:00:00+02:00", 1798761600 + 10 * 3600);
    assert_moment("2027-01-01 12:00:00-02:30", 1798761600 + 14 * 3600 + 1800);
    assert_moment("2027-01-01t12:00:00+23:59", 1798761600 + 12 * 3600 - 86340);
    assert_moment("2016-12-31T23:59:60Z", 1483228800); /* a leap second is the next moment */
    assert_moment("2027-01-01T00:00:00-00:00", 1798761600);
}

static void test_dates_that_do_not_exist_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2027",
        "2027-01",
        "2027-1-1",
        "2027-01-00",
        "2027-00-01",
        "2027-13-01",
        "2027-01-32",
        "2027-04-31",
        "2027-02-29",
        "1900-02-29",
        "2100-02-29",
        "0000-01-01",
        "02027-01-01",
        "-2027-01-01",
        "+2027-01-01",
        "2027/01/01",
        "01-01-2027",
        "2027-01-01 ",
        " 2027-01-01",
        "2027-01-01T",
        "2027-01-01T12",
        "2027-01-01T12:00",
        "2027-01-01T12:00Z",
        "2027-01-01T12:00:00",
        "2027-01-01T24:00:00Z",
        "2027-01-01T12:60:00Z",
        "2027-01-01T12:00:61Z",
        "2027-01-01T12:00:00+24:00",
        "2027-01-01T12:00:00+02:60",
        "2027-01-01T12:00:00+02",
        "2027-01-01T12:00:00+0200",
        "2027-01-01T12:00:00ZZ",
        "2027-01-01T12:00:00Z ",
        "2027-01-01X12:00:00Z",
        "tomorrow",
        "1798761600",
        "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa7-01-01",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        int64_t moment = 77;
        if (tci_moment_parse(bad[i], strlen(bad[i]), &moment))
            fail_msg("\"%s\" was accepted", bad[i]);
        assert_int_equal(moment, 77);
    }
    /* A NUL inside is not the end of the text. */
    int64_t moment;
    assert_false(tci_moment_parse("2027-01-01\0", 11, &moment));
    assert_false(tci_moment_parse("2027-01-01\0T12:00:00Z", 21, &moment));
    assert_false(tci_moment_parse("2027-01-01T12:00:00\0", 20, &moment));
}

static bool leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Every day of ten thousand years, counted up one by one. */
static void test_every_day_of_the_calendar_round_trips(void **state)
{
    static const int month_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t expected = -62135596800; /* 0001-01-01 */
    (void)state;
    for (int year = 1; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            int days = month_days[month - 1] + (month == 2 && leap(year));
            for (int day = 1; day <= days; day++, expected += 86400) {
                if (tci_moment(year, month, day, 0, 0, 0, 0) != expected)
                    fail_msg("%04d-%02d-%02d", year, month, day);
                /* The text of every fifth day: all weekdays, month ends and leap days occur. */
                if (day % 5 && day < 28)
                    continue;
                char text[16], shown[TCI_MOMENT_TEXT_MAX];
                int64_t parsed = 0;
                (void)snprintf(text, sizeof text, "%04d-%02d-%02d", year % 10000, month % 100,
                               day % 100);
                if (!tci_moment_parse(text, 10, &parsed) || parsed != expected)
                    fail_msg("%s", text);
                tci_moment_format(expected + 86399, shown);
                if (memcmp(shown, text, 10) != 0 || strcmp(shown + 10, "T23:59:59Z") != 0)
                    fail_msg("%s is shown as %s", text, shown);
            }
        }
    }
    assert_int_equal(expected, 253402300800);
}

static void test_seconds_agree_with_the_c_library(void **state)
{
    (void)state;
    for (int64_t moment = -5000000000; moment < 9000000000; moment += 86399 * 7 + 13) {
        char shown[TCI_MOMENT_TEXT_MAX], expected[64];
        struct tm tm;
        time_t t = (time_t)moment;
        int64_t parsed = 0;
        assert_non_null(gmtime_r(&t, &tm));
        assert_true(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
        assert_string_equal(tci_moment_format(moment, shown), expected);
        assert_true(tci_moment_parse(shown, strlen(shown), &parsed));
        assert_int_equal(parsed, moment);
    }
}

static void test_no_moment_overflows_its_text(void **state)
{
    static const int64_t odd[] = { INT64_MIN, INT64_MIN + 1, -1,          INT64_MAX - 1,
                                   INT64_MAX, 253402300800,  -62135596801 };
    (void)state;
    for (size_t i = 0; i < tci_array_size(odd); i++) {
        char text[TCI_MOMENT_TEXT_MAX];
        assert_ptr_equal(tci_moment_format(odd[i], text), text);
        assert_true(strlen(text) < sizeof text);
    }
}

/* ---- siphash ---------------------------------------------------------------------------------- */

/* The 64 vectors of the reference implementation: key 00..0f, message 00, 01, ... of each length. */
static void test_siphash_matches_the_reference_vectors(void **state)
{
    static const uint64_t vectors[64] = {
        0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
        0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
        0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
        0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
        0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
        0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
        0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
        0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
        0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
        0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
        0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
        0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
        0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
        0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
        0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
        0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
    };
    static const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
    unsigned char message[65];
    (void)state;
    /* One byte off, so that no read of a word is aligned. */
    for (size_t i = 0; i < 64; i++)
        message[i + 1] = (unsigned char)i;
    for (size_t length = 0; length < 64; length++)
        assert_int_equal(tci_siphash(key, message + 1, length), vectors[length]);
}

static void test_siphash_depends_on_both_halves_of_the_key(void **state)
{
    static const uint64_t keys[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { UINT64_MAX, UINT64_MAX } };
    (void)state;
    for (size_t i = 0; i < tci_array_size(keys); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(tci_siphash(keys[i], "tool", 4), tci_siphash(keys[j], "tool", 4));
}

/* ---- utf8 ------------------------------------------------------------------------------------- */

static void test_every_code_point_decodes_and_no_surrogate(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char bytes[4];
        size_t size;
        uint32_t decoded = 0xffffffff;
        if (c < 0x80) {
            size = 1;
            bytes[0] = (char)c;
        } else if (c < 0x800) {
            size = 2;
            bytes[0] = (char)(0xc0 | (c >> 6));
        } else if (c < 0x10000) {
            size = 3;
            bytes[0] = (char)(0xe0 | (c >> 12));
        } else {
            size = 4;
            bytes[0] = (char)(0xf0 | (c >> 18));
        }
        for (size_t i = 1; i < size; i++)
            bytes[i] = (char)(0x80 | ((c >> (6 * (size - 1 - i))) & 0x3f));
        if (c >= 0xd800 && c <= 0xdfff) {
            assert_int_equal(tci_utf8_decode(bytes, size, &decoded), 0);
            continue;
        }
        if (tci_utf8_decode(bytes, size, &decoded) != size || decoded != c)
            fail_msg("U+%04X", (unsigned)c);
        /* Cut short at every byte. */
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(tci_utf8_decode(bytes, cut, &decoded), 0);
    }
}

static void test_malformed_utf8_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80", /* a continuation byte alone */
        "\xbf",
        "\xc0\x80", /* overlong NUL */
        "\xc0\xaf", /* overlong '/' */
        "\xc1\xbf",
        "\xe0\x80\xaf", /* overlong '/' in three */
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\xaf", /* and in four */
        "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", /* surrogates */
        "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "\xfe",
        "\xff",
        "\xc2x", /* a sequence that breaks off */
        "\xc2\xc2",
        "\xe2\x82x",
        "\xe2(\xa1",
        "\xf0\x9f\x98x",
        "\xf0\x9fx\x80",
        "\xf0(\x8c\xbc",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        uint32_t c = 77;
        if (tci_utf8_decode(bad[i], strlen(bad[i]), &c) != 0)
            fail_msg("case %zu was accepted as U+%04X", i, (unsigned)c);
        assert_int_equal(c, 77);
    }
}

/* First and last of every run, and a sum over all: a run that is lost, cut or too wide is seen. */
static void test_characters_that_hide_or_reorder_text(void **state)
{
    static const uint32_t deceptive[] = {
        0xad,    0x34f,   0x600,   0x605,   0x61c,   0x6dd,   0x70f,   0x890,   0x891,   0x8e2,
        0x115f,  0x1160,  0x17b4,  0x17b5,  0x180b,  0x180e,  0x180f,  0x200b,  0x200f,  0x2028,
        0x202e,  0x2060,  0x206f,  0x2800,  0x3164,  0xfe00,  0xfe0e,  0xfeff,  0xffa0,  0xfff0,
        0xfff8,  0xfffb,  0x110bd, 0x110cd, 0x13430, 0x1343f, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a,
        0xe0000, 0xe0001, 0xe0041, 0xe007f, 0xe01ef, 0xe0fff,
    };
    static const uint32_t plain[] = { 'a',     '\n',    0xe9,    0x5d0,   0x627,   0x660,   0x4e2d,
                                      0xfe0f,  0x1f600, 0x20ac,  0xfffc,  0xfffd,  0x110bb, 0x1342f,
                                      0x1bc9f, 0x1d172, 0x1d17b, 0xdffff, 0xe1000, 0x10ffff };
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < tci_array_size(deceptive); i++)
        if (!tci_utf8_is_deceptive(deceptive[i]))
            fail_msg("U+%04X", (unsigned)deceptive[i]);
    for (size_t i = 0; i < tci_array_size(plain); i++)
        if (tci_utf8_is_deceptive(plain[i]))
            fail_msg("U+%04X", (unsigned)plain[i]);
    for (uint32_t c = 0; c <= 0x10ffff; c++)
        count += tci_utf8_is_deceptive(c);
    assert_int_equal(count, 4208);
}

static void test_characters_that_a_judge_sees_as_they_are(void **state)
{
    static const uint32_t plain[] = { ' ',   '~',    0xe9,   0x5d0,  0x627,   0xe01,
                                      0x939, 0x4e2d, 0xac00, 0xfffd, 0x1f600, 0x2ff };
    static const uint32_t others[] = { 0,      0x1f,   0x7f,   0x9f,   0xa0,    0x300,   0x36f,
                                       0x488,  0x1ab0, 0x1dff, 0x20dd, 0x202e,  0x3000,  0xe000,
                                       0xf8ff, 0xfdd0, 0xfe0f, 0xfe20, 0xfffe,  0x1ffff, 0xf0000,
                                       0xa670, 0x200b, 0xfeff, 0xad,   0x10ffff };
    (void)state;
    for (size_t i = 0; i < tci_array_size(plain); i++)
        if (!tci_utf8_is_plain(plain[i]))
            fail_msg("U+%04X is not plain", (unsigned)plain[i]);
    for (size_t i = 0; i < tci_array_size(others); i++)
        if (tci_utf8_is_plain(others[i]))
            fail_msg("U+%04X is plain", (unsigned)others[i]);
}

/* ---- quote ------------------------------------------------------------------------------------ */

static void assert_quote(const char *text, size_t length, const char *expected)
{
    char buffer[TCI_QUOTE_MAX];
    assert_ptr_equal(tci_quote(text, length, buffer), buffer);
    assert_string_equal(buffer, expected);
}

static void test_quote_shows_bytes_of_strangers(void **state)
{
    (void)state;
    assert_quote("", 0, "\"\"");
    assert_quote("plain ~!", 8, "\"plain ~!\"");
    assert_quote("a\033[31m", 6, "\"a\\x1b[31m\"");
    assert_quote("a\0b", 3, "\"a\\x00b\"");
    assert_quote("\n\t\x7f\x80\xff", 5, "\"\\x0a\\x09\\x7f\\x80\\xff\"");
    assert_quote("caf\xc3\xa9", 5, "\"caf\\xc3\\xa9\"");
    assert_quote("a\"b\\x41", 7, "\"a\\\"b\\\\x41\""); /* cannot pass for another text */
}

static void test_quote_cuts_long_text_and_says_so(void **state)
{
    char text[300], buffer[TCI_QUOTE_MAX];
    (void)state;
    memset(text, 'a', sizeof text);
    assert_quote(text, 60, "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"");
    assert_quote(text, 61, "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\"");
    /* The longest result for each mixture of plain and escaped bytes fits, and is ASCII. */
    for (size_t escaped_from = 0; escaped_from < 70; escaped_from++) {
        memset(text, 'a', escaped_from);
        memset(text + escaped_from, escaped_from % 2 ? '\\' : '\x01', sizeof text - escaped_from);
        for (size_t length = 0; length <= sizeof text; length++) {
            tci_quote(text, length, buffer);
            assert_true(strlen(buffer) < TCI_QUOTE_MAX);
            assert_int_equal(buffer[strlen(buffer) - 1], '"');
            for (const char *p = buffer; *p; p++)
                assert_in_range(*p, 0x20, 0x7e);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest_word_by_one_edit_of_each_kind),
        cmocka_unit_test(test_nothing_near_gives_no_suggestion),
        cmocka_unit_test(test_word_longer_than_the_table_is_passed_over),
        cmocka_unit_test(test_closest_of_several_wins),
        cmocka_unit_test(test_known_moments),
        cmocka_unit_test(test_dates_that_do_not_exist_are_refused),
        cmocka_unit_test(test_every_day_of_the_calendar_round_trips),
        cmocka_unit_test(test_seconds_agree_with_the_c_library),
        cmocka_unit_test(test_no_moment_overflows_its_text),
        cmocka_unit_test(test_siphash_matches_the_reference_vectors),
        cmocka_unit_test(test_siphash_depends_on_both_halves_of_the_key),
        cmocka_unit_test(test_every_code_point_decodes_and_no_surrogate),
        cmocka_unit_test(test_malformed_utf8_is_refused),
        cmocka_unit_test(test_characters_that_hide_or_reorder_text),
        cmocka_unit_test(test_characters_that_a_judge_sees_as_they_are),
        cmocka_unit_test(test_quote_shows_bytes_of_strangers),
        cmocka_unit_test(test_quote_cuts_long_text_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
