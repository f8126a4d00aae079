/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading /proc/self/mountinfo, the kernel's list of what is mounted where. */
#ifndef TCI_BASE_MOUNTINFO_H
#define TCI_BASE_MOUNTINFO_H

#include <stdbool.h>
#include <stdint.h>

struct tci_mounted {
    uint64_t id;           /* as statx has it */
    unsigned major, minor; /* of the file system */
    const char *root;      /* the directory of the file system that is seen there */
    const char *point;     /* where it is mounted */
    bool read_only;        /* this mount; others of the file system need not be */
    const char *type;      /* of the file system; "": unknown */
    const char *options;   /* of the file system, separated by commas, still escaped */
};

/* Calls `visit` for each, in the order in which they were mounted; a result other than 0 ends it and is
 * returned. Lines that make no sense are left out. -1 with errno: the list cannot be read. */
int tci_mountinfo_each(int (*visit)(void *context, const struct tci_mounted *mount), void *context);
/* The same from another such file: /proc/PID/mountinfo, whose places are those that PID sees. */
int tci_mountinfo_each_in(const char *path,
                          int (*visit)(void *context, const struct tci_mounted *mount),
                          void *context);

/* "\040" and its kin, as the kernel writes blanks there; in place. No call of the C library: also for
 * children that may not make one. */
void tci_mountinfo_unescape(char *text);

#endif
