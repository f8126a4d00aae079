/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the command's process from fork to the moment before it is the tool's: a session of its own,
 * limits, Landlock, no descriptor but 0, 1 and 2, and last the filter. Also linked into the library,
 * for functions of the host (function.c).
 */
#include "backend/native/init.h"

#include <asm/ioctls.h>
#include <asm/signal.h>
#include <linux/close_range.h>
#include <linux/resource.h>
#include <linux/seccomp.h>

enum { program_failed = 127 };

static void set_limits(const struct tci_init_config *config)
{
    for (uint32_t i = 0; i < config->limit_count; i++) {
        const struct tci_init_limit *limit = &config->limits[i];
        struct rlimit64 value = { limit->value, limit->value };
        must(TCI_INIT_STEP_LIMITS, limit->resource,
             CALL(prlimit64, 0, limit->resource, &value, 0, 0));
    }
    if (config->pinned)
        must(TCI_INIT_STEP_PROCESSORS, 0,
             CALL(sched_setaffinity, 0, sizeof config->processors, config->processors, 0, 0));
}

void prepare_command(const struct init *init)
{
    const struct tci_init_config *config = init->config;
    /* The kernel only reads it. */
    struct sock_fprog program = {
        .len = (unsigned short)config->filter.count,
        .filter = (struct sock_filter *)(uintptr_t)config_at(init, config->filter.offset),
    };
    static const unsigned long none;
    char byte;
    /* Nothing is ignored: spawn.c has seen to that. */
    (void)CALL(rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none, 0);
    /* A session of its own: no terminal of the host is left to be talked to. Without a pid namespace
     * it is a group, which the filter lets nobody leave, so that one signal ends it. */
    must(TCI_INIT_STEP_GROUP, 0, CALL(setsid, 0, 0, 0, 0, 0));
    if (!init->is_jail) /* init waits until there is a group that it can end */
        must(TCI_INIT_STEP_GROUP, 1, CALL(write, init->start[0], "s", 1, 0, 0));
    must(TCI_INIT_STEP_DIRECTORY, 0, CALL(chdir, config_at(init, config->directory), 0, 0, 0, 0));
    (void)CALL(umask, 022, 0, 0, 0, 0);
    if (init->has_terminal)
        must(TCI_INIT_STEP_TERMINAL, 0, CALL(ioctl, 0, TIOCSCTTY, 0, 0, 0));
    set_limits(config);
    if (init->ruleset >= 0)
        must(TCI_INIT_STEP_LANDLOCK, 0, CALL(landlock_restrict_self, init->ruleset, 0, 0, 0, 0));
    /* The way to report stays open until the program starts, not a moment longer. */
    must(TCI_INIT_STEP_DESCRIPTORS, 0, CALL(close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0));
    must(TCI_INIT_STEP_FILTER, 0, CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0, 0));
    if (CALL(read, init->start[0], &byte, 1, 0, 0) != 1)
        leave(program_failed); /* init has said why */
}
