/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which engines, runtimes and monitors are installed: found in PATH and asked for their
 * version. That one answers shows that it starts here, not more; its words are shown, not parsed.
 */
#include "backend/probe.h"
#include "backend/probe_cgroup.h"
#include "backend/probe_exec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_LIMIT_MS = 3000, FLAGS_LIMIT_MS = 400, OUTPUT_MAX = 65536 };

/* In directories that an ordinary user's PATH lacks, and where Debian puts runc. */
static bool find_outside_path(const char *name, char *ret_remedy, size_t size)
{
    static const char *const directories[] = { "/usr/sbin", "/usr/local/sbin", "/usr/bin",
                                               "/usr/local/bin" };
    char path[TCI_PROGRAM_PATH_MAX];
    for (size_t i = 0; i < tci_array_size(directories); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directories[i], name);
        if (access(path, X_OK) == 0) {
            (void)snprintf(ret_remedy, size, "PATH=$PATH:%s", directories[i]);
            return true;
        }
    }
    return false;
}

/* The first line of some output, blanks at its end removed. */
static void first_line(char *text)
{
    size_t n = strcspn(text, "\r\n");
    while (n && text[n - 1] == ' ')
        n--;
    text[n] = '\0';
}

/* Finds a program and has it say its version. YES if it did; otherwise that is reported. */
static enum tci_feature_state version(const struct tci_probe *p, enum tci_feature id,
                                      const char *name, const char *remedy,
                                      char ret_path[TCI_PROGRAM_PATH_MAX], char *output)
{
    const char *const argv[] = { name, "--version", NULL };
    char elsewhere[TCI_FEATURE_REMEDY_MAX];
    struct tci_program_result r;
    if (!tci_program_find(name, ret_path)) {
        if (find_outside_path(name, elsewhere, sizeof elsewhere))
            tci_probe_no(p, id, elsewhere, "%s is installed, but not in PATH", name);
        else
            tci_probe_no(p, id, remedy, "%s is not in PATH", name);
        return TCI_FEATURE_NO;
    }
    r = tci_program_run(ret_path, argv, 0, VERSION_LIMIT_MS, output, OUTPUT_MAX);
    first_line(output);
    switch (r.end) {
    case TCI_PROGRAM_EXITED:
        if (r.status == 0 && output[0])
            return TCI_FEATURE_YES;
        tci_probe_unknown(p, id, remedy, "%.100s --version: exit status %d, %s", ret_path, r.status,
                          output[0] ? "with output" : "no output");
        break;
    case TCI_PROGRAM_KILLED:
        tci_probe_unknown(p, id, remedy, "%.100s --version: died of signal %d", ret_path, r.status);
        break;
    case TCI_PROGRAM_TOO_LATE:
        tci_probe_unknown(p, id, remedy, "%.100s --version: no answer within %d ms", ret_path,
                          VERSION_LIMIT_MS);
        break;
    case TCI_PROGRAM_NOT_BEGUN:
        tci_probe_refused(p, id, NULL, ret_path, r.status);
        break;
    }
    return TCI_FEATURE_UNKNOWN;
}

static void plain(const struct tci_probe *p, enum tci_feature id, const char *name,
                  const char *remedy)
{
    char path[TCI_PROGRAM_PATH_MAX], output[OUTPUT_MAX];
    if (version(p, id, name, remedy, path, output) == TCI_FEATURE_YES)
        tci_probe_yes(p, id, "%.80s (%.90s)", output, path);
}

void tci_probe_podman(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_PODMAN, "podman", "sudo apt install podman uidmap slirp4netns");
}

void tci_probe_docker(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_DOCKER, "docker", "sudo apt install docker.io");
}

void tci_probe_runc(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_RUNC, "runc", "sudo apt install runc");
}

/* crun does not run where both versions of control groups are mounted. It says so only when asked
 * to run something, which would leave traces: so the answer there is "not found out". */
void tci_probe_crun(const struct tci_probe *p)
{
    char path[TCI_PROGRAM_PATH_MAX], output[OUTPUT_MAX];
    struct tci_cgroup_kinds kinds;
    int problem;
    if (version(p, TCI_FEATURE_CRUN, "crun", "sudo apt install crun", path, output) !=
        TCI_FEATURE_YES)
        return;
    problem = tci_cgroup_kinds(&kinds);
    if (problem)
        tci_probe_refused(p, TCI_FEATURE_CRUN, NULL, "looking for control groups", problem);
    else if (kinds.v1 && kinds.v2)
        tci_probe_unknown(p, TCI_FEATURE_CRUN,
                          "use runc here, or boot with systemd.unified_cgroup_hierarchy=1",
                          "%.60s (%.60s); crun refuses hybrid control groups", output, path);
    else
        tci_probe_yes(p, TCI_FEATURE_CRUN, "%.80s (%.90s)", output, path);
}

void tci_probe_runsc(const struct tci_probe *p)
{
    const char *const argv[] = { "runsc", "flags", NULL };
    static const char remedy[] = "sudo apt install runsc (Debian), or install gVisor as its "
                                 "project's documentation says";
    char path[TCI_PROGRAM_PATH_MAX], output[OUTPUT_MAX];
    enum tci_feature_state state;
    struct tci_program_result r;
    state = version(p, TCI_FEATURE_RUNSC, "runsc", remedy, path, output);
    if (state == TCI_FEATURE_NO)
        tci_probe_no(p, TCI_FEATURE_RUNSC_SECCOMP, "see runsc", "there is no runsc");
    else if (state == TCI_FEATURE_UNKNOWN)
        tci_probe_unknown(p, TCI_FEATURE_RUNSC_SECCOMP, "see runsc", "no working runsc");
    if (state != TCI_FEATURE_YES)
        return;
    tci_probe_yes(p, TCI_FEATURE_RUNSC, "%.80s (%.90s)", output, path);
    r = tci_program_run(path, argv, TCI_PROGRAM_ERRORS_TOO, FLAGS_LIMIT_MS, output, sizeof output);
    if (r.end != TCI_PROGRAM_EXITED || r.status != 0)
        tci_probe_unknown(p, TCI_FEATURE_RUNSC_SECCOMP, NULL, "runsc does not list its flags");
    else if (strstr(output, "-oci-seccomp"))
        tci_probe_yes(p, TCI_FEATURE_RUNSC_SECCOMP, "runsc has --oci-seccomp");
    else
        tci_probe_no(p, TCI_FEATURE_RUNSC_SECCOMP, "install a newer runsc",
                     "runsc has no --oci-seccomp");
}

void tci_probe_qemu(const struct tci_probe *p)
{
#if defined(__aarch64__)
    plain(p, TCI_FEATURE_QEMU, "qemu-system-aarch64", "sudo apt install qemu-system-arm");
#else
    plain(p, TCI_FEATURE_QEMU, "qemu-system-x86_64", "sudo apt install qemu-system-x86");
#endif
}

void tci_probe_firecracker(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_FIRECRACKER, "firecracker",
          "not packaged by Debian or Ubuntu: take the program from the releases page of the "
          "Firecracker project and put it into a directory of PATH");
}

void tci_probe_wasmtime(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_WASMTIME, "wasmtime",
          "optional, not packaged by Debian or Ubuntu: take it from the releases page of the "
          "Wasmtime project");
}
