/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of core/extract.h: which files are taken, which are not, and that every amount has a
 * maximum.
 */
#include "extract_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sha256.h"
#include "core/extract.h"

/* ---- for whom ---------------------------------------------------------------------------------- */

static void test_only_what_the_command_could_read_is_taken(void **state)
{
    struct place *place = *state;
    struct tci_extract what = settings(place, "/*", "/closed/*", "/f*/deep/*", "/found/deep/a",
                                       NULL);
    struct tci_extracted found;
    write_file(place->cage, "private", "x");
    write_file(place->cage, "public", "x");
    write_file(place->cage, "group", "x");
    make_directories(place->cage, "closed");
    write_file(place->cage, "closed/in", "x");
    make_directories(place->cage, "found");
    make_directories(place->cage, "found/deep");
    write_file(place->cage, "found/deep/a", "x");
    assert_int_equal(fchmodat(place->cage, "private", 0600, 0), 0);
    assert_int_equal(fchmodat(place->cage, "public", 0604, 0), 0);
    assert_int_equal(fchmodat(place->cage, "group", 0604, 0), 0);
    assert_int_equal(fchmodat(place->cage, "closed", 0711, 0), 0);
    assert_int_equal(fchmodat(place->cage, "found", 0704, 0), 0);
    what.reader = (struct tci_file_reader){ true, geteuid() + 1, getegid() + 1 };
    found = run(place, &what);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.files[0].path, "/group");
    assert_string_equal(found.files[1].path, "/public");
    assert_true(found.skipped_count >= 4); /* private, closed, found by name and by pattern */
    /* Whose group it is has the group's bits, and no others. */
    what.reader.gid = getegid();
    assert_int_equal(run(place, &what).count, 0);
    /* The owner could allow it to itself. */
    what.reader.uid = geteuid();
    found = run(place, &what);
    assert_int_equal(found.count, 5);
    assert_int_equal(found.skipped_count, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_only_what_the_command_could_read_is_taken),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
