/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding and reading the tool files of a policy: DIR/NAME.toml for each DIR of `tools`.
 * Trusts nothing about the directory's content: a name is judged before its file is opened, a link
 * is never followed (it could make any file of the host part of the policy, and of its error
 * messages), anything but a regular file is refused, and files and bytes have a maximum.
 */
#include "policy/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "policy/load.h"
#include "policy/toml.h"

enum {
    directories_max = 16,
    entries_max = 100000, /* of one directory, with those that are not tool files */
};

/* The names of one directory, before they are files of the policy. */
struct names {
    const char **items;
    size_t count, capacity;
};

static void closedirp(DIR **directory)
{
    if (*directory)
        (void)closedir(*directory);
}

static int bad_directory(struct tci_reader *reader, struct tci_pos pos, const char *path,
                         const char *problem)
{
    return tci_read_fail(reader, TCI_FINDING_TOOL_FILE, pos,
                         "name a directory that this user may read; the last part of its path may "
                         "not be a link",
                         "the tool directory %.300s: %s", path, problem);
}

/* ---- names -------------------------------------------------------------------------------- */

static bool is_tool_file(const char *name)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".toml") == 0;
}

static int add_name(struct tci_reader *reader, struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 32;
        const char **items = tci_arena_new_array(reader->arena, capacity, const char *);
        if (!items)
            return tci_read_no_memory(reader);
        if (names->count)
            memcpy(items, names->items, names->count * sizeof *items);
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = tci_arena_strdup(reader->arena, name);
    return names->items[names->count++] ? 0 : tci_read_no_memory(reader);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The handle of a directory, or NULL with errno. */
static DIR *open_directory(const char *path)
{
    int fd = tci_sys.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    int errnum = errno;
    if (fd >= 0 && !directory)
        (void)tci_sys.close(fd);
    errno = errnum;
    return directory;
}

static int list_directory(struct tci_reader *reader, const char *path, struct tci_pos pos,
                          struct names *names)
{
    tc_cleanup(closedirp) DIR *directory = open_directory(path);
    char problem[128];

    if (!directory) {
        if (errno == ENOMEM)
            return tci_read_no_memory(reader);
        return bad_directory(reader, pos, path, strerror_r(errno, problem, sizeof problem));
    }
    for (size_t count = 0;; count++) {
        const struct dirent *entry;
        errno = 0;
        /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
        entry = readdir(directory);
        if (!entry && errno)
            return bad_directory(reader, pos, path, strerror_r(errno, problem, sizeof problem));
        if (!entry)
            break;
        if (count == entries_max || names->count > TCI_TABLE_MAX)
            return bad_directory(reader, pos, path, "it has too many entries");
        if (is_tool_file(entry->d_name) && add_name(reader, names, entry->d_name) < 0)
            return -1;
    }
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return 0;
}

/* ---- directories -------------------------------------------------------------------------- */

/* The directory as somebody at the policy's own place would name it. */
static const char *shown_directory(struct tci_reader *reader, const struct tc_policy *policy,
                                   const char *given)
{
    const char *slash = strrchr(policy->file, '/');
    size_t length = strlen(given);
    while (length > 1 && given[length - 1] == '/')
        length--;
    if (given[0] == '/' || !slash)
        return tci_arena_strndup(reader->arena, given, length);
    return tci_arena_printf(reader->arena, "%.*s/%.*s", (int)(slash - policy->file), policy->file,
                            (int)length, given);
}

/* Appends the directory's files to those of the policy. */
static int add_files(struct tci_reader *reader, const char *shown, const char *path,
                     const struct names *names, struct tc_policy *policy)
{
    size_t old = policy->tool_file_count;
    struct tci_tool_file *files = tci_arena_new_array(reader->arena, old + names->count,
                                                      struct tci_tool_file);
    const char *slash = strcmp(path, "/") == 0 ? "" : "/";

    if (!files)
        return tci_read_no_memory(reader);
    if (old)
        memcpy(files, policy->tool_files, old * sizeof *files);
    for (size_t i = 0; i < names->count; i++) {
        struct tci_tool_file *file = &files[old + i];
        file->name = tci_arena_printf(reader->arena, "%s/%s", shown, names->items[i]);
        file->path = tci_arena_printf(reader->arena, "%s%s%s", path, slash, names->items[i]);
        if (!file->name || !file->path)
            return tci_read_no_memory(reader);
    }
    policy->tool_files = files;
    policy->tool_file_count = old + names->count;
    return 0;
}

static int add_directory(struct tci_reader *reader, const struct tci_node *value,
                         struct tc_policy *policy)
{
    struct names names = { 0 };
    const char *given, *path, *shown;

    if (tci_read_plain_string(reader, "tools", value, "a directory", &given) < 0 ||
        tci_read_path(reader, "tools", value, &path) < 0)
        return -1;
    for (size_t i = 0; i < policy->tool_directory_count; i++)
        if (strcmp(policy->tool_directories[i].path, path) == 0)
            return tci_read_fail(reader, TCI_FINDING_DUPLICATE, value->pos, "name it once",
                                 "\"tools\" names %.300s twice", path);
    shown = shown_directory(reader, policy, given);
    if (!shown)
        return tci_read_no_memory(reader);
    if (list_directory(reader, path, value->pos, &names) < 0 ||
        add_files(reader, shown, path, &names, policy) < 0)
        return -1;
    policy->tool_directories[policy->tool_directory_count++] =
        (struct tci_tool_directory){ path, value->pos };
    return 0;
}

/* One directory, or a list of them. A policy from memory has none: it reads no files. */
int tci_find_tool_files(struct tci_reader *reader, const struct tci_node *value,
                        struct tc_policy *policy)
{
    struct tci_node *one = (struct tci_node *)(uintptr_t)value;
    struct tci_node *const *items = &one;
    size_t count = 1;

    if (!reader->directory)
        return tci_read_fail(reader, TCI_FINDING_TOOL_FILE, value->pos,
                             "load the policy from a file",
                             "a policy that is in no directory cannot name tool directories");
    if (value->type == TCI_NODE_ARRAY) {
        items = value->array.items;
        count = value->array.count;
    } else if (tci_read_expect(reader, "tools", value, TCI_NODE_STRING,
                               "a directory, or a list of them") < 0) {
        return -1;
    }
    if (count > directories_max)
        return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos,
                             "put the files into fewer directories",
                             "\"tools\" names %zu directories", count);
    policy->tool_directories = tci_arena_new_array(reader->arena, count, struct tci_tool_directory);
    if (!policy->tool_directories)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        if (add_directory(reader, items[i], policy) < 0)
            return -1;
    return tci_findings_set_files(reader->findings, policy->tool_files, policy->tool_file_count);
}

/* ---- one file ----------------------------------------------------------------------------- */

/* Whatever is wrong with a file is said about that file. */
static int refuse(struct tci_reader *reader, struct tci_pos pos, const struct tc_error *error,
                  bool is_link)
{
    int id = tci_finding_from_name(error->id);
    bool too_large = error->code == TC_ERROR_TOO_LARGE;
    const char *remedy = error->remedy;
    if (error->code == TC_ERROR_NO_MEMORY)
        return tci_read_no_memory(reader);
    if (error->code == TC_ERROR_SYNTAX || (too_large && error->line))
        id = TCI_FINDING_SYNTAX;
    if (error->line) {
        pos.line = error->line;
        pos.column = error->column;
    }
    if (is_link)
        remedy = "put the file itself into the directory: links are not followed";
    else if (id == TCI_FINDING_NOT_A_FILE || id == TCI_FINDING_UNREADABLE)
        remedy = "make it a regular file that this user may read, or give it another ending";
    else if (too_large)
        remedy = "all tool files together are at most 4 MB";
    return tci_read_fail(reader, id < 0 ? TCI_FINDING_TOOL_FILE : (enum tci_finding_id)id, pos,
                         remedy[0] ? remedy : "mend the line; see toolcage-policy(5)", "%s",
                         error->message);
}

int tci_read_tool_file(struct tci_reader *reader, struct tc_policy *policy, size_t i,
                       struct tci_node **ret)
{
    const struct tci_tool_file *file = &policy->tool_files[i];
    const char *base = strrchr(file->path, '/') + 1;
    struct tci_pos pos = { .line = 1, .column = 1, .file = (uint32_t)i + 1 };
    char directory[TCI_PATH_MAX + 2];
    struct tc_error error = { 0 };
    size_t length;
    char *bytes;

    (void)snprintf(directory, sizeof directory, "%.*s", (int)(base - file->path), file->path);
    if (tci_file_read_beneath(reader->arena, directory, base,
                              TCI_POLICY_BYTES_MAX - reader->tool_file_bytes, &bytes, &length,
                              &error) < 0) {
        struct stat st;
        bool is_link = tci_sys.lstat(file->path, &st) == 0 && S_ISLNK(st.st_mode);
        return refuse(reader, pos, &error, is_link);
    }
    reader->tool_file_bytes += length;
    if (tci_toml_parse(reader->arena, bytes, length, TCI_TOML_1_1, ret, &error) < 0)
        return refuse(reader, pos, &error, false);
    tci_node_set_file(*ret, pos.file);
    tci_hash_file(reader, "tool", base, bytes, length);
    tci_find_deceptive(bytes, length, pos.file, policy);
    return 0;
}
