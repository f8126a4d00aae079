/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of gate/dns.h: which questions are read, and which bytes the answers have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/attr.h"
#include "gate/dns.h"

/* A literal with NULs in it, and its length. */
#define BYTES(literal) (const uint8_t *)(literal), sizeof(literal) - 1

#define HEADER   "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define HEADER_1 "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" /* one additional record */
#define NAME                                                                                       \
    "\x03"                                                                                         \
    "api\x07"                                                                                      \
    "example\x03"                                                                                  \
    "com\x00"
#define A       "\x00\x01\x00\x01"
#define AAAA    "\x00\x1c\x00\x01"
#define OPTIONS "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"

static const struct tci_address v4 = { .bytes = { 198, 18, 0, 2 } };
static const struct tci_address v6 = { .is_v6 = true, .bytes = { 0x20, 0x01, 0, 2, [15] = 2 } };

/* From a copy that ends where the message does. */
static int read_bytes(const uint8_t *bytes, size_t length, struct tci_dns_question *ret)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    int r;
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    r = tci_dns_read_question(copy, length, ret);
    free(copy);
    assert_true(r >= -1 && r <= TCI_DNS_UNKNOWN);
    assert_true(ret->wire_length <= sizeof ret->wire);
    assert_true(strlen(ret->name) <= TCI_NAME_MAX);
    for (const char *c = ret->name; *c; c++)
        assert_true(*c > 0x20 && *c < 0x7f);
    return r;
}

static void expect_code(int code, const uint8_t *bytes, size_t length)
{
    struct tci_dns_question question;
    int r = read_bytes(bytes, length, &question);
    if (r != code)
        fail_msg("%d instead of %d", r, code);
}

/* ---- Questions ---- */

static void test_question_is_read(void **state)
{
    struct tci_dns_question question;
    (void)state;
    assert_int_equal(read_bytes(BYTES(HEADER NAME A), &question), 0);
    assert_int_equal(question.id, 0x1234);
    assert_int_equal(question.type, TCI_DNS_A);
    assert_int_equal(question.class_, 1);
    assert_true(question.recursion_desired);
    assert_false(question.has_options);
    assert_true(question.is_host_name);
    assert_string_equal(question.name, "api.example.com");
    assert_int_equal(question.wire_length, sizeof(NAME A) - 1);
    assert_memory_equal(question.wire, NAME A, sizeof(NAME A) - 1);
}

static void test_name_is_lower_cased_but_comes_back_as_it_was(void **state)
{
    struct tci_dns_question question;
    (void)state;
    assert_int_equal(read_bytes(BYTES(HEADER "\x03"
                                             "ApI\x03"
                                             "CoM\x00" A),
                                &question),
                     0);
    assert_string_equal(question.name, "api.com");
    assert_memory_equal(question.wire,
                        "\x03"
                        "ApI\x03"
                        "CoM",
                        8);
}

static void test_names_that_no_rule_can_mean_are_marked(void **state)
{
    static const struct {
        const char *wire;
        size_t length;
        const char *name;
    } cases[] = {
#define CASE(literal, name) { HEADER literal A, sizeof(HEADER literal A) - 1, name }
        CASE("\x00", ""),
        CASE("\x05"
             "a.com\x00",
             "a?com"), /* one label with a dot in it */
        CASE("\x03"
             "a\x00"
             "b\x00",
             "a?b"),
        CASE("\x03"
             "a b\x00",
             "a?b"),
        CASE("\x02"
             "\xc3\xa4\x00",
             "??"),
        CASE("\x02"
             "a*\x00",
             "a*"),
        CASE("\x01"
             "*\x03"
             "com\x00",
             "*.com"),
        CASE("\x02"
             "-a\x00",
             "-a"),
        CASE("\x03"
             "127\x01"
             "0\x01"
             "0\x01"
             "1\x00",
             "127.0.0.1"),
        CASE("\x03"
             "127\x01"
             "1\x00",
             "127.1"),
    };
    struct tci_dns_question question;
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        assert_int_equal(read_bytes((const uint8_t *)cases[i].wire, cases[i].length, &question), 0);
        assert_string_equal(question.name, cases[i].name);
        assert_false(question.is_host_name);
    }
    assert_int_equal(read_bytes(BYTES(HEADER "\x05"
                                             "_dmarc\x00"),
                                &question),
                     TCI_DNS_MALFORMED);
    assert_int_equal(read_bytes(BYTES(HEADER "\x06"
                                             "_dmarc\x02"
                                             "de\x00" A),
                                &question),
                     0);
    assert_true(question.is_host_name);
}

static void test_longest_name_is_read_and_a_longer_one_is_not(void **state)
{
    uint8_t message[12 + 300];
    struct tci_dns_question question;
    size_t at = 12;
    (void)state;
    memcpy(message, HEADER, 12);
    for (int i = 0; i < 4; i++) { /* 3 * 64 + 62 + 1 = 255 */
        uint8_t length = i < 3 ? 63 : 61;
        message[at++] = length;
        memset(message + at, 'a', length);
        at += length;
    }
    memcpy(message + at, "\x00" A, 5);
    assert_int_equal(read_bytes(message, at + 5, &question), 0);
    assert_int_equal(strlen(question.name), TCI_NAME_MAX);
    assert_int_equal(question.wire_length, TCI_DNS_WIRE_MAX);
    assert_true(question.is_host_name);
    message[at - 62] = 62;
    memcpy(message + at, "a\x00" A, 6);
    assert_int_equal(read_bytes(message, at + 6, &question), TCI_DNS_MALFORMED);
    message[at - 62] = 61;
    memcpy(message + at,
           "\x01"
           "a\x00" A,
           7);
    assert_int_equal(read_bytes(message, at + 7, &question), TCI_DNS_MALFORMED);
}

static void test_what_is_no_question_gets_no_answer(void **state)
{
    (void)state;
    expect_code(-1, BYTES(""));
    expect_code(-1, BYTES("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00"));
    expect_code(-1, BYTES("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A));
}

static void test_malformed_questions_are_told_so(void **state)
{
    (void)state;
    expect_code(TCI_DNS_MALFORMED, BYTES("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"));
    expect_code(TCI_DNS_MALFORMED,
                BYTES("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" NAME A NAME A));
    expect_code(TCI_DNS_MALFORMED, BYTES(HEADER "\xc0\x0c" A)); /* a loop */
    expect_code(TCI_DNS_MALFORMED, BYTES(HEADER "\x03"
                                                "api\xc0\x0c" A));
    expect_code(TCI_DNS_MALFORMED, BYTES(HEADER "\x41"
                                                "api" A));
    expect_code(TCI_DNS_MALFORMED, BYTES(HEADER NAME A "x")); /* something behind it */
    expect_code(TCI_DNS_MALFORMED, BYTES(HEADER_1 NAME A));   /* a record is missing */
    expect_code(TCI_DNS_UNKNOWN, BYTES("\x12\x34\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A));
    /* Each truncation behind the header. */
    for (size_t length = 12; length < sizeof(HEADER_1 NAME A OPTIONS) - 1; length++)
        expect_code(TCI_DNS_MALFORMED, (const uint8_t *)(HEADER_1 NAME A OPTIONS), length);
}

static void test_options_are_seen(void **state)
{
    struct tci_dns_question question;
    (void)state;
    assert_int_equal(read_bytes(BYTES(HEADER_1 NAME A OPTIONS), &question), 0);
    assert_true(question.has_options);
    assert_int_equal(
        read_bytes(BYTES("\x12\x34\x01\x20\x00\x01\x00\x00\x00\x00\x00\x01" NAME A
                         "\x00\x00\x29\x10\x00\x00\x00\x80\x00\x00\x04\x00\x0a\x00\x00"),
                   &question),
        0);
    assert_true(question.has_options);
    expect_code(TCI_DNS_MALFORMED,
                BYTES("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" NAME A OPTIONS OPTIONS));
    expect_code(TCI_DNS_MALFORMED,
                BYTES(HEADER_1 NAME A "\x01x\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"));
    /* Another record is stepped over. */
    assert_int_equal(read_bytes(BYTES("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" NAME A
                                      "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x01x" OPTIONS),
                                &question),
                     0);
    assert_true(question.has_options);
    /* Sections that a question does not have are not looked at. */
    assert_int_equal(
        read_bytes(BYTES("\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x01" NAME A "anything"),
                   &question),
        0);
    assert_false(question.has_options);
}

static void test_other_classes_and_types_are_reported(void **state)
{
    struct tci_dns_question question;
    (void)state;
    assert_int_equal(read_bytes(BYTES(HEADER NAME "\x00\x10\x00\x03"), &question), 0);
    assert_int_equal(question.type, 16);
    assert_int_equal(question.class_, 3);
}

/* ---- Answers ---- */

static void expect_answer(const uint8_t *bytes, size_t length, int code, const uint8_t *wanted,
                          size_t wanted_length)
{
    uint8_t *got = malloc(TCI_DNS_MESSAGE_MAX);
    struct tci_dns_question question;
    size_t got_length;
    assert_non_null(got);
    (void)read_bytes(bytes, length, &question);
    got_length = tci_dns_write_answer(&question, code, &v4, &v6, 60, got);
    assert_int_equal(got_length, wanted_length);
    assert_memory_equal(got, wanted, wanted_length);
    free(got);
}

#define V4_RECORD "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x02"
#define V6_RECORD                                                                                  \
    "\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x10"                                             \
    "\x20\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"

static void test_answers_have_the_address_that_was_asked_for(void **state)
{
    (void)state;
    expect_answer(BYTES(HEADER NAME A), TCI_DNS_OK,
                  BYTES("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A V4_RECORD));
    expect_answer(BYTES(HEADER NAME AAAA), TCI_DNS_OK,
                  BYTES("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME AAAA V6_RECORD));
    expect_answer(BYTES(HEADER NAME "\x00\xff\x00\x01"), TCI_DNS_OK,
                  BYTES("\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00" NAME
                        "\x00\xff\x00\x01" V4_RECORD V6_RECORD));
    expect_answer(
        BYTES(HEADER NAME "\x00\x41\x00\x01"), TCI_DNS_OK, /* HTTPS: nothing of this */
        BYTES("\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME "\x00\x41\x00\x01"));
}

static void test_answers_echo_options_and_recursion(void **state)
{
    (void)state;
    expect_answer(
        BYTES(HEADER_1 NAME A OPTIONS), TCI_DNS_OK,
        BYTES("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x01" NAME A V4_RECORD OPTIONS));
    expect_answer(BYTES("\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A), TCI_DNS_OK,
                  BYTES("\x12\x34\x80\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A V4_RECORD));
}

static void test_refusals_have_no_address(void **state)
{
    (void)state;
    expect_answer(BYTES(HEADER NAME A), TCI_DNS_NO_NAME,
                  BYTES("\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" NAME A));
    expect_answer(BYTES(HEADER NAME A), TCI_DNS_REFUSED,
                  BYTES("\x12\x34\x81\x85\x00\x01\x00\x00\x00\x00\x00\x00" NAME A));
    expect_answer(BYTES(HEADER "\xc0\x0c" A), TCI_DNS_MALFORMED,
                  BYTES("\x12\x34\x81\x81\x00\x00\x00\x00\x00\x00\x00\x00"));
    /* The operation comes back as well. */
    expect_answer(BYTES("\x12\x34\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00" NAME A), TCI_DNS_UNKNOWN,
                  BYTES("\x12\x34\xa9\x84\x00\x00\x00\x00\x00\x00\x00\x00"));
}

static void test_answer_without_an_address_of_the_family_is_empty(void **state)
{
    uint8_t got[TCI_DNS_MESSAGE_MAX];
    struct tci_dns_question question;
    (void)state;
    assert_int_equal(read_bytes(BYTES(HEADER NAME A), &question), 0);
    assert_int_equal(tci_dns_write_answer(&question, TCI_DNS_OK, NULL, &v6, 60, got),
                     sizeof(HEADER NAME A) - 1);
    assert_int_equal(got[7], 0);
    assert_int_equal(tci_dns_write_answer(&question, TCI_DNS_OK, &v6, &v4, 60, got),
                     sizeof(HEADER NAME A) - 1);
}

static void test_random_messages_are_harmless(void **state)
{
    static const uint8_t seed[] = HEADER_1 NAME A OPTIONS;
    uint8_t message[sizeof seed], answer[TCI_DNS_MESSAGE_MAX];
    struct tci_dns_question question;
    (void)state;
    srand(1);
    for (int i = 0; i < 10000; i++) {
        size_t length = (size_t)rand() % sizeof seed;
        memcpy(message, seed, sizeof seed);
        for (int n = rand() % 5; n > 0; n--)
            message[(size_t)rand() % sizeof seed] = (uint8_t)rand();
        int r = read_bytes(message, length, &question);
        if (r >= 0)
            assert_true(tci_dns_write_answer(&question, r, &v4, &v6, 60, answer) <=
                        TCI_DNS_MESSAGE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question_is_read),
        cmocka_unit_test(test_name_is_lower_cased_but_comes_back_as_it_was),
        cmocka_unit_test(test_names_that_no_rule_can_mean_are_marked),
        cmocka_unit_test(test_longest_name_is_read_and_a_longer_one_is_not),
        cmocka_unit_test(test_what_is_no_question_gets_no_answer),
        cmocka_unit_test(test_malformed_questions_are_told_so),
        cmocka_unit_test(test_options_are_seen),
        cmocka_unit_test(test_other_classes_and_types_are_reported),
        cmocka_unit_test(test_answers_have_the_address_that_was_asked_for),
        cmocka_unit_test(test_answers_echo_options_and_recursion),
        cmocka_unit_test(test_refusals_have_no_address),
        cmocka_unit_test(test_answer_without_an_address_of_the_family_is_empty),
        cmocka_unit_test(test_random_messages_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
