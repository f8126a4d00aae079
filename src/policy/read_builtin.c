/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading `builtin` and `redact`, and what a tool gets from the built-in tool that it names. */
#include "policy/reader.h"

#include <string.h>

int tci_read_builtin(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    size_t index;
    if (tci_read_word(reader, name, value, tci_builtin_names(), &index) < 0)
        return -1;
    *(const struct tci_builtin **)field = tci_builtin_find(tci_builtin_names()[index]);
    return 0;
}

/* ---- redact ------------------------------------------------------------------------------- */

/* RFC 6901: nothing (the whole), or "/" and a token, repeated; '~' only as ~0 and ~1. */
static bool is_pointer(const char *text)
{
    if (*text && *text != '/')
        return false;
    for (; *text; text++)
        if (*text == '~' && text[1] != '0' && text[1] != '1')
            return false;
    return true;
}

/* A pointer that means nothing would leave a secret in the journal: it is an error, not a note. */
int tci_read_pointers(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    static const struct tci_string_kind pointer = {
        .is_one = is_pointer,
        .id = TCI_FINDING_BAD_VALUE,
        .kind = "a JSON Pointer",
        .remedy = "write \"/\" and the name of a parameter, such as \"/token\"; ~0 stands for '~' "
                  "and ~1 for '/' in a name",
    };
    if (tci_read_strings(reader, name, value, field) < 0 ||
        tci_read_list_size(reader, name, value) < 0)
        return -1;
    return tci_read_check_strings(reader, name, field, &pointer);
}

/* ---- what a built-in tool brings ---------------------------------------------------------- */

static const enum tci_key brought[] = { TCI_KEY_COMMAND, TCI_KEY_PARAMETERS, TCI_KEY_RETURNS };

static int check_brought(struct tci_reader *reader, const struct tci_settings *own)
{
    for (size_t i = 0; i < tci_array_size(brought); i++)
        if (own->present & tci_key_bit(brought[i]))
            return tci_read_fail(reader, TCI_FINDING_CONFLICT, own->pos[brought[i]],
                                 "remove it, or remove \"builtin\" and write the tool yourself",
                                 "\"%s\" in %s stands beside \"builtin\", which brings its own",
                                 tci_key_name(brought[i]), reader->where);
    return 0;
}

static int copy_command(struct tci_reader *reader, const struct tci_builtin *builtin,
                        struct tci_pos pos, struct tci_strings *command)
{
    size_t count = 0;
    while (builtin->command[count])
        count++;
    command->items = tci_arena_new_array(reader->arena, count, struct tci_string);
    if (!command->items)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        command->items[i] = (struct tci_string){ .text = builtin->command[i], .pos = pos };
    command->count = count;
    return 0;
}

int tci_apply_builtin(struct tci_reader *reader, const struct tci_settings *own,
                      struct tci_tool *tool)
{
    const struct tci_builtin *builtin = own->builtin;
    struct tci_pos pos = own->pos[TCI_KEY_BUILTIN];
    struct tci_settings *s = &tool->settings;

    if (!(own->present & tci_key_bit(TCI_KEY_BUILTIN)))
        return 0;
    if (check_brought(reader, own) < 0 || copy_command(reader, builtin, pos, &s->command) < 0)
        return -1;
    s->parameters = (struct tci_schema){ .json = builtin->parameters };
    s->returns = (struct tci_schema){ .json = builtin->returns };
    for (size_t i = 0; i < tci_array_size(brought); i++) {
        s->pos[brought[i]] = pos;
        tool->source[brought[i]] = TCI_FROM_BUILTIN_TOOL;
    }
    if (!(own->present & tci_key_bit(TCI_KEY_DESCRIPTION))) {
        s->description = builtin->description;
        s->pos[TCI_KEY_DESCRIPTION] = pos;
        tool->source[TCI_KEY_DESCRIPTION] = TCI_FROM_BUILTIN_TOOL;
    }
    return 0;
}
