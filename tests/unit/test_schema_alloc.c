/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the schema validator without memory, and without need for it. Each allocation fails once, in
 * turn: the compiler says so, no invalid value becomes valid, and nothing is left behind. A valid
 * value costs no allocation.
 */
#define TCI_ARENA_EXACT
#include "base/arena.c"

#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include "alloc_support.h"
#include "json/schema.h"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

/* Everything that the compiler has functions for. */
static const char everything[] =
    "{\"$id\":\"https://example.com/a\",\"$schema\":\"https://json-schema.org/draft/2020-12/"
    "schema\","
    "\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
    "name\"},\"b\":{\"enum\":[1,\"x\",{"
    "\"y\":[null]}]},\"c\":{\"const\":[1,2]},\"d\":{\"pattern\":\"^(?:a|b)+$\"},\"e\":{\"format\":"
    "\"hostname\"},\"f\":{\"items\":{\"multipleOf\":0.01},\"uniqueItems\":true,\"contains\":{"
    "\"minimum\":"
    "1}},\"g\":{\"$dynamicRef\":\"#node\"},\"h\":{\"enum\":[\"p\",\"q\"]}},\"required\":[\"a\"],"
    "\"patternProperties\":{\"^x-\":{\"type\":\"string\"}},\"propertyNames\":{\"anyOf\":[{"
    "\"maxLength\":"
    "9}]},\"dependentRequired\":{\"b\":[\"a\"]},\"dependentSchemas\":{\"c\":{\"minProperties\":1}},"
    "\"if\":{\"required\":[\"b\"]},\"then\":{\"required\":[\"c\"]},\"else\":{},\"oneOf\":[{"
    "\"required\":["
    "\"a\"]},false],\"not\":{\"required\":[\"z\"]},\"unevaluatedProperties\":false,\"$"
    "dynamicAnchor\":"
    "\"node\",\"$defs\":{\"name\":{\"$anchor\":\"n\",\"type\":\"string\",\"minLength\":1},"
    "\"other\":{"
    "\"$id\":\"b\",\"$dynamicAnchor\":\"node\",\"prefixItems\":[{\"$ref\":\"a#n\"}],\"items\":"
    "false}}}";

static const char good[] = "{\"a\":\"x\",\"b\":{\"y\":[null]},\"c\":[1,2.0],\"d\":\"abba\",\"e\":"
                           "\"www.example.com\",\"f\":[1.5,"
                           "2.25],\"h\":\"q\",\"x-1\":\"\"}";

static const char bad[] =
    "{\"a\":1,\"b\":2,\"c\":[2],\"d\":\"abc\",\"e\":\"-\",\"f\":[1,1,0.001],\"g\":"
    "[],\"h\":\"r\",\"x-1\":1,\"wrong\":1}";

static const struct tci_schema_options options = { .assert_formats = true };

/* ---- compiling -------------------------------------------------------------------------------- */

static json_t *schema;

static int compile_everything(void)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    int status = tci_schema_compile(schema, &options, &program, &error);
    assert_int_equal(error.code, status < 0 ? TC_ERROR_NO_MEMORY : TC_ERROR_NONE);
    assert_true((program != NULL) == (status == 0));
    tci_schema_free(program);
    return status;
}

static void test_compiler_without_memory_says_so(void **state)
{
    (void)state;
    schema = parse(everything);
#ifdef SANITIZED
    assert_int_equal(compile_everything(), 0);
#else
    for (long round = 1;; round++) {
        long before = allocations.live, failed;
        int status;
        begin_round(round);
        status = compile_everything();
        failed = allocations.failed;
        begin_round(0);
        assert_int_equal(allocations.live, before);
        if (!failed) {
            assert_int_equal(status, 0);
            assert_true(round > 200);
            break;
        }
        assert_int_equal(status, -1);
    }
#endif
    json_decref(schema);
}

/* ---- validating ------------------------------------------------------------------------------- */

static struct tci_schema_program *compile(const char *text)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    json_t *value = parse(text);
    if (tci_schema_compile(value, &options, &program, &error) < 0)
        fail_msg("%s", error.message);
    json_decref(value);
    return program;
}

#ifndef SANITIZED
/* What is kept for the next match is not left behind: the program has it. */
static void warm_up(const struct tci_schema_program *program, const json_t *value)
{
    struct tci_schema_report report = { 0 };
    (void)tci_schema_validate(program, value, &report);
    tci_schema_report_free(&report);
}
#endif

static void test_no_invalid_value_becomes_valid_without_memory(void **state)
{
    struct tci_schema_program *program = compile(everything);
    json_t *value = parse(bad);
    (void)state;
#ifdef SANITIZED
    assert_false(tci_schema_validate(program, value, NULL));
#else
    warm_up(program, value);
    for (long round = 1;; round++) {
        struct tci_schema_report report = { 0 };
        long before = allocations.live, failed;
        begin_round(round);
        assert_false(tci_schema_validate(program, value, &report));
        failed = allocations.failed;
        begin_round(0);
        assert_true(report.count > 0 || report.no_memory);
        tci_schema_report_free(&report);
        assert_int_equal(allocations.live, before);
        if (!failed) {
            assert_true(round > 10);
            break;
        }
    }
#endif
    json_decref(value);
    tci_schema_free(program);
}

static void test_valid_value_is_valid_or_not_decided_without_memory(void **state)
{
    struct tci_schema_program *program = compile(everything);
    json_t *value = parse(good);
    (void)state;
    assert_true(tci_schema_validate(program, value, NULL));
#ifndef SANITIZED
    for (long round = 1;; round++) {
        struct tci_schema_report report = { 0 };
        long before = allocations.live, failed;
        bool valid;
        begin_round(round);
        valid = tci_schema_validate(program, value, &report);
        failed = allocations.failed;
        begin_round(0);
        assert_true(valid || report.exhausted);
        tci_schema_report_free(&report);
        assert_int_equal(allocations.live, before);
        if (!failed) {
            assert_true(valid);
            break;
        }
    }
#endif
    json_decref(value);
    tci_schema_free(program);
}

struct plain {
    const char *schema, *instance;
};

static const struct plain plain[] = {
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":3},\"b\":{"
      "\"type\":"
      "\"integer\",\"minimum\":1},\"c\":{\"enum\":[\"x\",\"y\"]},\"d\":{\"type\":\"boolean\"},"
      "\"e\":{"
      "\"items\":{\"type\":\"number\"}}},\"required\":[\"a\"],\"additionalProperties\":false}",
      "{\"a\":\"b\",\"b\":3,\"c\":\"y\",\"d\":true,\"e\":[1,2,3]}" },
    { "{\"pattern\":\"^(?:a|b)+$\",\"minLength\":2}", "\"abab\"" },
    { "{\"propertyNames\":{\"pattern\":\"^[a-z]+$\"},\"additionalProperties\":{\"multipleOf\":0.01}"
      "}",
      "{\"a\":1.25,\"b\":7}" },
    { "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/"
      "n\"}}}}}",
      "{\"n\":{\"n\":{\"n\":{}}}}" },
    { "{\"anyOf\":[{\"properties\":{\"a\":true}},{\"properties\":{\"b\":true}}],"
      "\"unevaluatedProperties\":false}",
      "{\"a\":1,\"b\":2}" },
    { "{\"oneOf\":[{\"type\":\"string\"},{\"const\":{\"a\":[1]}}]}", "{\"a\":[1]}" },
    { "{\"uniqueItems\":true,\"contains\":{\"minimum\":2}}", "[1,2,3,{\"a\":1},{\"a\":2}]" },
    { "{\"format\":\"date-time\"}", "\"2026-01-31T08:30:00Z\"" },
    { "{\"format\":\"idn-email\"}", "\"a@\\u00fc.example\"" },
    { "{\"format\":\"uri\"}", "\"https://example.com/a?b#c\"" },
    { "{\"format\":\"regex\"}", "\"^a+$\"" },
};

static void test_valid_values_cost_no_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        struct tci_schema_program *program = compile(plain[i].schema);
        json_t *value = parse(plain[i].instance);
        struct tci_schema_report report = { 0 };
        assert_true(tci_schema_validate(program, value, NULL));
        begin_round(0);
        assert_true(tci_schema_validate(program, value, &report));
        assert_int_equal(allocations.made, 0);
        json_decref(value);
        tci_schema_free(program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiler_without_memory_says_so),
        cmocka_unit_test(test_no_invalid_value_becomes_valid_without_memory),
        cmocka_unit_test(test_valid_value_is_valid_or_not_decided_without_memory),
        cmocka_unit_test(test_valid_values_cost_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
