/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: errors of a validation: where in the value, where in the schema, and the sentence. */
#include "json/schema_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "json/schema_run.h"

enum { pointer_max = 4096, message_max = 1024 };

void tci_schema_report_free(struct tci_schema_report *report)
{
    tci_arena_free(report->arena);
    *report = (struct tci_schema_report){ 0 };
}

/* ---- places ----------------------------------------------------------------------------------- */

/* Parents first. Recursion follows the nesting of the schema, which the compiler bounds. */
static void write_tokens(const struct tci_schema_node *node, struct tci_buf *out)
{
    if (node->parent)
        write_tokens(node->parent, out);
    tci_buf_string(out, node->token);
    if (!node->parent)
        tci_buf_char(out, '#');
}

void tci_schema_path(const struct tci_schema_node *node, const char *keyword, struct tci_buf *out)
{
    write_tokens(node, out);
    if (!keyword)
        return;
    tci_buf_char(out, '/');
    tci_buf_string(out, keyword);
}

/* From the end to the beginning: a step knows only where it came from. */
static char *put_before(const char *begin, char *at, const char *bytes, size_t length)
{
    size_t fits = (size_t)(at - begin) < length ? (size_t)(at - begin) : length;
    memcpy(at - fits, bytes + length - fits, fits);
    return at - fits;
}

static char *put_key_before(const char *begin, char *at, const char *key, size_t length)
{
    while (length > 0) {
        char c = key[--length];
        if (c == '~' || c == '/')
            at = put_before(begin, at, c == '~' ? "~0" : "~1", 2);
        else
            at = put_before(begin, at, &c, 1);
    }
    return at;
}

/* The pointer, written up to the end of `buffer`. One that does not fit begins with "...". */
static const char *write_pointer(const struct tci_where *where, char buffer[pointer_max])
{
    char *at = &buffer[pointer_max - 1];
    *at = '\0';
    for (; where && at > buffer; where = where->up) {
        if (where->key) {
            at = put_key_before(buffer, at, where->key, where->number);
        } else {
            char index[24];
            int length = snprintf(index, sizeof index, "%zu", where->number);
            at = put_before(buffer, at, index, (size_t)length);
        }
        at = put_before(buffer, at, "/", 1);
    }
    for (int i = 0; (where || at == buffer) && i < 3; i++)
        buffer[i] = '.';
    return at;
}

/* ---- errors ----------------------------------------------------------------------------------- */

static bool add_error(struct tci_run *run, const char *pointer, const char *path,
                      const char *message)
{
    struct tci_schema_report *report = run->report;
    struct tci_schema_error *error;

    if (!report->arena) {
        report->arena = tci_arena_new();
        if (!report->arena)
            return false;
        /* One more, for the one that says that the budget was exhausted. */
        report->errors = tci_arena_new_array(report->arena, run->errors_max + 1,
                                             struct tci_schema_error);
    }
    if (!report->errors)
        return false;
    error = &report->errors[report->count];
    error->instance_path = tci_arena_strdup(report->arena, pointer);
    error->schema_path = tci_arena_strdup(report->arena, path);
    error->message = tci_arena_strdup(report->arena, message);
    if (!error->instance_path || !error->schema_path || !error->message)
        return false;
    report->count++;
    return true;
}

static __attribute__((noinline)) void fail(struct tci_run *run, const struct tci_schema_node *node,
                                           const char *keyword, const struct tci_where *where,
                                           const char *format, va_list args) tci_printf_like(5, 0);

/* Its buffers are cleared at every call, so it is called only when there is something to write. */
static void fail(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                 const struct tci_where *where, const char *format, va_list args)
{
    tc_cleanup(tci_buf_free) struct tci_buf path = TCI_BUF_INIT(TCI_SCHEMA_PATH_MAX);
    char pointer[pointer_max], message[message_max];

    (void)vsnprintf(message, sizeof message, format, args);
    tci_schema_path(node, keyword, &path);
    if (path.no_memory ||
        !add_error(run, write_pointer(where, pointer), path.data ? path.data : "", message))
        run->report->no_memory = true;
}

bool tci_run_fail(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                  const struct tci_where *where, const char *format, ...)
{
    va_list args;
    if (!tci_run_wants(run))
        return false;
    va_start(args, format);
    fail(run, node, keyword, where, format, args);
    va_end(args);
    return false;
}

void tci_run_exhausted(struct tci_run *run)
{
    const struct tci_schema_limits *limits = &run->program->limits;
    enum tci_exhausted why = run->budget.exhausted;

    if (!run->report)
        return;
    run->report->exhausted = true;
    run->budget.exhausted = TCI_EXHAUSTED_NOT; /* so that this error is taken */
    run->errors_max = limits->errors + 1;
    switch (why) {
    case TCI_EXHAUSTED_NOT:
    case TCI_EXHAUSTED_STEPS:
        tci_run_fail(run, run->program->root, NULL, NULL,
                     "is too large for its schema: it was not checked within %llu steps",
                     (unsigned long long)limits->steps);
        break;
    case TCI_EXHAUSTED_DEPTH:
        tci_run_fail(run, run->program->root, NULL, NULL,
                     "is nested too deeply: more than %u schemas inside one another",
                     limits->depth);
        break;
    case TCI_EXHAUSTED_MATCH:
        tci_run_fail(run, run->program->root, NULL, NULL,
                     "has a text that a regular expression takes too long to match");
        break;
    case TCI_EXHAUSTED_MEMORY:
        run->report->no_memory = true;
        break;
    }
    run->budget.exhausted = why;
}

void tci_schema_report_write(const struct tci_schema_report *report, const char *name,
                             struct tci_buf *out)
{
    for (size_t i = 0; i < report->count; i++)
        tci_buf_printf(out, "%s%s %s\n", name, report->errors[i].instance_path,
                       report->errors[i].message);
    if (report->more)
        tci_buf_string(out, "there are more errors\n");
    if (report->no_memory)
        tci_buf_string(out, "there was not enough memory to say more\n");
}
