/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of gate/hello.h, and of gate/inspect.h for TLS. */
#include "inspect_support.h"

#include "gate/hello.h"

/* What OpenSSL 3.0 sends for api.example.com when it may speak TLS 1.3 only. */
static const uint8_t real_hello[] = {
    // clang-format off
    0x16, 0x03, 0x01, 0x00, 0xf4, 0x01, 0x00, 0x00, 0xf0, 0x03, 0x03, 0xc6, 0xc3, 0x62, 0x9a, 0x9c,
    0x9b, 0xf2, 0x7f, 0x37, 0xe1, 0x23, 0x43, 0xdb, 0xd3, 0x2a, 0x21, 0x5b, 0xa6, 0x76, 0x81, 0x4a,
    0xda, 0x53, 0xad, 0xce, 0x27, 0x70, 0xd5, 0x43, 0xcd, 0x9d, 0xec, 0x20, 0x3e, 0xf2, 0x9c, 0x32,
    0x0d, 0x11, 0x17, 0xb8, 0x5f, 0x17, 0xb5, 0x21, 0xe8, 0xc5, 0x7c, 0xa0, 0xd2, 0x17, 0x3a, 0x45,
    0x57, 0xd0, 0x95, 0xe3, 0x0f, 0xad, 0xd0, 0x2c, 0x81, 0xd0, 0x29, 0x90, 0x00, 0x08, 0x13, 0x02,
    0x13, 0x03, 0x13, 0x01, 0x00, 0xff, 0x01, 0x00, 0x00, 0x9f, 0x00, 0x00, 0x00, 0x14, 0x00, 0x12,
    0x00, 0x00, 0x0f, 0x61, 0x70, 0x69, 0x2e, 0x65, 0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x2e, 0x63,
    0x6f, 0x6d, 0x00, 0x0b, 0x00, 0x04, 0x03, 0x00, 0x01, 0x02, 0x00, 0x0a, 0x00, 0x16, 0x00, 0x14,
    0x00, 0x1d, 0x00, 0x17, 0x00, 0x1e, 0x00, 0x19, 0x00, 0x18, 0x01, 0x00, 0x01, 0x01, 0x01, 0x02,
    0x01, 0x03, 0x01, 0x04, 0x00, 0x23, 0x00, 0x00, 0x00, 0x16, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00,
    0x00, 0x0d, 0x00, 0x1e, 0x00, 0x1c, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x07, 0x08, 0x08,
    0x08, 0x09, 0x08, 0x0a, 0x08, 0x0b, 0x08, 0x04, 0x08, 0x05, 0x08, 0x06, 0x04, 0x01, 0x05, 0x01,
    0x06, 0x01, 0x00, 0x2b, 0x00, 0x03, 0x02, 0x03, 0x04, 0x00, 0x2d, 0x00, 0x02, 0x01, 0x01, 0x00,
    0x33, 0x00, 0x26, 0x00, 0x24, 0x00, 0x1d, 0x00, 0x20, 0x2a, 0xe4, 0xad, 0x92, 0xb6, 0xb2, 0xbf,
    0x36, 0x2b, 0x51, 0x61, 0x6f, 0x65, 0x24, 0xf8, 0x2a, 0xc0, 0x11, 0x92, 0xa9, 0x1e, 0xd7, 0x11,
    0x6d, 0x28, 0x5f, 0x70, 0x7f, 0x9a, 0x20, 0x58, 0x46,
    // clang-format on
};

/* What it sends behind the hello of a resumed session (TLS 1.2): ChangeCipherSpec, Finished, data. */
static const uint8_t resumed_rest[] = {
    0x14, 0x03, 0x03, 0x00, 0x01, 0x01, 0x16, 0x03, 0x03, 0x00, 0x28, 0x60, 0x5b, 0x6c, 0x00,
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,
    0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x17, 0x03, 0x03, 0x00, 0x02, 0xaa, 0xbb,
};

enum { bytes_max = 140000, record_max = 16384 };

struct bytes {
    uint8_t *at;
    size_t length;
};

static struct bytes new_bytes(void)
{
    struct bytes bytes = { malloc(bytes_max), 0 };
    assert_non_null(bytes.at);
    return bytes;
}

static void put(struct bytes *to, const void *bytes, size_t length)
{
    assert_true(to->length + length <= bytes_max);
    if (length > 0)
        memcpy(to->at + to->length, bytes, length);
    to->length += length;
}

static void put_number(struct bytes *to, size_t value, unsigned size)
{
    while (size-- > 0) {
        uint8_t byte = (uint8_t)(value >> (8 * size));
        put(to, &byte, 1);
    }
}

static void put_extension(struct bytes *to, unsigned type, const void *bytes, size_t length)
{
    put_number(to, type, 2);
    put_number(to, length, 2);
    put(to, bytes, length);
}

/* A list with one name. */
static void put_server_name(struct bytes *to, const char *name)
{
    put_number(to, 0, 2);
    put_number(to, strlen(name) + 5, 2);
    put_number(to, strlen(name) + 3, 2);
    put_number(to, 0, 1);
    put_number(to, strlen(name), 2);
    put(to, name, strlen(name));
}

/* Puts a message into records of at most `size` bytes. */
static void put_records(struct bytes *to, const struct bytes *message, size_t size)
{
    for (size_t at = 0; at < message->length; at += size) {
        size_t part = message->length - at < size ? message->length - at : size;
        put(to, "\x16\x03\x01", 3);
        put_number(to, part, 2);
        put(to, message->at + at, part);
    }
}

/* A ClientHello with these extensions; NULL: none at all. */
static void put_hello(struct bytes *to, const struct bytes *extensions, size_t record_size)
{
    struct bytes message = new_bytes();
    size_t length = 2 + 32 + 1 + 2 + 2 + 2 + (extensions ? 2 + extensions->length : 0);
    put_number(&message, 1, 1);
    put_number(&message, length, 3);
    put_number(&message, 0x0303, 2);
    for (unsigned i = 0; i < 32; i++)
        put_number(&message, i * 7, 1);
    put_number(&message, 0, 1); /* no session */
    put(&message, "\x00\x02\x13\x01\x01\x00", 6);
    if (extensions) {
        put_number(&message, extensions->length, 2);
        put(&message, extensions->at, extensions->length);
    }
    put_records(to, &message, record_size);
    free(message.at);
}

static struct bytes hello_with(const struct bytes *extensions, size_t record_size)
{
    struct bytes hello = new_bytes();
    put_hello(&hello, extensions, record_size);
    return hello;
}

static struct bytes hello_for(const char *name)
{
    struct bytes extensions = new_bytes(), hello;
    put_server_name(&extensions, name);
    hello = hello_with(&extensions, record_max);
    free(extensions.at);
    return hello;
}

static struct outcome run_bytes(const struct bytes *bytes, bool strict)
{
    return run(bytes->at, bytes->length, strict, false);
}

static void expect_both(const char *what, struct bytes bytes, enum ending ending,
                        const char *reason)
{
    for (int strict = 0; strict < 2; strict++) {
        struct outcome got = run_bytes(&bytes, strict);
        expect_ending(what, got, ending, reason);
        assert_string_equal(got.protocol, "tls");
        assert_true(ending != REFUSED || got.passed == 0);
    }
    free(bytes.at);
}

/* One extension that is all there is. */
static struct bytes hello_extension(unsigned type, const void *bytes, size_t length)
{
    struct bytes extensions = new_bytes(), hello;
    put_extension(&extensions, type, bytes, length);
    hello = hello_with(&extensions, record_max);
    free(extensions.at);
    return hello;
}

/* ---- The name ---- */

static void test_hello_for_the_name_passes(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        struct outcome got = run(real_hello, sizeof real_hello, strict, false);
        expect_ending("real hello", got, PASSED, "");
        assert_int_equal(got.passed, sizeof real_hello);
        assert_string_equal(got.reason, "");
        assert_string_equal(got.protocol, "tls");
    }
    expect_both("as it is", hello_for(NAME), PASSED, "");
    expect_both("in capitals", hello_for("API.EXAMPLE.COM"), PASSED, "");
    expect_both("with a dot", hello_for(NAME "."), PASSED, "");
}

static void test_hello_for_another_name_is_refused(void **state)
{
    static const struct {
        const char *name, *meant;
    } cases[] = {
        { "other.example.com", "other.example.com" },
        { "OTHER.example.com.", "other.example.com" },
        { "x." NAME, "x." NAME },
        { "127.0.0.1", "127.0.0.1" },
        { NAME "..", NAME ".." },
        { "a b\n", "a?b?" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct bytes hello = hello_for(cases[i].name);
        assert_string_equal(run_bytes(&hello, false).meant, cases[i].meant);
        expect_both(cases[i].name, hello, REFUSED, "the TLS hello is for another host: ");
    }
}

static void test_name_with_a_nul_is_another_name(void **state)
{
    struct bytes hello = hello_for(NAME "x");
    uint8_t *x = memmem(hello.at, hello.length, NAME "x", strlen(NAME "x"));
    (void)state;
    assert_non_null(x);
    x[strlen(NAME)] = '\0';
    expect_both("NUL", hello, REFUSED, "another host");
}

static void test_missing_name_is_refused_only_when_strict(void **state)
{
    struct bytes bare = hello_with(NULL, record_max), empty = hello_extension(35, "", 0);
    (void)state;
    expect_ending("bare", run_bytes(&bare, true), REFUSED, "names no host");
    expect_ending("bare", run_bytes(&bare, false), PASSED, "no server name in TLS");
    expect_ending("empty", run_bytes(&empty, true), REFUSED, "names no host");
    expect_ending("empty", run_bytes(&empty, false), PASSED, "no server name in TLS");
    free(bare.at);
    free(empty.at);
}

static void test_encrypted_hello_is_refused_only_when_strict(void **state)
{
    static const unsigned types[] = { 0xfe0d, 0xfe09, 0xffce };
    (void)state;
    for (size_t i = 0; i < tci_array_size(types); i++) {
        struct bytes extensions = new_bytes(), hello;
        put_server_name(&extensions, NAME);
        put_extension(&extensions, types[i], "\x00\x01", 2);
        hello = hello_with(&extensions, record_max);
        expect_ending("ECH", run_bytes(&hello, true), REFUSED, "ECH");
        expect_ending("ECH", run_bytes(&hello, false), PASSED, "ECH");
        free(extensions.at);
        free(hello.at);
    }
}

static void test_encrypted_hello_needs_the_right_outer_name_as_well(void **state)
{
    struct bytes extensions = new_bytes();
    (void)state;
    put_server_name(&extensions, "other.example.com");
    put_extension(&extensions, 0xfe0d, "\x00\x01", 2);
    expect_both("ECH", hello_with(&extensions, record_max), REFUSED, "another host");
    free(extensions.at);
}

/* ---- Malformed ---- */

static void test_server_name_with_two_readings_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
#define CASE(literal) { (literal), sizeof(literal) - 1 }
        CASE(""),
        CASE("\x00\x00"),
        CASE("\x00\x03\x00\x00\x00"),               /* an empty name */
        CASE("\x00\x04\x01\x00\x01x"),              /* another type */
        CASE("\x00\x08\x00\x00\x01x\x00\x00\x01y"), /* two names */
        CASE("\x00\x04\x00\x00\x01xy"),             /* something behind the list */
        CASE("\x00\x05\x00\x00\x01x"),              /* a list that is longer than it is */
        CASE("\x00\x04\x00\x00\x02x"),              /* a name that is */
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        expect_both("server name", hello_extension(0, cases[i].bytes, cases[i].length), REFUSED,
                    "its server name is");
}

static void test_too_long_name_is_refused(void **state)
{
    char name[257];
    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    expect_both("256 bytes", hello_for(name), REFUSED, "empty or too long");
    name[255] = '\0';
    expect_both("255 bytes", hello_for(name), REFUSED, "another host");
}

static void test_repeated_extension_is_refused(void **state)
{
    struct bytes extensions = new_bytes();
    (void)state;
    put_server_name(&extensions, NAME);
    put_extension(&extensions, 35, "", 0);
    put_server_name(&extensions, "other.example.com");
    expect_both("two names", hello_with(&extensions, record_max), REFUSED, "twice");
    extensions.length = 0;
    put_server_name(&extensions, NAME);
    put_extension(&extensions, 35, "", 0);
    put_extension(&extensions, 35, "", 0);
    expect_both("two tickets", hello_with(&extensions, record_max), REFUSED, "twice");
    extensions.length = 0;
    for (unsigned i = 1; i < 200; i++)
        put_extension(&extensions, i + 100, "", 0);
    expect_both("many", hello_with(&extensions, record_max), REFUSED, "too many");
    free(extensions.at);
}

/* Each length of the real hello, made one more or one less. */
static void test_lengths_that_do_not_add_up_are_refused(void **state)
{
    static const size_t lengths[] = { 4, 8, 43, 77, 86, 89 };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lengths); i++)
        for (int by = -1; by <= 1; by += 2) {
            uint8_t copy[sizeof real_hello];
            memcpy(copy, real_hello, sizeof copy);
            copy[lengths[i]] = (uint8_t)(copy[lengths[i]] + by);
            struct outcome got = run(copy, sizeof copy, false, true);
            if (got.ending != REFUSED)
                fail_msg("length at %zu changed by %d: %d", lengths[i], by, got.ending);
        }
}

static void test_hello_that_ends_inside_a_record_is_refused(void **state)
{
    struct bytes hello = hello_for(NAME);
    (void)state;
    put(&hello, "x", 1);
    hello.at[4]++;
    expect_both("more in the record", hello, REFUSED, "follows it in its record");
}

static void test_what_begins_like_tls_must_be_a_hello(void **state)
{
#define refused(literal, reason) expect_refused((literal), sizeof(literal) - 1, (reason))
    (void)state;
    refused("\x16\x03\x01\x00\x04\x02\x00\x00\x00", "first message is not a hello");
    refused("\x16\x03\x01\x00\x00", "empty or too long");
    refused("\x16\x03\x01\x40\x01", "empty or too long");
    refused("\x15\x03\x01\x00\x02\x01\x5a", "does not begin with a hello"); /* a warning first */
    refused("\x15\x02\x00\x00\x02\x01\x5a", "does not begin with a hello");
    refused("\x14\x03\x03\x00\x01\x01", "does not begin with a hello");
    refused("\x17\x03\x03\x00\x01\x01", "does not begin with a hello");
    refused("\x18\x03\x03\x00\x01\x01", "does not begin with a hello");
}

/* Go's library reads records of version 4 too. */
static void test_odd_record_version_is_tls_as_well(void **state)
{
    struct bytes hello = hello_for("other.example.com");
    (void)state;
    hello.at[1] = 4;
    expect_both("version 4", hello, REFUSED, "another host");
}

/* ---- Records ---- */

static void test_hello_in_many_records_is_read(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 5, 50 };
    struct bytes extensions = new_bytes();
    (void)state;
    put_server_name(&extensions, NAME);
    for (size_t i = 0; i < tci_array_size(sizes); i++)
        expect_both("good", hello_with(&extensions, sizes[i]), PASSED, "");
    extensions.length = 0;
    put_server_name(&extensions, "other.example.com");
    for (size_t i = 0; i < tci_array_size(sizes); i++)
        expect_both("bad", hello_with(&extensions, sizes[i]), REFUSED, "another host");
    free(extensions.at);
}

static void test_something_between_two_records_of_a_hello_is_refused(void **state)
{
    static const char between[] = "\x15\x03\x01\x00\x02\x01\x5a";
    struct bytes extensions = new_bytes(), hello, cut = new_bytes();
    (void)state;
    put_server_name(&extensions, NAME);
    hello = hello_with(&extensions, 30);
    put(&cut, hello.at, 35);
    put(&cut, between, sizeof between - 1);
    put(&cut, hello.at + 35, hello.length - 35);
    expect_both("alert", cut, REFUSED, "stands inside it");
    free(extensions.at);
    free(hello.at);
}

static void test_too_long_hello_is_refused(void **state)
{
    struct bytes extensions = new_bytes();
    uint8_t *padding = calloc(1, 65000);
    (void)state;
    assert_non_null(padding);
    put_server_name(&extensions, NAME);
    put_extension(&extensions, 21, padding, 60000);
    expect_both("60 KB", hello_with(&extensions, record_max), PASSED, "");
    expect_both("60 KB in small records", hello_with(&extensions, 50), REFUSED, "too long");
    extensions.length = 0;
    put_server_name(&extensions, NAME);
    put_extension(&extensions, 21, padding, 65000);
    put_extension(&extensions, 22, padding, 500);
    expect_both("64 KiB", hello_with(&extensions, record_max), REFUSED, "too long");
    free(extensions.at);
    free(padding);
}

static void test_truncated_hello_is_held_and_refused_at_the_end(void **state)
{
    (void)state;
    for (size_t length = 1; length < sizeof real_hello; length++)
        for (int strict = 0; strict < 2; strict++) {
            struct outcome got = run(real_hello, length, strict, false);
            assert_int_equal(got.ending, HELD);
            assert_int_equal(got.passed, 0);
            if (length > 1)
                expect_ending("cut", run(real_hello, length, strict, true), REFUSED, "cut off");
        }
}

/* ---- Behind the hello ---- */

#define CHANGE_CIPHER "\x14\x03\x03\x00\x01\x01"

static struct bytes real_and(const void *bytes, size_t length)
{
    struct bytes both = new_bytes();
    put(&both, real_hello, sizeof real_hello);
    put(&both, bytes, length);
    return both;
}

static void test_connection_is_open_once_no_second_hello_can_come(void **state)
{
    (void)state;
#define OPEN_BEHIND(literal)                                                                       \
    expect_both(#literal, real_and((literal), sizeof(literal) - 1), OPEN, "")
    OPEN_BEHIND("\x17\x03\x03\x00\x10x");                              /* TLS 1.3, data */
    OPEN_BEHIND(CHANGE_CIPHER "\x17\x03\x03\x00\x10x");                /* the usual case of it */
    OPEN_BEHIND("\x16\x03\x03\x00\x25\x10\x00\x00\x21");               /* TLS 1.2, key exchange */
    OPEN_BEHIND("\x16\x03\x03\x00\x25\x0b");                           /* TLS 1.2, certificate */
    OPEN_BEHIND(CHANGE_CIPHER "\x16\x03\x03\x00\x28\xb8");             /* TLS 1.2, resumed */
    OPEN_BEHIND(CHANGE_CIPHER "\x16\x03\x03\x00\x04\x01\x77\x00\x00"); /* the same, by chance */
    OPEN_BEHIND("\x99\x03\x03\x00\x01");                               /* the server will mind */
    expect_both("resumed", real_and(resumed_rest, sizeof resumed_rest), OPEN, "");
    expect_both("alert", real_and("\x15\x03\x03\x00\x02\x02\x28", 7), PASSED, "");
}

/* Encrypted bytes that look like the start of a hello are none if they do not fill their records. */
static void test_end_of_a_resumed_handshake_is_not_taken_for_a_hello(void **state)
{
    uint8_t rest[sizeof resumed_rest];
    (void)state;
    for (unsigned second = 0; second < 256; second++) {
        memcpy(rest, resumed_rest, sizeof rest);
        rest[11] = 1;
        rest[12] = (uint8_t)second;
        expect_both("resumed", real_and(rest, sizeof rest), OPEN, "");
        rest[6 + 5 + 38] = 200; /* a session of 200 bytes: then not even the next record matters */
        expect_both("resumed", real_and(rest, 6 + 5 + 40), OPEN, "");
    }
}

static struct bytes second_hello(const char *between, size_t length, const char *name,
                                 size_t record_size)
{
    struct bytes both = real_and(between, length), extensions = new_bytes();
    put_server_name(&extensions, name);
    put_hello(&both, &extensions, record_size);
    free(extensions.at);
    return both;
}

static void test_second_hello_must_name_the_host_too(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 5, 6, 40, record_max };
    static const char alert[] = CHANGE_CIPHER "\x15\x03\x03\x00\x02\x01\x5a" CHANGE_CIPHER;
    (void)state;
    for (size_t i = 0; i < tci_array_size(sizes); i++)
        for (size_t length = 0; length < sizeof alert; length++) {
            if (length != 0 && length != 6 && length != 13 && length != sizeof alert - 1)
                continue;
            struct bytes good = second_hello(alert, length, NAME, sizes[i]);
            struct bytes bad = second_hello(alert, length, "other.example.com", sizes[i]);
            for (int strict = 0; strict < 2; strict++) {
                expect_ending("good", run_bytes(&good, strict), PASSED, "");
                struct outcome got = run_bytes(&bad, strict);
                expect_ending("bad", got, REFUSED, "another host: other.example.com");
                assert_int_equal(got.passed, sizeof real_hello + length);
            }
            free(good.at);
            free(bad.at);
        }
}

static void test_empty_record_before_a_second_hello_is_refused(void **state)
{
    static const char empty[] = CHANGE_CIPHER "\x16\x03\x03\x00\x00";
    struct bytes both = second_hello(empty, sizeof empty - 1, "other.example.com", record_max);
    (void)state;
    expect_ending("empty", run_bytes(&both, false), REFUSED, "empty record");
    free(both.at);
}

/* Data that is sent with the first hello is skipped by a server that wants a second one. */
static void test_second_hello_behind_early_data_is_checked(void **state)
{
    struct bytes extensions = new_bytes(), both;
    (void)state;
    put_server_name(&extensions, NAME);
    put_extension(&extensions, 42, "", 0);
    both = hello_with(&extensions, record_max);
    put(&both,
        "\x17\x03\x03\x00\x03"
        "abc" CHANGE_CIPHER,
        8 + 6);
    expect_ending("early data", run_bytes(&both, false), PASSED, "");
    extensions.length = 0;
    put_server_name(&extensions, "other.example.com");
    put_hello(&both, &extensions, record_max);
    expect_ending("early data", run_bytes(&both, false), REFUSED, "another host");
    free(extensions.at);
    free(both.at);
}

/* ---- Robustness ---- */

static void test_truncations_end_alike_in_all_pieces(void **state)
{
    struct bytes both = second_hello(CHANGE_CIPHER, 6, NAME, 20);
    (void)state;
    put(&both, resumed_rest, sizeof resumed_rest);
    for (size_t length = 0; length <= both.length; length++)
        for (int mode = 0; mode < 4; mode++)
            (void)run(both.at, length, mode & 1, mode & 2);
    free(both.at);
}

static void test_mutations_end_alike_in_all_pieces(void **state)
{
    struct bytes both = second_hello(CHANGE_CIPHER, 6, NAME, 20);
    (void)state;
    mutate(real_hello, sizeof real_hello, 10000);
    mutate(both.at, both.length, 10000);
    free(both.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello_for_the_name_passes),
        cmocka_unit_test(test_hello_for_another_name_is_refused),
        cmocka_unit_test(test_name_with_a_nul_is_another_name),
        cmocka_unit_test(test_missing_name_is_refused_only_when_strict),
        cmocka_unit_test(test_encrypted_hello_is_refused_only_when_strict),
        cmocka_unit_test(test_encrypted_hello_needs_the_right_outer_name_as_well),
        cmocka_unit_test(test_server_name_with_two_readings_is_refused),
        cmocka_unit_test(test_too_long_name_is_refused),
        cmocka_unit_test(test_repeated_extension_is_refused),
        cmocka_unit_test(test_lengths_that_do_not_add_up_are_refused),
        cmocka_unit_test(test_hello_that_ends_inside_a_record_is_refused),
        cmocka_unit_test(test_what_begins_like_tls_must_be_a_hello),
        cmocka_unit_test(test_odd_record_version_is_tls_as_well),
        cmocka_unit_test(test_hello_in_many_records_is_read),
        cmocka_unit_test(test_something_between_two_records_of_a_hello_is_refused),
        cmocka_unit_test(test_too_long_hello_is_refused),
        cmocka_unit_test(test_truncated_hello_is_held_and_refused_at_the_end),
        cmocka_unit_test(test_connection_is_open_once_no_second_hello_can_come),
        cmocka_unit_test(test_end_of_a_resumed_handshake_is_not_taken_for_a_hello),
        cmocka_unit_test(test_second_hello_must_name_the_host_too),
        cmocka_unit_test(test_empty_record_before_a_second_hello_is_refused),
        cmocka_unit_test(test_second_hello_behind_early_data_is_checked),
        cmocka_unit_test(test_truncations_end_alike_in_all_pieces),
        cmocka_unit_test(test_mutations_end_alike_in_all_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
