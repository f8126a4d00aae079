/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: is there a service manager to talk to? Connects to its private socket and hangs up. */
#include "backend/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"

void tci_probe_systemd(const struct tci_probe *p)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool booted = access("/run/systemd/system", F_OK) == 0;
    char path[128];
    int fd, problem;
    if (!booted) {
        tci_probe_no(p, TCI_FEATURE_SYSTEMD, "optional: informational only",
                     "systemd does not run this host");
        return;
    }
    if (geteuid() == 0)
        (void)snprintf(path, sizeof path, "/run/systemd/private");
    else if (runtime && runtime[0] == '/')
        (void)snprintf(path, sizeof path, "%.80s/systemd/private", runtime);
    else
        (void)snprintf(path, sizeof path, "/run/user/%u/systemd/private", geteuid());
    fd = tci_unix_connect(path);
    problem = fd < 0 ? errno : 0;
    (void)tci_close(fd);
    if (!problem)
        tci_probe_yes(p, TCI_FEATURE_SYSTEMD, "%s manager answers",
                      geteuid() == 0 ? "the system" : "the user's");
    else if (problem == ENOENT || problem == ECONNREFUSED || problem == EACCES)
        tci_probe_no(p, TCI_FEATURE_SYSTEMD,
                     geteuid() == 0 ? "optional: informational only"
                                    : "sudo loginctl enable-linger $USER, then log in again",
                     "no manager at %s: %s", path, strerrordesc_np(problem));
    else
        tci_probe_refused(p, TCI_FEATURE_SYSTEMD, NULL, path, problem);
}
