/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the real system calls behind tci_sys. */
#include "base/sys.h"

#include <fcntl.h>
#include <unistd.h>

static int sys_open(const char *path, int flags)
{
    return open(path, flags);
}

static int sys_fstat(int fd, struct stat *ret)
{
    return fstat(fd, ret);
}

static int sys_lstat(const char *path, struct stat *ret)
{
    return lstat(path, ret);
}

struct tci_sys tci_sys = {
    .open = sys_open,
    .read = read,
    .fstat = sys_fstat,
    .lstat = sys_lstat,
    .close = close,
    .getcwd = getcwd,
};
