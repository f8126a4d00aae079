/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the program that the TOML conformance suite drives: a document on stdin, the suite's tagged
 * JSON on stdout. For a document that is not TOML: exit status 1 and "line:column: message" on
 * stderr. Exit status 2 is for anything else, so that a broken run never counts as a refusal.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "policy/toml.h"

enum { input_max = 64 * 1024 * 1024 };

static void print_string(struct tci_text text)
{
    putchar('"');
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == 0x7f)
            printf("\\u%04x", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_float(double number)
{
    if (isnan(number))
        printf("nan");
    else if (isinf(number))
        printf(number < 0 ? "-inf" : "inf");
    else
        printf("%.17g", number);
}

static void print_date(const struct tci_datetime *d)
{
    printf("%04d-%02d-%02d", d->year, d->month, d->day);
}

static void print_time(const struct tci_datetime *d)
{
    printf("%02d:%02d:%02d", d->hour, d->minute, d->second);
    if (d->nanosecond)
        printf(".%09" PRIu32, d->nanosecond);
}

static void print_offset(int minutes)
{
    if (minutes)
        printf("%c%02d:%02d", minutes < 0 ? '-' : '+', abs(minutes) / 60, abs(minutes) % 60);
    else
        putchar('Z');
}

static void print_scalar(const struct tci_node *node)
{
    const char *tag = node->type == TCI_NODE_INTEGER          ? "integer"
                      : node->type == TCI_NODE_FLOAT          ? "float"
                      : node->type == TCI_NODE_BOOLEAN        ? "bool"
                      : node->type == TCI_NODE_DATETIME       ? "datetime"
                      : node->type == TCI_NODE_LOCAL_DATETIME ? "datetime-local"
                      : node->type == TCI_NODE_LOCAL_DATE     ? "date-local"
                                                              : "time-local";
    bool moment = node->type == TCI_NODE_DATETIME || node->type == TCI_NODE_LOCAL_DATETIME;

    printf("{\"type\":\"%s\",\"value\":\"", tag);
    if (node->type == TCI_NODE_INTEGER)
        printf("%" PRId64, node->integer);
    else if (node->type == TCI_NODE_FLOAT)
        print_float(node->number);
    else if (node->type == TCI_NODE_BOOLEAN)
        printf(node->boolean ? "true" : "false");
    if (moment || node->type == TCI_NODE_LOCAL_DATE)
        print_date(&node->datetime);
    if (moment)
        putchar('T');
    if (moment || node->type == TCI_NODE_LOCAL_TIME)
        print_time(&node->datetime);
    if (node->type == TCI_NODE_DATETIME)
        print_offset(node->datetime.offset_minutes);
    printf("\"}");
}

static void print_node(const struct tci_node *node)
{
    if (node->type == TCI_NODE_TABLE) {
        putchar('{');
        tci_table_foreach (entry, node) {
            print_string(entry->key);
            putchar(':');
            print_node(entry->value);
            if (entry->next)
                putchar(',');
        }
        putchar('}');
    } else if (node->type == TCI_NODE_ARRAY) {
        putchar('[');
        for (size_t i = 0; i < node->array.count; i++) {
            if (i)
                putchar(',');
            print_node(node->array.items[i]);
        }
        putchar(']');
    } else if (node->type == TCI_NODE_STRING) {
        printf("{\"type\":\"string\",\"value\":");
        print_string(node->string);
        putchar('}');
    } else {
        print_scalar(node);
    }
}

static int read_input(struct tci_buf *buf, struct tc_error *reterr)
{
    char block[65536];
    size_t size;

    while ((size = fread(block, 1, sizeof block, stdin)) > 0)
        tci_buf_append(buf, block, size);
    if (ferror(stdin))
        return tci_error_set(reterr, TC_ERROR_IO, "cannot read stdin");
    return tci_buf_check(buf, reterr);
}

int main(int argc, char **argv)
{
    enum tci_toml_version version = TCI_TOML_1_0;
    struct tci_buf input = TCI_BUF_INIT(input_max);
    struct tci_arena *arena = tci_arena_new();
    struct tci_node *root = NULL;
    struct tc_error error = { 0 };
    int status = 0;

    if (argc == 2 && strcmp(argv[1], "--toml-1.1") == 0)
        version = TCI_TOML_1_1;
    else if (argc != 1)
        status = 2;
    if (status)
        (void)fprintf(stderr, "usage: toml_decoder [--toml-1.1] <document\n");
    else if (!arena || read_input(&input, &error) < 0)
        status = 2;
    else if (tci_toml_parse(arena, input.data, input.length, version, &root, &error) < 0)
        status = error.code == TC_ERROR_SYNTAX || error.code == TC_ERROR_TOO_LARGE ? 1 : 2;
    if (root) {
        print_node(root);
        putchar('\n');
    } else if (error.code) {
        (void)fprintf(stderr, "%u:%u: %s\n", error.line, error.column, error.message);
    }
    tci_buf_free(&input);
    tci_arena_free(arena);
    return fflush(stdout) == 0 ? status : 2;
}
