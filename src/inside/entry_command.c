/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the command's process from its birth to its program. It shares memory with entry until then (and
 * nothing else), so it only writes what entry is to know: why it failed.
 */
#include <asm/ioctls.h>
#include <asm/signal.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/seccomp.h>
#include "base/bare.h"
#include "inside/entry.h"

enum {
    program_failed = 127,
    duplicate_cloexec = 1030,
    at_fdcwd = -100,
    open_handle = 010000000 | ENTRY_O_CLOEXEC, /* O_PATH */
};

static _Noreturn void fail(struct entry_failure *failure, enum tci_entry_step step, long result)
{
    failure->kind = TCI_ENTRY_BROKEN;
    failure->step = step;
    failure->result = result;
    entry_leave(program_failed);
}

/* To 0, 1 and 2, in whatever order their numbers came. Everything else is closed by the execve: what the
 * runtime left open without that mark, entry closed before it said hello. */
static void take_streams(const struct entry_call *call, struct entry_failure *failure)
{
    long fds[ENTRY_STREAMS];
    for (int i = 0; i < ENTRY_STREAMS; i++) {
        fds[i] = call->streams[i];
        if (fds[i] < ENTRY_STREAMS)
            fds[i] = CALL(fcntl, fds[i], duplicate_cloexec, ENTRY_STREAMS, 0, 0);
        if (fds[i] < 0)
            fail(failure, TCI_ENTRY_STEP_STREAMS, fds[i]);
    }
    for (int i = 0; i < ENTRY_STREAMS; i++) {
        long r = CALL(dup3, fds[i], i, 0, 0, 0);
        if (r < 0)
            fail(failure, TCI_ENTRY_STEP_STREAMS, r);
    }
}

/* Soft and hard, and never above what the container has: a command with CAP_SYS_RESOURCE would be given
 * more than its container was meant to have. */
static long set_limit(const struct tci_entry_limit *limit)
{
    struct rlimit64 value = { limit->value, limit->value }, before = { 0 };
    long r = CALL(prlimit64, 0, limit->resource, &value, &before, 0);
    const bool was_set = r == 0;
    if (r == -EPERM)
        r = CALL(prlimit64, 0, limit->resource, 0, &before, 0);
    if (r < 0)
        return r;
    /* gVisor lets nobody set some of them, not even to what they are. */
    if (before.rlim_max >= limit->value)
        return was_set || before.rlim_max == limit->value ? 0 : -EPERM;
    value.rlim_cur = value.rlim_max = before.rlim_max;
    r = CALL(prlimit64, 0, limit->resource, &value, 0, 0);
    return was_set ? r : 0; /* as it was, it is tight enough */
}

/* Where the kernel has no Landlock, the mounts have to do. */
static long close_places(char **places)
{
    struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE };
    long ruleset, r = 0;
    if (!*places)
        return 0;
    ruleset = CALL(landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0, 0, 0);
    if (ruleset == -ENOSYS || ruleset == -EOPNOTSUPP || ruleset == -EPERM)
        return 0;
    for (; ruleset >= 0 && r == 0 && *places; places++) {
        const long fd = CALL(openat, at_fdcwd, *places, open_handle, 0, 0);
        struct landlock_path_beneath_attr beneath = { .allowed_access = attr.handled_access_fs,
                                                      .parent_fd = (int)fd };
        if (fd == -ENOENT)
            continue;
        r = fd < 0 ? fd
                   : CALL(landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0, 0);
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
    if (ruleset < 0 || r < 0)
        return ruleset < 0 ? ruleset : r;
    r = CALL(landlock_restrict_self, ruleset, 0, 0, 0, 0);
    (void)CALL(close, ruleset, 0, 0, 0, 0);
    return r;
}

static void prepare(const struct entry_call *call, struct entry_failure *failure)
{
    static const unsigned long none;
    struct sock_fprog program = { (unsigned short)call->filter_count, call->filter };
    long r;
    (void)CALL(rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none, 0);
    (void)CALL(setsid, 0, 0, 0, 0, 0);
    take_streams(call, failure);
    if (call->flags & TCI_ENTRY_TERMINAL && (r = CALL(ioctl, 0, TIOCSCTTY, 0, 0, 0)) < 0)
        fail(failure, TCI_ENTRY_STEP_TERMINAL, r);
    for (uint32_t i = 0; i < call->limit_count; i++)
        if ((r = set_limit(&call->limits[i])) < 0)
            fail(failure, TCI_ENTRY_STEP_LIMIT, r);
    (void)CALL(umask, 022, 0, 0, 0, 0);
    /* From the root of the container, never relative: a runtime that leaves us in a directory of the host
     * (by way of a descriptor it forgot) has given the command nothing. */
    if ((r = CALL(chdir, call->directory, 0, 0, 0, 0)) < 0)
        fail(failure, TCI_ENTRY_STEP_DIRECTORY, r);
    if (call->flags & TCI_ENTRY_NO_NEW_PRIVS &&
        (r = CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0)
        fail(failure, TCI_ENTRY_STEP_PRIVILEGES, r);
    if ((r = close_places(call->places)) < 0)
        fail(failure, TCI_ENTRY_STEP_PLACES, r);
    if (call->filter_count && (r = CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0, 0)) < 0)
        fail(failure, TCI_ENTRY_STEP_FILTER, r);
}

/* Found as the native backends do it. */
static long start_program(const struct entry_call *call)
{
    const bool is_brought = call->flags & TCI_ENTRY_BRING;
    return tci_bare_start(is_brought ? call->brought : call->arguments[0], call->arguments,
                          call->environment);
}

_Noreturn void entry_become(const struct entry_call *call, struct entry_failure *failure)
{
    /* Whoever is killed before the execve has started nothing. */
    failure->kind = TCI_ENTRY_BROKEN;
    failure->step = TCI_ENTRY_STEP_FORK;
    failure->result = -EINTR;
    prepare(call, failure);
    failure->kind = 0;
    failure->result = start_program(call);
    failure->kind = TCI_ENTRY_NOT_STARTED;
    entry_leave(program_failed);
}
