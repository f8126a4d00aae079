/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can this process limit others by control groups? For each controller: make a group of our
 * own, set a limit, put a child into it, take everything away again.
 *
 * Invariants: no group that exists is changed, not even cgroup.subtree_control of our own. What is
 * made has the probe's unique name, so that the parent can remove it should this child be killed.
 */
#include "backend/probe_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const struct trial {
    enum tci_feature id;
    const char *v1_controller, *v1_file, *v1_value;
    const char *v2_controller, *v2_file, *v2_value; /* no value: the file is read */
} trials[] = {
    { TCI_FEATURE_CGROUP_MEMORY, "memory", "memory.limit_in_bytes", "67108864", "memory",
      "memory.max", "67108864" },
    { TCI_FEATURE_CGROUP_PIDS, "pids", "pids.max", "1", "pids", "pids.max", "1" },
    { TCI_FEATURE_CGROUP_CPU, "cpu", "cpu.cfs_quota_us", "5000", "cpu", "cpu.max", "5000 100000" },
    /* Version 2 measures and freezes every group, without a controller. */
    { TCI_FEATURE_CGROUP_CPU_USAGE, "cpuacct", "cpuacct.usage", NULL, NULL, "cpu.stat", NULL },
    { TCI_FEATURE_CGROUP_FREEZER, "freezer", "freezer.state", "THAWED", NULL, "cgroup.freeze",
      "0" },
};

/* A group is busy for a moment after its last process has gone. */
void tci_cgroup_remove(int parent, const char *name)
{
    for (int i = 0; i < 100; i++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

/* In the group: with a limit of one process, may there be two? The exit status says. */
static int second_process(void)
{
    pid_t pid = tci_probe_fork();
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return errno == EAGAIN ? 0 : 2;
    (void)tci_probe_wait(pid);
    return 1;
}

/* Puts a child into the group. 0, or an errno; `ret_status` is what second_process() said. */
static int put_child(int group, int *ret_status)
{
    char text[32], byte;
    int go[2], problem;
    pid_t pid;
    if (pipe2(go, O_CLOEXEC) < 0)
        return errno;
    pid = tci_probe_fork();
    if (pid == 0) {
        (void)close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? second_process() : 3);
    }
    (void)close(go[0]);
    problem = pid < 0 ? errno : 0;
    if (pid > 0) {
        (void)snprintf(text, sizeof text, "%d", (int)pid);
        problem = tci_probe_write_file(group, "cgroup.procs", text);
        if (!problem)
            (void)!write(go[1], "g", 1);
    }
    (void)close(go[1]);
    if (pid > 0)
        *ret_status = tci_probe_wait(pid);
    return problem;
}

/* Memory that may be swapped out without being counted is not limited. */
static bool swap_escapes(int group)
{
    char swaps[256];
    const char *second;
    if (faccessat(group, "memory.memsw.limit_in_bytes", F_OK, 0) == 0 ||
        faccessat(group, "memory.swap.max", F_OK, 0) == 0)
        return false;
    if (tci_probe_read_file(AT_FDCWD, "/proc/swaps", swaps, sizeof swaps) <= 0)
        return false;
    second = strchr(swaps, '\n');
    return second && second[1];
}

static void try_group(const struct tci_probe *p, const struct trial *t, int group, bool v2)
{
    const char *file = v2 ? t->v2_file : t->v1_file, *value = v2 ? t->v2_value : t->v1_value;
    char text[512];
    int status = -1, problem = 0;
    if (value)
        problem = tci_probe_write_file(group, file, value);
    else if (tci_probe_read_file(group, file, text, sizeof text) < 0)
        problem = errno;
    if (problem) {
        tci_cgroup_refused(p, t->id, v2, file, problem);
        return;
    }
    problem = put_child(group, &status);
    if (problem)
        tci_cgroup_refused(p, t->id, v2, "moving a process into a group", problem);
    else if (t->id == TCI_FEATURE_CGROUP_PIDS && status != 0)
        tci_probe_no(p, t->id, NULL, "a second process ran where one is allowed");
    else if (t->id == TCI_FEATURE_CGROUP_MEMORY && swap_escapes(group))
        tci_probe_no(p, t->id, "boot with swapaccount=1, or turn swap off: sudo swapoff -a",
                     "swap is on and not counted");
    else
        tci_probe_yes(p, t->id, "%s, %s", v2 ? "v2" : "v1", file);
}

/* Makes the group below `parent`, tries it, removes it. */
static void try_below(const struct tci_probe *p, const struct trial *t, int parent, bool v2)
{
    int group, problem = 0;
    if (mkdirat(parent, p->unique, 0755) < 0) {
        tci_cgroup_refused(p, t->id, v2, "making a group", errno);
        return;
    }
    group = openat(parent, p->unique, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0)
        problem = errno;
    else
        try_group(p, t, group, v2);
    if (problem)
        tci_cgroup_refused(p, t->id, v2, "opening a group", problem);
    if (group >= 0)
        (void)close(group);
    tci_cgroup_remove(parent, p->unique);
}

static bool list_has(int directory, const char *file, const char *controller)
{
    char text[512];
    return tci_probe_read_file(directory, file, text, sizeof text) > 0 &&
           tci_cgroup_has_word(text, controller, ' ');
}

/*
 * Was the group above ours handed over to us? It is if it is the top of what can be seen (in a
 * container), if the service manager says so (systemd 251 and later mark it), or if it is the
 * group of a unit: a unit has groups below its own only when it was delegated. The one exception
 * is user@UID.service, which belongs to the user's service manager.
 */
static bool is_delegated(const struct tci_cgroup_place *place, int above)
{
    char value[4], path[TCI_CGROUP_PATH_MAX], *end, *name;
    if (faccessat(above, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
        return false;
    if (place->depth == 1)
        return true;
    if (fgetxattr(above, "user.delegate", value, sizeof value) == 1)
        return value[0] == '1';
    (void)snprintf(path, sizeof path, "%s", place->directory);
    if ((end = strrchr(path, '/')))
        *end = '\0';
    name = strrchr(path, '/');
    end = name ? strrchr(name, '.') : NULL;
    return end && (strcmp(end, ".scope") == 0 || strcmp(end, ".service") == 0) &&
           strncmp(name, "/user@", 6) != 0;
}

/*
 * Version 2 has a controller in a new group only if it is on for the children of the group above,
 * and a group with processes in it cannot have that, except at the very top. So a cage's group is
 * a child of ours at the top, and otherwise a sibling, in a group that was handed over to us.
 */
static void try_v2(const struct tci_probe *p, const struct trial *t,
                   const struct tci_cgroup_place *place, int own)
{
    int above;
    if (!t->v2_controller || list_has(own, "cgroup.subtree_control", t->v2_controller)) {
        try_below(p, t, own, true);
        return;
    }
    above = place->depth ? openat(own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (above >= 0 && is_delegated(place, above) &&
        list_has(above, "cgroup.subtree_control", t->v2_controller))
        try_below(p, t, above, true);
    else if (!list_has(own, "cgroup.controllers", t->v2_controller))
        tci_cgroup_not_given(p, t->id, t->v2_controller);
    else if (faccessat(own, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
        tci_cgroup_refused(p, t->id, true, "our group belongs to somebody else", errno);
    else
        tci_cgroup_not_enabled(p, t->id, t->v2_controller);
    if (above >= 0)
        (void)close(above);
}

static void try_controller(const struct tci_probe *p, const struct trial *t)
{
    struct tci_cgroup_place place;
    bool v2 = !tci_cgroup_find(t->v1_controller, &place);
    int own;
    if (v2 && !tci_cgroup_find(NULL, &place)) {
        tci_cgroup_not_given(p, t->id, t->v1_controller);
        return;
    }
    own = open(place.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) {
        tci_cgroup_refused(p, t->id, v2, "opening our own group", errno);
        return;
    }
    if (v2)
        try_v2(p, t, &place, own);
    else
        try_below(p, t, own, false);
    (void)close(own);
}

static void none_mounted(const struct tci_probe *p)
{
    static const char why[] = "no control groups are mounted";
    tci_probe_no(p, TCI_FEATURE_CGROUP, "sudo mount -t cgroup2 none /sys/fs/cgroup", "%s", why);
    for (size_t i = 0; i < tci_array_size(trials); i++)
        tci_probe_no(p, trials[i].id, "see cgroup", "%s", why);
    tci_probe_no(p, TCI_FEATURE_CGROUP_CLONE, "see cgroup", "%s", why);
    tci_probe_no(p, TCI_FEATURE_CGROUP_KILL, "see cgroup", "%s", why);
}

void tci_probe_cgroup(const struct tci_probe *p)
{
    struct tci_cgroup_kinds kinds;
    tci_cgroup_kinds(&kinds);
    if (!kinds.v1 && !kinds.v2) {
        none_mounted(p);
        return;
    }
    if (kinds.v1 && kinds.v2)
        tci_probe_yes(p, TCI_FEATURE_CGROUP, "hybrid (v1 controllers, v2 at %.100s)",
                      kinds.v2_mount);
    else
        tci_probe_yes(p, TCI_FEATURE_CGROUP, kinds.v2 ? "v2" : "v1");
    for (size_t i = 0; i < tci_array_size(trials); i++)
        try_controller(p, &trials[i]);
    tci_cgroup_try_clone(p);
}

/* In the parent: should the child have been killed half-way. */
void tci_probe_cgroup_cleanup(const struct tci_probe *p)
{
    for (size_t i = 0; i <= tci_array_size(trials); i++) {
        const char *controller = i < tci_array_size(trials) ? trials[i].v1_controller : NULL;
        struct tci_cgroup_place place;
        int own, above;
        if (!tci_cgroup_find(controller, &place))
            continue;
        own = open(place.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (own < 0)
            continue;
        tci_cgroup_remove(own, p->unique);
        above = controller || !place.depth ? -1
                                           : openat(own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0) {
            tci_cgroup_remove(above, p->unique);
            (void)close(above);
        }
        (void)close(own);
    }
}
