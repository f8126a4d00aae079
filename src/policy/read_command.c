/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading `command`, `commands`, `syscalls` and `outputs`: what runs, and what it leaves. */
#include "policy/reader.h"

#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "policy/template.h"

/* ---- command ------------------------------------------------------------------------------ */

static int check_element(struct tci_reader *reader, const struct tci_string *element)
{
    struct tci_text text = { element->text, strlen(element->text) };
    const char *cursor = element->text;
    struct tci_template_part part;
    unsigned parts = 0;
    bool has_list = false;
    char quoted[TCI_QUOTE_MAX];
    int r;

    while ((r = tci_template_next(&cursor, &part)) > 0) {
        parts++;
        has_list |= part.is_list;
    }
    if (r < 0)
        return tci_read_fail(reader, TCI_FINDING_BAD_TEMPLATE, element->pos,
                             "write {name} for an argument, {{ and }} for braces",
                             "\"command\" in %s: %s has a brace that is no placeholder",
                             reader->where, tci_read_quote(text, quoted));
    if (has_list && parts > 1)
        return tci_read_fail(reader, TCI_FINDING_BAD_TEMPLATE, element->pos,
                             "make {name...} an element of its own",
                             "\"command\" in %s: %s mixes a list with other text", reader->where,
                             tci_read_quote(text, quoted));
    return 0;
}

/* Unlike other strings, an argument may be empty and may hold tabs and line breaks. */
static int read_arguments(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          struct tci_strings *list)
{
    int status = 0;
    list->items = tci_arena_new_array(reader->arena, value->array.count, struct tci_string);
    if (!list->items)
        return tci_read_no_memory(reader);
    list->count = 0;
    for (size_t i = 0; i < value->array.count; i++) {
        struct tci_string *element = &list->items[list->count];
        element->pos = value->array.items[i]->pos;
        if (tci_read_text(reader, name, value->array.items[i], &element->text) < 0 ||
            check_element(reader, element) < 0)
            status = -1;
        else
            list->count++;
    }
    return status;
}

int tci_read_command(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    struct tci_strings *list = field;
    const char *program;
    if (value->type == TCI_NODE_STRING)
        return tci_read_fail(
            reader, TCI_FINDING_WRONG_TYPE, value->pos, "write a list: [\"program\", \"argument\"]",
            "\"%s\" in %s is one string; there is no shell to split it", name, reader->where);
    if (tci_read_expect(reader, name, value, TCI_NODE_ARRAY,
                        "a list such as [\"curl\", \"--\", \"{url}\"]") < 0 ||
        read_arguments(reader, name, value, list) < 0)
        return -1;
    if (list->count == 0 || list->items[0].text[0] == '\0')
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos,
                             "begin with the program to run", "\"%s\" in %s names no program", name,
                             reader->where);
    program = list->items[0].text;
    if (strpbrk(program, "{}"))
        return tci_read_fail(reader, TCI_FINDING_BAD_TEMPLATE, list->items[0].pos,
                             "write the program's name; a model never chooses it",
                             "\"%s\" in %s has a placeholder in place of the program", name,
                             reader->where);
    return 0;
}

/* ---- commands ----------------------------------------------------------------------------- */

int tci_read_commands(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    struct tci_commands *commands = field;
    int status = tci_read_strings(reader, name, value, &commands->list);
    for (size_t i = 0; status == 0 && i < commands->list.count; i++) {
        struct tci_string *command = &commands->list.items[i];
        char path[TCI_PATH_MAX + 1];
        if (!strchr(command->text, '/')) {
            if (strcmp(command->text, ".") == 0 || strcmp(command->text, "..") == 0)
                status = tci_read_fail(reader, TCI_FINDING_BAD_VALUE, command->pos,
                                       "name a program", "\"%s\" in %s: \"%s\" is no program", name,
                                       reader->where, command->text);
            continue;
        }
        if (tci_path_normalise(NULL, command->text, strlen(command->text), path) != TCI_PATH_OK)
            status = tci_read_fail(reader, TCI_FINDING_BAD_PATH, command->pos,
                                   "write a bare name (\"git\") or an absolute path",
                                   "\"%s\" in %s: \"%s\" is not an absolute path", name,
                                   reader->where, command->text);
        else if (!(command->text = tci_arena_strdup(reader->arena, path)))
            return tci_read_no_memory(reader);
    }
    commands->any = false;
    return status;
}

/* ---- syscalls ----------------------------------------------------------------------------- */

static bool is_system_call(const char *name)
{
    return seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR;
}

/* A misspelt name in a deny list would silently deny nothing: unknown names are errors. */
static int read_syscall_names(struct tci_reader *reader, const char *name,
                              const struct tci_node *value, void *field)
{
    static const struct tci_string_kind system_call = {
        .is_one = is_system_call,
        .id = TCI_FINDING_BAD_SYSCALL,
        .kind = "a system call",
        .remedy = "use the kernel's name, as in syscalls(2)",
    };
    if (tci_read_strings(reader, name, value, field) < 0 ||
        tci_read_list_size(reader, name, value) < 0)
        return -1;
    return tci_read_check_strings(reader, name, field, &system_call);
}

static int read_profile(struct tci_reader *reader, const char *name, const struct tci_node *value,
                        void *field)
{
    static const char *const words[] = { "default", "strict", "pure", NULL };
    size_t index;
    if (tci_read_word(reader, name, value, words, &index) < 0)
        return -1;
    *(enum tci_syscall_profile *)field = (enum tci_syscall_profile)index;
    return 0;
}

static int check_allow_and_deny(struct tci_reader *reader, const struct tci_syscalls *syscalls)
{
    for (size_t i = 0; i < syscalls->deny.count; i++)
        for (size_t j = 0; j < syscalls->allow.count; j++)
            if (strcmp(syscalls->deny.items[i].text, syscalls->allow.items[j].text) == 0)
                return tci_read_fail(reader, TCI_FINDING_CONFLICT, syscalls->deny.items[i].pos,
                                     "keep it in one of the two lists",
                                     "\"syscalls\" in %s both allows and denies %s", reader->where,
                                     syscalls->deny.items[i].text);
    return 0;
}

int tci_read_syscalls(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    static const struct tci_field fields[] = {
        { "profile", read_profile, offsetof(struct tci_syscalls, profile) },
        { "allow", read_syscall_names, offsetof(struct tci_syscalls, allow) },
        { "deny", read_syscall_names, offsetof(struct tci_syscalls, deny) },
    };
    struct tci_syscalls *syscalls = field;
    if (value->type == TCI_NODE_STRING)
        return read_profile(reader, name, value, &syscalls->profile);
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE,
                        "a profile such as \"strict\", or a table") < 0 ||
        tci_read_fields(reader, name, value, fields, tci_array_size(fields), syscalls) < 0)
        return -1;
    return check_allow_and_deny(reader, syscalls);
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* Globs are matched beneath granted directories, so they are absolute and never climb. */
static bool is_absolute_pattern(const char *text)
{
    char path[TCI_PATH_MAX + 1];
    return tci_path_normalise(NULL, text, strlen(text), path) == TCI_PATH_OK &&
           strcmp(path, text) == 0;
}

static int read_globs(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    static const struct tci_string_kind pattern = {
        .is_one = is_absolute_pattern,
        .id = TCI_FINDING_BAD_GLOB,
        .kind = "an absolute pattern",
        .remedy = "write an absolute path in the cage without \".\" or \"..\", such as "
                  "\"/workspace/*.png\"",
    };
    if (tci_read_strings(reader, name, value, field) < 0)
        return -1;
    return tci_read_check_strings(reader, name, field, &pattern);
}

int tci_read_outputs(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    static const struct tci_field fields[] = {
        { "globs", read_globs, offsetof(struct tci_outputs, globs) },
        { "max_file", tci_read_size, offsetof(struct tci_outputs, max_file) },
        { "max_files", tci_read_count, offsetof(struct tci_outputs, max_files) },
    };
    struct tci_outputs *outputs = field;
    outputs->max_file = TCI_MAX_FILE_DEFAULT;
    outputs->max_files = TCI_MAX_FILES_DEFAULT;
    if (value->type == TCI_NODE_ARRAY)
        return read_globs(reader, name, value, &outputs->globs);
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE, "a list of globs, or a table") < 0)
        return -1;
    return tci_read_fields(reader, name, value, fields, tci_array_size(fields), outputs);
}
