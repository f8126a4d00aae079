/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of base/uuid.h, base/clock.h and base/fd.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/uuid.h"

/* ---- ids -------------------------------------------------------------------------------------- */

static void assert_uuid7(const char *text)
{
    assert_int_equal(strlen(text), 36);
    for (size_t i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            assert_int_equal(text[i], '-');
        else
            assert_non_null(strchr("0123456789abcdef", text[i]));
    }
    assert_int_equal(text[14], '7');
    assert_non_null(strchr("89ab", text[19]));
}

static uint64_t time_in(const char *uuid)
{
    char digits[13];
    memcpy(digits, uuid, 8);
    memcpy(digits + 8, uuid + 9, 4);
    digits[12] = '\0';
    return strtoull(digits, NULL, 16);
}

static void test_uuid_has_version_variant_and_the_present_time(void **state)
{
    char text[TCI_UUID_TEXT_MAX];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = tci_clock_realtime_ms(), after;
        assert_int_equal(tci_uuid7(text), 0);
        after = tci_clock_realtime_ms();
        assert_uuid7(text);
        assert_in_range(time_in(text), before, after);
    }
}

enum { threads = 8, ids_per_thread = 5000 };

static void *make_ids(void *argument)
{
    char(*ids)[TCI_UUID_TEXT_MAX] = argument;
    for (int i = 0; i < ids_per_thread; i++)
        if (tci_uuid7(ids[i]) < 0)
            ids[i][0] = '\0';
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_uuids_of_many_threads_are_all_different(void **state)
{
    char(*ids)[TCI_UUID_TEXT_MAX] = calloc((size_t)threads * ids_per_thread, sizeof *ids);
    pthread_t thread[threads];
    (void)state;
    assert_non_null(ids);
    for (size_t i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make_ids, ids + i * ids_per_thread), 0);
    for (size_t i = 0; i < threads; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    qsort(ids, (size_t)threads * ids_per_thread, sizeof *ids, compare_ids);
    for (size_t i = 0; i < (size_t)threads * ids_per_thread; i++) {
        assert_uuid7(ids[i]);
        if (i > 0)
            assert_string_not_equal(ids[i - 1], ids[i]);
    }
    free(ids);
}

static void test_random_hex_has_the_length_asked_for(void **state)
{
    char text[2 * TCI_RANDOM_HEX_MAX + 1], other[2 * TCI_RANDOM_HEX_MAX + 1];
    (void)state;
    for (size_t size = 0; size <= TCI_RANDOM_HEX_MAX; size++) {
        memset(text, 'x', sizeof text);
        assert_int_equal(tci_random_hex(size, text), 0);
        assert_int_equal(strlen(text), 2 * size);
        assert_int_equal(strspn(text, "0123456789abcdef"), 2 * size);
    }
    assert_int_equal(tci_random_hex(16, text), 0);
    assert_int_equal(tci_random_hex(16, other), 0);
    assert_string_not_equal(text, other);
    assert_int_equal(tci_random_hex(TCI_RANDOM_HEX_MAX + 1, text), -1);
}

/* ---- clock ------------------------------------------------------------------------------------ */

static void test_monotonic_clock_counts_microseconds(void **state)
{
    uint64_t before = tci_clock_us(), after;
    struct timespec pause = { .tv_nsec = 20000000 };
    (void)state;
    assert_int_equal(nanosleep(&pause, NULL), 0);
    after = tci_clock_us();
    assert_in_range(after - before, 20000, 20000000);
    assert_in_range(tci_clock_realtime_ms() / 1000, time(NULL) - 30, time(NULL) + 30);
}

/* ---- descriptors ------------------------------------------------------------------------------ */

static void test_closing_keeps_errno_and_ignores_nothing_open(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other = fd;
    (void)state;
    assert_true(fd >= 0);
    errno = ENOSPC;
    assert_int_equal(tci_close(-1), -1);
    assert_int_equal(tci_close(fd), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    errno = ENOSPC;
    tci_closep(&other); /* closed already: EBADF stays inside */
    assert_int_equal(other, -1);
    assert_int_equal(errno, ENOSPC);
    tci_closep(&other);
}

static void test_cleanup_closes_what_was_not_taken(void **state)
{
    int kept, lost;
    (void)state;
    {
        tc_cleanup(tci_closep) int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
        tc_cleanup(tci_closep) int b = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(a >= 0 && b >= 0);
        lost = a;
        kept = tci_take_fd(&b);
        assert_int_equal(b, -1);
    }
    assert_int_equal(fcntl(lost, F_GETFD), -1);
    assert_int_not_equal(fcntl(kept, F_GETFD), -1);
    tci_close(kept);
}

static void test_pipe_is_closed_on_exec_from_birth(void **state)
{
    int ends[2] = { -2, -2 };
    (void)state;
    assert_int_equal(tci_pipe(ends, 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(fcntl(ends[i], F_GETFD) & FD_CLOEXEC);
        assert_false(fcntl(ends[i], F_GETFL) & O_NONBLOCK);
        assert_int_equal(tci_set_nonblocking(ends[i]), 0);
        assert_true(fcntl(ends[i], F_GETFL) & O_NONBLOCK);
        assert_int_equal(tci_set_nonblocking(ends[i]), 0);
        tci_closep(&ends[i]);
    }
    assert_int_equal(tci_set_nonblocking(-1), -1);
    assert_int_equal(tci_pipe(ends, -1), -1); /* flags that do not exist */
    assert_int_equal(ends[0], -1);
    assert_int_equal(ends[1], -1);
}

static int interruptions;

static ssize_t interrupted_read(int fd, void *buffer, size_t size)
{
    if (interruptions-- > 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, buffer, size);
}

static void test_read_goes_on_after_a_signal(void **state)
{
    struct tci_sys saved = tci_sys;
    char bytes[8];
    int ends[2];
    (void)state;
    assert_int_equal(tci_pipe(ends, 0), 0);
    assert_int_equal(tci_write_all(ends[1], "text", 4), 0);
    interruptions = 3;
    tci_sys.read = interrupted_read;
    assert_int_equal(tci_read_some(ends[0], bytes, sizeof bytes), 4);
    tci_sys = saved;
    assert_memory_equal(bytes, "text", 4);
    tci_closep(&ends[1]);
    assert_int_equal(tci_read_some(ends[0], bytes, sizeof bytes), 0);
    tci_closep(&ends[0]);
    assert_int_equal(tci_read_some(-1, bytes, sizeof bytes), -1);
    assert_int_equal(errno, EBADF);
}

static void on_alarm(int signal)
{
    (void)signal;
}

struct reader {
    int fd;
    size_t total;
};

static void *read_slowly(void *argument)
{
    struct reader *reader = argument;
    char bytes[30000];
    struct timespec pause = { .tv_nsec = 2000000 };
    ssize_t n;
    while ((n = tci_read_some(reader->fd, bytes, sizeof bytes)) > 0) {
        reader->total += (size_t)n;
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

/* A timer interrupts writes to a full pipe all the time; none of the bytes may be lost. */
static void test_write_of_everything_survives_signals_and_short_writes(void **state)
{
    enum { total = 2000000 };
    struct sigaction action = { .sa_handler = on_alarm }, old; /* no SA_RESTART: writes fail */
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
    struct reader reader = { 0 };
    char *bytes = calloc(1, total);
    sigset_t alarms;
    pthread_t thread;
    int ends[2];
    (void)state;
    assert_non_null(bytes);
    assert_int_equal(tci_pipe(ends, 0), 0);
    reader.fd = ends[0];
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the reader's; the writer gets them */
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
    (void)pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(tci_write_all(ends[1], bytes, total), 0);
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)sigaction(SIGALRM, &old, NULL);
    tci_closep(&ends[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.total, total);
    tci_closep(&ends[0]);
    free(bytes);
}

static void test_write_says_when_it_cannot(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)state;
    assert_true(full >= 0);
    assert_int_equal(tci_write_all(full, "", 0), 0);
    assert_int_equal(tci_write_all(full, "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    tci_close(full);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid_has_version_variant_and_the_present_time),
        cmocka_unit_test(test_uuids_of_many_threads_are_all_different),
        cmocka_unit_test(test_random_hex_has_the_length_asked_for),
        cmocka_unit_test(test_monotonic_clock_counts_microseconds),
        cmocka_unit_test(test_closing_keeps_errno_and_ignores_nothing_open),
        cmocka_unit_test(test_cleanup_closes_what_was_not_taken),
        cmocka_unit_test(test_pipe_is_closed_on_exec_from_birth),
        cmocka_unit_test(test_read_goes_on_after_a_signal),
        cmocka_unit_test(test_write_of_everything_survives_signals_and_short_writes),
        cmocka_unit_test(test_write_says_when_it_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
