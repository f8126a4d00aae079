/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of core/extract.h: what is taken, what is not, and attacks on the one who takes it.
 * Each test has a cage's tree and an output directory of its own, and leaves no descriptor open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sha256.h"
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

static unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

static int make_directory(int at, const char *path)
{
    int fd;
    assert_int_equal(mkdirat(at, path, 0755), 0);
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int set_up(void **state)
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
static void remove_tree(int at, const char *name)
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

static int tear_down(void **state)
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

static void write_file(int at, const char *path, const char *text)
{
    int fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void make_directories(int at, const char *path)
{
    assert_int_equal(mkdirat(at, path, 0755), 0);
}

/* The text of a file; NULL when there is none, or when it is a link. */
static const char *read_file(struct place *place, int at, const char *path)
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

static unsigned count_entries(int at)
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
static int open_in_cage(void *context, const char *path, struct tc_error *reterr)
{
    const struct place *place = context;
    int fd = tci_sys.open_beneath(place->cage, path[1] ? path + 1 : ".",
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        tci_error_errno(reterr, errno, "cannot open %s", path);
    return fd;
}

/* The patterns end with NULL. */
static struct tci_extract settings(struct place *place, ...)
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

static struct tci_extracted run(struct place *place, const struct tci_extract *what)
{
    struct tci_extracted found;
    struct tc_error error = { 0 };
    if (tci_extract(what, place->arena, &found, &error) < 0)
        fail_msg("%s", error.message);
    return found;
}

static struct tci_extracted extract(struct place *place, const char *glob)
{
    struct tci_extract what = settings(place, glob, NULL);
    return run(place, &what);
}

static void assert_skipped(const struct tci_extracted *found, const char *target,
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
static void assert_refused(struct place *place, const char *glob, const char *target,
                           const char *reason)
{
    struct tci_extracted found = extract(place, glob);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.skipped_count, 1);
    assert_skipped(&found, target, reason);
    assert_int_equal(count_entries(place->out), 0);
}

/* ---- what is taken ---------------------------------------------------------------------------- */

static void test_files_are_saved_with_hash_size_and_type(void **state)
{
    struct place *place = *state;
    struct tci_extracted found;
    struct stat st;
    mode_t mask = umask(022);
    make_directories(place->cage, "work");
    make_directories(place->cage, "work/deep");
    write_file(place->cage, "work/a.txt", "hello");
    write_file(place->cage, "work/deep/b.csv", "1,2\n");
    write_file(place->cage, "work/c.bin", "not named");
    found = extract(place, "/work/**/*.[tc][xs][tv]");
    (void)umask(mask);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.skipped_count, 0);
    assert_string_equal(found.files[0].path, "/work/a.txt");
    assert_string_equal(found.files[0].saved, "out/work/a.txt");
    assert_string_equal(found.files[0].media_type, "text/plain");
    assert_int_equal(found.files[0].size, 5);
    assert_string_equal(found.files[0].sha256,
                        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    assert_string_equal(found.files[1].path, "/work/deep/b.csv");
    assert_string_equal(found.files[1].media_type, "text/csv");
    assert_string_equal(read_file(place, place->out, "work/a.txt"), "hello");
    assert_string_equal(read_file(place, place->out, "work/deep/b.csv"), "1,2\n");
    /* 0755 in the cage: nothing that can be executed comes out. */
    assert_int_equal(fstatat(place->out, "work/a.txt", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(fstatat(place->out, "work/deep", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
}

static void test_umask_of_the_caller_holds(void **state)
{
    struct place *place = *state;
    struct stat st;
    mode_t mask = umask(077);
    write_file(place->cage, "a", "x");
    (void)extract(place, "/a");
    (void)umask(mask);
    assert_int_equal(fstatat(place->out, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_files_are_ordered_and_listed_once(void **state)
{
    static const char *const names[] = { "z", "b", "a", "m", "aa", "B" };
    static const char *const expected[] = { "/B", "/a", "/aa", "/b", "/m", "/z" };
    struct place *place = *state;
    struct tci_extract what = settings(place, "/[m-z]", "/*", "/a", "/**", "/*", NULL);
    struct tci_extracted found;
    for (size_t i = 0; i < tci_array_size(names); i++)
        write_file(place->cage, names[i], names[i]);
    found = run(place, &what);
    assert_int_equal(found.count, tci_array_size(expected));
    for (size_t i = 0; i < found.count; i++)
        assert_string_equal(found.files[i].path, expected[i]);
}

static void test_pattern_that_matches_nothing_is_no_error(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/nothing", "/no/such/directory/*", "/file/below",
                                       "/*.png", NULL);
    struct tci_extracted found;
    write_file(place->cage, "file", "x");
    found = run(place, &what);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.skipped_count, 0);
    what = settings(place, NULL);
    found = run(place, &what);
    assert_int_equal(found.count, 0);
    assert_int_equal(count_entries(place->out), 0);
}

static void test_without_out_files_are_only_listed(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/a", NULL);
    struct tci_extracted found;
    what.out = -1;
    what.out_path = NULL;
    write_file(place->cage, "a", "abc");
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_null(found.files[0].saved);
    assert_string_equal(found.files[0].sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(count_entries(place->out), 0);
}

static void test_empty_file_is_a_file(void **state)
{
    struct place *place = *state;
    struct tci_extracted found;
    write_file(place->cage, "empty", "");
    found = extract(place, "/empty");
    assert_int_equal(found.count, 1);
    assert_int_equal(found.files[0].size, 0);
    assert_string_equal(read_file(place, place->out, "empty"), "");
}

static void test_large_file_is_copied_byte_for_byte(void **state)
{
    enum { size = 3000001 };
    struct place *place = *state;
    struct tci_extract what = settings(place, "/large", NULL);
    struct tci_extracted found;
    char *bytes = malloc(size), *copy = malloc(size + 1), hash[TCI_SHA256_TEXT_MAX];
    int fd = openat(place->cage, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && bytes && copy);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 2654435761U >> 13);
    assert_int_equal(write(fd, bytes, size), size);
    (void)close(fd);
    what.max_file = size;
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    tci_sha256_text(bytes, size, hash);
    assert_string_equal(found.files[0].sha256, hash);
    fd = openat(place->out, "large", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, copy, size + 1), size);
    assert_memory_equal(copy, bytes, size);
    (void)close(fd);
    free(bytes);
    free(copy);
}

static void test_paths_are_relative_to_the_working_directory(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/work/*", "/etc/*", "*.log", "/workx/*", NULL);
    struct tci_extracted found;
    what.cwd = "/work";
    make_directories(place->cage, "work");
    make_directories(place->cage, "workx");
    make_directories(place->cage, "etc");
    write_file(place->cage, "work/a", "a");
    write_file(place->cage, "work/b.log", "b");
    write_file(place->cage, "workx/c", "c");
    write_file(place->cage, "etc/d", "d");
    found = run(place, &what);
    assert_int_equal(found.count, 4);
    assert_string_equal(found.files[0].path, "/etc/d");
    assert_string_equal(found.files[0].saved, "out/etc/d");
    assert_string_equal(found.files[1].saved, "out/a");
    assert_string_equal(found.files[2].saved, "out/b.log");
    assert_string_equal(found.files[3].saved, "out/workx/c");
    assert_string_equal(read_file(place, place->out, "workx/c"), "c");
}

static void test_two_files_are_not_saved_in_one_place(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/**", NULL);
    struct tci_extracted found;
    what.cwd = "/work";
    make_directories(place->cage, "work");
    make_directories(place->cage, "work/etc");
    make_directories(place->cage, "etc");
    write_file(place->cage, "work/etc/x", "of the working directory");
    write_file(place->cage, "etc/x", "of the root");
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.files[0].path, "/work/etc/x");
    assert_skipped(&found, "/etc/x", "another file");
    assert_string_equal(read_file(place, place->out, "etc/x"), "of the working directory");
}

static void test_working_directory_is_text_and_no_pattern(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "*", "./x", "../other/*", ".", NULL);
    struct tci_extracted found;
    what.cwd = "/[w]*";
    make_directories(place->cage, "[w]*");
    make_directories(place->cage, "w");
    make_directories(place->cage, "other");
    write_file(place->cage, "[w]*/x", "right");
    write_file(place->cage, "w/x", "wrong");
    write_file(place->cage, "other/x", "wrong");
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.files[0].path, "/[w]*/x");
    assert_string_equal(read_file(place, place->out, "x"), "right");
    assert_skipped(&found, "../other/*", "leads out");
    assert_skipped(&found, "/[w]*", "is a directory");
}

static void test_bad_patterns_are_said_and_do_not_stop_the_others(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "", "/a//b", "/../x", "/a\nb", "/", "/good", NULL);
    struct tci_extracted found;
    write_file(place->cage, "good", "x");
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.skipped_count, 5);
    assert_skipped(&found, "", "is empty");
    assert_skipped(&found, "/a//b", "empty component");
    assert_skipped(&found, "/../x", "above the root");
    assert_skipped(&found, "/a\\x0ab", "control character");
    assert_skipped(&found, "/", "is a directory");
}

static void test_named_directory_is_pointed_out(void **state)
{
    struct place *place = *state;
    make_directories(place->cage, "results");
    write_file(place->cage, "results/x", "x");
    assert_refused(place, "/results", "/results", "add /**");
}

/* ---- what is not ------------------------------------------------------------------------------ */

static void test_links_are_not_followed(void **state)
{
    struct place *place = *state;
    struct tci_extracted found;
    write_file(place->victim, "secret", "SECRET");
    make_directories(place->cage, "real");
    write_file(place->cage, "real/secret", "harmless");
    assert_int_equal(symlinkat("/etc/passwd", place->cage, "absolute"), 0);
    assert_int_equal(symlinkat("../victim/secret", place->cage, "upwards"), 0);
    assert_int_equal(symlinkat("../victim", place->cage, "directory"), 0);
    assert_int_equal(symlinkat("real", place->cage, "inside"), 0);
    assert_int_equal(symlinkat("self", place->cage, "self"), 0);
    assert_int_equal(symlinkat("/proc/self/fd/0", place->cage, "magic"), 0);
    found = extract(place, "/**");
    assert_int_equal(found.count, 1);
    assert_string_equal(found.files[0].path, "/real/secret");
    assert_int_equal(found.skipped_count, 6);
    assert_skipped(&found, "/absolute", "symbolic link");
    assert_skipped(&found, "/directory", "symbolic link");
    assert_skipped(&found, "/magic", "symbolic link");
    found = extract(place, "/*/secret");
    assert_int_equal(found.count, 1);
    assert_skipped(&found, "/directory", "symbolic link");
    assert_skipped(&found, "/inside", "symbolic link");
    assert_int_equal(count_entries(place->out), 1);
    /* Links in the plain part of a pattern. */
    found = extract(place, "/directory/secret");
    assert_int_equal(found.count, 0);
    assert_int_equal(found.skipped_count, 1);
    found = extract(place, "/absolute");
    assert_int_equal(found.count, 0);
    assert_skipped(&found, "/absolute", "symbolic link");
}

static void test_hard_link_is_a_file(void **state)
{
    struct place *place = *state;
    write_file(place->cage, "a", "x");
    assert_int_equal(linkat(place->cage, "a", place->cage, "b", 0), 0);
    assert_int_equal(extract(place, "/*").count, 2);
}

static void test_fifo_does_not_block(void **state)
{
    struct place *place = *state;
    uint64_t before = tci_clock_us();
    assert_int_equal(mkfifoat(place->cage, "fifo", 0666), 0);
    assert_refused(place, "/*", "/fifo", "FIFO");
    assert_refused(place, "/fifo", "/fifo", "FIFO");
    assert_true(tci_clock_us() - before < 5000000);
}

static void test_sockets_and_devices_are_not_opened(void **state)
{
    struct place *place = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct tci_extracted found;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/cage/socket", place->top);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(fd);
    /* Everyone may make this one; opening it would give ENXIO. */
    assert_int_equal(mknodat(place->cage, "device", S_IFCHR | 0666, makedev(0, 0)), 0);
    found = extract(place, "/*");
    assert_int_equal(found.count, 0);
    assert_int_equal(found.skipped_count, 2);
    assert_skipped(&found, "/socket", "socket");
    assert_skipped(&found, "/device", "device");
}

static void test_file_systems_of_the_kernel_are_not_entered(void **state)
{
    struct place *place = *state, root = *place;
    struct tci_extract what = settings(place, "/proc/versio?", "/proc/version", NULL);
    struct tci_extracted found;
    root.cage = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    what.context = &root;
    found = run(place, &what);
    (void)close(root.cage);
    assert_int_equal(found.count, 0);
    assert_skipped(&found, "/proc", "of the kernel");
}

static void test_size_is_judged_before_reading(void **state)
{
    struct place *place = *state;
    uint64_t before = tci_clock_us();
    int fd = openat(place->cage, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    (void)close(fd);
    assert_refused(place, "/sparse", "/sparse", "max_file");
    assert_true(tci_clock_us() - before < 5000000);
}

static void test_max_file_is_a_maximum(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/*", NULL);
    struct tci_extracted found;
    what.max_file = 5;
    write_file(place->cage, "five", "12345");
    write_file(place->cage, "six", "123456");
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.files[0].path, "/five");
    assert_skipped(&found, "/six", "max_file");
}

static void test_max_files_takes_the_first_by_name(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/*", NULL);
    struct tci_extracted found;
    char name[16];
    for (int i = 9; i >= 0; i--) {
        (void)snprintf(name, sizeof name, "%d", i);
        write_file(place->cage, name, name);
    }
    assert_int_equal(symlinkat("5", place->cage, "00"), 0); /* does not count */
    what.max_files = 3;
    found = run(place, &what);
    assert_int_equal(found.count, 3);
    assert_string_equal(found.files[0].path, "/0");
    assert_string_equal(found.files[2].path, "/2");
    assert_skipped(&found, "/3", "max_files");
    assert_skipped(&found, "/9", "max_files");
    assert_skipped(&found, "/00", "symbolic link");
    assert_int_equal(count_entries(place->out), 3);
    what.max_files = 0;
    assert_int_equal(run(place, &what).count, 0);
}

static void test_names_that_deceive_are_shown_escaped_and_not_taken(void **state)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {
        { "a\nb", "/a\\x0ab" },
        { "\x1b[31mred", "/\\x1b[31mred" },
        { "del\x7f", "/del\\x7f" },
        { "c1\xc2\x9b", "/c1\\xc2\\x9b" },
        { "bad\xff", "/bad\\xff" },
        { "half\xc3", "/half\\xc3" },
        { "\xe2\x80\xaegpj.exe", "/\\xe2\\x80\\xaegpj.exe" },
        { "line\xe2\x80\xa8", "/line\\xe2\\x80\\xa8" },
    };
    struct place *place = *state;
    struct tci_extracted found;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        write_file(place->cage, cases[i].name, "x");
    write_file(place->cage, "caf\xc3\xa9 \xf0\x9f\x8e\xb2 $(id) 'q' \\n -rf", "fine");
    found = extract(place, "/*");
    assert_int_equal(found.count, 1);
    assert_int_equal(found.skipped_count, tci_array_size(cases));
    for (size_t i = 0; i < tci_array_size(cases); i++)
        assert_skipped(&found, cases[i].shown, "characters");
    assert_int_equal(count_entries(place->out), 1);
}

static void test_hidden_files_are_taken_only_when_named(void **state)
{
    struct place *place = *state;
    make_directories(place->cage, ".git");
    write_file(place->cage, ".git/config", "x");
    write_file(place->cage, ".env", "x");
    assert_int_equal(extract(place, "/**").count, 0);
    assert_int_equal(extract(place, "/.env").count, 1);
    assert_int_equal(extract(place, "/.*/config").count, 1);
}

/* ---- no end ----------------------------------------------------------------------------------- */

static void test_depth_has_a_maximum(void **state)
{
    struct place *place = *state;
    char path[400] = "d", deepest[400] = "";
    struct tci_extracted found;
    for (int depth = 1; depth <= 70; depth++) {
        make_directories(place->cage, path);
        (void)snprintf(deepest, sizeof deepest, "%s/f", path);
        write_file(place->cage, deepest, "x");
        strcat(path, "/d");
    }
    found = extract(place, "/**");
    assert_int_equal(found.count, TCI_EXTRACT_DEPTH_MAX);
    assert_int_equal(found.skipped_count, 1);
    assert_non_null(strstr(found.skipped[0].rule, "too deep"));
    /* A path that is written down is not walked: it is opened. */
    (void)snprintf(path, sizeof path, "/%s", deepest);
    assert_int_equal(extract(place, path).count, 1);
}

static void test_paths_have_a_maximum(void **state)
{
    struct place *place = *state;
    char name[250];
    int at = dup(place->cage);
    struct tci_extracted found;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        int next = make_directory(at, name);
        (void)close(at);
        at = next;
        write_file(at, "f", "x");
    }
    (void)close(at);
    found = extract(place, "/**");
    assert_int_equal(found.count, 16);
    assert_int_equal(found.skipped_count, 1);
    assert_non_null(strstr(found.skipped[0].rule, "4095"));
}

static void test_entries_have_a_maximum(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/many/*.png", "/many/7", NULL);
    struct tci_extracted found;
    char name[16];
    uint64_t before;
    int many;
    make_directories(place->cage, "many");
    many = openat(place->cage, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    write_file(many, "0", "x");
    for (int i = 1; i <= TCI_EXTRACT_ENTRIES_MAX + 100; i++) {
        /* Links to a few files: quicker to make than files, and as many entries. */
        (void)snprintf(name, sizeof name, "%d", i);
        if (linkat(many, "0", many, name, 0) < 0) {
            assert_int_equal(errno, EMLINK);
            assert_int_equal(unlinkat(many, "0", 0), 0);
            write_file(many, "0", "x");
        }
    }
    (void)close(many);
    before = tci_clock_us();
    found = run(place, &what);
    /* What is named plainly is found among any number. */
    assert_int_equal(found.count, 1);
    assert_int_equal(found.skipped_count, 1);
    assert_skipped(&found, "/many", "100000 entries");
    what = settings(place, "/**", NULL);
    found = run(place, &what);
    assert_int_equal(found.count, what.max_files);
    assert_int_equal(found.skipped_count, TCI_EXTRACT_SKIPPED_MAX + 1);
    assert_string_equal(found.skipped[TCI_EXTRACT_SKIPPED_MAX].kind, "more");
    assert_true(tci_clock_us() - before < 30000000);
}

static void test_memory_for_paths_has_a_maximum(void **state)
{
    struct place *place = *state;
    char name[250], file[32];
    int at = dup(place->cage);
    struct tci_extract what = settings(place, "/**", NULL);
    struct tci_extracted found;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 15; i++) {
        int next = make_directory(at, name);
        (void)close(at);
        at = next;
    }
    for (int i = 0; i < TCI_EXTRACT_MATCH_BYTES_MAX / (15 * 250) + 50; i++) {
        (void)snprintf(file, sizeof file, "%d", i);
        write_file(at, file, "");
    }
    (void)close(at);
    what.max_files = 1;
    found = run(place, &what);
    assert_int_equal(found.count, 1);
    assert_true(found.skipped_count > 1);
    assert_non_null(strstr(found.skipped[0].rule, "too many files match"));
}

/* ---- changes while it runs -------------------------------------------------------------------- */

static struct place *changing;
static unsigned reads;

static ssize_t read_and_grow(int fd, void *buffer, size_t size)
{
    ssize_t n = read(fd, buffer, size);
    if (reads++ == 0)
        write_file(changing->cage, "file", "longer than it was before");
    return n;
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_files_are_saved_with_hash_size_and_type),
        TEST(test_umask_of_the_caller_holds),
        TEST(test_files_are_ordered_and_listed_once),
        TEST(test_pattern_that_matches_nothing_is_no_error),
        TEST(test_without_out_files_are_only_listed),
        TEST(test_empty_file_is_a_file),
        TEST(test_large_file_is_copied_byte_for_byte),
        TEST(test_paths_are_relative_to_the_working_directory),
        TEST(test_two_files_are_not_saved_in_one_place),
        TEST(test_working_directory_is_text_and_no_pattern),
        TEST(test_bad_patterns_are_said_and_do_not_stop_the_others),
        TEST(test_named_directory_is_pointed_out),
        TEST(test_links_are_not_followed),
        TEST(test_hard_link_is_a_file),
        TEST(test_fifo_does_not_block),
        TEST(test_sockets_and_devices_are_not_opened),
        TEST(test_file_systems_of_the_kernel_are_not_entered),
        TEST(test_size_is_judged_before_reading),
        TEST(test_max_file_is_a_maximum),
        TEST(test_max_files_takes_the_first_by_name),
        TEST(test_names_that_deceive_are_shown_escaped_and_not_taken),
        TEST(test_hidden_files_are_taken_only_when_named),
        TEST(test_depth_has_a_maximum),
        TEST(test_paths_have_a_maximum),
        TEST(test_entries_have_a_maximum),
        TEST(test_memory_for_paths_has_a_maximum),
        TEST(test_file_that_changes_is_not_taken),
        TEST(test_no_more_is_read_than_the_size_that_was_judged),
        TEST(test_fifo_swapped_in_at_the_last_moment_does_not_block),
        TEST(test_growing_file_ends),
        TEST(test_swapped_links_never_lead_outside),
        TEST(test_signals_do_not_end_it),
        TEST(test_errors_that_concern_everything_end_it),
        TEST(test_cage_that_is_gone_is_not_an_empty_one),
        TEST(test_planted_links_in_out_are_not_followed),
        TEST(test_what_is_there_is_replaced_or_left),
        TEST(test_file_systems_without_nameless_files_work_too),
        TEST(test_old_readers_keep_the_old_file),
        TEST(test_sudden_death_leaves_nothing_in_out),
        TEST(test_file_that_cannot_be_written_leaves_nothing),
        TEST(test_named_file_that_cannot_be_written_leaves_nothing),
        TEST(test_full_file_system_is_an_error_that_says_so),
        TEST(test_directory_that_is_gone_is_an_error),
        TEST(test_files_that_cannot_be_reached_are_not_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
