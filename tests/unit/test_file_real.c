/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of base/file.h with real files of every kind, below a directory, and standard input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/file.h"
#include "base/sys.h"
#include "descriptors.h"

enum { maximum = 10000, hang_seconds = 20 };

static char directory[] = "/tmp/toolcage-test-file-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static const char *in_directory(const char *name, char buffer[200])
{
    (void)snprintf(buffer, 200, "%s/%s", directory, name);
    return buffer;
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Reads, with no descriptor left over and within bounded time: SIGALRM would end the test. */
static int read_real(const char *path, struct tci_arena *arena, char **ret_bytes,
                     size_t *ret_length, struct tc_error *error)
{
    int before = count_descriptors();
    int r;
    memset(error, 0, sizeof *error);
    alarm(hang_seconds);
    r = tci_file_read(arena, path, maximum, ret_bytes, ret_length, error);
    alarm(0);
    assert_int_equal(count_descriptors(), before);
    return r;
}

static void assert_contents(const char *path, const char *bytes, size_t length)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error;
    char *read = NULL;
    size_t read_length = 0;
    assert_non_null(arena);
    if (read_real(path, arena, &read, &read_length, &error) < 0)
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(read_length, length);
    assert_memory_equal(read, bytes, length);
    assert_int_equal(read[length], '\0');
}

static void assert_refused(const char *path, const char *id, const char *word)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error;
    char *read = NULL;
    size_t read_length = 0;
    assert_non_null(arena);
    assert_int_equal(read_real(path, arena, &read, &read_length, &error), -1);
    assert_string_equal(error.id, id);
    assert_non_null(strstr(error.message, word));
    assert_true(error.remedy[0]);
    assert_null(read);
}

static void test_real_files_of_several_sizes(void **state)
{
    static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, maximum - 1, maximum };
    char bytes[maximum], path[200];
    (void)state;
    in_directory("file", path);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < tci_array_size(sizes); i++) {
        write_file(path, bytes, sizes[i]);
        assert_contents(path, bytes, sizes[i]);
    }
    assert_int_equal(unlink(path), 0);
}

static void test_real_file_past_the_maximum(void **state)
{
    char bytes[maximum + 1], path[200];
    (void)state;
    in_directory("file", path);
    memset(bytes, 'x', sizeof bytes);
    write_file(path, bytes, sizeof bytes);
    assert_refused(path, "TC-P003", "10000");
    /* Sparse and huge: nothing of it is read or allocated. */
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_refused(path, "TC-P003", "10000");
    assert_int_equal(unlink(path), 0);
}

static void test_link_is_followed_and_a_dangling_one_is_missing(void **state)
{
    char path[200], link[200];
    (void)state;
    in_directory("file", path);
    in_directory("link", link);
    assert_int_equal(symlink(path, link), 0);
    assert_refused(link, "TC-P001", "No such file");
    write_file(path, "hello", 5);
    assert_contents(link, "hello", 5);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(link, link), 0);
    assert_refused(link, "TC-P001", "symbolic links");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_fifo_does_not_block(void **state)
{
    char path[200];
    (void)state;
    in_directory("fifo", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, "TC-P002", "pipe");
    assert_int_equal(unlink(path), 0);
}

static void test_socket_is_refused(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[200];
    (void)state;
    in_directory("socket", path);
    assert_true(fd >= 0 && strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_refused(path, "TC-P001", "cannot open");
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_directories_and_devices_are_refused(void **state)
{
    char path[200];
    (void)state;
    assert_refused(directory, "TC-P002", "directory");
    assert_refused("/", "TC-P002", "directory");
    assert_refused("/dev/zero", "TC-P002", "device");
    assert_refused("/dev/null", "TC-P002", "device");
    assert_refused(in_directory("missing", path), "TC-P001", "No such file");
    assert_refused(in_directory("missing/below", path), "TC-P001", "No such file");
    assert_refused("", "TC-P001", "No such file");
}

/* ---- below a directory ------------------------------------------------------------------------ */

static int read_beneath(const char *path, char contents[100], struct tc_error *error)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    int before = count_descriptors();
    char *bytes = NULL;
    size_t length = 0;
    int r;
    assert_non_null(arena);
    memset(error, 0, sizeof *error);
    alarm(hang_seconds);
    r = tci_file_read_beneath(arena, directory, path, maximum, &bytes, &length, error);
    alarm(0);
    assert_int_equal(count_descriptors(), before);
    if (r == 0)
        (void)snprintf(contents, 100, "%.*s", (int)length, bytes);
    return r;
}

/* A policy's schema is named by the policy: a link there must not show a file of somebody else. */
static void test_nothing_outside_the_directory_is_read(void **state)
{
    static const char *const outside[] = { "link",        "up/file",       "../etc/passwd",
                                           "..",          "/etc/passwd",   "sub/../../etc/passwd",
                                           "linked/file", "absolute_link", "" };
    char path[200], contents[100];
    struct tc_error error;
    (void)state;
    assert_int_equal(mkdir(in_directory("sub", path), 0700), 0);
    write_file(in_directory("sub/file", path), "inside", 6);
    assert_int_equal(symlink("sub/file", in_directory("link", path)), 0);
    assert_int_equal(symlink("..", in_directory("up", path)), 0);
    assert_int_equal(symlink("sub", in_directory("linked", path)), 0);
    assert_int_equal(symlink("/etc/passwd", in_directory("absolute_link", path)), 0);
    assert_int_equal(mkfifo(in_directory("fifo", path), 0600), 0);
    assert_int_equal(read_beneath("sub/file", contents, &error), 0);
    assert_string_equal(contents, "inside");
    assert_int_equal(read_beneath("sub/../sub/./file", contents, &error), 0);
    for (size_t i = 0; i < tci_array_size(outside); i++) {
        if (read_beneath(outside[i], contents, &error) == 0)
            fail_msg("%s was read: %s", outside[i], contents);
        assert_int_equal(error.code, TC_ERROR_IO);
        assert_true(error.message[0] && error.remedy[0]);
    }
    assert_int_equal(read_beneath("sub", contents, &error), -1);
    assert_string_equal(error.id, "TC-P002");
    assert_int_equal(read_beneath("fifo", contents, &error), -1);
    assert_string_equal(error.id, "TC-P002");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(unlink(in_directory(
                             (const char *[]){ "link", "up", "linked", "absolute_link" }[i], path)),
                         0);
    assert_int_equal(unlink(in_directory("fifo", path)), 0);
    assert_int_equal(unlink(in_directory("sub/file", path)), 0);
    assert_int_equal(rmdir(in_directory("sub", path)), 0);
}

static int no_open_beneath(int parent, const char *path, int flags)
{
    (void)parent;
    (void)path;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

static void test_kernel_that_cannot_stay_below_is_refused_and_not_trusted(void **state)
{
    struct tci_sys saved = tci_sys;
    char path[200], contents[100];
    struct tc_error error;
    (void)state;
    write_file(in_directory("file", path), "text", 4);
    tci_sys.open_beneath = no_open_beneath;
    assert_int_equal(read_beneath("file", contents, &error), -1);
    assert_int_equal(error.code, TC_ERROR_IO);
    tci_sys = saved;
    assert_int_equal(read_beneath("file", contents, &error), 0);
    assert_int_equal(unlink(path), 0);
}

/* ---- standard input --------------------------------------------------------------------------- */

/* Puts `fd` in the place of standard input; returns what was there. */
static int replace_stdin(int fd)
{
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(fd), 0);
    return saved;
}

static void restore_stdin(int saved)
{
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(saved), 0);
}

static int pipe_with(const char *bytes, size_t length)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], bytes, length), length);
    assert_int_equal(close(fds[1]), 0);
    return fds[0];
}

static void test_standard_input_from_a_pipe(void **state)
{
    static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 9000, maximum };
    char bytes[maximum + 1];
    int saved;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('A' + i % 50);
    for (size_t i = 0; i < tci_array_size(sizes); i++) {
        saved = replace_stdin(pipe_with(bytes, sizes[i]));
        assert_contents("-", bytes, sizes[i]);
        assert_int_equal(fcntl(STDIN_FILENO, F_GETFD) >= 0, 1); /* still the caller's */
        restore_stdin(saved);
    }
    saved = replace_stdin(pipe_with(bytes, maximum + 1));
    assert_refused("-", "TC-P003", "10000");
    restore_stdin(saved);
}

static void test_standard_input_from_a_file_starts_where_it_stands(void **state)
{
    char path[200];
    int saved, fd;
    (void)state;
    in_directory("file", path);
    write_file(path, "0123456789", 10);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
    saved = replace_stdin(fd);
    assert_contents("-", "456789", 6);
    restore_stdin(saved);
    assert_int_equal(unlink(path), 0);
}

static void test_standard_input_that_never_ends_is_cut_off(void **state)
{
    int saved = replace_stdin(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    (void)state;
    assert_refused("-", "TC-P003", "10000");
    restore_stdin(saved);
}

static void test_standard_input_that_is_a_directory_or_closed_is_refused(void **state)
{
    int saved = replace_stdin(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)state;
    assert_refused("-", "TC-P002", "directory");
    assert_int_equal(close(STDIN_FILENO), 0);
    /* Not read_real: opendir would take the free descriptor. */
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error error = { 0 };
    char *bytes;
    size_t length;
    assert_non_null(arena);
    assert_int_equal(tci_file_read(arena, "-", maximum, &bytes, &length, &error), -1);
    assert_string_equal(error.id, "TC-P001");
    restore_stdin(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_files_of_several_sizes),
        cmocka_unit_test(test_real_file_past_the_maximum),
        cmocka_unit_test(test_link_is_followed_and_a_dangling_one_is_missing),
        cmocka_unit_test(test_fifo_does_not_block),
        cmocka_unit_test(test_socket_is_refused),
        cmocka_unit_test(test_directories_and_devices_are_refused),
        cmocka_unit_test(test_nothing_outside_the_directory_is_read),
        cmocka_unit_test(test_kernel_that_cannot_stay_below_is_refused_and_not_trusted),
        cmocka_unit_test(test_standard_input_from_a_pipe),
        cmocka_unit_test(test_standard_input_from_a_file_starts_where_it_stands),
        cmocka_unit_test(test_standard_input_that_never_ends_is_cut_off),
        cmocka_unit_test(test_standard_input_that_is_a_directory_or_closed_is_refused),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
