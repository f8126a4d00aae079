/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: programs that toolcage brings into a cage itself: static bytes of the library, started from a
 * sealed file of memory (struct tc_io.program), so that a cage without any file of the host can run
 * them.
 */
#ifndef TCI_BACKEND_PROGRAM_H
#define TCI_BACKEND_PROGRAM_H

#include "base/error.h"
#include "policy/builtin_tools.h"

/*
 * A new descriptor of the program, above the standard three, for the caller to close; it may be used
 * for any number of calls at once. -1: *reterr says why.
 */
int tci_program_fd(enum tci_program program, struct tc_error *reterr);

/* The loader that the kernel needs for a program ("/lib64/ld-linux-x86-64.so.2"); NULL: none. */
const char *tci_program_interpreter(enum tci_program program);

/* The same for bytes of any program: also the native backends' init. */
int tci_program_from_bytes(const char *name, const unsigned char *bytes, size_t length,
                           struct tc_error *reterr);
/* Is the shared object of a tool's handler there? */
int tci_program_check_library(const char *path, struct tc_error *reterr);
/* errno says why there is no file of memory for `what`; -1. */
int tci_program_no_memory_file(struct tc_error *reterr, const char *what);

#endif
