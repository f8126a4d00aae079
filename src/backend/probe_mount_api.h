/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the mount calls of Linux 5.2 to 5.12 for probes. The numbers are the kernel's and never
 * change; libc wraps them only from glibc 2.36 on, and its header and the kernel's clash.
 */
#ifndef TCI_BACKEND_PROBE_MOUNT_API_H
#define TCI_BACKEND_PROBE_MOUNT_API_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TCI_FSOPEN_CLOEXEC = 1,
    TCI_FSMOUNT_CLOEXEC = 1,
    TCI_FSCONFIG_SET_STRING = 1,
    TCI_FSCONFIG_CMD_CREATE = 6,
    TCI_MOUNT_ATTR_RDONLY = 0x1,
    TCI_MOUNT_ATTR_NOSUID = 0x2,
    TCI_MOUNT_ATTR_NODEV = 0x4,
    TCI_MOUNT_ATTR_IDMAP = 0x100000,
    TCI_OPEN_TREE_CLONE = 1,
    TCI_MOVE_MOUNT_F_EMPTY_PATH = 0x4,
    TCI_AT_RECURSIVE = 0x8000,
};

struct tci_mount_attr {
    uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static inline int tci_sys_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, TCI_FSOPEN_CLOEXEC);
}

static inline int tci_sys_fsconfig(int fd, int command, const char *key, const char *value)
{
    return (int)syscall(SYS_fsconfig, fd, command, key, value, 0);
}

static inline int tci_sys_fsmount(int fd, int attributes)
{
    return (int)syscall(SYS_fsmount, fd, TCI_FSMOUNT_CLOEXEC, attributes);
}

static inline int tci_sys_open_tree(int directory, const char *path)
{
    return (int)syscall(SYS_open_tree, directory, path,
                        TCI_OPEN_TREE_CLONE | TCI_AT_RECURSIVE | O_CLOEXEC);
}

static inline int tci_sys_move_mount(int from, int directory, const char *path)
{
    return (int)syscall(SYS_move_mount, from, "", directory, path, TCI_MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int tci_sys_mount_setattr(int fd, struct tci_mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | TCI_AT_RECURSIVE, attr,
                        sizeof *attr);
}

static inline int tci_sys_pivot_root(const char *new_root, const char *old_root)
{
    return (int)syscall(SYS_pivot_root, new_root, old_root);
}

#endif
