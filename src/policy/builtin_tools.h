/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the table of built-in tools: what `builtin = "NAME"` in a tool's table stands for. */
#ifndef TCI_POLICY_BUILTIN_TOOLS_H
#define TCI_POLICY_BUILTIN_TOOLS_H

/* Which program a command's argv[0] is. */
enum tci_program {
    TCI_PROGRAM_NONE,   /* one that is found in the cage */
    TCI_PROGRAM_FILES,  /* ours: the file tools */
    TCI_PROGRAM_LOADER, /* ours: http_fetch, and handlers from shared objects */
};

struct tci_builtin {
    const char *name, *description;
    const char *parameters, *returns; /* canonical JSON; `returns` may be NULL: any output */
    enum tci_program program;
    const char *const *command; /* argv with placeholders; ends with NULL */
};

/* NULL: there is none of that name. */
const struct tci_builtin *tci_builtin_find(const char *name);
/* All names; ends with NULL. */
const char *const *tci_builtin_names(void);

#endif
