/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can files of the host appear in a cage under another owner? Maps a detached clone of the
 * directory /usr through a throw-away user namespace. The kernel allows it to whoever
 * rules the file system: in practice root, on file systems that support it.
 */
#include "backend/probe.h"
#include "backend/probe_mount_api.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char REMEDY[] =
    "optional: run toolcage as root, on Linux 5.12 or newer, with files on a file system that "
    "supports it (ext4, xfs, btrfs)";

/* A user namespace that maps root to nobody, held open by nothing but the returned handle; or -1
 * with errno set. */
static int userns_make(void)
{
    int ready[2], go[2], fd = -1, problem = EIO;
    char path[64], byte;
    pid_t pid;
    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
        return -1;
    pid = tci_probe_fork();
    if (pid == 0) {
        (void)close(go[1]);
        problem = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
        (void)!write(ready[1], &problem, sizeof problem);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    if (pid < 0)
        problem = errno;
    (void)close(ready[1]);
    (void)close(go[0]);
    if (pid > 0 && read(ready[0], &problem, sizeof problem) == (ssize_t)sizeof problem &&
        !problem) {
        (void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
        problem = tci_probe_write_file(AT_FDCWD, path, "0 65534 1");
        (void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
        (void)tci_probe_write_file(AT_FDCWD, path, "0 65534 1");
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        if (!problem && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
            problem = errno;
    }
    (void)close(ready[0]);
    (void)close(go[1]);
    if (pid > 0)
        (void)tci_probe_wait(pid);
    errno = problem;
    return fd;
}

void tci_probe_idmapped(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_IDMAPPED_MOUNTS;
    struct tci_mount_attr attr = { .attr_set = TCI_MOUNT_ATTR_IDMAP };
    int tree, userns;
    if (unshare(CLONE_NEWNS) < 0) {
        tci_probe_failed(p, id, REMEDY, errno, "needs root: %s", strerrordesc_np(errno));
        return;
    }
    userns = userns_make();
    if (userns < 0) {
        tci_probe_failed(p, id, REMEDY, errno, "no user namespace to map through: %s",
                         strerrordesc_np(errno));
        return;
    }
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr", TCI_OPEN_TREE_CLONE | O_CLOEXEC);
    if (tree < 0) {
        tci_probe_refused(p, id, REMEDY, "open_tree", errno);
        return;
    }
    attr.userns_fd = (uint64_t)userns;
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0)
        tci_probe_yes(p, id, "the file system of /usr supports them");
    else
        tci_probe_refused(p, id, REMEDY, "mount_setattr", errno);
}
