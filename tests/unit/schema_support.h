/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of json/schema.h share. They go beyond the official suite
 * (tests/e2e/test_json_schema_suite.py).
 */
#ifndef TCI_TESTS_SCHEMA_SUPPORT_H
#define TCI_TESTS_SCHEMA_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <jansson.h>
#include "json/schema.h"

static inline json_t *parse(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s in %s", error.text, text);
    return value;
}

static inline struct tci_schema_program *compile_value(json_t *schema,
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

static inline struct tci_schema_program *compile(const char *schema)
{
    return compile_value(parse(schema), NULL);
}

static inline struct tc_error refusal_with(const char *schema,
                                           const struct tci_schema_options *options)
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

static inline bool is_valid(const char *schema, const char *instance)
{
    struct tci_schema_program *program = compile(schema);
    json_t *value = parse(instance);
    bool valid = tci_schema_validate(program, value, NULL);
    json_decref(value);
    tci_schema_free(program);
    return valid;
}

#endif
