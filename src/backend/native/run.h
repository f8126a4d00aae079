/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the functions of both native backends' tables, and the state of one cage. */
#ifndef TCI_BACKEND_NATIVE_RUN_H
#define TCI_BACKEND_NATIVE_RUN_H

#include "backend/native/native.h"
#include "backend/watch.h"
#include "gate/gate.h"

enum { TCI_HANDED_MAX = 480 };

struct tc_run {
    struct tc_plan *plan;
    struct tc_run *next; /* in the plan's list of those whose init is about to end */
    char id[TCI_SANDBOX_ID_MAX];
    struct tci_cgroup *cgroup; /* or NULL */
    int pid, pidfd;            /* init */
    int group;                 /* process: the command's process group; 0: not known yet */
    int report, go, epoll;
    struct tci_watch watch;
    struct tci_gate *gate;       /* or NULL */
    struct tci_init_report last; /* `end` is 0 until there is one */
    bool hold, killed, ended;
};

int tci_native_start(struct tc_plan *plan, const struct tc_io *io, struct tc_run **ret,
                     struct tc_error *reterr);
int tci_native_step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr);
void tci_native_kill(struct tc_run *run);
void tci_native_destroy(struct tc_run *run);
/* Collects cages whose init has ended; with `wait`, all that were destroyed. */
void tci_native_bury(struct tc_plan *plan, bool wait);
const struct tci_gate_record *tci_native_network(const struct tc_run *run, size_t *ret_count,
                                                 uint64_t *ret_dropped);
int tci_native_fd(const struct tc_run *run);
int tci_native_pid(const struct tc_run *run);
void tci_native_go(struct tc_run *run);
const char *tci_native_layers(const struct tc_run *run);
const char *tci_native_sandbox_id(const struct tc_run *run);
struct tci_file_reader tci_native_reader(const struct tc_run *run);
int tci_native_open_directory(const struct tc_run *run, const char *path, struct tc_error *reterr);

#endif
