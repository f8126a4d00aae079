/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to start a program that `commands` does not list: directly, through the loader, an
 * interpreter line, a copy, a memory file, a descriptor. The program says ESCAPED when it runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

static const char *const words[] = { "echo", "ESCAPED: another program runs", NULL };

static int exec_other(int argc, char **argv)
{
    (void)argc;
    execv(argv[0], (char *const *)(const void *)words);
    return held("exec %s", argv[0]);
}

static int exec_loader(int argc, char **argv)
{
    (void)argc;
    execl(argv[0], argv[0], argv[1], words[1], (char *)NULL);
    return held("exec %s %s", argv[0], argv[1]);
}

static int exec_script(int argc, char **argv)
{
    (void)argc;
    char text[512];
    const char *path = join(argv[0], "/script", "");
    snprintf(text, sizeof(text), "#!%s %s\n", argv[1], words[1]);
    if (make_file(path, text, 0755) < 0)
        return held("make a script");
    execl(path, path, (char *)NULL);
    return held("exec a script for %s", argv[1]);
}

/* Copies a program into an open file. */
static int copy_program(const char *from, int to)
{
    struct stat st;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    while (st.st_size > 0) {
        char block[65536];
        ssize_t n = read(fd, block, sizeof(block));
        if (n <= 0 || write_all(to, block, (size_t)n) < 0)
            return -1;
        st.st_size -= n;
    }
    close(fd);
    return 0;
}

static int exec_copy(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/copy", "");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0)
        return held("make a file");
    if (copy_program(argv[1], fd) < 0)
        return held("copy %s", argv[1]);
    close(fd);
    execv(path, (char *const *)(const void *)words);
    int saved = errno;
    unlink(path);
    errno = saved;
    return held("exec a copy of %s", argv[1]);
}

static int exec_memory(int argc, char **argv)
{
    (void)argc;
    int fd = memfd_create("program", MFD_CLOEXEC);
    if (fd < 0)
        return held("memfd_create");
    if (copy_program(argv[0], fd) < 0)
        return held("copy %s", argv[0]);
    fexecve(fd, (char *const *)(const void *)words, environ);
    return held("exec a memory file");
}

static int exec_descriptor(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[0], O_PATH | O_CLOEXEC);
    if (fd < 0)
        return held("open %s", argv[0]);
    syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
    return held("execveat %s", argv[0]);
}

static int exec_hard_link(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/linked", "");
    unlink(path);
    if (linkat(AT_FDCWD, argv[1], AT_FDCWD, path, 0) < 0)
        return held("link");
    execl(path, path, "control-escape", "another program runs", (char *)NULL);
    return held("exec a link to %s", argv[1]);
}

static int exec_symlink(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/symlinked", "");
    unlink(path);
    if (symlink(argv[1], path) < 0)
        return held("symlink");
    execv(path, (char *const *)(const void *)words);
    return held("exec a symbolic link to %s", argv[1]);
}

const struct attempt exec_attempts[] = {
    { "exec-other", 1, exec_other, "start PROGRAM" },
    { "exec-loader", 2, exec_loader, "make LOADER start PROGRAM" },
    { "exec-loader-listed", 2, exec_loader, "the same, where another program needs LOADER" },
    { "exec-script", 2, exec_script, "start a script in WRITABLE for interpreter PROGRAM" },
    { "exec-copy", 2, exec_copy, "start a copy in WRITABLE of PROGRAM" },
    { "exec-memory", 1, exec_memory, "start a memory file with PROGRAM in it" },
    { "exec-descriptor", 1, exec_descriptor, "start PROGRAM by a descriptor" },
    { "exec-hard-link", 2, exec_hard_link, "start a hard link in WRITABLE to PROGRAM" },
    { "exec-symlink", 2, exec_symlink, "start a symbolic link in WRITABLE to PROGRAM" },
    { 0 },
};
