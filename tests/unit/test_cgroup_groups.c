/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of control groups on this kernel: how they are made, named, used again and removed.
 */
#include "cgroup_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/cgroup/cgroup_internal.h"
#include "policy/model.h"

static int count_fds(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static int do_nothing(void)
{
    return 7;
}

/* Three processes, dead or alive, at a time. */
static int do_fork_twice(void)
{
    pid_t first = fork(), second = first == 0 ? 0 : fork();
    if (first == 0 || second == 0)
        _exit(0);
    (void)waitpid(first, NULL, 0);
    (void)waitpid(second, NULL, 0);
    return 7;
}

/* ---- making and removing -------------------------------------------------------------------- */

static void test_root_or_a_delegated_user_has_every_controller(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    (void)unused;
    assert_string_not_equal(tci_cgroups_kind(groups), "none");
    tci_cgroups_free(groups);
}

static void test_a_child_runs_in_every_group_of_its_cage(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 32 * MB, 16, 1000);
    char path[64], text[4096];
    pid_t pid = start(group, do_sleep);
    unsigned lines = 0;
    (void)unused;
    sleep_ms(30);
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    assert_int_equal(tci_cgroup_read(AT_FDCWD, path, "cgroup", text, sizeof text), 0);
    for (const char *at = text; (at = strstr(at, group->name)); at++)
        lines++;
    assert_int_equal(lines, groups->count);
    tci_cgroup_kill(group, 1000);
    assert_true(WIFSIGNALED(wait_for(pid)));
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_nothing_is_left_after_free(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *look = open_groups();
    struct tci_cgroup *group;
    int fds = count_fds();
    (void)unused;
    for (int i = 0; i < 3; i++) {
        group = make(groups, 32 * MB, 16, 1000);
        assert_int_equal(count_directories(look, getpid()), look->count);
        assert_int_equal(WEXITSTATUS(wait_for(start(group, do_nothing))), 7);
        tci_cgroup_free(group); /* nobody has read its counters: it is not kept */
        assert_int_equal(count_directories(look, getpid()), 0);
    }
    assert_int_equal(count_fds(), fds);
    tci_cgroups_free(groups);
    tci_cgroups_free(look);
}

static void test_a_group_that_is_freed_with_a_process_in_it_is_emptied(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *look = open_groups();
    struct tci_cgroup *group = make(groups, 32 * MB, 16, 1000);
    pid_t pid = start(group, do_sleep);
    int64_t begin;
    (void)unused;
    sleep_ms(20);
    begin = now_ms();
    tci_cgroup_free(group);
    assert_true(now_ms() - begin < 2500);
    assert_int_equal(count_directories(look, getpid()), 0);
    assert_int_equal(WTERMSIG(wait_for(pid)), SIGKILL);
    tci_cgroups_free(groups);
    tci_cgroups_free(look);
}

static void test_descriptors_do_not_survive_exec(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 32 * MB, 16, 1000);
    (void)unused;
    for (unsigned i = 0; i < group->enter_count; i++)
        assert_true(fcntl(group->enter[i], F_GETFD) & FD_CLOEXEC);
    if (group->into >= 0)
        assert_true(fcntl(group->into, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(group->events, F_GETFD) & FD_CLOEXEC);
    for (unsigned i = 0; i < groups->count; i++)
        assert_true(fcntl(groups->hierarchies[i].base, F_GETFD) & FD_CLOEXEC);
    tci_cgroup_entered(group);
    assert_int_equal(group->enter_count, 0);
    assert_int_equal(group->into, -1);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_a_bad_name_or_limit_makes_nothing(void **unused)
{
    static const char *const bad[] = { "", "a/b", "a b", "..\n",
                                       "12345678901234567890123456789012345678901" };
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup_limits limits = { 32 * MB, 16, 1000 }, none = { 32 * MB, 0, 1000 };
    struct tci_cgroup *group = NULL;
    struct tc_error error;
    (void)unused;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        memset(&error, 0, sizeof error);
        assert_true(tci_cgroup_make(groups, bad[i], &limits, &group, &error) < 0);
        assert_int_equal(error.code, TC_ERROR_USAGE);
    }
    memset(&error, 0, sizeof error);
    assert_true(tci_cgroup_make(groups, "zero", &none, &group, &error) < 0);
    assert_non_null(strstr(error.message, "pids"));
    assert_int_equal(count_directories(groups, getpid()), 0);
    tci_cgroups_free(groups);
}

static void test_two_cages_of_one_name_are_refused(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup_limits limits = { 32 * MB, 16, 1000 };
    struct tci_cgroup *group = NULL, *second = NULL;
    struct tc_error error = { 0 };
    (void)unused;
    assert_int_equal(tci_cgroup_make(groups, "same", &limits, &group, &error), 0);
    assert_true(tci_cgroup_make(groups, "same", &limits, &second, &error) < 0);
    assert_true(is_there(groups, group->name)); /* and the first one stays */
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_limits_are_what_the_kernel_says(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 33 * MB + 5, 17, 250);
    uint64_t memory = 0, pids = 0;
    char cpu[64] = "";
    (void)unused;
    for (unsigned i = 0; i < groups->count; i++) {
        const struct tci_cgroup_hierarchy *h = &groups->hierarchies[i];
        if (h->controllers & TCI_CGROUP_HAS_MEMORY)
            memory = tci_cgroup_number(h->base, group->name,
                                       h->v2 ? "memory.max" : "memory.limit_in_bytes");
        if (h->controllers & TCI_CGROUP_HAS_PIDS)
            pids = tci_cgroup_number(h->base, group->name, "pids.max");
        if (h->controllers & TCI_CGROUP_HAS_CPU)
            assert_int_equal(tci_cgroup_read(h->base, group->name,
                                             h->v2 ? "cpu.max" : "cpu.cfs_quota_us", cpu,
                                             sizeof cpu),
                             0);
    }
    assert_int_equal(memory, 33 * MB);
    assert_int_equal(pids, 17);
    assert_int_equal(atoi(cpu), 25000);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_the_smallest_share_of_a_processor_can_be_set(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    (void)unused;
    tci_cgroup_free(make(groups, 32 * MB, 16, 1));
    tci_cgroup_free(make(groups, 32 * MB, 16, 9));
    tci_cgroup_free(make(groups, 32 * MB, UINT64_MAX - 1, 1000000));
    tci_cgroups_free(groups);
}

static void test_without_limits_usage_is_still_measured(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, TCI_UNLIMITED, TCI_UNLIMITED, TCI_UNLIMITED);
    struct tci_cgroup_usage usage;
    (void)unused;
    assert_int_equal(group->events, -1);
    assert_int_equal(wait_for(start(group, do_eat_a_little)), 0);
    usage = usage_of(group);
    assert_int_equal(usage.oom_kills, 0);
    if (usage.memory_peak)
        assert_in_range(usage.memory_peak, 8 * MB, 24 * MB);
    assert_in_range(usage.cpu_us, 1, 5000000);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

/* ---- groups that are used again ------------------------------------------------------------- */

static void test_a_group_that_is_used_again_is_as_good_as_new(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group;
    struct tci_cgroup_usage usage;
    char name[TCI_CGROUP_NAME_MAX];
    (void)unused;
    if (groups->hierarchies[0].v2 && groups->hierarchies[0].controllers & TCI_CGROUP_LIMITS) {
        tci_cgroups_free(groups); /* version 2 keeps none; checked by the next test */
        return;
    }
    group = make(groups, 64 * MB, 16, 1000);
    strcpy(name, group->name);
    assert_int_equal(wait_for(start(group, do_eat_a_little)), 0);
    usage = usage_of(group);
    assert_true(usage.memory_peak >= 8 * MB);
    tci_cgroup_free(group);
    group = make(groups, 64 * MB, 16, 1000);
    assert_string_equal(group->name, name);
    usage = usage_of(group);
    assert_true(usage.memory_peak < 4 * MB + 1);
    assert_true(usage.cpu_us < 100);
    assert_true(usage.pids_peak <= 2); /* no cage has fewer: its init and its command */
    assert_int_equal(WEXITSTATUS(wait_for(start(group, do_nothing))), 7);
    assert_true(usage_of(group).memory_peak < 8 * MB);
    tci_cgroup_free(group);
    group = make(groups, 65 * MB, 16, 1000); /* other limits, another group */
    assert_string_not_equal(group->name, name);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_a_group_that_had_many_processes_does_not_show_it_to_the_next(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 64 * MB, 16, 1000);
    (void)unused;
    assert_int_equal(WEXITSTATUS(wait_for(start(group, do_fork_twice))), 7);
    assert_true(usage_of(group).pids_peak == 3 || usage_of(group).pids_peak == 0);
    tci_cgroup_free(group);
    group = make(groups, 64 * MB, 16, 1000);
    assert_int_equal(usage_of(group).pids_peak, 0);
    assert_int_equal(WEXITSTATUS(wait_for(start(group, do_nothing))), 7);
    assert_true(usage_of(group).pids_peak <= 1);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_the_pool_is_bounded_and_removed_with_the_rest(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *look = open_groups();
    struct tci_cgroup *made[TCI_CGROUP_POOL_MAX + 4];
    (void)unused;
    for (size_t i = 0; i < tci_array_size(made); i++)
        made[i] = make(groups, 64 * MB, 16, 1000);
    for (size_t i = 0; i < tci_array_size(made); i++) {
        usage_of(made[i]);
        tci_cgroup_free(made[i]);
    }
    assert_true(groups->pool_count <= TCI_CGROUP_POOL_MAX);
    assert_true(count_directories(look, getpid()) <= TCI_CGROUP_POOL_MAX * groups->count);
    tci_cgroups_free(groups);
    assert_int_equal(count_directories(look, getpid()), 0);
    tci_cgroups_free(look);
}

static void test_a_forked_child_uses_names_and_groups_of_its_own(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *look = open_groups();
    struct tci_cgroup *group = make(groups, 64 * MB, 16, 1000);
    unsigned before;
    pid_t pid;
    (void)unused;
    usage_of(group);
    tci_cgroup_free(group);
    before = count_directories(look, getpid());
    pid = fork();
    if (pid == 0) {
        struct tci_cgroup_limits limits = { 64 * MB, 16, 1000 };
        struct tci_cgroup_owner owner;
        struct tci_cgroup_usage usage;
        const char *id;
        bool ok = tci_cgroup_make(groups, "child", &limits, &group, NULL) == 0 &&
                  tci_cgroup_name_parse(group->name, &owner, &id) && owner.pid == getpid() &&
                  tci_cgroup_usage(group, &usage, NULL) == 0;
        tci_cgroup_free(group);
        tci_cgroups_free(groups);
        _exit(ok && count_directories(look, getpid()) == 0 ? 0 : 1);
    }
    assert_int_equal(wait_for(pid), 0);
    assert_int_equal(count_directories(look, getpid()), before);
    tci_cgroups_free(groups);
    assert_int_equal(count_directories(look, getpid()), 0);
    tci_cgroups_free(look);
}

static void *use_groups(void *argument)
{
    struct thread *t = argument;
    struct tci_cgroup_limits limits = { (uint64_t)(32 + t->number % 2) * MB, 16, 1000 };
    for (int i = 0; i < 40; i++) {
        struct tci_cgroup *group = NULL;
        struct tci_cgroup_usage usage;
        char id[32];
        snprintf(id, sizeof id, "thread%d.%d", t->number, i);
        if (tci_cgroup_make(t->groups, id, &limits, &group, NULL) < 0) {
            t->failures++;
            continue;
        }
        if (tci_cgroup_usage(group, &usage, NULL) < 0 || usage.oom_kills)
            t->failures++;
        tci_cgroup_free(group);
    }
    return NULL;
}

static void test_many_threads_share_one_set_of_groups(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *look = open_groups();
    struct thread threads[4];
    (void)unused;
    for (int i = 0; i < 4; i++) {
        threads[i] = (struct thread){ .groups = groups, .number = i };
        assert_int_equal(pthread_create(&threads[i].id, NULL, use_groups, &threads[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i].id, NULL);
        assert_int_equal(threads[i].failures, 0);
    }
    tci_cgroups_free(groups);
    assert_int_equal(count_directories(look, getpid()), 0);
    tci_cgroups_free(look);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void test_names_are_read_back_and_nothing_else_is_a_name(void **unused)
{
    static const char *const wrong[] = {
        "toolcage-",
        "toolcage-1.2-3-4",
        "toolcage-1.2-3-4-",
        "toolcage-1.2-0-4-x",
        "toolcage-1.2--3-4-x",
        "toolcage-01.2-3-4-x",
        "toolcage- 1.2-3-4-x",
        "toolcage-1.2-3-4-a/b",
        "toolcage-1.2-3-4-a b",
        "Toolcage-1.2-3-4-x",
        "xtoolcage-1.2-3-4-x",
        "toolcage-1.2-3-99999999999999999999-x",
        "toolcage-1.2-99999999999-4-x",
        "toolcage-1.2-3-4-12345678901234567890123456789012345678901",
    };
    struct tci_cgroup_owner owner = { 0xf0000001, 0xeffffffa, 4194303, 18446744073U }, back;
    char name[TCI_CGROUP_NAME_MAX];
    const char *id;
    (void)unused;
    assert_true(tci_cgroup_name(&owner, "018f-7c.A_z", name, sizeof name));
    assert_string_equal(name, "toolcage-f0000001.effffffa-4194303-18446744073-018f-7c.A_z");
    assert_true(tci_cgroup_name_parse(name, &back, &id));
    assert_string_equal(id, "018f-7c.A_z");
    assert_int_equal(back.pid_namespace, owner.pid_namespace);
    assert_int_equal(back.time_namespace, owner.time_namespace);
    assert_int_equal(back.pid, owner.pid);
    assert_int_equal(back.started, owner.started);
    for (size_t i = 0; i < tci_array_size(wrong); i++)
        if (tci_cgroup_name_parse(wrong[i], &back, &id))
            fail_msg("taken for a name: %s", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaned(test_names_are_read_back_and_nothing_else_is_a_name),
        cleaned(test_root_or_a_delegated_user_has_every_controller),
        cleaned(test_a_child_runs_in_every_group_of_its_cage),
        cleaned(test_nothing_is_left_after_free),
        cleaned(test_a_group_that_is_freed_with_a_process_in_it_is_emptied),
        cleaned(test_descriptors_do_not_survive_exec),
        cleaned(test_a_bad_name_or_limit_makes_nothing),
        cleaned(test_two_cages_of_one_name_are_refused),
        cleaned(test_limits_are_what_the_kernel_says),
        cleaned(test_the_smallest_share_of_a_processor_can_be_set),
        cleaned(test_without_limits_usage_is_still_measured),
        cleaned(test_a_group_that_is_used_again_is_as_good_as_new),
        cleaned(test_a_group_that_had_many_processes_does_not_show_it_to_the_next),
        cleaned(test_the_pool_is_bounded_and_removed_with_the_rest),
        cleaned(test_a_forked_child_uses_names_and_groups_of_its_own),
        cleaned(test_many_threads_share_one_set_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
