/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to leave something in a writable directory of the host that gives somebody more
 * rights later: setuid files, file capabilities, devices, files of others. The caller owns the files
 * that a cage makes; if the caller is root, a setuid file there is a root shell. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "attempt.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Says what the kernel made of it: a bit that was dropped is a refusal too. */
static int judge_mode(const char *path, long result, const char *step)
{
    struct stat st;
    if (result < 0)
        return held("%s", step);
    if (lstat(path, &st) < 0)
        return held("lstat after %s", step);
    if (st.st_mode & (S_ISUID | S_ISGID))
        return escaped("%s left mode %o", step, st.st_mode & 07777U);
    errno = 0;
    return held("%s: the bit was dropped", step);
}

static const char *fresh(const char *directory)
{
    const char *path = join(directory, "/planted", "");
    unlink(path);
    return make_file(path, "#!/bin/sh\n", 0755) < 0 ? NULL : path;
}

static int plant_chmod(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    return path ? judge_mode(path, chmod(path, 04755), "chmod") : held("make a file");
}

static int plant_chmod_group(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    return path ? judge_mode(path, chmod(path, 02755), "chmod") : held("make a file");
}

static int plant_fchmod(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return fd >= 0 ? judge_mode(path, fchmod(fd, 06755), "fchmod") : held("make a file");
}

static int plant_fchmodat(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    if (!path)
        return held("make a file");
    return judge_mode(path, syscall(SYS_fchmodat, AT_FDCWD, path, 04755), "fchmodat");
}

static int plant_fchmodat2(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    if (!path)
        return held("make a file");
    return judge_mode(path, syscall(SYS_fchmodat2, AT_FDCWD, path, 04755, 0), "fchmodat2");
}

static int plant_open(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    umask(0);
    unlink(path);
    return judge_mode(path, open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 04755), "open with a mode");
}

static int plant_creat(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    umask(0);
    unlink(path);
#ifdef SYS_creat
    return judge_mode(path, syscall(SYS_creat, path, 04755), "creat");
#else
    return judge_mode(path, creat(path, 04755), "creat");
#endif
}

/* The mode is behind a pointer, where a system call filter cannot look. */
static int plant_openat2(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    umask(0);
    unlink(path);
    struct open_how how = { .flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = 04755 };
    return judge_mode(path, syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)), "openat2");
}

/* An unnamed file gets its mode at birth and its name later. */
static int plant_tmpfile(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    char self[64];
    umask(0);
    unlink(path);
    int fd = open(argv[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 04755);
    if (fd < 0)
        return held("open with O_TMPFILE");
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    return judge_mode(path, linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW), "linkat");
}

static int plant_mknod(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    umask(0);
    unlink(path);
    return judge_mode(path, mknod(path, S_IFREG | 04755, 0), "mknod");
}

static int plant_mkdir(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    umask(0);
    unlink(path);
    rmdir(path);
    if (mkdir(path, 0755) < 0)
        return held("mkdir");
    return judge_mode(path, chmod(path, 02755), "chmod of a directory");
}

static int plant_capability(int argc, char **argv)
{
    (void)argc;
    struct vfs_cap_data data = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                 .data = { { ~0U, 0 }, { 0, 0 } } };
    const char *path = fresh(argv[0]);
    if (!path)
        return held("make a file");
    return judge(setxattr(path, "security.capability", &data, sizeof(data), 0),
                 "set file capabilities");
}

static int plant_chown(int argc, char **argv)
{
    (void)argc;
    const char *path = fresh(argv[0]);
    if (!path)
        return held("make a file");
    return judge(chown(path, (uid_t)number(argv[1]), (gid_t)-1), "gave a file to somebody else");
}

static int plant_device(int argc, char **argv)
{
    (void)argc;
    const char *path = join(argv[0], "/planted", "");
    unlink(path);
    /* The node of /dev/null: harmless, and refused for the same reason as a disk's. */
    return judge(mknod(path, S_IFCHR | 0666, makedev(1, 3)), "made a device node");
}

/* A setuid program of somebody else, in a directory that is granted: does it change who we are? */
static int run_setuid(int argc, char **argv)
{
    (void)argc;
    char before[16];
    snprintf(before, sizeof(before), "%u", (unsigned)geteuid());
    execl(argv[0], argv[0], "am-i", before, (char *)NULL);
    return held("exec %s", argv[0]);
}

static int am_i(int argc, char **argv)
{
    (void)argc;
    if ((long)geteuid() != number(argv[0]) || geteuid() != getuid())
        return escaped("a setuid program made %s user %u", argv[0], (unsigned)geteuid());
    errno = EPERM;
    return held("still user %s after a setuid program", argv[0]);
}

static int no_new_privs(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return escaped("no_new_privs is not set");
    errno = EPERM;
    return held("no_new_privs is set");
}

const struct attempt plant_attempts[] = {
    { "plant-setuid-chmod", 1, plant_chmod, "make a setuid file in WRITABLE with chmod" },
    { "plant-setgid-chmod", 1, plant_chmod_group, "make a setgid file in WRITABLE with chmod" },
    { "plant-setuid-fchmod", 1, plant_fchmod, "make a setuid file in WRITABLE with fchmod" },
    { "plant-setuid-fchmodat", 1, plant_fchmodat, "make a setuid file in WRITABLE with fchmodat" },
    { "plant-setuid-fchmodat2", 1, plant_fchmodat2,
      "make a setuid file in WRITABLE with fchmodat2" },
    { "plant-setuid-open", 1, plant_open, "make a setuid file in WRITABLE with open's mode" },
    { "plant-setuid-creat", 1, plant_creat, "make a setuid file in WRITABLE with creat's mode" },
    { "plant-setuid-openat2", 1, plant_openat2,
      "make a setuid file in WRITABLE with openat2's mode" },
    { "plant-setuid-tmpfile", 1, plant_tmpfile, "make a setuid file in WRITABLE with O_TMPFILE" },
    { "plant-setuid-mknod", 1, plant_mknod, "make a setuid file in WRITABLE with mknod" },
    { "plant-setgid-directory", 1, plant_mkdir, "make a setgid directory in WRITABLE" },
    { "plant-capability", 1, plant_capability, "make a file with capabilities in WRITABLE" },
    { "plant-chown", 2, plant_chown, "give a file in WRITABLE to user UID" },
    { "plant-device", 1, plant_device, "make a device node in WRITABLE" },
    { "run-setuid", 1, run_setuid, "run PROGRAM, which is setuid" },
    { "am-i", 1, am_i, "(the setuid program itself) am I UID still?" },
    { "no-new-privs", 0, no_new_privs, "be without no_new_privs" },
    { 0 },
};
