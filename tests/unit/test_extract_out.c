/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of core/extract.h: the output directory, what is planted in it, and that what cannot
 * be written leaves nothing.
 */
#include "extract_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/sys.h"
#include "core/extract.h"

/* ---- the output directory --------------------------------------------------------------------- */

static void test_planted_links_in_out_are_not_followed(void **state)
{
    struct place *place = *state;
    struct tci_extracted found;
    char target[64];
    write_file(place->victim, "file", "untouched");
    make_directories(place->cage, "sub");
    make_directories(place->cage, "deep");
    make_directories(place->cage, "deep/er");
    write_file(place->cage, "sub/file", "attack");
    write_file(place->cage, "deep/er/file", "attack");
    write_file(place->cage, "file", "attack");
    write_file(place->cage, "dangling", "attack");
    (void)snprintf(target, sizeof target, "%s/victim", place->top);
    assert_int_equal(symlinkat(target, place->out, "sub"), 0);
    make_directories(place->out, "deep");
    assert_int_equal(symlinkat("../../victim", place->out, "deep/er"), 0);
    assert_int_equal(symlinkat("../victim/file", place->out, "file"), 0);
    assert_int_equal(symlinkat("../victim/new", place->out, "dangling"), 0);
    found = extract(place, "/**");
    assert_string_equal(read_file(place, place->victim, "file"), "untouched");
    assert_int_equal(count_entries(place->victim), 1);
    assert_int_equal(found.count, 2);
    assert_skipped(&found, "/sub/file", "in its place");
    assert_skipped(&found, "/deep/er/file", "in its place");
    /* The links themselves are replaced by the files. */
    assert_string_equal(read_file(place, place->out, "file"), "attack");
    assert_string_equal(read_file(place, place->out, "dangling"), "attack");
    assert_int_equal(count_entries(place->out), 4);
}

static void replace_and_collide(struct place *place)
{
    struct tci_extracted found;
    write_file(place->cage, "a", "new");
    write_file(place->cage, "b", "new");
    make_directories(place->cage, "c");
    write_file(place->cage, "c/x", "new");
    write_file(place->out, "a", "old, and longer");
    make_directories(place->out, "b");  /* a directory where a file belongs */
    write_file(place->out, "c", "old"); /* and the other way round */
    found = extract(place, "/**");
    assert_int_equal(found.count, 1);
    assert_string_equal(read_file(place, place->out, "a"), "new");
    assert_string_equal(read_file(place, place->out, "c"), "old");
    assert_skipped(&found, "/b", "in its place");
    assert_skipped(&found, "/c/x", "in its place");
    assert_int_equal(count_entries(place->out), 3);
}

static void test_what_is_there_is_replaced_or_left(void **state)
{
    replace_and_collide(*state);
}

static void test_file_systems_without_nameless_files_work_too(void **state)
{
    struct place *place = *state;
    no_tmpfile = true;
    replace_and_collide(place);
    write_file(place->cage, "file", "12345678");
    changing = place;
    reads = 0;
    tci_sys.read = read_and_grow;
    struct tci_extracted found = extract(place, "/file");
    assert_skipped(&found, "/file", "changed");
    assert_int_equal(count_entries(place->out), 3);
}

static void test_old_readers_keep_the_old_file(void **state)
{
    struct place *place = *state;
    char text[8] = "";
    int fd;
    write_file(place->cage, "a", "new");
    write_file(place->out, "a", "old");
    fd = openat(place->out, "a", O_RDONLY | O_CLOEXEC);
    (void)extract(place, "/a");
    assert_int_equal(read(fd, text, sizeof text), 3);
    assert_string_equal(text, "old");
    (void)close(fd);
}

static ssize_t read_and_die(int fd, void *buffer, size_t size)
{
    ssize_t n = read(fd, buffer, size > 10 ? 10 : size);
    if (++reads == 3)
        (void)raise(SIGKILL);
    return n;
}

static void test_sudden_death_leaves_nothing_in_out(void **state)
{
    struct place *place = *state;
    int status;
    pid_t child;
    write_file(place->cage, "a", "a text of more than thirty characters");
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        reads = 0;
        tci_sys.read = read_and_die;
        (void)extract(place, "/a");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(count_entries(place->out), 0);
}

/* In a child: writes fail behind 64 KiB. 0: as it should be. */
static int run_out_of_space(struct place *place, int errnum)
{
    struct tci_extract what = settings(place, "/*", NULL);
    struct tc_error error = { 0 };
    struct tci_extracted found;
    const char *text = strerrordesc_np(errnum);
    if (tci_extract(&what, place->arena, &found, &error) != -1)
        return 1;
    if (error.code != TC_ERROR_IO || !strstr(error.message, text) || !error.remedy[0])
        return 2;
    /* The small one came first and is whole. */
    if (found.count != 1 || strcmp(found.files[0].path, "/a") != 0)
        return 3;
    if (strcmp(read_file(place, place->out, "a"), "small") != 0 || count_entries(place->out) != 1)
        return 4;
    return 0;
}

static void fill_cage(struct place *place)
{
    int fd = openat(place->cage, "b", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, 900000), 0);
    (void)close(fd);
    write_file(place->cage, "a", "small");
}

static void run_child_out_of_space(struct place *place, int (*child_does)(struct place *))
{
    int status;
    pid_t child;
    fill_cage(place);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(child_does(place));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int with_file_limit(struct place *place)
{
    struct rlimit limit = { 65536, 65536 };
    (void)signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &limit) < 0 ? 5 : run_out_of_space(place, EFBIG);
}

static void test_file_that_cannot_be_written_leaves_nothing(void **state)
{
    run_child_out_of_space(*state, with_file_limit);
}

static void test_named_file_that_cannot_be_written_leaves_nothing(void **state)
{
    no_tmpfile = true;
    run_child_out_of_space(*state, with_file_limit);
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    (void)tci_close(fd);
    return n < 0 ? -1 : 0;
}

/* To a namespace where mounts may be made; who is not root needs one of users too. */
static int leave_mounts(void)
{
    char users[32], groups[32];
    bool root = geteuid() == 0;
    (void)snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    (void)snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    if (unshare(root ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -1;
    if (!root && (write_text("/proc/self/setgroups", "deny") < 0 ||
                  write_text("/proc/self/uid_map", users) < 0 ||
                  write_text("/proc/self/gid_map", groups) < 0))
        return -1;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* 77: this host lets us mount nothing. */
static int on_small_tmpfs(struct place *place)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/out", place->top);
    if (leave_mounts() < 0 || mount("tmpfs", path, "tmpfs", 0, "size=64k") < 0)
        return 77;
    place->out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return place->out < 0 ? 5 : run_out_of_space(place, ENOSPC);
}

static void test_full_file_system_is_an_error_that_says_so(void **state)
{
    run_child_out_of_space(*state, on_small_tmpfs);
}

static void test_directory_that_is_gone_is_an_error(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/a", NULL);
    struct tc_error error = { 0 };
    struct tci_extracted found;
    write_file(place->cage, "a", "x");
    make_directories(place->out, "gone");
    what.out = openat(place->out, "gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(unlinkat(place->out, "gone", AT_REMOVEDIR), 0);
    assert_int_equal(tci_extract(&what, place->arena, &found, &error), -1);
    assert_non_null(strstr(error.message, "out"));
    (void)close(what.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_planted_links_in_out_are_not_followed),
        TEST(test_what_is_there_is_replaced_or_left),
        TEST(test_file_systems_without_nameless_files_work_too),
        TEST(test_old_readers_keep_the_old_file),
        TEST(test_sudden_death_leaves_nothing_in_out),
        TEST(test_file_that_cannot_be_written_leaves_nothing),
        TEST(test_named_file_that_cannot_be_written_leaves_nothing),
        TEST(test_full_file_system_is_an_error_that_says_so),
        TEST(test_directory_that_is_gone_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
