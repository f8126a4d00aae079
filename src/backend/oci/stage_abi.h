/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the library and the stage of a bare runtime say to each other. The stage (stage*.c) is a
 * static program of its own that prepares what an OCI runtime needs, starts it and watches; both are
 * built from one tree, so nothing is versioned beyond a magic number.
 *
 * Its arguments: { "stage", ID } makes a container of that name; { "furnish" } only furnishes the network
 * namespace TCI_STAGE_FD_NETWORK, if there is a gate; { "furnish", HOW } also seals the mounts of the mount
 * namespace TCI_STAGE_FD_TREE: TCI_STAGE_FD_ROOTFS, and as many of TCI_STAGE_FD_MOUNTS as HOW has letters
 * (TCI_STAGE_SEAL_*). Descriptors have fixed numbers. The configuration is one sealed file for all cages of
 * a plan: a header, then arrays, then text, addressed by their offset in it.
 */
#ifndef TCI_BACKEND_OCI_STAGE_ABI_H
#define TCI_BACKEND_OCI_STAGE_ABI_H

#include <stdint.h>
#include "backend/sealed_abi.h"

/* TCI_STAGE_DIRECTORY (oci.h), for a program without a C library. */
#define TCI_STAGE_PLACE "/tmp"

enum {
    TCI_STAGE_MAGIC = 0x74637374,
    TCI_STAGE_WORDS_MAX = 32, /* of the runtime's command line */
    TCI_STAGE_TEXT_MAX = 3072 /* of the runtime's last words */
};

/* Descriptors; 0, 1 and 2 are not there. */
enum {
    TCI_STAGE_FD_CONFIG = 3, /* struct tci_stage_config */
    TCI_STAGE_FD_REPORT,     /* struct tci_stage_report goes here */
    TCI_STAGE_FD_OWNER,      /* pidfd of the supervisor: when it ends, so does the cage */
    TCI_STAGE_FD_CONTROL,    /* entry's end of its socket */
    TCI_STAGE_FD_GATE,       /* the gate's sockets go here; not there without one */
    TCI_STAGE_FD_ENTRY,      /* the first program, as a sealed file */
    TCI_STAGE_FD_PROGRAM,    /* a built-in tool's program; not there without one */
    TCI_STAGE_FD_GO,         /* `is_mapped`: a byte comes when the ids are mapped */
    TCI_STAGE_FD_ROOTFS,     /* the same: a detached mount of the root directory */
    TCI_STAGE_FD_MOUNTS,     /* detached mounts, made by a privileged supervisor */
    TCI_STAGE_FD_NETWORK = TCI_STAGE_FD_CONTROL, /* "furnish": the namespace */
    TCI_STAGE_FD_TREE = TCI_STAGE_FD_OWNER,      /* the same: the mount namespace */
};

/* What a letter says about its mount, as a sum added to TCI_STAGE_SEAL. What is set is so for all that is
 * mounted below, and first of all; what is taken away again only for the mount itself. */
enum {
    TCI_STAGE_SEAL = 'a',
    TCI_STAGE_SEAL_READ_ONLY = 1,
    TCI_STAGE_SEAL_NO_EXEC = 2,
    TCI_STAGE_SEAL_WRITABLE = 4,
    TCI_STAGE_SEAL_EXEC = 8,
    TCI_STAGE_TAKE_AWAY = 'z', /* instead: this directory is unmounted, with all below it */
};

enum tci_stage_mount_kind {
    TCI_STAGE_MOUNT_NONE,   /* the runtime makes it: only the mount point is ours */
    TCI_STAGE_MOUNT_BIND,   /* `host`, which must be `device` and `inode` */
    TCI_STAGE_MOUNT_HANDED, /* detached mount number `handed` */
    TCI_STAGE_MOUNT_TMPFS,  /* `size` and `mode`: texts */
    TCI_STAGE_MOUNT_FILE,   /* `text` */
};

enum {
    TCI_STAGE_IS_FILE = 1,
    TCI_STAGE_MAKE_POINT = 2, /* the mount point lies in the root directory: make it */
    TCI_STAGE_IN_ROOT =
        4, /* the stage mounts it in the root directory; the runtime takes that as it is */
};

struct tci_stage_mount {
    uint32_t kind, flags;
    uint32_t number; /* of the plan's list: its name below TCI_STAGE_MOUNTS */
    uint32_t cage;   /* path without the leading slash */
    uint32_t host, handed;
    uint32_t size, inodes, mode;  /* TMPFS: texts */
    uint32_t file_mode;           /* FILE */
    uint32_t point_mode;          /* of the mount point; 0: as the image has it */
    struct tci_sealed_array text; /* count: bytes */
    uint32_t within;     /* the stage mounts it in that one: its index + 1; 0: it does not */
    uint64_t attributes; /* MOUNT_ATTR_* */
    uint64_t device, inode;
    uint64_t over_device, over_inode; /* of its mount point; 0: in memory */
};

struct tci_stage_config {
    uint32_t magic, size;
    uint32_t is_user;       /* in a user namespace of its own */
    uint32_t is_mapped;     /* the same, and root maps its ids from outside */
    uint32_t control_at;    /* the runtime's descriptor for entry's socket: 0 or 3 */
    uint32_t rootfs;        /* path */
    uint32_t memory_size;   /* text: of the stage's own file system */
    uint32_t memory_inodes; /* text: how many files it holds */
    uint32_t upper_size;    /* text: of what is written to the root directory; "0": no limit */
    uint32_t upper_inodes;  /* the same, in files */
    uint64_t rootfs_device, rootfs_inode;
    struct tci_sealed_array mounts; /* struct tci_stage_mount, parents first */
    struct tci_sealed_array points; /* uint32_t: more directories to make, without leading slash */
    struct tci_sealed_array words;  /* uint32_t: the runtime's command line; the id comes behind */
    struct tci_sealed_array bundle; /* config.json; count: bytes */
    uint32_t program;               /* path of the runtime */
    uint32_t seal_root;             /* the root directory becomes read-only here */
    uint32_t has_view;              /* TCI_STAGE_VIEW is wanted */
    uint32_t has_program;           /* TCI_STAGE_FD_PROGRAM is there */
    uint32_t upper_owner;           /* whose "/" is, where the command may write to it; 0: ours */
    struct tci_sealed_gate gate;
};

enum tci_stage_end {
    TCI_STAGE_BROKEN = 1, /* `status`: errno, `step` and `item`: which */
    TCI_STAGE_ENDED = 2, /* the runtime ended; `status` as wait(2) gives it, `text`: what it said */
    TCI_STAGE_FURNISHED = 3,
};

/* One write, smaller than PIPE_BUF: it arrives whole or not at all. */
struct tci_stage_report {
    uint32_t magic, end;
    int32_t status;
    uint32_t step, item, text_length;
    char text[TCI_STAGE_TEXT_MAX];
};

/* X(id, what failed) */
#define TCI_STAGE_STEPS(X)                                                                         \
    X(CONFIG, "reading its configuration")                                                         \
    X(GO, "becoming the user of the container")                                                    \
    X(PRIVATE, "leaving the host's mounts")                                                        \
    X(CGROUP, "hiding the host's control groups")                                                  \
    X(PROC, "mounting /proc")                                                                      \
    X(ROOTFS, "opening the root directory")                                                        \
    X(ROOTFS_CHANGED, "the root directory was exchanged since it was checked")                     \
    X(SOURCE, "opening a granted path")                                                            \
    X(SOURCE_CHANGED, "a granted path was exchanged since it was checked")                         \
    X(ATTRIBUTES, "setting the attributes of a granted path")                                      \
    X(MEMORY, "making a file system in memory")                                                    \
    X(FILES, "writing the bundle")                                                                 \
    X(OVERLAY, "laying memory over the root directory")                                            \
    X(POINT, "making a mount point in the root directory")                                         \
    X(PLACE, "looking for a mount point in a granted path")                                        \
    X(ATTACH, "mounting a granted path")                                                           \
    X(VIEW, "mounting what the container sees once more")                                          \
    X(NETWORK, "entering the container's network namespace")                                       \
    X(GATE, "furnishing the network for its gate")                                                 \
    X(START, "starting the runtime")                                                               \
    X(WATCH, "watching the runtime")                                                               \
    X(TREE, "entering the container's mount namespace")                                            \
    X(SEAL, "sealing what is mounted in the container")

enum tci_stage_step {
#define X(id, text) TCI_STAGE_STEP_##id,
    TCI_STAGE_STEPS(X)
#undef X
};

#endif
