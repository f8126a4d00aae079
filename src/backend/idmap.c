/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: how files of root look inside a jail that root started. The command runs as a user who owns
 * nothing on the host; granted paths are mounted through a user namespace in which root's files are
 * that user's, so that they stay readable and writable as granted, and new files belong to root. All
 * other owners stay who they are.
 */
#include "backend/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/thread_checks.h"

enum { stack_size = 16384, at_recursive = 0x8000 };

/* What the child needs: memory that lives as long as the plan. */
struct waiter {
    int ends[2];
    _Alignas(16) char stack[stack_size];
};

/* In the child, which shares our memory and runs beside us: system calls only, and no errno. Its
 * descriptors are its own; when we end, however that happens, the pipe ends, and so does it. */
tci_no_address_checks tci_no_thread_checks static int wait_for_end(void *argument)
{
    struct waiter *waiter = argument;
    char byte;
    (void)syscall(SYS_close, waiter->ends[1]);
    (void)syscall(SYS_read, waiter->ends[0], &byte, 1);
    (void)syscall(SYS_exit, 0);
    return 0;
}

int tci_write_id_map(int pid, const char *file, const char *text, struct tc_error *reterr)
{
    char path[64];
    tc_cleanup(tci_closep) int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || tci_write_all(fd, text, strlen(text)) < 0)
        return tci_error_errno(reterr, errno, "writing %s of the cage's user namespace", file);
    return 0;
}

static int map_and_open(int pid, struct tc_error *reterr)
{
    char map[96], path[64];
    int fd;
    (void)snprintf(map, sizeof map, "0 %u 1\n1 1 %u\n", TCI_JAIL_HOST_ID, TCI_JAIL_HOST_ID - 1);
    if (tci_write_id_map(pid, "uid_map", map, reterr) < 0 ||
        tci_write_id_map(pid, "gid_map", map, reterr) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? tci_error_errno(reterr, errno, "opening a user namespace") : fd;
}

int tci_idmap_open(struct tci_arena *arena, struct tci_idmap *ret, struct tc_error *reterr)
{
    struct waiter *waiter = tci_arena_new_of(arena, struct waiter);
    int pid, fd, pidfd = -1;
    sigset_t all, before;
    if (!waiter)
        return tci_error_no_memory(reterr);
    if (tci_pipe(waiter->ends, 0) < 0)
        return tci_error_errno(reterr, errno, "making a pipe");
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = tci_clone(wait_for_end, waiter->stack + stack_size,
                    CLONE_VM | CLONE_NEWUSER | CLONE_PIDFD, waiter, &pidfd);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        fd = tci_error_errno(reterr, errno, "making a user namespace");
        tci_error_remedy(reterr, "see user_namespaces in toolcage doctor");
    } else {
        fd = map_and_open(pid, reterr);
    }
    /* Nobody waits for its end here: the plan does, in its own. */
    if (pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    (void)tci_close(waiter->ends[0]);
    (void)tci_close(waiter->ends[1]);
    ret->child = pidfd;
    ret->fd = fd;
    return fd < 0 ? -1 : 0;
}

void tci_idmap_close(struct tci_idmap *map)
{
    map->fd = tci_close(map->fd);
    if (map->child >= 0)
        (void)waitid(P_PIDFD, (id_t)map->child, &(siginfo_t){ 0 }, WEXITED | __WALL);
    map->child = tci_close(map->child);
}

static int clone_mount(const struct tci_detach *m, int idmap)
{
    struct mount_attr attr = { .attr_set = m->attributes | (idmap >= 0 ? MOUNT_ATTR_IDMAP : 0),
                               .propagation = 1 << 18, /* MS_PRIVATE */
                               .userns_fd = idmap >= 0 ? (unsigned)idmap : 0U };
    int fd = (int)syscall(SYS_open_tree, m->source, "",
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | at_recursive);
    if (fd < 0)
        return -errno;
    if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | at_recursive, &attr, sizeof attr) < 0) {
        int problem = errno;
        (void)tci_close(fd);
        return -problem;
    }
    return fd;
}

int tci_mount_detach(const struct tci_detach *what, const struct tci_idmap *map,
                     struct tc_error *reterr)
{
    int fd = clone_mount(what, map->fd);
    /* A file system that cannot do it may still be read by whom its modes let. */
    if (fd == -EINVAL && !what->writable)
        fd = clone_mount(what, -1);
    if (fd >= 0)
        return fd;
    tci_error_errno(reterr, -fd, "mounting %.300s for another user than root", what->host);
    if (fd == -ENOSYS)
        tci_error_remedy(reterr, "use Linux 5.12 or newer: see mount_setattr in toolcage doctor");
    if (fd == -EINVAL)
        tci_error_remedy(reterr, "its file system has no idmapped mounts: start toolcage as an "
                                 "ordinary user, or move the directory to ext4, xfs or btrfs");
    return -1;
}
