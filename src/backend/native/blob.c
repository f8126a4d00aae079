/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: init as bytes inside the library, and the file of memory that it is started from. */
#include "backend/native/native.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"

/* Made from init*.c by the build. */
extern const unsigned char tci_init_blob[];
extern const unsigned long tci_init_blob_size;

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int tci_native_no_memfd(struct tc_error *reterr, const char *what)
{
    tci_error_errno(reterr, errno, "keeping the cage's %s in memory", what);
    tci_error_remedy(reterr,
                     "memfd_create and its seals are needed: use Linux 3.17 or newer, and let a "
                     "filter around toolcage allow them");
    return -1;
}

int tci_native_init_fd(struct tc_error *reterr)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    tc_cleanup(tci_closep) int fd = memfd_create("toolcage-init", flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3, which executes any */
        fd = memfd_create("toolcage-init", flags);
    if (fd < 0 && errno == EACCES) {
        tci_error_errno(reterr, errno, "keeping the cage's init in memory");
        tci_error_remedy(reterr, "sudo sysctl -w vm.memfd_noexec=1");
        return -1;
    }
    /* The attack: overwriting init through /proc/PID/exe, to have it run in the next cage. */
    if (fd < 0 || tci_write_all(fd, tci_init_blob, tci_init_blob_size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return tci_native_no_memfd(reterr, "init");
    return tci_take_fd(&fd);
}
