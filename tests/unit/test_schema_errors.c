/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of json/schema.h: what errors say and where, and what the compiler refuses. */
#include "schema_support.h"

#include <stdbool.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "json/schema.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
