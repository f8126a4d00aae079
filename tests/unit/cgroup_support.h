/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the tests of control groups on the kernel that runs them share, whatever version it
 * has. They need groups that may be used: root, or a delegated one.
 */
#ifndef TCI_TESTS_CGROUP_SUPPORT_H
#define TCI_TESTS_CGROUP_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "backend/cgroup/cgroup_internal.h"

#define MB (UINT64_C(1) << 20)

static inline struct tci_cgroups *open_groups(void)
{
    struct tc_error error = { 0 };
    struct tci_cgroups *groups = NULL;
    assert_int_equal(tci_cgroups_open(&groups, &error), 0);
    assert_non_null(groups);
    return groups;
}

/* Groups with every controller; a host without them fails where it must work, and is skipped
 * elsewhere. */
static inline struct tci_cgroups *open_usable(void)
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

static inline struct tci_cgroup *make(struct tci_cgroups *groups, uint64_t memory, uint64_t pids,
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

static inline struct tci_cgroup_usage usage_of(const struct tci_cgroup *group)
{
    struct tci_cgroup_usage usage;
    struct tc_error error = { 0 };
    if (tci_cgroup_usage(group, &usage, &error) < 0)
        fail_msg("%s", error.message);
    return usage;
}

/* A child in the group, which exits with what `function` returns. */
static inline pid_t start(const struct tci_cgroup *group, int (*function)(void))
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

static inline int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static inline int64_t now_ms(void)
{
    return tci_cgroup_now_ms();
}

static inline void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Directories of a process's making in all hierarchies. */
static inline unsigned count_directories(const struct tci_cgroups *groups, pid_t pid)
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
static inline int clean(void **unused)
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

static inline bool is_there(const struct tci_cgroups *groups, const char *name)
{
    for (unsigned i = 0; i < groups->count; i++)
        if (faccessat(groups->hierarchies[i].base, name, F_OK, 0) == 0)
            return true;
    return false;
}

/* ---- what children do ----------------------------------------------------------------------- */

static inline int do_sleep(void)
{
    for (;;)
        pause();
    return 0;
}

static inline int touch(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 102;
    for (uint64_t i = 0; i < bytes; i += 4096)
        ((volatile char *)memory)[i] = 1;
    return 0;
}

static inline int do_eat_memory(void)
{
    return touch(128 * MB);
}

/* Long enough for a clock that ticks every few milliseconds, as some virtual machines have. */
static inline void burn(int64_t ms)
{
    volatile unsigned work = 0;
    for (int64_t end = now_ms() + ms; now_ms() < end;)
        for (int i = 0; i < 10000; i++)
            work++;
}

static inline int do_eat_a_little(void)
{
    burn(30);
    return touch(8 * MB);
}

struct thread {
    pthread_t id;
    struct tci_cgroups *groups;
    int number, failures;
};

#define cleaned(function) cmocka_unit_test_teardown(function, clean)

#endif
