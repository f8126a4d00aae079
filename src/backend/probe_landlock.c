/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does Landlock keep what it is told? Asks for its ABI, then forbids reading directories and
 * watches "/" being refused; from ABI 3 on the same for cutting a file short.
 */
#include "backend/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

enum { ABI_TRUNCATE = 3 };

static const char REMEDY_DISABLED[] =
    "add landlock to the kernel's command line, before what is there: "
    "lsm=landlock,... (the present list is in /sys/kernel/security/lsm), then reboot";
static const char REMEDY_MISSING[] = "use Linux 5.13 or newer built with CONFIG_SECURITY_LANDLOCK";
static const char REMEDY_FILTER[] =
    "run toolcage outside of this container, or allow landlock_create_ruleset, landlock_add_rule "
    "and landlock_restrict_self in its seccomp profile";
static const char REMEDY_TRUNCATE[] = "use Linux 6.2 or newer";

static void both(const struct tci_probe *p, enum tci_feature_state state, const char *remedy,
                 const char *what, int problem)
{
    static const enum tci_feature ids[] = { TCI_FEATURE_LANDLOCK, TCI_FEATURE_LANDLOCK_TRUNCATE };
    for (size_t i = 0; i < tci_array_size(ids); i++) {
        if (tci_probe_is_shortage(problem))
            tci_probe_refused(p, ids[i], remedy, what, problem);
        else if (state == TCI_FEATURE_NO)
            tci_probe_no(p, ids[i], remedy, "%s: %s", what, strerrordesc_np(problem));
        else
            tci_probe_unknown(p, ids[i], remedy, "%s: %s", what, strerrordesc_np(problem));
    }
}

static void missing(const struct tci_probe *p, int problem)
{
    if (problem == EOPNOTSUPP)
        both(p, TCI_FEATURE_NO, REMEDY_DISABLED, "built in, but not enabled", problem);
    else if (problem == ENOSYS || problem == EPERM || problem == EACCES)
        both(p, TCI_FEATURE_NO, tci_probe_is_filtered() ? REMEDY_FILTER : REMEDY_MISSING, "refused",
             problem);
    else
        both(p, TCI_FEATURE_UNKNOWN, NULL, "unexpected", problem);
}

/* From here on, what `handled` names is forbidden everywhere. 0 or an errno. */
static int restrict_self(uint64_t handled)
{
    struct landlock_ruleset_attr attr = { .handled_access_fs = handled };
    int problem = 0;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
    if (fd < 0)
        return errno;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        problem = errno;
    (void)close(fd);
    return problem;
}

/* An empty file without a name, gone with this process; -1 where none can be made. */
static int nameless_file(void)
{
    static const char *const places[] = { "/tmp", "/dev/shm", "/var/tmp" };
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < tci_array_size(places); i++)
        fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd;
}

/* By path, as that is what is restricted: the open handle keeps the rights it was born with. */
static void truncation(const struct tci_probe *p, int abi, int file)
{
    const enum tci_feature id = TCI_FEATURE_LANDLOCK_TRUNCATE;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (abi < ABI_TRUNCATE)
        tci_probe_no(p, id, REMEDY_TRUNCATE, "ABI %d, needs %d", abi, ABI_TRUNCATE);
    else if (file < 0) /* the kernel took the right into its rules, which older ones refuse to */
        tci_probe_yes(p, id, "ABI %d; accepted, not tried on a file", abi);
    else if (truncate(path, 0) == 0)
        tci_probe_no(p, id, REMEDY_TRUNCATE, "ABI %d, but a file was cut short", abi);
    else if (errno == EACCES)
        tci_probe_yes(p, id, "ABI %d; a file could not be cut short", abi);
    else
        tci_probe_unknown(p, id, NULL, "ABI %d, unexpected: %s", abi, strerrordesc_np(errno));
}

void tci_probe_landlock(const struct tci_probe *p)
{
    uint64_t handled = LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE;
    int problem, fd, file = nameless_file();
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 0) {
        missing(p, errno);
        return;
    }
    if (abi >= ABI_TRUNCATE)
        handled |= LANDLOCK_ACCESS_FS_TRUNCATE;
    fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        both(p, TCI_FEATURE_UNKNOWN, NULL, "no directory to try it on", errno);
        return;
    }
    (void)close(fd);
    problem = restrict_self(handled);
    if (problem) {
        missing(p, problem);
        return;
    }
    fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
        both(p, TCI_FEATURE_UNKNOWN, NULL, "in force, but it did not refuse a directory", 0);
        return;
    }
    if (errno != EACCES) {
        both(p, TCI_FEATURE_UNKNOWN, NULL, "in force, but it did not refuse a directory", errno);
        return;
    }
    tci_probe_yes(p, TCI_FEATURE_LANDLOCK, "ABI %d", abi);
    truncation(p, abi, file);
}
