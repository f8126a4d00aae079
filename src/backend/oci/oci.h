/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the container backends (oci, gvisor) share.
 *
 *   choose.c        settings -> which engine and which runtime, and why
 *   check.c         which clauses that choice cannot keep: refused
 *   own_places.c    directories that decide what containers run, and that no tool may write
 *   plan.c          spec -> struct tci_oci_plan, once
 *   mounts.c        settings -> the list of mounts, in no engine's words
 *   spec*.c         plan -> config.json of a bundle (OCI runtime spec)
 *   seccomp.c       the outer system call profile in the words of the OCI
 *   run*.c          one call: the same for every engine (inside/entry_abi.h)
 *   message.c       what the first process in the container is told
 *   cage.c, bury.c  one container, from its making to its end
 *   pool.c          cages that are ready before they are needed
 *   driver_bare.c   containers by runc, crun or runsc on a bundle of ours (stage*.c)
 *   driver_api.c    containers by Podman or Docker, over their sockets (api*.c)
 *   image*.c        images of our own: built, found, unpacked, loaded into an engine
 */
#ifndef TCI_BACKEND_OCI_OCI_H
#define TCI_BACKEND_OCI_OCI_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "backend/backend.h"
#include "backend/cgroup/cgroup.h"
#include "backend/filter/filter.h"
#include "backend/granted.h"
#include "backend/idmap.h"
#include "base/arena.h"
#include "base/buf.h"
#include "gate/gate.h"
#include "gate/rules.h"
#include "inside/entry_abi.h"

/* ---- choice (choose.c) -------------------------------------------------------------------------- */

enum tci_oci_engine { TCI_OCI_ENGINE_NONE, TCI_OCI_ENGINE_PODMAN, TCI_OCI_ENGINE_DOCKER };
enum tci_oci_runtime { TCI_OCI_CRUN, TCI_OCI_RUNC, TCI_OCI_RUNSC, TCI_OCI_RUNTIME_OF_ENGINE };
enum { TCI_OCI_SOCKET_MAX = 108, TCI_OCI_VERSION_MAX = 48 };

struct tci_oci_choice {
    enum tci_oci_engine engine;
    enum tci_oci_runtime runtime;     /* of an engine: what it is told to use, or its own default */
    bool engine_given, runtime_given; /* by the policy; else by the stated order */
    bool is_root;                     /* the host's root asks */
    bool engine_is_rootless;          /* the engine runs as an ordinary user */
    char program[PATH_MAX];           /* NONE: the runtime; PODMAN: podman itself */
    char socket[TCI_OCI_SOCKET_MAX];  /* engines: where their API is; "": Podman, and we start it */
    char version[TCI_OCI_VERSION_MAX]; /* as the program or the daemon says */
    char platform[16];                 /* runsc: "systrap", "ptrace", "kvm" */
    char why[160];                     /* one sentence for `explain` */
};

/* Looks for what the policy names, or goes through the stated order; an engine or a runtime that is
 * named and missing is an error with its remedy, never a reason to take another. Cheap: no container is
 * made; runsc's platform is probed with a time limit, once for each process. */
int tci_oci_choose(const struct tci_settings *settings, struct tci_oci_choice *ret,
                   struct tc_error *reterr);
/* "oci/crun", "oci/podman", "gvisor", ...: the rows of ready.def that hold for it. */
const char *tci_oci_ready_name(const struct tci_oci_choice *choice);
/* Are the container's processes ours to count, to move into a control group and to furnish with the
 * gate? Not with another user's engine. */
bool tci_oci_is_ours(const struct tci_oci_choice *choice);

/* ---- mounts (mounts.c) --------------------------------------------------------------------------- */

enum tci_oci_mount_kind {
    TCI_OCI_MOUNT_BIND,  /* a path of the host */
    TCI_OCI_MOUNT_TMPFS, /* empty memory; `size` bytes */
    TCI_OCI_MOUNT_FILE,  /* a small file with these bytes, read-only */
};

struct tci_oci_mount {
    enum tci_oci_mount_kind kind;
    const char *cage;       /* where; absolute, normal form */
    const char *host;       /* BIND: normal form */
    uint64_t device, inode; /* BIND: what was there when the plan was made */
    int source;             /* BIND: O_PATH handle, for root's bare runtimes; -1 */
    /* Inside a granted directory: the host's file or directory that it lies on, or NULL. It is held open,
     * so that no other one gets its number while the plan lives. */
    const char *over;
    uint64_t over_device, over_inode;
    int over_handle;
    bool
        inner; /* bare: in a granted directory, or in a cover of one: the stage mounts it there itself */
    bool unlisted; /* bare: so the bundle says nothing of it */
    bool is_file, writable, no_exec;
    bool staged;   /* TMPFS: made by the stage and bound like a path (runc, gVisor) */
    uint64_t size; /* TMPFS */
    const char *
        mode; /* TMPFS, FILE: "1777", "0111" (a hidden directory); "0444", "0000" (a hidden file) */
    const char *bytes; /* FILE */
    size_t length;
};

/* ---- plan (plan.c) ------------------------------------------------------------------------------- */

struct tci_oci_driver;
struct tci_oci_pool;
struct tci_oci_cage;

/* Cages whose call is over, and the thread that removes them (bury.c). All zero: nothing was ever in it. */
struct tci_oci_grave {
    pthread_mutex_t lock;
    pthread_cond_t changed, emptier;
    pthread_t thread;
    bool has_thread, closing;
    struct tci_oci_cage *first;
    size_t count; /* in it, or being taken apart */
    size_t cages; /* of the plan: in calls, ready, being made, or here */
    size_t calls;
};

struct tci_oci_plan {
    struct tci_arena *arena;
    const struct tc_backend *backend;
    struct tc_spec spec;
    struct tci_oci_choice choice;
    const struct tci_oci_driver *driver;
    void *driver_state; /* once for each plan: a client, a started service, ... */
    bool is_open;       /* driver->open succeeded */

    struct tci_cgroups *cgroups;
    bool use_cgroup; /* a group of ours for each cage: made before it, joined before the command */
    /* gVisor: the stage enters it first of all, because what the runtime does is the tool's doing.
     * Otherwise only entry is moved into it, after its hello: a runtime's own threads and memory do
     * not count, and `pids` means what the policy says. */
    bool enter_early;
    struct tci_cgroup_limits cgroup_limits;
    struct tci_writables writables;
    struct tci_idmap idmap; /* bare, root: granted paths as the cage's user */

    struct tci_oci_mount *mounts; /* parents first */
    size_t mount_count;
    const char *rootfs; /* bare: a directory of the host (`rootfs`, or an image of ours) */
    uint64_t rootfs_device, rootfs_inode;
    int rootfs_lock;     /* an image of ours: held, so that nobody removes it meanwhile; -1 */
    const char **masked; /* hidden paths of the image itself, ends with NULL: for the runtime's own
                            masking, which covers files and directories and comes after all mounts */
    const char *image;   /* engines: the reference */
    const char *user;    /* engines: "UID:GID", or a name that the image knows */
    uint32_t uid, gid;   /* as whom the command runs, in the container */
    uint32_t host_uid, host_gid; /* bare: who that is on the host */

    const char **environment; /* NAME=VALUE, ends with NULL; nothing of an image's */
    const char *directory;
    struct tci_entry_limit limits[TCI_ENTRY_LIMITS_MAX];
    uint32_t limit_count;
    struct tci_filter filter;    /* what entry installs for the command; count 0: none */
    const char *seccomp_json;    /* the outer profile, which also lets entry work; OCI form */
    const char *seccomp_program; /* crun: the same as a program for the kernel, in base64 */
    const char *config_json;     /* bare: the bundle. Nothing in it differs from call to call */

    bool has_gate, gate_has_v6;
    struct tci_gate_ports gate_ports;
    bool watch_cpu, watch_disk;
    char layers[TCI_LAYERS_MAX];
    struct tci_oci_pool *pool; /* NULL: none is wanted */
    struct tci_oci_grave grave;
};

int tci_oci_plan(const struct tc_backend *backend, const struct tc_spec *spec, struct tc_plan **ret,
                 struct tc_error *reterr);
void tci_oci_plan_free(struct tc_plan *plan);
bool tci_oci_is_stale(const struct tc_plan *plan);
/* check.c: refuses a clause that the choice cannot keep here; also fills plan->layers. */
int tci_oci_check(struct tci_oci_plan *plan, struct tc_error *reterr);
/* mounts.c, spec.c, seccomp.c: fill the fields of their names. */
int tci_oci_mounts(struct tci_oci_plan *plan, struct tc_error *reterr);
int tci_oci_spec(struct tci_oci_plan *plan, struct tc_error *reterr);
int tci_oci_seccomp(struct tci_oci_plan *plan, struct tc_error *reterr);

/* Where the stage of a bare runtime puts things, in a mount namespace of its own (stage.c), and so what
 * the bundle says. Mount number i of the plan is at TCI_STAGE_MOUNTS "/i". */
#define TCI_STAGE_DIRECTORY "/tmp"
#define TCI_STAGE_BUNDLE    TCI_STAGE_DIRECTORY "/bundle"
#define TCI_STAGE_ROOTFS    TCI_STAGE_DIRECTORY "/rootfs"
#define TCI_STAGE_MOUNTS    TCI_STAGE_DIRECTORY "/m"
#define TCI_STAGE_STATE     TCI_STAGE_DIRECTORY "/state"
#define TCI_STAGE_OWN       TCI_STAGE_DIRECTORY "/own" /* entry, program: bound to TCI_ENTRY_DIRECTORY */
/* gVisor: the container's tree once more, with everything that is mounted in it, for who looks from outside. */
#define TCI_STAGE_VIEW TCI_STAGE_DIRECTORY "/view"
/* The network namespace with the gate in it, as the runtime joins it. */
#define TCI_STAGE_NETWORK "/proc/1/ns/net"
/*
 * Has the stage a user namespace of its own, with one id in it? 0 is the caller then, or for root
 * TCI_JAIL_HOST_ID, and the bundle maps to that 0. An ordinary user cannot do without; gVisor needs it from
 * root too, because it runs with the network of the stage only in the user namespace that it is started in,
 * and nobody wants its kernel to be the host's root.
 */
static inline bool tci_oci_stage_is_mapped(const struct tci_oci_choice *choice)
{
    return choice->engine == TCI_OCI_ENGINE_NONE &&
           (!choice->is_root || choice->runtime == TCI_OCI_RUNSC);
}

/* ---- cages and who makes them -------------------------------------------------------------------- */

/* One container, from its making to its end. Used for one call, and never again. */
struct tci_oci_cage {
    struct tci_oci_plan *plan;
    char id
        [TCI_SANDBOX_ID_MAX]; /* the container's, as its engine knows it; "tc-" and 16 digits if bare */
    struct tci_cgroup *cgroup; /* or NULL */
    struct tci_gate *gate;     /* or NULL */
    int gate_inside; /* the end for whoever furnishes the namespace; -1: none, or given away */
    int control;     /* socket to entry; -1: not there yet */
    int watch;       /* readable when driver->step has something to do; -1: none */
    void *driver_state;
    int pid; /* of entry, on the host (stamped by the kernel on its hello); 0: not known, or gVisor */
    int pidfd; /* of that one: readable when nobody of the container lives any more; -1: none */
    int root;  /* O_PATH handle of the container's root; -1: none (gVisor) */
    uint64_t silent_us; /* when its socket ended before its hello; 0: it did not */
    bool hello;         /* it waits for a call */
    bool failed;        /* it could not be made, or was lost: `error` says why */
    bool ended_itself;  /* gVisor: lost, because somebody inside has killed its first process */
    struct tc_error error;
    struct tci_oci_cage *next; /* in the pool */
};

struct tci_oci_driver {
    const char *name;
    /* Once for each plan: finds the daemon or starts the service, checks the image, removes what owners
     * that are gone have left. */
    int (*open)(struct tci_oci_plan *plan, struct tc_error *reterr);
    void (*close)(struct tci_oci_plan *plan);
    /* Begins to make a container. Does not wait: `control` is there at once (bare), or after a later step. Sets
     * id (or in a later step), watch, driver_state. Failing, nothing is left. */
    int (*begin)(struct tci_oci_cage *cage, struct tc_error *reterr);
    /* When `watch` is readable; never blocks. May set control, failed and error. */
    void (*step)(struct tci_oci_cage *cage);
    /* After hello, before the call: engines furnish the container's network namespace for the gate here.
     * May block for some milliseconds. NULL: nothing to do. */
    int (*ready)(struct tci_oci_cage *cage, struct tc_error *reterr);
    /* Ends every process of the container, at once and without waiting; may be repeated. */
    void (*kill)(struct tci_oci_cage *cage);
    /* Kills, waits and removes every trace, and frees driver_state. After it nothing is left. */
    void (*end)(struct tci_oci_cage *cage);
    /* gVisor: a handle on a directory as the container saw it; NULL: `root` is used. */
    int (*open_directory)(const struct tci_oci_cage *cage, const char *path,
                          struct tc_error *reterr);
    /* For counting what was written: the process below which everybody belongs to the cage; 0: `pid`. */
    int (*tree)(const struct tci_oci_cage *cage);
    /* Where we have no control group: TCI_HIT_* of limits that the engine keeps. While somebody of the
     * container lives: before a kill, and after the command's end, when entry is held. With `ask` the
     * engine is asked as well, and may block for some milliseconds. NULL: never. */
    unsigned (*hits)(struct tci_oci_cage *cage, bool ask);
    /* Has what the plan was made from changed where only the driver sees it (an engine's image)? Asked before
     * each call; cheap. NULL: never. */
    bool (*is_stale)(const struct tci_oci_plan *plan);
};

extern const struct tci_oci_driver tci_oci_driver_bare, tci_oci_driver_api;

/* cage.c: a cage with its group and its gate, whose making has begun; and its end. It was counted before
 * (bury.c), and is not any more when it could not be made, or is freed. */
int tci_oci_cage_new(struct tci_oci_plan *plan, struct tci_oci_cage **ret, struct tc_error *reterr);
void tci_oci_cage_free(struct tci_oci_cage *cage);
/* Goes on with whatever is there to read; never blocks. True when `hello` or `failed` is set. */
bool tci_oci_cage_step(struct tci_oci_cage *cage);

/* Kills whoever is in it, in every way that there is: the engine may not answer. Does not wait. */
void tci_oci_cage_kill(struct tci_oci_cage *cage);

/* bury.c: the end of a cage whose call is over, beside the calls to come; and, before the plan goes, of all
 * that are left: waits until nothing is there any more. */
void tci_oci_bury(struct tci_oci_cage *cage);
void tci_oci_bury_all(struct tci_oci_plan *plan);
/* There are never more containers than calls and `warm` together, those on their way out included. A call
 * is counted while it has one. A cage is counted before it is made: true; false: there is no room for it. With
 * `wait` there is, sooner or later. */
void tci_oci_count_call(struct tci_oci_plan *plan, int change);
bool tci_oci_count_cage(struct tci_oci_plan *plan, bool wait);
void tci_oci_uncount_cage(struct tci_oci_plan *plan);
/* A thread that gets none of the host's signals; 0, or an errno. */
int tci_oci_start_thread(pthread_t *ret, void *(*function)(void *), void *argument);

/* message.c: what entry is to start, in its own form (inside/entry_abi.h). `holds`: entry stays after its
 * report. */
int tci_oci_message(const struct tci_oci_plan *plan, const struct tc_io *io, bool holds,
                    struct tci_buf *out, struct tc_error *reterr);

/* pool.c: keeps spec.warm cages ready, from the first call on, in a thread of its own. */
int tci_oci_pool_open(struct tci_oci_plan *plan, struct tc_error *reterr);
void tci_oci_pool_close(struct tci_oci_pool *pool); /* ends its cages; NULL is allowed */
struct tci_oci_cage *tci_oci_pool_take(struct tci_oci_pool *pool); /* one with `hello`; or NULL */
void tci_oci_pool_wake(struct tci_oci_pool *pool); /* there may be room for another */

/* entry_blob.c: the first program, as bytes (for a file in a stage, or in a directory of ours). */
extern const unsigned char tci_entry_blob[];
extern const size_t tci_entry_blob_size;

/* ---- images (image*.c) ---------------------------------------------------------------------------- */

#define TCI_IMAGE_DEFAULT "toolcage/tool-sandbox"
/* The unpacked root directory of an image of our own store ("NAME[:TAG]" or "NAME@sha256:..."), in
 * `ret`. Missing: an error whose remedy is `toolcage image build`. */
int tci_image_find(const char *reference, char ret[PATH_MAX], struct tc_error *reterr);

#endif
