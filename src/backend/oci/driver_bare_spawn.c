/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the child between clone and execve of the stage. It shares the caller's memory (CLONE_VM), so that
 * a host with gigabytes is not copied, and the calling thread sleeps until execve (CLONE_VFORK). In between
 * there are system calls only: no allocation, no lock, no stdio. All signals are blocked, and stay so: the
 * stage takes none, and its runtime gets an empty mask from it.
 */
#include "backend/oci/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"

enum { stack_size = 32768, clone_failed = 127, moves_max = TCI_STAGE_HANDED_MAX + 16 };

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

tci_no_address_checks static void enter_groups(struct tci_stage_spawn *spawn)
{
    const struct tci_cgroup *group = spawn->cgroup;
    for (unsigned i = 0; group && i < group->enter_count; i++)
        if (write(group->enter[i], "0", 1) != 1)
            fail(spawn, STEP_GROUP);
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

/* Who is not root in the namespace yet would lose its capabilities at execve. The stage needs these few
 * until its ids are mapped; then it is root there. */
tci_no_address_checks static void keep_rights(struct tci_stage_spawn *spawn)
{
    static const int needed[] = {
        CAP_DAC_OVERRIDE, CAP_FOWNER,    CAP_SETGID,  CAP_SETUID,
        CAP_NET_ADMIN,    CAP_SYS_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE
    };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    if (!spawn->keeps_rights)
        return;
    for (size_t i = 0; i < tci_array_size(needed); i++)
        data[0].effective |= 1U << needed[i];
    data[0].permitted = data[0].inheritable = data[0].effective;
    if (syscall(SYS_capset, &header, data) < 0)
        fail(spawn, STEP_ID_MAP);
    for (size_t i = 0; i < tci_array_size(needed); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0) < 0)
            fail(spawn, STEP_ID_MAP);
}

/* Descriptor numbers as the stage expects them, and nothing else: what the host holds open without
 * O_CLOEXEC ends here. Sources in the way are moved up first. Returns where the program is. */
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
    int program = spawn->stage->program;
    int count = TCI_STAGE_FD_MOUNTS + (int)spawn->mount_count;
    for (size_t i = 0; i < spawn->mount_count; i++)
        from[(size_t)TCI_STAGE_FD_MOUNTS + i] = spawn->mounts[i];
    for (int i = 0; i < count; i++)
        if (from[i] >= 0 && from[i] <= count &&
            (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, count + 1)) < 0)
            fail(spawn, STEP_DESCRIPTORS);
    if (program <= count && (program = fcntl(program, F_DUPFD_CLOEXEC, count + 1)) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    for (int i = 0; i < count; i++)
        if (from[i] < 0)
            (void)close(i);
        else if (dup2(from[i], i) < 0)
            fail(spawn, STEP_DESCRIPTORS);
    if (dup3(program, count, O_CLOEXEC) < 0 || syscall(SYS_close_range, count + 1, ~0U, 0) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    return count;
}

/* A signal that the host ignores would stay ignored in the runtime and the command. */
tci_no_address_checks static void reset_signals(void)
{
    static const unsigned long standard[4]; /* struct sigaction, as the kernel has it */
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, standard, NULL, sizeof standard[0]);
}

tci_no_address_checks static int child(void *argument)
{
    static const char *const no_environment[] = { NULL };
    struct tci_stage_spawn *spawn = argument;
    int program;
    reset_signals();
    enter_groups(spawn);
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

int tci_stage_spawn(struct tci_stage_spawn *spawn, struct tc_error *reterr)
{
    char *stack;
    sigset_t all, before;
    int cancel_state, problem, pid;
    spawn->pidfd = -1;
    if (spawn->mount_count > TCI_STAGE_HANDED_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                             "more than %d paths cannot be granted by root", TCI_STAGE_HANDED_MAX);
    stack = malloc(stack_size);
    if (!stack)
        return tci_error_no_memory(reterr);
    (void)sigfillset(&all);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = clone(child, stack + stack_size,
                (int)(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | spawn->namespaces) | SIGCHLD, spawn,
                &spawn->pidfd);
    problem = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel_state, NULL);
    free(stack);
    if (pid < 0)
        return clone_failure(spawn, problem, reterr);
    spawn->pid = pid;
    if (spawn->failed_step == STEP_NONE)
        return 0;
    (void)waitid(P_PIDFD, (id_t)spawn->pidfd, &(siginfo_t){ 0 }, WEXITED);
    spawn->pidfd = tci_close(spawn->pidfd);
    tci_error_errno(reterr, spawn->failed_errno, "the container could not be made: %s",
                    step_texts[spawn->failed_step]);
    tci_error_remedy(reterr, "something around toolcage refuses it (a container, a filter), or the "
                             "kernel is older than 5.12: see toolcage doctor");
    return -1;
}
