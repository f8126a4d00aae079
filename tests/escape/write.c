/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to change what is granted for reading only, what is hidden, and the programs that
 * the host itself runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "attempt.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static int readonly_write(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open for writing");
    return judge(pwrite(fd, "CHANGED", 7, 0), "wrote to a file that is granted for reading");
}

static int readonly_truncate(int argc, char **argv)
{
    (void)argc;
    return judge(truncate(argv[0], 0), "truncate");
}

static int readonly_open_truncate(int argc, char **argv)
{
    (void)argc;
    return judge(open(argv[0], O_RDONLY | O_TRUNC | O_CLOEXEC), "open with O_TRUNC");
}

static int readonly_create(int argc, char **argv)
{
    (void)argc;
    return judge(make_file(join(argv[0], "/made", ""), "x", 0644), "made a file");
}

static int readonly_unlink(int argc, char **argv)
{
    (void)argc;
    return judge(unlink(argv[0]), "unlink");
}

static int readonly_rename(int argc, char **argv)
{
    (void)argc;
    return judge(rename(argv[0], join(argv[0], ".moved", "")), "rename");
}

static int readonly_chmod(int argc, char **argv)
{
    (void)argc;
    return judge(chmod(argv[0], 0666), "chmod");
}

static int readonly_chmod_new(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_fchmodat2, AT_FDCWD, argv[0], 0666, 0), "fchmodat2");
}

static int readonly_fchmod(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open");
    return judge(fchmod(fd, 0666), "fchmod");
}

static int readonly_chown(int argc, char **argv)
{
    (void)argc;
    return judge(chown(argv[0], (uid_t)-1, (gid_t)number(argv[1])), "chown");
}

static int readonly_utimes(int argc, char **argv)
{
    (void)argc;
    struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    return judge(utimensat(AT_FDCWD, argv[0], times, 0), "utimensat");
}

static int readonly_xattr(int argc, char **argv)
{
    (void)argc;
    return judge(setxattr(argv[0], "user.canary", "x", 1, 0), "setxattr");
}

/* Descriptors granted for reading, mapped for writing. */
static int readonly_mmap(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open");
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return held("mmap");
    memcpy(map, "CHANGED", 7);
    return escaped("changed a file through a mapping");
}

/* O_PATH needs no right to read; /proc turns it into one that has. */
static int readonly_reopen(int argc, char **argv)
{
    (void)argc;
    int path = open(argv[0], O_PATH | O_CLOEXEC);
    if (path < 0)
        return held("open with O_PATH");
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
    int fd = open(link, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open through /proc/self/fd");
    return judge(pwrite(fd, "CHANGED", 7, 0), "wrote through /proc/self/fd");
}

/* Writing to a FIFO changes no file system, so a read-only mount lets it pass; somebody reads there. */
static int readonly_fifo(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return held("open the FIFO for writing");
    return judge(write(fd, "CHANGED", 7), "wrote to a FIFO of the host");
}

/* A directory that is for reading only, in one that is writable: put another in its place. */
static int readonly_swap(int argc, char **argv)
{
    (void)argc;
    if (rename(argv[0], join(argv[0], ".away", "")) < 0)
        return held("rename the protected directory");
    if (mkdir(argv[0], 0755) < 0 || make_file(join(argv[0], "/data.txt", ""), "CHANGED", 0644) < 0)
        return held("make another one");
    return escaped("put another directory in place of a protected one");
}

static int parent_rename(int argc, char **argv)
{
    (void)argc;
    const char *new_name = join(argv[0], ".away", "");
    if (rename(argv[0], new_name) < 0)
        return held("rename the parent");
    return loot_path(join(argv[0], ".away/", argv[1]), "read what was hidden, by another name");
}

/* A file that the policy protects and that is not there yet: .env, a git hook, authorized_keys. */
static int create_protected(int argc, char **argv)
{
    (void)argc;
    return judge(make_file(argv[0], "PLANTED", 0755), "made the missing file");
}

static int create_protected_directory(int argc, char **argv)
{
    (void)argc;
    if (mkdir(argv[0], 0755) < 0)
        return held("mkdir");
    return judge(make_file(join(argv[0], "/planted", ""), "PLANTED", 0755), "planted a file");
}

static int create_protected_link(int argc, char **argv)
{
    (void)argc;
    return judge(symlink("/etc/passwd", argv[0]), "symlink in place of the missing file");
}

static int create_protected_rename(int argc, char **argv)
{
    (void)argc;
    if (make_file(join(argv[0], ".new", ""), "PLANTED", 0755) < 0)
        return held("make a file beside it");
    if (rename(join(argv[0], ".new", ""), argv[0]) < 0) {
        int saved = errno;
        unlink(join(argv[0], ".new", ""));
        errno = saved;
        return held("rename into place");
    }
    return escaped("renamed a file into place of the missing one");
}

static int write_system(int argc, char **argv)
{
    (void)argc;
    /* A file without a name: nothing stays when it works. */
    return judge(open(argv[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "made a file in the system");
}

static int write_path(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return held("open for writing");
    return judge(write(fd, "CHANGED", 7), "wrote to a file that is not granted");
}

/* Overwrites the program that is running: a shell does it, since nobody runs us any more then. */
static int overwrite_self(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int fd = open("/proc/self/exe", O_PATH);
    if (fd < 0)
        return held("open /proc/self/exe");
    if (dup2(fd, 9) < 0)
        return held("dup2");
    execl(
        "/bin/sh", "sh", "-c",
        "if printf CHANGED >>/proc/self/fd/9; then echo 'ESCAPED: changed the program'; exit 0; fi;"
        "echo 'held: the shell could not write to the program'; exit 1",
        (char *)NULL);
    return held("exec sh");
}

/* The program of our parent: init, toolcage itself, or whoever started us. "Busy" means that the
 * right to write is there and only the moment is wrong. */
static int overwrite_parent(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char path[64];
    int last = ENOENT;
    const int pids[2] = { getppid(), 1 };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%d/exe", pids[i]);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 || errno == ETXTBSY)
            return escaped("%s can be written to%s", path, fd < 0 ? " as soon as it ends" : "");
        last = errno;
    }
    errno = last;
    return held("open the parent's program for writing");
}

const struct attempt write_attempts[] = {
    { "readonly-write", 1, readonly_write, "write to FILE, which is granted for reading" },
    { "readonly-truncate", 1, readonly_truncate, "truncate FILE" },
    { "readonly-open-truncate", 1, readonly_open_truncate, "open FILE for reading with O_TRUNC" },
    { "readonly-create", 1, readonly_create, "make a file in DIRECTORY" },
    { "readonly-unlink", 1, readonly_unlink, "unlink FILE" },
    { "readonly-rename", 1, readonly_rename, "rename FILE" },
    { "readonly-chmod", 1, readonly_chmod, "chmod FILE" },
    { "readonly-fchmodat2", 1, readonly_chmod_new, "fchmodat2 FILE" },
    { "readonly-fchmod", 1, readonly_fchmod, "fchmod a descriptor of FILE" },
    { "readonly-chown", 2, readonly_chown, "give FILE to group GID" },
    { "readonly-utimes", 1, readonly_utimes, "set FILE's times" },
    { "readonly-xattr", 1, readonly_xattr, "set an extended attribute of FILE" },
    { "readonly-mmap", 1, readonly_mmap, "change FILE through a shared mapping" },
    { "readonly-reopen", 1, readonly_reopen, "open FILE with O_PATH, then again through /proc" },
    { "readonly-fifo", 1, readonly_fifo, "write to FIFO, which is granted for reading" },
    { "readonly-nested-write", 1, readonly_write,
      "write to FILE, read-only in a writable directory" },
    { "readonly-swap", 1, readonly_swap, "replace DIRECTORY, read-only in a writable directory" },
    { "hidden-parent-rename", 2, parent_rename, "rename DIRECTORY, then read hidden NAME in it" },
    { "protected-create", 1, create_protected, "make FILE, which is hidden and missing" },
    { "protected-mkdir", 1, create_protected_directory,
      "make a directory at FILE, hidden and missing" },
    { "protected-symlink", 1, create_protected_link, "make a link at FILE, hidden and missing" },
    { "protected-rename", 1, create_protected_rename, "rename a file to FILE, hidden and missing" },
    { "write-system", 1, write_system, "make a file in DIRECTORY of the system" },
    { "write-path", 1, write_path, "append to FILE, which is not granted" },
    { "overwrite-self", 0, overwrite_self, "overwrite the running program through /proc/self/exe" },
    { "overwrite-parent", 0, overwrite_parent,
      "overwrite the program of the parent or of process 1" },
    { 0 },
};
