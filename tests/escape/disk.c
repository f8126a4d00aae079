/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to write more to storage than the limit: one file, many files, several mounts, and
 * the ways that write without write(). The host looks at what is really there afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attempt.h"

enum { MEGABYTE = 1 << 20 };
static char block[MEGABYTE];

static int make(const char *directory, const char *name)
{
    int fd = open(join(directory, "/", name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    /* A limit per file is told by a signal as well; the error is what we want to see. */
    signal(SIGXFSZ, SIG_IGN);
    return fd;
}

static int fill(const char *directory, const char *name, long megabytes)
{
    memset(block, 'x', sizeof(block));
    int fd = make(directory, name);
    if (fd < 0)
        return -1;
    for (long i = 0; i < megabytes; i++) {
        if (write_all(fd, block, sizeof(block)) < 0) {
            close(fd);
            return -1;
        }
    }
    close(fd);
    return 0;
}

static int one_file(int argc, char **argv)
{
    (void)argc;
    if (fill(argv[0], "one", number(argv[1])) < 0)
        return held("write");
    return escaped("wrote %s MB to one file", argv[1]);
}

/* Files of a megabyte each: a limit per file does not see the sum. */
static int many_files(int argc, char **argv)
{
    (void)argc;
    for (long i = 0; i < number(argv[1]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "many-%ld", i);
        if (fill(argv[0], name, 1) < 0)
            return held("file %ld", i);
    }
    return escaped("wrote %s files of 1 MB", argv[1]);
}

/* One byte takes a whole block. */
static int tiny_files(int argc, char **argv)
{
    (void)argc;
    for (long i = 0; i < number(argv[1]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "tiny-%ld", i);
        int fd = make(argv[0], name);
        if (fd < 0 || write_all(fd, "x", 1) < 0)
            return held("file %ld", i);
        close(fd);
    }
    return escaped("wrote %s files of one byte", argv[1]);
}

static int several_mounts(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (fill(argv[i], "several", number(argv[0])) < 0)
            return held("write in %s", argv[i]);
    }
    return escaped("wrote %s MB in each of %d directories", argv[0], argc - 1);
}

static int sparse_file(int argc, char **argv)
{
    (void)argc;
    int fd = make(argv[0], "sparse");
    if (fd < 0)
        return held("make a file");
    off_t size = (off_t)number(argv[1]) * MEGABYTE;
    if (ftruncate(fd, size) < 0)
        return held("ftruncate");
    return judge(pwrite(fd, "x", 1, size), "made a sparse file beyond the limit");
}

static int allocate(int argc, char **argv)
{
    (void)argc;
    int fd = make(argv[0], "allocated");
    if (fd < 0)
        return held("make a file");
    return judge(fallocate(fd, 0, 0, (off_t)number(argv[1]) * MEGABYTE),
                 "allocated without writing");
}

/* Allocated blocks beyond the end of a file do not show in its size. */
static int allocate_hidden(int argc, char **argv)
{
    (void)argc;
    int fd = make(argv[0], "allocated");
    if (fd < 0)
        return held("make a file");
    return judge(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)number(argv[1]) * MEGABYTE),
                 "allocated beyond the end of a file");
}

static int write_mapping(int argc, char **argv)
{
    (void)argc;
    size_t size = (size_t)number(argv[1]) * MEGABYTE;
    /* In pieces, so that no single file is large. */
    for (size_t at = 0; at < size; at += MEGABYTE) {
        char name[32];
        snprintf(name, sizeof(name), "mapped-%zu", at / MEGABYTE);
        int fd = make(argv[0], name);
        if (fd < 0 || ftruncate(fd, MEGABYTE) < 0)
            return held("file %zu", at / MEGABYTE);
        char *map = mmap(NULL, MEGABYTE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            return held("mmap");
        memset(map, 'x', MEGABYTE);
        munmap(map, MEGABYTE);
        close(fd);
    }
    return escaped("wrote %s MB through mappings", argv[1]);
}

/* The kernel copies: nothing passes through us. */
static int copy_inside(int argc, char **argv)
{
    (void)argc;
    if (fill(argv[0], "source", 1) < 0)
        return held("write the source");
    int from = open(join(argv[0], "/source", ""), O_RDONLY | O_CLOEXEC);
    for (long i = 0; i < number(argv[1]); i++) {
        char name[32];
        off_t in = 0;
        snprintf(name, sizeof(name), "copy-%ld", i);
        int to = make(argv[0], name);
        if (to < 0 || copy_file_range(from, &in, to, NULL, MEGABYTE, 0) < 0) {
            in = 0;
            if (to < 0 || sendfile(to, from, &in, MEGABYTE) < 0)
                return held("copy %ld", i);
        }
        close(to);
    }
    return escaped("copied %s MB in the kernel", argv[1]);
}

/* Removed as soon as it is written: the space is taken while the descriptor lives. */
static int unlinked_file(int argc, char **argv)
{
    (void)argc;
    memset(block, 'x', sizeof(block));
    int fd = make(argv[0], "unlinked");
    if (fd < 0)
        return held("make a file");
    unlink(join(argv[0], "/unlinked", ""));
    for (long i = 0; i < number(argv[1]); i++) {
        if (write_all(fd, block, sizeof(block)) < 0)
            return held("write after %ld MB", i);
    }
    return escaped("wrote %s MB without a name", argv[1]);
}

static int fill_scratch(int argc, char **argv)
{
    (void)argc;
    int result = fill(argv[0], "scratch-fill", number(argv[1]));
    int saved = errno;
    unlink(join(argv[0], "/scratch-fill", ""));
    errno = saved;
    return result < 0 ? held("write in %s", argv[0])
                      : escaped("wrote %s MB in %s", argv[1], argv[0]);
}

const struct attempt disk_attempts[] = {
    { "disk-one-file", 2, one_file, "write in WRITABLE one file of MB megabytes" },
    { "disk-many-files", 2, many_files, "write in WRITABLE COUNT files of a megabyte" },
    { "disk-tiny-files", 2, tiny_files, "write in WRITABLE COUNT files of a byte" },
    { "disk-several-mounts", 3, several_mounts, "write MB megabytes in each DIRECTORY" },
    { "disk-sparse", 2, sparse_file, "make in WRITABLE a sparse file of MB megabytes" },
    { "disk-fallocate", 2, allocate, "allocate in WRITABLE MB megabytes" },
    { "disk-fallocate-hidden", 2, allocate_hidden,
      "allocate in WRITABLE MB megabytes past the end" },
    { "disk-mapping", 2, write_mapping, "write in WRITABLE MB megabytes through mappings" },
    { "disk-copy", 2, copy_inside, "copy in WRITABLE MB megabytes in the kernel" },
    { "disk-unlinked", 2, unlinked_file, "write in WRITABLE MB megabytes to a removed file" },
    { "scratch-fill", 2, fill_scratch, "write in SCRATCH MB megabytes" },
    { 0 },
};
