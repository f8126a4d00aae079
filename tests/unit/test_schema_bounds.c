/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of json/schema.h: that every bound holds on depth, steps and time; and threads. */
#include "schema_support.h"

#include <stdbool.h>
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
