/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the list of mounts while it grows, and where the next one can go. On a file system of the cage's
 * own a mount point is made; in a directory of the host it must be there already. */
#include "backend/native/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "policy/cage_paths.h"

struct tci_mount *tci_mounts_add(struct tci_mount_build *b, enum tci_init_mount_kind kind,
                                 const char *cage)
{
    struct tci_mounts_list *list = &b->plan->mounts;
    struct tci_mount *m;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct tci_mount *items = tci_arena_new_array(b->plan->arena, capacity, struct tci_mount);
        if (!items) {
            tci_error_no_memory(b->reterr);
            return NULL;
        }
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    m = &list->items[list->count++];
    *m = (struct tci_mount){ .kind = kind, .target = cage + 1, .source = -1, .text = "" };
    return m;
}

static bool is_mount(const struct tci_mount *m)
{
    return m->kind >= TCI_MOUNT_BIND;
}

/* `path` and the targets are without their first slash. */
static bool is_inside(const char *path, const char *target)
{
    size_t length = strlen(target);
    return !length ||
           (strncmp(path, target, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

/* The mount that `path` would lie on, so far. */
const struct tci_mount *tci_mount_around(const struct tc_plan *plan, const char *path)
{
    const struct tci_mount *best = NULL;
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const struct tci_mount *m = &plan->mounts.items[i];
        if (is_mount(m) && is_inside(path, m->target) &&
            (!best || strlen(m->target) >= strlen(best->target)))
            best = m;
    }
    return best;
}

const char *tci_native_host_path(const struct tc_plan *plan, const char *cage, char *buffer,
                                 size_t size)
{
    const struct tci_mount *m = tci_mount_around(plan, cage + 1);
    const char *rest;
    int n;
    if (!m || !m->host)
        return NULL;
    rest = cage + 1 + strlen(m->target);
    rest += *rest == '/';
    n = snprintf(buffer, size, "%s%s%s", strcmp(m->host, "/") == 0 ? "" : m->host,
                 *rest || strcmp(m->host, "/") == 0 ? "/" : "", rest);
    return n > 0 && (size_t)n < size ? buffer : NULL;
}

static bool has_target(const struct tc_plan *plan, const char *target, size_t length)
{
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const char *other = plan->mounts.items[i].target;
        if (strncmp(other, target, length) == 0 && !other[length])
            return true;
    }
    return false;
}

/* Directories on the way to `cage`, on a file system of ours. */
int tci_mount_parents(struct tci_mount_build *b, const char *cage)
{
    for (const char *slash = strchr(cage + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - cage);
        char *parent;
        if (has_target(b->plan, cage + 1, length - 1))
            continue;
        parent = tci_arena_strndup(b->plan->arena, cage, length);
        if (!parent)
            return tci_error_no_memory(b->reterr);
        if (!tci_mounts_add(b, TCI_MOUNT_DIRECTORY, parent))
            return -1;
    }
    return 0;
}

/* Is there something at `cage` in the directory of the host that it lies in? 1: a directory, 0: a
 * file, negative errno. No link is followed: that is how it will be opened. */
int tci_mount_look(const struct tci_mount_build *b, const char *cage)
{
    char host[TCI_PATH_MAX + 1];
    uint64_t device, inode;
    bool is_directory = false;
    int fd, r;
    struct stat status;
    if (!tci_native_host_path(b->plan, cage, host, sizeof host))
        return -ENOENT;
    fd = tci_granted_open(&b->plan->writables, host);
    if (fd < 0)
        return fd;
    r = tci_granted_identify(fd, &device, &inode, &is_directory);
    (void)tci_close(fd);
    if (r == 0 && lstat(host, &status) == 0 && S_ISLNK(status.st_mode))
        return -ELOOP;
    return r < 0 ? r : is_directory;
}

static int point_missing(struct tci_mount_build *b, const char *cage, int problem)
{
    const struct tci_mount *around = tci_mount_around(b->plan, cage + 1);
    tci_error_set(
        b->reterr, TC_ERROR_UNSUPPORTED,
        "%.300s cannot be a place of its own inside %.200s, which the cage takes from the "
        "host: %s",
        cage, around && around->host ? around->host : "/", strerrordesc_np(-problem));
    tci_error_remedy(b->reterr, "create it on the host (toolcage makes nothing there), or grant "
                                "another path");
    return -1;
}

/* Prepares the mount point of `cage`: on a file system of ours it will be made, in a directory of the
 * host it must be there, and of the same kind. */
int tci_mount_prepare(struct tci_mount_build *b, const char *cage, bool is_file, uint32_t *flags)
{
    const struct tci_mount *around = tci_mount_around(b->plan, cage + 1);
    int found;
    *flags |= is_file ? TCI_MOUNT_IS_FILE : 0;
    if (around && around->kind == TCI_MOUNT_PROC)
        return 0; /* the kernel's own files: as on the host */
    if (around && !around->host) {
        *flags |= TCI_MOUNT_MAKE;
        return tci_mount_parents(b, cage);
    }
    found = tci_mount_look(b, cage);
    if (found >= 0 && found != !is_file)
        found = is_file ? -EISDIR : -ENOTDIR;
    return found < 0 ? point_missing(b, cage, found) : 0;
}
