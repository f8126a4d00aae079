/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: may this user make a user namespace that is good for something? There are many ways to
 * refuse one, each with a remedy of its own. On Ubuntu the namespace can be made but holds no
 * capabilities, so an act that needs one is part of the probe.
 */
#include "backend/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static const char REMEDY_DEBIAN[] = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
static const char REMEDY_MAXIMUM[] = "sudo sysctl -w user.max_user_namespaces=15000";
static const char REMEDY_APPARMOR[] =
    "install an AppArmor profile that has the rule 'userns,' for toolcage, or for all programs: "
    "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
static const char REMEDY_FILTER[] =
    "run toolcage outside of this container, or start the container with a seccomp profile that "
    "allows unshare and clone with CLONE_NEWUSER (--security-opt seccomp=PROFILE.json)";
static const char REMEDY_CHROOT[] = "run toolcage outside of the chroot";
static const char REMEDY_KERNEL[] = "use a kernel built with CONFIG_USER_NS";
static const char REMEDY_MODULE[] =
    "a security module or filter forbids it: see 'journalctl -k' for the denial and allow toolcage";

static const char REMEDY_LIMIT[] =
    "use Linux 5.14 or newer with user namespaces, or control groups";

/* A process whose root is not that of its mount namespace may not make user namespaces. */
static bool is_chrooted(void)
{
    struct stat own, init;
    return stat("/", &own) == 0 && stat("/proc/1/root/.", &init) == 0 &&
           (own.st_dev != init.st_dev || own.st_ino != init.st_ino);
}

static const char *remedy_for_eperm(void)
{
    if (tci_probe_sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0)
        return REMEDY_DEBIAN;
    if (tci_probe_sysctl("/proc/sys/user/max_user_namespaces") == 0)
        return REMEDY_MAXIMUM;
    if (tci_probe_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
        return REMEDY_APPARMOR;
    if (tci_probe_is_filtered())
        return REMEDY_FILTER;
    return is_chrooted() ? REMEDY_CHROOT : REMEDY_MODULE;
}

static void refused(const struct tci_probe *p, const char *step, int problem)
{
    const enum tci_feature id = TCI_FEATURE_USER_NAMESPACES;
    const char *text = strerrordesc_np(problem);
    switch (problem) {
    case EPERM:
    case EACCES:
        tci_probe_no(p, id, remedy_for_eperm(), "refused: %s: %s", step, text);
        break;
    case ENOSPC:
    case EUSERS:
        tci_probe_no(p, id, REMEDY_MAXIMUM, "refused: %s: user.max_user_namespaces is %ld", step,
                     tci_probe_sysctl("/proc/sys/user/max_user_namespaces"));
        break;
    case EINVAL:
        tci_probe_no(p, id, REMEDY_KERNEL, "refused: %s: %s", step, text);
        break;
    case ENOSYS:
        tci_probe_no(p, id, tci_probe_is_filtered() ? REMEDY_FILTER : REMEDY_KERNEL,
                     "refused: %s: %s", step, text);
        break;
    default:
        tci_probe_refused(p, id, NULL, step, problem);
    }
}

void tci_probe_user_namespace(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_USER_NAMESPACES;
    const uid_t uid = geteuid(); /* inside it will be 0 */
    const char *step;
    int problem = tci_probe_enter_userns(&step);
    if (problem) {
        refused(p, step, problem);
        return;
    }
    /* The capability-needing act: a host name, in a namespace of our own. */
    if (unshare(CLONE_NEWUTS) < 0 || sethostname("toolcage-probe", 14) < 0) {
        problem = errno;
        if (problem == EPERM || problem == EACCES)
            tci_probe_no(p, id, remedy_for_eperm(), "made, but without capabilities: %s",
                         strerrordesc_np(problem));
        else
            refused(p, "a capability inside", problem);
        return;
    }
    tci_probe_yes(p, id, "made by user %u, with capabilities inside", uid);
}

/* Forks until the limit refuses; how many there were, or a negative errno. They wait until we are
 * done, then end. */
static int count_children(int most)
{
    pid_t children[8];
    int hold[2], made = 0;
    char byte;
    int problem = EAGAIN;
    if (pipe2(hold, O_CLOEXEC) < 0)
        return -errno;
    while (made < most && made < (int)tci_array_size(children)) {
        pid_t pid = tci_probe_fork();
        if (pid == 0) {
            (void)close(hold[1]);
            (void)!read(hold[0], &byte, 1);
            _exit(0);
        }
        if (pid < 0) {
            problem = errno;
            break;
        }
        children[made++] = pid;
    }
    (void)close(hold[1]);
    (void)close(hold[0]);
    for (int i = 0; i < made; i++)
        (void)tci_probe_wait(children[i]);
    return problem == EAGAIN ? made : -problem; /* EAGAIN: what the limit says */
}

/* In the new namespace, as its only user: three processes are allowed, this one included. */
static void limit_children(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_USERNS_PROCESS_LIMIT;
    int made;
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
        setrlimit(RLIMIT_NPROC, &(struct rlimit){ 3, 3 }) < 0) {
        tci_probe_unknown(p, id, REMEDY_LIMIT, "becoming the user of a cage: %s",
                          strerrordesc_np(errno));
        return;
    }
    made = count_children(8);
    if (made == 2)
        tci_probe_yes(p, id, "three processes ran, the fourth was refused");
    else if (made >= 0)
        tci_probe_no(p, id, REMEDY_LIMIT, "%d processes where 3 are allowed", made + 1);
    else
        tci_probe_refused(p, id, REMEDY_LIMIT, "starting processes", -made);
}

/* From outside, as a user other than root can only be mapped from there. 0 or an errno. */
static int write_maps(pid_t pid, unsigned uid, unsigned gid)
{
    char path[64], map[64];
    int problem;
    (void)snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
    problem = tci_probe_write_file(AT_FDCWD, path, "deny");
    if (problem && problem != ENOENT)
        return problem;
    (void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    (void)snprintf(map, sizeof map, "0 %u 1", uid);
    problem = tci_probe_write_file(AT_FDCWD, path, map);
    if (problem)
        return problem;
    (void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
    (void)snprintf(map, sizeof map, "0 %u 1", gid);
    return tci_probe_write_file(AT_FDCWD, path, map);
}

/* A child in a user namespace that waits for its maps and then tries the limit. */
static void try_limit(const struct tci_probe *p, unsigned uid, unsigned gid)
{
    const enum tci_feature id = TCI_FEATURE_USERNS_PROCESS_LIMIT;
    int ready[2], go[2], problem = 0;
    pid_t pid;
    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0) {
        tci_probe_refused(p, id, NULL, "pipe", errno);
        return;
    }
    pid = tci_probe_fork();
    if (pid == 0) {
        char byte;
        (void)close(go[1]);
        problem = unshare(CLONE_NEWUSER) < 0 ? errno : 0;
        (void)!write(ready[1], &problem, sizeof problem);
        if (!problem && read(go[0], &byte, 1) == 1)
            limit_children(p);
        _exit(0);
    }
    (void)close(ready[1]);
    if (pid < 0)
        problem = errno;
    else if (read(ready[0], &problem, sizeof problem) != (ssize_t)sizeof problem)
        problem = EIO;
    if (!problem)
        problem = write_maps(pid, uid, gid);
    if (problem)
        tci_probe_failed(p, id, "see user_namespaces", problem, "no user namespace: %s",
                         strerrordesc_np(problem));
    else
        (void)!write(go[1], "g", 1);
    (void)close(go[1]);
    if (pid > 0)
        (void)tci_probe_wait(pid);
}

/* In the bystander: becomes nobody if it can, says whether it did, and waits for its end. */
static void stand_by(int ready, int hold)
{
    char byte = 'o';
    if (geteuid() == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
        setresuid(NOBODY, NOBODY, NOBODY) == 0)
        byte = 'n';
    (void)!write(ready, &byte, 1);
    (void)!read(hold, &byte, 1);
}

/*
 * Since Linux 5.14 RLIMIT_NPROC counts per user namespace: a cage in a namespace of its own has a
 * process limit of its own, not one shared with everything else that the user runs. So with a limit
 * of three, three must run and the fourth be refused, although a bystander of the same user id is
 * alive outside; on older kernels the bystander takes one of the three places. Root is exempt from
 * the limit: a cage started by root has to run as somebody else, here as nobody. (Inside a user
 * namespace with a single id there is no nobody, and no need of it.)
 */
void tci_probe_process_limit(const struct tci_probe *p)
{
    char byte = 0;
    int ready[2], hold[2];
    pid_t bystander;
    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(hold, O_CLOEXEC) < 0) {
        tci_probe_refused(p, TCI_FEATURE_USERNS_PROCESS_LIMIT, NULL, "pipe", errno);
        return;
    }
    bystander = tci_probe_fork();
    if (bystander == 0) {
        (void)close(hold[1]);
        stand_by(ready[1], hold[0]);
        _exit(0);
    }
    (void)close(ready[1]);
    if (bystander < 0 || read(ready[0], &byte, 1) != 1)
        tci_probe_unknown(p, TCI_FEATURE_USERNS_PROCESS_LIMIT, NULL, "no second process starts");
    else if (byte == 'n')
        try_limit(p, NOBODY, NOBODY);
    else
        try_limit(p, geteuid(), getegid());
    (void)close(hold[1]);
    if (bystander > 0)
        (void)tci_probe_wait(bystander);
}
