/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: single values of a stored result. Nothing is copied before its length is known to fit, and a number
 * is what its member can hold.
 */
#include "core/result_read.h"

#include <math.h>
#include <string.h>

void tci_stored_refuse(struct tci_stored *reader, const char *key)
{
    if (!reader->wrong)
        reader->wrong = key;
}

/* ---- values ------------------------------------------------------------------------------- */

json_t *tci_stored_member(struct tci_stored *reader, const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        tci_stored_refuse(reader, key);
    return value;
}

static const char *copy_text(struct tci_stored *reader, const json_t *value)
{
    const char *copy = tci_arena_strndup(reader->arena, json_string_value(value),
                                         json_string_length(value));
    if (!copy)
        reader->no_memory = true;
    return copy ? copy : "";
}

const char *tci_stored_text(struct tci_stored *reader, const json_t *object, const char *key)
{
    const json_t *value = tci_stored_member(reader, object, key);
    if (json_is_string(value))
        return copy_text(reader, value);
    tci_stored_refuse(reader, key);
    return "";
}

const char *tci_stored_name(struct tci_stored *reader, const json_t *object, const char *key)
{
    return json_is_null(tci_stored_member(reader, object, key))
               ? NULL
               : tci_stored_text(reader, object, key);
}

void tci_stored_field(struct tci_stored *reader, const json_t *object, const char *key, char *field,
                      size_t size)
{
    const json_t *value = tci_stored_member(reader, object, key);
    size_t length = json_string_length(value);
    field[0] = '\0';
    if (json_is_null(value))
        return;
    if (!json_is_string(value) || length >= size)
        tci_stored_refuse(reader, key);
    else
        memcpy(field, json_string_value(value), length + 1);
}

static double read_number(struct tci_stored *reader, const json_t *object, const char *key)
{
    const json_t *value = tci_stored_member(reader, object, key);
    double number = json_number_value(value);
    if (json_is_number(value) && number >= 0)
        return number;
    tci_stored_refuse(reader, key);
    return 0;
}

static uint64_t whole(struct tci_stored *reader, const char *key, double number)
{
    if (number != floor(number))
        tci_stored_refuse(reader, key);
    return number < 18446744073709551616.0 ? (uint64_t)number : UINT64_MAX;
}

uint64_t tci_stored_count(struct tci_stored *reader, const json_t *object, const char *key)
{
    return whole(reader, key, read_number(reader, object, key));
}

uint64_t tci_stored_known_count(struct tci_stored *reader, const json_t *object, const char *key)
{
    return json_is_null(tci_stored_member(reader, object, key))
               ? 0
               : tci_stored_count(reader, object, key);
}

uint64_t tci_stored_milliseconds(struct tci_stored *reader, const json_t *object, const char *key)
{
    return whole(reader, key, nearbyint(read_number(reader, object, key) * 1000));
}

int tci_stored_flag(struct tci_stored *reader, const json_t *object, const char *key)
{
    const json_t *value = tci_stored_member(reader, object, key);
    if (!json_is_boolean(value))
        tci_stored_refuse(reader, key);
    return json_is_true(value);
}

const json_t *tci_stored_list(struct tci_stored *reader, const json_t *object, const char *key,
                              size_t members, size_t size, void **ret_items, size_t *ret_count)
{
    const json_t *list = tci_stored_member(reader, object, key);
    *ret_items = NULL;
    *ret_count = 0;
    if (!json_is_array(list)) {
        tci_stored_refuse(reader, key);
        return NULL;
    }
    for (size_t i = 0; members && i < json_array_size(list); i++)
        if (json_object_size(json_array_get(list, i)) != members)
            tci_stored_refuse(reader, key);
    *ret_items = tci_arena_array(reader->arena, json_array_size(list), size);
    if (*ret_items)
        *ret_count = json_array_size(list);
    else
        reader->no_memory = true;
    return list;
}
