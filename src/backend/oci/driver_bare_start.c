/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a stage is given: namespaces, granted paths that root has opened for it, and for root's gVisor
 * the user that it is. A stage in a user namespace of root's waits until its ids are mapped; nobody but root
 * can map one to a user who is not the caller.
 */
#include "backend/oci/stage.h"

#include <errno.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"

static int detach_mounts(const struct tci_oci_plan *plan, int *ret, size_t *ret_count,
                         struct tc_error *reterr)
{
    *ret_count = 0;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        int fd;
        if (m->kind != TCI_OCI_MOUNT_BIND || m->source < 0)
            continue;
        if (*ret_count == TCI_STAGE_HANDED_MAX)
            return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                                 "a container that root starts can have %d granted paths",
                                 TCI_STAGE_HANDED_MAX);
        fd = tci_mount_detach(
            &(struct tci_detach){ m->source, tci_stage_attributes(m), m->writable, m->host },
            &plan->idmap, reterr);
        if (fd < 0)
            return -1;
        ret[(*ret_count)++] = fd;
    }
    return 0;
}

static unsigned long namespaces(const struct tci_oci_plan *plan)
{
    return CLONE_NEWNS | CLONE_NEWPID | (plan->has_gate ? CLONE_NEWNET : 0) |
           (tci_oci_stage_is_mapped(&plan->choice) ? CLONE_NEWUSER : 0);
}

/* The image's directory for a stage that is not root and might not find the way to it. It is opened as the
 * plan has checked it. Root's files in it are the stage's: an overlay cannot copy, to be written to, what
 * belongs to nobody it knows. */
static int detach_rootfs(const struct tci_oci_plan *plan, struct tc_error *reterr)
{
    const struct tci_stage *stage = plan->driver_state;
    uint64_t device = 0, inode = 0;
    bool is_directory = false;
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, plan->rootfs);
    int r = fd < 0 ? fd : tci_granted_identify(fd, &device, &inode, &is_directory);
    if (r == 0 && (device != plan->rootfs_device || inode != plan->rootfs_inode))
        r = -ESTALE;
    if (r < 0)
        return tci_error_errno(reterr, -r, "the root directory %.300s", plan->rootfs);
    return tci_mount_detach(
        &(struct tci_detach){ fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, false,
                              plan->rootfs },
        &stage->idmap, reterr);
}

/* Root's stage in a user namespace waits until it has been told who it is. */
static int map_ids(const struct tci_stage_spawn *spawn, int go, struct tc_error *reterr)
{
    char map[32];
    (void)snprintf(map, sizeof map, "0 %u 1", TCI_JAIL_HOST_ID);
    /* Groups may be set in there: the stage gives up those that root was in, and can get no others. */
    if (tci_write_id_map(spawn->pid, "uid_map", map, reterr) < 0 ||
        tci_write_id_map(spawn->pid, "gid_map", map, reterr) < 0)
        return -1;
    /* We hold the other end, too: nobody is missing, and no SIGPIPE comes. */
    return write(go, "g", 1) == 1 ? 0 : tci_error_errno(reterr, errno, "letting the stage go on");
}

static int spawn_mapped(const struct tci_oci_plan *plan, struct tci_stage_spawn *spawn,
                        struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int rootfs = detach_rootfs(plan, reterr);
    int go[2], r;
    if (rootfs < 0)
        return -1;
    if (tci_pipe(go, 0) < 0)
        return tci_error_errno(reterr, errno, "making a pipe");
    spawn->go = go[0];
    spawn->rootfs = rootfs;
    spawn->keeps_rights = true;
    r = tci_stage_spawn(spawn, reterr);
    if (r == 0 && map_ids(spawn, go[1], reterr) < 0) {
        (void)syscall(SYS_pidfd_send_signal, spawn->pidfd, SIGKILL, NULL, 0);
        (void)waitid(P_PIDFD, (id_t)spawn->pidfd, &(siginfo_t){ 0 }, WEXITED);
        spawn->pidfd = tci_close(spawn->pidfd);
        r = -1;
    }
    (void)tci_close(go[0]);
    (void)tci_close(go[1]);
    return r;
}

/* The stage with everything that it is given; our copies of its ends are closed. */
int tci_stage_start(struct tci_oci_cage *cage, int report, int control, int *ret_pid,
                    int *ret_pidfd, struct tc_error *reterr)
{
    struct tci_oci_plan *plan = cage->plan;
    int mounts[TCI_STAGE_HANDED_MAX], r = -1;
    /* For each cage: the host may have forked since the last one. */
    tc_cleanup(tci_closep) int owner = (int)syscall(SYS_pidfd_open, getpid(), 0);
    size_t count = 0;
    struct tci_stage_spawn spawn = { .stage = plan->driver_state,
                                     .cgroup = plan->enter_early ? cage->cgroup : NULL,
                                     .namespaces = namespaces(plan),
                                     .argv = { "stage", cage->id },
                                     .report = report,
                                     .owner = owner,
                                     .control = control,
                                     .gate = plan->has_gate ? cage->gate_inside : -1,
                                     .go = -1,
                                     .rootfs = -1,
                                     .mounts = mounts,
                                     .pidfd = -1 };
    if (owner < 0) {
        tci_error_errno(reterr, errno, "opening a handle on this process");
        tci_error_remedy(reterr, "use Linux 5.3 or newer: see pidfd in toolcage doctor");
    } else if (detach_mounts(plan, mounts, &count, reterr) == 0) {
        spawn.mount_count = count;
        r = plan->choice.is_root && spawn.namespaces & CLONE_NEWUSER
                ? spawn_mapped(plan, &spawn, reterr)
                : tci_stage_spawn(&spawn, reterr);
    }
    for (size_t i = 0; i < count; i++)
        (void)tci_close(mounts[i]);
    *ret_pid = spawn.pid;
    *ret_pidfd = spawn.pidfd;
    return r;
}
