/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the library and the cage's init say to each other. Init (init*.c) is a program of its
 * own, without a C library; both are built from the same tree, so nothing here is versioned beyond a
 * magic number.
 *
 * Init's arguments: argv[0] holds flags as letters, argv[1] and on are the command; its environment
 * is the command's. Descriptors have fixed numbers. The configuration is one sealed file: a header,
 * then arrays, then text, all addressed by their offset in the file.
 */
#ifndef TCI_BACKEND_NATIVE_INIT_ABI_H
#define TCI_BACKEND_NATIVE_INIT_ABI_H

#include <linux/filter.h>
#include <stdint.h>
#include "backend/sealed_abi.h"

enum {
    TCI_INIT_MAGIC = 0x746f6f6c,
    TCI_INIT_LIMITS_MAX = 12,
    TCI_INIT_CPU_WORDS = 16, /* 1024 processors */
    TCI_INIT_ID = 1000,      /* the user and the group that the command sees itself as */
};

/* Descriptors of init besides 0, 1 and 2. None of them reaches the command. */
enum {
    TCI_INIT_FD_CONFIG = 3,  /* struct tci_init_config */
    TCI_INIT_FD_REPORT = 4,  /* struct tci_init_report goes here */
    TCI_INIT_FD_OWNER = 5,   /* pidfd of the supervisor: when it ends, so does the cage */
    TCI_INIT_FD_GO = 6,      /* flags 'g', 'w' and 'h': a byte for each, in this order */
    TCI_INIT_FD_GATE = 7,    /* the gate's sockets go here; not there without one */
    TCI_INIT_FD_START = 8,   /* flag 'f': the line to the process that runs the function */
    TCI_INIT_FD_PROGRAM = 8, /* flag 'p': the command's program; not there without it */
    TCI_INIT_FD_MOUNTS = 9,  /* detached mounts, made by a privileged supervisor */
    TCI_INIT_FD_RULESET = TCI_INIT_FD_MOUNTS, /* not a jail: its Landlock rules */
};

/* Letters in argv[0]. */
#define TCI_INIT_FLAG_JAIL     'j' /* pid 1 of new namespaces: its end is the end of the tree */
#define TCI_INIT_FLAG_MAPPED   'g' /* the supervisor writes the id maps: wait for it */
#define TCI_INIT_FLAG_TERMINAL 't' /* stdin becomes the controlling terminal */
#define TCI_INIT_FLAG_TRACED   'w' /* wait for a tracer before the command starts */
#define TCI_INIT_FLAG_HOLD     'h' /* after the last report, wait: files are brought out */
#define TCI_INIT_FLAG_FOREIGN                                                                      \
    'f' /* a function of the host runs: digits behind it are its process */
#define TCI_INIT_FLAG_PROGRAM 'p' /* the program is a descriptor: argv[1] is only its name */

enum tci_init_mount_kind {
    TCI_MOUNT_DIRECTORY = 1, /* made on a file system of the cage's own */
    TCI_MOUNT_FILE,          /* the same, with `text` in it */
    TCI_MOUNT_LINK,          /* the same, to `text` */
    TCI_MOUNT_BIND,          /* `text` is a path of the host */
    TCI_MOUNT_HANDED,        /* the detached mount number `handed` */
    TCI_MOUNT_TMPFS,         /* `text` holds its options, "size=...,mode=..." split by NULs */
    TCI_MOUNT_PROC,
};

enum {
    TCI_MOUNT_MAKE = 1,    /* the mount point lies on a file system of ours: make it */
    TCI_MOUNT_IS_FILE = 2, /* source and mount point are no directories */
    TCI_MOUNT_CHECKED = 4, /* source must be `device`, `inode`: what was checked is mounted */
    TCI_MOUNT_SEAL = 8,    /* becomes read-only when all mount points inside it are made */
};

struct tci_init_mount {
    uint32_t kind, flags;
    uint32_t target; /* offset of its path without the leading slash; "" is the root itself */
    uint32_t text, text_length;
    uint32_t handed;
    uint64_t attributes; /* MOUNT_ATTR_*, set on the whole tree */
    uint64_t device, inode;
};

/* A Landlock rule: what may be done beneath a path of the finished cage. */
struct tci_init_rule {
    uint32_t path, flags; /* TCI_MOUNT_CHECKED */
    uint64_t rights;
    uint64_t device, inode;
};

struct tci_init_limit {
    uint32_t resource, unused;
    uint64_t value;
};

struct tci_init_config {
    uint32_t magic, size;
    struct tci_sealed_array mounts; /* struct tci_init_mount, parents first; jail only */
    struct tci_sealed_array rules;  /* struct tci_init_rule; jail only */
    struct tci_sealed_array filter; /* struct sock_filter */
    uint32_t uid_map, gid_map;      /* text; jail without MAPPED */
    uint32_t directory;             /* where the command starts */
    uint32_t limit_count, pinned;
    uint32_t loopback, time;                  /* bring lo up; make a time namespace */
    uint64_t handled_fs, handled_net, scoped; /* Landlock; all 0: none */
    uint32_t landlock_size, unused; /* of struct landlock_ruleset_attr that the kernel knows */
    struct tci_init_limit limits[TCI_INIT_LIMITS_MAX];
    uint64_t processors[TCI_INIT_CPU_WORDS];
    struct tci_sealed_gate gate;
};

enum tci_init_end {
    TCI_INIT_ENDED = 1,       /* `status` as wait4() gives it */
    TCI_INIT_NOT_STARTED = 2, /* `status`: errno of execve */
    TCI_INIT_BROKEN = 3,      /* `status`: errno, `step`: which, `item`: which of a list */
    TCI_INIT_STARTED = 4,     /* without a pid namespace: `status` is the command's process group */
};

/* One write, smaller than PIPE_BUF: it arrives whole or not at all. The first one counts. */
struct tci_init_report {
    uint32_t magic;
    uint32_t end; /* enum tci_init_end */
    int32_t status;
    uint32_t step; /* enum tci_init_step */
    uint32_t item, unused;
    uint64_t cpu_us, memory_peak, bytes_written;
};

/* X(id, what failed): for messages. */
#define TCI_INIT_STEPS(X)                                                                          \
    X(CONFIG, "reading the cage's configuration")                                                  \
    X(GO, "waiting for the supervisor")                                                            \
    X(ID_MAP, "mapping the user of the cage")                                                      \
    X(IDENTITY, "becoming the user of the cage")                                                   \
    X(NAMESPACES, "making namespaces")                                                             \
    X(HOST_NAME, "naming the cage")                                                                \
    X(LOOPBACK, "bringing up the loopback device")                                                 \
    X(GATE, "furnishing the network for its gate")                                                 \
    X(ROOT, "making the root directory")                                                           \
    X(MOUNT_POINT, "making a mount point")                                                         \
    X(MOUNT_SOURCE, "opening a path of the host")                                                  \
    X(MOUNT_CHANGED, "a path of the host was exchanged since it was checked")                      \
    X(MOUNT, "mounting")                                                                           \
    X(ATTRIBUTES, "setting attributes of a mount")                                                 \
    X(PIVOT, "leaving the host's root directory")                                                  \
    X(DIRECTORY, "going to the working directory")                                                 \
    X(RULESET, "making Landlock rules")                                                            \
    X(CAPABILITIES, "dropping capabilities")                                                       \
    X(NO_NEW_PRIVILEGES, "giving up new privileges")                                               \
    X(HIDE, "hiding init")                                                                         \
    X(SIGNALS, "taking signals")                                                                   \
    X(SUBREAPER, "becoming the parent of orphans")                                                 \
    X(FORK, "starting a process")                                                                  \
    X(GROUP, "making a session")                                                                   \
    X(TERMINAL, "taking the terminal")                                                             \
    X(LIMITS, "setting limits")                                                                    \
    X(PROCESSORS, "choosing processors")                                                           \
    X(LANDLOCK, "applying Landlock")                                                               \
    X(DESCRIPTORS, "closing descriptors")                                                          \
    X(FILTER, "installing the system call filter")

enum tci_init_step {
#define X(id, text) TCI_INIT_STEP_##id,
    TCI_INIT_STEPS(X)
#undef X
        TCI_INIT_STEP_COUNT
};

#endif
