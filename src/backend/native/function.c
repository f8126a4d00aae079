/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a function of the host, run in a cage. The way there:
 *
 *   host     fork()s a go-between: the C library makes its locks usable in it, so that the function
 *            may allocate although other threads of the host were allocating
 *   go-between  lets go of memory that it shares with others, and clones, as for any call, the
 *            process that becomes init, as a child of the host; then it ends
 *   init-to-be  before its execve, forks the function's process: its child, in its namespaces
 *   function's process  waits until init has built the cage, puts itself under the same rules as a
 *            command would be (function_stage.c), calls the function, and ends with its status
 *
 * So init has a child like any other, and limits, verdicts and the end of the tree are the same as for
 * a command. Between the forks and the function there are system calls only.
 */
#include "backend/native/function.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/native/native.h"
#include "base/fd.h"

/* Between the go-between's frames and the stack of what it clones: both are in one memory. The
 * function runs further down on the same stack, the calling thread's own, with all that is left. */
enum { gap = 16384, first_stack = 32768 };

/* What the go-between has to say; a handle on init comes with it. */
struct answer {
    int shared_errno; /* memory that is shared could not be let go of */
    int clone_errno;
    int pid;
    int failed_step, failed_errno;
    bool born_inside;
};

/* ---- the function's process -------------------------------------------------------------------- */

static int reply(const struct tc_handler_call *call, const void *bytes, size_t length)
{
    (void)call;
    return tci_write_all(STDOUT_FILENO, bytes, length);
}

static _Noreturn void call_function(const struct tci_spawn *spawn, int line)
{
    struct tc_handler_call call = spawn->handler;
    const struct tc_plan *plan = spawn->plan;
    call.reply = reply;
    tci_stage_enter(plan->is_jail, plan->is_jail && plan->is_root, line);
    /* Not exit(): what the host wants to be done at its end is not to be done here. */
    _exit(spawn->function(&call) & 0xff);
}

/* The flag, and the process as init sees it. */
static void tell_init(char *flags, int pid)
{
    char digits[12];
    size_t n = 0, at = strlen(flags);
    flags[at++] = TCI_INIT_FLAG_FOREIGN;
    for (; pid; pid /= 10)
        digits[n++] = (char)('0' + pid % 10);
    while (n)
        flags[at++] = digits[--n];
    flags[at] = '\0';
}

/* A line to init, both ends above the descriptors that init knows by number. */
static int make_line(const struct tci_spawn *spawn, int ret[2])
{
    const int above = TCI_INIT_FD_MOUNTS + (int)spawn->mount_count + 1;
    int low[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        ret[i] = fcntl(low[i], F_DUPFD_CLOEXEC, above);
        if (ret[i] < 0)
            return -1;
        (void)close(low[i]);
    }
    return 0;
}

/* _Fork: fork() without the handlers that the host's libraries have for it. They have been called, in
 * the go-between, and here they would be called once more, in the middle of its clone. */
int tci_native_start_function(struct tci_spawn *spawn)
{
    int line[2];
    pid_t pid;
    if (make_line(spawn, line) < 0)
        return -1;
    pid = _Fork();
    if (pid < 0)
        return -1;
    if (pid == 0)
        call_function(spawn, line[0]);
    tell_init(spawn->flags, pid);
    return dup2(line[1], TCI_INIT_FD_START) < 0 ? -1 : 0; /* the rest is closed by execve */
}

/* ---- the go-between ---------------------------------------------------------------------------- */

static void send_answer(int line, const struct answer *answer, int pidfd)
{
    struct iovec bytes = { .iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof *answer };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
    if (pidfd >= 0) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof pidfd);
        memcpy(CMSG_DATA(&control.header), &pidfd, sizeof pidfd);
    }
    (void)sendmsg(line, &message, MSG_NOSIGNAL);
}

tci_no_address_checks static _Noreturn void go_between(struct tci_spawn *spawn, int line)
{
    uintptr_t top = ((uintptr_t)__builtin_frame_address(0) - gap) & ~(uintptr_t)63;
    struct answer answer = { 0 };
    long pid;
    if (tci_native_forget_shared() < 0) {
        answer.shared_errno = errno;
    } else {
        pid = tci_native_clone(spawn, (char *)(top - first_stack), first_stack);
        answer.clone_errno = pid < 0 ? (int)-pid : 0;
        answer.pid = (int)pid;
        answer.failed_step = spawn->failed_step;
        answer.failed_errno = spawn->failed_errno;
        answer.born_inside = spawn->born_inside;
    }
    send_answer(line, &answer, spawn->pidfd);
    _exit(0);
}

/* ---- the host ---------------------------------------------------------------------------------- */

static bool take_answer(int line, struct answer *ret, int *ret_pidfd)
{
    struct iovec bytes = { .iov_base = ret, .iov_len = sizeof *ret };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct msghdr message = { .msg_iov = &bytes,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };
    ssize_t n;
    while ((n = recvmsg(line, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof *ret)
        return false;
    if (message.msg_controllen >= CMSG_LEN(sizeof(int)) && control.header.cmsg_type == SCM_RIGHTS)
        memcpy(ret_pidfd, CMSG_DATA(&control.header), sizeof *ret_pidfd);
    return true;
}

/* Until it has answered, or ended without. Another child of the host may hold a copy of the line, so
 * that the end of the line alone is not to be waited for. */
static bool wait_for_answer(int line, pid_t pid, struct answer *ret, int *ret_pidfd)
{
    tc_cleanup(tci_closep) int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd watched[2] = { { .fd = line, .events = POLLIN },
                                 { .fd = handle, .events = POLLIN } };
    bool answered;
    while (handle >= 0 && poll(watched, 2, -1) < 0 && errno == EINTR)
        ;
    answered = take_answer(line, ret, ret_pidfd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return answered || take_answer(line, ret, ret_pidfd);
}

static int cannot_fork(struct tc_error *reterr, int problem)
{
    tci_error_errno(reterr, problem, "this process cannot be forked for its function");
    tci_error_remedy(reterr, "make the handler a shared object: it needs no copy of this process");
    return -1;
}

static pid_t fork_blocked(struct tci_spawn *spawn, const int line[2])
{
    sigset_t all, before;
    int cancel_state;
    pid_t pid;
    (void)sigfillset(&all);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0) {
        (void)close(line[0]);
        go_between(spawn, line[1]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_setcancelstate(cancel_state, NULL);
    return pid;
}

int tci_native_fork(struct tci_spawn *spawn, int *ret_problem, struct tc_error *reterr)
{
    struct answer answer = { 0 };
    int line[2], problem;
    bool answered;
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
        return tci_error_errno(reterr, errno, "making a pair of sockets");
    pid = fork_blocked(spawn, line);
    problem = errno;
    (void)tci_close(line[1]);
    answered = pid > 0 && wait_for_answer(line[0], pid, &answer, &spawn->pidfd);
    (void)tci_close(line[0]);
    if (pid < 0)
        return cannot_fork(reterr, problem);
    if (!answered)
        return cannot_fork(reterr, ENOMEM); /* the kernel took it away */
    if (answer.shared_errno) {
        tci_error_errno(
            reterr, answer.shared_errno,
            "memory that this process shares with others cannot be kept from the function");
        tci_error_remedy(reterr, "make the handler a shared object; or see to it that /proc is "
                                 "mounted");
        return -1;
    }
    spawn->pid = answer.clone_errno ? 0 : answer.pid;
    spawn->failed_step = answer.failed_step;
    spawn->failed_errno = answer.failed_errno;
    spawn->born_inside = answer.born_inside;
    *ret_problem = answer.clone_errno;
    return 0;
}
