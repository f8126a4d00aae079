/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the tree of a gVisor container as its command sees it, mounted a second time in the stage. Files
 * are brought back from here: the sandbox's own mounts are in its kernel, where nobody else can look.
 *
 * The attack: what the policy hides lies in a directory that the tool may write to, and `outputs` names
 * that directory. In the grant alone the hidden file is there to be read; here it is covered, by a mount,
 * so that renaming the directories above it does not uncover it. A place that is missing in a directory of
 * the host, or is a link by now, ends everything before the runtime could make one there.
 */
#include "backend/oci/stage_program.h"

#include <linux/mount.h>
#include <linux/openat2.h>

enum { path_room = 64, path_max = 4096 };

static bool is_memory(const struct tci_stage_mount *m)
{
    return m->kind == TCI_STAGE_MOUNT_NONE || m->kind == TCI_STAGE_MOUNT_TMPFS;
}

/* Does `path` lie in `above`, and is not that itself? */
static bool is_below(const char *path, const char *above)
{
    while (*above && *path == *above) {
        path++;
        above++;
    }
    return !*above && *path == '/';
}

/* Is the mount that this place lies in memory, in which nobody has made it yet? Parents come first. */
static bool is_in_memory(const struct stage *stage, uint32_t item)
{
    const struct tci_stage_mount *mounts = config_at(stage, stage->config->mounts.offset);
    const char *path = config_at(stage, mounts[item].cage);
    const struct tci_stage_mount *found = NULL;
    for (uint32_t i = 0; i < item; i++) {
        const char *above = config_at(stage, mounts[i].cage);
        if (is_below(path, above) &&
            (!found || length_of(above) >= length_of(config_at(stage, found->cage))))
            found = &mounts[i];
    }
    return found && is_memory(found);
}

static long open_place(long root, const char *path)
{
    struct open_how how = { .flags = STAGE_O_PATH | STAGE_O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    return CALL(openat2, root, path, &how, sizeof how, 0);
}

/* Memory of ours that nobody else has seen: there are no links in it. */
static void make_place(long root, const char *path, bool is_file, uint32_t item)
{
    char room[path_max];
    for (size_t i = 0;; i++) {
        long result = 0;
        if (i == sizeof room)
            broken(TCI_STAGE_STEP_VIEW, item, -ENAMETOOLONG);
        room[i] = '\0';
        if (path[i] == '/' || (!path[i] && !is_file))
            result = CALL(mkdirat, root, room, 0755, 0, 0);
        else if (!path[i])
            result = CALL(mknodat, root, room, 0100444, 0, 0);
        if (result != -EEXIST)
            must(TCI_STAGE_STEP_VIEW, item, result);
        if (!path[i])
            return;
        room[i] = path[i];
    }
}

static long copy_of(const struct stage *stage, const struct tci_stage_mount *m)
{
    const long flags = OPEN_TREE_CLONE | STAGE_O_CLOEXEC | STAGE_AT_RECURSIVE;
    char path[path_room];
    if (m->kind == TCI_STAGE_MOUNT_NONE) /* the sandbox's own, which cannot be seen from here */
        return memory_filesystem("65536", "64", "0755", 0);
    numbered(path, "m/", m->number);
    return CALL(open_tree, stage->memory, path, flags, 0, 0);
}

static void show(const struct stage *stage, long root, uint32_t item)
{
    const struct tci_stage_mount *mounts = config_at(stage, stage->config->mounts.offset);
    const struct tci_stage_mount *m = &mounts[item];
    const char *path = config_at(stage, m->cage);
    long mount = must(TCI_STAGE_STEP_VIEW, item, copy_of(stage, m));
    long place = open_place(root, path);
    if (place == -ENOENT && is_in_memory(stage, item)) {
        make_place(root, path, m->flags & TCI_STAGE_IS_FILE, item);
        place = open_place(root, path);
    }
    must(TCI_STAGE_STEP_VIEW, item, place);
    must(TCI_STAGE_STEP_VIEW, item,
         CALL(move_mount, mount, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
    (void)CALL(close, mount, 0, 0, 0, 0);
    (void)CALL(close, place, 0, 0, 0, 0);
}

void make_view(const struct stage *stage)
{
    const struct tci_stage_mount *mounts = config_at(stage, stage->config->mounts.offset);
    const uint32_t count = stage->config->mounts.count;
    long root = must(
        TCI_STAGE_STEP_VIEW, count,
        CALL(open_tree, stage->memory, "rootfs", OPEN_TREE_CLONE | STAGE_O_CLOEXEC, 0, 0));
    must(TCI_STAGE_STEP_VIEW, count,
         CALL(move_mount, root, "", stage->memory, "view", MOVE_MOUNT_F_EMPTY_PATH));
    for (uint32_t i = 0; i < count; i++)
        if (!mounts[i].within) /* the others come with the granted directory that they lie in */
            show(stage, root, i);
    (void)CALL(close, root, 0, 0, 0, 0);
}
