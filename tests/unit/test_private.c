/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: who else may know what is in a file of secrets, and connections that never wait. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"

struct place {
    char directory[64], path[96];
};

static int make_place(void **state)
{
    static struct place place;
    (void)snprintf(place.directory, sizeof place.directory, "/tmp/toolcage-private-XXXXXX");
    if (!mkdtemp(place.directory))
        return -1;
    (void)snprintf(place.path, sizeof place.path, "%s/it", place.directory);
    *state = &place;
    return 0;
}

static int remove_place(void **state)
{
    struct place *place = *state;
    (void)unlink(place->path);
    return rmdir(place->directory);
}

static int judge(const char *path, bool root_too)
{
    struct stat st;
    int fd = tci_file_open(path), wrong;
    assert_true(fd >= 0);
    wrong = tci_file_judge_secret(fd, root_too, &st);
    (void)tci_close(fd);
    return wrong;
}

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)tci_close(fd);
}

static void test_file_of_our_own_for_us_alone_is_good(void **state)
{
    const struct place *place = *state;
    make_file(place->path, 0600);
    assert_int_equal(judge(place->path, false), 0);
    make_file(place->path, 0400);
    assert_int_equal(judge(place->path, false), 0);
}

static void test_any_right_of_others_is_wrong(void **state)
{
    const struct place *place = *state;
    for (mode_t bit = 1; bit <= 040; bit <<= 1) {
        make_file(place->path, 0600 | bit);
        assert_int_equal(judge(place->path, false), TCI_SECRET_EXPOSED);
        assert_int_equal(judge(place->path, true), TCI_SECRET_EXPOSED);
    }
}

/* Opened as root and judged as another: the file is root's. Without root, root's files are there. */
static void test_file_of_root_is_good_only_where_that_is_said(void **state)
{
    const struct place *place = *state;
    const bool is_root = geteuid() == 0;
    struct stat st;
    int fd, own, root_too;
    if (is_root)
        make_file(place->path, 0600);
    fd = tci_file_open(is_root ? place->path : "/etc/passwd");
    assert_true(fd >= 0);
    assert_true(!is_root || seteuid(65534) == 0);
    own = tci_file_judge_secret(fd, false, &st);
    root_too = tci_file_judge_secret(fd, true, &st);
    assert_true(!is_root || seteuid(0) == 0);
    (void)tci_close(fd);
    assert_int_equal(own & ~TCI_SECRET_EXPOSED, TCI_SECRET_FOREIGN);
    assert_int_equal(root_too & ~TCI_SECRET_EXPOSED, 0);
}

static void test_pipe_in_its_place_neither_waits_nor_counts(void **state)
{
    const struct place *place = *state;
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(judge(place->path, false), TCI_SECRET_NO_FILE);
    assert_true(judge(place->directory, false) & TCI_SECRET_NO_FILE);
}

static void test_descriptor_that_is_none_is_an_error(void **state)
{
    struct stat st;
    (void)state;
    errno = 0;
    assert_int_equal(tci_file_judge_secret(-1, true, &st), -1);
    assert_int_equal(errno, EBADF);
}

/* ---- connections -------------------------------------------------------------------------- */

static void test_connection_does_not_block_and_is_not_inherited(void **state)
{
    const struct place *place = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", place->path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    errno = 0;
    assert_int_equal(tci_unix_connect(place->path), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(listen(listener, 1), 0);
    fd = tci_unix_connect(place->path);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    (void)tci_close(fd);
    (void)tci_close(listener);
}

static void test_path_that_no_socket_can_have_is_refused(void **state)
{
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(tci_unix_connect(path), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    path[sizeof path - 2] = '\0'; /* the longest that fits with its end */
    assert_int_equal(tci_unix_connect(path), -1);
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(test_file_of_our_own_for_us_alone_is_good),
        IN_A_PLACE(test_any_right_of_others_is_wrong),
        IN_A_PLACE(test_file_of_root_is_good_only_where_that_is_said),
        IN_A_PLACE(test_pipe_in_its_place_neither_waits_nor_counts),
        cmocka_unit_test(test_descriptor_that_is_none_is_an_error),
        IN_A_PLACE(test_connection_does_not_block_and_is_not_inherited),
        cmocka_unit_test(test_path_that_no_socket_can_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
