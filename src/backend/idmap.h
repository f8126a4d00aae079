/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: files of root as files of a cage's user, for cages that root starts. */
#ifndef TCI_BACKEND_IDMAP_H
#define TCI_BACKEND_IDMAP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"

/* The user on the host as whom a cage's command runs when root started it: outside of every range
 * that distributions hand out (system users, subuid, systemd's containers). */
#define TCI_JAIL_HOST_ID 2000000000U

struct tci_idmap {
    int fd;    /* a user namespace; -1: none */
    int child; /* pidfd of a dead child of ours, not collected yet; -1: none */
};

/* A user namespace through which files of root appear as TCI_JAIL_HOST_ID's. `arena` outlives it. */
int tci_idmap_open(struct tci_arena *arena, struct tci_idmap *ret, struct tc_error *reterr);
void tci_idmap_close(struct tci_idmap *map);
/* uid_map or gid_map of a process in a new user namespace. */
int tci_write_id_map(int pid, const char *file, const char *text, struct tc_error *reterr);

struct tci_detach {
    int source;          /* O_PATH */
    uint64_t attributes; /* MOUNT_ATTR_* */
    bool writable;
    const char *host; /* for messages */
};
/* A copy of the mount, attached nowhere, with its attributes and owners; or -1. */
int tci_mount_detach(const struct tci_detach *what, const struct tci_idmap *map,
                     struct tc_error *reterr);

#endif
