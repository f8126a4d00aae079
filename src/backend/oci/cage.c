/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one container as an object, from its making to its end: its group, its gate, entry's hello. Trusts
 * the hello, which comes before anything of a model has run; what the container says later is read by run.c.
 */
#include "backend/oci/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/uuid.h"

enum {
    end_ms = 5000,
    /* Who made a container that ended too early knows why, and gets so long to say so. */
    words_us = 1000000,
};

/* ---- making --------------------------------------------------------------------------------------- */

static int fill(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    struct tci_oci_plan *plan = cage->plan;
    const struct tci_gate_options options = { .settings = plan->spec.settings };
    memcpy(cage->id, "tc-", 3);
    if (tci_random_hex(8, cage->id + 3) < 0)
        return tci_error_errno(reterr, errno, "taking random numbers");
    if (plan->use_cgroup &&
        tci_cgroup_make(plan->cgroups, cage->id, &plan->cgroup_limits, &cage->cgroup, reterr) < 0)
        return -1;
    return plan->has_gate ? tci_gate_new(&options, &cage->gate, &cage->gate_inside, reterr) : 0;
}

static void release(struct tci_oci_cage *cage)
{
    tci_gate_free(cage->gate);
    if (cage->cgroup) {
        tci_cgroup_kill(cage->cgroup, end_ms);
        tci_cgroup_free(cage->cgroup);
    }
    (void)tci_close(cage->gate_inside);
    (void)tci_close(cage->control);
    (void)tci_close(cage->pidfd);
    (void)tci_close(cage->root);
    tci_oci_uncount_cage(cage->plan); /* now there is nothing left of it */
    free(cage);
}

int tci_oci_cage_new(struct tci_oci_plan *plan, struct tci_oci_cage **ret, struct tc_error *reterr)
{
    struct tci_oci_cage *cage = calloc(1, sizeof *cage);
    if (!cage) {
        tci_oci_uncount_cage(plan);
        return tci_error_no_memory(reterr);
    }
    cage->plan = plan;
    cage->gate_inside = cage->control = cage->watch = cage->pidfd = cage->root = -1;
    if (fill(cage, reterr) < 0 || plan->driver->begin(cage, reterr) < 0) {
        release(cage);
        return -1;
    }
    *ret = cage;
    return 0;
}

void tci_oci_cage_free(struct tci_oci_cage *cage)
{
    if (!cage)
        return;
    cage->plan->driver->end(cage);
    release(cage);
}

void tci_oci_cage_kill(struct tci_oci_cage *cage)
{
    cage->plan->driver->kill(cage);
    if (cage->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, cage->pidfd, SIGKILL, NULL, 0);
    /* Entry ends everybody and itself when nobody can talk to it any more: also where the engine hangs and
     * its processes are not ours to kill. */
    if (cage->control >= 0)
        (void)shutdown(cage->control, SHUT_WR);
}

/* ---- hello ---------------------------------------------------------------------------------------- */

static void fail(struct tci_oci_cage *cage, const struct tc_error *error)
{
    if (!cage->failed)
        cage->error = *error;
    cage->failed = true;
}

static bool is_ready(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* A handle that looks at directories and does nothing else: what else could come through the socket is
 * not taken for the container's root. */
static int checked_root(int fd)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && flags & O_PATH && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)
               ? fd
               : tci_close(fd);
}

static void take_attached(struct tci_oci_cage *cage, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        size_t length = c->cmsg_len - CMSG_LEN(0);
        struct ucred who;
        int fd;
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS && length == sizeof who) {
            memcpy(&who, CMSG_DATA(c), sizeof who);
            cage->pid = who.pid;
        }
        for (size_t at = 0; c->cmsg_type == SCM_RIGHTS && at + sizeof fd <= length;
             at += sizeof fd) {
            memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
            if (cage->root >= 0)
                (void)tci_close(fd);
            else
                cage->root = checked_root(fd);
        }
    }
}

/* The handle may not have come: another tool of the same user can fill what the kernel lets be on its way
 * between processes. Then it is looked up, as long as entry has run nothing. */
static int root_of(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/root", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A handle on entry's process. The number is from the message; that it was not given to somebody else
 * meanwhile is sure when entry still has its end of the socket. */
static void take_process(struct tci_oci_cage *cage)
{
    struct pollfd p = { .fd = cage->control };
    if (cage->plan->choice.runtime == TCI_OCI_RUNSC)
        cage->pid = 0; /* the number of gVisor's kernel, not of a process in it */
    if (cage->pid <= 0)
        return;
    cage->pidfd = (int)syscall(SYS_pidfd_open, cage->pid, 0);
    if (cage->root < 0)
        cage->root = root_of(cage->pid);
    if (poll(&p, 1, 0) > 0) {
        cage->pidfd = tci_close(cage->pidfd);
        cage->root = tci_close(cage->root);
    }
}

static int read_hello(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    static const int on = 1;
    struct tci_entry_report hello = { 0 };
    struct iovec vector = { &hello, sizeof hello };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
    } room;
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room
    };
    ssize_t n;
    /* Or the kernel would not say who it is. */
    if (setsockopt(cage->control, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        return tci_error_errno(reterr, errno, "asking for the identity of a container");
    n = recvmsg(cage->control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return tci_error_errno(reterr, errno, "listening to a container");
    if (n <= 0) {
        cage->control = tci_close(cage->control);
        cage->silent_us = tci_clock_us();
        return 0;
    }
    take_attached(cage, &message);
    if (n != (ssize_t)sizeof hello || hello.magic != TCI_ENTRY_MAGIC ||
        hello.kind != TCI_ENTRY_HELLO)
        return tci_error_set(reterr, TC_ERROR_INTERNAL,
                             "the container's first process is not toolcage's own");
    take_process(cage);
    if (!cage->failed && cage->plan->driver->ready && cage->plan->driver->ready(cage, reterr) < 0)
        return -1;
    cage->hello = true;
    return 0;
}

/* What the container said before it ended is read after its end as well: a call may be over before anybody
 * has looked. */
static void listen_to(struct tci_oci_cage *cage)
{
    struct tc_error error = { 0 };
    if (!cage->hello && cage->control >= 0 && read_hello(cage, &error) < 0)
        fail(cage, &error);
}

bool tci_oci_cage_step(struct tci_oci_cage *cage)
{
    struct tc_error error = { 0 };
    if (!cage->failed && is_ready(cage->watch))
        cage->plan->driver->step(cage);
    listen_to(cage);
    if (!cage->failed && cage->silent_us && tci_clock_us() - cage->silent_us > words_us) {
        tci_error_set(&error, TC_ERROR_UNSUPPORTED, "the container ended before it could be used");
        fail(cage, &error);
    }
    return cage->hello || cage->failed;
}
