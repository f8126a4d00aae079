/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the tracer share.
 *
 *   trace.c          the thread: attach, follow, let go on; which call each process is in
 *   trace_calls.c    from a call that failed to who refused it (trace_calls.def)
 *   trace_memory.c   strings and paths of a process of the cage
 *   trace_path.c     paths: what the policy says about one that was refused
 *   trace_program.c  programs that may not start
 *   trace_network.c  sockets, addresses, and names that were looked up
 *   trace_filter.c   calls: what the filter says about one, and what the policy could
 *   trace_host.c     is there something at this path of the host?
 *   trace_list.c     the list of denials
 */
#ifndef TCI_BACKEND_NATIVE_TRACE_INTERNAL_H
#define TCI_BACKEND_NATIVE_TRACE_INTERNAL_H

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include "backend/native/run.h"
#include "backend/native/trace.h"
#include "base/path.h"

#if defined(__x86_64__)
#define TCI_TRACE_ARCH ((uint32_t)AUDIT_ARCH_X86_64)
#else
#define TCI_TRACE_ARCH ((uint32_t)AUDIT_ARCH_AARCH64)
#endif

enum {
    TCI_TRACE_NUMBERS = 512,                    /* of system calls; as in the filter's tables */
    TCI_TRACE_TEXT_MAX = 4 * TCI_PATH_MAX + 64, /* a path of which each byte is escaped */
    TCI_TRACE_RULE_MAX = 768,
    TCI_TRACE_SHOWN_MAX = 300, /* bytes of a path in a rule; a longer one is "it" */
};

/* ---- trace_list.c -------------------------------------------------------------------------------- */

struct tci_trace_list {
    struct tci_arena *arena;
    struct tc_denial denials[TCI_TRACE_DENIALS_MAX + 1];
    size_t count;
    size_t more; /* that did not fit; the same one may be counted twice */
    bool no_memory;
};

/* Adds what is not in it yet. `kind` is a constant; `target` is clean (below). */
void tci_trace_list_add(struct tci_trace_list *list, const char *kind, const char *target,
                        const char *rule);
/* The entry for what did not fit. */
void tci_trace_list_end(struct tci_trace_list *list);

/* Bytes of the cage as text that can be shown, quoted and told from any other: valid UTF-8 without
 * anything that controls or deceives a terminal; the rest, quotes and backslashes as \xNN. Cut at
 * `size`. Returns `buffer`. */
const char *tci_trace_clean(const char *bytes, size_t length, char *buffer, size_t size);

/* ---- trace_host.c -------------------------------------------------------------------------------- */

struct tci_trace_mount {
    const char *path;
    bool is_local;
};

/* Where the host's file systems are; read once, when the trace begins. */
struct tci_trace_host {
    struct tci_trace_mount *mounts;
    size_t count;
};

/* From the text of /proc/self/mountinfo. -1: out of memory. */
int tci_trace_host_parse(struct tci_arena *arena, const char *text, struct tci_trace_host *ret);
int tci_trace_host_read(struct tci_arena *arena, struct tci_trace_host *ret);
/* Is there something? `path` is in normal form. False also when it cannot be known cheaply. */
bool tci_trace_host_has(const struct tci_trace_host *host, const char *path);

/* ---- trace.c ------------------------------------------------------------------------------------- */

/* A thread of the cage, and the call that it is in. */
struct tci_tracee {
    int id;
    bool in_call;
    struct seccomp_data call; /* as the filter saw it */
    int name_socket;          /* connected to where a name server would be; -1: none */
    struct seccomp_data
        held; /* a socket() of which is not clear yet what it was for; nr -1: none */
    int held_error;
};

struct tci_trace {
    const struct tc_plan *plan;
    int init;          /* until it has started the command */
    bool is_preparing; /* the command's process still is init's code: only execve is its own */
    pthread_t thread;
    bool joined;
    sem_t attached;
    int attach_error; /* errno */
    struct tci_tracee *tracees;
    size_t tracee_count, tracee_room;
    uint8_t first_row[TCI_TRACE_NUMBERS]; /* in trace_calls.def, from 1; 0: none */
    struct tci_arena *arena;
    struct tci_trace_host host;
    struct tci_trace_list list;
    /* Room to work in; a thread's stack is small. */
    char path[2 * TCI_PATH_MAX + 2], base[TCI_PATH_MAX + 1], normal[TCI_PATH_MAX + 1];
    char target[TCI_TRACE_TEXT_MAX], other[TCI_TRACE_TEXT_MAX], rule[TCI_TRACE_RULE_MAX];
};

/* ---- trace_calls.c ------------------------------------------------------------------------------- */

void tci_trace_calls_prepare(struct tci_trace *trace);
/* The call of `tracee` is over; `result` is a negative errno when it failed. */
void tci_trace_call_ended(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result);
/* The tracee died of SIGSYS: perhaps because of its last call. */
void tci_trace_call_killed(struct tci_trace *trace, const struct tci_tracee *tracee);

/* ---- trace_memory.c ------------------------------------------------------------------------------ */

/* Bytes of a tracee's memory; how many could be read, which may be fewer. */
size_t tci_trace_read(int id, uint64_t address, void *buffer, size_t size);
/* What a link in /proc/ID says ("cwd", "fd/3"), when it is a path that is still there. */
bool tci_trace_link(int id, const char *name, char buffer[TCI_PATH_MAX + 1]);
/* "fd/N" for an argument that is a descriptor. */
bool tci_trace_descriptor(int id, uint64_t fd, char buffer[TCI_PATH_MAX + 1]);

enum { TCI_TRACE_NO_DIRECTORY = -1 };

/*
 * The path that an argument names, absolute and in normal form, into trace->normal; a relative one is
 * below the directory argument number `directory`, or the working directory. False: it is not known.
 * *ret_exact: no ".." follows a name, which could be a link.
 */
bool tci_trace_argument_path(struct tci_trace *trace, const struct tci_tracee *tracee,
                             int directory, int path, bool *ret_exact);
/* The normal form of base/path: "//", "." and ".." are worked out on the text. */
bool tci_trace_normalise(const char *base, const char *path, char buffer[TCI_PATH_MAX + 1],
                         bool *ret_exact);

/* ---- trace_path.c -------------------------------------------------------------------------------- */

enum tci_trace_access { TCI_TRACE_READ, TCI_TRACE_WRITE, TCI_TRACE_MAKE, TCI_TRACE_EXEC };

/* What was tried with a path in normal form, and the errno that it got. */
struct tci_trace_attempt {
    enum tci_trace_access access;
    const char *path;
    int error;
    bool exact;
    bool is_question;   /* it is only asked whether it is there */
    bool is_one_of_two; /* paths of a call: who of them was refused is not known */
};
void tci_trace_path(struct tci_trace *trace, const struct tci_trace_attempt *attempt);
/* Does the policy allow it? Otherwise `rule` says which key decides and what it would take. */
bool tci_trace_path_allowed(const struct tci_settings *settings, const struct tci_trace_host *host,
                            enum tci_trace_access access, const char *path,
                            char rule[TCI_TRACE_RULE_MAX]);
/* A full disk, or a file that is too large. */
void tci_trace_full(struct tci_trace *trace, const char *path, int error);

/* ---- trace_program.c ----------------------------------------------------------------------------- */

/* Is a program that the kernel would not start or map one that `commands` does not list? Then `rule`
 * says so; otherwise what else there is to say. */
void tci_trace_program_rule(const struct tc_plan *plan, const char *path,
                            char rule[TCI_TRACE_RULE_MAX]);

/* ---- trace_network.c ----------------------------------------------------------------------------- */

/* The C library asks a service for users, groups and hosts, and reads the files when it is refused a
 * socket. Then it was for that; a refused socket is held back until the next path is known. */
void tci_trace_socket_hold(struct tci_trace *trace, struct tci_tracee *tracee, int error);
/* What the thread looked at next; NULL: it ended. */
void tci_trace_socket_release(struct tci_trace *trace, struct tci_tracee *tracee, const char *path);
/* connect, sendto (address and length are arguments), and sendmsg, sendmmsg (in memory). */
void tci_trace_address(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result, int at,
                       int length);
void tci_trace_message(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result);
/* Bytes that were written to a socket which is connected to where a name server would be. */
void tci_trace_question(struct tci_trace *trace, const struct tci_tracee *tracee, uint64_t address,
                        uint64_t length);
/* The name that a packet asks a name server for, as "a.example"; false: it is no such packet. */
bool tci_trace_question_name(const unsigned char *packet, size_t length, char *buffer, size_t size);

/* ---- trace_filter.c ------------------------------------------------------------------------------ */

/* What a filter answers: SECCOMP_RET_*. A program that is broken answers KILL_PROCESS. */
uint32_t tci_trace_filter_run(const struct tci_filter *filter, const struct seccomp_data *data);
/* Was it the filter of the plan that gave this errno? */
bool tci_trace_filter_refused(const struct tc_plan *plan, const struct seccomp_data *data,
                              int error);
/* What it would take to have the call. */
void tci_trace_filter_rule(const struct tc_plan *plan, const struct seccomp_data *data,
                           char rule[TCI_TRACE_RULE_MAX]);

#endif
