/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is looked at and done in a container of an engine between its hello and the call.
 *
 * The attack: an engine is told paths, and follows whatever lies at them when it mounts. A tool of
 * an earlier call that may write to the directory above a granted path could put a link to /etc in
 * its place in that moment; and an image may hold a link where memory, or a file of ours, is to be
 * mounted. So each mount of the plan is looked up in the finished container, and must be the very
 * thing that the plan says.
 *
 * Then device nodes and setuid programs lose their effect. Engines mount images with both, Docker
 * granted paths too; and the filter of devices, where control groups are version 2, belongs to the
 * engine's group, which the command leaves for ours.
 */
#include "backend/oci/driver_api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "backend/oci/stage.h"
#include "base/fd.h"

/* What a bind leads to is compared, so that links of the image are followed as they are inside: the
 * engine did so, too. Memory looks like any other memory: there, no link is. */
static int open_inside(int root, const char *path, bool follow)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
                                       (follow ? 0 : RESOLVE_NO_SYMLINKS) };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static bool is_the_one(int fd, uint64_t device, uint64_t inode)
{
    uint64_t device_now = 0, inode_now = 0;
    bool is_directory;
    return tci_granted_identify(fd, &device_now, &inode_now, &is_directory) == 0 &&
           device_now == device && inode_now == inode;
}

/* A handle on it, checked. */
static int check_bind(const struct tci_oci_cage *cage, const struct tci_oci_mount *m,
                      struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage, true);
    if (fd < 0)
        return tci_error_errno(reterr, errno, "looking at %.300s in the container", m->cage);
    if (is_the_one(fd, m->device, m->inode))
        return tci_take_fd(&fd);
    return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                         "%.300s in the container is not the %.300s that was granted: somebody "
                         "exchanged it",
                         m->cage, m->host);
}

/* A file of ours, which may stand for one that is hidden. */
static int check_file(const struct tci_oci_cage *cage, size_t number, struct tc_error *reterr)
{
    const struct tci_oci_mount *m = &cage->plan->mounts[number];
    const struct tci_api_state *state = cage->plan->driver_state;
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage, true);
    tc_cleanup(tci_closep) int own = -1;
    uint64_t device = 0, inode = 0;
    char name[24];
    bool is_directory;
    (void)snprintf(name, sizeof name, "f%zu", number);
    own = openat(state->place.directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (own >= 0 && fd >= 0 && tci_granted_identify(own, &device, &inode, &is_directory) == 0 &&
        is_the_one(fd, device, inode))
        return 0;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "%.300s in the container is not the file that toolcage put there", m->cage);
    tci_error_remedy(reterr, "the image has something in its way: look at %.300s in it", m->cage);
    return -1;
}

static bool is_memory(int fd)
{
    struct statfs system;
    struct statx s;
    return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC &&
           statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &s) == 0 && S_ISDIR(s.stx_mode) &&
           s.stx_attributes & s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
}

/* runc before 1.1.6 gives memory the mode of what lies below it in the image. Where we may not
 * change that, the image's own mode stays. The attack: /tmp of the image is a link to where a path
 * of the host is mounted, and root makes that one everybody's. */
static void set_mode(int fd, const struct tci_oci_mount *m)
{
    const mode_t mode = (mode_t)strtoul(m->mode, NULL, 8);
    char path[40];
    struct stat s;
    if (fstat(fd, &s) < 0 || (s.st_mode & 07777) == mode)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)chmod(path, mode);
}

/* /tmp, or what covers a hidden directory. */
static int check_memory(const struct tci_oci_cage *cage, const struct tci_oci_mount *m,
                        struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage, false);
    const int problem = fd < 0 ? errno : 0;
    if (fd >= 0 && is_memory(fd)) {
        if (m->writable && m->mode)
            set_mode(fd, m);
        return 0;
    }
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.300s in the container is not %s: %s", m->cage,
                  m->writable ? "memory of its own" : "hidden",
                  problem == ELOOP ? "the image has a link there, or on the way to it"
                  : problem        ? strerrordesc_np(problem)
                                   : "something else is mounted there");
    tci_error_remedy(reterr, "use an image that has a directory at %.300s", m->cage);
    return -1;
}

/* Handles on what the engine mounted for the plan's binds, checked. */
struct found {
    int binds[TCI_STAGE_HANDED_MAX];
    size_t count;
};

static int check_mounts(const struct tci_oci_cage *cage, struct found *found,
                        struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        int r = m->kind == TCI_OCI_MOUNT_BIND   ? check_bind(cage, m, reterr)
                : m->kind == TCI_OCI_MOUNT_FILE ? check_file(cage, i, reterr)
                                                : check_memory(cage, m, reterr);
        if (r < 0)
            return -1;
        if (m->kind != TCI_OCI_MOUNT_BIND)
            continue;
        if (found->count == TCI_STAGE_HANDED_MAX) {
            (void)tci_close(r);
            return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                                 "more than %d paths cannot be granted to an engine",
                                 TCI_STAGE_HANDED_MAX);
        }
        found->binds[found->count++] = r;
    }
    return 0;
}

/* Another user's engine is not ours to enter: there the command stays in the engine's own group, and
 * its filter of devices holds. */
static int finish(const struct tci_oci_cage *cage, const struct found *found,
                  struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    const bool seal = cage->root >= 0 && tci_oci_is_ours(&plan->choice);
    const struct tci_stage_seal what = { .root = cage->root,
                                         .binds = found->binds,
                                         .bind_count = found->count };
    if (!seal && plan->use_cgroup)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container cannot be entered from here, to take the effect of "
                             "device nodes away");
    if (!seal && !plan->has_gate)
        return 0;
    if (cage->pid <= 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container's namespaces cannot be entered from here");
    return tci_stage_furnish(cage->pid, plan, cage->gate_inside, seal ? &what : NULL, reterr);
}

int tci_api_ready(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    struct found found = { .count = 0 };
    int r;
    if (cage->root < 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container did not hand over its root directory, so that what is "
                             "mounted in it cannot be checked");
    r = check_mounts(cage, &found, reterr);
    if (r == 0)
        r = finish(cage, &found, reterr);
    for (size_t i = 0; i < found.count; i++)
        (void)tci_close(found.binds[i]);
    return r;
}
