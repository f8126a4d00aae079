/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of base/file.h. One half reads real files of every kind; the other replaces the table
 * of system calls, so that each call fails in each way and a file changes at a chosen moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
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

enum { maximum = 10000, fake_fd = 4000, hang_seconds = 20 };

/* ---- a file that misbehaves ------------------------------------------------------------------- */

static struct {
    int open_error, read_error; /* errno to fail with; 0: none */
    int fstat_error[2];         /* the same, for the first and the second fstat */
    unsigned interrupted_opens, interrupted_reads; /* so many fail with EINTR first */
    unsigned reads_before_error;
    size_t chunk; /* a read returns at most this much; 0: all that is asked for */
    const char *bytes;
    size_t length;  /* what read gives in all */
    size_t claimed; /* what fstat says */
    mode_t mode;    /* type of file */
    unsigned reads_before_change;
    void (*change)(void); /* after so many reads */
    struct timespec mtime;
    int fd;    /* what open returns */
    int flags; /* what open was given */
    size_t position;
    unsigned opens, reads, fstats, closes;
} fake;

static int fake_open(const char *path, int flags)
{
    assert_string_equal(path, "a policy");
    if (fake.interrupted_opens) {
        fake.interrupted_opens--;
        errno = EINTR;
        return -1;
    }
    if (fake.open_error) {
        errno = fake.open_error;
        return -1;
    }
    fake.opens++;
    fake.flags = flags;
    return fake.fd;
}

static ssize_t fake_read(int fd, void *buffer, size_t size)
{
    size_t n = fake.length - fake.position;
    assert_int_equal(fd, fake.fd);
    assert_true(size > 0); /* a read of nothing would look like the end */
    if (fake.interrupted_reads) {
        fake.interrupted_reads--;
        errno = EINTR;
        return -1;
    }
    if (fake.read_error && fake.reads >= fake.reads_before_error) {
        errno = fake.read_error;
        return -1;
    }
    if (fake.change && fake.reads == fake.reads_before_change)
        fake.change();
    n = fake.position < fake.length ? fake.length - fake.position : 0;
    n = n < size ? n : size;
    n = fake.chunk && fake.chunk < n ? fake.chunk : n;
    memcpy(buffer, fake.bytes + fake.position, n);
    fake.position += n;
    fake.reads++;
    return (ssize_t)n;
}

static int fake_fstat(int fd, struct stat *ret)
{
    int error = fake.fstat_error[fake.fstats > 0];
    assert_int_equal(fd, fake.fd);
    fake.fstats++;
    if (error) {
        errno = error;
        return -1;
    }
    memset(ret, 0, sizeof *ret);
    ret->st_mode = fake.mode | 0644;
    ret->st_size = (off_t)fake.claimed;
    ret->st_mtim = fake.mtime;
    return 0;
}

static int fake_close(int fd)
{
    assert_int_equal(fd, fake.fd);
    fake.closes++;
    return 0;
}

static struct tci_sys real_sys;

static int use_fake(void **state)
{
    static char bytes[4 * maximum];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 26);
    memset(&fake, 0, sizeof fake);
    fake.bytes = bytes;
    fake.length = fake.claimed = 500;
    fake.mode = S_IFREG;
    fake.mtime.tv_sec = 1000;
    fake.fd = fake_fd;
    real_sys = tci_sys;
    tci_sys.open = fake_open;
    tci_sys.read = fake_read;
    tci_sys.fstat = fake_fstat;
    tci_sys.close = fake_close;
    return 0;
}

static int use_real(void **state)
{
    (void)state;
    tci_sys = real_sys;
    return 0;
}

/* Reads "a policy" and puts everything back; what was read is compared with fake.bytes. */
static int read_fake(struct tc_error *error)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    char untouched[1], *bytes = untouched;
    size_t length = 12345;
    int r;
    assert_non_null(arena);
    memset(error, 0, sizeof *error);
    r = tci_file_read(arena, "a policy", maximum, &bytes, &length, error);
    if (r == 0) {
        assert_int_equal(error->code, TC_ERROR_NONE);
        assert_int_equal(length, fake.length);
        assert_memory_equal(bytes, fake.bytes, length);
        assert_int_equal(bytes[length], '\0');
    } else {
        assert_int_equal(r, -1);
        assert_int_not_equal(error->code, TC_ERROR_NONE);
        assert_ptr_equal(bytes, untouched);
        assert_int_equal(length, 12345);
        assert_true(error->message[0] && error->remedy[0] && error->id[0]);
    }
    assert_int_equal(fake.closes, fake.opens);
    return r;
}

static void test_file_is_opened_without_blocking_and_closed(void **state)
{
    struct tc_error error;
    (void)state;
    assert_int_equal(read_fake(&error), 0);
    assert_int_equal(fake.flags, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    assert_int_equal(fake.opens, 1);
}

/* A host program may have closed its standard streams: then open gives one of their numbers. */
static void test_low_descriptor_is_closed_too(void **state)
{
    (void)state;
    for (int fd = 0; fd <= 3; fd++) {
        struct tc_error error;
        fake.fd = fd;
        fake.fstats = fake.opens = fake.closes = 0;
        fake.position = 0;
        assert_int_equal(read_fake(&error), 0);
        assert_int_equal(fake.closes, 1);
    }
}

static void test_each_call_may_fail_in_each_way(void **state)
{
    static const int errors[] = { EACCES,       ENOENT,  EIO,    EMFILE, ENFILE,
                                  ELOOP,        ENOTDIR, ENXIO,  EAGAIN, EPERM,
                                  ENAMETOOLONG, EISDIR,  ESTALE, EBADF,  ENOMEM };
    enum { at_open, at_fstat, at_read, at_later_read, at_last_fstat, places };
    (void)state;
    for (size_t i = 0; i < tci_array_size(errors); i++) {
        for (int place = 0; place < places; place++) {
            struct tc_error error;
            use_real(NULL);
            use_fake(NULL);
            fake.open_error = place == at_open ? errors[i] : 0;
            fake.fstat_error[0] = place == at_fstat ? errors[i] : 0;
            fake.fstat_error[1] = place == at_last_fstat ? errors[i] : 0;
            fake.read_error = place == at_read || place == at_later_read ? errors[i] : 0;
            fake.reads_before_error = place == at_later_read ? 2 : 0;
            fake.chunk = 100;
            assert_int_equal(read_fake(&error), -1);
            assert_int_equal(error.code, TC_ERROR_IO);
            assert_string_equal(error.id, "TC-P001");
            assert_non_null(strstr(error.message, strerrordesc_np(errors[i])));
        }
    }
}

static void test_remedy_fits_the_cause(void **state)
{
    struct tc_error error;
    (void)state;
    fake.open_error = ENOENT;
    assert_int_equal(read_fake(&error), -1);
    assert_non_null(strstr(error.remedy, "--policy"));
    fake.open_error = EACCES;
    assert_int_equal(read_fake(&error), -1);
    assert_non_null(strstr(error.remedy, "chmod"));
}

static void test_interrupted_calls_are_made_again(void **state)
{
    struct tc_error error;
    (void)state;
    fake.interrupted_opens = 3;
    fake.interrupted_reads = 5;
    fake.chunk = 7;
    assert_int_equal(read_fake(&error), 0);
    assert_int_equal(fake.interrupted_opens, 0);
    assert_int_equal(fake.interrupted_reads, 0);
}

static void test_short_reads_are_put_together(void **state)
{
    (void)state;
    for (size_t chunk = 1; chunk <= 501; chunk += 25) {
        struct tc_error error;
        use_real(NULL);
        use_fake(NULL);
        fake.chunk = chunk;
        assert_int_equal(read_fake(&error), 0);
        assert_true(fake.reads > 500 / chunk);
    }
}

static void test_maximum_itself_is_allowed_and_one_more_is_not(void **state)
{
    struct tc_error error;
    (void)state;
    fake.length = fake.claimed = maximum;
    assert_int_equal(read_fake(&error), 0);
    use_real(NULL);
    use_fake(NULL);
    fake.length = fake.claimed = maximum + 1;
    assert_int_equal(read_fake(&error), -1);
    assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
    assert_string_equal(error.id, "TC-P003");
    assert_int_equal(fake.reads, 0); /* refused by its size alone */
}

static void test_file_larger_than_it_claims_is_refused(void **state)
{
    static const size_t claims[] = { 0, 1, 500, maximum - 1, maximum };
    (void)state;
    for (size_t i = 0; i < tci_array_size(claims); i++) {
        struct tc_error error;
        use_real(NULL);
        use_fake(NULL);
        fake.length = maximum + 1;
        fake.claimed = claims[i];
        assert_int_equal(read_fake(&error), -1);
        assert_int_equal(error.code, TC_ERROR_TOO_LARGE);
        /* Never more than one byte past the maximum is read. */
        assert_true(fake.position <= maximum + 1);
    }
}

static void assert_changed(void)
{
    struct tc_error error;
    assert_int_equal(read_fake(&error), -1);
    assert_int_equal(error.code, TC_ERROR_IO);
    assert_string_equal(error.id, "TC-P004");
}

static void grow(void)
{
    fake.length = fake.claimed = 800;
    fake.mtime.tv_nsec++;
}

static void shrink(void)
{
    fake.length = fake.claimed = 300;
    fake.mtime.tv_nsec++;
}

static void rewrite(void)
{
    fake.bytes += 13;
    fake.mtime.tv_nsec++;
}

static void grow_within_one_tick(void)
{
    fake.length = fake.claimed = 800;
}

static void grow_behind_the_end(void)
{
    fake.claimed = 800; /* after the end was seen, within one tick of the clock */
}

static void claim_nothing_new(void)
{
    fake.length = 499; /* as if size and time had not been updated yet */
}

/* At every read that happens, the one that sees the end included. */
static void test_file_that_changes_between_reads_is_refused(void **state)
{
    static void (*const changes[])(void) = {
        grow, shrink, rewrite, grow_within_one_tick, grow_behind_the_end, claim_nothing_new
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(changes); i++) {
        for (unsigned when = 0; when <= 5; when++) {
            use_real(NULL);
            use_fake(NULL);
            fake.chunk = 100;
            fake.change = changes[i];
            fake.reads_before_change = when;
            if (changes[i] == claim_nothing_new && when == 5)
                continue; /* all has been read: nothing changed for us */
            assert_changed();
        }
    }
}

static void test_file_shorter_or_longer_than_its_size_is_refused(void **state)
{
    (void)state;
    fake.claimed = 400;
    assert_changed();
    use_real(NULL);
    use_fake(NULL);
    fake.claimed = 600;
    assert_changed();
    use_real(NULL);
    use_fake(NULL);
    fake.length = 0; /* cut to nothing just after the first look */
    assert_changed();
}

static void test_what_is_no_file_is_refused_by_its_descriptor(void **state)
{
    static const struct {
        mode_t mode;
        const char *word;
    } kinds[] = { { S_IFDIR, "directory" },
                  { S_IFIFO, "pipe" },
                  { S_IFSOCK, "socket" },
                  { S_IFCHR, "device" },
                  { S_IFBLK, "device" } };
    (void)state;
    for (size_t i = 0; i < tci_array_size(kinds); i++) {
        struct tc_error error;
        fake.mode = kinds[i].mode;
        fake.fstats = 0;
        assert_int_equal(read_fake(&error), -1);
        assert_int_equal(error.code, TC_ERROR_IO);
        assert_string_equal(error.id, "TC-P002");
        assert_non_null(strstr(error.message, kinds[i].word));
        assert_int_equal(fake.reads, 0);
    }
}

/* ---- real files ------------------------------------------------------------------------------- */

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

static unsigned open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
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
    unsigned before = open_files();
    int r;
    memset(error, 0, sizeof *error);
    alarm(hang_seconds);
    r = tci_file_read(arena, path, maximum, ret_bytes, ret_length, error);
    alarm(0);
    assert_int_equal(open_files(), before);
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
    unsigned before = open_files();
    char *bytes = NULL;
    size_t length = 0;
    int r;
    assert_non_null(arena);
    memset(error, 0, sizeof *error);
    alarm(hang_seconds);
    r = tci_file_read_beneath(arena, directory, path, maximum, &bytes, &length, error);
    alarm(0);
    assert_int_equal(open_files(), before);
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
#define fake_test(name) cmocka_unit_test_setup_teardown(name, use_fake, use_real)
    const struct CMUnitTest tests[] = {
        fake_test(test_file_is_opened_without_blocking_and_closed),
        fake_test(test_low_descriptor_is_closed_too),
        fake_test(test_each_call_may_fail_in_each_way),
        fake_test(test_remedy_fits_the_cause),
        fake_test(test_interrupted_calls_are_made_again),
        fake_test(test_short_reads_are_put_together),
        fake_test(test_maximum_itself_is_allowed_and_one_more_is_not),
        fake_test(test_file_larger_than_it_claims_is_refused),
        fake_test(test_file_that_changes_between_reads_is_refused),
        fake_test(test_file_shorter_or_longer_than_its_size_is_refused),
        fake_test(test_what_is_no_file_is_refused_by_its_descriptor),
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
