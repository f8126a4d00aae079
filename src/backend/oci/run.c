/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one call in a container, whoever made it: the container comes, entry says hello, gets the start
 * message, reports, and is let go. What entry says is believed as far as the kernel vouches for it: nobody but
 * entry has its socket. A command that never started is never said to have taken too long.
 */
#include "backend/oci/run_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"

/* So long a killed container may take to be gone. */
enum { gone_us = 10000000, told_us = 1000000 };

/* ---- start ---------------------------------------------------------------------------------------- */

static int refuse(const char *what, const char *remedy, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s", what);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

static int check_io(const struct tci_oci_plan *plan, const struct tc_io *io,
                    struct tc_error *reterr)
{
    if (io->traced)
        return refuse("denials in a container cannot be explained: nobody may look into it",
                      "leave TC_REQUEST_EXPLAIN_DENIALS out, or use backend = \"jail\"", reterr);
    if (io->function)
        return refuse("a function of this process cannot run in a container",
                      "make the tool a command, or use backend = \"jail\"", reterr);
    if (io->terminal && plan->choice.runtime == TCI_OCI_RUNSC)
        return refuse(
            "gVisor cannot be given a terminal of the host",
            "leave TC_REQUEST_TERMINAL out, or use backend = \"oci\" with another runtime", reterr);
    return 0;
}

static int watch(struct tc_run *run, int fd, uint32_t events, struct tc_error *reterr)
{
    struct epoll_event event = { .events = events };
    if (fd >= 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return tci_error_errno(reterr, errno, "watching a container");
    return 0;
}

/* What a driver makes, exchanges and closes in a step is watched as it is now. */
static int watch_cage(struct tc_run *run, struct tc_error *reterr)
{
    const int now[] = { run->silent ? -1 : run->cage->control,
                        run->cage->failed ? -1 : run->cage->watch,
                        run->ended ? -1 : run->cage->pidfd };
    for (size_t i = 0; i < tci_array_size(now); i++) {
        if (now[i] == run->watched[i])
            continue;
        if (run->watched[i] >= 0)
            (void)epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->watched[i], NULL);
        run->watched[i] = -1;
        if (watch(run, now[i], EPOLLIN, reterr) < 0)
            return -1;
        run->watched[i] = now[i];
    }
    return 0;
}

/* The message may have to wait for the container: the caller closes its descriptors meanwhile. */
static int keep_streams(struct tc_run *run, const struct tc_io *io, struct tc_error *reterr)
{
    const int streams[TCI_OCI_STREAMS] = { io->in, io->out, io->err };
    for (size_t i = 0; i < TCI_OCI_STREAMS; i++) {
        run->streams[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 3);
        if (run->streams[i] < 0)
            return tci_error_errno(reterr, errno, "keeping the streams of a call");
    }
    return 0;
}

void tci_oci_drop_streams(struct tc_run *run)
{
    for (size_t i = 0; i < TCI_OCI_STREAMS; i++)
        run->streams[i] = tci_close(run->streams[i]);
}

/* The streams, and what leads into the cage's group. */
union descriptors {
    struct cmsghdr head;
    char room[CMSG_SPACE((TCI_OCI_STREAMS + TCI_ENTRY_GROUPS_MAX) * sizeof(int))];
};

_Static_assert((int)TCI_CGROUP_ENTER_MAX <= (int)TCI_ENTRY_GROUPS_MAX, "entry takes them all");

static void attach(const struct tc_run *run, struct msghdr *message, union descriptors *ret)
{
    const struct tci_cgroup *group = run->cage->cgroup;
    const unsigned groups = group && !run->plan->enter_early ? group->enter_count : 0;
    const size_t size = (TCI_OCI_STREAMS + groups) * sizeof(int);
    ret->head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(size),
                                  .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&ret->head), run->streams, sizeof run->streams);
    if (groups)
        memcpy(CMSG_DATA(&ret->head) + sizeof run->streams, group->enter, groups * sizeof(int));
    message->msg_control = ret;
    message->msg_controllen = CMSG_SPACE(size);
    ((struct tci_entry_start *)(void *)run->message.data)->group_count = groups;
}

/* As much of the start message as the socket takes; the descriptors go with its first byte. */
static int send_message(struct tc_run *run, struct tc_error *reterr)
{
    union descriptors descriptors = { 0 };
    while (run->sent < run->message.length) {
        struct iovec vector = { run->message.data + run->sent, run->message.length - run->sent };
        struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
        ssize_t n;
        if (!run->sent)
            attach(run, &message, &descriptors);
        n = sendmsg(run->cage->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
            (void)epoll_ctl(run->epoll, EPOLL_CTL_MOD, run->cage->control, &event);
            return 0;
        }
        /* Other processes of this user have too many descriptors on their way: tools could do that to each
         * other. Again and again, until the call's time is over. */
        if (n < 0 && errno == ETOOMANYREFS) {
            run->crowded = true;
            return tci_oci_watch_timer(run, reterr);
        }
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            break; /* it says why, or its end does */
        if (n < 0)
            return tci_error_errno(reterr, errno, "sending the command to the container");
        tci_oci_drop_streams(run);
        run->crowded = false;
        run->sent += (size_t)n;
    }
    if (run->watched[0] >= 0) {
        struct epoll_event event = { .events = EPOLLIN };
        (void)epoll_ctl(run->epoll, EPOLL_CTL_MOD, run->cage->control, &event);
    }
    tci_oci_drop_streams(run);
    if (run->cage->cgroup)
        tci_cgroup_entered(run->cage->cgroup);
    tci_buf_free(&run->message);
    run->message.length = run->sent = 0;
    return 0;
}

/* Nothing has to be looked at before the command starts: the message may be there before entry is, and
 * nobody waits for the hello. A socket that is not there yet is an engine's; and what gVisor's own kernel used until
 * its hello is to be known. */
static bool may_begin_early(const struct tc_run *run)
{
    return run->cage->control >= 0 && !run->plan->driver->ready && !run->plan->enter_early;
}

/* The container waits, or will: the call begins. */
static int begin(struct tc_run *run, struct tc_error *reterr)
{
    if (tci_oci_watch_begin(run, reterr) < 0)
        return -1;
    run->begun = true;
    return send_message(run, reterr);
}

static int start(struct tc_run *run, const struct tc_io *io, struct tc_error *reterr)
{
    struct tci_oci_plan *plan = run->plan;
    /* What gVisor has written is counted outside, where it ends with its container. */
    bool holds = io->hold || (!plan->use_cgroup && plan->driver->hits) ||
                 (plan->watch_disk && plan->choice.runtime == TCI_OCI_RUNSC);
    if (tci_oci_message(plan, io, holds, &run->message, reterr) < 0 ||
        keep_streams(run, io, reterr) < 0)
        return -1;
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll < 0)
        return tci_error_errno(reterr, errno, "watching a container");
    tci_oci_count_call(plan, 1);
    run->is_counted = true;
    run->cage = plan->pool ? tci_oci_pool_take(plan->pool) : NULL;
    if (!run->cage)
        (void)tci_oci_count_cage(plan, true);
    if (!run->cage && tci_oci_cage_new(plan, &run->cage, reterr) < 0)
        return -1;
    if (run->cage->gate) {
        tci_gate_begin(run->cage->gate, io->on_network, io->network_data);
        if (watch(run, tci_gate_fd(run->cage->gate), EPOLLIN, reterr) < 0)
            return -1;
    }
    if (run->cage->cgroup &&
        watch(run, run->cage->cgroup->events, (uint32_t)run->cage->cgroup->events_mask, reterr) < 0)
        return -1;
    if (watch_cage(run, reterr) < 0)
        return -1;
    return run->cage->hello || may_begin_early(run) ? begin(run, reterr) : 0;
}

int tci_oci_start(struct tc_plan *plan, const struct tc_io *io, struct tc_run **ret,
                  struct tc_error *reterr)
{
    struct tc_run *run;
    if (check_io((struct tci_oci_plan *)plan, io, reterr) < 0)
        return -1;
    run = calloc(1, sizeof *run);
    if (!run)
        return tci_error_no_memory(reterr);
    run->plan = (struct tci_oci_plan *)plan;
    run->hold = io->hold;
    run->epoll = -1;
    tci_watch_init(&run->watch, true);
    memset(run->watched, -1, sizeof run->watched);
    memset(run->streams, -1, sizeof run->streams);
    if (start(run, io, reterr) < 0) {
        tci_oci_destroy(run);
        return -1;
    }
    *ret = run;
    return 0;
}

/* ---- step ----------------------------------------------------------------------------------------- */

static void take_report(struct tc_run *run, const struct tci_entry_report *r)
{
    if (r->magic != TCI_ENTRY_MAGIC)
        return;
    if (r->kind == TCI_ENTRY_STARTED)
        run->started = true;
    else if (!run->last.kind && r->kind != TCI_ENTRY_HELLO)
        run->last = *r; /* the first one counts */
}

static void read_reports(struct tc_run *run)
{
    struct tci_entry_report report;
    while (run->cage->hello && run->cage->control >= 0 && !run->silent) {
        ssize_t n = recv(run->cage->control, run->incoming + run->incoming_length,
                         sizeof run->incoming - run->incoming_length, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            run->silent = true;
            run->silent_us = tci_clock_us();
            return;
        }
        run->incoming_length += (size_t)n;
        if (run->incoming_length < sizeof report)
            continue;
        memcpy(&report, run->incoming, sizeof report);
        run->incoming_length = 0;
        take_report(run, &report);
    }
}

/* Of gVisor only the socket's end is known. Its runtime says a moment later how it came to it. */
static bool is_told(const struct tc_run *run)
{
    return run->plan->choice.engine == TCI_OCI_ENGINE_NONE && run->cage->watch >= 0 &&
           run->started && !run->killed_us && tci_clock_us() - run->silent_us < told_us;
}

/* Does nobody live any more? The end of pid 1 is the end of its namespace. Where its process is not known
 * (gVisor), its socket ends with the kernel that it had, and the driver knows the rest. */
static bool has_ended(struct tc_run *run)
{
    const struct tci_oci_cage *cage = run->cage;
    if (!run->ended)
        run->ended = cage->failed || tci_oci_is_readable(cage->pidfd) ||
                     (run->silent && cage->pidfd < 0 && !is_told(run));
    return run->ended;
}

/* Nothing more is going to happen, or nobody waits for it. */
static bool is_over(struct tc_run *run)
{
    if (run->last.kind || run->cage->failed)
        return true;
    if (run->killed_us && (!run->started || tci_clock_us() - run->killed_us > gone_us))
        return true;
    if (!has_ended(run)) {
        if (run->silent)
            (void)tci_oci_watch_timer(run, NULL);
        return false;
    }
    read_reports(run); /* what it said before it ended */
    return true;
}

static int go_on(struct tc_run *run, struct tc_error *reterr)
{
    (void)tci_oci_cage_step(run->cage);
    if (watch_cage(run, reterr) < 0 ||
        (run->cage->silent_us && tci_oci_watch_timer(run, reterr) < 0))
        return -1;
    if (run->cage->hello && !run->cage->failed && !run->begun && !run->killed_us &&
        begin(run, reterr) < 0)
        return -1;
    if (run->begun && run->message.length && run->cage->control >= 0 &&
        send_message(run, reterr) < 0)
        return -1;
    read_reports(run);
    return watch_cage(run, reterr);
}

int tci_oci_step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    struct tci_gate *gate = run->cage->gate;
    memset(ret, 0, sizeof *ret);
    if (gate)
        tci_gate_step(gate);
    tci_oci_watch_look(run);
    if (go_on(run, reterr) < 0) {
        ret->finished = true;
        ret->end = TCI_END_BROKEN;
        ret->never_started = !run->started;
        tci_oci_drop_streams(run);
        return 0;
    }
    if (!is_over(run))
        return 0;
    if (gate && run->started && !run->killed_us && !tci_gate_finish(gate)) {
        if (watch_cage(run, reterr) < 0) /* nobody is to be woken by a dead one again and again */
            return -1;
        return tci_oci_watch_timer(run, reterr);
    }
    if (gate)
        tci_gate_close(gate);
    tci_oci_drop_streams(run);
    tci_oci_watch_usage(run, ret);
    tci_oci_outcome(run, ret, reterr);
    return 0;
}
