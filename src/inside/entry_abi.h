/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what toolcage and its first program in a container say to each other.
 *
 * Whatever makes the container (runc, crun, runsc, Podman, Docker), its first process is `toolcage-entry`,
 * and that one has a stream socket to the supervisor. It says hello, and waits. Then it gets everything
 * that belongs to one call: argv, environment, limits, the system call filter and the descriptors of the
 * streams. It starts the command as its child, ends the rest when that one ends, and reports. Nothing of a
 * model has run in the container before the call came, so a container can be made in advance; and when the
 * supervisor is gone, the socket ends and with it the container, whoever made it.
 */
#ifndef TCI_INSIDE_ENTRY_ABI_H
#define TCI_INSIDE_ENTRY_ABI_H

#include <stdint.h>

/* Where it lies in a container. A directory of ours; nothing of an image is visible at it. Engines, which
 * follow links of the image, mount it at this and a dash and 16 digits (api.h). */
#define TCI_ENTRY_DIRECTORY "/.toolcage"
#define TCI_ENTRY_PROGRAM   TCI_ENTRY_DIRECTORY "/entry"
#define TCI_ENTRY_SOCKET    "/control" /* in it, engines: it connects to this */
#define TCI_ENTRY_BROUGHT   "/program" /* in it: a built-in tool's program (enum tci_program) */

/*
 * Its own argv: { "entry", HOW }.
 *   "fd:N"        the socket is descriptor N (3: runc and crun with --preserve-fds 1; 0: runsc), and its
 *                 directory TCI_ENTRY_DIRECTORY
 *   "/DIRECTORY"  that one is its directory; it connects to the socket there, for at most 10 s
 */

enum {
    TCI_ENTRY_MAGIC = 0x74636531, /* "tce1" */
    TCI_ENTRY_BYTES_MAX = 4 << 20,
    TCI_ENTRY_LIMITS_MAX = 16,
    TCI_ENTRY_GROUPS_MAX = 8,
};

/* Supervisor to entry, once. The descriptors come with the first byte: stdin, stdout, stderr, and files of
 * control groups: entry writes "0" to each of these, closes them, and then starts the command. It goes there by
 * itself because that is cheap: to move somebody else, the kernel waits for every processor. */
enum {
    TCI_ENTRY_HOLD = 1,     /* after the report stay, until a byte or the end of the socket */
    TCI_ENTRY_TERMINAL = 2, /* stdin is a terminal's slave: it becomes the controlling one */
    TCI_ENTRY_BRING = 4,    /* start TCI_ENTRY_BROUGHT instead of looking up argv[0] */
    TCI_ENTRY_NO_NEW_PRIVS = 8,
};

struct tci_entry_limit {
    uint32_t resource, unused;
    uint64_t value; /* soft and hard; never raised above what the container has */
};

struct tci_entry_start {
    uint32_t magic, flags;
    uint32_t length;       /* of what follows this struct */
    uint32_t limit_count;  /* struct tci_entry_limit, first */
    uint32_t filter_count; /* struct sock_filter (8 bytes each); 0: none */
    uint32_t env_count, arg_count;
    uint32_t group_count; /* descriptors behind the three streams */
    /* Where files may be opened for writing, by Landlock; 0: wherever the mounts let it. A read-only mount
     * does not keep anybody from writing into a named pipe of the host that lies in it. */
    uint32_t place_count;
    uint32_t unused;
    /* limits, filter, then strings, each with its NUL: the directory to start in, places, env, argv */
};

enum tci_entry_kind {
    TCI_ENTRY_HELLO = 1,   /* with an O_PATH handle of "/" where that can be handed over */
    TCI_ENTRY_STARTED,     /* the command's execve succeeded */
    TCI_ENTRY_NOT_STARTED, /* status: errno of execve */
    TCI_ENTRY_ENDED,  /* status as wait(2) gives it; nobody but entry is left in the container */
    TCI_ENTRY_BROKEN, /* step, and status: errno */
};

enum tci_entry_step {
#define TCI_ENTRY_STEPS(X)                                                                         \
    X(NONE, "nothing")                                                                             \
    X(MESSAGE, "reading what to start")                                                            \
    X(GROUP, "entering the control group")                                                         \
    X(STREAMS, "taking the streams")                                                               \
    X(TERMINAL, "taking the terminal")                                                             \
    X(LIMIT, "setting a limit")                                                                    \
    X(DIRECTORY, "entering the working directory")                                                 \
    X(PRIVILEGES, "giving up privileges")                                                          \
    X(PLACES, "closing what may only be read")                                                     \
    X(FILTER, "installing the system call filter")                                                 \
    X(FORK, "starting a process")
#define X(id, text) TCI_ENTRY_STEP_##id,
    TCI_ENTRY_STEPS(X)
#undef X
};

/* Entry to supervisor. */
struct tci_entry_report {
    uint32_t magic, kind;
    int32_t status;
    uint32_t step;
    /* ENDED: of the command and its waited-for children. */
    uint64_t cpu_us, memory_peak, bytes_written;
};

#endif
