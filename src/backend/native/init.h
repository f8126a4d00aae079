/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of init share. Freestanding: no C library, no errno; a call that fails returns
 * a negative errno. */
#ifndef TCI_BACKEND_NATIVE_INIT_H
#define TCI_BACKEND_NATIVE_INIT_H

#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include "backend/native/init_abi.h"
#include "backend/native/init_calls.h"

struct init {
    const struct tci_init_config *config; /* mapped, read-only */
    char **command, **environment;
    bool is_jail, is_mapped, has_terminal, is_traced, must_hold;
    int ruleset; /* Landlock; -1: none */
    int start
        [2]; /* the command's end and init's, of a line: a byte from init lets the program start */
};

/* The configuration's arrays and texts. */
static inline const void *config_at(const struct init *init, uint32_t offset)
{
    return (const char *)init->config + offset;
}

/* Reports that the cage could not be built, and ends it. */
_Noreturn void broken(enum tci_init_step step, uint32_t item, long result);
/* The same if `result` is an error; otherwise its value. */
long must(enum tci_init_step step, uint32_t item, long result);
_Noreturn void leave(int status);
void report(struct tci_init_report *what);

/* init_stage.c: namespaces, identity, root directory; and then the end of the host's own root. */
void enter_cage(const struct init *init);
void leave_host(void);
/* init_gate.c: the network of a cage with a gate. */
void furnish_network(const struct init *init);
/* init_rules.c: the Landlock ruleset, or -1. */
int make_ruleset(const struct init *init);
/* init_command.c: the command's process; does not return. */
_Noreturn void become_command(const struct init *init);
/* Opens a path of the host as the configuration says; a negative errno. -ESTALE: it is another one
 * than was checked. */
long open_checked(int directory, const char *path, uint32_t flags, uint64_t device, uint64_t inode);

#endif
