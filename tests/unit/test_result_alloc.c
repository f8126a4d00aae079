/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: results and extraction without memory. Each allocation fails once, in turn: there is an error
 * or a NULL, nothing half-made in the output directory, and afterwards not one allocation or
 * descriptor more than before.
 */
#define TCI_ARENA_EXACT
#include "base/arena.c"

#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "alloc_support.h"
#include "core/extract.h"
#include "core/network.h"
#include "core/result.h"

/* Runs it with each allocation failing, until none is left to fail. It returns 0, or -1 when it said
 * that it failed. */
static void fail_each(int (*scenario)(void), long at_least)
{
#ifdef SANITIZED
    (void)at_least;
    assert_int_equal(scenario(), 0);
#else
    long forgiven = 0;
    for (long round = 1;; round++) {
        long before = allocations.live, failed;
        int status;
        begin_round(round);
        status = scenario();
        failed = allocations.failed;
        begin_round(0);
        assert_int_equal(allocations.live, before);
        if (!failed) {
            assert_int_equal(status, 0);
            assert_true(round > at_least);
            return;
        }
        /* qsort tries to get memory and does without. The scenario has seen that all is there. */
        forgiven += status == 0;
        assert_true(forgiven <= 1);
    }
#endif
}

/* ---- a result --------------------------------------------------------------------------------- */

static int add_network(struct tci_result *result)
{
    static const struct tci_gate_record records[] = {
        { .event = TCI_GATE_CLOSED,
          .protocol = "tcp",
          .host = "a.example",
          .address = "192.0.2.1",
          .port = 1,
          .rule = "a.example:1",
          .reason = "a note" },
        { .event = TCI_GATE_REFUSED, .protocol = "dns", .host = "b.example", .fix = "add it" },
        { .event = TCI_GATE_FAILED, .protocol = "tcp", .host = "192.0.2.1", .port = 2 },
    };
    struct tc_error error = { 0 };
    int r = tci_network_add(result, records, tci_array_size(records), 0, &error);
    assert_int_equal(error.code, r < 0 ? TC_ERROR_NO_MEMORY : TC_ERROR_NONE);
    return r;
}

static int make_result(void)
{
    struct tci_result *result = tci_result_new(NULL);
    char target[16], block[600];
    int status = -1;

    if (!result)
        return -1;
    result->output_room = 1000;
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(target, sizeof target, "/%d", i);
        if (tci_result_deny(result, "read", target, "filesystem") < 0)
            goto end;
    }
    if (add_network(result) < 0)
        goto end;
    for (int i = 0; i < 3; i++)
        if (tci_result_keep(result, TC_STREAM_STDOUT, block, sizeof block) < 0 ||
            tci_result_keep(result, TC_STREAM_STDERR, "\xff", 1) < 0)
            goto end;
    tci_result_verdict(result, TC_VERDICT_FAILED, NULL, "not UTF-8: \xff");
    /* Failed once, it may be asked again. */
    status = tc_result_json(&result->public) ? 0 : -1;
    assert_non_null(tc_result_json(&result->public));
end:
    tc_result_free(&result->public);
    return status;
}

static void test_result_without_memory_is_none(void **state)
{
    (void)state;
    fail_each(make_result, 80);
}

/* ---- extraction ------------------------------------------------------------------------------- */

static int cage, out;

static void make_file(const char *path)
{
    int fd = openat(cage, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, path, strlen(path)), strlen(path));
    (void)close(fd);
}

static int open_in_cage(void *context, const char *path, struct tc_error *reterr)
{
    (void)context;
    (void)reterr;
    return openat(cage, path[1] ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int extract_all(void)
{
    static const char *const globs[] = { "/**", "/a/[a-z]", "relative" };
    struct tci_extract what = {
        .globs = globs,
        .glob_count = tci_array_size(globs),
        .cwd = "/a",
        .max_file = 1000,
        .max_files = 1000,
        .out = out,
        .out_path = "out",
        .open_directory = open_in_cage,
    };
    struct tci_arena *arena = tci_arena_new();
    struct tci_extracted found;
    struct tc_error error = { 0 };
    int status, lowest = dup(0);

    if (!arena) {
        (void)close(lowest);
        return -1;
    }
    status = tci_extract(&what, arena, &found, &error);
    if (status < 0)
        assert_int_equal(error.code, TC_ERROR_NO_MEMORY);
    else
        assert_true(found.count == 67 && found.skipped_count == 2);
    tci_arena_free(arena);
    (void)close(lowest);
    /* No descriptor is left: the next one gets the same number. */
    assert_int_equal(dup(0), lowest);
    (void)close(lowest);
    return status;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    assert_null(strstr(path, ".toolcage-"));
    return remove(path);
}

static void test_extraction_without_memory_leaves_nothing_half_made(void **state)
{
    char top[] = "/tmp/test_result_alloc.XXXXXX", name[32];
    int fd;
    (void)state;
    assert_non_null(mkdtemp(top));
    fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(mkdirat(fd, "cage", 0755) == 0 && mkdirat(fd, "out", 0755) == 0);
    cage = openat(fd, "cage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    out = openat(fd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(cage, "a", 0755), 0);
    assert_int_equal(mkfifoat(cage, "fifo", 0600), 0);
    make_file("line\nbreak");
    make_file("a/x");
    for (int i = 0; i < 66; i++) {
        (void)snprintf(name, sizeof name, "a/file-%d", i);
        make_file(name);
    }
    fail_each(extract_all, 150);
    (void)close(cage);
    (void)close(out);
    (void)close(fd);
    assert_int_equal(nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_without_memory_is_none),
        cmocka_unit_test(test_extraction_without_memory_leaves_nothing_half_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
