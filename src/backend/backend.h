/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what every backend is: a table of functions, and the values that pass through it.
 *
 * A plan holds everything that depends on the policy only and is made once; a run is one cage. The
 * caller (src/core) owns the streams, the clock and the verdict; a backend reports what the kernel
 * said. Runs are used by one thread at a time; a plan by many.
 */
#ifndef TCI_BACKEND_BACKEND_H
#define TCI_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "gate/record.h"
#include "policy/clauses.h"
#include "policy/model.h"

enum { TC_BACKEND_ABI = 1, TCI_LAYERS_MAX = 160, TCI_SANDBOX_ID_MAX = 72 };

/* Signals that wait, and timers, of a cage. The attack: a tool queues as many as its user may have, and no
 * timer can be made by any other cage, or program, of that user. */
enum { TCI_SIGNALS_MAX = 1024 };

/* What a cage is made from: a tool after grant and request have narrowed it. It and what it points
 * to outlive the plan. */
struct tc_spec {
    const char *tool;                    /* for messages */
    const struct tci_settings *settings; /* effective */
    tci_clauses clauses;                 /* what they ask for */
    const struct tc_policy *policy;      /* whose other tools may have written to granted paths */
    enum tci_program program;            /* ours, that calls start from a descriptor */
    const char *library; /* a shared object that it loads, at the same path in the cage; NULL */
    bool is_function;    /* calls run a function of this process (struct tc_io.function) */
    uint64_t warm;       /* cages to keep ready for calls to come; 0: none */
};

/* What one call adds to the plan. Descriptors stay the caller's. */
struct tc_io {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the cage's PATH */
    int in, out, err;        /* the cage's ends */
    bool terminal;           /* `in` is the slave of a pseudo terminal: it becomes the cage's own */
    bool traced;             /* the command starts when `go` is called: a tracer comes first */
    bool hold;               /* the cage's files stay reachable after the end, until destroy */
    int program; /* > 0: a sealed file of memory (program.h) that is started instead of looking up
                    argv[0]; it needs no place in the cage and no mention in `commands` */
    tc_handler *function; /* called in a fork of this process instead of starting a program; NULL */
    struct tc_handler_call handler; /* what it gets; `reply` is the backend's */
    /* Connections and refusals of the cage's gate, as they happen; may be NULL. Called from step. */
    void (*on_network)(void *data, const struct tci_gate_record *record);
    void *network_data;
};

enum tci_end {
    TCI_END_EXITED,      /* `status`: exit code */
    TCI_END_SIGNALED,    /* `status`: signal */
    TCI_END_NOT_STARTED, /* the program could not be started; `status`: errno of execve */
    TCI_END_BROKEN,      /* the cage could not be built or kept: *reterr of step says why */
};

/* Limits that the kernel says were hit. Bits. */
enum {
    TCI_HIT_MEMORY = 1, /* the kernel killed a process for its memory */
    TCI_HIT_PIDS = 2,   /* a process or thread was refused */
    TCI_HIT_CPU = 4,    /* processor time is used up; the tree was killed */
    TCI_HIT_DISK = 8,   /* too much was written; the tree was killed */
};

struct tc_outcome {
    bool finished;
    enum tci_end end;
    int status;
    bool never_started; /* BROKEN: and it was not the command's doing, nor that of its time limit */
    unsigned hit;
    struct tc_usage usage; /* without duration */
};

/* Whose eyes a file was seen with. */
struct tci_file_reader {
    bool is_known; /* false: the kernel asks of us what it asked of the command */
    uid_t uid;
    gid_t gid;
};

struct tc_plan; /* each backend has its own */
struct tc_run;

struct tc_backend {
    unsigned abi;
    enum tci_backend_kind kind;
    const char *name, *summary;
    /* Compiles a spec; refuses one with a clause that cannot be kept here, with the remedy. */
    int (*plan)(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr);
    void (*plan_free)(struct tc_plan *plan);
    /* Has the host changed so that the plan means something else? May be NULL: never. */
    bool (*is_stale)(const struct tc_plan *plan);
    /* Builds a cage and starts the command in it. Failing, nothing is left. */
    int (*start)(struct tc_plan *plan, const struct tc_io *io, struct tc_run **ret,
                 struct tc_error *reterr);
    /* Readable when step has something to do. */
    int (*fd)(const struct tc_run *run);
    /* Never blocks. When *ret says finished, no process of the cage is left but, with `hold`, its
     * init, which keeps the files and does nothing. */
    int (*step)(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr);
    /* The whole tree, at once; harmless when repeated or too late. */
    void (*kill)(struct tc_run *run);
    /* Kills, waits, and removes every trace. */
    void (*destroy)(struct tc_run *run);
    const char *(*layers)(const struct tc_run *run);     /* "userns mountns ... cgroup:v1" */
    const char *(*sandbox_id)(const struct tc_run *run); /* unique on this host */
    /* A handle on the directory `path` of the cage as the cage saw it, for bringing files back; only
     * between start and destroy, also after the end. -1 with *reterr set. */
    int (*open_directory)(const struct tc_run *run, const char *path, struct tc_error *reterr);
    /* For a tracer: the host's id of the process that starts the command, and the start itself. */
    int (*pid)(const struct tc_run *run);
    void (*go)(struct tc_run *run);
    /* What the gate of the cage has on record, in the order in which it began, and how many records
     * there was no room for; after the end and until destroy. May be NULL, and give none: no gate. */
    const struct tci_gate_record *(*network)(const struct tc_run *run, size_t *ret_count,
                                             uint64_t *ret_dropped);
    /* As whom the command ran, as fstat here tells owners: files that come back must have been that one's to
     * read. Before destroy. May be NULL: as if it were us. */
    struct tci_file_reader (*reader)(const struct tc_run *run);
};

/* NULL: this build has no such backend. */
const struct tc_backend *tci_backend_for(enum tci_backend_kind kind);

#endif
