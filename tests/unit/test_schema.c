/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of json/schema.h beyond the official suite (tests/e2e/test_json_schema_suite.py): what
 * errors say and where, what the compiler refuses, that every bound holds, and threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "json/schema.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
enum { small_stack = 4 * 1024 * 1024 }; /* its frames are many times larger */
#else
enum { small_stack = 256 * 1024 };
#endif

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s in %s", error.text, text);
    return value;
}

static struct tci_schema_program *compile_value(json_t *schema,
                                                const struct tci_schema_options *options)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    if (tci_schema_compile(schema, options, &program, &error) < 0)
        fail_msg("not compiled: %s", error.message);
    assert_non_null(program);
    json_decref(schema);
    return program;
}

static struct tci_schema_program *compile(const char *schema)
{
    return compile_value(parse(schema), NULL);
}

static struct tc_error refusal_with(const char *schema, const struct tci_schema_options *options)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    json_t *value = parse(schema);
    if (tci_schema_compile(value, options, &program, &error) == 0)
        fail_msg("compiled: %s", schema);
    assert_null(program);
    json_decref(value);
    return error;
}

static bool is_valid(const char *schema, const char *instance)
{
    struct tci_schema_program *program = compile(schema);
    json_t *value = parse(instance);
    bool valid = tci_schema_validate(program, value, NULL);
    json_decref(value);
    tci_schema_free(program);
    return valid;
}

/* ---- errors ----------------------------------------------------------------------------------- */

struct sentence {
    const char *schema, *instance, *instance_path, *schema_path, *message;
};

#define TOOL                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"},\"limit\":{\"type\":"      \
    "\"integer\",\"minimum\":1}},\"required\":[\"url\"],\"additionalProperties\":false}"

static const struct sentence sentences[] = {
    { TOOL, "{\"url\":5}", "/url", "#/properties/url/type", "must be a string, not a number" },
    { TOOL, "{}", "", "#/required", "lacks the required property \"url\"" },
    { TOOL, "{\"url\":\"\",\"limit\":0}", "/limit", "#/properties/limit/minimum",
      "must be at least 1, not 0" },
    { TOOL, "{\"url\":\"\",\"limit\":1.5}", "/limit", "#/properties/limit/type",
      "must be a whole number, not a number with a fraction" },
    { TOOL, "{\"url\":\"\",\"limitt\":1}", "", "#/additionalProperties",
      "has the property \"limitt\", which is not allowed; did you mean \"limit\"?" },
    { TOOL, "{\"url\":\"\",\"zzzzzz\":1}", "", "#/additionalProperties",
      "has the property \"zzzzzz\", which is not allowed" },
    { TOOL, "[]", "", "#/type", "must be an object, not an array" },
    { "{\"type\":[\"string\",\"null\",\"integer\"]}", "true", "", "#/type",
      "must be a string, a whole number or null, not true" },
    { "{\"type\":[\"number\",\"integer\"]}", "null", "", "#/type", "must be a number, not null" },
    { "{\"enum\":[\"a\",1,null,{\"b\":[true]}]}", "2", "", "#/enum",
      "must be one of \"a\", 1, null, {\"b\":[true]}" },
    { "{\"const\":\"yes\"}", "\"no\"", "", "#/const", "must be \"yes\"" },
    { "{\"items\":{\"maxLength\":2}}", "[\"a\",\"abc\"]", "/1", "#/items/maxLength",
      "must have at most 2 characters, not 3" },
    { "{\"minLength\":1}", "\"\"", "", "#/minLength", "must have at least 1 character, not 0" },
    { "{\"maxItems\":1}", "[1,2]", "", "#/maxItems", "must have at most 1 item, not 2" },
    { "{\"minProperties\":2}", "{}", "", "#/minProperties",
      "must have at least 2 properties, not 0" },
    { "{\"multipleOf\":0.01}", "1.005", "", "#/multipleOf",
      "must be a multiple of 0.01, not 1.005" },
    { "{\"exclusiveMaximum\":3}", "3", "", "#/exclusiveMaximum", "must be less than 3, not 3" },
    { "{\"pattern\":\"^[a-z]+$\"}", "\"A\"", "", "#/pattern",
      "must match the regular expression ^[a-z]+$" },
    { "{\"uniqueItems\":true}", "[1,2,1.0]", "", "#/uniqueItems",
      "must have no equal items, but items 0 and 2 (from 0) are equal" },
    { "{\"contains\":{\"type\":\"string\"}}", "[1]", "", "#/contains",
      "must have at least 1 item of the kind in \"contains\", not 0" },
    { "{\"prefixItems\":[true],\"items\":false}", "[1,2]", "/1", "#/items",
      "is one item too many: there may be only 1" },
    { "{\"not\":{\"type\":\"null\"}}", "null", "", "#/not",
      "must not match what the schema excludes" },
    { "false", "1", "", "#", "is not allowed here" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "", "#/dependentRequired",
      "has the property \"a\" and therefore needs the property \"b\"" },
    { "{\"propertyNames\":{\"maxLength\":3}}", "{\"long_name\":1}", "", "#/propertyNames",
      "has the property \"long_name\", whose name is not allowed: it must have at most 3 "
      "characters, "
      "not 9" },
    { "{\"unevaluatedProperties\":false,\"allOf\":[{\"properties\":{\"a\":true}}]}", "{\"b\":1}",
      "", "#/unevaluatedProperties", "has the property \"b\", which is not allowed" },
    { "{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "3", "", "#/oneOf",
      "must match exactly one of 2 alternatives, but matches both number 1 and number 2" },
    { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "3", "", "#/anyOf",
      "must match at least one of 2 alternatives: (1) must be a string, not a number; (2) must be "
      "null, not a number" },
    /* Only one alternative is for objects: its errors are the ones to know. */
    { "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"required\":[\"x\"]}]}", "{}", "",
      "#/anyOf/1/required", "lacks the required property \"x\"" },
    { "{\"properties\":{\"a\":{\"anyOf\":[{\"items\":{\"minimum\":3}},{\"maxItems\":0}]}}}",
      "{\"a\":[5,1]}", "/a", "#/properties/a/anyOf",
      "must match at least one of 2 alternatives: (1) /1 must be at least 3, not 1; (2) must have "
      "at most 0 items, not 2" },
    /* Pointers are escaped, and a reference shows the place that it leads to. */
    { "{\"properties\":{\"a/b~c\":{\"$ref\":\"#/$defs/x~1y\"}},\"$defs\":{\"x/y\":{\"type\":"
      "\"null\"}}}",
      "{\"a/b~c\":1}", "/a~1b~0c", "#/$defs/x~1y/type", "must be null, not a number" },
    { "{\"$id\":\"https://example.com/a\",\"type\":\"null\"}", "1", "",
      "https://example.com/a#/type", "must be null, not a number" },
    /* Text of strangers cannot hide in messages. */
    { "{\"additionalProperties\":false}", "{\"\\u001b[31m\":1}", "", "#/additionalProperties",
      "has the property \"\\x1b[31m\", which is not allowed" },
};

static void test_errors_name_place_rule_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        const struct sentence *s = &sentences[i];
        struct tci_schema_program *program = compile(s->schema);
        struct tci_schema_report report = { 0 };
        json_t *value = parse(s->instance);
        assert_false(tci_schema_validate(program, value, &report));
        assert_int_equal(report.count, 1);
        assert_string_equal(report.errors[0].message, s->message);
        assert_string_equal(report.errors[0].instance_path, s->instance_path);
        assert_string_equal(report.errors[0].schema_path, s->schema_path);
        assert_false(report.more || report.exhausted || report.no_memory);
        tci_schema_report_free(&report);
        json_decref(value);
        tci_schema_free(program);
    }
}

static void test_format_errors_show_an_example(void **state)
{
    struct tci_schema_options options = { .assert_formats = true };
    struct tci_schema_program *program = compile_value(parse("{\"format\":\"date\"}"), &options);
    struct tci_schema_report report = { 0 };
    json_t *value = json_string("31.1.2026");
    (void)state;
    assert_false(tci_schema_validate(program, value, &report));
    assert_string_equal(report.errors[0].message, "must be a date such as 2026-01-31");
    tci_schema_report_free(&report);
    json_decref(value);
    tci_schema_free(program);
}

static void test_all_errors_are_reported_up_to_the_limit(void **state)
{
    struct tci_schema_program *program = compile(TOOL);
    struct tci_schema_options options = { .limits = { .errors = 2 } };
    struct tci_schema_report report = { 0 };
    struct tci_buf text = TCI_BUF_INIT(4096);
    json_t *value = parse("{\"limit\":\"x\",\"a\":1,\"b\":2}");
    (void)state;

    assert_false(tci_schema_validate(program, value, &report));
    assert_int_equal(report.count, 4);
    assert_false(report.more);
    tci_schema_report_write(&report, "arguments", &text);
    assert_string_equal(text.data, "arguments/limit must be a whole number, not a string\n"
                                   "arguments has the property \"a\", which is not allowed\n"
                                   "arguments has the property \"b\", which is not allowed\n"
                                   "arguments lacks the required property \"url\"\n");
    tci_buf_free(&text);
    tci_schema_report_free(&report);
    tci_schema_free(program);

    program = compile_value(parse(TOOL), &options);
    assert_false(tci_schema_validate(program, value, &report));
    assert_int_equal(report.count, 2);
    assert_true(report.more);
    tci_schema_report_free(&report);
    tci_schema_free(program);
    json_decref(value);
}

static void test_long_paths_are_cut_and_say_so(void **state)
{
    struct tci_schema_program *program = compile("{\"additionalProperties\":{\"type\":\"null\"}}");
    struct tci_schema_report report = { 0 };
    char *key = malloc(10001);
    json_t *value = json_object();
    (void)state;
    assert_non_null(key);
    memset(key, 'k', 10000);
    key[10000] = '\0';
    json_object_set_new(value, key, json_true());
    assert_false(tci_schema_validate(program, value, &report));
    assert_int_equal(strlen(report.errors[0].instance_path), 4095);
    assert_memory_equal(report.errors[0].instance_path, "...k", 4);
    tci_schema_report_free(&report);
    json_decref(value);
    free(key);
    tci_schema_free(program);
}

/* ---- the compiler ----------------------------------------------------------------------------- */

struct refused {
    const char *schema, *message;
};

static const struct refused refused[] = {
    { "3", "#: a schema is an object or a boolean" },
    { "{\"properties\":{\"a\":[]}}", "#/properties/a: a schema is an object or a boolean" },
    { "{\"type\":\"strng\"}",
      "#/type: \"strng\" is not one of array, boolean, integer, null, number, object, string" },
    { "{\"$ref\":\"#/$defs/a\"}", "#/$ref: the reference \"#/$defs/a\" cannot be resolved: there "
                                  "is nothing at its JSON Pointer" },
    { "{\"$ref\":\"#a\"}",
      "#/$ref: the reference \"#a\" cannot be resolved: there is no such anchor" },
    { "{\"$ref\":\"https://example.com/other.json\"}",
      "#/$ref: the reference \"https://example.com/other.json\" cannot be resolved: no such "
      "document "
      "is known" },
    { "{\"$ref\":\"file:///etc/passwd\"}", "#/$ref: the reference \"file:///etc/passwd\" cannot be "
                                           "resolved: no such document is known" },
    { "{\"$defs\":{\"unused\":{\"$ref\":\"nowhere\"}}}",
      "#/$defs/unused/$ref: the reference \"nowhere\" cannot be resolved: no such document is "
      "known" },
    { "{\"$ref\":\"#/%zz\"}", "#/$ref: the reference \"#/%zz\" cannot be resolved: its fragment "
                              "has a % without two digits" },
    { "{\"$ref\":5}", "#/$ref: must be a string without NUL" },
    { "{\"$defs\":{\"a\":5},\"$ref\":\"#/title\",\"title\":\"x\"}",
      "#/$defs/a: a schema is an object or a boolean" },
    { "{\"$ref\":\"#/title\",\"title\":\"x\"}",
      "#/$ref: the reference \"#/title\" cannot be resolved: what is there is no schema" },
    { "{\"minLength\":-1}", "#/minLength: must be a whole number, 0 or greater" },
    { "{\"minLength\":1.5}", "#/minLength: must be a whole number, 0 or greater" },
    { "{\"multipleOf\":0}", "#/multipleOf: must be a number greater than 0" },
    { "{\"maximum\":\"3\"}", "#/maximum: must be a number" },
    { "{\"properties\":{\"a\":{\"required\":true}}}",
      "#/properties/a/required: must be an array of names, in the object's own schema" },
    { "{\"required\":[1]}", "#/required: must be an array of names" },
    { "{\"enum\":\"a\"}", "#/enum: must be an array of values" },
    { "{\"allOf\":[]}", "#/allOf: must have at least one schema" },
    { "{\"anyOf\":{}}", "#/anyOf: must be an array of schemas" },
    { "{\"properties\":[]}", "#/properties: must be an object of schemas" },
    { "{\"pattern\":\"(\"}",
      "#/pattern: the regular expression \"(\": a ( without its ), at byte 1" },
    { "{\"pattern\":\"a**\"}",
      "#/pattern: the regular expression \"a**\": nothing to repeat, at byte 2" },
    { "{\"pattern\":\"(?i)a\"}", "#/pattern: the regular expression \"(?i)a\": ECMA-262 does not "
                                 "know this kind of (?, at byte 2" },
    { "{\"pattern\":\"(*LIMIT_MATCH=9)a\"}",
      "#/pattern: the regular expression \"(*LIMIT_MATCH=9)a\": nothing to repeat, at byte 1" },
    { "{\"pattern\":\"(?<=a+)b\"}",
      "#/pattern: the regular expression \"(?<=a+)b\": lookbehind assertion is not fixed length" },
    { "{\"patternProperties\":{\"[b-a]\":true}}",
      "#/patternProperties: the regular expression \"[b-a]\": a range that is out of order, at "
      "byte 4" },
    { "{\"$id\":\"https://example.com/#a\"}",
      "https://example.com/#/$id: must have no fragment; use \"$anchor\"" },
    { "{\"$anchor\":\"a b\"}", "#/$anchor: \"a b\" is not a name for an anchor" },
    { "{\"$anchor\":\"a\",\"items\":{\"$anchor\":\"a\"}}",
      "#/items/$anchor: another schema has the anchor \"a\"" },
    { "{\"$defs\":{\"a\":{\"$id\":\"urn:x\"},\"b\":{\"$id\":\"urn:x\"}}}",
      "#/$defs/b/$id: another schema has the id \"urn:x\" already" },
    { "{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\"}",
      "\"$schema\" names \"https://json-schema.org/draft/2019-09/schema\", which is not known" },
    { "{\"$schema\":7}", "\"$schema\" must be a string" },
    { "{\"$ref\":\"#\"}",
      "#: leads back to itself without going into the value, so validation would never end" },
    { "{\"allOf\":[{\"not\":{\"$ref\":\"#/$defs/a\"}}],\"$defs\":{\"a\":{\"anyOf\":[true,{\"$ref\":"
      "\"#\"}]}}}",
      "#/$defs/a/anyOf/1: leads back to itself without going into the value, so validation would "
      "never end" },
    { "{\"dependentSchemas\":{\"a\":{\"$ref\":\"#\"}}}",
      "#/dependentSchemas/a: leads back to itself without going into the value, so validation "
      "would "
      "never end" },
};

static void test_bad_schemas_are_refused_with_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct tc_error error = refusal_with(refused[i].schema, NULL);
        assert_string_equal(error.message, refused[i].message);
        assert_int_not_equal(error.code, TC_ERROR_NONE);
    }
}

static const json_t *look_up(void *context, const char *uri)
{
    return json_object_get(context, uri);
}

static void test_other_documents_come_from_the_caller_only(void **state)
{
    json_t *documents = parse(
        "{\"https://example.com/b\":{\"$ref\":\"c#/$defs/d\"},"
        "\"https://example.com/c\":{\"$defs\":{\"d\":{\"type\":\"null\"}}},"
        "\"https://example.com/meta\":{\"$schema\":\"https://json-schema.org/"
        "draft/2020-12/schema\",\"$vocabulary\":{\"https://example.com/v\":true}}}");
    struct tci_schema_options options = { .lookup = look_up, .lookup_context = documents };
    struct tci_schema_program *program = compile_value(
        parse("{\"$ref\":\"https://example.com/b\"}"), &options);
    struct tc_error error;
    (void)state;
    assert_true(tci_schema_validate(program, json_null(), NULL));
    assert_false(tci_schema_validate(program, json_true(), NULL));
    tci_schema_free(program);
    error = refusal_with("{\"$schema\":\"https://example.com/meta\"}", &options);
    assert_string_equal(error.message, "the vocabulary \"https://example.com/v\" is not known");
    assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    json_decref(documents);
}

static void test_program_outlives_the_document(void **state)
{
    json_t *schema = parse(
        "{\"properties\":{\"a\":{\"enum\":[\"x\",{\"y\":[1]}]},\"b\":{\"pattern\":"
        "\"^(?:x|yy)$\"}},\"required\":[\"a\"]}");
    struct tci_schema_program *program = NULL;
    json_t *good = parse("{\"a\":{\"y\":[1.0]},\"b\":\"yy\"}"), *bad = parse("{\"a\":{\"y\":[2]}}");
    (void)state;
    assert_int_equal(tci_schema_compile(schema, NULL, &program, NULL), 0);
    json_object_clear(schema);
    json_decref(schema);
    assert_true(tci_schema_validate(program, good, NULL));
    assert_false(tci_schema_validate(program, bad, NULL));
    json_decref(good);
    json_decref(bad);
    tci_schema_free(program);
}

static void test_draft_7_reads_what_generators_write(void **state)
{
    (void)state;
    /* Definitions beside $ref. */
    assert_false(is_valid("{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$ref\":"
                          "\"#/definitions/T\",\"definitions\":{\"T\":{\"type\":\"null\"}}}",
                          "1"));
    /* $defs works there too, and items may be a list. */
    assert_false(is_valid("{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"items\":[{"
                          "\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"type\":\"null\"}}}",
                          "[1]"));
    assert_true(is_valid("{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"prefixItems\":"
                         "[false]}",
                         "[1]"));
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static void test_numbers_compare_exactly(void **state)
{
    (void)state;
    /* 2^63 - 1 and 2^63 are the same double. */
    assert_true(is_valid("{\"exclusiveMaximum\":9223372036854775808.0}", "9223372036854775807"));
    assert_false(is_valid("{\"maximum\":9223372036854775806}", "9223372036854775807"));
    assert_false(is_valid("{\"minimum\":9007199254740993}", "9007199254740992"));
    assert_true(is_valid("{\"minimum\":9007199254740993}", "9007199254740993"));
    assert_false(is_valid("{\"const\":9007199254740993}", "9007199254740992.0"));
    assert_true(is_valid("{\"const\":1.0}", "1"));
    assert_true(is_valid("{\"const\":-0.0}", "0"));
    assert_false(is_valid("{\"const\":1}", "true"));
    assert_true(is_valid("{\"type\":\"integer\"}", "1e300"));
    assert_false(
        is_valid("{\"uniqueItems\":true}", "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,7.0]"));
    assert_true(is_valid("{\"uniqueItems\":true}",
                         "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,9007199254740993,"
                         "9007199254740992.0]"));
}

static void test_multiples_are_decimal(void **state)
{
    (void)state;
    assert_true(is_valid("{\"multipleOf\":0.01}", "19.99"));
    assert_true(is_valid("{\"multipleOf\":0.01}", "4.02"));
    assert_false(is_valid("{\"multipleOf\":0.01}", "4.021"));
    assert_true(is_valid("{\"multipleOf\":0.1}", "123456789012.3"));
    assert_true(is_valid("{\"multipleOf\":10}", "1e23"));
    assert_false(is_valid("{\"multipleOf\":7}", "1e23"));
    assert_true(is_valid("{\"multipleOf\":1e-300}", "1e300"));
    assert_false(is_valid("{\"multipleOf\":1e300}", "1e-300"));
    assert_true(is_valid("{\"multipleOf\":2.5}", "-7.5"));
    assert_true(is_valid("{\"multipleOf\":9007199254740993}", "-9007199254740993"));
    assert_false(is_valid("{\"multipleOf\":9007199254740993}", "9007199254740992"));
    assert_true(is_valid("{\"multipleOf\":3}", "-9223372036854775806"));
}

/* ---- regular expressions ---------------------------------------------------------------------- */

struct match {
    const char *pattern, *text;
    bool matches;
};

static const struct match matches[] = {
    { "^a$", "a\\n", false },
    { "^.$", "\\n", false },
    { "^.$", "\\u2028", false },
    { "^.$", "\\ud83d\\udc32", true },
    { "^..$", "\\ud83d\\udc32", false },
    { "^[^x]$", "\\ud83d\\udc32", true },
    { "^[\\\\w-]+$", "a-b", true },
    { "^[\\\\w-.]+$", "a-b.c", true },
    { "^[a-\\\\d]+$", "a-5", true },
    { "[]", "a", false },
    { "^[^]$", "\\n", true },
    { "^[[:alpha:]]$", "a]", true }, /* a class and a ], not one of POSIX */
    { "^\\\\Da$", "\\u00e9a", true },
    { "^\\\\u{1f432}$", "\\ud83d\\udc32", true },
    { "^\\\\ud83d\\\\udc32$", "\\ud83d\\udc32", true },
    { "^\\\\ud83d", "\\ud83d\\udc32", false },
    { "^[\\\\ud7ff-\\\\ue000]$", "\\ue000", true },
    { "^(?<year>\\\\d{4})-\\\\k<year>$", "2026-2026", true },
    { "^(?<year>\\\\d{4})-\\\\k<year>$", "2026-2027", false },
    { "^(a)?\\\\1b$", "b", true }, /* a group that took no part is empty */
    { "^\\\\bx\\\\b.\\\\B", "x..", true },
    { "(?<=\\\\$)\\\\d+", "$5", true },
    { "^(?!a)", "a", false },
    { "^a{2,3}?$", "aaa", true },
    { "^\\\\cJ$", "\\n", true },
    { "^\\\\x41\\\\0$", "A\\u0000", true },
    { "^\\\\p{Script=Greek}+$", "\\u03b1\\u03b2", true },
    { "^\\\\p{sc=Greek}+$", "a", false },
    { "^\\\\P{Lu}$", "a", true },
    { "^[\\\\p{Lu}\\\\p{Nd}]$", "\\u0664", true },
    { "^\\\\p{Emoji_Presentation}$", "\\ud83d\\udc32", true },
    { "^\\\\p{ASCII}$", "\\u00e9", false },
    { "^[^\\\\P{Any}]$", "x", true },
    { "^\\\\/\\\\-\\\\@$", "/-@", true },
    { "^a]}$", "a]}", true },
    { "", "anything", true },
    { "^$", "", true },
    { "^a*$", "", true },
    { "^[a-z]*b?c$", "abc", true }, /* not simple: the first part takes the b and the c too */
    { "^[a-z]{2}[a-z0-9]{0,3}$", "ab9zz", true },
    { "^[a-z]{2}[a-z0-9]{0,3}$", "ab9zzz", false },
    { "^x[^y]*", "xyz", true },
};

static void test_regular_expressions_mean_what_ecma_262_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof matches[0]; i++) {
        char schema[256], instance[64];
        (void)snprintf(schema, sizeof schema, "{\"pattern\":\"%s\"}", matches[i].pattern);
        (void)snprintf(instance, sizeof instance, "\"%s\"", matches[i].text);
        if (is_valid(schema, instance) != matches[i].matches)
            fail_msg("%s on %s", matches[i].pattern, matches[i].text);
    }
}

static const char *const not_ecma[] = {
    "\\\\a",
    "\\\\A",
    "\\\\z",
    "\\\\Q",
    "\\\\h",
    "\\\\R",
    "\\\\C",
    "\\\\G",
    "\\\\K",
    "\\\\1",
    "(a)\\\\2",
    "\\\\k<a>",
    "(?<a>x)(?<a>y)",
    "(?P<a>x)",
    "(?'a'x)",
    "(?#x)",
    "(?>a)",
    "(?|a)",
    "(?R)",
    "(?1)",
    "(?C1)",
    "(?(1)a)",
    "a++",
    "a{2}{3}",
    "^*",
    "(?=a)*",
    "a{",
    "a{,3}",
    "a{3,2}",
    "{",
    "[",
    "(",
    ")",
    "\\\\u{110000}",
    "\\\\u12",
    "\\\\x1",
    "\\\\c1",
    "\\\\p{Greek}",
    "\\\\p{greek}",
    "\\\\p{L&}",
    "\\\\p",
    "\\\\pL",
    "\\\\p{^L}",
    "[\\\\B]",
    "[\\\\1]",
    "\\\\01",
    "(*UCP)a",
    "(*ANYCRLF)",
    "\\\\",
};

static void test_what_only_pcre2_knows_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof not_ecma / sizeof not_ecma[0]; i++) {
        char schema[128];
        (void)snprintf(schema, sizeof schema, "{\"pattern\":\"%s\"}", not_ecma[i]);
        assert_int_equal(refusal_with(schema, NULL).code, TC_ERROR_SYNTAX);
    }
}

/* ---- bounds ----------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Must be given up, soon, with one error that says so. */
static void assert_exhausted(const struct tci_schema_program *program, const json_t *value,
                             const char *reason)
{
    struct tci_schema_report report = { 0 };
    double start = now();
    assert_false(tci_schema_validate(program, value, &report));
    assert_true(now() - start < 20);
    assert_true(report.exhausted);
    assert_true(report.count > 0);
    if (!strstr(report.errors[report.count - 1].message, reason))
        fail_msg("%s", report.errors[report.count - 1].message);
    tci_schema_report_free(&report);
    assert_false(tci_schema_validate(program, value, NULL));
}

static json_t *nested_arrays(unsigned depth)
{
    json_t *value = json_array();
    for (unsigned i = 1; i < depth; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, value);
        value = outer;
    }
    return value;
}

static json_t *nested_objects(unsigned depth, const char *key)
{
    json_t *value = json_object();
    for (unsigned i = 1; i < depth; i++) {
        json_t *outer = json_object();
        json_object_set_new(outer, key, value);
        value = outer;
    }
    return value;
}

/* Schemas that follow a document down, through every kind of frame that the validator has. */
static const char *const recursive[] = {
    "{\"items\":{\"$ref\":\"#\"},\"properties\":{\"a\":{\"$ref\":\"#\"}}}",
    "{\"allOf\":[{\"anyOf\":[{\"oneOf\":[{\"items\":{\"$ref\":\"#\"},\"properties\":{\"a\":{\"$"
    "ref\":"
    "\"#\"}}}]}]}]}",
    "{\"if\":{\"items\":{\"$ref\":\"#\"},\"properties\":{\"a\":{\"$ref\":\"#\"}}},\"then\":true,"
    "\"else\":false}",
    "{\"not\":{\"not\":{\"items\":{\"$ref\":\"#\"},\"additionalProperties\":{\"$ref\":\"#\"}}}}",
    "{\"unevaluatedItems\":{\"$ref\":\"#\"},\"unevaluatedProperties\":{\"$ref\":\"#\"}}",
    "{\"contains\":{\"$ref\":\"#\"},\"minContains\":0,\"patternProperties\":{\"a\":{\"$ref\":\"#\"}"
    "}}",
    "{\"$id\":\"urn:a\",\"$dynamicAnchor\":\"x\",\"$ref\":\"urn:b\",\"$defs\":{\"b\":{\"$id\":"
    "\"urn:b\","
    "\"$dynamicAnchor\":\"x\",\"items\":{\"$dynamicRef\":\"#x\"},\"properties\":{\"a\":{\"$"
    "dynamicRef\":"
    "\"#x\"}}}}}",
    "{\"dependentSchemas\":{\"a\":{\"properties\":{\"a\":{\"$ref\":\"#\"}}}},\"prefixItems\":[{\"$"
    "ref\":"
    "\"#\"}]}",
};

/* What the thread with the small stack is given; documents are freed outside of it. */
struct deep {
    struct tci_schema_program *programs[16];
    size_t count;
    const json_t *documents[4];
    size_t document_count;
    bool done;
};

static void *validate_deep(void *argument)
{
    struct deep *deep = argument;
    for (size_t i = 0; i < deep->count; i++) {
        for (size_t j = 0; j < deep->document_count; j++) {
            struct tci_schema_report report = { 0 };
            (void)tci_schema_validate(deep->programs[i], deep->documents[j], NULL);
            (void)tci_schema_validate(deep->programs[i], deep->documents[j], &report);
            tci_schema_report_free(&report);
        }
    }
    deep->done = true;
    return NULL;
}

static void run_on_small_stack(void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, small_stack), 0);
    assert_int_equal(pthread_create(&thread, &attributes, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void test_deep_documents_end_at_the_depth_limit_on_a_small_stack(void **state)
{
    json_t *arrays = nested_arrays(8192), *objects = nested_objects(8192, "a");
    struct deep deep = { .documents = { arrays, objects }, .document_count = 2 };
    (void)state;
    for (size_t i = 0; i < sizeof recursive / sizeof recursive[0]; i++)
        deep.programs[deep.count++] = compile(recursive[i]);
    deep.programs[deep.count++] = compile(
        "{\"uniqueItems\":true,\"items\":{\"uniqueItems\":true}}");
    deep.programs[deep.count++] = compile("{\"enum\":[[[[]]],{\"a\":{\"a\":{}}}]}");
    run_on_small_stack(validate_deep, &deep);
    assert_true(deep.done);
    for (size_t i = 0; i < sizeof recursive / sizeof recursive[0]; i++) {
        assert_exhausted(deep.programs[i], i == 7 ? objects : arrays, "nested too deeply");
        assert_exhausted(deep.programs[i], objects, "nested too deeply");
    }
    for (size_t i = 0; i < deep.count; i++)
        tci_schema_free(deep.programs[i]);
    json_decref(arrays);
    json_decref(objects);
}

static void test_unique_items_of_deep_documents_are_bounded(void **state)
{
    struct tci_schema_program *program = compile("{\"uniqueItems\":true}");
    json_t *few = json_array(), *many = json_array();
    (void)state;
    for (int i = 0; i < 20; i++) {
        if (i < 2)
            json_array_append_new(few, nested_arrays(8192));
        json_array_append_new(many, nested_objects(8192, "k"));
    }
    assert_exhausted(program, few, "nested too deeply");
    assert_exhausted(program, many, "nested too deeply");
    json_decref(few);
    json_decref(many);
    tci_schema_free(program);
}

static void test_documents_within_the_depth_limit_are_decided(void **state)
{
    struct tci_schema_program *program = compile(recursive[0]);
    json_t *fits = nested_arrays(256), *too_deep = nested_arrays(258);
    (void)state;
    assert_true(tci_schema_validate(program, fits, NULL));
    assert_exhausted(program, too_deep, "more than 256 schemas inside one another");
    json_decref(fits);
    json_decref(too_deep);
    tci_schema_free(program);
}

struct compile_deep {
    json_t *schemas[4];
    struct tc_error errors[4];
    int status[4];
};

static void *compile_on_thread(void *argument)
{
    struct compile_deep *deep = argument;
    for (size_t i = 0; i < 4; i++) {
        struct tci_schema_program *program = NULL;
        deep->status[i] = tci_schema_compile(deep->schemas[i], NULL, &program, &deep->errors[i]);
        tci_schema_free(program);
    }
    return NULL;
}

static void test_deep_schemas_are_refused_on_a_small_stack(void **state)
{
    json_t *constant = json_object();
    struct compile_deep deep = { .status = { 1, 1, 1, 1 } };
    (void)state;
    deep.schemas[0] = nested_objects(8192, "items");
    deep.schemas[1] = nested_objects(8192, "not");
    json_object_set_new(constant, "const", nested_arrays(8192));
    deep.schemas[2] = constant;
    deep.schemas[3] = nested_objects(128, "not");
    run_on_small_stack(compile_on_thread, &deep);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(deep.status[i], -1);
        assert_int_equal(deep.errors[i].code, TC_ERROR_TOO_LARGE);
        assert_string_equal(deep.errors[i].message, "the schema is nested more than 128 deep");
    }
    assert_int_equal(deep.status[3], 0);
    for (size_t i = 0; i < 4; i++)
        json_decref(deep.schemas[i]);
}

/* A chain of definitions, each of which applies the next one twice. */
static json_t *doubling_schema(unsigned levels, const char *keyword)
{
    json_t *schema = json_object(), *definitions = json_object();
    for (unsigned i = 0; i < levels; i++) {
        json_t *definition = json_object(), *list = json_array();
        char name[16];
        for (int twice = 0; twice < 2; twice++) {
            json_t *reference = json_object();
            json_object_set_new(reference, "$ref", json_sprintf("#/$defs/d%u", i + 1));
            json_array_append_new(list, reference);
        }
        json_object_set_new(definition, keyword, list);
        (void)snprintf(name, sizeof name, "d%u", i);
        json_object_set_new(definitions, name, definition);
    }
    json_object_set_new(schema, "$ref", json_string("#/$defs/d0"));
    json_object_set_new(schema, "$defs", definitions);
    return schema;
}

static void test_exponential_schemas_end_at_the_step_limit(void **state)
{
    static const char *const keywords[] = { "allOf", "anyOf", "oneOf" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        json_t *schema = doubling_schema(60, keywords[i]), *last = parse("{\"minimum\":1}");
        struct tci_schema_program *program;
        json_t *value = json_integer(i == 0 ? 1 : 0);
        json_object_set_new(json_object_get(schema, "$defs"), "d60", last);
        program = compile_value(schema, NULL);
        assert_exhausted(program, value, "not checked within 10000000 steps");
        json_decref(value);
        tci_schema_free(program);
    }
}

static void test_reports_of_nested_alternatives_do_not_explode(void **state)
{
    json_t *schema = doubling_schema(12, "anyOf"), *value = json_integer(0);
    struct tci_schema_program *program;
    struct tci_schema_report report = { 0 };
    double start = now();
    (void)state;
    json_object_set_new(json_object_get(schema, "$defs"), "d12", parse("{\"minimum\":1}"));
    program = compile_value(schema, NULL);
    assert_false(tci_schema_validate(program, value, &report));
    assert_false(report.exhausted);
    assert_true(now() - start < 10);
    tci_schema_report_free(&report);
    json_decref(value);
    tci_schema_free(program);
}

static void test_slow_regular_expressions_are_given_up(void **state)
{
    static const char *const schemas[] = {
        "{\"pattern\":\"^(a+)+$\"}",
        "{\"items\":{\"pattern\":\"(x+x+)+$\"}}",
        "{\"patternProperties\":{\"^(a|a)*$\":true}}",
        "{\"propertyNames\":{\"pattern\":\"^(a|a?)+$\"}}",
    };
    char text[61];
    json_t *string, *array = json_array(), *object = json_object();
    (void)state;
    memset(text, 'a', 60);
    text[59] = '!';
    text[60] = '\0';
    string = json_string(text);
    json_object_set_new(object, text, json_null());
    memset(text, 'x', 59);
    json_array_append_new(array, json_string(text));
    for (size_t i = 0; i < 4; i++) {
        struct tci_schema_program *program = compile(schemas[i]);
        assert_exhausted(program, i == 0 ? string : i == 1 ? array : object, "takes too long");
        tci_schema_free(program);
    }
    json_decref(string);
    json_decref(array);
    json_decref(object);
}

/* Each of them stays below the match limit; together they do not. */
static void test_many_slow_matches_end_at_the_step_limit(void **state)
{
    struct tci_schema_program *program = compile("{\"items\":{\"pattern\":\"^(a+)+$\"}}");
    json_t *array = json_array();
    (void)state;
    for (int i = 0; i < 2000; i++)
        json_array_append_new(array, json_string("aaaaaaaaaaaaaaaaa!"));
    assert_exhausted(program, array, "steps");
    json_decref(array);
    tci_schema_free(program);
}

static void test_long_texts_match_ordinary_expressions(void **state)
{
    enum { size = 1000000 };
    struct tci_schema_program *program = compile("{\"pattern\":\"^(?:[a-z]|-)+$\"}"),
                              *simple = compile(
                                  "{\"pattern\":\"^[a-z-]+$\",\"minLength\":1000000}");
    char *text = malloc(size + 1);
    json_t *string;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', size);
    text[size] = '\0';
    string = json_string(text);
    assert_true(tci_schema_validate(simple, string, NULL));
    json_decref(string);
    text[20000] = '\0';
    string = json_string(text);
    assert_true(tci_schema_validate(program, string, NULL));
    json_decref(string);
    free(text);
    tci_schema_free(program);
    tci_schema_free(simple);
}

/* A suggestion is looked for only for errors that are kept. */
static void test_many_unknown_properties_are_refused_quickly(void **state)
{
    json_t *schema = json_object(), *properties = json_object(), *value = json_object();
    struct tci_schema_program *program;
    struct tci_schema_report report = { 0 };
    char name[40];
    double start;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "a_property_with_a_long_name_%d", i);
        json_object_set_new(properties, name, json_true());
    }
    for (int i = 0; i < 200000; i++) {
        (void)snprintf(name, sizeof name, "a_property_with_a_lung_name_%d", i);
        json_object_set_new(value, name, json_true());
    }
    json_object_set_new(schema, "properties", properties);
    json_object_set_new(schema, "additionalProperties", json_false());
    program = compile_value(schema, NULL);
    start = now();
    assert_false(tci_schema_validate(program, value, &report));
    assert_true(now() - start < 5);
    assert_int_equal(report.count, 8);
    assert_true(report.more);
    tci_schema_report_free(&report);
    json_decref(value);
    tci_schema_free(program);
}

static void test_compile_limits_hold(void **state)
{
    struct tci_schema_options options = { .limits = { .schemas = 3 } };
    struct tc_error error;
    (void)state;
    error = refusal_with("{\"anyOf\":[{},{},{}]}", &options);
    assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
    assert_string_equal(error.message, "more than 3 schemas");
    options.limits = (struct tci_schema_limits){ .values = 10 };
    error = refusal_with("{\"enum\":[1,2,3,4,5,6,7,8,9,10,11]}", &options);
    assert_string_equal(error.message, "more than 10 values in the schema");
    options.limits = (struct tci_schema_limits){ .pattern_bytes = 10 };
    error = refusal_with("{\"pattern\":\"^[a-z]$\",\"items\":{\"pattern\":\"abcde\"}}", &options);
    assert_string_equal(error.message, "regular expressions of more than 10 bytes");
    options.limits = (struct tci_schema_limits){ .nesting = 2 };
    error = refusal_with("{\"not\":{\"not\":{}}}", &options);
    assert_string_equal(error.message, "the schema is nested more than 2 deep");
    assert_int_equal(refusal_with("{\"pattern\":\"((((a{1000}){1000}){1000}){1000})\"}", NULL).code,
                     TC_ERROR_SYNTAX);
}

/* A long chain of references costs neither stack nor square time. */
static void test_long_chain_of_references_compiles_quickly(void **state)
{
    enum { links = 40000 };
    json_t *schema = json_object(), *definitions = json_object();
    struct tci_schema_program *program;
    double start;
    (void)state;
    for (int i = 0; i < links; i++) {
        char name[16];
        json_t *reference = json_object();
        (void)snprintf(name, sizeof name, "d%d", i);
        json_object_set_new(reference, "$ref", json_sprintf("#/$defs/d%d", i + 1));
        json_object_set_new(definitions, name, reference);
    }
    json_object_set_new(definitions, "d40000", parse("{\"type\":\"null\"}"));
    json_object_set_new(schema, "$ref", json_string("#/$defs/d0"));
    json_object_set_new(schema, "$defs", definitions);
    start = now();
    program = compile_value(schema, NULL);
    assert_true(now() - start < 10);
    assert_true(tci_schema_validate(program, json_null(), NULL));
    assert_false(tci_schema_validate(program, json_true(), NULL));
    tci_schema_free(program);
}

static void test_unevaluated_works_beyond_the_words_at_hand(void **state)
{
    struct tci_schema_program *program = compile(
        "{\"anyOf\":[{\"prefixItems\":[true]},{\"contains\":{\"const\":7}}],\"unevaluatedItems\":{"
        "\"type\":\"string\"}}");
    json_t *array = json_array();
    (void)state;
    json_array_append_new(array, json_integer(1));
    for (int i = 0; i < 5000; i++)
        json_array_append_new(array, i == 4000 ? json_integer(7) : json_string("x"));
    assert_true(tci_schema_validate(program, array, NULL));
    json_array_append_new(array, json_integer(8));
    assert_false(tci_schema_validate(program, array, NULL));
    json_decref(array);
    tci_schema_free(program);
}

/* ---- threads ---------------------------------------------------------------------------------- */

struct shared {
    const struct tci_schema_program *program;
    const json_t *good, *bad;
    bool right;
};

static void *validate_often(void *argument)
{
    struct shared *shared = argument;
    shared->right = true;
    for (int i = 0; i < 2000; i++) {
        struct tci_schema_report report = { 0 };
        shared->right &= tci_schema_validate(shared->program, shared->good, NULL);
        shared->right &= !tci_schema_validate(shared->program, shared->bad, &report);
        shared->right &= report.count == 2;
        tci_schema_report_free(&report);
    }
    return NULL;
}

static void test_threads_share_one_program(void **state)
{
    enum { threads = 8 };
    struct tci_schema_program *program = compile(
        "{\"properties\":{\"a\":{\"pattern\":\"^(?:x|yy|[0-9]+)+$\"},\"b\":{\"pattern\":"
        "\"(foo|bar)$\"}},\"unevaluatedProperties\":false}");
    json_t *good = parse("{\"a\":\"xyy12\",\"b\":\"a bar\"}");
    json_t *bad = parse("{\"a\":\"xyz\",\"b\":\"a bard\"}");
    struct shared shared[threads];
    pthread_t ids[threads];
    (void)state;
    for (int i = 0; i < threads; i++) {
        shared[i] = (struct shared){ program, good, bad, false };
        assert_int_equal(pthread_create(&ids[i], NULL, validate_often, &shared[i]), 0);
    }
    for (int i = 0; i < threads; i++) {
        assert_int_equal(pthread_join(ids[i], NULL), 0);
        assert_true(shared[i].right);
    }
    json_decref(good);
    json_decref(bad);
    tci_schema_free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_name_place_rule_and_reason),
        cmocka_unit_test(test_format_errors_show_an_example),
        cmocka_unit_test(test_all_errors_are_reported_up_to_the_limit),
        cmocka_unit_test(test_long_paths_are_cut_and_say_so),
        cmocka_unit_test(test_bad_schemas_are_refused_with_the_place),
        cmocka_unit_test(test_other_documents_come_from_the_caller_only),
        cmocka_unit_test(test_program_outlives_the_document),
        cmocka_unit_test(test_draft_7_reads_what_generators_write),
        cmocka_unit_test(test_numbers_compare_exactly),
        cmocka_unit_test(test_multiples_are_decimal),
        cmocka_unit_test(test_regular_expressions_mean_what_ecma_262_says),
        cmocka_unit_test(test_what_only_pcre2_knows_is_refused),
        cmocka_unit_test(test_deep_documents_end_at_the_depth_limit_on_a_small_stack),
        cmocka_unit_test(test_unique_items_of_deep_documents_are_bounded),
        cmocka_unit_test(test_documents_within_the_depth_limit_are_decided),
        cmocka_unit_test(test_deep_schemas_are_refused_on_a_small_stack),
        cmocka_unit_test(test_exponential_schemas_end_at_the_step_limit),
        cmocka_unit_test(test_reports_of_nested_alternatives_do_not_explode),
        cmocka_unit_test(test_slow_regular_expressions_are_given_up),
        cmocka_unit_test(test_many_slow_matches_end_at_the_step_limit),
        cmocka_unit_test(test_long_texts_match_ordinary_expressions),
        cmocka_unit_test(test_many_unknown_properties_are_refused_quickly),
        cmocka_unit_test(test_compile_limits_hold),
        cmocka_unit_test(test_long_chain_of_references_compiles_quickly),
        cmocka_unit_test(test_unevaluated_works_beyond_the_words_at_hand),
        cmocka_unit_test(test_threads_share_one_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
