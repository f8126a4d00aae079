/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files that compile a jail's root directory share: mounts.c (which places there are),
 * mount_points.c (where a mount can go), mount_places.c (what the policy grants and hides),
 * mount_system.c (what every cage has). */
#ifndef TCI_BACKEND_NATIVE_MOUNTS_H
#define TCI_BACKEND_NATIVE_MOUNTS_H

#include <linux/mount.h>
#include "backend/native/native.h"
#include "backend/places.h"

#define TCI_LOCKED_DOWN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define TCI_READ_ONLY   (TCI_LOCKED_DOWN | MOUNT_ATTR_RDONLY)

struct tci_mount_build {
    struct tc_plan *plan;
    struct tc_error *reterr;
    struct tci_places places;
};

/* ---- mount_points.c ------------------------------------------------------------------------------- */

/* One more item; `cage` outlives the plan. NULL: no memory. */
struct tci_mount *tci_mounts_add(struct tci_mount_build *b, enum tci_init_mount_kind kind,
                                 const char *cage);
/* The mount that `path` (without its first slash) would lie on, so far. */
const struct tci_mount *tci_mount_around(const struct tc_plan *plan, const char *path);
/* Directories on the way to `cage`, on a file system of ours. */
int tci_mount_parents(struct tci_mount_build *b, const char *cage);
/* Is there something at `cage` in the directory of the host that it lies in? 1: a directory, 0: a
 * file, negative errno. No link is followed: that is how it will be opened. */
int tci_mount_look(const struct tci_mount_build *b, const char *cage);
/* Prepares the mount point of `cage`: on a file system of ours it will be made, in a directory of the
 * host it must be there, and of the same kind. */
int tci_mount_prepare(struct tci_mount_build *b, const char *cage, bool is_file, uint32_t *flags);

/* ---- mount_places.c ------------------------------------------------------------------------------- */

int tci_place_tmpfs_options(struct tci_mount_build *b, struct tci_mount *m, uint64_t size,
                            uint64_t inodes, const char *mode);
int tci_place_tmpfs(struct tci_mount_build *b, const char *cage, uint64_t size, const char *mode,
                    uint64_t attributes);
int tci_place_bytes(struct tci_mount_build *b, enum tci_init_mount_kind kind, const char *cage,
                    const char *bytes, size_t length);
int tci_place_bind(struct tci_mount_build *b, const char *cage, const char *host, bool is_file,
                   uint64_t attributes);
uint64_t tci_place_no_exec(const struct tc_plan *plan);
int tci_place_grant(struct tci_mount_build *b, const struct tci_path_rule *rule);
int tci_place_pin_parents(struct tci_mount_build *b, const char *cage);
int tci_place_hidden(struct tci_mount_build *b, const struct tci_path_rule *rule);

/* ---- mount_system.c ------------------------------------------------------------------------------- */

int tci_place_own(struct tci_mount_build *b, const struct tci_cage_path *own);

#endif
