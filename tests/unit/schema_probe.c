/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the program that the JSON Schema test suite drives: a file of the suite on stdin, what the
 * validator says on stdout, as one JSON array with an element for each group of tests: an array of
 * booleans, or the compiler's error as a string. Exit status 2 is for anything else, so that a broken
 * run never counts as an answer.
 *
 * usage: schema_probe DRAFT annotation|assertion integers|doubles REMOTES
 *   DRAFT is for schemas without $schema: 7 or 2020-12; REMOTES is the folder that the suite wants to
 *   be served as http://localhost:1234/.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json/schema.h"

enum { remotes_max = 200 };

struct remotes {
    const char *folder;
    size_t flags;
    json_t *loaded[remotes_max];
    size_t count;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "schema_probe: %s\n", what);
    exit(2);
}

static const json_t *look_up(void *context, const char *uri)
{
    static const char server[] = "http://localhost:1234/";
    struct remotes *remotes = context;
    char path[4096];
    json_t *document;

    if (strncmp(uri, server, sizeof server - 1) != 0 || strstr(uri, ".."))
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s", remotes->folder, uri + sizeof server - 1);
    document = json_load_file(path, remotes->flags, NULL);
    if (!document)
        return NULL;
    if (remotes->count == remotes_max)
        die("too many remote documents");
    remotes->loaded[remotes->count++] = document;
    return document;
}

/* Asks with and without a report: both must say the same, and every error must say something. */
static bool validate(const struct tci_schema_program *program, const json_t *data)
{
    struct tci_schema_report report = { 0 };
    bool valid = tci_schema_validate(program, data, &report);

    if (tci_schema_validate(program, data, NULL) != valid)
        die("the answer depends on whether a report is wanted");
    if ((report.count == 0) != valid || report.no_memory || report.exhausted)
        die("the report does not fit the answer");
    for (size_t i = 0; i < report.count; i++)
        if (!report.errors[i].message[0] || !strchr(report.errors[i].schema_path, '#'))
            die("an error without a message or a place");
    tci_schema_report_free(&report);
    return valid;
}

static json_t *answer(const json_t *group, const struct tci_schema_options *options)
{
    struct tci_schema_program *program = NULL;
    struct tc_error error = { 0 };
    json_t *answers;
    const json_t *test;
    size_t i;

    if (tci_schema_compile(json_object_get(group, "schema"), options, &program, &error) < 0)
        return json_string(error.message);
    answers = json_array();
    json_array_foreach(json_object_get(group, "tests"), i, test)(void) json_array_append_new(
        answers, json_boolean(validate(program, json_object_get(test, "data"))));
    tci_schema_free(program);
    return answers;
}

int main(int argc, char **argv)
{
    struct remotes remotes = { 0 };
    struct tci_schema_options options = { .lookup = look_up, .lookup_context = &remotes };
    json_t *file, *answers = json_array();
    const json_t *group;
    size_t i;

    if (argc != 5)
        die("usage: schema_probe DRAFT annotation|assertion integers|doubles REMOTES");
    options.draft = strcmp(argv[1], "7") == 0 ? TCI_SCHEMA_DRAFT_7 : TCI_SCHEMA_2020_12;
    options.assert_formats = strcmp(argv[2], "assertion") == 0;
    remotes.flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    if (strcmp(argv[3], "doubles") == 0)
        remotes.flags |= JSON_DECODE_INT_AS_REAL;
    remotes.folder = argv[4];
    file = json_loadf(stdin, remotes.flags, NULL);
    if (!file || !answers)
        die("not a file of the suite");
    json_array_foreach(file, i, group)(void)
        json_array_append_new(answers, answer(group, &options));
    if (json_dumpf(answers, stdout, 0) < 0)
        die("cannot write");
    for (i = 0; i < remotes.count; i++)
        json_decref(remotes.loaded[i]);
    json_decref(answers);
    json_decref(file);
    return 0;
}
