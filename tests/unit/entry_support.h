/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a real entry (inside/entry*.c) as an ordinary process, or as pid 1 of a namespace, with a socket to
 * it, for tests of entry and of what talks to it. Comes after cmocka.h. */
#ifndef TCI_TESTS_ENTRY_SUPPORT_H
#define TCI_TESTS_ENTRY_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inside/entry_abi.h"

extern const unsigned char tci_entry_blob[];
extern const size_t tci_entry_blob_size;

enum { ENTRY_CONTROL = 3 };

/* Entry as a file, once for each test program. */
static inline int entry_file(void)
{
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("entry", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, tci_entry_blob, tci_entry_blob_size),
                         (ssize_t)tci_entry_blob_size);
    }
    return fd;
}

/* Starts it with `flags` for clone (CLONE_NEWPID...) and returns its process; *ret_control is our end. */
static inline pid_t spawn_entry_with(unsigned long flags, int *ret_control)
{
    static char name[] = "entry", how[] = "fd:3";
    char *const argv[] = { name, how, NULL };
    char *const none[] = { NULL };
    int ends[2], file = entry_file();
    pid_t pid;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (!pid) {
        int control = fcntl(ends[1], F_DUPFD, 100), program = fcntl(file, F_DUPFD_CLOEXEC, 100);
        if (dup2(control, ENTRY_CONTROL) < 0 || close(control) < 0)
            _exit(99);
        (void)syscall(SYS_execveat, program, "", argv, none, AT_EMPTY_PATH);
        _exit(99);
    }
    (void)close(ends[1]);
    *ret_control = ends[0];
    return pid;
}

static inline pid_t spawn_entry(int *ret_control)
{
    return spawn_entry_with(0, ret_control);
}

#endif
