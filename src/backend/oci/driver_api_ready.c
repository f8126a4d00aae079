/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is looked at and done in a container of an engine between its hello and the call.
 *
 * The attack: an engine is told paths, and follows whatever lies at them when it mounts. A tool of
 * an earlier call that may write to the directory above a granted path could put a link to /etc in
 * its place in that moment. So each granted path is looked up in the finished container, and must
 * be the very file or directory that the plan saw.
 */
#include "backend/oci/driver_api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/oci/stage.h"
#include "base/fd.h"

/* Links of the image are followed as they are inside: the engine did so, too. */
static int open_inside(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static int check_bind(const struct tci_oci_cage *cage, const struct tci_oci_mount *m,
                      struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage);
    uint64_t device = 0, inode = 0;
    bool is_directory;
    int r = fd < 0 ? -errno : tci_granted_identify(fd, &device, &inode, &is_directory);
    if (r < 0)
        return tci_error_errno(reterr, -r, "looking at %.300s in the container", m->cage);
    if (device == m->device && inode == m->inode)
        return 0;
    return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                         "%.300s in the container is not the %.300s that was granted: somebody "
                         "exchanged it",
                         m->cage, m->host);
}

/* runc before 1.1.6 gives memory the mode of what lies below it in the image. Where we may not
 * change that, the image's own mode stays. */
static void set_mode(const struct tci_oci_cage *cage, const struct tci_oci_mount *m)
{
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage);
    mode_t mode = (mode_t)strtoul(m->mode, NULL, 8);
    char path[40];
    struct stat s;
    if (fd < 0 || fstat(fd, &s) < 0 || !S_ISDIR(s.st_mode) || (s.st_mode & 07777) == mode)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)chmod(path, mode);
}

static int check_mounts(const struct tci_oci_cage *cage, struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind == TCI_OCI_MOUNT_BIND && check_bind(cage, m, reterr) < 0)
            return -1;
        if (m->kind == TCI_OCI_MOUNT_TMPFS && m->writable && m->mode)
            set_mode(cage, m);
    }
    return 0;
}

int tci_api_ready(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    if (cage->root >= 0 && check_mounts(cage, reterr) < 0)
        return -1;
    if (cage->root < 0 && plan->choice.runtime != TCI_OCI_RUNSC)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container did not hand over its root directory, so that what is "
                             "mounted in it cannot be checked");
    if (!plan->has_gate)
        return 0;
    if (cage->pid <= 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container's network cannot be entered from here");
    return tci_stage_furnish(cage->pid, plan, cage->gate_inside, reterr);
}
