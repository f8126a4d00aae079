/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading `filesystem`, `allowed_paths`, `rootfs` and container mounts.
 * Invariants: every path is in normal form; no two rules of one access name the same cage path; no
 * rule covers /proc or /dev, which the cage makes itself. Nothing here touches the file system.
 */
#include "policy/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/path.h"

static const char entry_wanted[] = "\"PATH\", \"HOST:CAGE\" or { host = , cage = , optional = }";

struct path_list {
    struct tci_path_rule *rules;
    size_t count;
};

struct filesystem_table {
    struct path_list lists[3]; /* by enum tci_access */
    uint64_t scratch;
    const char *cwd;
};

struct entry_table {
    const char *host, *cage;
    bool optional, read_only;
};

static const char *path_remedy(enum tci_path_problem problem)
{
    switch (problem) {
    case TCI_PATH_EMPTY_COMPONENT:
        return "write single slashes";
    case TCI_PATH_LEAVES_ROOT:
        return "remove the \"..\" that goes above the root";
    case TCI_PATH_RELATIVE:
        return "write an absolute path";
    case TCI_PATH_CONTROL_BYTE:
        return "remove the control character";
    case TCI_PATH_OK:
    case TCI_PATH_EMPTY:
    case TCI_PATH_TOO_LONG:
    case TCI_PATH_COMPONENT_TOO_LONG:
        break;
    }
    return "name an existing file or directory";
}

/* Normal form of `text`, relative to `base` (NULL: must be absolute), into the arena. */
static const char *normalise(struct tci_reader *reader, const char *name, struct tci_text text,
                             const char *base, struct tci_pos pos)
{
    char path[TCI_PATH_MAX + 1], quoted[TCI_QUOTE_MAX];
    const char *copy;
    enum tci_path_problem problem = tci_path_normalise(base, text.data, text.length, path);

    if (problem != TCI_PATH_OK) {
        tci_read_fail(reader, TCI_FINDING_BAD_PATH, pos, path_remedy(problem),
                      "\"%s\" in %s: %s %s", name, reader->where, tci_read_quote(text, quoted),
                      tci_path_problem_text(problem));
        return NULL;
    }
    copy = tci_arena_strdup(reader->arena, path);
    if (!copy)
        tci_read_no_memory(reader);
    return copy;
}

int tci_read_path(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  void *field)
{
    const char *path;
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, "a path") < 0)
        return -1;
    path = normalise(reader, name, value->string, reader->directory, value->pos);
    if (!path)
        return -1;
    *(const char **)field = path;
    return 0;
}

static int read_cage_path(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          void *field)
{
    const char *path;
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, "an absolute path") < 0)
        return -1;
    path = normalise(reader, name, value->string, NULL, value->pos);
    if (!path)
        return -1;
    *(const char **)field = path;
    return 0;
}

static int check_cage_path(struct tci_reader *reader, const char *name, const char *cage,
                           struct tci_pos pos)
{
    static const char *const own[] = { "/proc", "/dev" };
    for (size_t i = 0; i < tci_array_size(own); i++)
        if (tci_path_is_within(cage, own[i]))
            return tci_read_fail(
                reader, TCI_FINDING_BAD_PATH, pos, "remove it: every cage has its own private one",
                "\"%s\" in %s: %s cannot be granted from the host", name, reader->where, own[i]);
    return 0;
}

/* "PATH" or "HOST:CAGE", and for mounts "HOST:CAGE:ro" or ":rw". */
static int split_entry(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       struct tci_text parts[2])
{
    struct tci_text text = value->string;
    const char *colon = memchr(text.data, ':', text.length);
    char quoted[TCI_QUOTE_MAX];

    parts[0] = parts[1] = text;
    if (!colon)
        return 0;
    parts[0].length = (size_t)(colon - text.data);
    parts[1].data = colon + 1;
    parts[1].length = text.length - parts[0].length - 1;
    if (memchr(parts[1].data, ':', parts[1].length))
        return tci_read_fail(reader, TCI_FINDING_BAD_PATH, value->pos,
                             "write { host = \"...\", cage = \"...\" } for paths with colons",
                             "\"%s\" in %s: %s has more than one colon", name, reader->where,
                             tci_read_quote(text, quoted));
    return 0;
}

static int read_entry_string(struct tci_reader *reader, const char *name,
                             const struct tci_node *value, struct tci_path_rule *rule)
{
    struct tci_text parts[2];
    bool mapped;
    if (split_entry(reader, name, value, parts) < 0)
        return -1;
    mapped = parts[1].data != parts[0].data;
    rule->as_given = value->string.data;
    rule->host = normalise(reader, name, parts[0], reader->directory, value->pos);
    if (!rule->host)
        return -1;
    rule->cage = mapped ? normalise(reader, name, parts[1], NULL, value->pos) : rule->host;
    return rule->cage ? 0 : -1;
}

static int read_entry_table(struct tci_reader *reader, const char *name,
                            const struct tci_node *value, bool is_mount, struct tci_path_rule *rule)
{
    static const struct tci_field fields[] = {
        { "host", tci_read_path, offsetof(struct entry_table, host) },
        { "cage", read_cage_path, offsetof(struct entry_table, cage) },
        { "optional", tci_read_boolean, offsetof(struct entry_table, optional) },
        { "read_only", tci_read_boolean, offsetof(struct entry_table, read_only) },
    };
    struct entry_table entry = { .read_only = true };
    const struct tci_entry *host = tci_table_find(value, "host", 4);

    if (tci_read_fields(reader, name, value, fields, is_mount ? 4 : 3, &entry) < 0)
        return -1;
    if (!entry.host)
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos,
                             "add host = \"/path/on/the/host\"",
                             "\"%s\" in %s: an entry has no \"host\"", name, reader->where);
    rule->as_given = host->value->string.data;
    rule->host = entry.host;
    rule->cage = entry.cage ? entry.cage : entry.host;
    rule->optional = entry.optional;
    if (is_mount)
        rule->access = entry.read_only ? TCI_ACCESS_READABLE : TCI_ACCESS_WRITABLE;
    return 0;
}

static int read_entry(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      bool is_mount, struct tci_path_rule *rule)
{
    int r;
    rule->pos = value->pos;
    if (value->type == TCI_NODE_TABLE)
        r = read_entry_table(reader, name, value, is_mount, rule);
    else if (tci_read_expect(reader, name, value, TCI_NODE_STRING, entry_wanted) < 0)
        return -1;
    else
        r = read_entry_string(reader, name, value, rule);
    if (r < 0 || !rule->cage)
        return -1;
    return check_cage_path(reader, name, rule->cage, value->pos);
}

/* The same place twice: harmless when it is the same grant, an error when two things compete.
 * `seen` is a table of the places so far: lists are long where somebody wants us to be slow. */
static int check_repeated(struct tci_reader *reader, const char *name, struct tci_node *seen,
                          const struct tci_path_rule *rule)
{
    struct tci_text cage = { rule->cage, strlen(rule->cage) };
    const struct tci_entry *other = tci_table_find(seen, cage.data, cage.length);
    char remedy[64];
    if (!other)
        return tci_table_add(reader->arena, seen, cage, rule->pos, NULL)
                   ? 0
                   : tci_read_no_memory(reader);
    (void)snprintf(remedy, sizeof remedy, "remove it here or at line %u", other->key_pos.line);
    return tci_read_fail(reader, TCI_FINDING_DUPLICATE, rule->pos, remedy,
                         "\"%s\" in %s names %s twice", name, reader->where, rule->cage);
}

/* "HOST:CAGE:ro" is how containers write a mount; without a suffix a mount is read-only. */
static int read_mount(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      struct tci_path_rule *rule)
{
    struct tci_node without_suffix = *value;
    if (value->type == TCI_NODE_STRING && value->string.length > 3) {
        const char *suffix = value->string.data + value->string.length - 3;
        bool writable = memcmp(suffix, ":rw", 3) == 0;
        if (writable || memcmp(suffix, ":ro", 3) == 0) {
            without_suffix.string.length -= 3;
            rule->access = writable ? TCI_ACCESS_WRITABLE : TCI_ACCESS_READABLE;
        }
    }
    return read_entry(reader, name, &without_suffix, true, rule);
}

static int read_list(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     bool is_mount, struct path_list *list)
{
    struct tci_node *seen;
    int status = 0;
    if (tci_read_expect(reader, name, value, TCI_NODE_ARRAY, "a list of paths") < 0 ||
        tci_read_list_size(reader, name, value) < 0)
        return -1;
    list->count = 0;
    list->rules = tci_arena_new_array(reader->arena, value->array.count, struct tci_path_rule);
    seen = tci_node_new(reader->arena, TCI_NODE_TABLE, value->pos);
    if (!list->rules || !seen)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < value->array.count; i++) {
        const struct tci_node *item = value->array.items[i];
        struct tci_path_rule rule = { .access = TCI_ACCESS_READABLE };
        int r = is_mount ? read_mount(reader, name, item, &rule)
                         : read_entry(reader, name, item, false, &rule);
        if (r < 0 || check_repeated(reader, name, seen, &rule) < 0)
            status = -1;
        else
            list->rules[list->count++] = rule;
    }
    return status;
}

static int read_grants(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       void *field)
{
    return read_list(reader, name, value, false, field);
}

/* A hidden path has no source: it names a place in the cage. */
static int read_hidden(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       void *field)
{
    struct path_list *list = field;
    int status = read_list(reader, name, value, false, list);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->rules[i].host, list->rules[i].cage) != 0)
            status = tci_read_fail(reader, TCI_FINDING_BAD_PATH, list->rules[i].pos,
                                   "write only the path as the cage sees it",
                                   "\"%s\" in %s: a hidden path has no source", name,
                                   reader->where);
        list->rules[i].host = NULL;
    }
    return status;
}

/* One cage path granted from two different sources has no meaning that a person could see. */
static int check_competing(struct tci_reader *reader, const struct tci_filesystem *fs)
{
    struct tci_node *sources = tci_node_new(reader->arena, TCI_NODE_TABLE, (struct tci_pos){ 0 });
    if (!sources)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        struct tci_text cage = { rule->cage, strlen(rule->cage) };
        const struct tci_entry *other = tci_table_find(sources, cage.data, cage.length);
        struct tci_node *source;
        if (!rule->host || (other && tci_text_is(other->value->string, rule->host)))
            continue;
        if (other)
            return tci_read_fail(
                reader, TCI_FINDING_CONFLICT, rule->pos, "give each path in the cage one source",
                "\"filesystem\" in %s: %s comes from two sources", reader->where, rule->cage);
        source = tci_node_new(reader->arena, TCI_NODE_STRING, rule->pos);
        if (!source || !tci_table_add(reader->arena, sources, cage, rule->pos, source))
            return tci_read_no_memory(reader);
        source->string = (struct tci_text){ rule->host, strlen(rule->host) };
    }
    return 0;
}

/* hidden, readable, writable: in the order of precedence. */
static int join_lists(struct tci_reader *reader, const struct filesystem_table *table,
                      struct tci_filesystem *fs)
{
    size_t total = table->lists[0].count + table->lists[1].count + table->lists[2].count;
    fs->count = 0;
    fs->rules = tci_arena_new_array(reader->arena, total, struct tci_path_rule);
    if (!fs->rules)
        return tci_read_no_memory(reader);
    for (unsigned access = 0; access < 3; access++) {
        for (size_t i = 0; i < table->lists[access].count; i++) {
            fs->rules[fs->count] = table->lists[access].rules[i];
            fs->rules[fs->count++].access = (enum tci_access)access;
        }
    }
    fs->scratch = table->scratch;
    fs->cwd = table->cwd;
    return check_competing(reader, fs);
}

int tci_read_filesystem(struct tci_reader *reader, const char *name, const struct tci_node *value,
                        void *field)
{
    static const struct tci_field fields[] = {
        { "hidden", read_hidden, offsetof(struct filesystem_table, lists[TCI_ACCESS_HIDDEN]) },
        { "readable", read_grants, offsetof(struct filesystem_table, lists[TCI_ACCESS_READABLE]) },
        { "writable", read_grants, offsetof(struct filesystem_table, lists[TCI_ACCESS_WRITABLE]) },
        { "scratch", tci_read_size_or_zero, offsetof(struct filesystem_table, scratch) },
        { "cwd", read_cage_path, offsetof(struct filesystem_table, cwd) },
    };
    struct filesystem_table table = { .scratch = TCI_SCRATCH_UNSET };
    struct tci_filesystem *fs = field;

    if (value->type == TCI_NODE_STRING && tci_text_is(value->string, "none")) {
        *fs = (struct tci_filesystem){ .scratch = TCI_SCRATCH_UNSET };
        return 0;
    }
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE,
                        "\"none\" or a table such as { readable = [\"/data\"] }") < 0)
        return -1;
    if (tci_read_fields(reader, name, value, fields, tci_array_size(fields), &table) < 0)
        return -1;
    return join_lists(reader, &table, fs);
}

int tci_read_paths(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    struct tci_filesystem *fs = field;
    struct path_list list = { 0 };
    if (read_list(reader, name, value, false, &list) < 0)
        return -1;
    fs->rules = list.rules;
    fs->count = list.count;
    fs->scratch = TCI_SCRATCH_UNSET;
    return 0;
}

int tci_read_mounts(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    void *field)
{
    struct tci_mounts *mounts = field;
    struct path_list list = { 0 };
    if (read_list(reader, name, value, true, &list) < 0)
        return -1;
    mounts->rules = list.rules;
    mounts->count = list.count;
    return 0;
}
