/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what all value readers share: findings with context, type checks, tables of fields. */
#include "policy/reader.h"

#include <stdio.h>
#include <string.h>
#include "base/nearest.h"

enum { words_max = 48 };

int tci_read_fail(struct tci_reader *reader, enum tci_finding_id id, struct tci_pos pos,
                  const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tci_findings_addv(reader->findings, id, pos, reader->tool, remedy, format, args);
    va_end(args);
    return -1;
}

int tci_read_no_memory(struct tci_reader *reader)
{
    reader->findings->no_memory = true;
    return -1;
}

const char *tci_read_quote(struct tci_text text, char buffer[TCI_QUOTE_MAX])
{
    return tci_quote(text.data, text.length, buffer);
}

int tci_read_expect(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    enum tci_node_type type, const char *wanted)
{
    char remedy[160];
    if (value->type == type)
        return 0;
    (void)snprintf(remedy, sizeof remedy, "give \"%s\" %s", name, wanted);
    return tci_read_fail(reader, TCI_FINDING_WRONG_TYPE, value->pos, remedy,
                         "\"%s\" in %s must be %s, not %s", name, reader->where, wanted,
                         tci_node_type_name(value->type));
}

int tci_read_unknown(struct tci_reader *reader, const struct tci_entry *entry, const char *inside,
                     const char *const *words)
{
    const char *nearest = NULL;
    char remedy[512], quoted[TCI_QUOTE_MAX];
    size_t used;

    /* Looking for the nearest word is the one slow thing that a hostile file could repeat. */
    if (!tci_findings_full(reader->findings))
        nearest = tci_nearest_word(entry->key.data, entry->key.length, words);
    if (nearest) {
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    } else {
        used = (size_t)snprintf(remedy, sizeof remedy, "known keys:");
        for (; *words && used < sizeof remedy - 40; words++)
            used += (size_t)snprintf(remedy + used, sizeof remedy - used, " %s", *words);
    }
    return tci_read_fail(reader, TCI_FINDING_UNKNOWN_KEY, entry->key_pos, remedy,
                         "unknown key %s in %s", tci_read_quote(entry->key, quoted), inside);
}

int tci_read_list_size(struct tci_reader *reader, const char *name, const struct tci_node *value)
{
    char remedy[80];
    if (value->array.count <= TCI_LIST_MAX)
        return 0;
    (void)snprintf(remedy, sizeof remedy, "use at most %d entries", TCI_LIST_MAX);
    return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos, remedy,
                         "\"%s\" in %s has %zu entries", name, reader->where, value->array.count);
}

int tci_read_table_size(struct tci_reader *reader, const char *what, size_t count,
                        struct tci_pos pos)
{
    char remedy[80];
    if (count <= TCI_TABLE_MAX)
        return 0;
    (void)snprintf(remedy, sizeof remedy, "use at most %d", TCI_TABLE_MAX);
    return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, pos, remedy, "the policy has %zu %s",
                         count, what);
}

static const struct tci_field *find_field(const struct tci_field *fields, size_t count,
                                          struct tci_text key)
{
    for (size_t i = 0; i < count; i++)
        if (tci_text_is(key, fields[i].name))
            return &fields[i];
    return NULL;
}

int tci_read_fields(struct tci_reader *reader, const char *name, const struct tci_node *table,
                    const struct tci_field *fields, size_t field_count, void *out)
{
    const char *words[words_max + 1] = { NULL };
    char inside[160];
    int status = 0;

    for (size_t i = 0; i < field_count && i < words_max; i++)
        words[i] = fields[i].name;
    (void)snprintf(inside, sizeof inside, "\"%s\" of %s", name, reader->where);
    tci_table_foreach (entry, table) {
        const struct tci_field *field = find_field(fields, field_count, entry->key);
        int r = field ? field->read(reader, field->name, entry->value, (char *)out + field->offset)
                      : tci_read_unknown(reader, entry, inside, words);
        if (r < 0)
            status = -1;
    }
    return status;
}

static bool has_control_byte(struct tci_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return true;
    return false;
}

int tci_read_plain_string(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          const char *wanted, const char **ret)
{
    char quoted[TCI_QUOTE_MAX];
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, wanted) < 0)
        return -1;
    if (value->string.length == 0)
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos,
                             "give it a value or remove it", "\"%s\" in %s is an empty string",
                             name, reader->where);
    if (has_control_byte(value->string))
        return tci_read_fail(reader, TCI_FINDING_CONTROL_BYTE, value->pos,
                             "remove the control character", "\"%s\" in %s has a control byte: %s",
                             name, reader->where, tci_read_quote(value->string, quoted));
    *ret = value->string.data;
    return 0;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

int tci_read_check_name(struct tci_reader *reader, const char *what, struct tci_text name,
                        struct tci_pos pos)
{
    char quoted[TCI_QUOTE_MAX];
    bool good = name.length >= 1 && name.length <= 64 && name.data[0] != '-' && name.data[0] != '.';
    for (size_t i = 0; good && i < name.length; i++)
        good = is_name_byte(name.data[i]);
    if (good)
        return 0;
    return tci_read_fail(reader, TCI_FINDING_BAD_NAME, pos,
                         "use 1 to 64 letters, digits, '_', '-' and '.', not beginning with '-' "
                         "or '.'",
                         "%s is not a name for %s", tci_read_quote(name, quoted), what);
}
