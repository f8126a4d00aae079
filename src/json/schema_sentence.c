/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: sentences of errors that need more than a format. They are read by models, which shall find
 * in them what to do: what was expected, what is there instead, and a name that may have been meant.
 * Values and names of strangers are quoted and cut.
 */
#include "json/schema_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/nearest.h"
#include "base/quote.h"
#include "json/number.h"

enum { list_max = 300, sentence_max = 700, alternatives_max = 4, text_max = 65536 };

/* ---- types ------------------------------------------------------------------------------------ */

struct type_words {
    unsigned types;
    const char *words;
};

static const struct type_words type_words[] = {
    { TCI_TYPE_BIT(JSON_OBJECT), "an object" }, { TCI_TYPE_BIT(JSON_ARRAY), "an array" },
    { TCI_TYPE_BIT(JSON_STRING), "a string" },  { TCI_TYPE_NUMBERS, "a number" },
    { TCI_TYPE_INTEGRAL, "a whole number" },    { TCI_TYPE_BOOLEANS, "true or false" },
    { TCI_TYPE_BIT(JSON_NULL), "null" },
};

static const char *words_for(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a number";
    case JSON_REAL:
        return tci_number_is_integral(json_real_value(value)) ? "a number"
                                                              : "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return json_is_true(value) ? "true" : "false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* "a string, null or a number" */
static void write_types(unsigned types, char *out, size_t size)
{
    const char *found[tci_array_size(type_words)] = { NULL };
    size_t count = 0, length = 0;

    for (size_t i = 0; i < tci_array_size(type_words); i++) {
        unsigned wanted = type_words[i].types;
        if ((types & wanted) == wanted &&
            !(wanted == TCI_TYPE_INTEGRAL && (types & TCI_TYPE_NUMBERS) == TCI_TYPE_NUMBERS))
            found[count++] = type_words[i].words;
    }
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%s",
                                   i == 0           ? ""
                                   : i + 1 == count ? " or "
                                                    : ", ",
                                   found[i]);
}

bool tci_fail_type(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                   const struct tci_where *where)
{
    char words[160];
    if (!tci_run_wants(run))
        return false;
    write_types(node->types, words, sizeof words);
    return tci_run_fail(run, node, "type", where, "must be %s, not %s", words, words_for(value));
}

/* ---- values ----------------------------------------------------------------------------------- */

bool tci_fail_choice(struct tci_run *run, const struct tci_schema_node *node,
                     const struct tci_where *where)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max);
    const struct tci_rules_general *rules = node->general;
    size_t shown = 0;

    if (!tci_run_wants(run))
        return false;
    if (!rules->has_choices) {
        tci_schema_value_write(rules->constant, list_max, &text);
        return tci_run_fail(run, node, "const", where, "must be %s", text.data ? text.data : "...");
    }
    if (rules->choice_count == 0)
        return tci_run_fail(run, node, "enum", where, "is not allowed here");
    for (; shown < rules->choice_count && text.length < list_max; shown++) {
        if (shown)
            tci_buf_string(&text, ", ");
        tci_schema_value_write(&rules->choices[shown], list_max, &text);
    }
    return tci_run_fail(run, node, "enum", where, "must be one of %s%s",
                        text.data ? text.data : "...", shown < rules->choice_count ? ", ..." : "");
}

static const char *write_number(struct tci_number number, char buffer[TCI_JSON_NUMBER_MAX])
{
    if (!number.is_integer)
        return tci_json_number(number.real, buffer);
    (void)snprintf(buffer, TCI_JSON_NUMBER_MAX, "%" PRId64, number.integer);
    return buffer;
}

bool tci_fail_bound(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                    const struct tci_where *where, const char *words, struct tci_number bound,
                    const json_t *value)
{
    char wanted[TCI_JSON_NUMBER_MAX], found[TCI_JSON_NUMBER_MAX];
    if (!tci_run_wants(run))
        return false;
    return tci_run_fail(run, node, keyword, where, "must be %s %s, not %s", words,
                        write_number(bound, wanted), write_number(tci_number_of(value), found));
}

/* ---- counts ----------------------------------------------------------------------------------- */

struct count_words {
    const char *keyword, *words, *one, *many;
};

static const struct count_words count_words[] = {
    { "minLength", "must have at least", "character", "characters" },
    { "maxLength", "must have at most", "character", "characters" },
    { "minItems", "must have at least", "item", "items" },
    { "maxItems", "must have at most", "item", "items" },
    { "minProperties", "must have at least", "property", "properties" },
    { "maxProperties", "must have at most", "property", "properties" },
    { "contains", "must have at least", "item of the kind in \"contains\"",
      "items of the kind in \"contains\"" },
    { "maxContains", "must have at most", "item of the kind in \"contains\"",
      "items of the kind in \"contains\"" },
};

bool tci_fail_count(struct tci_run *run, const struct tci_schema_node *node, const char *keyword,
                    const struct tci_where *where, uint64_t bound, uint64_t found)
{
    for (size_t i = 0; tci_run_wants(run) && i < tci_array_size(count_words); i++) {
        const struct count_words *words = &count_words[i];
        if (strcmp(words->keyword, keyword) == 0)
            return tci_run_fail(run, node, keyword, where, "%s %" PRIu64 " %s, not %" PRIu64,
                                words->words, bound, bound == 1 ? words->one : words->many, found);
    }
    return false;
}

/* ---- members ---------------------------------------------------------------------------------- */

bool tci_fail_unknown_member(struct tci_run *run, const struct tci_schema_node *node,
                             const char *keyword, const struct tci_where *where, const char *name,
                             size_t length)
{
    const char *const *known = node->object ? (const char *const *)node->object->suggestions : NULL;
    char quoted[TCI_QUOTE_MAX], meant[TCI_QUOTE_MAX];
    const char *nearest;

    if (!tci_run_wants(run))
        return false;
    nearest = known ? tci_nearest_word(name, length, known) : NULL;
    tci_quote(name, length, quoted);
    if (nearest)
        return tci_run_fail(run, node, keyword, where,
                            "has the property %s, which is not allowed; did you mean %s?", quoted,
                            tci_quote(nearest, strlen(nearest), meant));
    return tci_run_fail(run, node, keyword, where, "has the property %s, which is not allowed",
                        quoted);
}

bool tci_fail_missing(struct tci_run *run, const struct tci_schema_node *node, const json_t *value,
                      const struct tci_where *where)
{
    const struct tci_rules_object *rules = node->object;
    char quoted[TCI_QUOTE_MAX];

    if (!run->report || !tci_budget_take(&run->budget, rules->names.count))
        return false;
    for (size_t i = 0; i < rules->names.count; i++) {
        const struct tci_name *name = &rules->names.items[i];
        if (!rules->members[i].required || json_object_getn(value, name->text, name->length))
            continue;
        if (!tci_run_wants(run))
            return false;
        tci_run_fail(run, node, "required", where, "lacks the required property %s",
                     tci_quote(name->text, name->length, quoted));
    }
    return false;
}

/* ---- alternatives ----------------------------------------------------------------------------- */

/* The only alternative that takes values of this type, if there is exactly one. */
static const struct tci_schema_node *only_candidate(const struct tci_schema_list *list,
                                                    const json_t *value)
{
    const struct tci_schema_node *found = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct tci_schema_node *node = list->items[i];
        if (!tci_type_is_allowed(node, value) || node->impossible)
            continue;
        if (found)
            return NULL;
        found = node;
    }
    return found;
}

/* Its first error, with the path from here on. */
static void explain(struct tci_run *run, const struct tci_schema_node *schema, const json_t *value,
                    const struct tci_where *where, size_t skip, struct tci_buf *out)
{
    struct tci_schema_report *report = run->report, own = { 0 };
    size_t errors_max = run->errors_max;

    run->report = &own;
    run->errors_max = 1;
    run->explaining = true;
    (void)tci_check(run, schema, value, where, NULL);
    run->explaining = false;
    run->errors_max = errors_max;
    run->report = report;
    if (own.count > 0) {
        const struct tci_schema_error *error = &own.errors[0];
        size_t length = strlen(error->instance_path);
        tci_buf_printf(out, "%.100s%s%.200s",
                       error->instance_path + (length < skip ? length : skip),
                       length > skip ? " " : "", error->message);
    }
    tci_schema_report_free(&own);
}

static size_t pointer_length(const struct tci_where *where)
{
    size_t length = 0;
    for (; where; where = where->up) {
        char index[24];
        length += 1;
        if (!where->key)
            length += (size_t)snprintf(index, sizeof index, "%zu", where->number);
        for (size_t i = 0; where->key && i < where->number; i++)
            length += where->key[i] == '~' || where->key[i] == '/' ? 2 : 1;
    }
    return length;
}

/* Alternatives inside of alternatives are not explained again: that would double with each level. */
bool tci_fail_alternatives(struct tci_run *run, const struct tci_schema_node *node,
                           const char *keyword, const struct tci_schema_list *list,
                           const json_t *value, const struct tci_where *where)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max);
    const char *number = strcmp(keyword, "oneOf") == 0 ? "exactly one" : "at least one";
    const struct tci_schema_node *candidate;

    if (!tci_run_wants(run))
        return false;
    if (run->explaining)
        return tci_run_fail(run, node, keyword, where, "must match %s of %zu alternatives", number,
                            list->count);
    candidate = only_candidate(list, value);
    if (candidate) {
        run->explaining = true;
        (void)tci_check(run, candidate, value, where, NULL);
        run->explaining = false;
        return false;
    }
    for (size_t i = 0; i < list->count && i < alternatives_max && text.length < sentence_max; i++) {
        tci_buf_printf(&text, "%s(%zu) ", i ? "; " : "", i + 1);
        explain(run, list->items[i], value, where, pointer_length(where), &text);
    }
    return tci_run_fail(run, node, keyword, where, "must match %s of %zu alternatives: %s%s",
                        number, list->count, text.data ? text.data : "",
                        list->count > alternatives_max ? "; ..." : "");
}
