/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: limits of one call that are kept by looking at what the kernel counts (memory, processor time, bytes
 * written), and what the call used. Nothing is concluded from exit codes, and from signals nothing alone. */
#ifndef TCI_BACKEND_WATCH_H
#define TCI_BACKEND_WATCH_H

#include "backend/backend.h"
#include "backend/cgroup/cgroup.h"
#include "backend/disk_watch.h"

struct tci_watch {
    int timer;                              /* -1: nobody looks yet */
    bool at_once;                           /* the first look need not wait */
    struct tci_disk_watch *disk;            /* NULL: bytes written are not counted by looking */
    uint64_t written;                       /* to storage */
    uint64_t written_before, cpu_us_before; /* by whoever made the cage; not the call's */
    unsigned hit;                           /* TCI_HIT_* */
    bool starving; /* the group ran out of memory: somebody is about to be killed */
};

void tci_watch_init(struct tci_watch *watch, bool at_once);
void tci_watch_end(struct tci_watch *watch);
/* Looks come at short intervals from now on: `epoll` is readable then. */
int tci_watch_timer(struct tci_watch *watch, int epoll, struct tc_error *reterr);
/* Is it time to look? */
bool tci_watch_ticked(struct tci_watch *watch);
/* Did the group (NULL: none) run out of memory? Then the caller ends everybody. */
bool tci_watch_memory(struct tci_watch *watch, const struct tci_cgroup *group, int epoll);
/* The call's processor time; 0: no group counts it. */
uint64_t tci_watch_cpu_us(const struct tci_watch *watch, const struct tci_cgroup *group);
/* What everybody below `pid` has written; nothing if it is not counted, or nobody is there (0). */
void tci_watch_written(struct tci_watch *watch, int pid);
/* Was a limit reached that is kept by looking? Processor time is for the caller to look at, and to add to
 * `hit`. Then the caller ends everybody. */
bool tci_watch_reached(struct tci_watch *watch, const struct tci_settings *s);

/* What the first process in the cage has said. Where a group counts, that counts. */
struct tci_watch_said {
    uint64_t cpu_us, memory_peak, bytes_written;
    bool has_ended; /* the command */
    int status;     /* as wait(2) gives it */
};
/* Everything has ended: adds what was used, and which limits were hit. */
void tci_watch_usage(const struct tci_watch *watch, const struct tci_settings *s,
                     const struct tci_cgroup *group, const struct tci_watch_said *said,
                     struct tc_outcome *ret);

#endif
