/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the first process of a container (entry_abi.h): hello, one command, its end, the report.
 *
 * It holds the socket to the supervisor, which the command must never have: it cannot be looked into
 * (PR_SET_DUMPABLE), the socket is closed by the execve, and pid 1 gets no signal from inside. In a container it is
 * pid 1: everybody else in the pid namespace is the call's, and is killed when the command has ended. A static
 * program without a C library: it is executed once for each call, and inside gVisor every system call is dear.
 */
#include "inside/entry.h"

#include <asm/signal.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/un.h>
#include <linux/wait.h>

enum {
    failed = 127,
    signal_last = 64,
    stack_size = 16384,
    family_unix = 1,
    socket_stream = 1,
    sol_socket = 1,
    scm_rights = 1,
    scm_credentials = 2,
    no_signal = 0x4000,
    set_fd_flags = 2,
    open_handle = 010000000 | ENTRY_O_CLOEXEC, /* O_PATH */
    at_fdcwd = -100,
    signalfd_flags = ENTRY_O_CLOEXEC | 04000, /* NONBLOCK */
    descriptors_max = 4096,
    directory_max = 64, /* of the length of its path */
    connect_attempts = 500,
    connect_pause_ns = 20000000, /* 10 s in all */
    rest_attempts = 4000,
    rest_pause_ns = 500000, /* 2 s in all */
};

BARE_START("entry_main");

_Noreturn void entry_leave(int status)
{
    for (;;)
        (void)CALL(exit_group, status, 0, 0, 0, 0);
}

/* ---- the socket --------------------------------------------------------------------------------- */

/* A path in our directory; `room` is large enough for every socket's. */
static void path_of(const char *directory, const char *name, char *room)
{
    size_t n = 0;
    for (; *directory; directory++) {
        if (n == directory_max)
            entry_leave(failed);
        room[n++] = *directory;
    }
    do
        room[n++] = *name;
    while (*name++);
}

static int connect_control(const char *directory)
{
    struct sockaddr_un address = { .sun_family = family_unix };
    static const struct timespec pause = { .tv_nsec = connect_pause_ns };
    long fd = CALL(socket, family_unix, socket_stream | ENTRY_O_CLOEXEC, 0, 0, 0);
    path_of(directory, TCI_ENTRY_SOCKET, address.sun_path);
    for (int i = 0; fd >= 0 && i < connect_attempts; i++) {
        if (CALL(connect, fd, &address, sizeof address, 0, 0) == 0)
            return (int)fd;
        (void)CALL(nanosleep, &pause, 0, 0, 0, 0);
    }
    entry_leave(failed);
}

/* How entry was started says where the socket is: "fd:N" or a directory. */
static int find_control(const char *how)
{
    int fd = 0;
    if (how[0] == '/')
        return connect_control(how);
    if (how[0] != 'f' || how[1] != 'd' || how[2] != ':' || !how[3] || (how[4] && how[5]))
        entry_leave(failed);
    for (how += 3; *how; how++) {
        if (*how < '0' || *how > '9')
            entry_leave(failed);
        fd = fd * 10 + (*how - '0');
    }
    if (CALL(fcntl, fd, set_fd_flags, 1 /* FD_CLOEXEC */, 0, 0) < 0)
        entry_leave(failed);
    return fd;
}

/* What /proc lists, because one call for each possible number takes a quarter of a second in gVisor. False:
 * there is no such list. */
static bool close_listed(int control)
{
    static _Alignas(8) char entries[4096];
    const long list = CALL(openat, at_fdcwd, "/proc/self/fd", ENTRY_O_CLOEXEC, 0, 0);
    long n = list < 0 ? -1 : CALL(getdents64, list, entries, sizeof entries, 0, 0);
    const bool is_whole = n > 0 && n < (long)sizeof entries / 2;
    for (long at = 0; is_whole && at < n;) {
        /* Its inode, offset, length, type and name. */
        const char *entry = entries + at, *name = entry + 19;
        int fd = 0;
        at += *(const unsigned short *)(const void *)(entry + 16);
        for (; *name >= '0' && *name <= '9'; name++)
            fd = fd * 10 + (*name - '0');
        if (name != entry + 19 && fd != control && fd != list)
            (void)CALL(close, fd, 0, 0, 0, 0);
    }
    if (list >= 0)
        (void)CALL(close, list, 0, 0, 0, 0);
    return is_whole;
}

/* Everything but the socket. A runtime that leaves a descriptor of the host open without closing it at an
 * execve would hand it to the command, and with it the host's files (as runc once did with a directory of
 * control groups). */
static void close_others(int control)
{
    long r = control ? CALL(close_range, 0, control - 1, 0, 0, 0) : 0;
    if (r == 0)
        r = CALL(close_range, control + 1, ~0U, 0, 0, 0);
    if (r < 0 && !close_listed(control)) /* an older gVisor */
        for (int fd = 0; fd < descriptors_max; fd++)
            if (fd != control)
                (void)CALL(close, fd, 0, 0, 0, 0);
}

static void say(int control, struct tci_entry_report *report)
{
    report->magic = TCI_ENTRY_MAGIC;
    (void)CALL6(sendto, control, report, sizeof *report, no_signal, 0, 0);
}

/* With a handle on the root, and with credentials, which the kernel turns into our id on the host. Where
 * that cannot be sent, hello goes without the handle: in gVisor; and while another process of this user has
 * as many descriptors on their way through sockets as the kernel allows it. */
static void say_hello(int control, long pid)
{
    struct hello_control {
        struct entry_cmsghdr head;
        int pid;
        unsigned uid, gid, unused;
        struct entry_cmsghdr root_head;
        int root, root_unused;
    } with = { .head = { sizeof with.head + 12, sol_socket, scm_credentials },
               .pid = (int)pid,
               .uid = (unsigned)CALL(geteuid, 0, 0, 0, 0, 0),
               .gid = (unsigned)CALL(getegid, 0, 0, 0, 0, 0),
               .root_head = { sizeof with.root_head + 4, sol_socket, scm_rights } };
    struct tci_entry_report hello = { .magic = TCI_ENTRY_MAGIC, .kind = TCI_ENTRY_HELLO };
    struct entry_iovec vector = { &hello, sizeof hello };
    struct entry_msghdr message = {
        .vectors = &vector,
        .vector_count = 1,
        .control = &with,
        .control_length = sizeof with,
    };
    with.root = (int)CALL(openat, at_fdcwd, "/", open_handle, 0, 0);
    if (with.root < 0 || CALL(sendmsg, control, &message, no_signal, 0, 0) < 0) {
        message.control_length = offsetof(struct hello_control, root_head);
        if (CALL(sendmsg, control, &message, no_signal, 0, 0) < 0)
            say(control, &hello);
    }
    if (with.root >= 0)
        (void)CALL(close, with.root, 0, 0, 0, 0);
}

static _Noreturn void broken(int control, enum tci_entry_step step, long result)
{
    struct tci_entry_report r = { .kind = TCI_ENTRY_BROKEN,
                                  .step = step,
                                  .status = (int32_t)-result };
    say(control, &r);
    entry_leave(failed);
}

/* ---- the command ---------------------------------------------------------------------------------- */

struct birth {
    const struct entry_call *call;
    struct entry_failure failure;
};

static _Noreturn void be_born(void *argument)
{
    struct birth *birth = argument;
    entry_become(birth->call, &birth->failure);
}

/* Before there is a command: whatever it starts is counted. Closed before, too: with such a file somebody
 * could go back. */
static void enter_groups(int control, const struct entry_call *call)
{
    for (uint32_t i = 0; i < call->group_count; i++) {
        const int fd = call->streams[ENTRY_STREAMS + i];
        long n = CALL(write, fd, "0", 1, 0, 0);
        if (n != 1)
            broken(control, TCI_ENTRY_STEP_GROUP, n < 0 ? n : -EIO);
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
}

/*
 * The command's process uses our memory until its program starts or it ends, and we stand still meanwhile:
 * nothing is copied, and what it has written is there without a pipe.
 */
static long start_command(int control, const struct entry_call *call)
{
    static _Alignas(16) char stack[stack_size];
    struct birth birth = { .call = call };
    const volatile struct entry_failure *failure = &birth.failure;
    struct tci_entry_report r = { .kind = TCI_ENTRY_STARTED };
    long pid = clone_run(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + stack_size, be_born, &birth);
    if (pid < 0)
        broken(control, TCI_ENTRY_STEP_FORK, pid);
    if (failure->kind) {
        r.kind = failure->kind;
        r.step = failure->step;
        r.status = (int32_t)-failure->result;
    }
    for (int i = 0; i < ENTRY_STREAMS; i++) /* who reads the output sees the end when it ends */
        (void)CALL(close, call->streams[i], 0, 0, 0, 0);
    say(control, &r);
    if (failure->kind)
        entry_leave(failed);
    return pid;
}

/* Everybody else in the pid namespace, again until nobody is left: a tree that forks faster than it is
 * killed gets no peace. Outside of containers (tests) it is the command's session alone. False: somebody is left,
 * who may not be killed by us, because the policy gave a capability to become another user. Our own end is
 * theirs, too, if we are the first process. */
static bool end_the_rest(bool is_first, long command)
{
    static const struct timespec pause = { .tv_nsec = rest_pause_ns };
    const long whom = is_first ? -1 : -command;
    for (int i = 0; i < rest_attempts;) {
        long waited;
        (void)CALL(kill, whom, SIGKILL, 0, 0, 0);
        waited = CALL(wait4, -1, 0, __WALL | WNOHANG, 0, 0);
        if (waited < 0 && waited != -EINTR)
            return true;
        if (waited == 0)
            (void)CALL(nanosleep, &pause, 0, 0, 0, 0);
        i += waited <= 0;
    }
    return false;
}

static void hold(int control)
{
    char byte;
    while (CALL(read, control, &byte, 1, 0, 0) == -EINTR)
        ;
}

static _Noreturn void finish(int control, unsigned flags, int status)
{
    struct tci_entry_report r = { .kind = TCI_ENTRY_ENDED, .status = status };
    struct rusage used = { 0 };
    if (CALL(getrusage, RUSAGE_CHILDREN, &used, 0, 0, 0) == 0) {
        r.cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000U +
                   (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        r.memory_peak = (uint64_t)used.ru_maxrss * 1024U;
        r.bytes_written = (uint64_t)used.ru_oublock * 512U;
    }
    say(control, &r);
    if (flags & TCI_ENTRY_HOLD)
        hold(control);
    entry_leave(0);
}

/* True when the command is among the dead. */
static bool collect(long command, int *ret_status)
{
    bool over = false;
    int status = 0;
    long pid;
    while ((pid = CALL(wait4, -1, &status, WNOHANG | __WALL, 0, 0)) > 0)
        if (pid == command) {
            over = true;
            *ret_status = status;
        }
    return over;
}

static _Noreturn void watch(int control, unsigned flags, long command, int signals, bool is_first)
{
    /* Nothing is said to us while the command runs: whatever comes is the end of the supervisor. */
    struct pollfd watched[2] = { { .fd = control, .events = POLLIN },
                                 { .fd = signals, .events = POLLIN } };
    char ignored[128];
    int status = 0;
    for (;;) {
        long n = CALL(ppoll, watched, 2, 0, 0, 0);
        if ((n < 0 && n != -EINTR) || (n > 0 && watched[0].revents)) {
            (void)end_the_rest(is_first, command);
            entry_leave(failed);
        }
        if (collect(command, &status)) {
            /* Nobody else may live while files are brought back: who cannot be killed ends with us. */
            if (!end_the_rest(is_first, command))
                flags &= ~(unsigned)TCI_ENTRY_HOLD;
            finish(control, flags, status);
        }
        while (CALL(read, signals, ignored, sizeof ignored, 0, 0) > 0)
            ;
    }
}

_Noreturn void entry_main(const long *arguments);
_Noreturn void entry_main(const long *arguments)
{
    static const unsigned long all = ~0UL;
    static const unsigned long standard[4]; /* struct sigaction, as the kernel has it */
    static const unsigned long child = 1UL << (SIGCHLD - 1);
    struct entry_call call = { 0 };
    char brought[directory_max + sizeof TCI_ENTRY_BROUGHT];
    char *const *argv = (char *const *)(const void *)(arguments + 1);
    const long pid = CALL(getpid, 0, 0, 0, 0, 0);
    long error, command;
    int control, signals;

    if (arguments[0] != 2)
        entry_leave(failed);
    control = find_control(argv[1]);
    close_others(control);
    (void)CALL(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)CALL(rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof all, 0);
    /* What is ignored here would be ignored by the command; and of SIGCHLD that would lose its end. In
     * gVisor (there the socket is 0) nothing is ignored at the start, and each call is dear. */
    for (int signal = control ? 1 : SIGCHLD; signal <= (control ? signal_last : SIGCHLD); signal++)
        (void)CALL(rt_sigaction, signal, standard, 0, sizeof child, 0);
    if (pid != 1)
        (void)CALL(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signals = (int)CALL(signalfd4, -1, &child, sizeof child, signalfd_flags, 0);
    say_hello(control, pid);
    if (!entry_read(control, &call, &error)) {
        if (error)
            broken(control, TCI_ENTRY_STEP_MESSAGE, error);
        entry_leave(failed);
    }
    path_of(argv[1][0] == '/' ? argv[1] : TCI_ENTRY_DIRECTORY, TCI_ENTRY_BROUGHT, brought);
    call.brought = brought;
    enter_groups(control, &call);
    command = start_command(control, &call);
    watch(control, call.flags, command, signals, pid == 1);
}
