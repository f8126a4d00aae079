/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: recording and replay without memory. A call is made with its first allocation failing, then its
 * second, and so on: each time there is an error or an honest result, the journal holds exactly the calls
 * whose results have a state_hash, never a redacted value, and nothing is left behind.
 */
#define TCI_ARENA_EXACT
#include "base/arena.c"

#include "alloc_support.h"
#include "call_support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "journal/journal.h"

static const char policy_text[] =
    "version = 1\n[tool.t]\ncommand = [\"double:errno\", \"2\", \"{token}\"]\n"
    "redact = [\"/token\", \"/more/1\", \"/n\"]\n";
static const char arguments[] =
    "{\"token\":\"hunter2 "
    "\\\"x\\\"\",\"more\":[1,\"hunter2-too\"],\"n\":{\"hunter2-key\":-4321.50}}";

static struct tc_policy *policy;
static char directory[] = "/tmp/test_record_alloc.XXXXXX", journal_path[64];

static struct tc_engine *open_engine(enum tc_mode mode)
{
    struct tc_engine_options options = { .policy = policy,
                                         .journal_path = journal_path,
                                         .mode = mode };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    if (tci_engine_open_with(&options, double_for, &engine, &error) < 0)
        fail_msg("%s", error.message);
    return engine;
}

static uint64_t count_rows(struct tc_engine *engine)
{
    struct tci_journal_report report = { 0 };
    assert_int_equal(tci_journal_verify(engine->journal, &report, NULL, NULL, NULL), 0);
    if (!report.good)
        fail_msg("%s", report.problem);
    return report.rows;
}

/* One call in an engine of its own, which has all the memory that it wants before and after. */
static bool call_once(enum tc_mode mode, long fail_at, struct tc_error *error)
{
    struct tc_request request = { .tool = "t", .session = "s", .arguments_json = arguments };
    struct tc_engine *engine = open_engine(mode);
    struct tc_result *result = NULL;
    uint64_t before = count_rows(engine), after;
    long failed;
    int r;

    begin_round(fail_at);
    r = tc_call(engine, &request, &result, error);
    failed = allocations.failed;
    begin_round(0);
    after = count_rows(engine);
    if (r == 0 && result->state_hash[0])
        assert_int_equal(result->verdict, TC_VERDICT_FAILED);
    else if (r == 0)
        assert_non_null(strstr(result->reason, "memory"));
    else
        assert_int_equal(error->code, TC_ERROR_NO_MEMORY);
    /* A call that nobody has a result of may be recorded all the same; the other way round never. */
    assert_int_equal(after - before,
                     mode == TC_MODE_LIVE && r == 0 && result->state_hash[0] ? 1 : 0);
    if (r == 0)
        assert_non_null(tc_result_json(result));
    tc_result_free(result);
    tc_engine_close(engine);
    return failed > 0;
}

static void check(enum tc_mode mode)
{
    struct tc_error error = { 0 };
    long rounds = 0, before;
    int descriptors;
    bool failed;

    (void)call_once(mode, 0, &error); /* some libraries allocate once and for all */
    descriptors = count_descriptors();
    do {
        error = (struct tc_error){ 0 };
        before = allocations.live;
        failed = call_once(mode, ++rounds, &error);
        if (allocations.live != before)
            fail_msg("allocation %ld failed: %ld left behind", rounds, allocations.live - before);
    } while (failed);
    assert_int_equal(count_descriptors(), descriptors);
    assert_true(rounds > 20);
}

static void test_recording_without_memory(void **state)
{
    static const char *const parts[] = { "", "-wal" };
    (void)state;
    check(TC_MODE_LIVE);
    for (size_t i = 0; i < tci_array_size(parts); i++) {
        char path[80];
        struct stat stat;
        char *bytes;
        int fd;
        (void)snprintf(path, sizeof path, "%s%s", journal_path, parts[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &stat), 0);
        bytes = malloc((size_t)stat.st_size + 1);
        assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
        assert_null(memmem(bytes, (size_t)stat.st_size, "hunter2", 7));
        free(bytes);
        close(fd);
    }
}

static void test_replay_without_memory(void **state)
{
    (void)state;
    check(TC_MODE_REPLAY);
}

static int set_up(void **state)
{
    (void)state;
    policy = load_text(policy_text);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(journal_path, sizeof journal_path, "%s/journal.db", directory);
    return 0;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    tc_policy_free(policy);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recording_without_memory),
        cmocka_unit_test(test_replay_without_memory),
    };
#ifdef SANITIZED
    (void)puts("1..0 # SKIP the sanitizer owns malloc: run this in a build without it");
    return 0;
#endif
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
