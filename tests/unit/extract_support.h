/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of core/extract.h share. Each test has a cage's tree and an output
 * directory of its own, and leaves no descriptor open.
 */
#ifndef TCI_TESTS_EXTRACT_SUPPORT_H
#define TCI_TESTS_EXTRACT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/sys.h"
#include "core/extract.h"

struct place {
    char top[32];
    int cage, out, victim; /* directories; `victim` is what nobody may touch */
    unsigned descriptors;  /* that were open before */
    struct tci_arena *arena;
    struct tci_sys sys;
};

static bool no_tmpfile;

/* Stands before the C library's: some file systems have no files without names. */
int openat(int directory, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

static inline unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

static inline int make_directory(int at, const char *path)
{
    int fd;
    assert_int_equal(mkdirat(at, path, 0755), 0);
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    place->descriptors = count_descriptors();
    (void)strcpy(place->top, "/tmp/test_extract.XXXXXX");
    assert_non_null(mkdtemp(place->top));
    int top = open(place->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place->cage = make_directory(top, "cage");
    place->out = make_directory(top, "out");
    place->victim = make_directory(top, "victim");
    (void)close(top);
    place->arena = tci_arena_new();
    assert_non_null(place->arena);
    place->sys = tci_sys;
    no_tmpfile = false;
    *state = place;
    return 0;
}

/* With handles: some paths here are longer than any call takes. */
static inline void remove_tree(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) < 0)
            remove_tree(fd, entry->d_name);
    }
    (void)closedir(directory);
    assert_int_equal(unlinkat(at, name, AT_REMOVEDIR), 0);
}

static inline int tear_down(void **state)
{
    struct place *place = *state;
    unsigned left;
    tci_sys = place->sys;
    (void)close(place->cage);
    (void)close(place->out);
    (void)close(place->victim);
    remove_tree(AT_FDCWD, place->top);
    tci_arena_free(place->arena);
    left = count_descriptors() - place->descriptors;
    free(place);
    return left == 0 ? 0 : -1;
}

static inline void write_file(int at, const char *path, const char *text)
{
    int fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static inline void make_directories(int at, const char *path)
{
    assert_int_equal(mkdirat(at, path, 0755), 0);
}

/* The text of a file; NULL when there is none, or when it is a link. */
static inline const char *read_file(struct place *place, int at, const char *path)
{
    char *text = tci_arena_alloc(place->arena, 4096);
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n;
    assert_non_null(text);
    if (fd < 0)
        return NULL;
    n = read(fd, text, 4095);
    (void)close(fd);
    return n < 0 ? NULL : text;
}

static inline unsigned count_entries(int at)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fdopendir(fd);
    unsigned count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count - 2;
}

/* Beneath the cage's root, without links, as the backends do it. */
static inline int open_in_cage(void *context, const char *path, struct tc_error *reterr)
{
    const struct place *place = context;
    int fd = tci_sys.open_beneath(place->cage, path[1] ? path + 1 : ".",
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        tci_error_errno(reterr, errno, "cannot open %s", path);
    return fd;
}

/* The patterns end with NULL. */
static inline struct tci_extract settings(struct place *place, ...)
{
    const char **globs = tci_arena_new_array(place->arena, 8, const char *);
    struct tci_extract what = {
        .globs = globs,
        .cwd = "/",
        .max_file = 1000000,
        .max_files = 1000,
        .out = place->out,
        .out_path = "out",
        .open_directory = open_in_cage,
        .context = place,
    };
    va_list args;
    assert_non_null(globs);
    va_start(args, place);
    while ((globs[what.glob_count] = va_arg(args, const char *)) != NULL)
        what.glob_count++;
    va_end(args);
    return what;
}

static inline struct tci_extracted run(struct place *place, const struct tci_extract *what)
{
    struct tci_extracted found;
    struct tc_error error = { 0 };
    if (tci_extract(what, place->arena, &found, &error) < 0)
        fail_msg("%s", error.message);
    return found;
}

static inline struct tci_extracted extract(struct place *place, const char *glob)
{
    struct tci_extract what = settings(place, glob, NULL);
    return run(place, &what);
}

static inline void assert_skipped(const struct tci_extracted *found, const char *target,
                                  const char *reason)
{
    for (size_t i = 0; i < found->skipped_count; i++)
        if (strcmp(found->skipped[i].target, target) == 0 &&
            strstr(found->skipped[i].rule, reason)) {
            assert_string_equal(found->skipped[i].kind, "output");
            return;
        }
    fail_msg("%s is not among %zu skipped, because it \"%s\"", target, found->skipped_count,
             reason);
}

/* Nothing is taken, one thing is skipped, nothing is left in `out`. */
static inline void assert_refused(struct place *place, const char *glob, const char *target,
                                  const char *reason)
{
    struct tci_extracted found = extract(place, glob);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.skipped_count, 1);
    assert_skipped(&found, target, reason);
    assert_int_equal(count_entries(place->out), 0);
}

static struct place *changing;
static unsigned reads;

static inline ssize_t read_and_grow(int fd, void *buffer, size_t size)
{
    ssize_t n = read(fd, buffer, size);
    if (reads++ == 0)
        write_file(changing->cage, "file", "longer than it was before");
    return n;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
