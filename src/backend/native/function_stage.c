/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way of a function's process into the cage, with the very code that init uses for a
 * command (init_privileges.c, init_rules.c, init_prepare.c). The process is a child of init and was
 * born in its user, mount, pid, network, ipc and uts namespaces. System calls only: it is a fork of a
 * host with threads. Part of the library, and never of init.
 */
#include "backend/native/function.h"
#include "backend/native/init.h"

#include <linux/sched.h>

enum { at_cwd = -100, o_cloexec = 02000000, failed = 127 };

static long open_namespace(const char *path)
{
    return must(TCI_INIT_STEP_NAMESPACES, 1, CALL(openat, at_cwd, path, o_cloexec, 0, 0));
}

static void enter_namespace(long fd, int kind)
{
    must(TCI_INIT_STEP_NAMESPACES, 2, CALL(setns, fd, kind, 0, 0, 0));
    (void)CALL(close, fd, 0, 0, 0, 0);
}

/* Nothing of the host's, nothing of init's: the line, the configuration, the report. */
static void keep_descriptors(const struct init *init, int line)
{
    const int last = init->is_jail ? TCI_INIT_FD_START : TCI_INIT_FD_RULESET;
    must(TCI_INIT_STEP_DESCRIPTORS, 1, CALL(dup3, line, TCI_INIT_FD_START, o_cloexec, 0, 0));
    for (int fd = TCI_INIT_FD_REPORT + 1; fd < TCI_INIT_FD_START; fd++)
        (void)CALL(close, fd, 0, 0, 0, 0);
    must(TCI_INIT_STEP_DESCRIPTORS, 2, CALL(close_range, last + 1, ~0U, 0, 0, 0));
}

static void wait_for_root(const struct init *init)
{
    char byte;
    if (CALL(read, init->start[0], &byte, 1, 0, 0) != 1)
        leave(failed); /* init has said why */
}

/*
 * The root directory is the cage's when init says so. It is not left to pivot_root, which moves every
 * process whose root was the old one: entering the mount namespace once more sets the root to the
 * namespace's own, whatever it was before.
 */
static void enter_jail(const struct init *init)
{
    long mounts = open_namespace("/proc/self/ns/mnt");
    must(TCI_INIT_STEP_NAMESPACES, 3,
         CALL(unshare, CLONE_NEWCGROUP | (init->config->time ? CLONE_NEWTIME : 0), 0, 0, 0, 0));
    if (init->config->time)
        enter_namespace(open_namespace("/proc/self/ns/time_for_children"), CLONE_NEWTIME);
    wait_for_root(init);
    enter_namespace(mounts, CLONE_NEWNS);
    become_user(init);
}

void tci_stage_enter(bool is_jail, bool is_mapped, int line)
{
    struct init init = { .is_jail = is_jail, .is_mapped = is_mapped, .ruleset = -1 };
    keep_descriptors(&init, line);
    init.start[0] = TCI_INIT_FD_START;
    init.start[1] = -1;
    forget_caller();
    map_config(&init);
    drop_bounds(&init);
    if (is_jail)
        enter_jail(&init);
    init.ruleset = make_ruleset(&init);
    drop_privileges(&init);
    prepare_command(&init);
    /* Under the filter now. There will be no execve to close them. */
    if (init.ruleset >= 0)
        must(TCI_INIT_STEP_DESCRIPTORS, 3, CALL(close, init.ruleset, 0, 0, 0, 0));
    must(TCI_INIT_STEP_DESCRIPTORS, 4, CALL(close, TCI_INIT_FD_CONFIG, 0, 0, 0, 0));
    must(TCI_INIT_STEP_DESCRIPTORS, 5, CALL(close, TCI_INIT_FD_START, 0, 0, 0, 0));
    must(TCI_INIT_STEP_DESCRIPTORS, 6, CALL(close, TCI_INIT_FD_REPORT, 0, 0, 0, 0));
}
