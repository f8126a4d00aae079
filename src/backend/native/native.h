/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the native backends (process, jail) share.
 *
 *   plan.c      settings -> struct tc_plan: what can be kept, refused or compiled, once
 *   mounts.c    settings -> the list of mounts that make up a jail's root
 *   rules.c     settings -> Landlock rules
 *   programs.c  `commands` -> files that may be started
 *   limits.c    settings -> control group limits and rlimits
 *   config.c    all of that -> the sealed file that init reads
 *   spawn.c     the child between clone and execve of init
 *   function.c  the same for a function of this process: by way of a fork (function*.c)
 *   run.c       one cage from start to end
 */
#ifndef TCI_BACKEND_NATIVE_NATIVE_H
#define TCI_BACKEND_NATIVE_NATIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "backend/backend.h"
#include "backend/cgroup/cgroup.h"
#include "backend/environment.h"
#include "backend/filter/filter.h"
#include "backend/granted.h"
#include "backend/idmap.h"
#include "backend/native/init_abi.h"
#include "base/arena.h"
#include "gate/rules.h"

struct tci_mount {
    enum tci_init_mount_kind kind;
    uint32_t flags;
    const char *target; /* without the leading slash */
    const char *text;
    size_t text_length;
    uint64_t attributes, device, inode;
    const char
        *host;     /* BIND and HANDED: for messages and cage_to_host; NULL: nothing of the host */
    bool writable; /* granted for writing */
    int source;    /* HANDED: O_PATH handle; -1 */
};

struct tci_mounts_list {
    struct tci_mount *items;
    size_t count, capacity;
};

struct tci_rule {
    const char *path;
    uint64_t rights;
    uint32_t flags;
    uint64_t device, inode;
};

struct tci_rules_list {
    struct tci_rule *items;
    size_t count, capacity;
    uint64_t handled_fs, handled_net, scoped;
    uint32_t attr_size; /* 0: no Landlock */
};

/* A program that `commands` lists, or its loader: links followed, the file itself. */
struct tci_native_program {
    const char *path; /* in the cage */
    uint64_t device, inode;
};

struct tci_programs {
    bool any;
    struct tci_native_program *items;
    size_t count, capacity;
    const char **libraries; /* directories of shared libraries, in the cage */
    size_t library_count;
};

struct tc_plan {
    struct tci_arena *arena;
    struct tci_writables writables; /* where tools of the policy may write */
    const struct tc_backend *backend;
    struct tc_spec spec;
    bool is_jail, is_root; /* is_root: started by the host's root */
    int landlock_abi;      /* 0: none */
    struct tci_cgroups *cgroups;
    bool use_cgroup;
    struct tci_cgroup_limits cgroup_limits;
    struct tci_mounts_list mounts;
    struct tci_rules_list rules;
    struct tci_programs programs;
    struct tci_init_limit limits[TCI_INIT_LIMITS_MAX];
    uint32_t limit_count;
    bool counts_memory; /* by its address space: nothing may hold memory outside of it */
    bool pinned;
    uint64_t processors[TCI_INIT_CPU_WORDS];
    bool watch_cpu;        /* cpu_time is counted by looking at the group */
    bool watch_disk;       /* bytes written to granted paths are counted by looking */
    const char *directory; /* where the command starts */
    const char **environment;
    bool has_gate, gate_has_v6;
    struct tci_gate_ports gate_ports;
    struct tci_filter filter;
    char layers[TCI_LAYERS_MAX];
    int init_fd, config_fd; /* -1: none */
    struct tci_idmap idmap;
    int ruleset_fd;       /* process: Landlock rules, the same for every call; -1: none */
    pthread_mutex_t lock; /* for `dying` */
    struct tc_run *dying;
};

/* plan.c */
int tci_native_plan(const struct tc_backend *backend, const struct tc_spec *spec,
                    struct tc_plan **ret, struct tc_error *reterr);
void tci_native_plan_free(struct tc_plan *plan);
bool tci_native_is_stale(const struct tc_plan *plan);

/* mounts.c: fills plan->mounts. */
int tci_native_mounts(struct tc_plan *plan, struct tc_error *reterr);
/* The path of the host behind a path of the jail, in `buffer`; NULL: it is not from the host. */
const char *tci_native_host_path(const struct tc_plan *plan, const char *cage, char *buffer,
                                 size_t size);
/* A file or directory from which code may run, laid over itself where its mount says noexec. */
int tci_native_mount_program(struct tc_plan *plan, const char *cage, const char *host, bool is_file,
                             const struct tci_native_program *checked, struct tc_error *reterr);

/* programs.c: fills plan->programs. */
int tci_native_programs(struct tc_plan *plan, struct tc_error *reterr);
/* rules.c: fills plan->rules. */
int tci_native_rules(struct tc_plan *plan, struct tc_error *reterr);
/* limits.c: fills cgroup_limits, limits, processors, watch_*. */
int tci_native_limits(struct tc_plan *plan, struct tc_error *reterr);
/* config.c: fills config_fd. */
int tci_native_config(struct tc_plan *plan, struct tc_error *reterr);
/* blob.c: init, as an executable file of memory. */
int tci_native_init_fd(struct tc_error *reterr);

/* ---- one cage --------------------------------------------------------------------------------- */

/* What the child between clone and execve needs; shared memory. */
struct tci_spawn {
    const struct tc_plan *plan;
    const struct tci_cgroup *cgroup; /* or NULL */
    const char *const *argv;         /* init's, with its flags first */
    int in, out, err, report, go, owner;
    int gate;             /* -1: none */
    int program;          /* -1: none */
    tc_handler *function; /* NULL: none */
    struct tc_handler_call handler;
    char *flags;       /* argv[0], with room for a number */
    const int *mounts; /* what init gets from TCI_INIT_FD_MOUNTS on */
    size_t mount_count;
    bool born_inside;              /* in the group that clone3 puts it into */
    int failed_step, failed_errno; /* written by the child */
    int pid, pidfd;                /* results */
};
int tci_native_spawn(struct tci_spawn *spawn, struct tc_error *reterr);
/* The clone alone, on a stack that is large enough: the child's id, or a negative errno. */
long tci_native_clone(struct tci_spawn *spawn, char *stack, size_t size);
/* function.c: the same by way of a fork, whose memory the function's process gets. *ret_problem is
 * an errno of the clone; -1: *reterr is set. */
int tci_native_fork(struct tci_spawn *spawn, int *ret_problem, struct tc_error *reterr);
/* In the child of the clone, and no more than system calls: starts the function's process, which
 * waits for init. 0, or -1 with errno. */
int tci_native_start_function(struct tci_spawn *spawn);

#endif
