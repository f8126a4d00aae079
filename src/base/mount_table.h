/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a copy of the list of mounts, for questions that need it more than once, and where in its file system
 * something is, whatever mounts lead to it. One directory has one such origin, and many paths.
 */
#ifndef TCI_BASE_MOUNT_TABLE_H
#define TCI_BASE_MOUNT_TABLE_H

#include <stddef.h>
#include "base/arena.h"
#include "base/mountinfo.h"

struct tci_mount_table {
    struct tci_mounted *items; /* in the order in which they were mounted */
    size_t count;
};

struct tci_mount_origin {
    const struct tci_mounted *mount; /* that the path went through */
    const char *path;                /* in the file system; "/" is its own root */
};

/* -1: it cannot be read, or there is no memory. All of it is in the arena. */
int tci_mount_table_read(struct tci_mount_table *ret, struct tci_arena *arena) tci_must_check;

/* `path` is absolute and has no links. By the kernel's word, or by the text of the path where it may not be
 * looked at. -1: it cannot be known, or there is no memory. */
int tci_mount_table_locate(const struct tci_mount_table *table, const char *path,
                           struct tci_arena *arena, struct tci_mount_origin *ret) tci_must_check;

/* Does the path of its point lead to it, or to something that was mounted over it? When it cannot be known:
 * yes. */
bool tci_mount_is_seen(const struct tci_mounted *mount);

/* The same file system. By what the list of mounts says of it: st_dev is another one for each subvolume of
 * btrfs, and for files of an overlay. */
bool tci_mounts_are_same(const struct tci_mounted *a, const struct tci_mounted *b);

#endif
