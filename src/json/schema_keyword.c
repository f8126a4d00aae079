/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the table of keywords, and the keywords that look at a value without other schemas. */
#include "json/schema_compile.h"

#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "json/schema_format.h"
#include "json/schema_regex.h"

#define KEYWORD(name, drafts, vocabulary, shape, function)                                         \
    { name, drafts, TCI_VOCABULARY_##vocabulary, TCI_SHAPE_##shape, function },
#define NO_FUNCTION(name, drafts, vocabulary, shape)                                               \
    { name, drafts, TCI_VOCABULARY_##vocabulary, TCI_SHAPE_##shape, NULL },
static const struct tci_keyword keywords[] = {
#include "json/schema_keyword.def"
};
#undef KEYWORD
#undef NO_FUNCTION

const struct tci_keyword *tci_keyword_find(const char *name, const struct tci_dialect *dialect)
{
    for (size_t i = 0; i < tci_array_size(keywords); i++) {
        const struct tci_keyword *keyword = &keywords[i];
        if (keyword->name[0] == name[0] && strcmp(keyword->name, name) == 0 &&
            (keyword->drafts & 1U << dialect->draft) &&
            (dialect->vocabularies & 1U << keyword->vocabulary))
            return keyword;
    }
    return NULL;
}

/* ---- rules ------------------------------------------------------------------------------------ */

/* Every kind of rules comes into being when the first keyword needs it. */
#define RULES(kind, ...)                                                                           \
    struct tci_rules_##kind *tci_rules_##kind(struct tci_compiler *c,                              \
                                              struct tci_schema_node *node)                        \
    {                                                                                              \
        if (!node->kind) {                                                                         \
            node->kind = tci_arena_new_of(c->arena, struct tci_rules_##kind);                      \
            if (node->kind)                                                                        \
                *node->kind = (struct tci_rules_##kind){ __VA_ARGS__ };                            \
            else                                                                                   \
                tci_compile_no_memory(c);                                                          \
        }                                                                                          \
        return node->kind;                                                                         \
    }
RULES(general, .texts = { .key = c->program->hash_key[0] })
RULES(object, .max_properties = UINT64_MAX, .names = { .key = c->program->hash_key[0] })
RULES(array, .max_items = UINT64_MAX, .min_contains = 1, .max_contains = UINT64_MAX)
RULES(string, .max_length = UINT64_MAX)
RULES(number, .has_minimum = false)

/* ---- any value -------------------------------------------------------------------------------- */

struct type_name {
    const char *name;
    uint16_t types;
};

static const struct type_name type_names[] = {
    { "object", TCI_TYPE_BIT(JSON_OBJECT) },
    { "array", TCI_TYPE_BIT(JSON_ARRAY) },
    { "string", TCI_TYPE_BIT(JSON_STRING) },
    { "number", TCI_TYPE_NUMBERS },
    { "boolean", TCI_TYPE_BOOLEANS },
    { "null", TCI_TYPE_BIT(JSON_NULL) },
    { "integer", TCI_TYPE_BIT(JSON_INTEGER) | TCI_TYPE_INTEGRAL },
};

static int add_type(struct tci_compiler *c, struct tci_source *source, const json_t *value,
                    uint16_t *types)
{
    const char *name = json_string_value(value);
    char quoted[TCI_QUOTE_MAX];

    for (size_t i = 0; name && i < tci_array_size(type_names); i++) {
        if (strcmp(name, type_names[i].name) == 0) {
            *types |= type_names[i].types;
            return 0;
        }
    }
    return tci_compile_fail(
        c, source->node, "type",
        "%s is not one of array, boolean, integer, null, number, object, string",
        name ? tci_quote(name, strlen(name), quoted) : "this");
}

int tci_keyword_type(struct tci_compiler *c, struct tci_source *source,
                     const struct tci_keyword *keyword, const json_t *value)
{
    uint16_t types = 0;
    (void)keyword;
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (add_type(c, source, json_array_get(value, i), &types) < 0)
                return -1;
    } else if (add_type(c, source, value, &types) < 0) {
        return -1;
    }
    source->node->types = types;
    return 0;
}

int tci_keyword_constant(struct tci_compiler *c, struct tci_source *source,
                         const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    struct tci_value *copy = tci_arena_new_of(c->arena, struct tci_value);
    (void)keyword;
    if (!rules || !copy)
        return tci_compile_no_memory(c);
    if (!tci_value_copy(c->arena, value, &c->budget, copy))
        return tci_compile_exhausted(c);
    rules->constant = copy;
    return 0;
}

int tci_keyword_choices(struct tci_compiler *c, struct tci_source *source,
                        const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_general *rules = tci_rules_general(c, source->node);
    size_t count = json_array_size(value);
    struct tci_value *choices;

    if (!rules)
        return -1;
    if (!json_is_array(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be an array of values");
    choices = tci_arena_new_array(c->arena, count, struct tci_value);
    if (!choices)
        return tci_compile_no_memory(c);
    rules->only_texts = true;
    for (size_t i = 0; i < count; i++) {
        if (!tci_value_copy(c->arena, json_array_get(value, i), &c->budget, &choices[i]))
            return tci_compile_exhausted(c);
        rules->only_texts &= choices[i].type == JSON_STRING;
    }
    for (size_t i = 0; rules->only_texts && i < count; i++)
        if (tci_names_add(c->arena, &rules->texts, choices[i].text, choices[i].length) < 0)
            return tci_compile_no_memory(c);
    rules->choices = choices;
    rules->choice_count = count;
    rules->has_choices = true;
    return 0;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

int tci_keyword_bound(struct tci_compiler *c, struct tci_source *source,
                      const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_number *rules = tci_rules_number(c, source->node);
    bool exclusive = keyword->name[0] == 'e', least = strstr(keyword->name, "inimum") != NULL;
    struct tci_number number;

    if (!rules)
        return -1;
    if (!json_is_number(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be a number");
    number = tci_number_of(value);
    if (exclusive) {
        *(least ? &rules->has_above : &rules->has_below) = true;
        *(least ? &rules->above : &rules->below) = number;
    } else {
        *(least ? &rules->has_minimum : &rules->has_maximum) = true;
        *(least ? &rules->minimum : &rules->maximum) = number;
    }
    return 0;
}

int tci_keyword_multiple(struct tci_compiler *c, struct tci_source *source,
                         const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_number *rules = tci_rules_number(c, source->node);
    if (!rules)
        return -1;
    if (!json_is_number(value) || json_number_value(value) <= 0)
        return tci_compile_fail(c, source->node, keyword->name, "must be a number greater than 0");
    rules->has_multiple = true;
    rules->multiple = tci_divisor_of(tci_number_of(value));
    rules->multiple_number = tci_number_of(value);
    return 0;
}

/* ---- counts ----------------------------------------------------------------------------------- */

/* Where the count of a keyword is kept. */
static uint64_t *count_field(struct tci_compiler *c, struct tci_schema_node *node, const char *name)
{
    bool least = name[1] == 'i'; /* minItems, maxItems */
    const char *what = name + 3;
    struct tci_rules_string *string;
    struct tci_rules_object *object;
    struct tci_rules_array *array;

    if (strcmp(what, "Length") == 0) {
        string = tci_rules_string(c, node);
        return !string ? NULL : least ? &string->min_length : &string->max_length;
    }
    if (strcmp(what, "Properties") == 0) {
        object = tci_rules_object(c, node);
        return !object ? NULL : least ? &object->min_properties : &object->max_properties;
    }
    array = tci_rules_array(c, node);
    if (!array)
        return NULL;
    if (strcmp(what, "Contains") == 0)
        return least ? &array->min_contains : &array->max_contains;
    return least ? &array->min_items : &array->max_items;
}

int tci_keyword_count(struct tci_compiler *c, struct tci_source *source,
                      const struct tci_keyword *keyword, const json_t *value)
{
    uint64_t *field = count_field(c, source->node, keyword->name);
    double real = json_number_value(value);
    if (!field)
        return -1;
    if (!json_is_number(value) || real < 0 || !tci_number_is_integral(real))
        return tci_compile_fail(c, source->node, keyword->name,
                                "must be a whole number, 0 or greater");
    if (json_is_integer(value))
        *field = (uint64_t)json_integer_value(value);
    else
        *field = real < 9e18 ? (uint64_t)real : UINT64_MAX;
    return 0;
}

int tci_keyword_unique(struct tci_compiler *c, struct tci_source *source,
                       const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_array *rules = tci_rules_array(c, source->node);
    if (!rules)
        return -1;
    if (!json_is_boolean(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be true or false");
    rules->unique = json_is_true(value);
    return 0;
}

/* ---- strings ---------------------------------------------------------------------------------- */

int tci_compile_pattern(struct tci_compiler *c, struct tci_source *source, const char *keyword,
                        const char *text, size_t length, const struct tci_regex **ret)
{
    struct tc_error error = { 0 };
    char quoted[TCI_QUOTE_MAX];

    c->pattern_bytes += length;
    if (c->pattern_bytes > c->program->limits.pattern_bytes)
        return tci_error_set(c->error, TC_ERROR_TOO_LARGE,
                             "regular expressions of more than %zu bytes",
                             c->program->limits.pattern_bytes);
    if (tci_regex_compile(text, length, &c->program->regexes, ret, &error) == 0)
        return 0;
    if (error.code == TC_ERROR_NO_MEMORY)
        return tci_compile_no_memory(c);
    return tci_compile_fail(c, source->node, keyword, "the regular expression %s: %s",
                            tci_quote(text, length, quoted), error.message);
}

int tci_keyword_pattern(struct tci_compiler *c, struct tci_source *source,
                        const struct tci_keyword *keyword, const json_t *value)
{
    struct tci_rules_string *rules = tci_rules_string(c, source->node);
    if (!rules)
        return -1;
    if (!json_is_string(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be a string");
    rules->pattern_length = json_string_length(value);
    rules->pattern_text = tci_arena_strndup(c->arena, json_string_value(value),
                                            rules->pattern_length);
    if (!rules->pattern_text)
        return tci_compile_no_memory(c);
    return tci_compile_pattern(c, source, keyword->name, rules->pattern_text, rules->pattern_length,
                               &rules->pattern);
}

/* An unknown format is an annotation. */
int tci_keyword_format(struct tci_compiler *c, struct tci_source *source,
                       const struct tci_keyword *keyword, const json_t *value)
{
    const struct tci_schema_format *format;
    struct tci_rules_string *rules;

    if (!json_is_string(value))
        return tci_compile_fail(c, source->node, keyword->name, "must be a string");
    format = tci_schema_format_find(json_string_value(value));
    if (!format || !(c->options->assert_formats || source->resource->dialect.assert_formats))
        return 0;
    rules = tci_rules_string(c, source->node);
    if (!rules)
        return -1;
    rules->format = format;
    if (!format->needs_names || c->program->idna)
        return 0;
    c->program->idna = tci_idna_new(c->arena, &c->program->regexes, c->error);
    return c->program->idna ? 0 : -1;
}
