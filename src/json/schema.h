/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: JSON Schema (drafts 2020-12 and 7): a schema is compiled once into a program, which never
 * changes and validates values in any number of threads. Both schemas and values may come from
 * strangers: nothing is fetched, and everything is bounded (docs/json-schema.md).
 */
#ifndef TCI_JSON_SCHEMA_H
#define TCI_JSON_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct json_t;
struct tci_schema_program;

enum tci_schema_draft { TCI_SCHEMA_2020_12, TCI_SCHEMA_DRAFT_7 };

/* 0 stands for the value in brackets. */
struct tci_schema_limits {
    size_t schemas;       /* objects and booleans that are schemas, of all documents (50,000) */
    size_t values;        /* JSON values looked at while compiling (500,000) */
    unsigned nesting;     /* of a schema document (128) */
    size_t pattern_bytes; /* of all regular expressions together (256 KiB) */
    unsigned depth;       /* schemas inside one another while validating, references too (256) */
    uint64_t steps;       /* of one validation (10,000,000) */
    uint32_t matches;     /* PCRE2's match limit for one regular expression (1,000,000) */
    unsigned errors;      /* kept in one report (8) */
};

struct tci_schema_options {
    enum tci_schema_draft draft; /* where $schema says nothing */
    bool assert_formats;         /* `format` decides; else it is an annotation */
    const char *base_uri;        /* of the document; may be NULL */
    /* Another document by its absolute URI (without fragment), or NULL: then the reference is an
     * error. It must stay until the compiler returns. May be NULL: nothing else is known. */
    const struct json_t *(*lookup)(void *context, const char *uri);
    void *lookup_context;
    struct tci_schema_limits limits;
};

/* Compiles a schema; `options` may be NULL. The program keeps nothing of the document. Fails with
 * SYNTAX (not a schema; the message names the place and the reference or keyword), TOO_LARGE,
 * UNSUPPORTED (a draft or vocabulary that is not known) or NO_MEMORY. */
int tci_schema_compile(const struct json_t *document, const struct tci_schema_options *options,
                       struct tci_schema_program **ret, struct tc_error *reterr) tci_must_check;
void tci_schema_free(struct tci_schema_program *program);
void tci_schema_freep(struct tci_schema_program **program);

struct tci_schema_error {
    const char *instance_path; /* JSON Pointer to the value; "" is the whole */
    const char *schema_path;   /* URI of the keyword: "#/properties/url/type" */
    const char *message;       /* "must be a string, not a number" */
};

/* Why a value is not valid. Begin with zeros; free it whatever the answer was. */
struct tci_schema_report {
    size_t count; /* of errors; there may be more than were kept */
    bool more;
    bool exhausted; /* a bound was reached, so it is not known whether the rest is valid */
    bool no_memory; /* errors are missing here for want of memory */
    struct tci_schema_error *errors;
    struct tci_arena *arena;
};
void tci_schema_report_free(struct tci_schema_report *report);

/* One line for each error: `name`, its path, and the sentence: "arguments/url must be a string". */
void tci_schema_report_write(const struct tci_schema_report *report, const char *name,
                             struct tci_buf *out);

/* Is the value valid? What could not be decided within the bounds is not. `ret` may be NULL.
 * Allocates nothing for a valid value, except: arrays of more than 16 items that must be unique,
 * names of properties under a schema with more than text rules, and the first regular expression
 * of each thread that runs at the same time. */
bool tci_schema_validate(const struct tci_schema_program *program, const struct json_t *instance,
                         struct tci_schema_report *ret);

#endif
