/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which engines, runtimes and monitors are installed: found in PATH and asked for their
 * version. That one answers shows that it starts here, not more; its words are shown, not parsed.
 */
#include "backend/probe.h"
#include "backend/probe_exec.h"
#include "backend/runsc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_LIMIT_MS = 3000, OUTPUT_MAX = 65536 };

/* In directories that an ordinary user's PATH lacks. */
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

/* What makes containers is found as the backends find it (oci/choose.c). */
static bool find(enum tci_feature id, const char *name, char ret_path[TCI_PROGRAM_PATH_MAX])
{
    const uint64_t runtimes = TCI_FEATURE_BIT(PODMAN) | TCI_FEATURE_BIT(CRUN) |
                              TCI_FEATURE_BIT(RUNC) | TCI_FEATURE_BIT(RUNSC);
    return runtimes >> id & 1 ? tci_runtime_find(name, ret_path) : tci_program_find(name, ret_path);
}

/* Finds a program and has it say its version. YES if it did; otherwise that is reported. */
static enum tci_feature_state version(const struct tci_probe *p, enum tci_feature id,
                                      const char *name, const char *remedy,
                                      char ret_path[TCI_PROGRAM_PATH_MAX], char *output)
{
    const char *const argv[] = { name, "--version", NULL };
    char elsewhere[TCI_FEATURE_REMEDY_MAX];
    struct tci_program_result r;
    if (!find(id, name, ret_path)) {
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

/* An ordinary user's Podman wants a run directory of his before it says anything, and a probe makes none:
 * that it is there is all that can be known without it. */
void tci_probe_podman(const struct tci_probe *p)
{
    char path[TCI_PROGRAM_PATH_MAX];
    if (geteuid() != 0 && tci_runtime_find("podman", path))
        tci_probe_yes(p, TCI_FEATURE_PODMAN, "%.90s", path);
    else
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

/* It refuses hosts with both versions of control groups, but not in the mounts that our stage gives
 * it, where none is to be seen. */
void tci_probe_crun(const struct tci_probe *p)
{
    plain(p, TCI_FEATURE_CRUN, "crun", "sudo apt install crun");
}

void tci_probe_runsc(const struct tci_probe *p)
{
    static const char remedy[] = "sudo apt install runsc (Debian), or install gVisor as its "
                                 "project's documentation says";
    const enum tci_feature id = TCI_FEATURE_RUNSC;
    char path[TCI_PROGRAM_PATH_MAX], output[OUTPUT_MAX];
    unsigned date;
    if (version(p, id, "runsc", remedy, path, output) != TCI_FEATURE_YES)
        return;
    date = tci_runsc_date(output);
    if (date >= TCI_RUNSC_OLDEST)
        tci_probe_yes(p, id, "%.80s (%.90s)", output, path);
    else if (date)
        tci_probe_no(p, id, "install a newer runsc", "%.60s (%.60s): older than %d", output, path,
                     TCI_RUNSC_OLDEST);
    else
        tci_probe_unknown(p, id, "install a release of gVisor", "%.80s: no release that is known",
                          output);
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
