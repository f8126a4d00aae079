/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a profile to a BPF program. The profiles are tables (syscalls.def and its neighbours,
 * arguments.def) with a reason for each group; here they become a balanced tree over ranges of
 * system call numbers, because the kernel walks the program once for every number when it is
 * installed. Both architectures can be compiled on either.
 *
 * Answers: foreign architectures and x32 kill the process; calls that are known and not allowed get
 * EPERM, or ENOSYS where programs then use an older call; calls that are newer than our tables get
 * ENOSYS.
 */
#ifndef TCI_BACKEND_FILTER_H
#define TCI_BACKEND_FILTER_H

#include <linux/filter.h>
#include <stdint.h>
#include "base/error.h"
#include "policy/model.h"

/*
 * What a backend needs beyond the profile, because another wall is missing. Bits. `allow` cannot
 * undo them. What exactly each one takes away is in syscalls_narrow.def.
 */
enum {
    /* No socket of any family, not even a pair (process). */
    TCI_FILTER_NO_SOCKETS = 1,
    /* truncate(), and O_TRUNC without opening for writing: Landlock before version 3. */
    TCI_FILTER_NO_TRUNCATE = 2,
    /* setsid, setpgid, PR_SET_PDEATHSIG: nobody gets out of reach of the end. */
    TCI_FILTER_KEEP_GROUP = 4,
    /*
     * Neither a pid namespace nor Landlock's signal scope (version 6): of all signals only
     * kill(0, ...) is left, and that is the own process group, so the cage must have one of its
     * own. A filter does not know its process's id, therefore tgkill(own id) is refused, too:
     * raise() fails, and abort() ends with SIGSEGV (x86_64) or SIGILL (aarch64), not SIGABRT.
     */
    TCI_FILTER_NO_SIGNALS = 8,
    /* sched_setaffinity: pinned to its processors. */
    TCI_FILTER_KEEP_CPUS = 16,
    /* network = "host": the same families, nothing more. */
    TCI_FILTER_HOST_NETWORK = 32,
    /* No pid namespace: limits and priorities of other processes (prlimit64 can kill). */
    TCI_FILTER_SELF_ONLY = 64,
    /* No mounts of the cage's own: what Landlock does not rule (mode, owner, times, attributes,
     * inotify) would reach every file of the host. */
    TCI_FILTER_LANDLOCK_GAPS = 128,
    /* An exec allowlist: Landlock does not rule programs that live in a memfd. */
    TCI_FILTER_NO_MEMFD = 256,
    /* No ipc namespace. */
    TCI_FILTER_NO_IPC = 512,
    /* Sockets of the host could be reached: see tci_filter_reaches_unix. */
    TCI_FILTER_NO_UNIX = 1024,
    /* Memory is limited by the address space: nothing that holds memory outside of it. */
    TCI_FILTER_COUNT_MEMORY = 2048,

    /* All that a backend without any namespace needs, whatever its Landlock can do. */
    TCI_FILTER_NO_NAMESPACES = TCI_FILTER_SELF_ONLY | TCI_FILTER_LANDLOCK_GAPS | TCI_FILTER_NO_IPC
};

/* Could a cage with mounts of its own reach a unix socket of the host? The attack: it lies in a directory that
 * is granted; or, with the host's network, it has an abstract name, which no path and no mount rules, and D-Bus or
 * an agent on it takes the tool for its user. */
static inline bool tci_filter_reaches_unix(const struct tci_settings *s)
{
    return s->filesystem.count || s->rootfs || s->network.mode == TCI_NETWORK_HOST;
}

struct tci_filter_spec {
    const struct tci_syscalls *syscalls; /* profile, allow, deny */
    unsigned flags;
    uint32_t arch; /* AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64; 0: this machine's */
};

struct tci_filter {
    struct sock_filter *code;
    unsigned short count;
};

/*
 * An error is: an unknown name in `allow` or `deny`; one in `allow` that may never be allowed, or
 * that a flag takes away; `deny` of execve, without which the command could not start. *ret is set
 * on success only, and the caller frees it.
 */
int tci_filter_compile(const struct tci_filter_spec *spec, struct tci_filter *ret,
                       struct tc_error *reterr);
void tci_filter_free(struct tci_filter *filter);

/* The name of a system call ("openat"); NULL: not in our tables. `arch` as above. */
const char *tci_filter_call_name(uint32_t arch, uint32_t number);

#endif
