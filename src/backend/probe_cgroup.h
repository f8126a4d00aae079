/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the control group probe share; nobody else includes this. */
#ifndef TCI_BACKEND_PROBE_CGROUP_H
#define TCI_BACKEND_PROBE_CGROUP_H

#include <stdbool.h>
#include "backend/probe.h"

/* ---- where this process is: probe_cgroup_find.c ------------------------------------------- */

enum { TCI_CGROUP_PATH_MAX = 1024 };

struct tci_cgroup_place {
    char directory[TCI_CGROUP_PATH_MAX]; /* our own group, as a directory */
    unsigned depth;                      /* how far below the top of what can be seen; 0: at it */
};

struct tci_cgroup_kinds {
    bool v1, v2;
    char v2_mount[TCI_CGROUP_PATH_MAX];
};

/* Which hierarchies are mounted. 0, or an errno if that cannot be seen. */
int tci_cgroup_kinds(struct tci_cgroup_kinds *ret);

/* Our place in the hierarchy of a version 1 controller, or, for NULL, in that of version 2.
 * 0, ENOENT if it is not mounted or not where this process is, or another errno if that cannot be
 * seen. */
int tci_cgroup_find(const char *controller, struct tci_cgroup_place *ret);
/* Several with one look; bits in `ret_found` say which are there. 0 or an errno. */
enum { TCI_CGROUP_FIND_MAX = 8 };
int tci_cgroup_find_all(const char *const *controllers, size_t count, struct tci_cgroup_place *ret,
                        unsigned *ret_found);

/* Is `word` one of the words of `text`, which `separator`, blanks and line ends separate? */
bool tci_cgroup_has_word(const char *text, const char *word, char separator);

/* ---- what is said when something cannot be had: probe_cgroup_remedy.c ---------------------- */

/* `what` failed with `problem`. */
void tci_cgroup_refused(const struct tci_probe *p, enum tci_feature id, bool v2, const char *what,
                        int problem);

/* It cannot be seen what is there: `problem`. */
void tci_cgroup_not_seen(const struct tci_probe *p, enum tci_feature id, int problem);

/* The controller is nowhere, or did not come down to our group. */
void tci_cgroup_not_given(const struct tci_probe *p, enum tci_feature id, const char *controller);

/* Version 2: our group is ours, but its children do not get the controller. */
void tci_cgroup_not_enabled(const struct tci_probe *p, enum tci_feature id, const char *controller);

/* ---- trying: probe_cgroup.c, probe_cgroup_clone.c ------------------------------------------ */

/* Removes a group; one is busy for a moment after its last process has gone. */
void tci_cgroup_remove(int parent, const char *name);

/* Version 2, or the v2 part of a hybrid host: clone3() into a group, cgroup.kill. */
void tci_cgroup_try_clone(const struct tci_probe *p);

#endif
