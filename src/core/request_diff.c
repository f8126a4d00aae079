/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: showing where two requests differ: JSON pointers with both values. Values come from models and
 * may hold anything: each is quoted and cut, and after a few there is only a count.
 */
#include "core/record.h"

#include <jansson.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"

enum { shown_max = 4, pointer_max = 65536 };

static void decref(json_t **value)
{
    json_decref(*value);
}

struct diff {
    struct tci_arena *arena;
    struct tci_buf *out;
    size_t count;
};

static void put_value(struct diff *diff, json_t *value)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(SIZE_MAX / 4);
    char quoted[TCI_QUOTE_MAX];

    if (!value) {
        tci_buf_string(diff->out, "absent");
        return;
    }
    if (json_is_string(value)) {
        tci_buf_string(diff->out,
                       tci_quote(json_string_value(value), json_string_length(value), quoted));
        return;
    }
    if (tci_json_canonical_value(diff->arena, &text, value) < 0 || tci_buf_check(&text, NULL) < 0)
        return;
    (void)tci_quote(text.data, text.length, quoted);
    /* A number or a list needs no quotes around it. */
    tci_buf_append(diff->out, quoted + 1, strlen(quoted) - 2);
}

static void report(struct diff *diff, const char *pointer, json_t *recorded, json_t *asked)
{
    char quoted[TCI_QUOTE_MAX];
    if (diff->count++ >= shown_max)
        return;
    (void)tci_quote(pointer, strlen(pointer), quoted);
    tci_buf_string(diff->out, diff->count > 1 ? "; " : "");
    tci_buf_append(diff->out, quoted + 1, strlen(quoted) - 2);
    tci_buf_string(diff->out, " was ");
    put_value(diff, recorded);
    tci_buf_string(diff->out, ", is ");
    put_value(diff, asked);
}

static const char *below(struct diff *diff, const char *pointer, const char *key)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(pointer_max);
    const char *copy;
    tci_buf_string(&out, pointer);
    tci_buf_char(&out, '/');
    for (; *key; key++)
        if (*key == '~' || *key == '/')
            tci_buf_string(&out, *key == '~' ? "~0" : "~1");
        else
            tci_buf_char(&out, *key);
    copy = tci_buf_check(&out, NULL) < 0 ? NULL : tci_arena_strdup(diff->arena, out.data);
    return copy ? copy : pointer;
}

static void compare(struct diff *diff, const char *pointer, json_t *recorded, json_t *asked);

static void compare_objects(struct diff *diff, const char *pointer, json_t *recorded, json_t *asked)
{
    for (void *i = json_object_iter(recorded); i; i = json_object_iter_next(recorded, i)) {
        const char *key = json_object_iter_key(i);
        compare(diff, below(diff, pointer, key), json_object_iter_value(i),
                json_object_get(asked, key));
    }
    for (void *i = json_object_iter(asked); i; i = json_object_iter_next(asked, i)) {
        const char *key = json_object_iter_key(i);
        if (!json_object_get(recorded, key))
            report(diff, below(diff, pointer, key), NULL, json_object_iter_value(i));
    }
}

static void compare_arrays(struct diff *diff, const char *pointer, json_t *recorded, json_t *asked)
{
    size_t count = json_array_size(recorded);
    if (json_array_size(asked) > count)
        count = json_array_size(asked);
    for (size_t i = 0; i < count; i++) {
        const char *at = tci_arena_printf(diff->arena, "%s/%zu", pointer, i);
        compare(diff, at ? at : pointer, json_array_get(recorded, i), json_array_get(asked, i));
    }
}

/* Recursion is bounded by the reader's limit on depth. */
static void compare(struct diff *diff, const char *pointer, json_t *recorded, json_t *asked)
{
    if (diff->count > 1000 || (recorded && asked && json_equal(recorded, asked)))
        return;
    if (json_is_object(recorded) && json_is_object(asked))
        compare_objects(diff, pointer, recorded, asked);
    else if (json_is_array(recorded) && json_is_array(asked))
        compare_arrays(diff, pointer, recorded, asked);
    else
        report(diff, pointer, recorded, asked);
}

void tci_request_diff(struct tci_arena *arena, const char *recorded, const char *asked,
                      struct tci_buf *out)
{
    tc_cleanup(decref) json_t *a = tci_json_read(recorded, strlen(recorded), NULL);
    tc_cleanup(decref) json_t *b = tci_json_read(asked, strlen(asked), NULL);
    struct diff diff = { .arena = arena, .out = out };

    if (!a || !b)
        return;
    compare(&diff, "", a, b);
    if (diff.count > shown_max)
        tci_buf_printf(out, "; and %zu more", diff.count - shown_max);
}
