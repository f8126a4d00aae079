/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the child between clone and execve of init (backend/child.h). In between there are system calls
 * only: no allocation, no lock, no stdio. */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/child.h"
#include "base/calls.h"

enum { clone_failed = 127, moves_max = 512 };

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

enum step {
    STEP_NONE,
    STEP_GROUP,
    STEP_DESCRIPTORS,
    STEP_FUNCTION,
    STEP_CAPABILITIES,
    STEP_EXECUTE
};
static const char *const step_texts[] = { "",
                                          "entering its control group",
                                          "arranging its descriptors",
                                          "starting the process of its function",
                                          "keeping capabilities",
                                          "starting its init" };

/* ---- in the child ------------------------------------------------------------------------------ */

tci_no_address_checks static _Noreturn void fail(struct tci_spawn *spawn, enum step step)
{
    spawn->failed_errno = errno;
    spawn->failed_step = (int)step;
    (void)syscall(SYS_exit_group, clone_failed);
    __builtin_unreachable();
}

/* Where init is, behind everything that it expects. */
tci_no_address_checks static int arrange_descriptors(struct tci_spawn *spawn)
{
    int from[moves_max] = { spawn->in,     spawn->out,   spawn->err, spawn->plan->config_fd,
                            spawn->report, spawn->owner, spawn->go,  spawn->gate,
                            spawn->program };
    const int count = TCI_INIT_FD_MOUNTS + (int)spawn->mount_count;
    for (size_t i = 0; i < spawn->mount_count; i++)
        from[(size_t)TCI_INIT_FD_MOUNTS + i] = spawn->mounts[i];
    if (tci_child_arrange(from, count, spawn->plan->init_fd) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    return count;
}

/* What init needs to build the cage. */
tci_no_address_checks static void keep_capabilities(struct tci_spawn *spawn)
{
    static const int needed[] = { CAP_DAC_OVERRIDE, CAP_SETGID,    CAP_SETUID,
                                  CAP_SETPCAP,      CAP_NET_ADMIN, CAP_SYS_ADMIN,
                                  CAP_SYS_RESOURCE, CAP_NET_RAW,   CAP_NET_BIND_SERVICE };
    if (tci_child_keep(needed, tci_array_size(needed)) < 0)
        fail(spawn, STEP_CAPABILITIES);
}

tci_no_address_checks static void child(void *argument)
{
    struct tci_spawn *spawn = argument;
    const struct tci_cgroup *group = spawn->cgroup;
    int init;
    tci_child_reset_signals();
    if (tci_child_enter(group, group && spawn->born_inside ? group->enter_after_clone : 0) < 0)
        fail(spawn, STEP_GROUP);
    init = arrange_descriptors(spawn);
    if (spawn->function && tci_native_start_function(spawn) < 0)
        fail(spawn, STEP_FUNCTION);
    if (spawn->plan->is_jail)
        keep_capabilities(spawn);
    (void)syscall(SYS_execveat, init, "", spawn->argv, spawn->plan->environment, AT_EMPTY_PATH);
    fail(spawn, STEP_EXECUTE);
}

/* ---- in the caller ----------------------------------------------------------------------------- */

static uint64_t namespaces(const struct tc_plan *plan)
{
    if (!plan->is_jail)
        return 0;
    return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
           (plan->spec.settings->network.mode == TCI_NETWORK_HOST ? 0 : CLONE_NEWNET);
}

static int clone_failure(const struct tci_spawn *spawn, int problem, struct tc_error *reterr)
{
    if (!spawn->plan->is_jail)
        return tci_error_errno(reterr, problem, "starting a process");
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the namespaces of a jail cannot be made on this host: %s",
                  strerrordesc_np(problem));
    tci_error_remedy(reterr,
                     "\"toolcage doctor\" says why and what to do (user_namespaces); or use "
                     "backend = \"process\"");
    return -1;
}

long tci_native_clone(struct tci_spawn *spawn, char *stack, size_t size)
{
    bool into = spawn->cgroup && spawn->cgroup->into >= 0;
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | namespaces(spawn->plan) |
                 (spawn->function ? CLONE_PARENT : 0) | (into ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)&spawn->pidfd,
        .exit_signal = spawn->function ? 0 : SIGCHLD, /* with CLONE_PARENT it is the caller's */
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = size,
        .cgroup = into ? (unsigned)spawn->cgroup->into : 0U,
    };
    long pid;
    spawn->born_inside = into;
    pid = clone_call(__NR_clone3, (long)&args, sizeof args, 0, child, spawn);
    /* Some container engines hide clone3. clone does as well; the child enters its group itself. */
    if (pid == -ENOSYS) {
        spawn->born_inside = false;
        args.flags &= ~CLONE_INTO_CGROUP;
        pid = clone_call(__NR_clone, (long)(args.flags | SIGCHLD), (long)(stack + size),
                         (long)&spawn->pidfd, child, spawn);
    }
    return pid;
}

static long clone_here(void *argument, char *stack, size_t size)
{
    return tci_native_clone(argument, stack, size);
}

static int spawn_here(struct tci_spawn *spawn, int *ret_problem, struct tc_error *reterr)
{
    long pid = 0;
    if (tci_child_make(clone_here, spawn, &pid, reterr) < 0)
        return -1;
    spawn->pid = pid < 0 ? 0 : (int)pid;
    *ret_problem = pid < 0 ? (int)-pid : 0;
    return 0;
}

int tci_native_spawn(struct tci_spawn *spawn, struct tc_error *reterr)
{
    int problem = 0, r;
    spawn->pidfd = -1;
    if (spawn->mount_count + TCI_INIT_FD_MOUNTS >= moves_max)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                             "more than %d paths cannot be granted by root",
                             moves_max - TCI_INIT_FD_MOUNTS - 1);
    r = spawn->function ? tci_native_fork(spawn, &problem, reterr)
                        : spawn_here(spawn, &problem, reterr);
    if (r < 0)
        return -1;
    if (problem)
        return clone_failure(spawn, problem, reterr);
    if (spawn->failed_step == STEP_NONE)
        return 0;
    return tci_child_failed(&spawn->pidfd, spawn->failed_errno, "the cage could not be built",
                            step_texts[spawn->failed_step], reterr);
}
