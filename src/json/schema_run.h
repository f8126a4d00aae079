/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one validation in progress, for the files of the validator. Where we are in the value and in
 * the dynamic scope are lists on the stack: they cost nothing until an error needs them.
 */
#ifndef TCI_JSON_SCHEMA_RUN_H
#define TCI_JSON_SCHEMA_RUN_H

#include "json/schema_program.h"

/* A step into the value. */
struct tci_where {
    const struct tci_where *up; /* NULL: the value itself */
    const char *key;            /* NULL: an item */
    size_t number;              /* length of the key, or index of the item */
};

/* The resources that were entered on the way, the innermost first. */
struct tci_scope {
    const struct tci_scope *outer;
    uint32_t resource;
};

/* Which members or items of a value have been evaluated: one bit for each, in the order of jansson's
 * iterators. Only made when a schema with unevaluated* wants to know. */
struct tci_evaluated {
    uint64_t *bits;
    size_t count;
    bool on_heap;
};

enum { TCI_RUN_WORDS = 32 };

struct tci_run {
    const struct tci_schema_program *program;
    struct tci_schema_budget budget;
    struct tci_schema_report *report; /* NULL: nobody wants to know why */
    const struct tci_scope *scope;
    bool explaining;   /* alternatives are being tried again for their errors */
    size_t errors_max; /* in the report */
    size_t words_used; /* of `words`: a stack for sets of bits */
    uint64_t words[TCI_RUN_WORDS];
};

/* Is the value valid under the schema? Adds the bits of what was evaluated, if that is asked for. */
bool tci_check(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
               const struct tci_where *where, struct tci_evaluated *evaluated);

/* The rules for one type each. */
bool tci_check_object(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where, struct tci_evaluated *evaluated);
bool tci_check_array(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                     const struct tci_where *where, struct tci_evaluated *evaluated);
bool tci_check_text(struct tci_run *run, const struct tci_schema_node *node, const char *text,
                    size_t length, const struct tci_where *where);
/* Rules for all types, and those that come last. */
bool tci_check_general(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                       const struct tci_where *where, struct tci_evaluated *evaluated);
bool tci_check_unevaluated(struct tci_run *run, const struct tci_schema_node *node,
                           const json_t *value, const struct tci_where *where,
                           struct tci_evaluated *outer);

/* The rules of a schema, once types, depth and scope are settled. */
bool tci_check_rules(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                     const struct tci_where *where, struct tci_evaluated *evaluated);

static inline bool tci_type_is_allowed(const struct tci_schema_node *node, const json_t *value)
{
    unsigned bit = TCI_TYPE_BIT(json_typeof(value));
    return (node->types & bit) ||
           (bit == TCI_TYPE_BIT(JSON_REAL) && (node->types & TCI_TYPE_INTEGRAL) &&
            tci_number_is_integral(json_real_value(value)));
}

/* Is it valid for certain? A value for which this says no is checked in full. */
static inline bool tci_is_plainly_valid(const struct tci_schema_node *node, const json_t *value)
{
    if (!tci_type_is_allowed(node, value))
        return false;
    if (node->only_type)
        return true;
    if (!node->quick)
        return false;
    if (json_is_string(value)) {
        size_t length = json_string_length(value);
        return length >= node->shortest && length <= node->longest &&
               (!node->texts || tci_names_find(node->texts, json_string_value(value), length) >= 0);
    }
    if (json_is_number(value)) {
        double number = json_is_real(value) ? json_real_value(value)
                                            : (double)json_integer_value(value);
        return number >= node->low && number <= node->high && !node->texts;
    }
    return !node->texts;
}

/* ---- sets of bits (schema_evaluated.c) -------------------------------------------------------- */

/* Room for `count` bits, all 0, until the matching end. False: no memory (noted in the budget). */
bool tci_evaluated_begin(struct tci_run *run, size_t count, struct tci_evaluated *ret);
void tci_evaluated_end(struct tci_run *run, struct tci_evaluated *evaluated);
void tci_evaluated_add(struct tci_evaluated *to, const struct tci_evaluated *from);

static inline void tci_evaluated_set(struct tci_evaluated *evaluated, size_t index)
{
    evaluated->bits[index / 64] |= (uint64_t)1 << index % 64;
}

static inline bool tci_evaluated_has(const struct tci_evaluated *evaluated, size_t index)
{
    return evaluated->bits[index / 64] >> index % 64 & 1;
}

/* ---- errors (schema_report.c, schema_sentence.c); all return false ----------------------------- */

/* Is there somebody who wants to know, and room for one more error? If not for room, that is noted.
 * To be asked before anything is done for a sentence: a value may have a million errors. */
static inline bool tci_run_wants(struct tci_run *run)
{
    if (!run->report || run->budget.exhausted)
        return false;
    if (run->report->count < run->errors_max)
        return true;
    run->report->more = true;
    return false;
}

/* Does nothing when nobody wants to know. */
bool tci_run_fail(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                  const struct tci_where *where, const char *format, ...) tci_printf_like(5, 6);
void tci_run_exhausted(struct tci_run *run);

bool tci_fail_type(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                   const struct tci_where *where);
bool tci_fail_choice(struct tci_run *run, const struct tci_schema_node *node,
                     const struct tci_where *where);
bool tci_fail_bound(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                    const struct tci_where *where, const char *words, struct tci_number bound,
                    const json_t *value);
bool tci_fail_count(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                    const struct tci_where *where, uint64_t bound, uint64_t found);
bool tci_fail_unknown_member(struct tci_run *run, const struct tci_schema_node *node,
                             const char *keyword, const struct tci_where *where, const char *name,
                             size_t length);
bool tci_fail_missing(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where);
bool tci_fail_alternatives(struct tci_run *run, const struct tci_schema_node *node,
                           const char *keyword, const struct tci_schema_list *list,
                           const json_t *value, const struct tci_where *where);

#endif
