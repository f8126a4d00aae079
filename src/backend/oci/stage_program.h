/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the stage program share. Freestanding: no C library, no errno; a call that
 * fails returns a negative errno. */
#ifndef TCI_BACKEND_OCI_STAGE_PROGRAM_H
#define TCI_BACKEND_OCI_STAGE_PROGRAM_H

#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include "backend/oci/stage_abi.h"
#include "base/calls.h"

/* The numbers of the C library's headers, which cannot be had together with the kernel's. */
enum {
    STAGE_AT_CWD = -100,
    STAGE_AT_EMPTY_PATH = 0x1000,
    STAGE_AT_RECURSIVE = 0x8000,
    STAGE_UMOUNT_DETACH = 2,
    STAGE_O_PATH = 010000000,
    STAGE_O_CLOEXEC = 02000000,
    STAGE_O_CREATE = 0100,
    STAGE_O_EXCLUSIVE = 0200,
    STAGE_O_WRITE = 01,
    STAGE_O_READ_WRITE = 02,
    STAGE_O_NONBLOCK = 04000,
    STAGE_TYPE_MASK = 0170000,
    STAGE_TYPE_DIRECTORY = 0040000,
    STAGE_TYPE_LINK = 0120000,
#if defined(__aarch64__)
    STAGE_O_NOFOLLOW = 0100000,
#else
    STAGE_O_NOFOLLOW = 0400000,
#endif
};

struct stage {
    const struct tci_stage_config *config; /* mapped, read-only */
    const char *id;                        /* of the container */
    long rootfs;                           /* O_PATH: the image's directory */
    long memory, upper;                    /* the stage's own file system, and the overlay's part */
    long program;                          /* the runtime; negative: only its path leads to it */
};

static inline const void *config_at(const struct stage *stage, uint32_t offset)
{
    return (const char *)stage->config + offset;
}

/* Reports that the container could not be made, and ends everything. */
_Noreturn void broken(enum tci_stage_step step, uint32_t item, long result);
/* The same if `result` is an error; otherwise its value. */
long must(enum tci_stage_step step, uint32_t item, long result);
_Noreturn void leave(void);
void send_report(const struct tci_stage_report *report);
size_t length_of(const char *text);
/* "PREFIX" and a number; `room` holds it. */
void numbered(char *room, const char *prefix, uint32_t number);

/* stage_points.c: mount points for the runtime, made in the overlay's upper directory before it is laid
 * over the image. No link of the image is followed. */
void make_points(const struct stage *stage);
/* Mounts in granted directories, after these are staged. Their mount points are what the plan saw. */
void mount_inner(const struct stage *stage);
/* stage_tree.c: everything that the runtime finds: mounts, bundle, root directory. */
void make_tree(struct stage *stage);
/* A detached file system in memory; sizes and mode are texts. */
long memory_filesystem(const char *size, const char *inodes, const char *mode, uint64_t attributes);
/* stage_view.c: what the container sees, for who brings its files back. */
void make_view(const struct stage *stage);
/* stage_runtime.c: starts the runtime, and stays until it, or the owner, has ended. */
_Noreturn void run_runtime(const struct stage *stage);

#endif
