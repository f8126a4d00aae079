/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of control groups on this kernel: what a dead owner left is collected, and what
 * ordinary users have.
 */
#include "cgroup_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/cgroup/cgroup_internal.h"
#include "policy/model.h"

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
    assert_int_equal(poll(&(struct pollfd){ .fd = ended, .events = POLLIN }, 1, 20000), 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaned(test_a_living_owner_is_left_alone_and_a_dead_one_collected),
        cleaned(test_only_names_of_dead_owners_in_our_namespaces_are_swept),
        cleaned(test_the_leaf_of_a_dead_owner_is_not_killed),
        cleaned(test_an_ordinary_user_has_none),
        cleaned(test_a_user_with_a_delegated_group_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
