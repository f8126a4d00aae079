/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: whether a file that decides what a tool may do lies where the tool, or another user, can change it. */
#ifndef TCI_POLICY_PLACE_H
#define TCI_POLICY_PLACE_H

#include "base/error.h"
#include "policy/model.h"
#include "policy/reach.h"

struct tci_place {
    const char *what; /* for messages: "pin" */
    const struct tci_filesystem
        *cage;               /* what it can write is no place for the file; NULL: all are */
    struct tci_reach *reach; /* instead of `cage`: for many questions, or many cages; borrowed */
    bool ours; /* it must be the caller's or root's, and nobody else may change or replace it */
    bool is_replaced;    /* it will be, by the caller: only who else can do that counts */
    bool may_be_missing; /* also a directory on the way; then who could make it counts */
};

/*
 * Walks to the file as the kernel would, and judges every directory on the way, also those of links.
 * 0: it is fine; *ret_fd, unless `ret_fd` is NULL, is the file opened for reading, or -1: there is none at
 * this (good) place yet. 1: it lies where the cage can write. -1: another reason. *reterr says which.
 */
int tci_place_open(const char *path, const struct tci_place *place, int *ret_fd,
                   struct tc_error *reterr) tci_must_check;

/* The same for a directory and all that is in it, which may not be there yet. 1: *ret_host is the path that a cage
 * was given; it lives as long as `reach`. */
int tci_place_check_tree(const struct tci_own_place *own, struct tci_reach *reach,
                         const char **ret_host, struct tc_error *reterr) tci_must_check;

#endif
