/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the library's side of the stage: its configuration, its start, what went wrong in it. */
#ifndef TCI_BACKEND_OCI_STAGE_H
#define TCI_BACKEND_OCI_STAGE_H

#include "backend/oci/oci.h"
#include "backend/oci/stage_abi.h"

enum { TCI_STAGE_HANDED_MAX = 256 };

/* Once for each plan. */
struct tci_stage {
    int program, config;    /* sealed files */
    int entry, brought;     /* the same; brought: -1 without a built-in program */
    struct tci_idmap idmap; /* root's stage in a user namespace: the image as its user's */
    char uid_map[32], gid_map[32];
};

/* One child. Descriptors stay the caller's. */
struct tci_stage_spawn {
    const struct tci_stage *stage;
    const struct tci_cgroup *cgroup; /* entered first of all; or NULL */
    unsigned long namespaces;        /* CLONE_NEW* */
    const char *argv[3];
    int report, owner, control, gate;
    int go, rootfs;    /* with `is_mapped` (stage_abi.h); -1 otherwise */
    bool keeps_rights; /* the same */
    const int *mounts;
    size_t mount_count;
    int pid, pidfd;                /* set on success */
    int failed_step, failed_errno; /* set by the child, whose memory is ours */
};

/* driver_bare_config.c: the sealed configuration of a plan's cages; or of a gate alone. */
int tci_stage_config(const struct tci_oci_plan *plan, bool only_gate, struct tc_error *reterr);
/* MOUNT_ATTR_* of a granted path: never setuid, never a device. */
uint64_t tci_stage_attributes(const struct tci_oci_mount *mount);
/* driver_bare_start.c: a cage's stage, with everything that it is given. `report` and `control` are its ends,
 * and stay the caller's. */
int tci_stage_start(struct tci_oci_cage *cage, int report, int control, int *ret_pid,
                    int *ret_pidfd, struct tc_error *reterr);
/* driver_bare_spawn.c: starts the program. Never copies this process. */
int tci_stage_spawn(struct tci_stage_spawn *spawn, struct tc_error *reterr);
/* driver_bare_report.c: says what a report means; `plan` as in the configuration. */
void tci_stage_explain(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                       struct tc_error *reterr);

/* What of a running container is sealed: handles in its mount namespace, which stay the caller's. Device
 * nodes and setuid programs lose their effect in all of them. `root` alone, and not what is mounted below
 * it: /dev keeps its nodes. */
struct tci_stage_seal {
    int root;
    const int *mounts; /* each with all below it */
    const char *how;   /* a letter for each: stage_abi.h */
};

/*
 * driver_bare_furnish.c: for engines. Furnishes the network namespace of a running container for its gate,
 * if the plan has one, and seals its mounts (NULL: not), from a process of ours that joins its namespaces
 * and ends. `pid`: the container's first process, on the host; `gate_inside` stays the caller's. Takes a
 * few milliseconds.
 */
int tci_stage_furnish(int pid, const struct tci_oci_plan *plan, int gate_inside,
                      const struct tci_stage_seal *seal, struct tc_error *reterr);

/* stage_blob.c: made by the build. */
extern const unsigned char tci_stage_blob[];
extern const unsigned long tci_stage_blob_size;

#endif
