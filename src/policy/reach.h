/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the question whether a cage could write what is at a place of the host. One directory has many names
 * (links, bind mounts, mounts below a granted directory, layers of an overlay), one file has many (hard
 * links): names are not compared, but where things are.
 */
#ifndef TCI_POLICY_REACH_H
#define TCI_POLICY_REACH_H

#include "base/attr.h"
#include "base/mount_table.h"
#include "policy/model.h"

struct tci_reach;

enum tci_reached {
    TCI_REACHED_NOT,
    TCI_REACHED,
    TCI_REACHED_BY_NAME, /* the file has other names, hard links, and one may be where the cage writes */
    TCI_REACHED_UNKNOWN,   /* counts as reached */
    TCI_REACHED_NO_MEMORY, /* and so does this */
};

/* A directory of toolcage's own, or of an engine, that decides what cages run. */
struct tci_own_place {
    const char *what, *path;
};

/* Of one cage; of all cages of a policy. They, and the mounts of this moment, are remembered: make it for one
 * question, not for later. NULL: no memory. */
struct tci_reach *tci_reach_of_cage(const struct tci_filesystem *cage) tci_must_check;
/* The same, with a list of mounts that was read a moment ago, for one cage after the other; borrowed. NULL:
 * read it. */
struct tci_reach *tci_reach_of_cage_in(const struct tci_mount_table *mounts,
                                       const struct tci_filesystem *cage) tci_must_check;
struct tci_reach *tci_reach_of_policy(const struct tc_policy *policy) tci_must_check;
void tci_reach_free(struct tci_reach *reach);
void tci_reach_freep(struct tci_reach **reach);

bool tci_reach_is_empty(const struct tci_reach *reach); /* nothing was given for writing */

/* `place`: absolute, without links on the way; a link at its end is meant itself. *ret_host: the path that
 * a cage was given for writing; may be NULL. */
enum tci_reached tci_reach_look(struct tci_reach *reach, const char *place, const char **ret_host);
/* Is something below the directory `place` one that a cage was given for writing? */
enum tci_reached tci_reach_look_below(struct tci_reach *reach, const char *place,
                                      const char **ret_host);

#endif
