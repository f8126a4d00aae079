/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to use more memory than the limit, by every way that the kernel counts and some
 * that only a control group counts: files in memory, pipes, page tables, many processes. Each stops
 * at the number of megabytes that it is told. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attempt.h"

enum { MEGABYTE = 1 << 20, PAGE = 4096 };

static char *map(size_t size, int flags)
{
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                        0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void touch(char *memory, size_t size)
{
    for (size_t i = 0; i < size; i += PAGE)
        ((volatile char *)memory)[i] = 1;
}

static int anonymous(int argc, char **argv)
{
    (void)argc;
    for (long i = 0; i < number(argv[0]); i++) {
        char *memory = map(MEGABYTE, 0);
        if (!memory)
            return held("mmap after %ld MB", i);
        touch(memory, MEGABYTE);
    }
    return escaped("holds %s MB of memory", argv[0]);
}

static int heap(int argc, char **argv)
{
    (void)argc;
    long base = (long)(intptr_t)sbrk(0);
    for (long i = 0; i < number(argv[0]); i++) {
        char *memory = sbrk(MEGABYTE);
        if ((intptr_t)memory == -1)
            return held("sbrk after %ld MB from %#lx", i, (unsigned long)base);
        touch(memory, MEGABYTE);
    }
    return escaped("holds %s MB of heap", argv[0]);
}

static int fill_file(int fd, long megabytes, const char *what)
{
    static char block[MEGABYTE];
    memset(block, 'x', sizeof(block));
    for (long i = 0; i < megabytes; i++) {
        if (write_all(fd, block, sizeof(block)) < 0)
            return held("%s: write after %ld MB", what, i);
    }
    return escaped("%s: holds %ld MB", what, megabytes);
}

static int memory_file(int argc, char **argv)
{
    (void)argc;
    int fd = memfd_create("x", MFD_CLOEXEC);
    if (fd < 0)
        return held("memfd_create");
    return fill_file(fd, number(argv[0]), "memory file");
}

/* Files of a tmpfs are memory, and stay when nobody has them open. */
static int tmpfs_file(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[1], "/memory-fill", "");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return held("make %s", path);
    int result = fill_file(fd, number(argv[0]), path);
    unlink(join(argv[1], "/memory-fill", ""));
    return result;
}

static int shared_anonymous(int argc, char **argv)
{
    (void)argc;
    size_t size = (size_t)number(argv[0]) * MEGABYTE;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return held("mmap");
    touch(memory, size);
    return escaped("holds %s MB of shared memory", argv[0]);
}

static int sysv_segment(int argc, char **argv)
{
    (void)argc;
    size_t size = (size_t)number(argv[0]) * MEGABYTE;
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    if (id < 0)
        return held("shmget");
    char *memory = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    if ((intptr_t)memory == -1)
        return held("shmat");
    touch(memory, size);
    return escaped("holds %s MB of System V memory", argv[0]);
}

/* A pipe holds a megabyte that belongs to no process. */
static int pipes(int argc, char **argv)
{
    (void)argc;
    static char block[MEGABYTE];
    long total = 0, wanted = number(argv[0]) * MEGABYTE;
    for (int i = 0; i < 2000 && total < wanted; i++) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
            return held("pipe after %ld bytes", total);
        fcntl(ends[1], F_SETPIPE_SZ, MEGABYTE);
        ssize_t n;
        while ((n = write(ends[1], block, sizeof(block))) > 0)
            total += n;
    }
    errno = ENOSPC;
    return total >= wanted ? escaped("pipes hold %ld bytes", total)
                           : held("pipes hold %ld bytes", total);
}

static int sockets(int argc, char **argv)
{
    (void)argc;
    static char block[65536];
    long total = 0, wanted = number(argv[0]) * MEGABYTE;
    for (int i = 0; i < 2000 && total < wanted; i++) {
        int ends[2], size = MEGABYTE;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
            return held("socketpair after %ld bytes", total);
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        ssize_t n;
        while ((n = write(ends[0], block, sizeof(block))) > 0)
            total += n;
    }
    errno = ENOSPC;
    return total >= wanted ? escaped("sockets hold %ld bytes", total)
                           : held("sockets hold %ld bytes", total);
}

/* One page read in every two megabytes: nothing but page tables. */
static int page_tables(int argc, char **argv)
{
    (void)argc;
    size_t count = (size_t)number(argv[0]) * 256, size = count * 2 * MEGABYTE;
    char *memory = map(size, MAP_NORESERVE);
    if (!memory)
        return held("mmap of %zu bytes", size);
    madvise(memory, size, MADV_NOHUGEPAGE);
    int sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((volatile char *)memory)[i * 2 * MEGABYTE];
    return escaped("page tables for %zu pages, sum %d", count, sum);
}

/* Each process stays small; together they are not. */
static int many_processes(int argc, char **argv)
{
    (void)argc;
    int children[8] = { 0 }, result = 0, ready[2];
    size_t share = (size_t)number(argv[0]) * MEGABYTE / 8;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return held("pipe");
    for (int i = 0; i < 8; i++) {
        children[i] = fork();
        if (children[i] < 0)
            return held("fork %d", i);
        if (children[i] == 0) {
            char *memory = map(share, 0);
            if (memory)
                touch(memory, share);
            write_all(ready[1], memory ? "y" : "n", 1);
            sleep_ms(2000);
            _exit(0);
        }
    }
    close(ready[1]);
    char answer = 'n';
    while (result < 8 && read(ready[0], &answer, 1) == 1 && answer == 'y')
        result++;
    /* Those that were killed to make room for the others do not hold anything. */
    sleep_ms(50);
    for (int i = 0; i < 8; i++) {
        if (waitpid(children[i], NULL, WNOHANG) != 0)
            result--;
    }
    for (int i = 0; i < 8; i++)
        end_child(children[i]);
    errno = ENOMEM;
    return result == 8 ? escaped("eight processes hold %s MB", argv[0])
                       : held("%d of 8 processes", result);
}

/* Small files: each costs more in the kernel's tables than it holds. */
static int many_inodes(int argc, char **argv)
{
    (void)argc;
    long i;
    for (i = 0; i < number(argv[0]); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/i%ld", argv[1], i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    int saved = errno;
    bool all = i == number(argv[0]);
    while (i-- > 0) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/i%ld", argv[1], i);
        unlink(path);
    }
    errno = saved;
    return all ? escaped("made %s files in memory", argv[0]) : held("making files");
}

const struct attempt memory_attempts[] = {
    { "memory-anonymous", 1, anonymous, "hold MB megabytes" },
    { "memory-heap", 1, heap, "hold MB megabytes of heap" },
    { "memory-memfd", 1, memory_file, "hold MB megabytes in a memory file" },
    { "memory-tmpfs", 2, tmpfs_file, "hold MB megabytes in a file of DIRECTORY" },
    { "memory-shm", 2, tmpfs_file, "hold MB megabytes in a file of /dev/shm" },
    { "memory-shared", 1, shared_anonymous, "hold MB megabytes of shared memory" },
    { "memory-sysv", 1, sysv_segment, "hold MB megabytes of System V memory" },
    { "memory-pipes", 1, pipes, "hold MB megabytes in pipes" },
    { "memory-sockets", 1, sockets, "hold MB megabytes in sockets" },
    { "memory-page-tables", 1, page_tables, "hold MB megabytes of page tables" },
    { "memory-processes", 1, many_processes, "hold MB megabytes in eight processes" },
    { "memory-inodes", 2, many_inodes, "make COUNT files in DIRECTORY, a tmpfs" },
    { 0 },
};
