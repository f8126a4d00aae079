/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the child between clone and execve of init. It shares the caller's memory (CLONE_VM), so that
 * a host with gigabytes is not copied, and the calling thread sleeps until execve (CLONE_VFORK), so
 * that the child may use its errno. In between there are system calls only: no allocation, no lock,
 * no stdio. All signals are blocked; a handler of the host never runs in the child.
 */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
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

enum { stack_size = 32768, clone_failed = 127, moves_max = 512 };

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

tci_no_address_checks static void enter_groups(struct tci_spawn *spawn)
{
    const struct tci_cgroup *group = spawn->cgroup;
    unsigned first = group && spawn->born_inside ? group->enter_after_clone : 0;
    for (unsigned i = first; group && i < group->enter_count; i++)
        if (write(group->enter[i], "0", 1) != 1)
            fail(spawn, STEP_GROUP);
}

/* Descriptor numbers as init expects them, and nothing else: what the host holds open without
 * O_CLOEXEC ends here. Sources in the way are moved up first. */
tci_no_address_checks static void arrange_descriptors(struct tci_spawn *spawn)
{
    int from[moves_max] = { spawn->in,     spawn->out,   spawn->err, spawn->plan->config_fd,
                            spawn->report, spawn->owner, spawn->go,  spawn->gate,
                            spawn->program };
    int init = spawn->plan->init_fd;
    int count = TCI_INIT_FD_MOUNTS + (int)spawn->mount_count;
    for (size_t i = 0; i < spawn->mount_count; i++)
        from[(size_t)TCI_INIT_FD_MOUNTS + i] = spawn->mounts[i];
    for (int i = 0; i < count; i++)
        if (from[i] >= 0 && from[i] <= count &&
            (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, count + 1)) < 0)
            fail(spawn, STEP_DESCRIPTORS);
    if (init <= count && (init = fcntl(init, F_DUPFD_CLOEXEC, count + 1)) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    for (int i = 0; i < count; i++)
        if (from[i] < 0)
            (void)close(i);
        else if (dup2(from[i], i) < 0)
            fail(spawn, STEP_DESCRIPTORS);
    /* Init itself goes right behind them, and closes at execve. */
    if (dup3(init, count, O_CLOEXEC) < 0 || syscall(SYS_close_range, count + 1, ~0U, 0) < 0)
        fail(spawn, STEP_DESCRIPTORS);
    spawn->failed_step = count; /* where init is; not a failure until set by fail() */
}

/* The child has all capabilities in the namespace that it just got, and execve would take them from
 * anybody who is not root there. Init needs these few to build the cage. */
tci_no_address_checks static void keep_capabilities(struct tci_spawn *spawn)
{
    static const int needed[] = { CAP_DAC_OVERRIDE, CAP_SETGID,    CAP_SETUID,
                                  CAP_SETPCAP,      CAP_NET_ADMIN, CAP_SYS_ADMIN,
                                  CAP_SYS_RESOURCE, CAP_NET_RAW,   CAP_NET_BIND_SERVICE };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    for (size_t i = 0; i < tci_array_size(needed); i++) {
        data[0].effective |= 1U << needed[i];
        data[0].permitted |= 1U << needed[i];
        data[0].inheritable |= 1U << needed[i];
    }
    if (syscall(SYS_capset, &header, data) < 0)
        fail(spawn, STEP_CAPABILITIES);
    for (size_t i = 0; i < tci_array_size(needed); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0) < 0)
            fail(spawn, STEP_CAPABILITIES);
}

/* A signal that the host ignores would stay ignored in the command: a host that ignores SIGPIPE must
 * not make its tools behave oddly, and with SIGCHLD ignored init would find nobody to wait for. The
 * child has a table of its own; handlers go with execve. */
tci_no_address_checks static void reset_signals(void)
{
    /* Asked of the kernel itself: libc keeps two signals for itself and does not reset them. */
    static const unsigned long standard[4]; /* struct sigaction, as the kernel has it */
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, standard, NULL, sizeof standard[0]);
}

tci_no_address_checks static int child(void *argument)
{
    struct tci_spawn *spawn = argument;
    int init;
    reset_signals();
    enter_groups(spawn);
    arrange_descriptors(spawn);
    init = spawn->failed_step;
    spawn->failed_step = STEP_NONE;
    if (spawn->function && tci_native_start_function(spawn) < 0)
        fail(spawn, STEP_FUNCTION);
    if (spawn->plan->is_jail)
        keep_capabilities(spawn);
    (void)syscall(SYS_execveat, init, "", spawn->argv, spawn->plan->environment, AT_EMPTY_PATH);
    fail(spawn, STEP_EXECUTE);
}

/* ---- in the caller ----------------------------------------------------------------------------- */

/* clone3, with a function to run on the new stack. The result, or a negative errno. */
static long clone3_run(struct clone_args *args, int (*function)(void *), void *argument)
{
#if defined(__x86_64__)
    long result;
    register int (*run)(void *) __asm__("r12") = function;
    register void *with __asm__("r13") = argument;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "hlt\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args), "S"(sizeof *args), "r"(run), "r"(with)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = sizeof *args;
    register int (*run)(void *) __asm__("x20") = function;
    register void *with __asm__("x21") = argument;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "brk #0\n\t"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(run), "r"(with)
                     : "memory", "cc");
    return x0;
#else
#error "toolcage starts cages on x86_64 and aarch64"
#endif
}

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
    pid = clone3_run(&args, child, spawn);
    /* Some container engines hide clone3. clone does as well; the child enters its group itself. */
    if (pid == -ENOSYS) {
        spawn->born_inside = false;
        args.flags &= ~CLONE_INTO_CGROUP;
        pid = clone(child, stack + size, (int)(uint32_t)args.flags | SIGCHLD, spawn, &spawn->pidfd);
        pid = pid < 0 ? -errno : pid;
    }
    return pid;
}

/* On a stack of its own: the caller's may be small. */
static int spawn_here(struct tci_spawn *spawn, int *ret_problem, struct tc_error *reterr)
{
    char *stack = malloc(stack_size);
    sigset_t all, before;
    int cancel_state;
    long pid;

    if (!stack)
        return tci_error_no_memory(reterr);
    (void)sigfillset(&all);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = tci_native_clone(spawn, stack, stack_size);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel_state, NULL);
    free(stack);
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
    (void)waitid(P_PIDFD, (id_t)spawn->pidfd, &(siginfo_t){ 0 }, WEXITED);
    spawn->pidfd = tci_close(spawn->pidfd);
    tci_error_errno(reterr, spawn->failed_errno, "the cage could not be built: %s",
                    step_texts[spawn->failed_step]);
    tci_error_remedy(reterr, "something around toolcage refuses it (a container, a filter), or the "
                             "kernel is older than 5.12: see toolcage doctor");
    return -1;
}
