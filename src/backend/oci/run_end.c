/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the end of a call in a container, and what can be asked about it meanwhile. */
#include "backend/oci/run_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

bool tci_oci_is_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* ---- end ------------------------------------------------------------------------------------------ */

void tci_oci_kill(struct tc_run *run)
{
    if (!run->killed_us) {
        tci_oci_watch_last(run); /* nobody will be there to be asked */
        run->was_lost = run->cage->failed;
        run->killed_us = tci_clock_us();
    }
    if (!run->last.kind || !run->hold)
        tci_oci_cage_kill(run->cage);
    (void)tci_oci_watch_timer(run, NULL); /* somebody looks soon, whatever the engine does */
}

void tci_oci_destroy(struct tc_run *run)
{
    if (!run)
        return;
    tci_oci_drop_streams(run);
    tci_buf_free(&run->message);
    tci_watch_end(&run->watch);
    (void)tci_close(run->epoll);
    if (run->is_counted)
        tci_oci_count_call(run->plan, -1);
    if (run->cage) {
        /* Who is held may leave. A byte, because a child of the host may have the socket as well. */
        if (run->cage->control >= 0)
            (void)send(run->cage->control, "h", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        tci_gate_free(
            tc_take(run->cage->gate)); /* its records are told to a call that is about to go */
        if (run->last.kind)
            tci_oci_bury(run->cage);
        else
            tci_oci_cage_free(run->cage);
    }
    free(run);
}

/* ---- the small ones ------------------------------------------------------------------------------- */

const struct tci_gate_record *tci_oci_network(const struct tc_run *run, size_t *ret_count,
                                              uint64_t *ret_dropped)
{
    *ret_count = 0;
    *ret_dropped = 0;
    return run->cage->gate ? tci_gate_records(run->cage->gate, ret_count, ret_dropped) : NULL;
}

int tci_oci_fd(const struct tc_run *run)
{
    return run->epoll;
}

/* There is no tracer: see check_io(). */
int tci_oci_pid(const struct tc_run *run)
{
    return run->cage->pid;
}

void tci_oci_go(struct tc_run *run)
{
    (void)run;
}

const char *tci_oci_layers(const struct tc_run *run)
{
    return run->plan->layers;
}

const char *tci_oci_sandbox_id(const struct tc_run *run)
{
    return run->cage->id;
}

/* "Uid:\t1000\t1000\t1000\t1000": the last counts for files. */
static bool read_file_id(const char *status, const char *name, unsigned *ret)
{
    const char *at = strstr(status, name);
    unsigned long id = 0;
    if (!at)
        return false;
    at += strlen(name);
    for (int i = 0; i < 4; i++) {
        char *end;
        id = strtoul(at, &end, 10);
        if (end == at || id > UINT32_MAX)
            return false;
        at = end;
    }
    *ret = (unsigned)id;
    return true;
}

/* Entry is whoever the command was. In an engine that is the engine's affair, and the image's if the policy gave a
 * name: so it is asked. Who cannot be asked could read what all can. */
struct tci_file_reader tci_oci_reader(const struct tc_run *run)
{
    const struct tci_oci_plan *plan = run->plan;
    struct tci_file_reader reader = { .is_known = true,
                                      .uid = plan->host_uid,
                                      .gid = plan->host_gid };
    char path[64], status[4096];
    unsigned uid = UINT32_MAX, gid = UINT32_MAX;
    tc_cleanup(tci_closep) int fd = -1;
    ssize_t n;
    if (plan->choice.engine == TCI_OCI_ENGINE_NONE) {
        reader.is_known = plan->choice.is_root; /* else it was us */
        return reader;
    }
    reader.uid = reader.gid = UINT32_MAX;
    (void)snprintf(path, sizeof path, "/proc/%d/status", run->cage->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : tci_read_some(fd, status, sizeof status - 1);
    status[n > 0 ? n : 0] = '\0';
    if (read_file_id(status, "\nUid:", &uid) && read_file_id(status, "\nGid:", &gid) &&
        !tci_oci_is_readable(run->cage->pidfd)) {
        reader.uid = uid;
        reader.gid = gid;
    }
    return reader;
}

/* Beneath the container's own root, while entry keeps its mounts: links inside cannot lead out. */
int tci_oci_open_directory(const struct tc_run *run, const char *path, struct tc_error *reterr)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    const struct tci_oci_cage *cage = run->cage;
    int fd;
    /* Of a container that is gone there is the root left, without what was mounted in it. */
    if (run->killed_us || run->last.kind != TCI_ENTRY_ENDED || tci_oci_is_readable(cage->pidfd))
        return tci_error_errno(reterr, ESRCH, "opening the container's root");
    /* Of gVisor alone: nobody else's files lie where the driver looks. */
    if (cage->root < 0 && run->plan->choice.runtime == TCI_OCI_RUNSC &&
        run->plan->driver->open_directory)
        return run->plan->driver->open_directory(cage, path, reterr);
    if (cage->root < 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the container's files cannot be reached from here");
    fd = (int)syscall(SYS_openat2, cage->root, path[1] ? path + 1 : ".", &how, sizeof how);
    return fd < 0 ? tci_error_errno(reterr, errno, "opening %.300s in the container", path) : fd;
}
