/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a policy grants and hides, as mounts; and the small pieces that other places are made of. */
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

/* Options as init hands them to fsconfig: name, NUL, value, NUL, ... */
int tci_place_tmpfs_options(struct tci_mount_build *b, struct tci_mount *m, uint64_t size,
                            uint64_t inodes, const char *mode)
{
    /* Inodes cost memory that the size does not count: one for each 4 KiB, as if each held a page. */
    char text[160];
    int n = snprintf(text, sizeof text, "size%c%llu%cnr_inodes%c%llu%cmode%c%s%c", 0,
                     (unsigned long long)size, 0, 0, (unsigned long long)inodes, 0, 0, mode, 0);
    m->text_length = (size_t)n;
    m->text = tci_arena_strndup(b->plan->arena, text, (size_t)n);
    return m->text ? 0 : tci_error_no_memory(b->reterr);
}

int tci_place_tmpfs(struct tci_mount_build *b, const char *cage, uint64_t size, const char *mode,
                    uint64_t attributes)
{
    uint32_t flags = 0;
    struct tci_mount *m;
    if (tci_mount_prepare(b, cage, false, &flags) < 0 ||
        !(m = tci_mounts_add(b, TCI_MOUNT_TMPFS, cage)))
        return -1;
    m->flags = flags;
    m->attributes = attributes;
    return tci_place_tmpfs_options(b, m, size, size / 4096 + 64, mode);
}

int tci_place_bytes(struct tci_mount_build *b, enum tci_init_mount_kind kind, const char *cage,
                    const char *bytes, size_t length)
{
    struct tci_mount *m;
    if (tci_mount_parents(b, cage) < 0 || !(m = tci_mounts_add(b, kind, cage)))
        return -1;
    m->text = bytes;
    m->text_length = length;
    return 0;
}

/* A path of the host that is the system's own, which only root can change. */
int tci_place_bind(struct tci_mount_build *b, const char *cage, const char *host, bool is_file,
                   uint64_t attributes)
{
    uint32_t flags = 0;
    struct tci_mount *m;
    if (tci_mount_prepare(b, cage, is_file, &flags) < 0 ||
        !(m = tci_mounts_add(b, TCI_MOUNT_BIND, cage)))
        return -1;
    m->flags = flags;
    m->text = m->host = host;
    m->text_length = strlen(host);
    m->attributes = attributes;
    return 0;
}

uint64_t tci_place_no_exec(const struct tc_plan *plan)
{
    /* With a list of programs, nothing else may be mapped as code: neither execve nor the loader. */
    return plan->spec.settings->commands.any ? 0 : MOUNT_ATTR_NOEXEC;
}

/*
 * The attack: the policy lets a tool write to /work and hides /work/keys/private. One call renames
 * /work/keys and makes another; the next call hides the wrong one. A mount point cannot be renamed:
 * so every directory on the way from a writable grant to a rule inside it becomes one, laid over
 * itself.
 */
int tci_place_pin_parents(struct tci_mount_build *b, const char *cage)
{
    const struct tci_mount *outer = tci_mount_around(b->plan, cage + 1);
    const char *slash;
    size_t from;
    if (!outer || !outer->writable)
        return 0;
    from = 1 + strlen(outer->target) + (*outer->target ? 1 : 0);
    for (slash = strchr(cage + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        char buffer[TCI_PATH_MAX + 1];
        struct tci_path_rule rule = { .access = TCI_ACCESS_WRITABLE };
        rule.cage = tci_arena_strndup(b->plan->arena, cage, (size_t)(slash - cage));
        if (!rule.cage)
            return tci_error_no_memory(b->reterr);
        if (!tci_native_host_path(b->plan, rule.cage, buffer, sizeof buffer))
            return 0;
        rule.host = tci_arena_strdup(b->plan->arena, buffer);
        if (!rule.host)
            return tci_error_no_memory(b->reterr);
        if (tci_place_grant(b, &rule) < 0)
            return -1;
    }
    return 0;
}

int tci_place_grant(struct tci_mount_build *b, const struct tci_path_rule *rule)
{
    const struct tc_plan *plan = b->plan;
    bool writable = rule->access == TCI_ACCESS_WRITABLE, is_directory;
    uint64_t device, inode;
    uint32_t flags = 0;
    struct tci_mount *m;
    int fd = tci_granted_open(&plan->writables, rule->host);
    int r = fd < 0 ? fd : tci_granted_identify(fd, &device, &inode, &is_directory);
    if (r < 0) {
        (void)tci_close(fd < 0 ? -1 : fd);
        if (r == -ENOENT && rule->optional)
            return 0; /* tci_native_is_stale looks again */
        tci_error_errno(b->reterr, -r, "the granted path %.300s", rule->host);
        tci_error_remedy(b->reterr,
                         r == -ENOSYS
                             ? "use Linux 5.6 or newer; see openat2 and statx in toolcage doctor"
                         : r == -ELOOP ? "a link lies at a place that this policy lets a tool "
                                         "write to: replace it by the directory itself"
                                       : "create it, or mark the entry with optional = true");
        return -1;
    }
    if (*rule->cage == '/' && rule->cage[1] &&
        tci_mount_prepare(b, rule->cage, !is_directory, &flags) < 0) {
        (void)tci_close(fd);
        return -1;
    }
    m = tci_mounts_add(b, plan->is_root ? TCI_MOUNT_HANDED : TCI_MOUNT_BIND, rule->cage);
    if (!m) {
        (void)tci_close(fd);
        return -1;
    }
    m->flags = flags | TCI_MOUNT_CHECKED;
    m->text = m->host = rule->host;
    m->text_length = strlen(rule->host);
    m->device = device;
    m->inode = inode;
    m->writable = writable;
    m->attributes = (writable ? TCI_LOCKED_DOWN : TCI_READ_ONLY) | tci_place_no_exec(plan);
    if (!writable && plan->spec.library && strcmp(rule->host, plan->spec.library) == 0)
        m->attributes &= ~(uint64_t)MOUNT_ATTR_NOEXEC; /* it is code */
    if (plan->is_root)
        m->source = fd; /* kept for every call */
    else
        (void)tci_close(fd);
    return 0;
}

/* An empty directory that can be passed through and not be listed, for what is granted inside it. */
static int cover(struct tci_mount_build *b, const char *cage)
{
    const bool open = tci_places_has_inside(&b->places, cage);
    if (tci_place_tmpfs(b, cage, 65536, "0111",
                        (open ? TCI_LOCKED_DOWN : TCI_READ_ONLY) | MOUNT_ATTR_NOEXEC) < 0)
        return -1;
    if (open)
        b->plan->mounts.items[b->plan->mounts.count - 1].flags |= TCI_MOUNT_SEAL;
    return 0;
}

/* Something unreadable over it. What is not there cannot be covered, and could appear later. */
int tci_place_hidden(struct tci_mount_build *b, const struct tci_path_rule *rule)
{
    const struct tci_mount *around = tci_mount_around(b->plan, rule->cage + 1);
    int found;
    if (around && !around->host) {
        /* Nothing is there, and nobody can make it except in a tmpfs that the command may write. */
        bool nobody = around->attributes & MOUNT_ATTR_RDONLY || !*around->target;
        return nobody && !tci_places_has_inside(&b->places, rule->cage) ? 0 : cover(b, rule->cage);
    }
    found = tci_mount_look(b, rule->cage);
    if (found == -ENOENT && rule->optional)
        return 0;
    if (found < 0) {
        tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED, "%.400s cannot be hidden: %s", rule->cage,
                      strerrordesc_np(-found));
        tci_error_remedy(b->reterr,
                         found == -ENOENT
                             ? "create it (what is not there cannot be covered, and could appear "
                               "while the call runs), or mark the entry with optional = true"
                             : "name the path that the link leads to");
        return -1;
    }
    if (found)
        return cover(b, rule->cage);
    /* A device that may not be opened, because of nodev. */
    return tci_place_bind(b, rule->cage, "/dev/null", true, TCI_READ_ONLY | MOUNT_ATTR_NOEXEC);
}
