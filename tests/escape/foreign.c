/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to call the kernel in another dialect: the 32-bit numbers through int 0x80 and the
 * x32 numbers, which mean other things to a filter that does not look at the architecture. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

#ifdef __x86_64__

/* The 32-bit entry takes 32-bit pointers: a page below 4 GB. */
static char *low_page(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
                      -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static long old_call(long call, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(call), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    errno = result < 0 ? (int)-result : 0;
    return result < 0 ? -1 : result;
}

enum { OLD_READ = 3, OLD_OPEN = 5, OLD_SOCKET = 359, OLD_GETPID = 20 };

static int old_read(int argc, char **argv)
{
    (void)argc;
    char *page = low_page();
    if (!page)
        return held("a page below 4 GB");
    snprintf(page, 2048, "%s", argv[0]);
    long fd = old_call(OLD_OPEN, (long)(intptr_t)page, O_RDONLY, 0);
    if (fd < 0 && errno == ENOSYS)
        return absent("this kernel has no 32-bit calls");
    if (fd < 0)
        return held("open through int 0x80");
    if (old_call(OLD_READ, fd, (long)(intptr_t)page, 2048) < 0)
        return held("read through int 0x80");
    page[strcspn(page, "\n")] = '\0';
    return escaped("read through int 0x80: %s", page);
}

static int old_socket(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    long fd = old_call(OLD_SOCKET, AF_NETLINK, SOCK_RAW, 15);
    if (fd < 0 && errno == ENOSYS)
        return absent("this kernel has no 32-bit calls");
    return judge(fd, "socket through int 0x80");
}

static int old_getpid(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    long pid = old_call(OLD_GETPID, 0, 0, 0);
    if (pid < 0 && errno == ENOSYS)
        return absent("this kernel has no 32-bit calls");
    return judge(pid, "getpid through int 0x80");
}

static int x32_read(int argc, char **argv)
{
    enum { X32 = 0x40000000 };
    (void)argc;
    long fd = syscall(X32 + SYS_open, argv[0], O_RDONLY, 0);
    if (fd < 0 && errno == ENOSYS)
        return absent("this kernel has no x32 calls");
    if (fd < 0)
        return held("open through x32");
    return loot_fd((int)fd, "opened through x32");
}

const struct attempt foreign_attempts[] = {
    { "int80-read", 1, old_read, "read SECRET through int 0x80" },
    { "int80-socket", 0, old_socket, "open a netlink socket through int 0x80" },
    { "int80-getpid", 0, old_getpid, "make any call through int 0x80" },
    { "x32-read", 1, x32_read, "read SECRET through x32 calls" },
    { 0 },
};

#else

const struct attempt foreign_attempts[] = { { 0 } };

#endif
