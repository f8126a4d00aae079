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
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <linux/wait.h>

enum {
    init_failed = 127,
    everybody = -1,
    capability_last = 63,
    stack_size = 16384,
    o_cloexec = 02000000,
    signalfd_flags = o_cloexec | 04000, /* NONBLOCK */
    family_unix = 1,
    socket_stream = 1,
};

INIT_START;

/* The compiler may ask for these even here. */
void *memset(void *to, int value, size_t length);
void *memset(void *to, int value, size_t length)
{
    unsigned char *bytes = to;
    while (length--)
        *bytes++ = (unsigned char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    unsigned char *bytes = to;
    const unsigned char *source = from;
    while (length--)
        *bytes++ = *source++;
    return to;
}

_Noreturn void leave(int status)
{
    for (;;)
        (void)CALL(exit_group, status, 0, 0, 0, 0);
}

void report(struct tci_init_report *what)
{
    what->magic = TCI_INIT_MAGIC;
    (void)CALL(write, TCI_INIT_FD_REPORT, what, sizeof *what, 0, 0);
}

_Noreturn void broken(enum tci_init_step step, uint32_t item, long result)
{
    struct tci_init_report r = {
        .end = TCI_INIT_BROKEN, .status = (int32_t)-result, .step = step, .item = item
    };
    report(&r);
    leave(init_failed);
}

long must(enum tci_init_step step, uint32_t item, long result)
{
    if (result < 0)
        broken(step, item, result);
    return result;
}

static void read_flags(struct init *init, const char *letters)
{
    for (; *letters; letters++) {
        init->is_jail |= *letters == TCI_INIT_FLAG_JAIL;
        init->is_mapped |= *letters == TCI_INIT_FLAG_MAPPED;
        init->has_terminal |= *letters == TCI_INIT_FLAG_TERMINAL;
        init->is_traced |= *letters == TCI_INIT_FLAG_TRACED;
        init->must_hold |= *letters == TCI_INIT_FLAG_HOLD;
    }
}

static void map_config(struct init *init)
{
    struct tci_init_config header = { 0 };
    long n = CALL(pread64, TCI_INIT_FD_CONFIG, &header, sizeof header, 0, 0), address;
    if (n != (long)sizeof header || header.magic != TCI_INIT_MAGIC)
        broken(TCI_INIT_STEP_CONFIG, 0, n < 0 ? n : -EINVAL);
    address = CALL6(mmap, 0, header.size, PROT_READ, MAP_PRIVATE, TCI_INIT_FD_CONFIG, 0);
    must(TCI_INIT_STEP_CONFIG, 1, address);
    init->config = (const struct tci_init_config *)address;
}

/*
 * Nothing is left that a later execve could bring back: bounding, ambient, inheritable, permitted and
 * effective sets are empty, and root has no special meaning. An ordinary user's `process` cage has no
 * capability to begin with and may not touch the first two; no_new_privs makes them worthless.
 *
 * The bounding set goes first, one call for each capability: once for init and what it starts. It
 * takes nothing from what init still needs, which is permitted already.
 */
static void drop_bounds(const struct init *init)
{
    for (int cap = 0; cap <= capability_last; cap++) {
        long result = CALL(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
        if (result == -EINVAL && cap)
            return; /* beyond the last one that this kernel knows */
        if (result == -EPERM && !init->is_jail)
            return;
        must(TCI_INIT_STEP_CAPABILITIES, 3, result);
    }
}

static void drop_privileges(const struct init *init)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    long result;
    must(TCI_INIT_STEP_NO_NEW_PRIVILEGES, 0, CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    result = CALL(prctl, PR_SET_SECUREBITS, bits, 0, 0, 0);
    if (init->is_jail || result != -EPERM)
        must(TCI_INIT_STEP_CAPABILITIES, 0, result);
    must(TCI_INIT_STEP_CAPABILITIES, 1,
         CALL(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    must(TCI_INIT_STEP_CAPABILITIES, 2, CALL(capset, &header, data, 0, 0, 0));
    /* The command runs as the same user: it must not look into init, which holds descriptors. */
    must(TCI_INIT_STEP_HIDE, 0, CALL(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
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
static long start_command(struct init *init)
{
    static _Alignas(16) char stack[stack_size];
    long pid;
    char byte;
    if (init->is_traced && CALL(read, TCI_INIT_FD_GO, &byte, 1, 0, 0) != 1)
        broken(TCI_INIT_STEP_GO, 1, -EPIPE);
    must(TCI_INIT_STEP_FORK, 1,
         CALL(socketpair, family_unix, socket_stream | o_cloexec, 0, init->start, 0));
    pid = clone_run(CLONE_VM | SIGCHLD, stack + stack_size, run_command, init);
    /* An older kernel (6.1) lets nobody share memory with a process in another time namespace. */
    if (pid == -EINVAL)
        pid = clone_run(SIGCHLD, stack + stack_size, run_command, init);
    must(TCI_INIT_STEP_FORK, 0, pid);
    (void)CALL(close, init->start[0], 0, 0, 0, 0);
    if (init->is_jail)
        leave_host();
    drop_privileges(init);
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

/* What the caller is protected by, or was made less safe by, is not the cage's: a personality without
 * address randomisation, real-time scheduling, a raised priority, safety from the out-of-memory
 * killer. All of these may be given up by anybody. */
static void forget_caller(void)
{
    static const int ordinary; /* struct sched_param */
    long fd = CALL(openat, -100, "/proc/self/oom_score_adj", 01 | o_cloexec, 0, 0);
    if (fd >= 0) {
        (void)CALL(write, fd, "200", 3, 0, 0);
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
    (void)CALL(personality, 0, 0, 0, 0, 0);
    (void)CALL(sched_setscheduler, 0, 0, &ordinary, 0, 0);
    if (CALL(getpriority, 0, 0, 0, 0, 0) > 20) /* 20 - nice */
        (void)CALL(setpriority, 0, 0, 0, 0, 0);
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
    /* The caller's session keyring stays behind. Where there are no keyrings, there is nothing to
     * leave. */
    (void)CALL(keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
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
    watch(&init, command, signals);
}
