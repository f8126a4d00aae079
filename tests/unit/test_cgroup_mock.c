/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins what is read from and written to the files of a group, on a mock: a directory with files of
 * these names. So both versions are checked on every host, and what no kernel can be made to say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cgroup/cgroup_internal.h"
#include "policy/model.h"

#define MB (UINT64_C(1) << 20)

static char directory[64];
static int base;

static int setup(void **unused)
{
    (void)unused;
    strcpy(directory, "/tmp/test_cgroup_mock_XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    base = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return base < 0 || mkdirat(base, "g", 0755) < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *s, int flag, struct FTW *walk)
{
    (void)s;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int teardown(void **unused)
{
    (void)unused;
    close(base);
    return nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A file of the mock, with what it says. */
static void file(const char *path, const char *text)
{
    int fd = openat(base, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const char *text_of(const char *name)
{
    static char text[512];
    assert_int_equal(tci_cgroup_read(base, "g", name, text, sizeof text), 0);
    return text;
}

static struct tci_cgroup_hierarchy hierarchy(bool v2, unsigned controllers)
{
    return (struct tci_cgroup_hierarchy){ .base = base, .v2 = v2, .controllers = controllers };
}

/* ---- limits --------------------------------------------------------------------------------- */

static int set_limits(bool v2, uint64_t memory, uint64_t pids, uint64_t cpu, struct tc_error *error)
{
    struct tci_cgroup_hierarchy h = hierarchy(v2, TCI_CGROUP_LIMITS);
    struct tci_cgroup_limits limits = { memory, pids, cpu };
    memset(error, 0, sizeof *error);
    return tci_cgroup_set_limits(&h, "g", &limits, error);
}

static void make_v2_files(void)
{
    static const char *const names[] = { "g/memory.max", "g/memory.swap.max", "g/memory.oom.group",
                                         "g/pids.max", "g/cpu.max" };
    for (size_t i = 0; i < tci_array_size(names); i++)
        file(names[i], "");
}

static void test_version_2_limits_on_a_mock(void **unused)
{
    struct tc_error error;
    (void)unused;
    make_v2_files();
    assert_int_equal(set_limits(true, 64 * MB + 1, 12, 1500, &error), 0);
    assert_string_equal(text_of("memory.max"), "67108864");
    assert_string_equal(text_of("memory.swap.max"), "0");
    assert_string_equal(text_of("memory.oom.group"), "1");
    assert_string_equal(text_of("pids.max"), "12");
    assert_string_equal(text_of("cpu.max"), "150000 100000");
    make_v2_files();
    assert_int_equal(set_limits(true, 64 * MB, 12, 9, &error), 0);
    assert_string_equal(text_of("cpu.max"), "9000 1000000"); /* the kernel takes 1 ms and more */
    make_v2_files();
    assert_int_equal(set_limits(true, 64 * MB, UINT64_MAX - 1, 10, &error), 0);
    assert_string_equal(text_of("pids.max"), "4194304");
    assert_string_equal(text_of("cpu.max"), "1000 100000");
}

static void test_what_is_unlimited_is_left_open_on_a_mock(void **unused)
{
    struct tc_error error;
    (void)unused;
    make_v2_files();
    assert_int_equal(set_limits(true, TCI_UNLIMITED, TCI_UNLIMITED, TCI_UNLIMITED, &error), 0);
    assert_string_equal(text_of("memory.max"), "");
    assert_string_equal(text_of("memory.swap.max"), "");
    assert_string_equal(text_of("pids.max"), "");
    assert_string_equal(text_of("cpu.max"), "");
}

static void test_a_limit_that_cannot_be_written_is_an_error_on_a_mock(void **unused)
{
    static const char *const names[] = { "memory.max", "pids.max", "cpu.max" };
    struct tc_error error;
    (void)unused;
    for (size_t i = 0; i < tci_array_size(names); i++) {
        char path[64];
        make_v2_files();
        snprintf(path, sizeof path, "g/%s", names[i]);
        assert_int_equal(unlinkat(base, path, 0), 0);
        assert_true(set_limits(true, 64 * MB, 12, 500, &error) < 0);
        assert_non_null(strstr(error.message, names[i]));
        assert_true(error.remedy[0]);
    }
}

static void test_a_limit_that_the_kernel_changes_is_an_error_on_a_mock(void **unused)
{
    struct tc_error error;
    (void)unused;
    make_v2_files();
    file("g/pids.max", "129"); /* what is written does not replace it all */
    assert_true(set_limits(true, 64 * MB, 64, 500, &error) < 0);
    assert_non_null(strstr(error.message, "pids.max"));
}

static void test_version_1_limits_on_a_mock(void **unused)
{
    static const char *const names[] = { "g/memory.limit_in_bytes", "g/memory.memsw.limit_in_bytes",
                                         "g/pids.max", "g/cpu.cfs_quota_us",
                                         "g/cpu.cfs_period_us" };
    struct tc_error error;
    (void)unused;
    for (size_t i = 0; i < tci_array_size(names); i++)
        file(names[i], "");
    assert_int_equal(set_limits(false, 64 * MB, 12, 500, &error), 0);
    assert_string_equal(text_of("memory.limit_in_bytes"), "67108864");
    assert_string_equal(text_of("memory.memsw.limit_in_bytes"), "67108864");
    assert_string_equal(text_of("cpu.cfs_quota_us"), "50000");
    assert_string_equal(text_of("cpu.cfs_period_us"), ""); /* as the kernel has it */
    file("g/cpu.cfs_quota_us", "");
    assert_int_equal(set_limits(false, 64 * MB, 12, 2, &error), 0);
    assert_string_equal(text_of("cpu.cfs_quota_us"), "2000");
    assert_string_equal(text_of("cpu.cfs_period_us"), "1000000");
}

static void test_a_group_that_would_wait_for_memory_kills_instead_on_a_mock(void **unused)
{
    struct tci_cgroup_hierarchy h = hierarchy(false, TCI_CGROUP_HAS_MEMORY);
    struct tci_cgroup_limits limits = { 64 * MB, TCI_UNLIMITED, TCI_UNLIMITED };
    struct tc_error error = { 0 };
    (void)unused;
    h.oom_waits = true;
    file("g/memory.limit_in_bytes", "");
    file("g/memory.memsw.limit_in_bytes", "");
    file("g/memory.oom_control", "");
    assert_int_equal(tci_cgroup_set_limits(&h, "g", &limits, &error), 0);
    assert_string_equal(text_of("memory.oom_control"), "0");
    file("g/memory.limit_in_bytes", "");
    file("g/memory.memsw.limit_in_bytes", "");
    file("g/memory.oom_control", ".\noom_kill_disable 1\n"); /* and stays so */
    assert_true(tci_cgroup_set_limits(&h, "g", &limits, &error) < 0);
    assert_non_null(strstr(error.message, "memory.oom_control"));
}

static bool host_swaps(void)
{
    char text[256];
    const char *second;
    if (tci_cgroup_read(AT_FDCWD, "/proc", "swaps", text, sizeof text))
        return false;
    second = strchr(text, '\n');
    return second && second[1];
}

static void test_swap_that_is_not_counted_is_refused_if_there_is_any_on_a_mock(void **unused)
{
    struct tc_error error;
    int result;
    (void)unused;
    file("g/memory.limit_in_bytes", "");
    file("g/memory.swappiness", "");
    file("g/pids.max", "");
    file("g/cpu.cfs_quota_us", "");
    result = set_limits(false, 64 * MB, 12, 500, &error);
    assert_int_equal(tci_cgroup_swap_escapes(base, "g"), host_swaps());
    if (host_swaps()) {
        assert_true(result < 0);
        assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    } else {
        assert_int_equal(result, 0);
        assert_string_equal(text_of("memory.swappiness"), "0");
    }
    file("g/memory.memsw.limit_in_bytes", "");
    assert_false(tci_cgroup_swap_escapes(base, "g"));
}

/* ---- counters ------------------------------------------------------------------------------- */

static struct tci_cgroup_usage count(bool v2)
{
    struct tci_cgroup_hierarchy h = hierarchy(v2, TCI_CGROUP_LIMITS | TCI_CGROUP_HAS_CPU_USAGE);
    struct tci_cgroup_usage usage = { 0 };
    assert_int_equal(tci_cgroup_count(&h, "g", &usage), 0);
    return usage;
}

static void test_version_2_counters_on_a_mock(void **unused)
{
    struct tci_cgroup_usage usage;
    (void)unused;
    file("g/memory.events", "low 0\nhigh 0\nmax 77\noom 2\noom_kill 3\noom_group_kill 1\n");
    file("g/pids.events", "max 4\n");
    file("g/cpu.stat", "usage_usec 123456\nuser_usec 1\nsystem_usec 2\n");
    usage = count(true);
    assert_int_equal(usage.oom_kills, 3);
    assert_true(usage.memory_reached);
    assert_int_equal(usage.pids_refused, 4);
    assert_int_equal(usage.cpu_us, 123456);
    assert_int_equal(usage.memory_peak, 0); /* before Linux 5.19: not known */
    assert_int_equal(usage.pids_peak, 0);
    file("g/memory.peak", "1052672\n");
    file("g/pids.peak", "9\n");
    usage = count(true);
    assert_int_equal(usage.memory_peak, 1052672);
    assert_int_equal(usage.pids_peak, 9);
}

static void test_a_host_without_memory_is_told_apart_on_a_mock(void **unused)
{
    struct tci_cgroup_usage usage;
    (void)unused;
    file("g/memory.events", "max 0\noom 0\noom_kill 1\n");
    file("g/pids.events", "max 0\n");
    usage = count(true);
    assert_int_equal(usage.oom_kills, 1);
    assert_false(usage.memory_reached);
    file("g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    file("g/memory.max_usage_in_bytes", "1000000\n");
    file("g/memory.limit_in_bytes", "67108864\n");
    usage = count(false);
    assert_int_equal(usage.oom_kills, 1);
    assert_false(usage.memory_reached);
    file("g/memory.max_usage_in_bytes", "67108864\n");
    assert_true(count(false).memory_reached);
}

static void test_a_counter_that_cannot_be_read_is_not_zero_on_a_mock(void **unused)
{
    struct tci_cgroup_hierarchy h = hierarchy(true, TCI_CGROUP_LIMITS);
    struct tci_cgroup_usage usage = { 0 };
    (void)unused;
    file("g/pids.events", "max 0\n");
    assert_int_equal(tci_cgroup_count(&h, "g", &usage), ENOENT);
    file("g/memory.events", "oom_kill 0\n");
    assert_int_equal(unlinkat(base, "g/pids.events", 0), 0);
    assert_int_equal(tci_cgroup_count(&h, "g", &usage), ENOENT);
}

static void test_fields_are_whole_words_on_a_mock(void **unused)
{
    static const char text[] = "oom_kill_disable 5\nxoom_kill 6\noom_kill 7\nlast max\nbad x\n";
    (void)unused;
    assert_int_equal(tci_cgroup_field(text, "oom_kill"), 7);
    assert_int_equal(tci_cgroup_field(text, "oom"), 0);
    assert_int_equal(tci_cgroup_field(text, "last"), UINT64_MAX);
    assert_int_equal(tci_cgroup_field(text, "bad"), 0);
    assert_int_equal(tci_cgroup_field("", "oom"), 0);
    file("g/number", "max\n");
    assert_int_equal(tci_cgroup_number(base, "g", "number"), UINT64_MAX);
    file("g/number", "-1\n");
    assert_int_equal(tci_cgroup_number(base, "g", "number"), 0);
    assert_int_equal(tci_cgroup_number(base, "g", "absent"), 0);
}

static void test_links_in_a_group_are_not_followed_on_a_mock(void **unused)
{
    (void)unused;
    file("outside", "before");
    assert_int_equal(symlinkat("../outside", base, "g/pids.max"), 0);
    assert_int_equal(tci_cgroup_write(base, "g", "pids.max", "0"), ELOOP);
}

/* ---- where ---------------------------------------------------------------------------------- */

/* A group of the mock: what is on for its children, and what it could give them. */
static void group(const char *path, const char *on, const char *given, const char *processes)
{
    char name[64];
    snprintf(name, sizeof name, "%s/cgroup.subtree_control", path);
    file(name, on);
    snprintf(name, sizeof name, "%s/cgroup.controllers", path);
    file(name, given);
    snprintf(name, sizeof name, "%s/cgroup.procs", path);
    file(name, processes);
    snprintf(name, sizeof name, "%s/cgroup.type", path);
    file(name, "domain\n");
}

/* Chooses from g: -1 none, 0 g itself, 1 what is above it. */
static int choose(unsigned depth, unsigned *ret)
{
    char path[128];
    int own = openat(base, "g", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct tci_cgroup_owner owner = { 1, 2, getpid(), 3 };
    struct tci_cgroup_own place = { own, path, depth, false };
    struct stat a, b;
    int chosen, result = -1;
    snprintf(path, sizeof path, "%s/g", directory);
    chosen = tci_cgroup_choose(&place, TCI_CGROUP_LIMITS, &owner, ret);
    if (chosen >= 0) {
        assert_int_equal(fstat(chosen, &a), 0);
        assert_int_equal(fstat(base, &b), 0);
        result = a.st_ino == b.st_ino;
    }
    if (chosen >= 0 && chosen != own)
        close(chosen);
    close(own);
    return result;
}

static unsigned count_groups(const char *path)
{
    int fd = openat(base, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(fd);
    struct dirent *entry;
    unsigned found = 0;
    assert_non_null(stream);
    while ((entry = readdir(stream)))
        found += entry->d_type == DT_DIR && entry->d_name[0] != '.';
    closedir(stream);
    return found;
}

static void test_our_own_group_is_used_if_its_controllers_are_on_on_a_mock(void **unused)
{
    unsigned bits;
    (void)unused;
    group("g", "cpu io memory pids\n", "cpu io memory pids\n", "");
    group(".", "cpu memory pids\n", "cpu memory pids\n", "");
    assert_int_equal(choose(1, &bits), 0);
    assert_int_equal(bits, TCI_CGROUP_LIMITS);
}

static void test_the_group_above_is_used_if_ours_is_a_leaf_on_a_mock(void **unused)
{
    unsigned bits;
    (void)unused;
    group("g", "", "cpu memory pids\n", "1\n2\n");
    group(".", "memory pids\n", "memory pids\n", "");
    assert_int_equal(choose(1, &bits), 1);
    assert_int_equal(bits, TCI_CGROUP_HAS_MEMORY | TCI_CGROUP_HAS_PIDS);
}

static void test_nothing_above_the_top_is_looked_at_on_a_mock(void **unused)
{
    unsigned bits;
    (void)unused;
    group("g", "", "cpu memory pids\n", "1\n2\n");
    group(".", "cpu memory pids\n", "cpu memory pids\n", "");
    assert_int_equal(choose(0, &bits), -1);
}

static void test_a_group_with_other_processes_is_left_as_it_is_on_a_mock(void **unused)
{
    char processes[64];
    unsigned bits;
    (void)unused;
    snprintf(processes, sizeof processes, "%d\n%d\n", (int)getpid(), (int)getppid());
    group("g", "", "cpu memory pids\n", processes);
    assert_int_equal(choose(0, &bits), -1);
    assert_string_equal(text_of("cgroup.procs"), processes);
    assert_string_equal(text_of("cgroup.subtree_control"), "");
    assert_int_equal(count_groups("g"), 0);
    group("g", "", "cpu memory pids\n", "0\n"); /* one that our pid namespace does not show */
    assert_int_equal(choose(0, &bits), -1);
    assert_int_equal(count_groups("g"), 0);
}

static void test_an_empty_group_gets_its_controllers_turned_on_on_a_mock(void **unused)
{
    unsigned bits;
    (void)unused;
    group("g", "", "memory io\n", "");
    /* The mock does not turn "+memory" into "memory", so nothing is on afterwards. */
    assert_int_equal(choose(0, &bits), -1);
    assert_string_equal(text_of("cgroup.subtree_control"), "+memory");
}

static void test_a_step_down_that_does_not_help_is_taken_back_on_a_mock(void **unused)
{
    char self[32];
    unsigned bits;
    (void)unused;
    snprintf(self, sizeof self, "%d\n", (int)getpid());
    group("g", "", "cpu memory pids\n", self);
    assert_int_equal(choose(0, &bits), -1); /* a mock's leaf has no cgroup.procs */
    assert_int_equal(count_groups("g"), 0);
}

static void test_a_group_of_somebody_else_is_not_used_on_a_mock(void **unused)
{
    int status;
    pid_t pid;
    (void)unused;
    if (geteuid() != 0)
        skip();
    group("g", "cpu memory pids\n", "cpu memory pids\n", "");
    assert_int_equal(fchmod(base, 0755), 0);
    pid = fork();
    if (pid == 0) {
        unsigned bits;
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(9);
        _exit(choose(1, &bits) == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- making --------------------------------------------------------------------------------- */

static void test_a_group_that_cannot_be_made_whole_leaves_nothing_on_a_mock(void **unused)
{
    /* In a mock a new directory has no files, so that no limit can be set. */
    struct tci_cgroups groups = { .count = 1, .has = TCI_CGROUP_LIMITS, .kind = "v2" };
    struct tci_cgroup_limits limits = { 64 * MB, 12, 500 };
    struct tci_cgroup *made = NULL;
    struct tc_error error = { 0 };
    (void)unused;
    groups.hierarchies[0] = hierarchy(true, TCI_CGROUP_LIMITS);
    pthread_mutex_init(&groups.lock, NULL);
    assert_int_equal(tci_cgroup_owner_self(&groups.owner), 0);
    assert_true(tci_cgroup_make(&groups, "x", &limits, &made, &error) < 0);
    assert_non_null(strstr(error.message, "memory.max"));
    assert_null(made);
    assert_int_equal(count_groups("."), 1);
    limits.memory = limits.pids = TCI_UNLIMITED;
    groups.has = TCI_CGROUP_HAS_MEMORY;
    memset(&error, 0, sizeof error);
    assert_true(tci_cgroup_make(&groups, "x", &limits, &made, &error) < 0);
    assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cpu"));
}

#define mock_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        mock_test(test_version_2_limits_on_a_mock),
        mock_test(test_what_is_unlimited_is_left_open_on_a_mock),
        mock_test(test_a_limit_that_cannot_be_written_is_an_error_on_a_mock),
        mock_test(test_a_limit_that_the_kernel_changes_is_an_error_on_a_mock),
        mock_test(test_version_1_limits_on_a_mock),
        mock_test(test_swap_that_is_not_counted_is_refused_if_there_is_any_on_a_mock),
        mock_test(test_a_group_that_would_wait_for_memory_kills_instead_on_a_mock),
        mock_test(test_version_2_counters_on_a_mock),
        mock_test(test_a_host_without_memory_is_told_apart_on_a_mock),
        mock_test(test_a_counter_that_cannot_be_read_is_not_zero_on_a_mock),
        mock_test(test_fields_are_whole_words_on_a_mock),
        mock_test(test_links_in_a_group_are_not_followed_on_a_mock),
        mock_test(test_our_own_group_is_used_if_its_controllers_are_on_on_a_mock),
        mock_test(test_the_group_above_is_used_if_ours_is_a_leaf_on_a_mock),
        mock_test(test_nothing_above_the_top_is_looked_at_on_a_mock),
        mock_test(test_a_group_with_other_processes_is_left_as_it_is_on_a_mock),
        mock_test(test_an_empty_group_gets_its_controllers_turned_on_on_a_mock),
        mock_test(test_a_step_down_that_does_not_help_is_taken_back_on_a_mock),
        mock_test(test_a_group_of_somebody_else_is_not_used_on_a_mock),
        mock_test(test_a_group_that_cannot_be_made_whole_leaves_nothing_on_a_mock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
