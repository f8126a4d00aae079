/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of control groups share; nobody else includes this, except tests.
 *
 * Everything is relative to the descriptor of a directory, the base: a group is a name in it, its
 * files are "NAME/FILE". So no path is walked twice, and tests can use a directory of their own.
 */
#ifndef TCI_BACKEND_CGROUP_INTERNAL_H
#define TCI_BACKEND_CGROUP_INTERNAL_H

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>
#include "backend/cgroup/cgroup.h"

enum {
    TCI_CGROUP_LIMITS = TCI_CGROUP_HAS_MEMORY | TCI_CGROUP_HAS_PIDS | TCI_CGROUP_HAS_CPU,
    TCI_CGROUP_HIERARCHIES_MAX = 5,
    TCI_CGROUP_LEFT_MAX = 16,
    TCI_CGROUP_POOL_MAX = 8,
    TCI_CGROUP_REMOVE_MS = 2000,
    TCI_CGROUP_ID_MAX = 40,
};

struct tci_cgroup_hierarchy {
    int base;             /* groups are made in this directory */
    bool v2;              /* at most one has this, and it is the first */
    unsigned controllers; /* TCI_CGROUP_HAS_*: what a group here can do for us */
    bool oom_waits;       /* version 1: the base lets processes wait for memory and kills none */
};

/* Who made a group. Process ids and start times mean something in their namespaces only. */
struct tci_cgroup_owner {
    unsigned pid_namespace, time_namespace;
    pid_t pid;
    uint64_t started; /* clock ticks since boot */
};

/* A directory that would not go away: tried again with every group that is removed. */
struct tci_cgroup_left {
    unsigned hierarchy;
    char name[TCI_CGROUP_NAME_MAX];
};

struct tci_cgroups {
    struct tci_cgroup_hierarchy hierarchies[TCI_CGROUP_HIERARCHIES_MAX];
    unsigned count;
    unsigned has;
    const char *kind;
    pthread_mutex_t lock; /* for what follows */
    struct tci_cgroup_owner owner;
    struct tci_cgroup_left left[TCI_CGROUP_LEFT_MAX];
    unsigned left_count;
    struct tci_cgroup *pool[TCI_CGROUP_POOL_MAX]; /* oldest first */
    unsigned pool_count;
};

/* What struct tci_cgroup keeps to itself. */
struct tci_cgroup_state {
    struct tci_cgroup_limits limits;
    unsigned made;    /* bits: hierarchies in which the directory exists */
    bool killed;      /* it is not used again */
    bool pids_closed; /* the kill took away the right to fork: what is refused since then ... */
    uint64_t pids_refused; /* ... is not the cage's doing, so this was read before */
    uint64_t cpu_before;   /* what earlier cages used in the same group */
    bool counted;          /* somebody has read the counters; they said: */
    struct tci_cgroup_usage last;
};

/* ---- one cage: cgroup.c -------------------------------------------------------------------- */

/* Makes the directory in one hierarchy and sets its limits. */
int tci_cgroup_make_in(struct tci_cgroup *group, unsigned index, struct tc_error *reterr);
/* Opens what the child needs to come in. 0 or an errno. */
int tci_cgroup_open_entries(struct tci_cgroup *group);
/* Removes all directories and frees. */
void tci_cgroup_destroy(struct tci_cgroup *group);

/* ---- groups that are used again: cgroup_pool.c --------------------------------------------- */

/* A group that was made with these limits, or NULL. The caller holds the lock. */
struct tci_cgroup *tci_cgroup_pool_take(struct tci_cgroups *groups,
                                        const struct tci_cgroup_limits *limits);
/* Makes it as good as new. Negative: it is not. */
int tci_cgroup_pool_refresh(struct tci_cgroup *group);
/* False: it cannot be used again, and stays the caller's. */
bool tci_cgroup_pool_put(struct tci_cgroup *group);
/* Removes them all, without the lock. `forget`: only forgets them, with the lock; they belong to
 * the process that forked us. */
void tci_cgroup_pool_clear(struct tci_cgroups *groups, bool forget);

/* ---- files: cgroup_file.c ------------------------------------------------------------------ */

/* These are about BASE/NAME/FILE. 0 or an errno. */
int tci_cgroup_open_file(int base, const char *name, const char *file, int flags, int *ret);
int tci_cgroup_write(int base, const char *name, const char *file, const char *text);
/* Text that is longer than the buffer is cut. */
int tci_cgroup_read(int base, const char *name, const char *file, char *buffer, size_t size);
/* Writes, and reads back what the kernel made of it: ERANGE if that is something else. */
int tci_cgroup_set(int base, const char *name, const char *file, const char *text);
/* A file that is one number; "max" is UINT64_MAX. 0 when it is not there. */
uint64_t tci_cgroup_number(int base, const char *name, const char *file);
/* The number behind `key` in lines of "KEY NUMBER"; 0 when there is none. */
uint64_t tci_cgroup_field(const char *text, const char *key);
int64_t tci_cgroup_now_ms(void);

/* ---- where: cgroup_place.c ----------------------------------------------------------------- */

/* Fills hierarchies, has and kind. */
void tci_cgroups_place(struct tci_cgroups *groups);
/* Our own group in version 2. */
struct tci_cgroup_own {
    int directory;
    const char *path;
    unsigned depth; /* below the top of what can be seen */
    bool given;     /* systemd has just made it for us */
};

/* Version 2: the directory in which groups can be made that have (some of) the controllers
 * `wanted`, and which they have. Returns the descriptor of our own group or a new one; -1: none. */
int tci_cgroup_choose(const struct tci_cgroup_own *own, unsigned wanted,
                      const struct tci_cgroup_owner *owner, unsigned *ret_controllers);

/* ---- limits: cgroup_limits.c --------------------------------------------------------------- */

/* Sets what this hierarchy can limit in a new group. */
int tci_cgroup_set_limits(const struct tci_cgroup_hierarchy *h, const char *name,
                          const struct tci_cgroup_limits *limits, struct tc_error *reterr);
/* Can memory be swapped out without being counted? `directory` is any group but the topmost. */
bool tci_cgroup_swap_escapes(int base, const char *name);

/* ---- counters: cgroup_usage.c -------------------------------------------------------------- */

/* Adds what this hierarchy knows. 0 or an errno. */
int tci_cgroup_count(const struct tci_cgroup_hierarchy *h, const char *name,
                     struct tci_cgroup_usage *usage);
/* A descriptor that fires when memory runs out, or -1; `ret_mask` is what to poll for. */
int tci_cgroup_watch(const struct tci_cgroup_hierarchy *h, const char *name, short *ret_mask);

/* ---- the end: cgroup_kill.c ---------------------------------------------------------------- */

/* Version 2: is no process in it? Waits until `until_ms` for that. */
bool tci_cgroup_wait_empty(const struct tci_cgroup_hierarchy *h, const char *name,
                           int64_t until_ms);
/* Kills what is in one group of one hierarchy; true: nothing is left. */
bool tci_cgroup_kill_named(const struct tci_cgroup_hierarchy *h, const char *name, int deadline_ms);
/* Removes the directory, waiting while it is busy; false: it is still there. */
bool tci_cgroup_remove_named(const struct tci_cgroup_hierarchy *h, const char *name,
                             int deadline_ms);

/* ---- owners: cgroup_sweep.c ---------------------------------------------------------------- */

int tci_cgroup_owner_self(struct tci_cgroup_owner *ret);
/* False when it does not fit. */
bool tci_cgroup_name(const struct tci_cgroup_owner *owner, const char *id, char *buffer,
                     size_t size);
/* Is it wholly one of our names? */
bool tci_cgroup_name_parse(const char *name, struct tci_cgroup_owner *ret, const char **ret_id);
/* Kills and removes what dead owners have left in all hierarchies. */
void tci_cgroups_sweep(const struct tci_cgroups *groups);

/* The leaf into which this process steps down itself. Never killed, only removed. */
#define TCI_CGROUP_SELF "self"

/* ---- the service manager: cgroup_systemd.c ------------------------------------------------- */

/* Moves this process into a new scope of its own that is handed over to it. 0 or an errno. */
int tci_cgroup_systemd_scope(const struct tci_cgroup_owner *owner, int deadline_ms);
/* Signs in and makes the call, over a connected socket. */
int tci_cgroup_systemd_ask(int fd, const char *unit, int64_t until_ms);
/* The call alone. */
int tci_cgroup_systemd_call(int fd, const char *unit, int64_t until_ms);

#endif
