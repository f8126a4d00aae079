/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the first process of every native cage. It builds the cage from inside (init_stage.c), gives
 * up all privileges, starts the command, collects orphans, and ends with the command or with the
 * supervisor, whichever is first. In a jail it is pid 1: the kernel ends the tree with it.
 *
 * It is a static program without a C library, kept inside the library as bytes: a few pages per
 * running cage, and no memory shared with the process that uses the library. It trusts its
 * descriptors and its configuration, which the command never sees.
 */
#include "backend/native/init.h"

#include <asm/signal.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/wait.h>

enum {
    init_failed = 127,
    everybody = -1,
    stack_size = 16384,
    o_cloexec = 02000000,
    signalfd_flags = o_cloexec | 04000, /* NONBLOCK */
    family_unix = 1,
    socket_stream = 1,
};

INIT_START;

static void read_flags(struct init *init, const char *letters)
{
    for (; *letters; letters++) {
        init->is_jail |= *letters == TCI_INIT_FLAG_JAIL;
        init->is_mapped |= *letters == TCI_INIT_FLAG_MAPPED;
        init->has_terminal |= *letters == TCI_INIT_FLAG_TERMINAL;
        init->is_traced |= *letters == TCI_INIT_FLAG_TRACED;
        init->must_hold |= *letters == TCI_INIT_FLAG_HOLD;
        init->has_program |= *letters == TCI_INIT_FLAG_PROGRAM;
        if (*letters >= '0' && *letters <= '9') /* behind FOREIGN */
            init->foreign = init->foreign * 10 + (*letters - '0');
    }
}

static int take_signals(void)
{
    static const unsigned long all = ~0UL;
    static const unsigned long standard[4]; /* struct sigaction, as the kernel has it */
    const unsigned long child = 1UL << (SIGCHLD - 1);
    /* A host that ignores SIGCHLD would have the kernel collect our children before us. */
    must(TCI_INIT_STEP_SIGNALS, 2, CALL(rt_sigaction, SIGCHLD, standard, 0, sizeof child, 0));
    must(TCI_INIT_STEP_SIGNALS, 0, CALL(rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof all, 0));
    return (int)must(TCI_INIT_STEP_SIGNALS, 1,
                     CALL(signalfd4, -1, &child, sizeof child, signalfd_flags, 0));
}

static _Noreturn void run_command(void *argument)
{
    const struct init *init = argument;
    (void)CALL(close, init->start[1], 0, 0, 0, 0); /* or it would wait for itself */
    drop_privileges(init);
    become_command(init);
}

/*
 * The command's process uses init's memory until it starts its program, where the kernel lets it:
 * copying it, page by page as it is written to, would cost more than all that is done there. It has a
 * stack of its own, and both only read what both use.
 *
 * Taking the host's root away waits for other processors, and so it is done beside the command's
 * process, which prepares itself meanwhile. It starts its program when it gets a byte: when nothing of
 * the host is left and init has no privileges any more.
 */
static long fork_command(struct init *init)
{
    static _Alignas(16) char stack[stack_size];
    long pid;
    must(TCI_INIT_STEP_FORK, 1,
         CALL(socketpair, family_unix, socket_stream | o_cloexec, 0, init->start, 0));
    pid = clone_run(CLONE_VM | SIGCHLD, stack + stack_size, run_command, init);
    /* An older kernel (6.1) lets nobody share memory with a process in another time namespace. */
    if (pid == -EINVAL)
        pid = clone_run(SIGCHLD, stack + stack_size, run_command, init);
    must(TCI_INIT_STEP_FORK, 0, pid);
    (void)CALL(close, init->start[0], 0, 0, 0, 0);
    return pid;
}

static long start_command(struct init *init)
{
    long pid = init->foreign;
    char byte;
    if (init->is_traced && CALL(read, TCI_INIT_FD_GO, &byte, 1, 0, 0) != 1)
        broken(TCI_INIT_STEP_GO, 1, -EPIPE);
    init->start[1] = TCI_INIT_FD_START;
    if (!pid)
        pid = fork_command(init);
    if (init->is_jail)
        leave_host();
    drop_privileges(init);
    /* It is our child, and waits for the root that it is to have. */
    if (init->foreign && init->is_jail)
        must(TCI_INIT_STEP_FORK, 3, CALL(write, init->start[1], "r", 1, 0, 0));
    /* Before there is anybody who could kill us: the supervisor must know whom to end then, and the
     * group must be there to be ended. */
    if (!init->is_jail) {
        struct tci_init_report r = { .end = TCI_INIT_STARTED, .status = (int32_t)pid };
        if (CALL(read, init->start[1], &byte, 1, 0, 0) != 1)
            broken(TCI_INIT_STEP_GROUP, 1, -EPIPE); /* unless it has said itself why */
        report(&r);
    }
    must(TCI_INIT_STEP_FORK, 2, CALL(write, init->start[1], "s", 1, 0, 0));
    (void)CALL(close, init->start[1], 0, 0, 0, 0);
    return pid;
}

/* Everything that the command left. In a jail that is everybody; otherwise its process group, which
 * nobody can leave. Orphans come to us, so that nothing is missed: again until nobody is left. */
static void end_the_rest(const struct init *init, long pid)
{
    const long whom = init->is_jail ? everybody : -pid;
    (void)CALL(kill, whom, SIGKILL, 0, 0, 0);
    for (;;) {
        long waited = CALL(wait4, -1, 0, __WALL, 0, 0);
        if (waited < 0 && waited != -EINTR)
            return;
        (void)CALL(kill, whom, SIGKILL, 0, 0, 0);
    }
}

/* The root of the cage lives as long as this process: files are being brought out of it. */
static void hold(void)
{
    struct pollfd watched[2] = { { .fd = TCI_INIT_FD_OWNER, .events = POLLIN },
                                 { .fd = TCI_INIT_FD_GO, .events = POLLIN } };
    while (CALL(ppoll, watched, 2, 0, 0, 0) == -EINTR)
        ;
}

static _Noreturn void finish(const struct init *init, long pid, int status)
{
    struct tci_init_report r = { .end = TCI_INIT_ENDED, .status = status };
    struct rusage used = { 0 };
    end_the_rest(init, pid);
    if (CALL(getrusage, RUSAGE_CHILDREN, &used, 0, 0, 0) == 0) {
        r.cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000U +
                   (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
        r.memory_peak = (uint64_t)used.ru_maxrss * 1024U;
        r.bytes_written = (uint64_t)used.ru_oublock * 512U;
    }
    report(&r);
    if (init->must_hold)
        hold();
    leave(0);
}

/* Collects the dead; ends when the command is one of them. */
static void collect(const struct init *init, long command)
{
    int status = 0, command_status = 0;
    bool over = false;
    long pid;
    while ((pid = CALL(wait4, -1, &status, WNOHANG | __WALL, 0, 0)) > 0)
        if (pid == command) {
            over = true;
            command_status = status;
        }
    if (over)
        finish(init, command, command_status);
}

static _Noreturn void watch(const struct init *init, long command, int signals)
{
    /* The supervisor is gone when its process is, or when nobody holds the other end of GO: it may
     * have become another program. */
    struct pollfd watched[3] = { { .fd = TCI_INIT_FD_OWNER, .events = POLLIN },
                                 { .fd = signals, .events = POLLIN },
                                 { .fd = TCI_INIT_FD_GO } };
    char ignored[128];
    for (;;) {
        long n = CALL(ppoll, watched, 3, 0, 0, 0);
        if (n < 0 && n != -EINTR)
            leave(init_failed);
        if (n > 0 && (watched[0].revents || watched[2].revents)) {
            end_the_rest(init, command);
            leave(init_failed);
        }
        while (CALL(read, signals, ignored, sizeof ignored, 0, 0) > 0)
            ;
        collect(init, command);
    }
}

_Noreturn void init_main(long *arguments);
_Noreturn void init_main(long *arguments)
{
    struct init init = { .ruleset = -1 };
    char **argv = (char **)(arguments + 1);
    long command;
    int signals;

    if (arguments[0] < 2)
        broken(TCI_INIT_STEP_CONFIG, 2, -EINVAL);
    forget_caller();
    read_flags(&init, argv[0]);
    init.command = argv + 1;
    init.environment = argv + arguments[0] + 1;
    map_config(&init);
    drop_bounds(&init);
    if (init.is_jail)
        enter_cage(&init);
    init.ruleset = make_ruleset(&init);
    if (!init.is_jail)
        must(TCI_INIT_STEP_SUBREAPER, 0, CALL(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    signals = take_signals();
    command = start_command(&init);
    /* What the command was given is not ours: who reads its output sees the end when it ends. */
    for (int fd = 0; fd <= TCI_INIT_FD_CONFIG; fd++)
        (void)CALL(close, fd, 0, 0, 0, 0);
    if (init.has_program)
        (void)CALL(close, TCI_INIT_FD_PROGRAM, 0, 0, 0, 0);
    watch(&init, command, signals);
}
