/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the mount points that the runtime will look for in the root directory. They are made in the
 * directory that an overlay lays over the image, before it does so: the image is only looked at. And mounts
 * inside granted directories, which no runtime makes.
 *
 * The attack: an image with a link where a mount goes (/workspace -> /proc, /etc -> ../..), so that a
 * granted directory appears at another place, or a directory is made outside. Every part of a path is
 * opened by itself, beneath the one before, and a link is never followed. One at the end of the path is
 * covered by what is made; one on the way is refused.
 */
#include "backend/oci/stage_program.h"

#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>

enum {
    name_max = 255,
    mode_bits = 07777,
    path_room = 64,
    to_handle = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH
};

/* One step into the image: a handle, or a negative errno. */
static long step_into(long directory, const char *name, unsigned *ret_mode)
{
    struct statx found = { 0 };
    long fd = CALL(openat, directory, name, STAGE_O_PATH | STAGE_O_NOFOLLOW | STAGE_O_CLOEXEC, 0,
                   0);
    long result;
    if (fd < 0)
        return fd;
    result = CALL(statx, fd, "", STAGE_AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &found);
    if (result < 0) {
        (void)CALL(close, fd, 0, 0, 0, 0);
        return result;
    }
    *ret_mode = found.stx_mode;
    return fd;
}

static void close_not(long fd, long keep)
{
    if (fd >= 0 && fd != keep)
        (void)CALL(close, fd, 0, 0, 0, 0);
}

/* Where the image has a directory, the one above it looks the same. */
static long enter_upper(long directory, const char *name, unsigned mode, uint32_t item)
{
    long result = CALL(mkdirat, directory, name, mode & mode_bits, 0, 0);
    if (result != -EEXIST)
        must(TCI_STAGE_STEP_POINT, item, result);
    return must(
        TCI_STAGE_STEP_POINT, item,
        CALL(openat, directory, name, STAGE_O_PATH | STAGE_O_NOFOLLOW | STAGE_O_CLOEXEC, 0, 0));
}

/* Copies the next part of a path; where the one behind it begins. */
static const char *next_part(const char *path, char *name, uint32_t item)
{
    size_t n = 0;
    while (*path && *path != '/') {
        if (n == name_max)
            broken(TCI_STAGE_STEP_POINT, item, -ENAMETOOLONG);
        name[n++] = *path++;
    }
    name[n] = '\0';
    return *path == '/' ? path + 1 : path;
}

static bool is_directory(unsigned mode)
{
    return (mode & STAGE_TYPE_MASK) == STAGE_TYPE_DIRECTORY;
}

struct point {
    const char *path;
    bool is_file;
    unsigned mode; /* 0: as the image has it */
    uint32_t item;
};

/* The end of the path: made also where the image has what is needed. */
static void make_last(long upper, const char *name, const struct point *point, bool is_there,
                      unsigned found)
{
    const bool is_link = is_there && (found & STAGE_TYPE_MASK) == STAGE_TYPE_LINK;
    unsigned mode = point->mode ? point->mode : 0755;
    long result;
    if (is_there && !is_link && point->is_file == is_directory(found))
        broken(TCI_STAGE_STEP_POINT, point->item, point->is_file ? -EISDIR : -ENOTDIR);
    if (is_there && !is_link && !point->mode)
        mode = found & mode_bits;
    if (point->is_file)
        result = CALL(mknodat, upper, name, 0100444, 0, 0);
    else
        result = CALL(mkdirat, upper, name, mode, 0, 0);
    if (result == -EEXIST && point->mode && !point->is_file)
        result = CALL(fchmodat, upper, name, mode, 0, 0); /* on the way to another point */
    if (result != -EEXIST)
        must(TCI_STAGE_STEP_POINT, point->item, result);
}

static void make_point(const struct stage *stage, const struct point *point)
{
    const uint32_t item = point->item;
    const char *path = point->path;
    long lower = stage->rootfs, upper = stage->upper;
    char name[name_max + 1];
    while (*path) {
        unsigned mode = 0755;
        const char *rest = next_part(path, name, item);
        long found = lower < 0 ? -ENOENT : step_into(lower, name, &mode), above;
        if (found < 0 && found != -ENOENT)
            broken(TCI_STAGE_STEP_POINT, item, found);
        close_not(lower, stage->rootfs);
        lower = found;
        if (!*rest) {
            make_last(upper, name, point, found >= 0, mode);
            break;
        }
        if (found >= 0 && !is_directory(mode))
            broken(TCI_STAGE_STEP_POINT, item,
                   (mode & STAGE_TYPE_MASK) == STAGE_TYPE_LINK ? -ELOOP : -ENOTDIR);
        above = enter_upper(upper, name, mode, item);
        close_not(upper, stage->upper);
        upper = above;
        path = rest;
    }
    close_not(lower, stage->rootfs);
    close_not(upper, stage->upper);
}

void make_points(const struct stage *stage)
{
    const struct tci_stage_config *config = stage->config;
    const struct tci_stage_mount *mounts = config_at(stage, config->mounts.offset);
    const uint32_t *points = config_at(stage, config->points.offset);
    for (uint32_t i = 0; i < config->points.count; i++)
        make_point(stage, &(struct point){ config_at(stage, points[i]), false, 0,
                                           config->mounts.count + i });
    for (uint32_t i = 0; i < config->mounts.count; i++)
        if (mounts[i].flags & TCI_STAGE_MAKE_POINT)
            make_point(stage, &(struct point){ config_at(stage, mounts[i].cage),
                                               mounts[i].flags & TCI_STAGE_IS_FILE,
                                               mounts[i].point_mode, i });
}

/* ---- in granted directories -------------------------------------------------------------------------------- */

/*
 * Runtimes make a mount point that is missing, and follow a link that lies there. The attack: a tool removes
 * a hidden path from its workspace, and the next call's runtime makes files of root's on the host; or it puts
 * a link there, and the cover lands on something else. So no runtime mounts anything in a granted directory:
 * it is done here. Beneath the grant, no link is followed, what is found must be what the plan saw, and the
 * mount goes to that handle, whatever its path is by then.
 */
static long find_place(long top, const char *path, const struct tci_stage_mount *m, uint32_t item)
{
    struct open_how how = { .flags = STAGE_O_PATH | STAGE_O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    struct statx found = { 0 };
    long place = must(TCI_STAGE_STEP_PLACE, item, CALL(openat2, top, path, &how, sizeof how, 0));
    must(TCI_STAGE_STEP_PLACE, item,
         CALL(statx, place, "", STAGE_AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &found));
    if (found.stx_ino != m->over_inode ||
        ((uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor) != m->over_device)
        broken(TCI_STAGE_STEP_PLACE, item, -ESTALE);
    return place;
}

/* In a cover, which is memory that nobody else has seen. */
static long make_place(long top, const char *path, const struct tci_stage_mount *m, uint32_t item)
{
    char name[name_max + 1];
    long at = top;
    for (;;) {
        const char *rest = next_part(path, name, item);
        long next;
        if (!*rest && m->flags & TCI_STAGE_IS_FILE) {
            long result = CALL(mknodat, at, name, 0100444, 0, 0);
            if (result != -EEXIST)
                must(TCI_STAGE_STEP_POINT, item, result);
        }
        next = !*rest && m->flags & TCI_STAGE_IS_FILE
                   ? must(TCI_STAGE_STEP_POINT, item,
                          CALL(openat, at, name, STAGE_O_PATH | STAGE_O_NOFOLLOW | STAGE_O_CLOEXEC,
                               0, 0))
                   : enter_upper(at, name, 0755, item);
        close_not(at, top);
        at = next;
        if (!*rest)
            return at;
        path = rest;
    }
}

/* A copy of what is staged, with what was mounted in it before. */
static long copy_staged(const struct stage *stage, const struct tci_stage_mount *m, uint32_t item)
{
    const long flags = STAGE_AT_EMPTY_PATH;
    struct mount_attr file = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                           MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
    char path[path_room];
    long mount;
    numbered(path, "m/", m->number);
    mount = must(TCI_STAGE_STEP_ATTACH, item,
                 CALL(open_tree, stage->memory, path,
                      OPEN_TREE_CLONE | STAGE_O_CLOEXEC | STAGE_AT_RECURSIVE, 0, 0));
    if (m->kind == TCI_STAGE_MOUNT_FILE) /* a part of the stage's own memory until now */
        must(TCI_STAGE_STEP_ATTRIBUTES, item,
             CALL(mount_setattr, mount, "", flags, &file, sizeof file));
    return mount;
}

/* The same tree that make_points() has made it in. */
static void mount_in_root(const struct stage *stage, const struct tci_stage_mount *m, uint32_t item)
{
    struct open_how how = { .flags = STAGE_O_PATH | STAGE_O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    long mount = copy_staged(stage, m, item);
    long top = must(TCI_STAGE_STEP_POINT, item,
                    CALL(openat, stage->memory, "rootfs", STAGE_O_PATH | STAGE_O_CLOEXEC, 0, 0));
    long place = must(TCI_STAGE_STEP_POINT, item,
                      CALL(openat2, top, config_at(stage, m->cage), &how, sizeof how, 0));
    must(TCI_STAGE_STEP_ATTACH, item, CALL(move_mount, mount, "", place, "", to_handle));
    (void)CALL(close, place, 0, 0, 0, 0);
    (void)CALL(close, top, 0, 0, 0, 0);
    (void)CALL(close, mount, 0, 0, 0, 0);
}

static void mount_one(const struct stage *stage, const struct tci_stage_mount *m,
                      const struct tci_stage_mount *around, uint32_t item)
{
    const char *rest = config_at(stage, m->cage);
    char path[path_room];
    long mount = copy_staged(stage, m, item), top, place;
    rest += length_of(config_at(stage, around->cage)) + 1;
    numbered(path, "m/", around->number);
    top = must(TCI_STAGE_STEP_PLACE, item,
               CALL(openat, stage->memory, path, STAGE_O_PATH | STAGE_O_CLOEXEC, 0, 0));
    place = m->over_inode ? find_place(top, rest, m, item) : make_place(top, rest, m, item);
    must(TCI_STAGE_STEP_ATTACH, item, CALL(move_mount, mount, "", place, "", to_handle));
    (void)CALL(close, place, 0, 0, 0, 0);
    (void)CALL(close, top, 0, 0, 0, 0);
    (void)CALL(close, mount, 0, 0, 0, 0);
}

void mount_inner(const struct stage *stage)
{
    const struct tci_stage_config *config = stage->config;
    const struct tci_stage_mount *mounts = config_at(stage, config->mounts.offset);
    /* The innermost first: each takes along what it has. */
    for (uint32_t i = config->mounts.count; i-- > 0;)
        if (mounts[i].within)
            mount_one(stage, &mounts[i], &mounts[mounts[i].within - 1], i);
    for (uint32_t i = 0; i < config->mounts.count; i++)
        if (mounts[i].flags & TCI_STAGE_IN_ROOT)
            mount_in_root(stage, &mounts[i], i);
}
