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

/* In the library the same code has names of its own: a host may have a function "report". */
#ifdef TCI_STAGE
#define broken          tci_stage_broken
#define must            tci_stage_must
#define leave           tci_stage_leave
#define report          tci_stage_report
#define map_config      tci_stage_map_config
#define forget_caller   tci_stage_forget_caller
#define drop_bounds     tci_stage_drop_bounds
#define drop_privileges tci_stage_drop_privileges
#define become_user     tci_stage_become_user
#define make_ruleset    tci_stage_make_ruleset
#define open_checked    tci_stage_open_checked
#define prepare_command tci_stage_prepare_command
#endif

struct init {
    const struct tci_init_config *config; /* mapped, read-only */
    char **command, **environment;
    bool is_jail, is_mapped, has_terminal, is_traced, must_hold, has_program;
    int foreign; /* the process that runs a function of the host; 0: there is none */
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

/* init_privileges.c: the configuration; what is given up, in this order. */
void map_config(struct init *init);
void forget_caller(void);
void drop_bounds(const struct init *init);
void become_user(const struct init *init);
void drop_privileges(const struct init *init);

/* init_stage.c: namespaces, identity, root directory; and then the end of the host's own root. */
void enter_cage(const struct init *init);
void leave_host(void);
/* init_gate.c: the network of a cage with a gate. */
void furnish_network(const struct init *init);
/* init_rules.c: the Landlock ruleset, or -1. */
int make_ruleset(const struct init *init);
/* init_prepare.c: everything before the program; returns when init lets it start, under the filter. */
void prepare_command(const struct init *init);
/* init_command.c: the command's process; does not return. */
_Noreturn void become_command(const struct init *init);
/* Opens a path of the host as the configuration says; a negative errno. -ESTALE: it is another one
 * than was checked. */
long open_checked(int directory, const char *path, uint32_t flags, uint64_t device, uint64_t inode);

#endif
