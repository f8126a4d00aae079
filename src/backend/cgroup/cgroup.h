/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: control groups: where they can be made, one per cage, what the kernel counted in them, and
 * their end. Version 2 first, version 1 and hybrid hosts as well. Touches only groups of its own
 * making, whose names carry their owner, so that the next run collects what a killed one left.
 *
 * How a cage uses it:
 *   tci_cgroup_make()      before the child is made;
 *   clone3() with CLONE_INTO_CGROUP and `into`, if there is one; the child then writes "0" to
 *                          enter[enter_after_clone] and the rest, before it does anything else. A
 *                          child that was made in another way writes to all of `enter`;
 *   tci_cgroup_entered()   in the parent, when the child is in: closes what is no longer needed;
 *   poll() on `events`     for `events_mask` and nothing else (the file of version 2 is always
 *                          readable). When it fires, tci_cgroup_look() says whether the kernel killed
 *                          for memory;
 *   tci_cgroup_kill()      when the cage must end;
 *   tci_cgroup_usage()     when the tree has ended. Only a group whose counters were read is
 *                          used again for another cage;
 *   tci_cgroup_free()      last.
 */
#ifndef TCI_BACKEND_CGROUP_H
#define TCI_BACKEND_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum { TCI_CGROUP_ENTER_MAX = 6, TCI_CGROUP_NAME_MAX = 128 };

/* Bits. */
enum {
    TCI_CGROUP_HAS_MEMORY = 1,
    TCI_CGROUP_HAS_PIDS = 2,
    TCI_CGROUP_HAS_CPU = 4,       /* a share of the processors */
    TCI_CGROUP_HAS_CPU_USAGE = 8, /* processor time is measured */
};

/* Where groups of this process can be made. Found out by looking and trying, without a fork; used
 * by many threads. */
struct tci_cgroups;

/* Always succeeds unless memory runs out: a host without usable groups has none. Collects what
 * processes that are gone have left. On version 2 this may move the calling process: into a leaf
 * of a group that was handed over to it alone, or, where nothing is writable and systemd runs, into
 * a scope of its own. Takes some 10 ms then, well under 1 ms otherwise. */
int tci_cgroups_open(struct tci_cgroups **ret, struct tc_error *reterr);
/* Every group must be freed before. NULL is allowed. */
void tci_cgroups_free(struct tci_cgroups *groups);
unsigned tci_cgroups_has(const struct tci_cgroups *groups);
/* "v2", "v1", "hybrid", "none": what is there, usable or not. */
const char *tci_cgroups_kind(const struct tci_cgroups *groups);

struct tci_cgroup_limits {
    uint64_t memory; /* bytes; TCI_UNLIMITED (UINT64_MAX): no limit, but measured if possible */
    uint64_t pids;
    uint64_t cpu; /* thousandths of a core */
};

struct tci_cgroup {
    int into;                        /* for CLONE_INTO_CGROUP; -1: none (version 1) */
    int enter[TCI_CGROUP_ENTER_MAX]; /* the child writes "0" to each of these, first of all, and
                                        while it has one thread: version 1's `tasks` moves a thread */
    unsigned enter_count;
    unsigned enter_after_clone; /* a child that was cloned into `into` begins here */
    int events; /* poll()ed for `events_mask`; fires when memory ran out; -1: none */
    short events_mask;
    /* private to cgroup*.c */
    struct tci_cgroups *groups;
    char name[TCI_CGROUP_NAME_MAX];
    void *state;
};

/* Makes the group(s) of one cage with its limits. `sandbox_id` becomes part of the name and must be
 * unique. A limit that cannot be set is an error; one that the host has no means for, as well. */
int tci_cgroup_make(struct tci_cgroups *groups, const char *sandbox_id,
                    const struct tci_cgroup_limits *limits, struct tci_cgroup **ret,
                    struct tc_error *reterr);

/* Closes `into` and `enter`, which a long call does not need any more. Optional. */
void tci_cgroup_entered(struct tci_cgroup *group);

struct tci_cgroup_usage {
    uint64_t memory_peak;  /* bytes; 0: not known */
    uint64_t cpu_us;       /* 0: not known */
    uint64_t pids_peak;    /* 0: not known */
    uint64_t oom_kills;    /* processes that the kernel killed for their memory */
    uint64_t pids_refused; /* forks that the limit refused */
    bool memory_reached;   /* with oom_kills: it was this group's own limit. Without this it was a
                              group above, or the host, that had no memory left */
};

/* What the kernel counted so far; after the end of the tree, in all. */
int tci_cgroup_usage(const struct tci_cgroup *group, struct tci_cgroup_usage *ret,
                     struct tc_error *reterr);
/* Processor time alone, for frequent looks; 0 when it is not known. */
uint64_t tci_cgroup_cpu_us(const struct tci_cgroup *group);
/* After `events` fired: makes it ready for the next time, and returns how many processes the kernel
 * has killed for their memory. Version 1 fires a moment before the kill: with 0, look again a few
 * milliseconds later. Version 2 kills the whole group then, version 1 one process: the caller ends
 * the rest. */
uint64_t tci_cgroup_look(const struct tci_cgroup *group);
/* Every process in it, at once; again until none is left or `deadline_ms` have passed. */
void tci_cgroup_kill(const struct tci_cgroup *group, int deadline_ms);
/* Removes the directories (the tree has ended) and frees. NULL is allowed. Named so because
 * tci_cgroup_remove() is the probe's. */
void tci_cgroup_free(struct tci_cgroup *group);

#endif
