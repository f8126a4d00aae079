/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the real system calls behind tci_sys. */
#include "base/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <stdlib.h>
#include <unistd.h>

static int sys_open(const char *path, int flags)
{
    return open(path, flags);
}

/* Kernels without openat2 (before 5.6) answer ENOSYS: refused, not followed. */
static int sys_open_beneath(int directory, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

static int sys_fstat(int fd, struct stat *ret)
{
    return fstat(fd, ret);
}

static int sys_lstat(const char *path, struct stat *ret)
{
    return lstat(path, ret);
}

static char *sys_realpath(const char *path, char *resolved)
{
    return realpath(path, resolved);
}

struct tci_sys tci_sys = {
    .open = sys_open,
    .open_beneath = sys_open_beneath,
    .read = read,
    .fstat = sys_fstat,
    .lstat = sys_lstat,
    .close = close,
    .getcwd = getcwd,
    .realpath = sys_realpath,
};
