/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the child between clone and execve of the stage (backend/child.h). In between there are system calls
 * only: no allocation, no lock, no stdio. All signals are blocked, and stay so: the stage takes none, and its
 * runtime gets an empty mask from it.
 */
#include "backend/oci/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/child.h"
#include "base/calls.h"

enum { clone_failed = 127, moves_max = TCI_STAGE_HANDED_MAX + 16 };

enum step { STEP_NONE, STEP_GROUP, STEP_DESCRIPTORS, STEP_ID_MAP, STEP_EXECUTE };
static const char *const step_texts[] = { "", "entering its control group",
                                          "arranging its descriptors", "mapping its user",
                                          "starting its stage" };

/* ---- in the child ------------------------------------------------------------------------------ */

tci_no_address_checks static _Noreturn void fail(struct tci_stage_spawn *spawn, enum step step)
{
    spawn->failed_errno = errno;
    spawn->failed_step = (int)step;
    (void)syscall(SYS_exit_group, clone_failed);
    __builtin_unreachable();
}

tci_no_address_checks static void write_map(struct tci_stage_spawn *spawn, const char *path,
                                            const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        fail(spawn, STEP_ID_MAP);
    (void)close(fd);
}

/* Before execve: only who is root in the namespace by then keeps its capabilities. */
tci_no_address_checks static void map_ids(struct tci_stage_spawn *spawn)
{
    if (!(spawn->namespaces & CLONE_NEWUSER) || spawn->keeps_rights)
        return;
    write_map(spawn, "/proc/self/setgroups", "deny");
    write_map(spawn, "/proc/self/uid_map", spawn->stage->uid_map);
    write_map(spawn, "/proc/self/gid_map", spawn->stage->gid_map);
}

/* The stage needs these few until its ids are mapped; then it is root there. */
tci_no_address_checks static void keep_rights(struct tci_stage_spawn *spawn)
{
    static const int needed[] = {
        CAP_DAC_OVERRIDE, CAP_FOWNER,    CAP_SETGID,  CAP_SETUID,
        CAP_NET_ADMIN,    CAP_SYS_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE
    };
    if (spawn->keeps_rights && tci_child_keep(needed, tci_array_size(needed)) < 0)
        fail(spawn, STEP_ID_MAP);
}

/* Where the program is, behind everything that it expects. */
tci_no_address_checks static int arrange_descriptors(struct tci_stage_spawn *spawn)
{
    int from[moves_max] = { -1,
                            -1,
                            -1,
                            spawn->stage->config,
                            spawn->report,
                            spawn->owner,
                            spawn->control,
                            spawn->gate,
                            spawn->stage->entry,
                            spawn->stage->brought,
                            spawn->go,
                            spawn->rootfs };
    const int count = TCI_STAGE_FD_MOUNTS + (int)spawn->mount_count;
    for (size_t i = 0; i < spawn->mount_count; i++)
        from[(size_t)TCI_STAGE_FD_MOUNTS + i] = spawn->mounts[i];
    if (tci_child_arrange(from, count, spawn->stage->program) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    return count;
}

tci_no_address_checks static void child(void *argument)
{
    static const char *const no_environment[] = { NULL };
    struct tci_stage_spawn *spawn = argument;
    int program;
    tci_child_reset_signals();
    if (tci_child_enter(spawn->cgroup, 0) < 0)
        fail(spawn, STEP_GROUP);
    map_ids(spawn);
    keep_rights(spawn);
    program = arrange_descriptors(spawn);
    (void)syscall(SYS_execveat, program, "", spawn->argv, no_environment, AT_EMPTY_PATH);
    fail(spawn, STEP_EXECUTE);
}

/* ---- in the caller ----------------------------------------------------------------------------- */

static int clone_failure(const struct tci_stage_spawn *spawn, int problem, struct tc_error *reterr)
{
    if (!spawn->namespaces)
        return tci_error_errno(reterr, problem, "starting a process");
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the namespaces around a container runtime cannot be made on this host: %s",
                  strerrordesc_np(problem));
    tci_error_remedy(reterr,
                     "\"toolcage doctor\" says why and what to do (user_namespaces, mount_api)");
    return -1;
}

static long clone_here(void *argument, char *stack, size_t size)
{
    struct tci_stage_spawn *spawn = argument;
    const unsigned long flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | spawn->namespaces | SIGCHLD;
    return clone_call(__NR_clone, (long)flags, (long)(stack + size), (long)&spawn->pidfd, child,
                      spawn);
}

int tci_stage_spawn(struct tci_stage_spawn *spawn, struct tc_error *reterr)
{
    long pid = 0;
    spawn->pidfd = -1;
    if (spawn->mount_count > TCI_STAGE_HANDED_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                             "more than %d paths cannot be granted by root", TCI_STAGE_HANDED_MAX);
    if (tci_child_make(clone_here, spawn, &pid, reterr) < 0)
        return -1;
    if (pid < 0)
        return clone_failure(spawn, (int)-pid, reterr);
    spawn->pid = (int)pid;
    if (spawn->failed_step == STEP_NONE)
        return 0;
    return tci_child_failed(&spawn->pidfd, spawn->failed_errno, "the container could not be made",
                            step_texts[spawn->failed_step], reterr);
}
