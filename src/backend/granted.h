/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: finding the host's side of a granted path, for every backend that mounts it. */
#ifndef TCI_BACKEND_GRANTED_H
#define TCI_BACKEND_GRANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "policy/model.h"

struct tci_identity {
    uint64_t device, inode;
};

/* Directories that tools of a policy may write to, and in which no link is followed. */
struct tci_writables {
    struct tci_identity *items;
    size_t count;
};

/* Those of every tool of `policy` (or NULL), and of `own`; lives in `arena`. */
int tci_writables_note(struct tci_arena *arena, const struct tc_policy *policy,
                       const struct tci_filesystem *own, struct tci_writables *ret,
                       struct tc_error *reterr);
/* Opens the host's side of a grant (O_PATH); a negative errno. No link may be followed at a place
 * that the policy lets a tool write to: an earlier call could have put it there. */
int tci_granted_open(const struct tci_writables *writables, const char *host);
/* Would it open this one? */
bool tci_granted_is_same(const struct tci_writables *writables, const char *host, uint64_t device,
                         uint64_t inode);
/* What an open file is; 0 or a negative errno. */
int tci_granted_identify(int fd, uint64_t *ret_device, uint64_t *ret_inode, bool *ret_is_directory);

#endif
