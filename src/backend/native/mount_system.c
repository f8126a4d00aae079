/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what every cage has besides the grants: the system of the host, devices, /proc, scratch, and the
 * generated files of /etc. */
#include "backend/native/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/etc_files.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/cage_paths.h"

enum { copy_max = 4096 };

static int place_text(struct tci_mount_build *b, enum tci_init_mount_kind kind, const char *cage,
                      const char *text)
{
    return tci_place_bytes(b, kind, cage, text, strlen(text));
}

static const struct {
    const char *path, *text;
} links[] = {
    { "/dev/fd", "/proc/self/fd" },
    { "/dev/stdin", "/proc/self/fd/0" },
    { "/dev/stdout", "/proc/self/fd/1" },
    { "/dev/stderr", "/proc/self/fd/2" },
};

/* A small file is copied: that is quicker than a mount. 1: done, 0: mount it. */
static int place_copy(struct tci_mount_build *b, const char *path, const struct stat *status)
{
    tc_cleanup(tci_closep) int fd = -1;
    char *text;
    ssize_t n;
    if (!S_ISREG(status->st_mode) || status->st_size > copy_max || !(status->st_mode & S_IROTH) ||
        (fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0)
        return 0;
    text = tci_arena_alloc(b->plan->arena, copy_max + 2);
    if (!text)
        return tci_error_no_memory(b->reterr);
    n = tci_read_some(fd, text, copy_max + 1);
    if (n < 0 || n > copy_max)
        return 0;
    return tci_place_bytes(b, TCI_MOUNT_FILE, path, text, (size_t)n) < 0 ? -1 : 1;
}

/* The host's own file, directory or link; what this host does not have, the cage has not either. */
static int place_system(struct tci_mount_build *b, const char *path)
{
    struct stat status;
    char target[TCI_PATH_MAX + 1];
    ssize_t n;
    char *text;
    uint64_t attributes = TCI_READ_ONLY | tci_place_no_exec(b->plan);
    const struct tci_mount *around = tci_mount_around(b->plan, path + 1);
    if (lstat(path, &status) < 0)
        return 0;
    if (around && !around->host) {
        int copied = place_copy(b, path, &status);
        if (copied)
            return copied < 0 ? -1 : 0;
    }
    if (!S_ISLNK(status.st_mode))
        return tci_place_bind(b, path, path, !S_ISDIR(status.st_mode), attributes);
    if (around && around->host)
        return 0; /* a root of the host's: the link is there, or it is another system's */
    n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return tci_error_errno(b->reterr, errno, "reading the link %s", path);
    text = tci_arena_strndup(b->plan->arena, target, (size_t)n);
    return text ? place_text(b, TCI_MOUNT_LINK, path, text) : tci_error_no_memory(b->reterr);
}

/* One of the files that are ours to write. 1: it is, and is placed; 0: it is none of them. */
static int place_generated(struct tci_mount_build *b, const char *path)
{
    const struct tci_etc_cage cage = {
        .uid = TCI_INIT_ID,
        .gid = TCI_INIT_ID,
        .has_gate = b->plan->has_gate,
        .host_network = b->plan->spec.settings->network.mode == TCI_NETWORK_HOST,
    };
    struct tci_etc_file file;
    unsigned i = 0;
    while (i < TCI_ETC_FILES && strcmp(path, tci_etc_path(i)) != 0)
        i++;
    if (i == TCI_ETC_FILES)
        return 0;
    if (tci_etc_file(b->plan->arena, &cage, i, &file, b->reterr) < 0 ||
        tci_place_bytes(b, TCI_MOUNT_FILE, path, file.bytes, file.length) < 0)
        return -1;
    return 1;
}

int tci_place_own(struct tci_mount_build *b, const struct tci_cage_path *own)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const struct tci_mount *around = tci_mount_around(b->plan, own->path + 1);
    bool ours = around && !around->host;
    if (strcmp(own->path, "/proc") == 0) {
        uint32_t flags = 0;
        struct tci_mount *m;
        if (tci_mount_prepare(b, own->path, false, &flags) < 0 ||
            !(m = tci_mounts_add(b, TCI_MOUNT_PROC, own->path)))
            return -1;
        m->flags = flags;
        m->attributes = TCI_READ_ONLY | MOUNT_ATTR_NOEXEC;
        return 0;
    }
    if (strcmp(own->path, "/tmp") == 0)
        return tci_place_tmpfs(b, own->path, s->filesystem.scratch, "1777",
                               TCI_LOCKED_DOWN | tci_place_no_exec(b->plan));
    if (strcmp(own->path, "/dev/shm") == 0)
        return tci_place_tmpfs(b, own->path, s->filesystem.scratch, "1777",
                               TCI_LOCKED_DOWN | MOUNT_ATTR_NOEXEC);
    if (own->access == TCI_ACCESS_HIDDEN)
        return access(own->path, F_OK) < 0 ? 0
                                           : tci_place_bind(b, own->path, "/dev/null", true,
                                                            TCI_READ_ONLY | MOUNT_ATTR_NOEXEC);
    for (size_t i = 0; i < tci_array_size(links); i++)
        if (strcmp(own->path, links[i].path) == 0)
            return ours ? place_text(b, TCI_MOUNT_LINK, own->path, links[i].text) : 0;
    if (ours) {
        int placed = place_generated(b, own->path);
        if (placed)
            return placed < 0 ? -1 : 0;
    }
    if (strncmp(own->path, "/dev/", 5) == 0)
        return tci_place_bind(b, own->path, own->path, true, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return place_system(b, own->path);
}

int tci_native_mount_program(struct tc_plan *plan, const char *cage, const char *host, bool is_file,
                             const struct tci_native_program *checked, struct tc_error *reterr)
{
    struct tci_mount *m;
    struct tci_mount_build b = { .plan = plan, .reterr = reterr };
    const struct tci_mount *around = tci_mount_around(plan, cage + 1);
    if (!around || !(around->attributes & MOUNT_ATTR_NOEXEC))
        return 0;
    if (strcmp(around->target, cage + 1) == 0) { /* it is a mount of its own already */
        plan->mounts.items[around - plan->mounts.items].attributes &= ~(uint64_t)MOUNT_ATTR_NOEXEC;
        return 0;
    }
    if (tci_place_bind(&b, cage, host, is_file, TCI_READ_ONLY) < 0)
        return -1;
    if (checked) {
        m = &plan->mounts.items[plan->mounts.count - 1];
        m->flags |= TCI_MOUNT_CHECKED;
        m->device = checked->device;
        m->inode = checked->inode;
    }
    return 0;
}
