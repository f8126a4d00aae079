/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of reach share. */
#ifndef TCI_POLICY_REACH_INTERNAL_H
#define TCI_POLICY_REACH_INTERNAL_H

#include <sys/types.h>
#include "base/mount_table.h"
#include "policy/reach.h"

enum { TCI_REACH_DEPTH_MAX = 256, TCI_REACH_LAYERS_MAX = 4 };

/* Something that a cage can write. */
struct tci_reach_source {
    struct tci_mount_origin origin;
    const struct tci_mounted *below; /* a mount below the host path; NULL: the host path itself */
    const char *host;                /* of the rule */
};

/* The host path of a rule, as an inode. */
struct tci_reach_top {
    dev_t device;
    ino_t inode;
    const char *host;
};

/* The directories from the root down to the place, which is the last. */
struct tci_reach_chain {
    struct {
        dev_t device;
        ino_t inode;
    } items[TCI_REACH_DEPTH_MAX];
    int count;
    bool is_linked; /* it has other names */
};

struct tci_reach {
    struct tci_arena *arena;
    struct tci_mount_table mounts;
    const char **hosts; /* the paths that are granted for writing; some may be equal */
    size_t host_count;
    struct tci_reach_source *sources;
    size_t source_count, source_room;
    struct tci_reach_top *tops;
    size_t top_count;
    const struct tci_mounted
        *bare; /* an overlay of which no layer is here: not to be looked for again */
    enum tci_reached
        unknown; /* other than not: some of it is not known, and every place is reached */
    struct tci_reach_chain chain;
};

enum tci_reach_layer { TCI_LAYER_UPPER, TCI_LAYER_LOWER, TCI_LAYER_WORK };

/* A layer of the overlay `mount`: its directory, behind all links. A result other than 0 ends the visit. */
typedef int tci_reach_layer_visitor(void *context, enum tci_reach_layer kind, const char *path);
/* What `visit` says last; -1: there is no memory, or a layer cannot be known. */
int tci_reach_each_layer(struct tci_reach *reach, const struct tci_mounted *mount,
                         tci_reach_layer_visitor *visit, void *context) tci_must_check;

/* reach_sources.c: fills all but the chain. */
int tci_reach_collect(struct tci_reach *reach) tci_must_check;

#endif
