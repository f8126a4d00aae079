/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of core/extract.h with files that change, signals that come and calls that fail
 * while it runs: attacks on the one who takes.
 */
#include "extract_support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/sys.h"
#include "core/extract.h"

/* ---- changes while it runs -------------------------------------------------------------------- */

static ssize_t read_and_shrink(int fd, void *buffer, size_t size)
{
    if (reads++ == 0)
        write_file(changing->cage, "file", "less");
    return read(fd, buffer, size);
}

static ssize_t read_and_rewrite(int fd, void *buffer, size_t size)
{
    ssize_t n = read(fd, buffer, size);
    struct timespec pause = { .tv_nsec =
                                  20000000 }; /* more than a tick of the file system's clock */
    if (reads++ == 0) {
        (void)nanosleep(&pause, NULL);
        write_file(changing->cage, "file", "XXXXXXXX");
    }
    return n;
}

static void test_file_that_changes_is_not_taken(void **state)
{
    static ssize_t (*const changes[])(int, void *, size_t) = { read_and_grow, read_and_shrink,
                                                               read_and_rewrite };
    struct place *place = *state;
    changing = place;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        write_file(place->cage, "file", "12345678");
        reads = 0;
        tci_sys.read = changes[i];
        assert_refused(place, "/file", "/file", "changed while it was read");
        tci_sys = place->sys;
    }
    assert_int_equal(extract(place, "/file").count, 1);
}

static size_t asked_for;

static ssize_t read_without_end(int fd, void *buffer, size_t size)
{
    (void)fd;
    memset(buffer, 'x', size);
    asked_for += size;
    return asked_for < 10000000 ? (ssize_t)size : 0;
}

static void test_no_more_is_read_than_the_size_that_was_judged(void **state)
{
    struct place *place = *state;
    write_file(place->cage, "file", "12345678");
    asked_for = 0;
    tci_sys.read = read_without_end;
    assert_refused(place, "/file", "/file", "changed while it was read");
    assert_int_equal(asked_for, 9);
}

/* Between looking at the file and opening it. */
static int open_and_swap(int directory, const char *path, int flags)
{
    int fd = changing->sys.open_beneath(directory, path, flags);
    if ((flags & O_PATH) && strcmp(path, "file") == 0)
        (void)renameat(changing->cage, "fifo", changing->cage, "file");
    return fd;
}

static void test_fifo_swapped_in_at_the_last_moment_does_not_block(void **state)
{
    struct place *place = *state;
    write_file(place->cage, "file", "12345678");
    assert_int_equal(mkfifoat(place->cage, "fifo", 0666), 0);
    changing = place;
    tci_sys.open_beneath = open_and_swap;
    (void)alarm(30); /* instead of waiting for ever */
    assert_refused(place, "/file", "/file", "FIFO");
    (void)alarm(0);
}

/* A writer that never stops: whatever comes out is a file that was there at some moment. */
static atomic_bool stop;

static void *append_for_ever(void *argument)
{
    const struct place *place = argument;
    char block[4096];
    memset(block, 'x', sizeof block);
    while (!atomic_load(&stop)) {
        int fd = openat(place->cage, "log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        for (int i = 0; i < 200 && !atomic_load(&stop); i++)
            if (write(fd, block, sizeof block) < 0)
                break;
        (void)close(fd);
    }
    return NULL;
}

static void test_growing_file_ends(void **state)
{
    struct place *place = *state;
    pthread_t thread;
    write_file(place->cage, "log", "x");
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, append_for_ever, place), 0);
    for (int i = 0; i < 50; i++) {
        struct tci_extracted found = extract(place, "/log");
        struct stat st;
        assert_int_equal(found.count + found.skipped_count, 1);
        if (found.count == 1) {
            assert_int_equal(fstatat(place->out, "log", &st, 0), 0);
            assert_int_equal(st.st_size, found.files[0].size);
        }
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Swaps a directory, and a file, for links to the victim's, as fast as it can. */
static void *swap_for_ever(void *argument)
{
    const struct place *place = argument;
    while (!atomic_load(&stop)) {
        (void)renameat2(place->cage, "a/d", place->cage, "a/link", RENAME_EXCHANGE);
        (void)renameat2(place->cage, "a/f", place->cage, "a/flink", RENAME_EXCHANGE);
        (void)renameat2(place->cage, "a", place->cage, "alink", RENAME_EXCHANGE);
        (void)renameat2(place->cage, "a", place->cage, "alink", RENAME_EXCHANGE);
    }
    return NULL;
}

static void test_swapped_links_never_lead_outside(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/a/d/f", "/a/f", "/*/*/f", "/**", NULL);
    uint64_t end;
    size_t taken = 0, rounds = 0;
    pthread_t thread;
    make_directories(place->cage, "a");
    make_directories(place->cage, "a/d");
    write_file(place->cage, "a/d/f", "harmless");
    write_file(place->cage, "a/f", "harmless");
    make_directories(place->victim, "d");
    write_file(place->victim, "f", "SECRET");
    write_file(place->victim, "d/f", "SECRET");
    assert_int_equal(symlinkat("../../victim/d", place->cage, "a/link"), 0);
    assert_int_equal(symlinkat("../../victim/f", place->cage, "a/flink"), 0);
    assert_int_equal(symlinkat("../victim", place->cage, "alink"), 0);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, swap_for_ever, place), 0);
    for (end = tci_clock_us() + 2000000; tci_clock_us() < end || taken == 0; rounds++) {
        tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
        struct tc_error error = { 0 };
        struct tci_extracted found;
        assert_int_equal(tci_extract(&what, arena, &found, &error), 0);
        for (size_t i = 0; i < found.count; i++) {
            assert_int_equal(found.files[i].size, strlen("harmless"));
            assert_string_equal(read_file(place, place->out, found.files[i].path + 1), "harmless");
        }
        taken += found.count;
        assert_true(rounds < 1000000);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static unsigned interruptions;

static int interrupted_open(int directory, const char *path, int flags)
{
    if (interruptions++ % 3 != 2) {
        errno = interruptions % 2 ? EINTR : EAGAIN;
        return -1;
    }
    return changing->sys.open_beneath(directory, path, flags);
}

static ssize_t interrupted_read(int fd, void *buffer, size_t size)
{
    if (interruptions++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, buffer, size > 3 ? 3 : size); /* and short */
}

static int open_in_cage_plainly(void *context, const char *path, struct tc_error *reterr)
{
    const struct place *place = context;
    (void)reterr;
    return openat(place->cage, path[1] ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void test_signals_do_not_end_it(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/a/b/*", NULL);
    struct tci_extracted found;
    what.open_directory = open_in_cage_plainly;
    make_directories(place->cage, "a");
    make_directories(place->cage, "a/b");
    write_file(place->cage, "a/b/c", "0123456789");
    changing = place;
    tci_sys.open_beneath = interrupted_open;
    tci_sys.read = interrupted_read;
    found = run(place, &what);
    tci_sys = place->sys;
    assert_int_equal(found.count, 1);
    assert_string_equal(read_file(place, place->out, "a/b/c"), "0123456789");
}

static int open_errnum;

static int failing_open(int directory, const char *path, int flags)
{
    (void)directory;
    (void)path;
    (void)flags;
    errno = open_errnum;
    return -1;
}

static void test_errors_that_concern_everything_end_it(void **state)
{
    static const struct {
        int errnum;
        enum tc_error_code code;
        const char *text;
    } cases[] = {
        { ENOSYS, TC_ERROR_UNSUPPORTED, "openat2" },
        { EMFILE, TC_ERROR_IO, "open" },
        { ENOMEM, TC_ERROR_NO_MEMORY, "memory" },
    };
    struct place *place = *state;
    struct tci_extract what = settings(place, "/*", NULL);
    write_file(place->cage, "a", "x");
    what.open_directory = open_in_cage_plainly;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_error error = { 0 };
        struct tci_extracted found;
        open_errnum = cases[i].errnum;
        tci_sys.open_beneath = failing_open;
        assert_int_equal(tci_extract(&what, place->arena, &found, &error), -1);
        tci_sys = place->sys;
        assert_int_equal(error.code, cases[i].code);
        assert_non_null(strstr(error.message, cases[i].text));
        assert_string_not_equal(error.remedy, "");
        assert_int_equal(found.count, 0);
        assert_int_equal(count_entries(place->out), 0);
    }
    /* One that concerns a file concerns no other. */
    open_errnum = EACCES;
    tci_sys.open_beneath = failing_open;
    struct tci_extracted found = run(place, &what);
    tci_sys = place->sys;
    assert_skipped(&found, "/a", "ermission");
}

static int open_nothing(void *context, const char *path, struct tc_error *reterr)
{
    (void)context;
    errno = ENOENT;
    return tci_error_errno(reterr, ENOENT, "opening %s", path);
}

static void test_cage_that_is_gone_is_not_an_empty_one(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/work/*", NULL);
    struct tc_error error = { 0 };
    struct tci_extracted found;
    what.open_directory = open_nothing;
    assert_int_equal(tci_extract(&what, place->arena, &found, &error), -1);
    assert_int_equal(error.code, TC_ERROR_IO);
    assert_int_equal(found.count, 0);
}

static int open_unreachable(void *context, const char *path, struct tc_error *reterr)
{
    (void)context;
    return tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s cannot be reached", path);
}

static void test_files_that_cannot_be_reached_are_not_none(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/work/*", NULL);
    struct tc_error error = { 0 };
    struct tci_extracted found;
    what.open_directory = open_unreachable;
    assert_int_equal(tci_extract(&what, place->arena, &found, &error), -1);
    assert_non_null(strstr(error.message, "/work cannot be reached"));
    assert_int_equal(found.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_that_changes_is_not_taken),
        TEST(test_no_more_is_read_than_the_size_that_was_judged),
        TEST(test_fifo_swapped_in_at_the_last_moment_does_not_block),
        TEST(test_growing_file_ends),
        TEST(test_swapped_links_never_lead_outside),
        TEST(test_signals_do_not_end_it),
        TEST(test_errors_that_concern_everything_end_it),
        TEST(test_cage_that_is_gone_is_not_an_empty_one),
        TEST(test_files_that_cannot_be_reached_are_not_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
