/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is found of values that must not be stored: spellings, texts, time. */
#include "support.h"

#include <jansson.h>
#include <time.h>
#include "core/record.h"
#include "json/canonical.h"

static const unsigned char salt[32];

/* The arguments with the pointers redacted, the hashes cut out. */
static void assert_redacted(const char *arguments, const char *pointer, const char *expected)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_string item = { .text = pointer };
    struct tci_strings pointers = { &item, 1 };
    struct tci_secrets secrets = { .count = 0 };
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    json_t *value = tci_json_read(arguments, strlen(arguments), NULL);
    char *hash;

    assert_int_equal(
        tci_redact_arguments(arena, value, NULL, &pointers, salt, &out, &secrets, NULL), 0);
    hash = strstr(out.data, "{\"redacted\":\"sha256:");
    if (hash)
        memmove(hash + 1, hash + 85, strlen(hash + 85) + 1);
    assert_string_equal(out.data, expected);
    json_decref(value);
    tci_buf_free(&out);
    tci_arena_free(arena);
}

static void test_pointers_name_values_as_in_rfc_6901(void **state)
{
    (void)state;
    assert_redacted("{\"a\":1}", "", "{}");
    assert_redacted("{\"a\":1}", "/a", "{\"a\":{}}");
    assert_redacted("{\"\":1}", "/", "{\"\":{}}");
    assert_redacted("{\"a/b\":1,\"c~d\":2}", "/a~1b", "{\"a/b\":{},\"c~d\":2}");
    assert_redacted("{\"a/b\":1,\"c~d\":2}", "/c~0d", "{\"a/b\":1,\"c~d\":{}}");
    assert_redacted("{\"~1\":1}", "/~01", "{\"~1\":{}}");
    assert_redacted("{\"a\":[1,[2,3]]}", "/a/1/0", "{\"a\":[1,[{},3]]}");
    assert_redacted("{\"a\":[1]}", "/a/-", "{\"a\":[1]}");
    assert_redacted("{\"a\":[1]}", "/a/00", "{\"a\":[1]}");
    assert_redacted("{\"a\":[1]}", "/a/1", "{\"a\":[1]}");
    assert_redacted("{\"a\":true}", "/a/b", "{\"a\":true}");
    assert_redacted("{\"a\":true,\"b\":true}", "/b", "{\"a\":true,\"b\":{}}");
}

/* ---- texts -------------------------------------------------------------------------------- */

/* Redacts a result, with all of the JSON text as what must not be stored. */
static void redact_all(struct tci_arena *arena, const char *json, const struct tc_result *before,
                       struct tc_result *ret)
{
    struct tci_string item = { .text = "" };
    struct tci_strings pointers = { &item, 1 };
    struct tci_secrets secrets = { .count = 0 };
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    json_t *value = tci_json_read(json, strlen(json), NULL);

    assert_non_null(value);
    assert_int_equal(
        tci_redact_arguments(arena, value, json, &pointers, salt, &out, &secrets, NULL), 0);
    assert_false(secrets.too_large);
    assert_int_equal(tci_redact_result(arena, before, &secrets, ret, NULL), 0);
    json_decref(value);
    tci_buf_free(&out);
}

static struct tc_result result_of(const char *printed)
{
    return (struct tc_result){ .backend = "",
                               .layers = "",
                               .stdout_data = printed,
                               .stdout_length = strlen(printed),
                               .stderr_data = "" };
}

/* What is stored of a text that a tool printed. */
static void assert_cleaned_json(const char *json, const char *printed, bool truncated,
                                const char *expected)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_result before = result_of(printed), after;

    before.stdout_truncated = truncated;
    redact_all(arena, json, &before, &after);
    assert_string_equal(after.stdout_data, expected);
    assert_int_equal(after.stdout_length, strlen(expected));
    tci_arena_free(arena);
}

static void assert_cleaned(const char *secret, const char *printed, bool truncated,
                           const char *expected)
{
    json_t *value = json_string(secret);
    char *json = json_dumps(value, JSON_ENCODE_ANY);
    assert_cleaned_json(json, printed, truncated, expected);
    free(json);
    json_decref(value);
}

static void test_values_are_found_in_every_spelling(void **state)
{
    (void)state;
    assert_cleaned("pass", "a pass, passpass", false, "a [redacted], [redacted]");
    assert_cleaned("abc", "abc is too short", false, "abc is too short");
    assert_cleaned("a\"b\\c/d", "{\"x\":\"a\\\"b\\\\c/d\"}", false, "{\"x\":\"[redacted]\"}");
    assert_cleaned("a\"b\\c/d", "\"a\\\"b\\\\c\\/d\"", false, "\"[redacted]\"");
    assert_cleaned("na\xc3\xafve", "na\\u00efve na\\u00EFve na\xc3\xafve", false,
                   "[redacted] [redacted] [redacted]");
    assert_cleaned("\xf0\x9f\x98\x80key", "\\ud83d\\ude00key", false, "[redacted]");
    assert_cleaned("tab\there", "tab\\there tab\\x09here", false, "[redacted] [redacted]");
    assert_cleaned("long-password", "begins with long-pa", true, "begins with [redacted]");
    assert_cleaned("long-password", "begins with long-pa", false, "begins with long-pa");
    assert_cleaned("long-password", "no program \"long-pas...\"", false,
                   "no program \"[redacted]...\"");
}

static void test_numbers_and_keys_are_secrets_too(void **state)
{
    (void)state;
    assert_cleaned_json("[4929123456781234]", "card 4929123456781234\n", false,
                        "card [redacted]\n");
    assert_cleaned_json("[123]", "123 is too short", false, "123 is too short");
    assert_cleaned_json("[4.5e6, \"4.5e7\"]", "4500000 or 4.5e6 or 45000000", false,
                        "[redacted] or [redacted] or [redacted]0");
    assert_cleaned_json("[5.00, -98765]", "5.00 5 -98765 98765", false,
                        "[redacted] 5 [redacted] [redacted]");
    assert_cleaned_json("[\"\\\"98765\", 1234.50]", "1234.5 1234.50 98765", false,
                        "[redacted] [redacted] 98765");
    assert_cleaned_json("{\"S3CRETKEY\":1}", "h/S3CRETKEY must", false, "h/[redacted] must");
    assert_cleaned_json("{\"S3/CR~ET\":1}", "h/S3~1CR~0ET must", false, "h/[redacted] must");
}

static void test_hosts_are_found_as_the_gate_writes_them(void **state)
{
    (void)state;
    assert_cleaned("S3CRET.Example.com.", "no rule allows s3cret.example.com; x", false,
                   "no rule allows [redacted]; x");
    assert_cleaned("https://me@S3CRET.Example.com:8443/path?q", "host s3cret.example.com", false,
                   "host [redacted]");
    assert_cleaned("http://[2001:DB8:0::7]:80/", "to 2001:db8::7", false, "to [redacted]");
    assert_cleaned("2001:DB8:0:0:0:0:0:7", "to 2001:db8::7", false, "to [redacted]");
}

static void test_secrets_that_overlap_leave_no_rest(void **state)
{
    (void)state;
    assert_cleaned_json("[\"XXXXS3CR\",\"S3CRETVALUEabc\"]", "a XXXXS3CRETVALUEabc b", false,
                        "a [redacted] b");
    assert_cleaned_json("[\"S3CRETVALUEabc\",\"XXXXS3CR\"]", "XXXXS3CRETVALUEabc", false,
                        "[redacted]");
    assert_cleaned_json("[\"abcabc\"]", "abcabcabc", false, "[redacted]");
    assert_cleaned_json("[\"long secret\",\"secr\"]", "a long secret, secr, long", false,
                        "a [redacted], [redacted], long");
    assert_cleaned_json("[\"abcdXefgh\",\"dXef\"]", "abcdXefg dXe", false, "abc[redacted]g dXe");
}

/* What must come out, found in the slow way. */
static void expect(char secrets[3][8], const char *text, char *out)
{
    bool covered[64] = { false };
    for (size_t i = 0; text[i]; i++)
        for (size_t k = 0; k < 3; k++)
            if (strncmp(text + i, secrets[k], strlen(secrets[k])) == 0)
                memset(covered + i, true, strlen(secrets[k]));
    for (size_t i = 0; text[i]; i++) {
        if (!covered[i])
            *out++ = text[i];
        else if (i == 0 || !covered[i - 1])
            out = stpcpy(out, "[redacted]");
    }
    *out = '\0';
}

static void test_search_agrees_with_a_simple_one(void **state)
{
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 1000; round++) {
        char secrets[3][8], text[41] = "", json[64], expected[512];
        for (size_t k = 0; k < 4; k++) {
            char *to = k < 3 ? secrets[k] : text;
            size_t length = k < 3 ? 4 + (size_t)(round + (int)k * 3) % 4 : 40;
            for (size_t i = 0; i < length; i++) {
                random = random * 1664525 + 1013904223;
                to[i] = "abx"[(random >> 16) % (round % 2 ? 2 : 3)];
            }
            to[length] = '\0';
        }
        (void)snprintf(json, sizeof json, "[\"%s\",\"%s\",\"%s\"]", secrets[0], secrets[1],
                       secrets[2]);
        expect(secrets, text, expected);
        assert_cleaned_json(json, text, false, expected);
    }
}

static void test_every_text_of_a_result_is_searched(void **state)
{
    static const struct tc_file files[] = { { .path = "/w/S3CRET", .saved = "out/S3CRET" } };
    static const struct tc_denial denials[] = { { "network", "s3cret", "no rule for s3cret" } };
    static const struct tc_connection connections[] = {
        { .name = "s3cret",
          .address = "S3CRET",
          .rule = "S3CRET",
          .note = "S3CRET",
          .error = "S3CRET" },
    };
    struct tci_arena *arena = tci_arena_new();
    struct tc_result before = result_of("\xff\0"
                                        "S3CRET"),
                     after;
    (void)state;

    before.stdout_length = 8; /* it will be base64: the search is before that */
    before.stderr_data = "S3CRET";
    before.stderr_length = 6;
    before.layers = "S3CRET";
    before.files = files;
    before.denials = denials;
    before.connections = connections;
    before.file_count = before.denial_count = before.connection_count = 1;
    before.output_json = "{\"S3CRET\":[\"xS3CRET\",77777,177777,7]}";
    (void)strcpy(before.reason, "S3CRET");
    (void)strcpy(before.fix, "S3CRET");
    redact_all(arena, "[\"S3CRET\",77777]", &before, &after);
    assert_int_equal(after.stdout_length, 12);
    assert_memory_equal(after.stdout_data, "\xff\0[redacted]", 12);
    assert_string_equal(after.output_json,
                        "{\"[redacted]\":[\"x[redacted]\",\"[redacted]\",\"1[redacted]\",7]}");
    assert_string_equal(after.denials[0].rule, "no rule for [redacted]");
    const char *const all[] = { after.stderr_data,
                                after.layers,
                                after.reason,
                                after.fix,
                                after.denials[0].target,
                                after.connections[0].name,
                                after.connections[0].address,
                                after.connections[0].rule,
                                after.connections[0].note,
                                after.connections[0].error };
    for (size_t i = 0; i < tci_array_size(all); i++)
        assert_string_equal(all[i], "[redacted]");
    assert_string_equal(after.files[0].path, "/w/[redacted]");
    assert_string_equal(after.files[0].saved, "out/[redacted]");
    tci_arena_free(arena);
}

static void assert_reason(const char *json, const char *reason, const char *expected)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_result before = result_of(""), after;
    before.verdict = TC_VERDICT_INVALID_INPUT;
    (void)snprintf(before.reason, sizeof before.reason, "%s", reason);
    redact_all(arena, json, &before, &after);
    assert_string_equal(after.reason, expected);
    tci_arena_free(arena);
}

static void test_reasons_show_no_part_of_a_secret(void **state)
{
    (void)state;
    assert_reason("[77777]", "arguments/n must be at most 3, not 77777",
                  "arguments/n must be at most 3, not [redacted]");
    assert_reason("[\"long-password\"]", "unexpected newline near '\"long-p'",
                  "unexpected newline near '\"[redacted]'");
    assert_reason("[\"long-password\"]", "output/long-passw must be", "output/[redacted] must be");
    assert_reason("[\"long-password\"]", "arguments...assword must be",
                  "the reason is not recorded: the tool has \"redact\", and the reason was cut");
    assert_reason("[\"long-password\"]", "must be one of \"a\", ...", "must be one of \"a\", ...");
}

/* ---- time --------------------------------------------------------------------------------- */

/* Both as long as a call may make them, and alike, so that every byte nearly begins every secret. */
static void test_many_secrets_in_a_large_output_take_no_product_of_time(void **state)
{
    enum { count = 1000, output = 1000000 };
    struct tci_buf json = TCI_BUF_INIT(SIZE_MAX / 4), text = TCI_BUF_INIT(SIZE_MAX / 4);
    clock_t began = clock();
    (void)state;
    tci_buf_char(&json, '[');
    for (unsigned i = 0; i < count; i++)
        tci_buf_printf(
            &json, "\"%.*s%u\",", (int)(i % 500),
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            1000 + i);
    tci_buf_char(&json, '"');
    for (unsigned i = 0; i < 150000; i++)
        tci_buf_char(&json, 'a');
    tci_buf_string(&json, "b\",77777]");
    for (unsigned i = 0; i < output; i++)
        tci_buf_char(&text, 'a');
    assert_cleaned_json(json.data, text.data, false, text.data);
    assert_true(clock() - began < 20 * CLOCKS_PER_SEC); /* a product takes minutes */
    tci_buf_free(&json);
    tci_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pointers_name_values_as_in_rfc_6901),
        cmocka_unit_test(test_values_are_found_in_every_spelling),
        cmocka_unit_test(test_numbers_and_keys_are_secrets_too),
        cmocka_unit_test(test_hosts_are_found_as_the_gate_writes_them),
        cmocka_unit_test(test_secrets_that_overlap_leave_no_rest),
        cmocka_unit_test(test_search_agrees_with_a_simple_one),
        cmocka_unit_test(test_every_text_of_a_result_is_searched),
        cmocka_unit_test(test_reasons_show_no_part_of_a_secret),
        cmocka_unit_test(test_many_secrets_in_a_large_output_take_no_product_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
