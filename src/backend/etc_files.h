/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the files of /etc that toolcage writes for a cage, whoever makes it. */
#ifndef TCI_BACKEND_ETC_FILES_H
#define TCI_BACKEND_ETC_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"

struct tci_etc_cage {
    uint32_t uid, gid; /* the cage's user, as he sees himself */
    bool has_gate;     /* names are the gate's to find */
    bool host_network; /* names are found as the host does */
};

struct tci_etc_file {
    const char *path, *bytes;
    size_t length;
};

enum { TCI_ETC_FILES = 4 };

/* Which of them: 0 ... TCI_ETC_FILES - 1; `path` alone. */
const char *tci_etc_path(unsigned index);
/* The same with its contents, which live in `arena`. */
int tci_etc_file(struct tci_arena *arena, const struct tci_etc_cage *cage, unsigned index,
                 struct tci_etc_file *ret, struct tc_error *reterr);

#endif
