/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of base/sha256.h (against FIPS 180-4's and NIST's vectors and another implementation) and
 * base/base64.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/sha256.h"
#include "base/sha256_internal.h"

static void assert_hash(const char *bytes, size_t length, const char *expected)
{
    char text[TCI_SHA256_TEXT_MAX];
    tci_sha256_text(bytes, length, text);
    assert_string_equal(text, expected);
}

static void test_published_vectors(void **state)
{
    (void)state;
    assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_hash("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    /* From the byte-oriented tests of the validation system. */
    assert_hash("\xbd", 1, "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
    assert_hash("\xc9\x8c\x8e\x55", 4,
                "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504");
}

static void test_million_letters_in_uneven_pieces(void **state)
{
    enum { total = 1000000 };
    struct tci_sha256 hash;
    char text[TCI_SHA256_TEXT_MAX], *letters = malloc(total);
    (void)state;
    assert_non_null(letters);
    memset(letters, 'a', total);
    tci_sha256_begin(&hash);
    for (size_t done = 0, piece = 1; done < total; done += piece, piece = piece * 3 % 1009 + 1) {
        if (piece > total - done)
            piece = total - done;
        tci_sha256_add(&hash, letters, piece);
    }
    tci_sha256_end_text(&hash, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(letters);
}

/* Every length around one and two blocks, each in one piece and cut at each place. */
static void test_pieces_do_not_change_the_hash(void **state)
{
    char bytes[140], whole[TCI_SHA256_TEXT_MAX], pieces[TCI_SHA256_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37 + 11);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        tci_sha256_text(bytes, length, whole);
        for (size_t cut = 0; cut <= length; cut++) {
            struct tci_sha256 hash;
            tci_sha256_begin(&hash);
            tci_sha256_add(&hash, bytes, cut);
            tci_sha256_add(&hash, bytes + cut, length - cut);
            tci_sha256_end_text(&hash, pieces);
            assert_string_equal(pieces, whole);
        }
    }
}

/* What sha256sum says about the bytes: given as a file, as its standard input is not ours to set. */
static void hash_with_sha256sum(const char *bytes, size_t length, char ret[TCI_SHA256_TEXT_MAX])
{
    char path[] = "/tmp/test_sha256.XXXXXX", command[128];
    int fd = mkstemp(path);
    FILE *said;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    assert_int_equal(close(fd), 0);
    (void)snprintf(command, sizeof command, "sha256sum < %s", path);
    said = popen(command, "r"); /* NOLINT(cert-env33-c): the path is ours */
    assert_non_null(said);
    assert_int_equal(fread(ret, 1, TCI_SHA256_TEXT_MAX - 1, said), TCI_SHA256_TEXT_MAX - 1);
    ret[TCI_SHA256_TEXT_MAX - 1] = '\0';
    (void)pclose(said);
    (void)unlink(path);
}

static void test_agrees_with_sha256sum(void **state)
{
    static const size_t lengths[] = { 0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 4097, 1048577 };
    char *bytes = malloc(1048577), ours[TCI_SHA256_TEXT_MAX], theirs[TCI_SHA256_TEXT_MAX];
    uint32_t x = 12345;
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < 1048577; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)(x >> 24);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tci_sha256_text(bytes, lengths[i], ours);
        hash_with_sha256sum(bytes, lengths[i], theirs);
        assert_string_equal(ours, theirs);
    }
    free(bytes);
}

/* Whatever the other tests ran on: the processor's instructions and C give the same. */
static void test_fast_and_plain_compression_agree(void **state)
{
    unsigned char blocks[5 * 64];
    uint32_t x = 99, fast[8], plain[8];
    (void)state;
    for (int round = 0; round < 1000; round++) {
        size_t count = (size_t)round % 6;
        for (size_t i = 0; i < sizeof blocks; i++) {
            x = x * 1664525 + 1013904223;
            blocks[i] = (unsigned char)(x >> 24);
        }
        for (size_t i = 0; i < 8; i++)
            fast[i] = plain[i] = x = x * 1664525 + 1013904223;
        if (!tci_sha256_compress_fast(fast, blocks, count))
            skip();
        tci_sha256_compress(plain, blocks, count);
        assert_memory_equal(fast, plain, sizeof plain);
    }
}

/* The published vector for C alone. */
static void test_plain_compression_of_abc(void **state)
{
    static const uint32_t expected[8] = { 0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                          0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad };
    unsigned char block[64] = { 'a', 'b', 'c', 0x80, [63] = 24 };
    struct tci_sha256 hash;
    (void)state;
    tci_sha256_begin(&hash);
    tci_sha256_compress(hash.state, block, 1);
    assert_memory_equal(hash.state, expected, sizeof expected);
}

/* 2^32 bits and more: the length's upper half counts. Half a gigabyte of zeros takes a while, so the
 * padding is tested with a length that was put there. */
static void test_length_is_counted_in_64_bits(void **state)
{
    char low[TCI_SHA256_TEXT_MAX], high[TCI_SHA256_TEXT_MAX];
    struct tci_sha256 hash;
    (void)state;
    tci_sha256_begin(&hash);
    hash.length = 64;
    tci_sha256_end_text(&hash, low);
    tci_sha256_begin(&hash);
    hash.length = 64 + ((uint64_t)1 << 32);
    tci_sha256_end_text(&hash, high);
    assert_string_not_equal(low, high);
}

/* ---- base64 ----------------------------------------------------------------------------------- */

static void assert_base64(const char *bytes, size_t length, const char *expected)
{
    struct tci_buf text = TCI_BUF_INIT(100), back = TCI_BUF_INIT(100);
    tci_base64_encode(&text, bytes, length);
    tci_buf_append(&text, "", 0);
    assert_string_equal(text.data, expected);
    assert_int_equal(tci_base64_decode(&back, text.data, text.length), 0);
    assert_int_equal(back.length, length);
    if (length)
        assert_memory_equal(back.data, bytes, length);
    tci_buf_free(&text);
    tci_buf_free(&back);
}

static void test_base64_vectors(void **state)
{
    (void)state;
    assert_base64("", 0, "");
    assert_base64("f", 1, "Zg==");
    assert_base64("fo", 2, "Zm8=");
    assert_base64("foo", 3, "Zm9v");
    assert_base64("foob", 4, "Zm9vYg==");
    assert_base64("fooba", 5, "Zm9vYmE=");
    assert_base64("foobar", 6, "Zm9vYmFy");
    assert_base64("\0\xff\xfe\xfb\xf0", 5, "AP/++/A=");
}

static void test_base64_of_every_length_reads_back(void **state)
{
    char bytes[1000];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 73 + (i >> 3));
    for (size_t length = 0; length <= sizeof bytes; length += length < 400 ? 1 : 97) {
        struct tci_buf text = TCI_BUF_INIT(4000), back = TCI_BUF_INIT(4000);
        tci_base64_encode(&text, bytes, length);
        assert_int_equal(text.length, (length + 2) / 3 * 4);
        assert_int_equal(tci_base64_decode(&back, text.data, text.length), 0);
        assert_int_equal(back.length, length);
        if (length)
            assert_memory_equal(back.data, bytes, length);
        tci_buf_free(&text);
        tci_buf_free(&back);
    }
}

static void test_base64_that_is_not_canonical_is_refused(void **state)
{
    static const char *const wrong[] = { "Z",        "Zg",   "Zg=",  "Zg===", "Zh==",
                                         "Zm9=",     "=Zg=", "Z===", "====",  "Zm9\n",
                                         "Zg==Zg==", "Zm-_", "Zm 9", "Z=g=",  "Zm9v\n" };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tci_buf back = TCI_BUF_INIT(100);
        if (tci_base64_decode(&back, wrong[i], strlen(wrong[i])) == 0)
            fail_msg("accepted: %s", wrong[i]);
        tci_buf_free(&back);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_million_letters_in_uneven_pieces),
        cmocka_unit_test(test_pieces_do_not_change_the_hash),
        cmocka_unit_test(test_agrees_with_sha256sum),
        cmocka_unit_test(test_fast_and_plain_compression_agree),
        cmocka_unit_test(test_plain_compression_of_abc),
        cmocka_unit_test(test_length_is_counted_in_64_bits),
        cmocka_unit_test(test_base64_vectors),
        cmocka_unit_test(test_base64_of_every_length_reads_back),
        cmocka_unit_test(test_base64_that_is_not_canonical_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
