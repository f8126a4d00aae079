/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: small helpers around file descriptors. Everything made here is O_CLOEXEC from birth. */
#ifndef TCI_BASE_FD_H
#define TCI_BASE_FD_H

#include <stddef.h>
#include <sys/types.h>
#include "base/attr.h"

/* Closes what is open (-1 is ignored) and keeps errno, so that it fits into any error path. Returns
 * -1, so that a caller writes `fd = tci_close(fd)` and cannot close it twice. */
int tci_close(int fd);
/* For tc_cleanup: closes *fd and sets it to -1. */
void tci_closep(int *fd);

/* Hands a descriptor over: yields its number and leaves -1 behind. */
int tci_take_fd(int *fd) tci_must_check;

/* pipe2 with O_CLOEXEC; `flags` adds to it. 0, or -1 with errno and both ends -1. */
int tci_pipe(int ret_ends[2], int flags) tci_must_check;

/* 0, or -1 with errno. It is a property of the open file: whoever shares it sees it too. */
int tci_set_nonblocking(int fd) tci_must_check;

/* One read that is not ended by a signal. Bytes, 0 at the end, or -1 with errno. */
ssize_t tci_read_some(int fd, void *buffer, size_t size) tci_must_check;

/* Writes everything to a descriptor that blocks. 0, or -1 with errno (EAGAIN if it does not block);
 * then it is not known how much was written. */
int tci_write_all(int fd, const void *bytes, size_t length) tci_must_check;

/* A stream to the Unix socket at `path`; it does not block, now or later. The descriptor, or -1 with
 * errno. */
int tci_unix_connect(const char *path) tci_must_check;

#endif
