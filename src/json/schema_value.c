/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: constants of a schema: copying, comparing with an instance, showing. Recursion follows the
 * constant, whose depth the compiler bounds. */
#include "json/schema_value.h"

#include <inttypes.h>
#include <string.h>
#include "json/number.h"
#include "json/write.h"

static bool no_memory(struct tci_schema_budget *budget)
{
    return tci_budget_end(budget, TCI_EXHAUSTED_MEMORY);
}

static bool copy_text(struct tci_arena *arena, const char *text, size_t length,
                      struct tci_schema_budget *budget, const char **ret)
{
    *ret = tci_arena_strndup(arena, text, length);
    return *ret || no_memory(budget);
}

static bool copy_array(struct tci_arena *arena, const json_t *from,
                       struct tci_schema_budget *budget, struct tci_value *ret)
{
    struct tci_value *items;
    ret->length = json_array_size(from);
    items = tci_arena_new_array(arena, ret->length, struct tci_value);
    if (!items)
        return no_memory(budget);
    ret->items = items;
    for (size_t i = 0; i < ret->length; i++)
        if (!tci_value_copy(arena, json_array_get(from, i), budget, &items[i]))
            return false;
    return true;
}

static bool copy_object(struct tci_arena *arena, const json_t *from,
                        struct tci_schema_budget *budget, struct tci_value *ret)
{
    json_t *object = (json_t *)(uintptr_t)from; /* jansson's iterators are not const */
    struct tci_value *items;
    struct tci_value_key *keys;
    size_t i = 0;

    ret->length = json_object_size(from);
    ret->items = items = tci_arena_new_array(arena, ret->length, struct tci_value);
    ret->keys = keys = tci_arena_new_array(arena, ret->length, struct tci_value_key);
    if (!items || !keys)
        return no_memory(budget);
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), i++) {
        keys[i].length = json_object_iter_key_len(at);
        if (!copy_text(arena, json_object_iter_key(at), keys[i].length, budget, &keys[i].text) ||
            !tci_value_copy(arena, json_object_iter_value(at), budget, &items[i]))
            return false;
    }
    return true;
}

static bool copy_any(struct tci_arena *arena, const json_t *from, struct tci_schema_budget *budget,
                     struct tci_value *ret)
{
    switch (ret->type) {
    case JSON_ARRAY:
        return copy_array(arena, from, budget, ret);
    case JSON_OBJECT:
        return copy_object(arena, from, budget, ret);
    case JSON_STRING:
        ret->length = json_string_length(from);
        return copy_text(arena, json_string_value(from), ret->length, budget, &ret->text);
    case JSON_INTEGER:
    case JSON_REAL:
        ret->number = tci_number_of(from);
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        break;
    }
    return true;
}

bool tci_value_copy(struct tci_arena *arena, const json_t *from, struct tci_schema_budget *budget,
                    struct tci_value *ret)
{
    bool done;
    if (budget->depth == 0)
        return tci_budget_end(budget, TCI_EXHAUSTED_DEPTH);
    if (budget->exhausted || !tci_budget_take(budget, 1))
        return false;
    budget->depth--;
    *ret = (struct tci_value){ .type = json_typeof(from) };
    done = copy_any(arena, from, budget, ret);
    budget->depth++;
    return done;
}

/* ---- equality --------------------------------------------------------------------------------- */

static bool array_equals(const struct tci_value *value, const json_t *instance,
                         struct tci_schema_budget *budget)
{
    if (json_array_size(instance) != value->length)
        return false;
    for (size_t i = 0; i < value->length; i++)
        if (!tci_value_equals(&value->items[i], json_array_get(instance, i), budget))
            return false;
    return true;
}

/* Equal sizes and every key of one found in the other: no key is left over. */
static bool object_equals(const struct tci_value *value, const json_t *instance,
                          struct tci_schema_budget *budget)
{
    if (json_object_size(instance) != value->length)
        return false;
    for (size_t i = 0; i < value->length; i++) {
        json_t *member = json_object_getn(instance, value->keys[i].text, value->keys[i].length);
        if (!member || !tci_value_equals(&value->items[i], member, budget))
            return false;
    }
    return true;
}

bool tci_value_equals(const struct tci_value *value, const json_t *instance,
                      struct tci_schema_budget *budget)
{
    json_type type = json_typeof(instance);
    if (value->type == JSON_INTEGER || value->type == JSON_REAL)
        return json_is_number(instance) &&
               tci_number_compare(value->number, tci_number_of(instance)) == 0;
    if (type != value->type)
        return false;
    if (type == JSON_STRING)
        return json_string_length(instance) == value->length &&
               memcmp(json_string_value(instance), value->text, value->length) == 0;
    if (type != JSON_ARRAY && type != JSON_OBJECT)
        return true;
    if (!tci_budget_take(budget, 1 + value->length))
        return false;
    return type == JSON_ARRAY ? array_equals(value, instance, budget)
                              : object_equals(value, instance, budget);
}

/* ---- showing ---------------------------------------------------------------------------------- */

static void write_value(const struct tci_value *value, const char *key, size_t stop,
                        struct tci_json *json)
{
    size_t written = json->out->length;
    if (written > stop) {
        tci_json_raw(json, key, "...");
        return;
    }
    switch (value->type) {
    case JSON_STRING:
        if (value->length <= stop - written)
            tci_json_bytes(json, key, value->text, value->length);
        else
            tci_json_raw(json, key, "\"...\"");
        return;
    case JSON_INTEGER:
        tci_json_integer(json, key, value->number.integer);
        return;
    case JSON_REAL:
        tci_json_double(json, key, value->number.real);
        return;
    case JSON_ARRAY:
        tci_json_array_begin(json, key);
        for (size_t i = 0; i < value->length && json->out->length <= stop; i++)
            write_value(&value->items[i], NULL, stop, json);
        tci_json_array_end(json);
        return;
    case JSON_OBJECT:
        tci_json_object_begin(json, key);
        for (size_t i = 0; i < value->length && json->out->length <= stop; i++)
            write_value(&value->items[i], value->keys[i].text, stop, json);
        tci_json_object_end(json);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        tci_json_bool(json, key, value->type == JSON_TRUE);
        return;
    case JSON_NULL:
        tci_json_null(json, key);
        return;
    }
}

void tci_schema_value_write(const struct tci_value *value, size_t maximum, struct tci_buf *out)
{
    struct tci_json json = { .out = out };
    write_value(value, NULL, out->length + maximum, &json);
}
