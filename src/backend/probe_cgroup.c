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

/* What a child in a group says by its exit status: how many processes may be there. */
enum { ONE = 0, TWO = 1, UNCLEAR = 2 };

/* In the group: with a limit of one process, may there be two? */
static int second_process(void)
{
    pid_t pid = tci_probe_fork();
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return errno == EAGAIN ? ONE : UNCLEAR;
    (void)tci_probe_wait(pid);
    return TWO;
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
        _exit(read(go[0], &byte, 1) == 1 ? second_process() : UNCLEAR);
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

/* With a limit of one process. */
static void judge_pids(const struct tci_probe *p, const struct trial *t, int status, bool v2)
{
    if (status == ONE)
        tci_probe_yes(p, t->id, "%s, %s", v2 ? "v2" : "v1", v2 ? t->v2_file : t->v1_file);
    else if (status == TWO)
        tci_probe_no(p, t->id, "this kernel does not keep pids.max: use a kernel that does",
                     "a second process ran where one is allowed");
    else
        tci_probe_unknown(p, t->id, NULL, "the process in the group did not do its part");
}

/* Memory that may be swapped out without being counted is not limited. */
static void judge_memory(const struct tci_probe *p, const struct trial *t, int group, bool v2)
{
    char swaps[256] = "";
    const char *second;
    bool counted = faccessat(group, "memory.memsw.limit_in_bytes", F_OK, 0) == 0 ||
                   faccessat(group, "memory.swap.max", F_OK, 0) == 0;
    if (!counted && tci_probe_read_file(AT_FDCWD, "/proc/swaps", swaps, sizeof swaps) < 0 &&
        errno != ENOENT) { /* a kernel without swap has no such file */
        tci_cgroup_not_seen(p, t->id, errno);
        return;
    }
    second = strchr(swaps, '\n');
    if (!counted && second && second[1])
        tci_probe_no(p, t->id, "boot with swapaccount=1, or turn swap off: sudo swapoff -a",
                     "swap is on and not counted");
    else
        tci_probe_yes(p, t->id, "%s, %s", v2 ? "v2" : "v1", v2 ? t->v2_file : t->v1_file);
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
    else if (t->id == TCI_FEATURE_CGROUP_PIDS)
        judge_pids(p, t, status, v2);
    else if (t->id == TCI_FEATURE_CGROUP_MEMORY)
        judge_memory(p, t, group, v2);
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

/* False and *ret_problem set if the file cannot be read for want of something. */
static bool list_has(int directory, const char *file, const char *controller, int *ret_problem)
{
    char text[512];
    if (tci_probe_read_file(directory, file, text, sizeof text) >= 0)
        return tci_cgroup_has_word(text, controller, ' ');
    if (tci_probe_is_shortage(errno))
        *ret_problem = errno;
    return false;
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
    const char *controller = t->v2_controller;
    int above = -1, problem = 0;
    bool given;
    if (!controller || list_has(own, "cgroup.subtree_control", controller, &problem)) {
        try_below(p, t, own, true);
        return;
    }
    given = list_has(own, "cgroup.controllers", controller, &problem);
    if (place->depth && (above = openat(own, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 &&
        tci_probe_is_shortage(errno))
        problem = errno;
    if (above >= 0 && is_delegated(place, above) &&
        list_has(above, "cgroup.subtree_control", controller, &problem))
        try_below(p, t, above, true);
    else if (problem)
        tci_cgroup_not_seen(p, t->id, problem);
    else if (!given)
        tci_cgroup_not_given(p, t->id, controller);
    else if (faccessat(own, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
        tci_cgroup_refused(p, t->id, true, "our group belongs to somebody else", errno);
    else
        tci_cgroup_not_enabled(p, t->id, controller);
    if (above >= 0)
        (void)close(above);
}

static void try_controller(const struct tci_probe *p, const struct trial *t)
{
    struct tci_cgroup_place place;
    int own, problem = tci_cgroup_find(t->v1_controller, &place);
    bool v2 = problem == ENOENT;
    if (v2)
        problem = tci_cgroup_find(NULL, &place);
    if (problem) {
        if (problem == ENOENT)
            tci_cgroup_not_given(p, t->id, t->v1_controller);
        else
            tci_cgroup_not_seen(p, t->id, problem);
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

static void none(const struct tci_probe *p, enum tci_feature id, int problem)
{
    static const char why[] = "no control groups are mounted";
    if (problem)
        tci_cgroup_not_seen(p, id, problem);
    else if (id == TCI_FEATURE_CGROUP)
        tci_probe_no(p, id, "sudo mount -t cgroup2 none /sys/fs/cgroup", "%s", why);
    else
        tci_probe_no(p, id, "see cgroup", "%s", why);
}

void tci_probe_cgroup(const struct tci_probe *p)
{
    const uint64_t newer = TCI_FEATURE_BIT(CGROUP_CLONE) | TCI_FEATURE_BIT(CGROUP_KILL);
    struct tci_cgroup_kinds kinds;
    int problem = tci_cgroup_kinds(&kinds);
    if (problem || (!kinds.v1 && !kinds.v2)) {
        none(p, TCI_FEATURE_CGROUP, problem);
        for (size_t i = 0; i < tci_array_size(trials); i++)
            none(p, trials[i].id, problem);
        none(p, TCI_FEATURE_CGROUP_CLONE, problem);
        none(p, TCI_FEATURE_CGROUP_KILL, problem);
        return;
    }
    if (kinds.v1 && kinds.v2)
        tci_probe_yes(p, TCI_FEATURE_CGROUP, "hybrid (v1 controllers, v2 at %.100s)",
                      kinds.v2_mount);
    else
        tci_probe_yes(p, TCI_FEATURE_CGROUP, kinds.v2 ? "v2" : "v1");
    for (size_t i = 0; i < tci_array_size(trials); i++)
        if (p->wanted >> trials[i].id & 1)
            try_controller(p, &trials[i]);
    if (p->wanted & newer)
        tci_cgroup_try_clone(p);
}

/* In the parent: should the child have been killed half-way. */
void tci_probe_cgroup_cleanup(const struct tci_probe *p)
{
    for (size_t i = 0; i <= tci_array_size(trials); i++) {
        const char *controller = i < tci_array_size(trials) ? trials[i].v1_controller : NULL;
        struct tci_cgroup_place place;
        int own, above;
        if (tci_cgroup_find(controller, &place))
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
