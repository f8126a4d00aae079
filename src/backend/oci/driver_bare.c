/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: containers by a runtime (runc, crun, runsc) on a bundle of ours. Each has a stage around it
 * (stage.c): a pid 1 whose end is the end of everything, with a mount namespace that holds bundle, state
 * and root directory. So SIGKILL of one process is the whole of cleaning up, and the host's file systems
 * are never written to.
 *
 * A stage that was not told to end tells why it did, on a pipe; the pipe is what `watch` is.
 */
#include "backend/oci/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/uuid.h"

enum { end_ms = 5000 };

/* One cage's. */
struct bare {
    int pid, pidfd;
    bool ended; /* collected */
};

/* ---- plan --------------------------------------------------------------------------------------------- */

static void close_plan(struct tci_oci_plan *plan)
{
    struct tci_stage *stage = plan->driver_state;
    if (!stage)
        return;
    (void)tci_close(stage->program);
    (void)tci_close(stage->config);
    (void)tci_close(stage->entry);
    (void)tci_close(stage->brought);
    tci_idmap_close(&stage->idmap);
    free(stage);
    plan->driver_state = NULL;
}

static int open_plan(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return tci_error_no_memory(reterr);
    plan->driver_state = stage;
    stage->brought = stage->entry = stage->config = -1;
    stage->idmap.fd = stage->idmap.child = -1;
    /* One id: 0 is who called. */
    (void)snprintf(stage->uid_map, sizeof stage->uid_map, "0 %u 1", geteuid());
    (void)snprintf(stage->gid_map, sizeof stage->gid_map, "0 %u 1", getegid());
    stage->program = tci_program_from_bytes("toolcage-stage", tci_stage_blob, tci_stage_blob_size,
                                            reterr);
    if (stage->program >= 0)
        stage->entry = tci_program_from_bytes("toolcage-entry", tci_entry_blob, tci_entry_blob_size,
                                              reterr);
    if (stage->entry >= 0 && plan->spec.program != TCI_PROGRAM_NONE)
        stage->brought = tci_program_fd(plan->spec.program, reterr);
    if (plan->choice.is_root && tci_oci_stage_is_mapped(&plan->choice) &&
        tci_idmap_open(plan->arena, &stage->idmap, reterr) < 0)
        stage->entry = tci_close(stage->entry);
    if (stage->entry >= 0 && (stage->brought >= 0 || plan->spec.program == TCI_PROGRAM_NONE))
        stage->config = tci_stage_config(plan, false, reterr);
    if (stage->config >= 0)
        return 0;
    close_plan(plan);
    return -1;
}

/* ---- begin -------------------------------------------------------------------------------------------- */

static int begin(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int report_in = -1;
    tc_cleanup(tci_closep) int report_out = -1;
    tc_cleanup(tci_closep) int ours = -1;
    tc_cleanup(tci_closep) int theirs = -1;
    struct bare *bare;
    int ends[2];
    if (!cage->id[0]) {
        memcpy(cage->id, "tc-", 3);
        if (tci_random_hex(8, cage->id + 3) < 0)
            return tci_error_errno(reterr, errno, "taking random numbers");
    }
    if (tci_pipe(ends, O_NONBLOCK) < 0)
        return tci_error_errno(reterr, errno, "making a pipe");
    report_in = ends[0];
    report_out = ends[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return tci_error_errno(reterr, errno, "making a socket");
    ours = ends[0];
    theirs = ends[1];
    bare = calloc(1, sizeof *bare);
    if (!bare)
        return tci_error_no_memory(reterr);
    if (tci_stage_start(cage, report_out, theirs, &bare->pid, &bare->pidfd, reterr) < 0) {
        free(bare);
        return -1;
    }
    cage->gate_inside = tci_close(cage->gate_inside);
    cage->driver_state = bare;
    cage->control = tci_take_fd(&ours);
    cage->watch = tci_take_fd(&report_in);
    return 0;
}

/* ---- step ----------------------------------------------------------------------------------------------- */

static bool has_ended(struct bare *bare)
{
    struct pollfd p = { .fd = bare->pidfd, .events = POLLIN };
    siginfo_t info = { 0 };
    if (bare->ended || poll(&p, 1, 0) <= 0)
        return bare->ended;
    /* Who waits for all children of this process may have collected it before us. */
    while (waitid(P_PIDFD, (id_t)bare->pidfd, &info, WEXITED | WNOHANG) < 0 && errno == EINTR)
        ;
    bare->ended = true;
    return true;
}

/* gVisor's first process was killed, and its kernel ended in good order: so it was done from inside, where
 * alone it can be done. (Who kills the sandbox on the host leaves runsc with something to say.) */
static bool has_killed_itself(const struct tci_oci_plan *plan,
                              const struct tci_stage_report *report)
{
    return plan->choice.runtime == TCI_OCI_RUNSC && report->end == TCI_STAGE_ENDED &&
           !report->text_length && WIFEXITED(report->status) &&
           WEXITSTATUS(report->status) == 128 + SIGKILL;
}

/* The pipe has a report, or has ended: the container is lost, or was never there. If entry has said that
 * the command ended before that, the caller has read it: this is no failure then. */
static void step(struct tci_oci_cage *cage)
{
    struct tci_stage_report report;
    ssize_t n;
    if (cage->watch < 0 || cage->failed)
        return;
    n = tci_read_some(cage->watch, &report, sizeof report);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n >= (ssize_t)offsetof(struct tci_stage_report, text) && report.magic == TCI_STAGE_MAGIC &&
        report.text_length <= (size_t)n - offsetof(struct tci_stage_report, text)) {
        cage->ended_itself = has_killed_itself(cage->plan, &report);
        tci_stage_explain(cage->plan, &report, &cage->error);
    } else {
        tci_error_set(&cage->error, TC_ERROR_INTERNAL,
                      "the container's stage was killed by somebody else");
    }
    cage->failed = true;
}

/* ---- end ------------------------------------------------------------------------------------------------ */

static void kill_all(struct tci_oci_cage *cage)
{
    struct bare *bare = cage->driver_state;
    /* The kernel ends its pid namespace with it. */
    if (bare && bare->pidfd >= 0 && !bare->ended)
        (void)syscall(SYS_pidfd_send_signal, bare->pidfd, SIGKILL, NULL, 0);
}

static void end(struct tci_oci_cage *cage)
{
    struct bare *bare = cage->driver_state;
    struct pollfd p;
    if (!bare)
        return;
    p = (struct pollfd){ .fd = bare->pidfd, .events = POLLIN };
    kill_all(cage);
    while (!has_ended(bare))
        if (poll(&p, 1, end_ms) == 0)
            kill_all(cage);
    cage->watch = tci_close(cage->watch);
    (void)tci_close(bare->pidfd);
    free(bare);
    cage->driver_state = NULL;
}

/* ---- the small ones --------------------------------------------------------------------------------------- */

/* The mount that a path of the container lies in: the longest. */
static const struct tci_oci_mount *mount_of(const struct tci_oci_plan *plan, const char *path)
{
    const struct tci_oci_mount *found = NULL;
    for (size_t i = 0; i < plan->mount_count; i++)
        if (tci_path_is_within(path, plan->mounts[i].cage) &&
            (!found || strlen(plan->mounts[i].cage) >= strlen(found->cage)))
            found = &plan->mounts[i];
    return found;
}

/* gVisor's files, in the stage's view of its tree (stage_view.c): what is hidden is covered there. Links are
 * refused, so that none which the command has planted leads out of what it may write to. */
static int open_directory(const struct tci_oci_cage *cage, const char *path,
                          struct tc_error *reterr)
{
    const struct bare *bare = cage->driver_state;
    const struct tci_oci_mount *m = mount_of(cage->plan, path);
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS };
    struct pollfd p = { .fd = bare ? bare->pidfd : -1, .events = POLLIN };
    tc_cleanup(tci_closep) int base = -1;
    char place[64];
    int fd;
    if (!bare || bare->ended)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "the container is gone");
    if (m && m->kind == TCI_OCI_MOUNT_TMPFS && !m->staged)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "%.300s is memory of the container's own and cannot be reached", path);
    (void)snprintf(place, sizeof place, "/proc/%d/root" TCI_STAGE_VIEW, bare->pid);
    base = open(place, O_PATH | O_CLOEXEC);
    /* Still alive after it was opened: so it was the stage's, and not of somebody who got its number. */
    if (base >= 0 && poll(&p, 1, 0) != 0) {
        errno = ESRCH;
        base = tci_close(base);
    }
    if (base < 0)
        return tci_error_errno(reterr, errno, "opening %.300s in the container", path);
    fd = (int)syscall(SYS_openat2, base, path[1] ? path + 1 : ".", &how, sizeof how);
    return fd < 0 ? tci_error_errno(reterr, errno, "opening %.300s in the container", path) : fd;
}

/* gVisor's processes are not the host's: what is written is written by its sandbox and its file server,
 * which the stage is above of. */
static int tree(const struct tci_oci_cage *cage)
{
    const struct bare *bare = cage->driver_state;
    return bare && cage->plan->choice.runtime == TCI_OCI_RUNSC ? bare->pid : 0;
}

const struct tci_oci_driver tci_oci_driver_bare = { .name = "none",
                                                    .open = open_plan,
                                                    .close = close_plan,
                                                    .begin = begin,
                                                    .step = step,
                                                    .kill = kill_all,
                                                    .end = end,
                                                    .open_directory = open_directory,
                                                    .tree = tree };
