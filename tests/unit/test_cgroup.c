/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins control groups on the kernel that runs the tests, whatever version it has: what is limited,
 * counted, killed, removed and collected. Needs groups that may be used: root, or a delegated one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cgroup/cgroup_internal.h"
#include "policy/model.h"

#define MB (UINT64_C(1) << 20)

/* ---- helpers ------------------------------------------------------------------------------- */

static struct tci_cgroups *open_groups(void)
{
    struct tc_error error = { 0 };
    struct tci_cgroups *groups = NULL;
    assert_int_equal(tci_cgroups_open(&groups, &error), 0);
    assert_non_null(groups);
    return groups;
}

/* Groups with every controller; a host without them fails where it must work, and is skipped
 * elsewhere. */
static struct tci_cgroups *open_usable(void)
{
    const char *must = getenv("TOOLCAGE_MUST_WORK");
    struct tci_cgroups *groups = open_groups();
    if (tci_cgroups_has(groups) == (TCI_CGROUP_LIMITS | TCI_CGROUP_HAS_CPU_USAGE))
        return groups;
    print_message("# has %x of kind %s\n", tci_cgroups_has(groups), tci_cgroups_kind(groups));
    tci_cgroups_free(groups);
    if (must && (strstr(must, "cgroup") || strstr(must, "jail")))
        fail_msg("no usable control groups");
    skip();
    return NULL;
}

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

static struct tci_cgroup *make(struct tci_cgroups *groups, uint64_t memory, uint64_t pids,
                               uint64_t cpu)
{
    static unsigned number;
    struct tci_cgroup_limits limits = { memory, pids, cpu };
    struct tci_cgroup *group = NULL;
    struct tc_error error = { 0 };
    char id[32];
    snprintf(id, sizeof id, "t%u", number++);
    if (tci_cgroup_make(groups, id, &limits, &group, &error) < 0)
        fail_msg("%s (%s)", error.message, error.remedy);
    return group;
}

static struct tci_cgroup_usage usage_of(const struct tci_cgroup *group)
{
    struct tci_cgroup_usage usage;
    struct tc_error error = { 0 };
    if (tci_cgroup_usage(group, &usage, &error) < 0)
        fail_msg("%s", error.message);
    return usage;
}

/* A child in the group, which exits with what `function` returns. */
static pid_t start(const struct tci_cgroup *group, int (*function)(void))
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    unsigned first = 0;
    pid_t pid;
    if (group->into >= 0) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)group->into;
        first = group->enter_after_clone;
    }
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned i = first; i < group->enter_count; i++)
            if (write(group->enter[i], "0", 1) != 1)
                _exit(101);
        _exit(function());
    }
    assert_true(pid > 0);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static int64_t now_ms(void)
{
    return tci_cgroup_now_ms();
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

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

/* Directories of a process's making in all hierarchies. */
static unsigned count_directories(const struct tci_cgroups *groups, pid_t pid)
{
    unsigned count = 0;
    for (unsigned i = 0; i < groups->count; i++) {
        int fd = openat(groups->hierarchies[i].base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fdopendir(fd);
        struct dirent *entry;
        assert_non_null(directory);
        while ((entry = readdir(directory))) {
            struct tci_cgroup_owner owner;
            const char *id;
            if (tci_cgroup_name_parse(entry->d_name, &owner, &id) && owner.pid == pid &&
                strcmp(id, TCI_CGROUP_SELF) != 0)
                count++;
        }
        closedir(directory);
    }
    return count;
}

/* A test that failed half-way must not make the next ones fail. */
static int clean(void **unused)
{
    struct tci_cgroups *groups = NULL;
    (void)unused;
    if (tci_cgroups_open(&groups, NULL) < 0)
        return -1;
    for (unsigned i = 0; i < groups->count; i++) {
        int fd = openat(groups->hierarchies[i].base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        while (directory && (entry = readdir(directory))) {
            struct tci_cgroup_owner owner;
            const char *id;
            if (!tci_cgroup_name_parse(entry->d_name, &owner, &id) || owner.pid != getpid() ||
                strcmp(id, TCI_CGROUP_SELF) == 0)
                continue;
            (void)tci_cgroup_kill_named(&groups->hierarchies[i], entry->d_name, 1000);
            (void)tci_cgroup_remove_named(&groups->hierarchies[i], entry->d_name, 1000);
        }
        if (directory)
            closedir(directory);
    }
    tci_cgroups_free(groups);
    return 0;
}

static bool is_there(const struct tci_cgroups *groups, const char *name)
{
    for (unsigned i = 0; i < groups->count; i++)
        if (faccessat(groups->hierarchies[i].base, name, F_OK, 0) == 0)
            return true;
    return false;
}

/* ---- what children do ----------------------------------------------------------------------- */

static int do_nothing(void)
{
    return 7;
}

static int do_sleep(void)
{
    for (;;)
        pause();
    return 0;
}

static int touch(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 102;
    for (uint64_t i = 0; i < bytes; i += 4096)
        ((volatile char *)memory)[i] = 1;
    return 0;
}

static int do_eat_memory(void)
{
    return touch(128 * MB);
}

/* Long enough for a clock that ticks every few milliseconds, as some virtual machines have. */
static void burn(int64_t ms)
{
    volatile unsigned work = 0;
    for (int64_t end = now_ms() + ms; now_ms() < end;)
        for (int i = 0; i < 10000; i++)
            work++;
}

static int do_eat_a_little(void)
{
    burn(30);
    return touch(8 * MB);
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

struct thread {
    pthread_t id;
    struct tci_cgroups *groups;
    int number, failures;
};

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

/* ---- what a dead owner left ----------------------------------------------------------------- */

/* An owner with one process in a cage; says when it is ready and dies when it is told to. */
static pid_t start_owner(int *ret_ready, pid_t *ret_caged)
{
    int ready[2];
    pid_t pid;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        struct tci_cgroups *groups = open_groups();
        struct tci_cgroup *group = make(groups, 64 * MB, 16, 1000);
        pid_t caged = fork();
        if (caged == 0) {
            setsid();
            for (unsigned i = 0; i < group->enter_count; i++)
                if (write(group->enter[i], "0", 1) != 1)
                    _exit(1);
            caged = getpid();
            (void)!write(ready[1], &caged, sizeof caged);
            do_sleep();
        }
        do_sleep();
    }
    assert_int_equal(read(ready[0], ret_caged, sizeof *ret_caged), sizeof *ret_caged);
    close(ready[1]);
    *ret_ready = ready[0];
    return pid;
}

static void test_a_living_owner_is_left_alone_and_a_dead_one_collected(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *again;
    int ready, ended = -1;
    char byte;
    pid_t caged, owner = start_owner(&ready, &caged);
    (void)unused;
    again = open_groups();
    assert_int_equal(count_directories(groups, owner), groups->count);
    assert_int_equal(kill(caged, 0), 0);
    tci_cgroups_free(again);

    ended = (int)syscall(SYS_pidfd_open, caged, 0);
    assert_true(ended >= 0);
    kill(owner, SIGKILL);
    /* Dead, and not reaped yet: that is what a parent that does not care leaves. */
    assert_int_equal(waitid(P_PID, (id_t)owner, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
    again = open_groups();
    assert_int_equal(count_directories(groups, owner), 0);
    /* Its last writer is gone. */
    assert_int_equal(poll(&(struct pollfd){ .fd = ended, .events = POLLIN }, 1, 2000), 1);
    assert_int_equal(read(ready, &byte, 1), 0);
    wait_for(owner);
    close(ended);
    close(ready);
    tci_cgroups_free(again);
    tci_cgroups_free(groups);
}

static void make_in_all(const struct tci_cgroups *groups, const char *name)
{
    for (unsigned i = 0; i < groups->count; i++)
        assert_int_equal(mkdirat(groups->hierarchies[i].base, name, 0755), 0);
}

static void remove_from_all(const struct tci_cgroups *groups, const char *name)
{
    for (unsigned i = 0; i < groups->count; i++)
        assert_int_equal(unlinkat(groups->hierarchies[i].base, name, AT_REMOVEDIR), 0);
}

static void test_only_names_of_dead_owners_in_our_namespaces_are_swept(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *again;
    struct tci_cgroup_owner dead = groups->owner, other = dead, self = dead, reused = dead;
    char names[6][TCI_CGROUP_NAME_MAX];
    pid_t pid = fork();
    (void)unused;
    if (pid == 0)
        _exit(0);
    wait_for(pid);
    dead.pid = pid;
    other.pid = pid;
    other.pid_namespace ^= 1;
    reused.pid = getppid(); /* lives, but began at another time than this says */
    reused.started = 1;
    assert_true(tci_cgroup_name(&dead, "gone", names[0], sizeof names[0]));
    assert_true(tci_cgroup_name(&other, "gone", names[1], sizeof names[1]));
    assert_true(tci_cgroup_name(&self, "mine", names[2], sizeof names[2]));
    assert_true(tci_cgroup_name(&reused, "gone", names[3], sizeof names[3]));
    snprintf(names[4], sizeof names[4], "toolcage-%d-other", (int)pid);
    assert_true(tci_cgroup_name(&dead, TCI_CGROUP_SELF, names[5], sizeof names[5]));
    for (size_t i = 0; i < tci_array_size(names); i++)
        make_in_all(groups, names[i]);
    again = open_groups();
    assert_false(is_there(groups, names[0]));
    assert_true(is_there(groups, names[1]));
    assert_true(is_there(groups, names[2]));
    assert_false(is_there(groups, names[3]));
    assert_true(is_there(groups, names[4]));
    assert_false(is_there(groups, names[5]));
    remove_from_all(groups, names[1]);
    remove_from_all(groups, names[2]);
    remove_from_all(groups, names[4]);
    tci_cgroups_free(again);
    tci_cgroups_free(groups);
}

static void test_the_leaf_of_a_dead_owner_is_not_killed(void **unused)
{
    struct tci_cgroups *groups = open_usable(), *again;
    const struct tci_cgroup_hierarchy *h = &groups->hierarchies[0];
    struct tci_cgroup_owner dead = groups->owner;
    char name[TCI_CGROUP_NAME_MAX], text[32];
    pid_t pid = fork();
    (void)unused;
    if (pid == 0)
        _exit(0);
    wait_for(pid);
    dead.pid = pid;
    assert_true(tci_cgroup_name(&dead, TCI_CGROUP_SELF, name, sizeof name));
    assert_int_equal(mkdirat(h->base, name, 0755), 0);
    pid = fork();
    if (pid == 0)
        do_sleep();
    snprintf(text, sizeof text, "%d", (int)pid);
    assert_int_equal(tci_cgroup_write(h->base, name, "cgroup.procs", text), 0);
    again = open_groups();
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(faccessat(h->base, name, F_OK, 0), 0);
    tci_cgroups_free(again);
    kill(pid, SIGKILL);
    wait_for(pid);
    again = open_groups();
    assert_int_equal(faccessat(h->base, name, F_OK, 0), -1);
    tci_cgroups_free(again);
    tci_cgroups_free(groups);
}

/* ---- ordinary users ------------------------------------------------------------------------- */

enum { NOBODY = 65534 };

static void become_nobody(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(90);
    prctl(PR_SET_DUMPABLE, 1);
}

static void test_an_ordinary_user_has_none(void **unused)
{
    pid_t pid;
    (void)unused;
    if (geteuid() != 0)
        skip();
    pid = fork();
    if (pid == 0) {
        struct tci_cgroup_limits limits = { 32 * MB, TCI_UNLIMITED, TCI_UNLIMITED };
        struct tci_cgroups *groups;
        struct tci_cgroup *group;
        struct tc_error error = { 0 };
        become_nobody();
        if (tci_cgroups_open(&groups, &error) < 0)
            _exit(1);
        if (tci_cgroups_has(groups) != 0)
            _exit(2);
        if (tci_cgroup_make(groups, "x", &limits, &group, &error) == 0)
            _exit(3);
        if (error.code != TC_ERROR_UNSUPPORTED || !error.remedy[0])
            _exit(4);
        tci_cgroups_free(groups);
        _exit(0);
    }
    assert_int_equal(wait_for(pid), 0);
}

/* Gives NOBODY a group in each hierarchy and puts this process into it. */
static void delegate(const struct tci_cgroups *groups, const char *name, pid_t pid)
{
    static const char *const files[] = { ".", "cgroup.procs", "tasks", "cgroup.subtree_control",
                                         "cgroup.threads" };
    char path[2 * TCI_CGROUP_NAME_MAX], text[32];
    snprintf(text, sizeof text, "%d", (int)pid);
    for (unsigned i = 0; i < groups->count; i++) {
        int base = groups->hierarchies[i].base;
        assert_int_equal(mkdirat(base, name, 0755), 0);
        for (size_t j = 0; j < tci_array_size(files); j++) {
            snprintf(path, sizeof path, "%s/%s", name, files[j]);
            if (fchownat(base, path, NOBODY, NOBODY, 0) < 0)
                assert_int_equal(errno, ENOENT);
        }
        assert_int_equal(tci_cgroup_write(base, name, "cgroup.procs", text), 0);
    }
}

static void *open_one(void *argument)
{
    struct thread *t = argument;
    t->groups = open_groups();
    return NULL;
}

/* As an ordinary user in a group that was handed over: what several threads do at once. */
static int use_delegated(void)
{
    struct thread threads[4];
    struct tci_cgroups *groups;
    struct tci_cgroup *group;
    struct tci_cgroup_usage usage;
    int status;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i].id, NULL, open_one, &threads[i]))
            return 10;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i].id, NULL);
    for (int i = 0; i < 3; i++) {
        if (tci_cgroups_has(threads[i].groups) != tci_cgroups_has(threads[3].groups))
            return 14;
        tci_cgroups_free(threads[i].groups);
    }
    groups = threads[3].groups;
    if (tci_cgroups_has(groups) != (TCI_CGROUP_LIMITS | TCI_CGROUP_HAS_CPU_USAGE))
        return 11;
    group = make(groups, 32 * MB, 8, 500);
    status = wait_for(start(group, do_eat_memory));
    usage = usage_of(group);
    tci_cgroup_free(group);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || !usage.oom_kills)
        return 12;
    if (count_directories(groups, getpid()) != 0)
        return 13;
    tci_cgroups_free(groups);
    return 0;
}

static void test_a_user_with_a_delegated_group_has_all(void **unused)
{
    struct tci_cgroups *groups = open_usable();
    char name[TCI_CGROUP_NAME_MAX], byte;
    int go[2];
    pid_t pid;
    (void)unused;
    if (geteuid() != 0) {
        tci_cgroups_free(groups);
        skip();
    }
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        become_nobody();
        if (read(go[0], &byte, 1) != 1)
            _exit(91);
        _exit(use_delegated());
    }
    snprintf(name, sizeof name, "test-delegated-%d", (int)pid);
    delegate(groups, name, pid);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(WEXITSTATUS(wait_for(pid)), 0);
    close(go[0]);
    close(go[1]);
    /* Version 2: the user's process stepped down into a leaf, which its end leaves behind. */
    for (unsigned i = 0; i < groups->count; i++) {
        struct tci_cgroup_hierarchy inner = groups->hierarchies[i];
        struct dirent *entry;
        DIR *directory;
        inner.base = openat(inner.base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        directory = fdopendir(inner.base);
        assert_non_null(directory);
        while ((entry = readdir(directory)))
            if (strncmp(entry->d_name, "toolcage-", 9) == 0) {
                assert_non_null(strstr(entry->d_name, "-" TCI_CGROUP_SELF));
                assert_true(tci_cgroup_remove_named(&inner, entry->d_name, 2000));
            }
        closedir(directory);
        assert_true(tci_cgroup_remove_named(&groups->hierarchies[i], name, 2000));
    }
    tci_cgroups_free(groups);
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

#define cleaned(function) cmocka_unit_test_teardown(function, clean)

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
        cleaned(test_memory_beyond_the_limit_is_killed_counted_and_told),
        cleaned(test_tmpfs_counts_as_memory),
        cleaned(test_processes_beyond_the_limit_are_refused_and_counted),
        cleaned(test_a_share_of_the_processor_is_kept_by_the_whole_tree),
        cleaned(test_kill_ends_a_fork_bomb_that_left_its_session),
        cleaned(test_kill_ends_a_fork_bomb_without_version_2),
        cleaned(test_kill_does_not_look_like_a_limit_that_was_hit),
        cleaned(test_kill_of_an_empty_group_is_harmless),
        cleaned(test_a_group_that_is_used_again_is_as_good_as_new),
        cleaned(test_a_group_that_had_many_processes_does_not_show_it_to_the_next),
        cleaned(test_the_pool_is_bounded_and_removed_with_the_rest),
        cleaned(test_a_forked_child_uses_names_and_groups_of_its_own),
        cleaned(test_many_threads_share_one_set_of_groups),
        cleaned(test_a_living_owner_is_left_alone_and_a_dead_one_collected),
        cleaned(test_only_names_of_dead_owners_in_our_namespaces_are_swept),
        cleaned(test_the_leaf_of_a_dead_owner_is_not_killed),
        cleaned(test_an_ordinary_user_has_none),
        cleaned(test_a_user_with_a_delegated_group_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
