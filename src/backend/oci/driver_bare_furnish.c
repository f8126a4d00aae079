/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the gate's side of a network namespace that an engine has made, and the last word on its mounts
 * (tci_stage_furnish). */
#include "backend/oci/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/fd.h"

enum { patience_ms = 5000 };

/* The namespace of that process, and of nobody who got its number later: the caller holds its socket, so
 * that it lives; should it end meanwhile, nothing is lost but a call that had failed anyway. */
static int open_namespace(int pid, const char *name, struct tc_error *reterr)
{
    char path[64];
    int fd;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? tci_error_errno(reterr, errno, "opening the container's namespace \"%s\"", name)
                  : fd;
}

/* The end of the helper, and what it said. */
static int finish(const struct tci_stage_spawn *spawn, int from, const struct tci_oci_plan *plan,
                  struct tc_error *reterr)
{
    struct pollfd p = { .fd = spawn->pidfd, .events = POLLIN };
    struct tci_stage_report report = { 0 };
    ssize_t n;
    if (poll(&p, 1, patience_ms) <= 0)
        (void)syscall(SYS_pidfd_send_signal, spawn->pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)spawn->pidfd, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
        ;
    n = tci_read_some(from, &report, sizeof report);
    if (n < (ssize_t)offsetof(struct tci_stage_report, text) || report.magic != TCI_STAGE_MAGIC)
        return tci_error_set(reterr, TC_ERROR_INTERNAL,
                             "the process that furnishes the container was killed");
    if (report.end == TCI_STAGE_FURNISHED)
        return 0;
    tci_stage_explain(plan, &report, reterr);
    return -1;
}

static int run(struct tci_stage_spawn *spawn, const struct tci_oci_plan *plan,
               struct tc_error *reterr)
{
    int report[2], r;
    if (tci_pipe(report, O_NONBLOCK) < 0)
        return tci_error_errno(reterr, errno, "making a pipe");
    spawn->report = report[1];
    r = tci_stage_spawn(spawn, reterr);
    (void)tci_close(report[1]);
    if (r == 0)
        r = finish(spawn, report[0], plan, reterr);
    (void)tci_close(report[0]);
    (void)tci_close(spawn->pidfd);
    return r;
}

int tci_stage_furnish(int pid, const struct tci_oci_plan *plan, int gate_inside,
                      const struct tci_stage_seal *seal, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int network = -1, tree = -1, program = -1, config = -1;
    struct tci_stage stage = { .entry = -1, .brought = -1 };
    struct tci_stage_spawn spawn = {
        .stage = &stage, .argv = { "furnish" }, .gate = gate_inside, .go = -1, .rootfs = -1
    };
    if ((plan->has_gate && (network = open_namespace(pid, "net", reterr)) < 0) ||
        (seal && (tree = open_namespace(pid, "mnt", reterr)) < 0))
        return -1;
    if (seal) {
        spawn.argv[1] = seal->how;
        spawn.rootfs = seal->root;
        spawn.mounts = seal->mounts;
        spawn.mount_count = strlen(seal->how);
    }
    spawn.control = network;
    spawn.owner = tree;
    program = tci_program_from_bytes("toolcage-stage", tci_stage_blob, tci_stage_blob_size, reterr);
    config = program < 0 ? -1 : tci_stage_config(plan, true, reterr);
    if (config < 0)
        return -1;
    stage.program = program;
    stage.config = config;
    return run(&spawn, plan, reterr);
}
