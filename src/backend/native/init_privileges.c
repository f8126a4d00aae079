/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reports, and what a process of a cage gives up: the caller's traits, its user, its
 * capabilities. Used by init, and by the child that runs a function of the host (function.c), where it
 * is linked into the library: system calls only, no memory of a C library is touched.
 */
#include "backend/native/init.h"

#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

enum { init_failed = 127, capability_last = 63, o_cloexec = 02000000 };

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

void map_config(struct init *init)
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
void drop_bounds(const struct init *init)
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

void drop_privileges(const struct init *init)
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

/* What the caller is protected by, or was made less safe by, is not the cage's: a personality without
 * address randomisation, real-time scheduling, a raised priority, safety from the out-of-memory
 * killer. All of these may be given up by anybody. */
void forget_caller(void)
{
    static const int ordinary; /* struct sched_param */
    long fd;
    /* The caller's session keyring stays behind. Where there are no keyrings, there is nothing to
     * leave. */
    (void)CALL(keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    fd = CALL(openat, -100, "/proc/self/oom_score_adj", 01 | o_cloexec, 0, 0);
    if (fd >= 0) {
        (void)CALL(write, fd, "200", 3, 0, 0);
        (void)CALL(close, fd, 0, 0, 0, 0);
    }
    (void)CALL(personality, 0, 0, 0, 0, 0);
    (void)CALL(sched_setscheduler, 0, 0, &ordinary, 0, 0);
    if (CALL(getpriority, 0, 0, 0, 0, 0) > 20) /* 20 - nice */
        (void)CALL(setpriority, 0, 0, 0, 0, 0);
}

/* Whoever the map says. Groups are given up where somebody else wrote the map: only then may we. */
void become_user(const struct init *init)
{
    if (init->is_mapped)
        must(TCI_INIT_STEP_IDENTITY, 0, CALL(setgroups, 0, 0, 0, 0, 0));
    must(TCI_INIT_STEP_IDENTITY, 0, CALL(setresgid, TCI_INIT_ID, TCI_INIT_ID, TCI_INIT_ID, 0, 0));
    must(TCI_INIT_STEP_IDENTITY, 0, CALL(setresuid, TCI_INIT_ID, TCI_INIT_ID, TCI_INIT_ID, 0, 0));
}
