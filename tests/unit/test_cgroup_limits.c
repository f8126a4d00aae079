/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of control groups on this kernel: what is limited and counted, and that all is
 * killed.
 */
#include "cgroup_support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/cgroup/cgroup_internal.h"
#include "policy/model.h"

/* The same without the part of version 2, as on a host that has version 1 alone. */
static void leave_out_v2(struct tci_cgroups *groups)
{
    struct stat a, b;
    int base = open("/sys/fs/cgroup/cpuacct", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!groups->hierarchies[0].v2 || strcmp(groups->kind, "hybrid") != 0) {
        if (base >= 0)
            close(base);
        return;
    }
    close(groups->hierarchies[0].base);
    memmove(&groups->hierarchies[0], &groups->hierarchies[1],
            --groups->count * sizeof groups->hierarchies[0]);
    groups->has &= ~(unsigned)TCI_CGROUP_HAS_CPU_USAGE;
    if (base < 0)
        return;
    for (unsigned i = 0; i < groups->count; i++)
        if (fstat(base, &a) == 0 && fstat(groups->hierarchies[i].base, &b) == 0 &&
            a.st_dev == b.st_dev) {
            groups->hierarchies[i].controllers |= TCI_CGROUP_HAS_CPU_USAGE;
            groups->has |= TCI_CGROUP_HAS_CPU_USAGE;
            close(base);
            return;
        }
    groups->hierarchies[groups->count++] =
        (struct tci_cgroup_hierarchy){ .base = base, .controllers = TCI_CGROUP_HAS_CPU_USAGE };
    groups->has |= TCI_CGROUP_HAS_CPU_USAGE;
}

static char directory_for_tmpfs[64];

/* A mount namespace, within a user namespace for those who need one. */
static bool enter_mount_namespace(void)
{
    char users[32], groups[32];
    uid_t uid = geteuid();
    snprintf(users, sizeof users, "0 %u 1", uid);
    snprintf(groups, sizeof groups, "0 %u 1", getegid());
    if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0)
        return false;
    if (uid && (tci_cgroup_write(AT_FDCWD, "/proc/self", "uid_map", users) ||
                tci_cgroup_write(AT_FDCWD, "/proc/self", "setgroups", "deny") ||
                tci_cgroup_write(AT_FDCWD, "/proc/self", "gid_map", groups)))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int do_fill_tmpfs(void)
{
    static char block[65536];
    char path[96];
    int fd;
    memset(block, 'x', sizeof block);
    if (!enter_mount_namespace() ||
        mount("tmpfs", directory_for_tmpfs, "tmpfs", 0, "size=128M") < 0)
        return 103;
    snprintf(path, sizeof path, "%s/file", directory_for_tmpfs);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) == sizeof block)
        ;
    return 104; /* it must not come to this: the memory limit is below the file system's */
}

static int do_fork_ten(void)
{
    int refused = 0;
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0)
            do_sleep();
        if (pid < 0)
            refused += errno == EAGAIN;
    }
    return refused;
}

static int do_burn(void)
{
    pid_t pid = fork(); /* two of them: the limit is on the tree */
    burn(1000);
    if (pid == 0)
        _exit(0);
    wait(NULL);
    return 0;
}

static int do_bomb(void)
{
    for (;;)
        if (fork() == 0)
            setsid(); /* out of the session and the process group */
    return 0;
}

/* ---- limits --------------------------------------------------------------------------------- */

static void check_memory_hit(int (*function)(void))
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 32 * MB, 16, TCI_UNLIMITED);
    struct pollfd event = { .fd = group->events, .events = group->events_mask };
    struct tci_cgroup_usage usage;
    int status;
    pid_t pid;
    assert_true(group->events >= 0);
    assert_int_equal(poll(&event, 1, 0), 0); /* quiet until something happens */
    pid = start(group, function);
    for (;;) { /* version 2 also fires while it still tries to reclaim */
        assert_int_equal(poll(&event, 1, 20000), 1);
        if (tci_cgroup_look(group) > 0)
            break;
        sleep_ms(5);
        if (tci_cgroup_look(group) > 0)
            break;
    }
    status = wait_for(pid);
    if (!WIFSIGNALED(status))
        fail_msg("exit status %d", WEXITSTATUS(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    usage = usage_of(group);
    assert_true(usage.oom_kills >= 1);
    assert_true(usage.memory_reached);
    assert_int_equal(usage.pids_refused, 0);
    if (usage.memory_peak)
        assert_in_range(usage.memory_peak, 30 * MB, 32 * MB);
    tci_cgroup_free(group);
    assert_int_equal(count_directories(groups, getpid()), 0); /* such a group is not kept */
    tci_cgroups_free(groups);
}

static void test_memory_beyond_the_limit_is_killed_counted_and_told(void **unused)
{
    (void)unused;
    check_memory_hit(do_eat_memory);
}

static void test_tmpfs_counts_as_memory(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    (void)unused;
    tci_cgroups_free(groups);
    strcpy(directory_for_tmpfs, "/tmp/test_cgroup_XXXXXX");
    assert_non_null(mkdtemp(directory_for_tmpfs));
    check_memory_hit(do_fill_tmpfs);
    assert_int_equal(rmdir(directory_for_tmpfs), 0);
}

static void test_processes_beyond_the_limit_are_refused_and_counted(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 64 * MB, 4, TCI_UNLIMITED);
    struct tci_cgroup_usage usage;
    int status = wait_for(start(group, do_fork_ten));
    (void)unused;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    tci_cgroup_kill(group, 2000);
    usage = usage_of(group);
    assert_int_equal(usage.pids_refused, 7);
    assert_int_equal(usage.oom_kills, 0);
    if (usage.pids_peak)
        assert_int_equal(usage.pids_peak, 4);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_a_share_of_the_processor_is_kept_by_the_whole_tree(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 64 * MB, 16, 200);
    uint64_t cpu_us;
    (void)unused;
    assert_int_equal(wait_for(start(group, do_burn)), 0);
    cpu_us = usage_of(group).cpu_us;
    print_message("# 0.2 cores for 1 s: %llu us\n", (unsigned long long)cpu_us);
    /* A loaded host gives less; more than the quota of one more period is never right. */
    assert_in_range(cpu_us, 40000, 300000);
    assert_in_range(tci_cgroup_cpu_us(group), cpu_us, cpu_us + 20000);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void check_bomb(struct tci_cgroups *groups)
{
    struct tci_cgroup *group = make(groups, 256 * MB, 64, 500);
    pid_t pid = start(group, do_bomb);
    struct tci_cgroup_usage before, after;
    int64_t begin;
    for (int i = 0; i < 500 && usage_of(group).pids_refused == 0; i++)
        sleep_ms(10);
    before = usage_of(group);
    assert_true(before.pids_refused > 0);
    begin = now_ms();
    tci_cgroup_kill(group, 10000);
    assert_true(now_ms() - begin < 10000);
    for (unsigned i = 0; i < groups->count; i++) {
        char text[64];
        if (tci_cgroup_read(groups->hierarchies[i].base, group->name, "cgroup.procs", text,
                            sizeof text) == 0)
            assert_string_equal(text, "");
    }
    after = usage_of(group);
    assert_true(after.pids_refused >= before.pids_refused);
    wait_for(pid);
    tci_cgroup_free(group);
    assert_int_equal(count_directories(groups, getpid()), 0);
    tci_cgroups_free(groups);
}

static void test_kill_ends_a_fork_bomb_that_left_its_session(void **unused)
{
    (void)unused;
    check_bomb(open_usable());
}

static void test_kill_ends_a_fork_bomb_without_version_2(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    (void)unused;
    leave_out_v2(groups);
    check_bomb(groups);
}

static void test_kill_does_not_look_like_a_limit_that_was_hit(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group;
    pid_t pid;
    (void)unused;
    leave_out_v2(groups);
    group = make(groups, 64 * MB, 16, TCI_UNLIMITED);
    pid = start(group, do_sleep);
    sleep_ms(20);
    tci_cgroup_kill(group, 2000);
    wait_for(pid);
    assert_int_equal(usage_of(group).pids_refused, 0);
    assert_int_equal(usage_of(group).oom_kills, 0);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

static void test_kill_of_an_empty_group_is_harmless(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    struct tci_cgroup *group = make(groups, 64 * MB, 16, TCI_UNLIMITED);
    int64_t begin = now_ms();
    (void)unused;
    tci_cgroup_kill(group, 5000);
    tci_cgroup_kill(group, 5000);
    assert_true(now_ms() - begin < 1000);
    assert_int_equal(wait_for(start(group, do_eat_a_little)), 0);
    tci_cgroup_free(group);
    tci_cgroups_free(groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaned(test_memory_beyond_the_limit_is_killed_counted_and_told),
        cleaned(test_tmpfs_counts_as_memory),
        cleaned(test_processes_beyond_the_limit_are_refused_and_counted),
        cleaned(test_a_share_of_the_processor_is_kept_by_the_whole_tree),
        cleaned(test_kill_ends_a_fork_bomb_that_left_its_session),
        cleaned(test_kill_ends_a_fork_bomb_without_version_2),
        cleaned(test_kill_does_not_look_like_a_limit_that_was_hit),
        cleaned(test_kill_of_an_empty_group_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
