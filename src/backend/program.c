/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the programs of src/inside as bytes, and the files of memory that they are started from. */
#include "backend/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"

/* Made by the build. */
extern const unsigned char tci_files_blob[], tci_loader_blob[];
extern const unsigned long tci_files_blob_size, tci_loader_blob_size;

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int tci_program_no_memory_file(struct tc_error *reterr, const char *what)
{
    tci_error_errno(reterr, errno, "keeping %s in memory", what);
    tci_error_remedy(reterr,
                     "memfd_create and its seals are needed: use Linux 3.17 or newer, and let a "
                     "filter around toolcage allow them");
    return -1;
}

int tci_program_check_library(const char *path, struct tc_error *reterr)
{
    if (access(path, R_OK) == 0)
        return 0;
    tci_error_errno(reterr, errno, "the tool's library %.300s", path);
    tci_error_remedy(reterr, "build it again, or define the tool with another path");
    return -1;
}

int tci_program_from_bytes(const char *name, const unsigned char *bytes, size_t length,
                           struct tc_error *reterr)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    tc_cleanup(tci_closep) int fd = memfd_create(name, flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3, which executes any */
        fd = memfd_create(name, flags);
    if (fd < 0 && errno == EACCES) {
        tci_error_errno(reterr, errno, "keeping %s in memory", name);
        tci_error_remedy(reterr, "sudo sysctl -w vm.memfd_noexec=1");
        return -1;
    }
    /* The attack: overwriting it through /proc/PID/exe, to have that run in the next cage. */
    if (fd < 0 || tci_write_all(fd, bytes, length) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return tci_program_no_memory_file(reterr, name);
    return tci_take_fd(&fd);
}

static const unsigned char *bytes_of(enum tci_program program, const char **ret_name,
                                     size_t *ret_length)
{
    switch (program) {
    case TCI_PROGRAM_FILES:
        *ret_name = "toolcage-files";
        *ret_length = tci_files_blob_size;
        return tci_files_blob;
    case TCI_PROGRAM_LOADER:
        *ret_name = "toolcage-loader";
        *ret_length = tci_loader_blob_size;
        return tci_loader_blob;
    default:
        return NULL;
    }
}

int tci_program_fd(enum tci_program program, struct tc_error *reterr)
{
    const char *name = "";
    size_t length = 0;
    const unsigned char *bytes = bytes_of(program, &name, &length);
    int fd;
    if (!bytes)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "no such program is built in");
    fd = tci_program_from_bytes(name, bytes, length, reterr);
    if (fd >= 0 && fd <= STDERR_FILENO) { /* a host without standard streams */
        int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)tci_close(fd);
        return higher < 0 ? tci_program_no_memory_file(reterr, name) : higher;
    }
    return fd;
}

/* PT_INTERP. The bytes are our own build's: nothing in them is checked against malice. */
const char *tci_program_interpreter(enum tci_program program)
{
    const char *name;
    size_t length = 0;
    const unsigned char *bytes = bytes_of(program, &name, &length);
    Elf64_Ehdr header;
    if (!bytes || length < sizeof header)
        return NULL;
    memcpy(&header, bytes, sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part;
        memcpy(&part, bytes + header.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type == PT_INTERP)
            return (const char *)bytes + part.p_offset;
    }
    return NULL;
}
