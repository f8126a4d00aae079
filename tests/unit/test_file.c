/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of base/file.h over a file that misbehaves: the table of system calls is replaced, so that each
 * call fails in each way and a file changes at a chosen moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "base/arena.h"
#include "base/file.h"
#include "base/sys.h"

enum { maximum = 10000, fake_fd = 4000 };

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
    size_t n;
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
