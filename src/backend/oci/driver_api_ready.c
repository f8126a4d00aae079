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
 *
 * And what was granted for reading becomes read-only with all that the host has mounted below it. A
 * rootless engine brings that along, whenever it was mounted, and makes only the top read-only. The
 * attack: a tool that may read /var/run deletes files in /run/user/1000.
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
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "backend/oci/stage.h"
#include "base/fd.h"
#include "base/mountinfo.h"
#include "base/path.h"
#include "base/quote.h"

/* No link, not even inside. */
static int open_inside(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
                                       RESOLVE_NO_SYMLINKS };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Where the image has a link, the place at its end, which was found out before anything was mounted. (Docker
 * replaces some links of an image: then the name itself is the place.) */
static int open_place(const struct tci_oci_cage *cage, size_t number)
{
    const struct tci_api_point *point = &tci_api_points_of(cage->plan)->items[number];
    int fd = open_inside(cage->root, point->cage);
    return fd < 0 && errno == ELOOP ? open_inside(cage->root, point->real) : fd;
}

static bool is_the_one(int fd, uint64_t device, uint64_t inode)
{
    uint64_t device_now = 0, inode_now = 0;
    bool is_directory;
    return tci_granted_identify(fd, &device_now, &inode_now, &is_directory) == 0 &&
           device_now == device && inode_now == inode;
}

/* The very mount, not only what is mounted: within a writable grant the same directory can be reached
 * without it, and may be written to there. */
static bool is_mount(int fd, bool read_only)
{
    struct statfs system;
    struct statx s;
    return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &s) == 0 &&
           s.stx_attributes & s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
           (!read_only || (fstatfs(fd, &system) == 0 && system.f_flags & ST_RDONLY));
}

/* A handle on it, checked. */
static int check_bind(const struct tci_oci_cage *cage, size_t number, struct tc_error *reterr)
{
    const struct tci_oci_mount *m = &cage->plan->mounts[number];
    tc_cleanup(tci_closep) int fd = open_place(cage, number);
    if (fd < 0 && errno != ELOOP)
        return tci_error_errno(reterr, errno, "looking at %.300s in the container", m->cage);
    if (fd >= 0 && is_the_one(fd, m->device, m->inode) && is_mount(fd, !m->writable))
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
    tc_cleanup(tci_closep) int fd = open_place(cage, number);
    tc_cleanup(tci_closep) int own = -1;
    uint64_t device = 0, inode = 0;
    char name[24];
    bool is_directory;
    (void)snprintf(name, sizeof name, "f%zu", number);
    own = openat(state->place.directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (own >= 0 && fd >= 0 && tci_granted_identify(own, &device, &inode, &is_directory) == 0 &&
        is_the_one(fd, device, inode))
        return tci_take_fd(&fd);
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "%.300s in the container is not the file that toolcage put there", m->cage);
    tci_error_remedy(reterr, "the image has something in its way: look at %.300s in it", m->cage);
    return -1;
}

static bool is_directory(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_memory(int fd)
{
    struct statfs system;
    return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC && is_directory(fd) &&
           is_mount(fd, false);
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
    tc_cleanup(tci_closep) int fd = open_inside(cage->root, m->cage);
    const int problem = fd < 0 ? errno : 0;
    if (fd >= 0 && is_memory(fd)) {
        if (m->writable && m->mode)
            set_mode(fd, m);
        return tci_take_fd(&fd);
    }
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.300s in the container is not %s: %s", m->cage,
                  m->writable ? "memory of its own" : "hidden",
                  problem == ELOOP ? "the image has a link there, or on the way to it"
                  : problem        ? strerrordesc_np(problem)
                                   : "something else is mounted there");
    tci_error_remedy(reterr, "use an image that has a directory at %.300s", m->cage);
    return -1;
}

/* Handles on what the engine mounted for the plan, checked. */
struct found {
    int mounts[TCI_STAGE_HANDED_MAX];
    char how[TCI_STAGE_HANDED_MAX + 1];
    size_t count;
};

/* Rootful engines bind nothing that is mounted below: each bind is read-only, and that is all. */
static bool reaches_below(const struct tci_oci_plan *plan, const struct tci_oci_mount *m)
{
    return plan->choice.engine_is_rootless && m->kind == TCI_OCI_MOUNT_BIND && !m->writable;
}

static bool is_within_sealed(const struct tci_oci_plan *plan, const struct tci_oci_mount *m)
{
    for (size_t i = 0; i < plan->mount_count; i++)
        if (&plan->mounts[i] != m && reaches_below(plan, &plan->mounts[i]) &&
            tci_path_is_within(m->cage, plan->mounts[i].cage))
            return true;
    return false;
}

/* What the helper does to it (stage_abi.h). A writable grant within a readable one is writable again
 * afterwards, unless it was read-only on the host; what is mounted below that one is not. */
static char how_to_seal(const struct tci_oci_plan *plan, const struct tci_oci_mount *m, int fd)
{
    struct statfs now;
    int bits = 0;
    if (reaches_below(plan, m))
        bits = TCI_STAGE_SEAL_READ_ONLY | (m->no_exec ? TCI_STAGE_SEAL_NO_EXEC : 0);
    if (is_within_sealed(plan, m) && fstatfs(fd, &now) == 0) {
        if (m->writable && !(now.f_flags & ST_RDONLY))
            bits |= TCI_STAGE_SEAL_WRITABLE;
        if (!m->no_exec && !(now.f_flags & ST_NOEXEC))
            bits |= TCI_STAGE_SEAL_EXEC;
    }
    return (char)(TCI_STAGE_SEAL + bits);
}

static int check_mount(const struct tci_oci_cage *cage, size_t number, struct tc_error *reterr)
{
    const struct tci_oci_mount *m = &cage->plan->mounts[number];
    return m->kind == TCI_OCI_MOUNT_BIND   ? check_bind(cage, number, reterr)
           : m->kind == TCI_OCI_MOUNT_FILE ? check_file(cage, number, reterr)
                                           : check_memory(cage, m, reterr);
}

static int check_mounts(const struct tci_oci_cage *cage, struct found *found,
                        struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        tc_cleanup(tci_closep) int fd = check_mount(cage, i, reterr);
        if (fd < 0)
            return -1;
        /* Of memory only what would become read-only with the grant that it lies in. */
        if (m->kind == TCI_OCI_MOUNT_FILE ||
            (m->kind == TCI_OCI_MOUNT_TMPFS && !is_within_sealed(plan, m)))
            continue;
        if (found->count == TCI_STAGE_HANDED_MAX)
            return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                                 "more than %d paths cannot be granted to an engine, mounts of the "
                                 "host below them included",
                                 TCI_STAGE_HANDED_MAX);
        found->how[found->count] = how_to_seal(plan, m, fd);
        found->mounts[found->count++] = tci_take_fd(&fd);
    }
    return 0;
}

/* ---- what the plan does not know ------------------------------------------------------------------ */

struct others {
    const struct tci_oci_cage *cage;
    struct found *found; /* NULL: nothing is taken away any more */
    char foreign[256];   /* what stays */
};

/* A directory is handed to the helper, which unmounts it. */
static bool take_away(const struct others *others, const char *point)
{
    struct found *found = others->found;
    tc_cleanup(tci_closep) int fd = -1;
    if (!found || found->count == TCI_STAGE_HANDED_MAX)
        return false;
    fd = open_inside(others->cage->root, point);
    if (fd < 0 || !is_directory(fd) || !is_mount(fd, false))
        return false;
    found->how[found->count] = TCI_STAGE_TAKE_AWAY;
    found->mounts[found->count++] = tci_take_fd(&fd);
    return true;
}

static int see_mount(void *context, const struct tci_mounted *mount)
{
    struct others *others = context;
    const size_t own = strlen(TCI_ENTRY_DIRECTORY "-");
    if (tci_api_points_know(tci_api_points_of(others->cage->plan), mount->point) ||
        strncmp(mount->point, TCI_ENTRY_DIRECTORY "-", own) == 0 || take_away(others, mount->point))
        return 0;
    (void)snprintf(others->foreign, sizeof others->foreign, "%s", mount->point);
    return 1;
}

/* The attack: nobody's; but containers.conf may add directories of the host to every container of Podman's, for the
 * user's own ones; so may mounts.conf, which Red Hat's systems have, and hooks. What the policy does not grant does not
 * happen: directories are taken away, where we may enter the container; with anything else there is no call. */
static int check_others(const struct tci_oci_cage *cage, struct found *found,
                        struct tc_error *reterr)
{
    struct others others = { .cage = cage, .found = found };
    char path[64], shown[TCI_QUOTE_MAX];
    int r;
    (void)snprintf(path, sizeof path, "/proc/%d/mountinfo", cage->pid);
    r = tci_mountinfo_each_in(path, see_mount, &others);
    if (r < 0)
        return tci_error_errno(reterr, errno, "listing what is mounted in the container");
    if (r == 0)
        return 0;
    tci_error_set(
        reterr, TC_ERROR_UNSUPPORTED,
        "the engine has mounted something in the container that the policy does not grant: %s",
        tci_quote(others.foreign, strlen(others.foreign), shown));
    tci_error_remedy(reterr, cage->plan->choice.engine == TCI_OCI_ENGINE_PODMAN
                                 ? "look at volumes in containers.conf, and at mounts.conf: set "
                                   "CONTAINERS_CONF to a file without them for toolcage"
                                 : "look at the hooks of the daemon's runtime");
    return -1;
}

/* Another user's engine is not ours to enter: there the command stays in the engine's own group, and
 * its filter of devices holds. A rootless one that can be asked is always our own user's. */
static bool may_enter(const struct tci_oci_plan *plan)
{
    return tci_oci_is_ours(&plan->choice) || plan->choice.engine_is_rootless;
}

static int finish(const struct tci_oci_cage *cage, const struct found *found,
                  struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = cage->plan;
    const bool seal = may_enter(plan);
    const struct tci_stage_seal what = { .root = cage->root,
                                         .mounts = found->mounts,
                                         .how = found->how };
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
    size_t granted;
    int r;
    if (cage->root < 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container did not hand over its root directory, so that what is "
                             "mounted in it cannot be checked");
    r = check_mounts(cage, &found, reterr);
    granted = found.count;
    if (r == 0)
        r = check_others(cage, may_enter(cage->plan) ? &found : NULL, reterr);
    if (r == 0)
        r = finish(cage, &found, reterr);
    if (r == 0 && found.count > granted)
        r = check_others(cage, NULL, reterr);
    for (size_t i = 0; i < found.count; i++)
        (void)tci_close(found.mounts[i]);
    return r;
}
