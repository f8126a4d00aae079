/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of json/schema.h. Input: a byte of options, a schema, a newline, a value. What
 * must hold: with and without a report the answer is the same, a report fits its answer, bounds are
 * kept, and a value does not become valid by being read in another way.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "json/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { option_draft_7 = 1, option_formats = 2, option_integers = 4, errors_kept = 3 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static json_t *parse(const uint8_t *text, size_t length, bool integers)
{
    size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
    return json_loadb((const char *)text, length,
                      integers ? flags : flags | JSON_DECODE_INT_AS_REAL, NULL);
}

static void check_report(const struct tci_schema_report *report, bool valid)
{
    check(valid == (report->count == 0 && !report->exhausted && !report->no_memory));
    check(report->count <= errors_kept + (report->exhausted ? 1 : 0));
    for (size_t i = 0; i < report->count; i++) {
        const struct tci_schema_error *error = &report->errors[i];
        check(error->instance_path[0] == '\0' || error->instance_path[0] == '/' ||
              strncmp(error->instance_path, "...", 3) == 0);
        check(strchr(error->schema_path, '#') != NULL);
        check(error->message[0] != '\0');
    }
}

static void check_value(const struct tci_schema_program *program, const json_t *value)
{
    struct tci_schema_report report = { 0 };
    bool valid = tci_schema_validate(program, value, &report);
    check_report(&report, valid);
    /* Explaining costs steps too: only there may they run out. */
    check(valid == tci_schema_validate(program, value, NULL) || report.exhausted);
    tci_schema_report_free(&report);
}

/* The schema is a value too: validating it against itself meets every rule with every type. */
static void check_program(const struct tci_schema_program *program, const json_t *schema,
                          const json_t *value)
{
    check_value(program, schema);
    if (value)
        check_value(program, value);
}

static const json_t *look_up(void *context, const char *uri)
{
    return strcmp(uri, "urn:other") == 0 ? context : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
    struct tci_schema_options options = {
        .lookup = look_up,
        .limits = { .schemas = 500,
                    .values = 5000,
                    .nesting = 40,
                    .pattern_bytes = 2000,
                    .depth = 64,
                    .steps = 50000,
                    .matches = 3000,
                    .errors = errors_kept },
    };
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    json_t *schema, *value;

    if (!newline)
        return 0;
    options.draft = data[0] & option_draft_7 ? TCI_SCHEMA_DRAFT_7 : TCI_SCHEMA_2020_12;
    options.assert_formats = data[0] & option_formats;
    schema = parse(data + 1, (size_t)(newline - data) - 1, data[0] & option_integers);
    if (!schema)
        return 0;
    value = parse(newline + 1, size - (size_t)(newline - data) - 1, data[0] & option_integers);
    options.lookup_context = value;
    if (tci_schema_compile(schema, &options, &program, &error) == 0)
        check_program(program, schema, value);
    else
        check(error.code != TC_ERROR_NONE && error.message[0]);
    tci_schema_free(program);
    json_decref(schema);
    json_decref(value);
    return 0;
}
