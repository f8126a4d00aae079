/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the child between clone and execve, as far as it is the same for every cage (child.h). */
#include "backend/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/thread_checks.h"

enum { stack_size = 32768 };

/* ---- in the child ------------------------------------------------------------------------------ */

/* The child has a table of its own; handlers go with execve. */
tci_no_address_checks void tci_child_reset_signals(void)
{
    /* Asked of the kernel itself: libc keeps two signals for itself and does not reset them. */
    static const unsigned long standard[4]; /* struct sigaction, as the kernel has it */
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, standard, NULL, sizeof standard[0]);
}

tci_no_address_checks int tci_child_enter(const struct tci_cgroup *group, unsigned first)
{
    for (unsigned i = first; group && i < group->enter_count; i++)
        if (write(group->enter[i], "0", 1) != 1)
            return -1;
    return 0;
}

/* Sources in the way are moved up first. */
tci_no_address_checks int tci_child_arrange(int *from, int count, int program)
{
    for (int i = 0; i < count; i++)
        if (from[i] >= 0 && from[i] <= count &&
            (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, count + 1)) < 0)
            return -1;
    if (program <= count && (program = fcntl(program, F_DUPFD_CLOEXEC, count + 1)) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (from[i] < 0)
            (void)close(i);
        else if (dup2(from[i], i) < 0)
            return -1;
    if (dup3(program, count, O_CLOEXEC) < 0)
        return -1;
    return syscall(SYS_close_range, count + 1, ~0U, 0) < 0 ? -1 : 0;
}

tci_no_address_checks int tci_child_keep(const int *capabilities, size_t count)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    for (size_t i = 0; i < count; i++)
        data[0].effective |= 1U << capabilities[i];
    data[0].permitted = data[0].inheritable = data[0].effective;
    if (syscall(SYS_capset, &header, data) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capabilities[i], 0, 0) < 0)
            return -1;
    return 0;
}

/* ---- in the caller ----------------------------------------------------------------------------- */

int tci_child_make(long (*make)(void *argument, char *stack, size_t size), void *argument,
                   long *ret_pid, struct tc_error *reterr)
{
    char *stack = malloc(stack_size);
    sigset_t all, before;
    int cancel_state;
    if (!stack)
        return tci_error_no_memory(reterr);
    (void)sigfillset(&all);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    tci_thread_checks_off();
    *ret_pid = make(argument, stack, stack_size);
    tci_thread_checks_on();
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel_state, NULL);
    free(stack);
    return 0;
}

int tci_child_failed(int *pidfd, int problem, const char *what, const char *step,
                     struct tc_error *reterr)
{
    (void)waitid(P_PIDFD, (id_t)*pidfd, &(siginfo_t){ 0 }, WEXITED);
    *pidfd = tci_close(*pidfd);
    tci_error_errno(reterr, problem, "%s: %s", what, step);
    tci_error_remedy(reterr, "something around toolcage refuses it (a container, a filter), or the "
                             "kernel is older than 5.12: see toolcage doctor");
    return -1;
}
