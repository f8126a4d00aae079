/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the mount points that the runtime will look for in the root directory. They are made in the
 * directory that an overlay lays over the image, before it does so: the image is only looked at.
 *
 * The attack: an image with a link where a mount goes (/workspace -> /proc, /etc -> ../..), so that a
 * granted directory appears at another place, or a directory is made outside. Every part of a path is
 * opened by itself, beneath the one before, and a link is never followed. One at the end of the path is
 * covered by what is made; one on the way is refused.
 */
#include "backend/oci/stage_program.h"

#include <linux/stat.h>

enum { name_max = 255, mode_bits = 07777 };

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
