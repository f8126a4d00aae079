/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the list of mounts while it grows, and what lies at a path of the container so far. */
#include "backend/oci/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/utf8.h"

enum { mounts_max = 4096 };

/* Bundles and engines take JSON. The attack: bytes that are no text become others there, and the mount
 * would be at a place that no rule names. */
static int check_text(struct tci_oci_mount_build *b, const char *cage)
{
    size_t left = strlen(cage), length = 1;
    uint32_t code_point;
    for (const char *at = cage; left && length; at += length, left -= length)
        length = tci_utf8_decode(at, left, &code_point);
    if (length)
        return 0;
    return tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED,
                         "a container has no paths that are not UTF-8");
}

/*
 * The attack: a hidden file is replaced on the host, by its owner or by another tool. The kernel takes the
 * cover away together with the old file, so a container that was made before shows the new one. Whoever
 * uses the plan again looks whether it still is the same (tci_oci_is_stale).
 */
static int note_place(struct tci_oci_mount_build *b, struct tci_oci_mount *m)
{
    struct tci_oci_plan *plan = b->plan;
    char host[TCI_PATH_MAX + 1];
    bool is_directory = false;
    tc_cleanup(tci_closep) int fd = -1;
    int r;
    if (!tci_oci_host_path(plan, m->cage, host, sizeof host))
        return 0; /* in the image, or in memory */
    fd = tci_granted_open(&plan->writables, host);
    r = fd < 0 ? fd : tci_granted_identify(fd, &m->over_device, &m->over_inode, &is_directory);
    if (r < 0)
        return tci_error_errno(b->reterr, -r, "the mount point %.300s", host);
    m->over = tci_arena_strdup(plan->arena, host);
    if (!m->over)
        return tci_error_no_memory(b->reterr);
    m->over_handle = tci_take_fd(&fd);
    return 0;
}

static int make_room(struct tci_oci_mount_build *b)
{
    struct tci_oci_plan *plan = b->plan;
    size_t capacity = b->capacity ? b->capacity * 2 : 32;
    struct tci_oci_mount *items;
    if (plan->mount_count == mounts_max)
        return tci_error_set(b->reterr, TC_ERROR_TOO_LARGE,
                             "the container would have more than %d mounts", (int)mounts_max);
    if (plan->mount_count < b->capacity)
        return 0;
    items = tci_arena_new_array(plan->arena, capacity, struct tci_oci_mount);
    if (!items)
        return tci_error_no_memory(b->reterr);
    if (plan->mount_count)
        memcpy(items, plan->mounts, plan->mount_count * sizeof *items);
    plan->mounts = items;
    b->capacity = capacity;
    return 0;
}

struct tci_oci_mount *tci_oci_mount_add(struct tci_oci_mount_build *b, enum tci_oci_mount_kind kind,
                                        const char *cage)
{
    struct tci_oci_plan *plan = b->plan;
    const struct tci_oci_mount *around = tci_oci_mount_around(plan, cage);
    struct tci_oci_mount m = { .kind = kind, .cage = cage, .source = -1, .over_handle = -1 };
    m.inner = plan->choice.engine == TCI_OCI_ENGINE_NONE && around &&
              (around->kind == TCI_OCI_MOUNT_BIND || around->inner);
    if (check_text(b, cage) < 0 || make_room(b) < 0 || note_place(b, &m) < 0)
        return NULL;
    plan->mounts[plan->mount_count] = m;
    return &plan->mounts[plan->mount_count++];
}

int tci_oci_mask(struct tci_oci_mount_build *b, const char *cage)
{
    struct tci_oci_plan *plan = b->plan;
    if (check_text(b, cage) < 0)
        return -1;
    if (b->masked_count + 1 >= b->masked_capacity) {
        size_t capacity = b->masked_capacity ? b->masked_capacity * 2 : 16;
        const char **items = tci_arena_new_array(plan->arena, capacity, const char *);
        if (!items)
            return tci_error_no_memory(b->reterr);
        if (b->masked_count)
            memcpy(items, plan->masked, b->masked_count * sizeof *items);
        plan->masked = items;
        b->masked_capacity = capacity;
    }
    plan->masked[b->masked_count++] = cage;
    plan->masked[b->masked_count] = NULL;
    return 0;
}

const struct tci_oci_mount *tci_oci_mount_around(const struct tci_oci_plan *plan, const char *path)
{
    const struct tci_oci_mount *best = NULL;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (tci_path_is_within(path, m->cage) && (!best || strlen(m->cage) >= strlen(best->cage)))
            best = m;
    }
    return best;
}

const char *tci_oci_host_path(const struct tci_oci_plan *plan, const char *cage, char *buffer,
                              size_t size)
{
    const struct tci_oci_mount *m = tci_oci_mount_around(plan, cage);
    const char *rest;
    bool is_root;
    int n;
    if (!m || m->kind != TCI_OCI_MOUNT_BIND)
        return NULL;
    rest = cage + strlen(m->cage);
    rest += *rest == '/';
    is_root = strcmp(m->host, "/") == 0;
    n = snprintf(buffer, size, "%s%s%s", is_root ? "" : m->host, *rest || is_root ? "/" : "", rest);
    return n > 0 && (size_t)n < size ? buffer : NULL;
}

/* In the directory that becomes the container's root. Links in it lead to places of the container: none
 * is followed, or it would be the host's files that are looked at. */
static int look_in_root(const struct tci_oci_plan *plan, const char *cage)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
    tc_cleanup(tci_closep) int root = -1, fd = -1;
    uint64_t device, inode;
    bool is_directory = false;
    int r;
    root = tci_granted_open(&plan->writables, plan->rootfs);
    if (root < 0)
        return root;
    fd = (int)syscall(SYS_openat2, root, cage, &how, sizeof how);
    if (fd < 0)
        return -errno;
    r = tci_granted_identify(fd, &device, &inode, &is_directory);
    return r < 0 ? r : is_directory;
}

int tci_oci_mount_look(const struct tci_oci_plan *plan, const char *cage)
{
    char host[TCI_PATH_MAX + 1];
    uint64_t device, inode;
    bool is_directory = false;
    struct stat status;
    tc_cleanup(tci_closep) int fd = -1;
    int r;
    if (!tci_oci_mount_around(plan, cage) && plan->rootfs)
        return look_in_root(plan, cage);
    if (!tci_oci_host_path(plan, cage, host, sizeof host))
        return -ENOENT;
    fd = tci_granted_open(&plan->writables, host);
    if (fd < 0)
        return fd;
    r = tci_granted_identify(fd, &device, &inode, &is_directory);
    if (r == 0 && lstat(host, &status) == 0 && S_ISLNK(status.st_mode))
        return -ELOOP;
    return r < 0 ? r : is_directory;
}

bool tci_oci_stages_memory(const struct tci_oci_plan *plan)
{
    return plan->choice.engine == TCI_OCI_ENGINE_NONE && plan->choice.runtime == TCI_OCI_RUNC;
}
