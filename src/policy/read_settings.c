/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading one table of settings by the key table: [defaults], [tool.NAME], or a grant. */
#include "policy/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    struct tci_text name;
    tci_read_function *read;
    size_t offset;
} readers[] = {
#define X(id, name, field, where, type, standard, doc)                                             \
    { { name, sizeof(name) - 1 }, tci_read_##type, offsetof(struct tci_settings, field) },
#include "policy/keys.def"
#undef X
};

/* "isolation" is another name for "backend". */
static int find_key(struct tci_text name)
{
    if (tci_text_is(name, "isolation"))
        return TCI_KEY_BACKEND;
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (tci_text_equal(name, readers[key].name))
            return key;
    return -1;
}

static const char *place_name(unsigned where)
{
    switch (where) {
    case TCI_IN_DEFAULTS:
        return "[defaults]";
    case TCI_IN_GRANT:
        return "a grant";
    default:
        return "[tool.NAME]";
    }
}

static int misplaced(struct tci_reader *reader, const struct tci_entry *entry, enum tci_key key,
                     unsigned where)
{
    const char *remedy = tci_key_where(key) & TCI_IN_TOOL ? "set it in [tool.NAME]" : "remove it";
    return tci_read_fail(reader, TCI_FINDING_MISPLACED_KEY, entry->key_pos, remedy,
                         "\"%s\" has no meaning in %s", entry->key.data, place_name(where));
}

bool tci_read_setting(struct tci_reader *reader, const struct tci_entry *entry, unsigned where,
                      struct tci_settings *out, int *ret_status)
{
    int key = find_key(entry->key);
    tci_read_function *read;
    if (key < 0)
        return false;
    if (!(tci_key_where((enum tci_key)key) & where)) {
        *ret_status = misplaced(reader, entry, (enum tci_key)key, where);
        return true;
    }
    if (out->present & tci_key_bit(key)) {
        *ret_status = tci_read_fail(reader, TCI_FINDING_DUPLICATE, entry->key_pos,
                                    "keep \"backend\" or \"isolation\", not both",
                                    "\"backend\" and \"isolation\" are one key");
        return true;
    }
    read = readers[key].read;
    if (key == TCI_KEY_NETWORK && where == TCI_IN_GRANT)
        read = tci_read_grant_network;
    if (key == TCI_KEY_NETWORK_LIMITS && where == TCI_IN_GRANT)
        read = tci_read_grant_network_limits;
    *ret_status = read(reader, tci_key_name((enum tci_key)key), entry->value,
                       (char *)out + readers[key].offset);
    out->present |= tci_key_bit(key);
    out->pos[key] = entry->value->pos;
    return true;
}

int tci_read_settings(struct tci_reader *reader, const struct tci_node *table, unsigned where,
                      struct tci_settings *out)
{
    const char *words[TCI_KEY_COUNT + 2];
    size_t count = 0;
    int status = 0;

    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (tci_key_where((enum tci_key)key) & where)
            words[count++] = tci_key_name((enum tci_key)key);
    words[count++] = "isolation";
    words[count] = NULL;
    tci_table_foreach (entry, table) {
        int r = 0;
        if (!tci_read_setting(reader, entry, where, out, &r))
            r = tci_read_unknown(reader, entry, reader->where, words);
        if (r < 0)
            status = -1;
    }
    return status;
}
