/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading single values: texts, numbers with units, counts, enumerations, string lists. */
#include "policy/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/nearest.h"
#include "policy/units.h"

int tci_read_text(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  void *field)
{
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, "a string") < 0)
        return -1;
    if (memchr(value->string.data, '\0', value->string.length))
        return tci_read_fail(reader, TCI_FINDING_CONTROL_BYTE, value->pos, "remove the NUL",
                             "\"%s\" in %s contains a NUL", name, reader->where);
    *(const char **)field = value->string.data;
    return 0;
}

int tci_read_boolean(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    if (tci_read_expect(reader, name, value, TCI_NODE_BOOLEAN, "true or false") < 0)
        return -1;
    *(bool *)field = value->boolean;
    return 0;
}

/* ---- numbers with units ------------------------------------------------------------------- */

struct unit_kind {
    enum tci_unit_problem (*parse)(const char *text, size_t length, uint64_t *ret);
    const char *(*format)(uint64_t value, char buffer[TCI_UNIT_TEXT_MAX]);
    const char *wanted, *units, *bare_unit;
};

static const struct unit_kind duration_kind = {
    tci_duration_parse, tci_duration_format, "a duration such as \"30s\"", "ms, s, m, h", "s",
};

static const struct unit_kind size_kind = {
    tci_size_parse,
    tci_size_format,
    "a size such as \"128MB\"",
    "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
    "MB",
};

static const char *unit_problem_text(enum tci_unit_problem problem)
{
    switch (problem) {
    case TCI_UNIT_NO_NUMBER:
        return "does not begin with a number";
    case TCI_UNIT_NO_UNIT:
        return "has no unit";
    case TCI_UNIT_UNKNOWN:
        return "has an unknown unit";
    case TCI_UNIT_TOO_LARGE:
        return "is too large";
    case TCI_UNIT_FRACTION:
        return "is not a whole number of the smallest unit";
    case TCI_UNIT_OK:
        break;
    }
    return "is malformed";
}

static int read_unit(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     const struct unit_kind *kind, uint64_t *field)
{
    char remedy[160], quoted[TCI_QUOTE_MAX];
    enum tci_unit_problem problem;

    if (value->type == TCI_NODE_INTEGER && value->integer >= 0) {
        (void)snprintf(remedy, sizeof remedy, "write \"%lld%s\", or with another unit of: %s",
                       (long long)value->integer, kind->bare_unit, kind->units);
        return tci_read_fail(reader, TCI_FINDING_BAD_UNIT, value->pos, remedy,
                             "\"%s\" in %s is a number without a unit", name, reader->where);
    }
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, kind->wanted) < 0)
        return -1;
    if (tci_text_is(value->string, "unlimited")) {
        *field = TCI_UNLIMITED;
        return 0;
    }
    problem = kind->parse(value->string.data, value->string.length, field);
    if (problem == TCI_UNIT_OK)
        return 0;
    (void)snprintf(remedy, sizeof remedy, "write %s; units: %s", kind->wanted, kind->units);
    return tci_read_fail(reader, TCI_FINDING_BAD_UNIT, value->pos, remedy, "\"%s\" in %s: %s %s",
                         name, reader->where, tci_read_quote(value->string, quoted),
                         unit_problem_text(problem));
}

static int not_zero(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    uint64_t number)
{
    if (number)
        return 0;
    return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos,
                         "give a limit above zero, or remove the key for the default",
                         "\"%s\" in %s is zero", name, reader->where);
}

int tci_read_duration(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    uint64_t ms = 0;
    if (read_unit(reader, name, value, &duration_kind, &ms) < 0 ||
        not_zero(reader, name, value, ms) < 0)
        return -1;
    *(uint64_t *)field = ms;
    return 0;
}

int tci_read_wait(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  void *field)
{
    uint64_t ms = 0;
    if (tci_read_duration(reader, name, value, &ms) < 0)
        return -1;
    if (ms == TCI_UNLIMITED)
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos, "give a duration",
                             "\"%s\" in %s cannot be unlimited", name, reader->where);
    *(uint64_t *)field = ms;
    return 0;
}

int tci_read_size_or_zero(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          void *field)
{
    uint64_t bytes = 0;
    if (read_unit(reader, name, value, &size_kind, &bytes) < 0)
        return -1;
    if (bytes == TCI_UNLIMITED)
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos, "give a size",
                             "\"%s\" in %s cannot be unlimited", name, reader->where);
    *(uint64_t *)field = bytes;
    return 0;
}

int tci_read_size(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  void *field)
{
    uint64_t bytes = 0;
    if (read_unit(reader, name, value, &size_kind, &bytes) < 0 ||
        not_zero(reader, name, value, bytes) < 0)
        return -1;
    *(uint64_t *)field = bytes;
    return 0;
}

/* ---- numbers without units ---------------------------------------------------------------- */

int tci_read_cores(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    double cores;
    if (value->type == TCI_NODE_STRING && tci_text_is(value->string, "unlimited")) {
        *(uint64_t *)field = TCI_UNLIMITED;
        return 0;
    }
    if (value->type == TCI_NODE_INTEGER)
        cores = (double)value->integer;
    else if (tci_read_expect(reader, name, value, TCI_NODE_FLOAT, "a number such as 0.5") < 0)
        return -1;
    else
        cores = value->number;
    if (!(cores >= 0.001 && cores <= 100000))
        return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos,
                             "give a number of processor cores from 0.001 to 100000",
                             "\"%s\" in %s is out of range", name, reader->where);
    *(uint64_t *)field = (uint64_t)(cores * 1000 + 0.5);
    return 0;
}

static int read_count(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      int64_t smallest, uint64_t *field)
{
    char remedy[80];
    if (value->type == TCI_NODE_STRING && tci_text_is(value->string, "unlimited")) {
        *field = TCI_UNLIMITED;
        return 0;
    }
    if (tci_read_expect(reader, name, value, TCI_NODE_INTEGER, "a whole number") < 0)
        return -1;
    if (value->integer < smallest || value->integer > INT32_MAX) {
        (void)snprintf(remedy, sizeof remedy, "give a whole number from %lld to %d",
                       (long long)smallest, INT32_MAX);
        return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos, remedy,
                             "\"%s\" in %s is out of range: %lld", name, reader->where,
                             (long long)value->integer);
    }
    *field = (uint64_t)value->integer;
    return 0;
}

int tci_read_count(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    return read_count(reader, name, value, 1, field);
}

int tci_read_count_or_zero(struct tci_reader *reader, const char *name,
                           const struct tci_node *value, void *field)
{
    uint64_t count = 0;
    if (read_count(reader, name, value, 0, &count) < 0)
        return -1;
    if (count == TCI_UNLIMITED)
        return tci_read_expect(reader, name, value, TCI_NODE_INTEGER, "a whole number");
    *(uint64_t *)field = count;
    return 0;
}

/* ---- enumerations ------------------------------------------------------------------------- */

/* A finding that lists what is accepted, with the nearest word first. */
static int bad_word(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    const char *const *words)
{
    char remedy[400], quoted[TCI_QUOTE_MAX];
    const char *nearest = tci_nearest_word(value->string.data, value->string.length, words);
    size_t used = 0;

    if (nearest)
        used = (size_t)snprintf(remedy, sizeof remedy, "did you mean \"%s\"? ", nearest);
    used += (size_t)snprintf(remedy + used, sizeof remedy - used, "accepted:");
    for (; *words && used < sizeof remedy - 40; words++)
        used += (size_t)snprintf(remedy + used, sizeof remedy - used, " \"%s\"", *words);
    return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos, remedy,
                         "\"%s\" in %s cannot be %s", name, reader->where,
                         tci_read_quote(value->string, quoted));
}

int tci_read_word(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  const char *const *words, size_t *ret_index)
{
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, "a string") < 0)
        return -1;
    for (size_t i = 0; words[i]; i++) {
        if (tci_text_is(value->string, words[i])) {
            *ret_index = i;
            return 0;
        }
    }
    return bad_word(reader, name, value, words);
}

int tci_read_backend(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    const char *words[24] = { NULL };
    size_t index;
    for (size_t i = 0; i + 1 < tci_array_size(words) && tci_backend_kind_spelling(i); i++)
        words[i] = tci_backend_kind_spelling(i);
    if (tci_read_word(reader, name, value, words, &index) < 0)
        return -1;
    *(enum tci_backend_kind *)field = (enum tci_backend_kind)tci_backend_kind_from_name(
        words[index]);
    return 0;
}

int tci_read_record(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    void *field)
{
    enum tci_record *record = field;
    if (value->type == TCI_NODE_BOOLEAN)
        *record = value->boolean ? TCI_RECORD_TRUE : TCI_RECORD_FALSE;
    else if (value->type == TCI_NODE_STRING && tci_text_is(value->string, "hash-only"))
        *record = TCI_RECORD_HASH_ONLY;
    else
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos,
                             "accepted: true, false, \"hash-only\"",
                             "\"%s\" in %s is not one of the accepted values", name, reader->where);
    return 0;
}

int tci_read_approval(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    static const char *const words[] = { "never", "ask", NULL };
    size_t index;
    if (tci_read_word(reader, name, value, words, &index) < 0)
        return -1;
    *(enum tci_approval *)field = index ? TCI_APPROVAL_ASK : TCI_APPROVAL_NEVER;
    return 0;
}

/* ---- lists -------------------------------------------------------------------------------- */

int tci_read_strings(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    struct tci_strings *list = field;
    int status = 0;
    if (tci_read_expect(reader, name, value, TCI_NODE_ARRAY, "a list of strings") < 0)
        return -1;
    list->count = 0;
    list->items = tci_arena_new_array(reader->arena, value->array.count, struct tci_string);
    if (!list->items)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < value->array.count; i++) {
        const struct tci_node *item = value->array.items[i];
        struct tci_string *string = &list->items[list->count];
        if (tci_read_plain_string(reader, name, item, "a list of strings", &string->text) < 0) {
            status = -1;
            continue;
        }
        string->pos = item->pos;
        list->count++;
    }
    return status;
}

int tci_read_check_strings(struct tci_reader *reader, const char *name,
                           const struct tci_strings *list, const struct tci_string_kind *kind)
{
    for (size_t i = 0; i < list->count; i++) {
        struct tci_text text = { list->items[i].text, strlen(list->items[i].text) };
        char quoted[TCI_QUOTE_MAX];
        if (!kind->is_one(text.data))
            return tci_read_fail(reader, kind->id, list->items[i].pos, kind->remedy,
                                 "\"%s\" in %s: %s is not %s", name, reader->where,
                                 tci_read_quote(text, quoted), kind->kind);
    }
    return 0;
}

int tci_read_words(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   const char *const *words, unsigned *ret)
{
    unsigned set = 0;
    if (tci_read_expect(reader, name, value, TCI_NODE_ARRAY, "a list of strings") < 0)
        return -1;
    for (size_t i = 0; i < value->array.count; i++) {
        size_t index;
        if (tci_read_word(reader, name, value->array.items[i], words, &index) < 0)
            return -1;
        set |= 1U << index;
    }
    *ret = set;
    return 0;
}

int tci_read_capabilities(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          void *field)
{
    static const char *const words[] = { "fs_read", "fs_write", "net_http", "exec_run", NULL };
    return tci_read_words(reader, name, value, words, field);
}

static bool is_variable_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return length > 0;
}

static int bad_variable(struct tci_reader *reader, struct tci_text name, struct tci_pos pos)
{
    char quoted[TCI_QUOTE_MAX];
    return tci_read_fail(reader, TCI_FINDING_BAD_NAME, pos,
                         "use letters, digits and '_', not beginning with a digit",
                         "%s is not the name of an environment variable",
                         tci_read_quote(name, quoted));
}

int tci_read_names(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    struct tci_strings *list = field;
    int status = tci_read_strings(reader, name, value, field);
    for (size_t i = 0; status == 0 && i < list->count; i++) {
        struct tci_text text = { list->items[i].text, strlen(list->items[i].text) };
        if (!is_variable_name(text.data, text.length))
            status = bad_variable(reader, text, list->items[i].pos);
    }
    return status;
}

int tci_read_environment(struct tci_reader *reader, const char *name, const struct tci_node *value,
                         void *field)
{
    struct tci_environment *env = field;
    int status = 0;
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE, "a table of strings") < 0)
        return -1;
    env->count = 0;
    env->items = tci_arena_new_array(reader->arena, value->table.count, struct tci_variable);
    if (!env->items)
        return tci_read_no_memory(reader);
    tci_table_foreach (entry, value) {
        struct tci_variable *variable = &env->items[env->count];
        if (!is_variable_name(entry->key.data, entry->key.length))
            status = bad_variable(reader, entry->key, entry->key_pos);
        else if (tci_read_text(reader, entry->key.data, entry->value, &variable->value) < 0)
            status = -1;
        else {
            variable->name = entry->key.data;
            variable->pos = entry->key_pos;
            env->count++;
        }
    }
    return status;
}
