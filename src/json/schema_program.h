/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the compiled form of a schema, between the compiler (schema_compile*.c) and the validator
 * (schema_validate*.c). Everything lives in one arena and is never written again, so that threads
 * share it without locks. What a schema does not use is a NULL pointer: one test skips it.
 */
#ifndef TCI_JSON_SCHEMA_PROGRAM_H
#define TCI_JSON_SCHEMA_PROGRAM_H

#include "json/schema.h"

#include <jansson.h>
#include "json/schema_names.h"
#include "json/schema_number.h"
#include "json/schema_value.h"

struct tci_regex;
struct tci_regex_limits;
struct tci_schema_format;
struct tci_idna;

/* Which values a type allows: one bit for each of jansson's types, and one for reals like 1.0. */
#define TCI_TYPE_BIT(type) (1U << (type))
enum {
    TCI_TYPE_INTEGRAL = 1U << 8, /* reals without a fraction, where other reals are not allowed */
    TCI_TYPE_NUMBERS = TCI_TYPE_BIT(JSON_INTEGER) | TCI_TYPE_BIT(JSON_REAL),
    TCI_TYPE_BOOLEANS = TCI_TYPE_BIT(JSON_TRUE) | TCI_TYPE_BIT(JSON_FALSE),
    TCI_TYPE_ANY = 0xff,
};

struct tci_schema_list {
    const struct tci_schema_node **items;
    size_t count;
};

struct tci_rules_number {
    bool has_minimum, has_maximum, has_above, has_below, has_multiple;
    struct tci_number minimum, maximum, above, below; /* the last two are exclusive */
    struct tci_divisor multiple;
    struct tci_number multiple_number; /* for messages */
};

struct tci_rules_string {
    uint64_t min_length, max_length; /* code points */
    const struct tci_regex *pattern;
    const char *pattern_text;
    size_t pattern_length;
    const struct tci_schema_format *format;
};

struct tci_rules_array {
    uint64_t min_items, max_items;
    bool unique;
    struct tci_schema_list prefix;
    const struct tci_schema_node *items; /* those behind the prefix */
    const char *items_keyword;
    const struct tci_schema_node *contains;
    uint64_t min_contains, max_contains;
};

/* What a name means in an object: found through the table of names. */
struct tci_member {
    const struct tci_schema_node *schema; /* of `properties`; NULL: only the name matters */
    bool required;
};

struct tci_pattern_member {
    const struct tci_regex *regex;
    const struct tci_schema_node *schema;
};

/* If the object has `name`, it must have the others and be valid under the schema. */
struct tci_dependent {
    const char *name, *keyword;
    size_t name_length;
    const struct tci_name *needs;
    size_t need_count;
    const struct tci_schema_node *schema;
};

struct tci_rules_object {
    uint64_t min_properties, max_properties;
    struct tci_names names;     /* of `properties` and `required` */
    struct tci_member *members; /* by index of the name */
    size_t required_count;
    struct tci_pattern_member *patterns;
    size_t pattern_count;
    const struct tci_schema_node *additional, *property_names;
    struct tci_dependent *dependents;
    size_t dependent_count;
    const char **suggestions; /* names of `properties`, then NULL: for misspelt ones */
};

/* Where $dynamicRef leads when a resource that has the anchor is in the dynamic scope. */
struct tci_dynamic_target {
    uint32_t resource;
    const struct tci_schema_node *schema;
};

/* All that have one anchor. */
struct tci_dynamic_anchor {
    struct tci_dynamic_target *targets;
    size_t count;
};

struct tci_dynamic_reference {
    const struct tci_schema_node *otherwise;
    const struct tci_dynamic_anchor *anchor;
};

/* What applies to values of every type. */
struct tci_rules_general {
    const struct tci_value *constant; /* NULL: none */
    const struct tci_value *choices;  /* `enum` */
    size_t choice_count;
    bool has_choices, only_texts;
    struct tci_names texts; /* when all choices are strings */
    const struct tci_schema_node *reference;
    struct tci_dynamic_reference *dynamic;
    struct tci_schema_list all, any, one;
    const struct tci_schema_node * not, *condition, *then, *otherwise;
};

/* One schema. */
struct tci_schema_node {
    uint16_t types;
    bool only_type;  /* nothing else to check */
    bool quick;      /* `low` to `longest` and `texts` say it all, if they say yes */
    bool impossible; /* the schema `false` */
    bool collects;   /* has unevaluated*: needs to know what was evaluated */
    uint8_t mark;    /* the compiler's */
    uint32_t resource;
    const struct tci_schema_node *alias; /* nothing but a $ref: this is meant */
    struct tci_rules_general *general;
    struct tci_rules_object *object;
    struct tci_rules_array *array;
    struct tci_rules_string *string;
    struct tci_rules_number *number;
    const struct tci_schema_node *unevaluated_properties, *unevaluated_items;
    /* For simple schemas of strings and numbers: bounds in which a value is valid for certain. */
    double low, high;
    size_t shortest, longest;      /* bytes */
    const struct tci_names *texts; /* NULL: any */
    /* For messages only: the place in the document. */
    const struct tci_schema_node *parent; /* NULL: `token` is the URI of a resource */
    const char *token;                    /* "/properties/url" */
};

struct tci_schema_program {
    struct tci_arena *arena;
    const struct tci_schema_node *root;
    struct tci_schema_limits limits; /* no zeros */
    bool has_dynamic;
    uint64_t hash_key[2];      /* for unique items: nobody outside can make hashes collide */
    struct tci_regex *regexes; /* a list, to free them */
    struct tci_regex_limits *regex_limits;
    const struct tci_idna *idna; /* if a format needs it */
};

#endif
