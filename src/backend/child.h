/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the children of both kinds of cages do between clone and execve, and how they are made. A child
 * shares the caller's memory (CLONE_VM), so that a host with gigabytes is not copied, and the calling thread
 * sleeps until its execve (CLONE_VFORK), so that the child may use its errno.
 */
#ifndef TCI_BACKEND_CHILD_H
#define TCI_BACKEND_CHILD_H

#include "backend/cgroup/cgroup.h"

/* ---- in the child: system calls only, no allocation, no lock, no stdio. 0, or -1 with errno ------------ */

/* A signal that the host ignores would stay ignored in the command: a host that ignores SIGPIPE must not
 * make its tools behave oddly, and who has SIGCHLD ignored finds nobody to wait for. */
void tci_child_reset_signals(void);
/* Enters a group (NULL: none), from its `enter[first]` on. */
int tci_child_enter(const struct tci_cgroup *group, unsigned first);
/* Descriptor numbers as the program expects them: what is in from[i] becomes i (-1: nothing is there), and
 * `program` itself comes right behind them, at `count`, and closes at execve. Nothing else stays: what the
 * host holds open without O_CLOEXEC ends here. `from` is changed. */
int tci_child_arrange(int *from, int count, int program);
/* The child has all capabilities in the namespace that it just got, and execve would take them from
 * anybody who is not root there. These few it keeps. */
int tci_child_keep(const int *capabilities, size_t count);

/* ---- in the caller ------------------------------------------------------------------------------------- */

/* Clones on a stack of its own (the caller's may be small) with all signals blocked, so that a handler of
 * the host never runs in the child. `make` returns what the clone does: the child's id, or a negative
 * errno. -1: *reterr says that there is no memory. */
int tci_child_make(long (*make)(void *argument, char *stack, size_t size), void *argument,
                   long *ret_pid, struct tc_error *reterr);
/* The child failed before its execve, and said why: collects it, closes *pidfd and sets *reterr. -1. */
int tci_child_failed(int *pidfd, int problem, const char *what, const char *step,
                     struct tc_error *reterr);

#endif
