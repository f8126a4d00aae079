/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the wording for control groups that could not be had, and how to get them. */
#include "backend/probe_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The service manager hands a group over with Delegate=yes; the shell then steps down into a leaf,
 * because a group with processes in it cannot turn controllers on for its children.
 */
#define IN_A_LEAF                                                                                  \
    "--scope -p Delegate=yes sh -c 'd=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); "            \
    "mkdir $d/self; echo $$ >$d/self/cgroup.procs; "                                               \
    "echo +cpu +memory +pids >$d/cgroup.subtree_control; exec toolcage doctor'"

static const char REMEDY_V2_USER[] = "systemd-run --user " IN_A_LEAF;
static const char REMEDY_V2_ROOT[] = "systemd-run " IN_A_LEAF;
/* The same where no service manager runs. */
static const char REMEDY_V2_PLAIN[] =
    "as root, with d=/sys/fs/cgroup/toolcage: mkdir -p $d/self; echo +cpu +memory +pids | tee "
    "/sys/fs/cgroup/cgroup.subtree_control $d/cgroup.subtree_control; chown -R USER $d; then start "
    "toolcage from a shell whose id is in $d/self/cgroup.procs";
static const char REMEDY_V1[] =
    "sudo apt install cgroup-tools && sudo cgcreate -a $USER -t $USER -g "
    "cpu,cpuacct,memory,pids:toolcage && cgexec -g "
    "cpu,cpuacct,memory,pids:toolcage toolcage doctor";
static const char REMEDY_V1_FREEZER[] = "none is needed: no backend stops a tree with it";
static const char REMEDY_READ_ONLY[] =
    "run toolcage outside of this container, or start the container with a writable "
    "/sys/fs/cgroup";
static const char REMEDY_DELEGATE[] =
    "sudo systemctl edit user@.service, add the lines [Service] and 'Delegate=cpu cpuset io memory "
    "pids', log in again";
static const char REMEDY_ENABLE[] =
    "use a kernel with this controller; if /proc/cgroups lists it as not enabled, boot with "
    "cgroup_enable=memory (for memory) or without cgroup_disable=";

static const char REMEDY_PROC[] = "mount /proc: sudo mount -t proc proc /proc";

static bool systemd_runs(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

static const char *remedy(bool v2, int problem)
{
    if (problem == EROFS)
        return REMEDY_READ_ONLY;
    if (!v2)
        return REMEDY_V1;
    if (!systemd_runs())
        return REMEDY_V2_PLAIN;
    return geteuid() == 0 ? REMEDY_V2_ROOT : REMEDY_V2_USER;
}

void tci_cgroup_refused(const struct tci_probe *p, enum tci_feature id, bool v2, const char *what,
                        int problem)
{
    char text[96];
    (void)snprintf(text, sizeof text, "v%d, %s", v2 ? 2 : 1, what);
    /* Version 1 has a hierarchy of its own for it: one more to hand over, for nothing. */
    tci_probe_refused(
        p, id, !v2 && id == TCI_FEATURE_CGROUP_FREEZER ? REMEDY_V1_FREEZER : remedy(v2, problem),
        text, problem);
}

void tci_cgroup_not_seen(const struct tci_probe *p, enum tci_feature id, int problem)
{
    if (tci_probe_is_shortage(problem))
        tci_probe_refused(p, id, NULL, "looking for control groups", problem);
    else
        tci_probe_unknown(p, id, REMEDY_PROC, "control groups cannot be looked for: %s",
                          strerrordesc_np(problem));
}

void tci_cgroup_not_given(const struct tci_probe *p, enum tci_feature id, const char *controller)
{
    char table[4096];
    /* The kernel has it somewhere: then it is the way down to our group that is missing. */
    bool known = tci_probe_read_file(AT_FDCWD, "/proc/cgroups", table, sizeof table) > 0 &&
                 strstr(table, controller);
    const char *delegate = systemd_runs() ? REMEDY_DELEGATE : REMEDY_V2_PLAIN;
    tci_probe_no(p, id, known ? delegate : REMEDY_ENABLE,
                 "the %s controller does not reach our group", controller);
}

void tci_cgroup_not_enabled(const struct tci_probe *p, enum tci_feature id, const char *controller)
{
    tci_probe_no(p, id, remedy(true, 0), "v2: the %s controller is not on for groups below ours",
                 controller);
}
