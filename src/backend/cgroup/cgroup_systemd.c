/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: asking systemd for a scope: a group of its own for this process, with the right to make
 * groups below it (Delegate=yes). Used only where nothing else works. Talks to the manager's private
 * socket, the system's for root and the user's own for everybody else.
 *
 * The process to move is named as 0, "the one who asks": systemd takes its id from the socket. An id
 * that we wrote ourselves would name a stranger if we were in another pid namespace.
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/cgroup/cgroup_bus.h"
#include "backend/probe_cgroup.h"
#include "base/fd.h"

static void begin_property(struct tci_bus_data *data, const char *name, const char *type)
{
    tci_bus_pad(data, 8);
    tci_bus_string(data, name);
    tci_bus_signature(data, type);
}

/* The arguments of StartTransientUnit: name, mode, properties, other units. */
static void encode_scope(struct tci_bus_data *data, const char *unit)
{
    size_t properties[2], ids[2], units[2];
    tci_bus_string(data, unit);
    tci_bus_string(data, "fail");
    tci_bus_array_begin(data, 8, properties);
    begin_property(data, "Description", "s");
    tci_bus_string(data, "toolcage: control groups for cages");
    begin_property(data, "PIDs", "au");
    tci_bus_array_begin(data, 4, ids);
    tci_bus_u32(data, 0);
    tci_bus_array_end(data, ids);
    begin_property(data, "Delegate", "b");
    tci_bus_u32(data, 1);
    begin_property(data, "CollectMode", "s");
    tci_bus_string(data, "inactive-or-failed");
    tci_bus_array_end(data, properties);
    tci_bus_array_begin(data, 8, units);
    tci_bus_array_end(data, units);
}

int tci_cgroup_systemd_call(int fd, const char *unit, int64_t until_ms)
{
    struct tci_bus_data body = { .used = 0 };
    const struct tci_bus_call call = {
        .destination = "org.freedesktop.systemd1",
        .path = "/org/freedesktop/systemd1",
        .interface = "org.freedesktop.systemd1.Manager",
        .member = "StartTransientUnit",
        .signature = "ssa(sv)a(sa(sv))",
        .body = &body,
        .serial = 1,
    };
    encode_scope(&body, unit);
    return tci_bus_call(fd, &call, until_ms);
}

int tci_cgroup_systemd_ask(int fd, const char *unit, int64_t until_ms)
{
    int problem = tci_bus_sign_in(fd, until_ms);
    return problem ? problem : tci_cgroup_systemd_call(fd, unit, until_ms);
}

static int connect_manager(int *ret)
{
    char path[128] = "/run/systemd/private"; /* longer than any path of a socket */
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    int n = 0;
    if (geteuid() != 0 && runtime && runtime[0] == '/')
        n = snprintf(path, sizeof path, "%s/systemd/private", runtime);
    else if (geteuid() != 0)
        n = snprintf(path, sizeof path, "/run/user/%u/systemd/private", geteuid());
    if (n < 0 || (size_t)n >= sizeof path)
        return ENAMETOOLONG;
    *ret = tci_unix_connect(path);
    return *ret < 0 ? errno : 0;
}

/* systemd answers before it has moved us. We may be in a leaf below already, by another thread. */
static int wait_moved(const char *unit, int64_t until_ms)
{
    struct tci_cgroup_place place;
    size_t length = strlen(unit);
    do {
        const char *at = tci_cgroup_find(NULL, &place) ? NULL : strstr(place.directory, unit);
        if (at && at[-1] == '/' && (at[length] == '\0' || at[length] == '/'))
            return 0;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    } while (tci_cgroup_now_ms() < until_ms);
    return ETIMEDOUT;
}

int tci_cgroup_systemd_scope(const struct tci_cgroup_owner *owner, int deadline_ms)
{
    int64_t until_ms = tci_cgroup_now_ms() + deadline_ms;
    char unit[64];
    int fd = -1, problem;
    if (access("/run/systemd/system", F_OK) < 0)
        return ENOENT;
    problem = connect_manager(&fd);
    if (problem)
        return problem;
    /* One name for one process: a second thread that asks is told that there is one already. */
    (void)snprintf(unit, sizeof unit, "toolcage-%d-%llu.scope", (int)owner->pid,
                   (unsigned long long)owner->started);
    problem = tci_cgroup_systemd_ask(fd, unit, until_ms);
    (void)close(fd);
    return problem && problem != EEXIST ? problem : wait_moved(unit, until_ms);
}
