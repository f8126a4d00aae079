/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "base/path.h"

struct copying {
    struct tci_mount_table *table;
    struct tci_arena *arena;
    size_t room;
};

static int copy(void *context, const struct tci_mounted *mount)
{
    struct copying *copying = context;
    struct tci_mount_table *table = copying->table;
    struct tci_mounted *to;
    if (table->count == copying->room) {
        void *items = tci_arena_grow(copying->arena, table->items, table->count,
                                     sizeof *table->items, &copying->room);
        if (!items)
            return -1;
        table->items = items;
    }
    to = &table->items[table->count];
    *to = *mount;
    to->root = tci_arena_strdup(copying->arena, mount->root);
    to->point = tci_arena_strdup(copying->arena, mount->point);
    to->type = tci_arena_strdup(copying->arena, mount->type);
    to->options = tci_arena_strdup(copying->arena, mount->options);
    if (!to->root || !to->point || !to->type || !to->options)
        return -1;
    table->count++;
    return 0;
}

int tci_mount_table_read(struct tci_mount_table *ret, struct tci_arena *arena)
{
    struct copying copying = { .table = ret, .arena = arena };
    *ret = (struct tci_mount_table){ 0 };
    return tci_mountinfo_each(copy, &copying);
}

/* False: the mount is not known. */
static bool look_at(const char *path, struct statx *ret)
{
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    return statx(AT_FDCWD, path, flags, STATX_MNT_ID, ret) == 0 && (ret->stx_mask & STATX_MNT_ID);
}

/* Of those at one point the last one is seen. */
static const struct tci_mounted *find_by_text(const struct tci_mount_table *table, const char *path)
{
    const struct tci_mounted *best = NULL;
    for (size_t i = 0; i < table->count; i++)
        if (tci_path_is_within(path, table->items[i].point) &&
            (!best || strlen(table->items[i].point) >= strlen(best->point)))
            best = &table->items[i];
    return best;
}

/*
 * Where the root directory was changed (chroot), the mount that it is in is not listed. As long as nothing of
 * its file system is mounted anywhere else, all paths of it are as we see them.
 */
static const struct tci_mounted *make_unlisted(const struct tci_mount_table *table,
                                               const struct statx *status, struct tci_arena *arena)
{
    struct tci_mounted *made;
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].major == status->stx_dev_major &&
            table->items[i].minor == status->stx_dev_minor)
            return NULL;
    made = tci_arena_new_of(arena, struct tci_mounted);
    if (made)
        *made = (struct tci_mounted){ .id = status->stx_mnt_id,
                                      .major = status->stx_dev_major,
                                      .minor = status->stx_dev_minor,
                                      .root = "/",
                                      .point = "/",
                                      .type = "",
                                      .options = "" };
    return made;
}

static const struct tci_mounted *find(const struct tci_mount_table *table, const char *path,
                                      struct tci_arena *arena)
{
    struct statx status;
    if (!look_at(path, &status))
        return find_by_text(table, path);
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].id == status.stx_mnt_id)
            return tci_path_is_within(path, table->items[i].point) ? &table->items[i] : NULL;
    return make_unlisted(table, &status, arena);
}

int tci_mount_table_locate(const struct tci_mount_table *table, const char *path,
                           struct tci_arena *arena, struct tci_mount_origin *ret)
{
    const struct tci_mounted *mount = find(table, path, arena);
    const char *root, *rest = path;
    if (!mount)
        return -1;
    root = mount->root[1] ? mount->root : "";
    if (mount->point[1])
        rest += strlen(mount->point);
    if (*root && !rest[strspn(rest, "/")])
        rest = "";
    ret->mount = mount;
    ret->path = tci_arena_printf(arena, "%s%s", root, *root || *rest ? rest : "/");
    return ret->path ? 0 : -1;
}

bool tci_mount_is_seen(const struct tci_mounted *mount)
{
    struct statx status;
    return !look_at(mount->point, &status) || status.stx_mnt_id == mount->id;
}

bool tci_mounts_are_same(const struct tci_mounted *a, const struct tci_mounted *b)
{
    return a->major == b->major && a->minor == b->minor;
}
