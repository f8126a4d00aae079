/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: is there a service manager to talk to? Connects to its private socket and hangs up. */
#include "backend/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* 0 or an errno. */
static int try_socket(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int problem = 0, fd;
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        problem = errno;
    (void)close(fd);
    return problem;
}

void tci_probe_systemd(const struct tci_probe *p)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool booted = access("/run/systemd/system", F_OK) == 0;
    char path[128];
    int problem;
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
    problem = try_socket(path);
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
