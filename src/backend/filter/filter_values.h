/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the kernel's numbers that arguments.def uses. All of them are the same on x86_64 and
 * aarch64. Those that the headers of older systems lack, or that the C library keeps to itself, are
 * defined here.
 */
#ifndef TCI_BACKEND_FILTER_VALUES_H
#define TCI_BACKEND_FILTER_VALUES_H

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SOCKET_TYPE (~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK))
/* O_TMPFILE without O_DIRECTORY, whose bit differs between the architectures. */
#define TMPFILE_BIT 020000000

/* Options of prctl that older headers lack. */
#define PR_GET_MDWE_NUMBER 66
#define PR_SET_VMA_NUMBER  0x53564d41
#define PR_GET_AUXV_NUMBER 0x41555856

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH 16
#endif

#endif
