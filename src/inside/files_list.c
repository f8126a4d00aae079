/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: list_dir: what is in a directory, sorted, with what is below it as deep as asked for. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inside/files.h"

enum {
    DEPTH_MAX = 16,
    LIMIT_MAX = 10 * 1000,
    LIMIT = 1000,
    SHOWN_MAX = 8 * PATH_MAX, /* a path with every byte of it as \xNN */
};

struct listing {
    struct tci_json json;
    struct tci_buf *out;
    int64_t left; /* entries that may still be listed */
    bool hidden, truncated;
    size_t hidden_count;
};

static void write_time(struct tci_json *json, const struct timespec *time)
{
    struct tm parts;
    char text[40];
    /* A file system can hold years that no calendar has. */
    if (!gmtime_r(&time->tv_sec, &parts) || parts.tm_year < -1900 || parts.tm_year > 8099)
        return;
    if (strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        tci_json_string(json, "modified", text);
}

static void write_target(struct listing *listing, int directory, const char *name)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(directory, name, target, sizeof target);
    struct tci_buf text = TCI_BUF_INIT(SHOWN_MAX);
    if (length < 0)
        return;
    (void)tci_inside_name(&text, target, (size_t)length);
    tci_json_bytes(&listing->json, "target", text.data ? text.data : "", text.length);
    tci_buf_free(&text);
}

static void write_entry(struct listing *listing, int directory, const char *name, const char *path,
                        const struct stat *status, bool readable)
{
    struct tci_json *json = &listing->json;
    struct tci_buf shown = TCI_BUF_INIT(SHOWN_MAX);
    bool escaped = tci_inside_name(&shown, path, strlen(path));
    tci_json_object_begin(json, NULL);
    tci_json_bytes(json, "name", shown.data ? shown.data : "", shown.length);
    tci_json_string(json, "type", tci_files_type(status->st_mode));
    tci_json_integer(json, "size", S_ISREG(status->st_mode) ? status->st_size : 0);
    write_time(json, &status->st_mtim);
    if (S_ISLNK(status->st_mode))
        write_target(listing, directory, name);
    if (escaped)
        tci_json_bool(json, "escaped", true);
    if (!readable)
        tci_json_bool(json, "readable", false);
    tci_json_object_end(json);
    tci_buf_free(&shown);
}

static void list(struct listing *listing, int directory, const char *prefix, int64_t depth);

/* One name; false: there is no more room. */
static bool list_name(struct listing *listing, struct tci_arena *arena, int directory,
                      const char *prefix, const char *name, int64_t depth)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return true; /* gone since */
    if (!listing->left || listing->out->length > TCI_INSIDE_ANSWER_MAX - 64 * 1024) {
        listing->truncated = true;
        return false;
    }
    listing->left--;
    const char *path = *prefix ? tci_arena_printf(arena, "%s/%s", prefix, name) : name;
    if (!path)
        tci_inside_no_memory();
    bool enter = depth > 1 && S_ISDIR(status.st_mode) && strlen(path) < PATH_MAX;
    int below = enter ? tci_files_enter(directory, name) : -1;
    write_entry(listing, directory, name, path, &status, !enter || below >= 0);
    if (below >= 0) {
        list(listing, below, path, depth - 1);
        close(below);
    }
    return true;
}

static void list(struct listing *listing, int directory, const char *prefix, int64_t depth)
{
    struct tci_files_names names;
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    if (!arena)
        tci_inside_no_memory();
    if (tci_files_names(arena, directory, listing->hidden, &names) != 0)
        return;
    listing->hidden_count += names.hidden;
    listing->truncated |= names.truncated;
    for (size_t i = 0; i < names.count; i++)
        if (!list_name(listing, arena, directory, prefix, names.names[i], depth))
            break;
    free(names.names);
}

static int open_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        tci_inside_fail("%s is not a directory: read_file reads a file",
                        tci_inside_shown(path, strlen(path)));
    if (fd < 0)
        tci_inside_fail_path(errno, path, "be listed");
    return fd;
}

void tci_files_list(const json_t *arguments)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX);
    struct listing listing = { .json = { .out = &out }, .out = &out };
    struct tci_json *json = &listing.json;
    const char *path = tci_inside_path(arguments, "path", ".");
    int64_t depth = tci_inside_integer(arguments, "depth", 1, DEPTH_MAX, 1);
    listing.left = tci_inside_integer(arguments, "limit", 1, LIMIT_MAX, LIMIT);
    listing.hidden = tci_inside_bool(arguments, "hidden", false);
    int directory = open_directory(path);
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "path", path);
    tci_json_array_begin(json, "entries");
    list(&listing, directory, "", depth);
    tci_json_array_end(json);
    tci_json_unsigned(json, "hidden", listing.hidden_count);
    tci_json_bool(json, "truncated", listing.truncated);
    tci_json_object_end(json);
    tci_buf_char(&out, '\n');
    tci_inside_answer(&out);
}
