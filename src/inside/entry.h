/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of entry share. Freestanding: no C library, no errno; a call that fails returns a
 * negative errno. */
#ifndef TCI_INSIDE_ENTRY_H
#define TCI_INSIDE_ENTRY_H

#include <linux/errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/calls.h"
#include "inside/entry_abi.h"

enum {
    ENTRY_STREAMS = 3,
    ENTRY_DESCRIPTORS_MAX = ENTRY_STREAMS + TCI_ENTRY_GROUPS_MAX,
    ENTRY_O_CLOEXEC = 02000000,
    ENTRY_FILTER_MAX = 4096, /* BPF_MAXINSNS */
    ENTRY_RESOURCES = 16,    /* RLIM_NLIMITS */
    ENTRY_CLOEXEC_MESSAGE = 0x40000000,
};

/* struct msghdr and struct cmsghdr as the kernel has them, with room for the descriptors of a call or
 * for a handle and credentials. */
struct entry_iovec {
    void *base;
    size_t length;
};

struct entry_msghdr {
    void *name;
    int name_length;
    struct entry_iovec *vectors;
    size_t vector_count;
    void *control;
    size_t control_length;
    unsigned flags;
};

struct entry_cmsghdr {
    size_t length;
    int level, type;
};

/* One call, read and checked. */
struct entry_call {
    uint32_t flags;
    int streams[ENTRY_DESCRIPTORS_MAX]; /* and behind them files of control groups */
    uint32_t group_count;
    const struct tci_entry_limit *limits;
    uint32_t limit_count;
    struct sock_filter *filter;
    uint32_t filter_count;
    const char *directory;
    const char *brought;             /* a built-in tool's program */
    char **places;                   /* ends with NULL */
    char **environment, **arguments; /* each ends with NULL */
};

/* Written by the command's process, which shares our memory until its program starts. */
struct entry_failure {
    enum tci_entry_kind kind; /* 0: none */
    enum tci_entry_step step;
    long result;
};

/* entry_message.c: false, and *ret_error: it is not one that we take (0: the supervisor is gone). */
bool entry_read(int control, struct entry_call *ret, long *ret_error);
/* entry_command.c: in the command's process. Does not return; failing, says why in *failure. */
_Noreturn void entry_become(const struct entry_call *call, struct entry_failure *failure);
/* entry.c */
_Noreturn void entry_leave(int status);

#endif
