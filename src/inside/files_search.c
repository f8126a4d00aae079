/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: search_files: walks a tree in the order of names, and prints the lines that match.
 * Links are not followed below the path that was given: no circles, and nothing is found twice.
 */
#include "inside/files_search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SECONDS = 10,       /* then it ends with what it has */
    ALARM = 12,         /* then one match alone has taken too long */
    BYTES = 1 << 30,    /* that are read */
    DEPTH_MAX = 64,     /* each level keeps a descriptor open */
    LIMIT = 100,        /* matches */
    LIMIT_MAX = 1000,   /* of them, when asked for */
    CONTEXT_MAX = 10,   /* lines */
    PATTERN_MAX = 4096, /* bytes */
};

/* The clock is asked between lines. One line of megabytes can take longer by itself. */
static void on_alarm(int number)
{
    static const char text[] =
        "the search takes too long: search a smaller directory, or write a simpler pattern\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    _exit(1);
}

static void search_directory(struct tci_search *search, int directory, const char *shown,
                             const char *below, unsigned depth);

/* "a" and "b": "a/b"; nothing and "b": "b". */
static const char *join(struct tci_arena *arena, const char *directory, const char *name)
{
    bool slash = *directory && directory[strlen(directory) - 1] != '/';
    const char *path = tci_arena_printf(arena, "%s%s%s", directory, slash ? "/" : "", name);
    if (!path)
        tci_inside_no_memory();
    return path;
}

/* Opened without waiting, and looked at again: it may have become something else. */
static int open_regular(int directory, const char *name, int flags)
{
    struct stat status;
    int fd = openat(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* `shown` is the path as the model knows it, `below` the one below the searched directory. */
static void search_name(struct tci_search *search, int directory, const char *name,
                        const char *shown, const char *below, unsigned depth)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(status.st_mode)) {
        int fd = depth < DEPTH_MAX ? tci_files_enter(directory, name) : -1;
        if (fd < 0) {
            search->skipped++;
            return;
        }
        search_directory(search, fd, shown, below, depth + 1);
        close(fd);
    } else if (S_ISREG(status.st_mode) && tci_files_glob_matches(search->glob, below, name)) {
        int fd = open_regular(directory, name, O_NOFOLLOW);
        if (fd >= 0)
            tci_search_file(search, fd, shown);
        else
            search->skipped++;
    }
}

static void search_directory(struct tci_search *search, int directory, const char *shown,
                             const char *below, unsigned depth)
{
    struct tci_files_names names;
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    if (!arena)
        tci_inside_no_memory();
    if (tci_files_names(arena, directory, search->hidden, &names) != 0)
        search->skipped++;
    else if (names.truncated)
        search->stopped = "names";
    for (size_t i = 0; i < names.count && !tci_search_is_over(search); i++)
        search_name(search, directory, names.names[i], join(arena, shown, names.names[i]),
                    join(arena, below, names.names[i]), depth);
    free(names.names);
}

/* The path that was given; a link there is followed. */
static void search_path(struct tci_search *search, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        tci_inside_fail_path(errno, path, "be searched");
    if (!S_ISDIR(status.st_mode)) {
        int file = tci_files_open(path, &status);
        tci_search_file(search, file, path);
        return;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        tci_inside_fail_path(errno, path, "be searched");
    search_directory(search, fd, strcmp(path, ".") == 0 ? "" : path, "", 1);
    close(fd);
}

static void read_arguments(const json_t *arguments, struct tci_search *search)
{
    search->pattern = tci_inside_string(arguments, "pattern", true, &search->pattern_length);
    if (!search->pattern_length || search->pattern_length > PATTERN_MAX)
        tci_inside_fail("the argument \"pattern\" must have 1 to %d bytes", PATTERN_MAX);
    search->matcher = tci_matcher_new(search->pattern, search->pattern_length,
                                      tci_inside_bool(arguments, "literal", false),
                                      tci_inside_bool(arguments, "case_sensitive", true));
    size_t length;
    const char *glob = tci_inside_string(arguments, "glob", false, &length);
    if (length > PATTERN_MAX)
        tci_inside_fail("the argument \"glob\" is longer than %d bytes", PATTERN_MAX);
    search->glob = tci_files_glob_compile(glob, length);
    search->context = (size_t)tci_inside_integer(arguments, "context", 0, CONTEXT_MAX, 0);
    search->matches = tci_inside_integer(arguments, "limit", 1, LIMIT_MAX, LIMIT);
    search->hidden = tci_inside_bool(arguments, "hidden", false);
}

void tci_files_search(const json_t *arguments)
{
    struct tci_search search = { .out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX), .bytes = BYTES };
    struct timespec time;
    const char *path = tci_inside_path(arguments, "path", ".");
    read_arguments(arguments, &search);
    search.json.out = &search.out;
    search.window = tci_inside_alloc(TCI_SEARCH_WINDOW);
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    search.deadline = ((int64_t)time.tv_sec + SECONDS) * 1000000000 + time.tv_nsec;
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(ALARM);
    tci_json_object_begin(&search.json, NULL);
    tci_json_array_begin(&search.json, "matches");
    search_path(&search, path);
    tci_json_array_end(&search.json);
    tci_json_unsigned(&search.json, "files_searched", search.files);
    tci_json_unsigned(&search.json, "files_skipped", search.skipped);
    tci_json_bool(&search.json, "truncated", search.stopped != NULL);
    if (search.stopped)
        tci_json_string(&search.json, "stopped_by", search.stopped);
    tci_json_object_end(&search.json);
    tci_buf_char(&search.out, '\n');
    tci_inside_answer(&search.out);
}
