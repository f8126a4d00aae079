/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: finding and running a program of the host from inside a probe. */
#ifndef TCI_BACKEND_PROBE_EXEC_H
#define TCI_BACKEND_PROBE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

enum { TCI_PROGRAM_PATH_MAX = 1024 };

/* The program in the directories of PATH that are absolute; relative ones are passed over, because
 * a working directory may hold whatever somebody planted there. So are programs that anybody but root and
 * the caller could have put there (program_find.c). */
bool tci_program_find(const char *name, char ret_path[TCI_PROGRAM_PATH_MAX]);
/* The same for container engines and runtimes, also where distributions put them and the PATH of an
 * ordinary user does not lead. */
bool tci_runtime_find(const char *name, char ret_path[TCI_PROGRAM_PATH_MAX]);

enum tci_program_end {
    TCI_PROGRAM_EXITED,    /* `status` is its exit status */
    TCI_PROGRAM_KILLED,    /* by a signal: `status` */
    TCI_PROGRAM_TOO_LATE,  /* killed by us at the time limit */
    TCI_PROGRAM_NOT_BEGUN, /* `status` is an errno */
};

struct tci_program_result {
    enum tci_program_end end;
    int status;
    size_t length; /* of the output; more than fits is thrown away */
};

enum tci_program_flag {
    TCI_PROGRAM_ERRORS_TOO = 1, /* keep error output, where warnings may precede an answer */
    TCI_PROGRAM_SETUID = 2,     /* it is a helper that gains privileges: do not hold it back */
    /* It makes mounts and files: both in a mount namespace of its own, with a /tmp and a /proc of its
     * own. Without one it is not begun. */
    TCI_PROGRAM_PRIVATE = 4,
};

/* Runs `path` with a clean environment and no input; what it writes is kept as text. It cannot
 * create or change files, unless it is a TCI_PROGRAM_SETUID helper or there is no Landlock. It and
 * all that it started are gone afterwards, and soon after the caller should that be killed.
 * `argv` includes the name and ends with NULL; `flags` are bits of enum tci_program_flag. */
struct tci_program_result tci_program_run(const char *path, const char *const argv[],
                                          unsigned flags, int limit_ms, char *output, size_t size);

#endif
