/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how a probe runs. A probe is a function that is called in a forked child with a time
 * limit; it reports on each of its features as soon as it knows, in fixed-size records over a
 * pipe. Whatever becomes of the child, the parent kills its process group, reaps it, and sets
 * features without a record to UNKNOWN. What the child's own children leave falls to it (it is a
 * subreaper) and is killed before it ends.
 */
#ifndef TCI_BACKEND_PROBE_H
#define TCI_BACKEND_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/attr.h"
#include "backend/host.h"

#define TCI_FEATURE_BIT(id) (UINT64_C(1) << (TCI_FEATURE_##id))

/* What a probe function is given. */
struct tci_probe {
    int fd;          /* records go here */
    uint64_t wanted; /* bits: what is asked for; a probe may leave out the rest */
    char unique[48]; /* a name for what the probe must create where others can see it */
};

typedef void tci_probe_function(const struct tci_probe *probe);

struct tci_probe_job {
    const char *name;
    tci_probe_function *run;     /* in the child; ends by returning */
    tci_probe_function *cleanup; /* in the parent, afterwards; may be NULL: nothing can be left */
    int limit_ms;
    uint64_t features; /* bits: the child may report on these and no others */
};

/* Runs all jobs side by side and writes their features into `report`. */
void tci_probe_jobs(const struct tci_probe_job *jobs, size_t count, struct tci_host_report *report);

/* ---- in the child ------------------------------------------------------------------------ */

/* Report on a feature; the first report on each one counts. */
void tci_probe_yes(const struct tci_probe *probe, enum tci_feature id, const char *detail, ...)
    tci_printf_like(3, 4);
void tci_probe_no(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                  const char *detail, ...) tci_printf_like(4, 5);
void tci_probe_unknown(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                       const char *detail, ...) tci_printf_like(4, 5);

/* Is it the caller's own limits that are in the way, and not the host? Then nothing is known. */
bool tci_probe_is_shortage(int problem);

/* NO because of `problem`, or UNKNOWN if that is a shortage, with a remedy for that. */
void tci_probe_failed(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                      int problem, const char *detail, ...) tci_printf_like(5, 6);

/* `what` failed with `problem`: NO for the ways in which a kernel, a filter or a security module
 * says that something cannot be had, UNKNOWN for any other, which nobody expected. */
void tci_probe_refused(const struct tci_probe *probe, enum tci_feature id, const char *remedy,
                       const char *what, int problem);

/* Forks; the child dies with its parent and is in the probe's process group. */
pid_t tci_probe_fork(void);

/* Kills and reaps all descendants of a subreaper, in bounded time. */
void tci_probe_end_descendants(void);

/* Waits for a child made by tci_probe_fork(): its exit status, or -1 if it died of a signal. */
int tci_probe_wait(pid_t pid);

/* Writes one string into a file that exists; 0 or an errno. */
int tci_probe_write_file(int directory, const char *path, const char *text);

/* Reads the start of a file as text; its length, or -1 with errno set. */
ssize_t tci_probe_read_file(int directory, const char *path, char *buffer, size_t size);

/* A number from a file below /proc/sys, or -1 when there is no such file. */
long tci_probe_sysctl(const char *path);

/* Is a seccomp filter in force already, as in most containers? */
bool tci_probe_is_filtered(void);

/* Enters a new user namespace as its root. 0, or an errno; `ret_step` says what failed. */
int tci_probe_enter_userns(const char **ret_step);

/* For probes that need capabilities: a user namespace, or, where there is none, the privileges
 * that the process has. 0, or an errno if there is neither, and `ret_why` says why. */
int tci_probe_gain_capabilities(char *ret_why, size_t size);

/* ---- the probes --------------------------------------------------------------------------- */

tci_probe_function tci_probe_calls;            /* probe_calls.c */
tci_probe_function tci_probe_user_namespace;   /* probe_userns.c */
tci_probe_function tci_probe_process_limit;    /* probe_userns.c */
tci_probe_function tci_probe_other_namespaces; /* probe_namespaces.c */
tci_probe_function tci_probe_privileged;       /* probe_namespaces.c */
tci_probe_function tci_probe_mounts;           /* probe_mounts.c */
tci_probe_function tci_probe_overlay;          /* probe_overlay.c */
tci_probe_function tci_probe_idmapped;         /* probe_idmapped.c */
tci_probe_function tci_probe_seccomp;          /* probe_seccomp.c */
tci_probe_function tci_probe_landlock;         /* probe_landlock.c */
tci_probe_function tci_probe_cgroup;           /* probe_cgroup.c */
tci_probe_function tci_probe_cgroup_cleanup;   /* probe_cgroup.c */
tci_probe_function tci_probe_systemd;          /* probe_systemd.c */
tci_probe_function tci_probe_gate_local_route; /* probe_gate.c */
tci_probe_function tci_probe_gate_redirect;    /* probe_redirect.c */
tci_probe_function tci_probe_kvm;              /* probe_kvm.c */
tci_probe_function tci_probe_subid;            /* probe_subid.c */
tci_probe_function tci_probe_docker_daemon;    /* probe_docker.c */
tci_probe_function tci_probe_libwasmtime;      /* probe_wasm.c */

/* probe_programs.c */
tci_probe_function tci_probe_podman, tci_probe_docker, tci_probe_crun, tci_probe_runc;
tci_probe_function tci_probe_runsc, tci_probe_qemu, tci_probe_firecracker, tci_probe_wasmtime;

#endif
