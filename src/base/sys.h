/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the table of system calls that library code uses, so that tests can make any of them fail
 * or misbehave. Production code never changes it.
 */
#ifndef TCI_BASE_SYS_H
#define TCI_BASE_SYS_H

#include <sys/stat.h>
#include <sys/types.h>

struct tci_sys {
    int (*open)(const char *path, int flags);
    int (*open_beneath)(int directory, const char *path, int flags); /* openat2, no links */
    ssize_t (*read)(int fd, void *buffer, size_t size);
    int (*fstat)(int fd, struct stat *ret);
    int (*lstat)(const char *path, struct stat *ret);
    int (*close)(int fd);
    char *(*getcwd)(char *buffer, size_t size);
    char *(*realpath)(const char *path, char *resolved); /* resolved: PATH_MAX bytes */
};

extern struct tci_sys tci_sys;

#endif
