/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to change the tree of mounts: uncover, remount, bind over, and the mount calls that
 * take descriptors. Each first tries to get mounts of its own, so that nothing reaches the host. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

/* glibc's <sys/mount.h> and the kernel's <linux/mount.h> do not go together in Debian 12. */
enum { BIND = 4096, RECURSIVE = 16384, REMOUNT = 32, READ_ONLY = 1, PRIVATE = 1 << 18, DETACH = 2 };

static long do_mount(const char *from, const char *to, const char *type, unsigned long flags)
{
    return syscall(SYS_mount, from, to, type, flags, NULL);
}

static int mount_tmpfs(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    return judge(do_mount("tmpfs", argv[0], "tmpfs", 0), "mounted a tmpfs");
}

static int mount_bind(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    if (do_mount(argv[0], argv[1], NULL, BIND | RECURSIVE) < 0)
        return held("bind");
    return loot_path(join(argv[1], "/", argv[2]), "through a bind mount");
}

static int mount_proc(int argc, char **argv)
{
    (void)argc;
    /* A new /proc needs a pid namespace that we own: of this one, or of a new one. */
    own_mounts();
    return judge(do_mount("proc", argv[0], "proc", 0), "mounted another /proc");
}

static int mount_sysfs(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    return judge(do_mount("sysfs", argv[0], "sysfs", 0), "mounted /sys");
}

/* Makes a read-only place writable again. Where it is writable (without a cage), it is made
 * read-only first. */
static int remount_writable(int argc, char **argv)
{
    (void)argc;
    if (own_mounts()) {
        do_mount(argv[0], argv[0], NULL, BIND);
        do_mount(NULL, argv[0], NULL, REMOUNT | BIND | READ_ONLY);
    }
    if (do_mount(NULL, argv[0], NULL, REMOUNT | BIND) < 0)
        return held("remount");
    return judge(make_file(join(argv[0], "/remounted", ""), "x", 0644), "wrote after a remount");
}

static int setattr_writable(int argc, char **argv)
{
    (void)argc;
    struct mount_attr lock = { .attr_set = MOUNT_ATTR_RDONLY };
    struct mount_attr unlock = { .attr_clr = MOUNT_ATTR_RDONLY };
    if (own_mounts()) {
        do_mount(argv[0], argv[0], NULL, BIND);
        syscall(SYS_mount_setattr, AT_FDCWD, argv[0], 0, &lock, sizeof(lock));
    }
    if (syscall(SYS_mount_setattr, AT_FDCWD, argv[0], 0, &unlock, sizeof(unlock)) < 0)
        return held("mount_setattr");
    return judge(make_file(join(argv[0], "/set", ""), "x", 0644), "wrote after mount_setattr");
}

/* What is below a mount is the host's. */
static int umount_uncover(int argc, char **argv)
{
    (void)argc;
    if (own_mounts())
        do_mount("tmpfs", argv[0], "tmpfs", 0);
    if (syscall(SYS_umount2, argv[0], DETACH) < 0)
        return held("umount");
    return escaped("took a mount away");
}

static int open_tree_clone(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[0], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return held("open_tree");
    int fd = openat(tree, argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held("openat beneath the clone");
    return loot_fd(fd, "in a cloned tree of mounts");
}

static int move_mount_over(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[0], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        tree = open(argv[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return held("open the directory");
    return judge(syscall(SYS_move_mount, tree, "", AT_FDCWD, argv[1], MOVE_MOUNT_F_EMPTY_PATH),
                 "moved a mount over another directory");
}

static int fsopen_tmpfs(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    own_mounts();
    return judge(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), "fsopen");
}

static int fspick_root(int argc, char **argv)
{
    (void)argc;
    own_mounts();
    /* Only a file system that our user namespace owns can be picked. */
    do_mount("tmpfs", argv[0], "tmpfs", 0);
    return judge(syscall(SYS_fspick, AT_FDCWD, argv[0], FSPICK_CLOEXEC), "fspick");
}

static int pivot_away(int argc, char **argv)
{
    (void)argc;
    if (own_mounts())
        do_mount(argv[0], argv[0], NULL, BIND);
    if (chdir(argv[0]) < 0)
        return held("chdir");
    return judge(syscall(SYS_pivot_root, ".", "."), "pivot_root");
}

/* The root that was replaced may still be there, below or beside the new one. */
static int old_root(int argc, char **argv)
{
    static const char *const places[] = { "/.old",    "/old", "/oldroot", "/.oldroot",
                                          "/put_old", "/mnt", "/newroot", "/proc/self/cwd/..",
                                          "." };
    int last = ENOENT;
    (void)argc;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int fd = open(join(places[i], argv[0], ""), O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return loot_fd(fd, places[i]);
        last = errno;
    }
    /* Without a cage the root is simply the root. */
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return loot_fd(fd, "/");
    errno = last;
    return held("the secret below a former root");
}

/* Sources of mounts, as /proc tells them, name directories of the host. */
static int mountinfo_paths(int argc, char **argv)
{
    char line[4096];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (!file)
        return held("open /proc/self/mountinfo");
    while (fgets(line, sizeof(line), file)) {
        for (int i = 0; i < argc; i++) {
            if (strstr(line, argv[i])) {
                fclose(file);
                line[strcspn(line, "\n")] = '\0';
                return escaped("a mount of the host: %s", line);
            }
        }
    }
    fclose(file);
    errno = ENOENT;
    return held("mounts of the host in /proc/self/mountinfo");
}

const struct attempt mount_attempts[] = {
    { "mount-tmpfs", 1, mount_tmpfs, "mount a tmpfs over DIRECTORY" },
    { "mount-bind", 3, mount_bind, "bind SOURCE over TARGET and read NAME in it" },
    { "mount-proc", 1, mount_proc, "mount another /proc over DIRECTORY" },
    { "mount-sysfs", 1, mount_sysfs, "mount /sys over DIRECTORY" },
    { "remount-writable", 1, remount_writable, "remount READONLY writable" },
    { "mount-setattr-writable", 1, setattr_writable, "make READONLY writable with mount_setattr" },
    { "umount-uncover", 1, umount_uncover, "unmount DIRECTORY to see what is below" },
    { "open-tree-clone", 2, open_tree_clone, "clone the mounts of DIRECTORY, read NAME in it" },
    { "move-mount", 2, move_mount_over, "move a mount of SOURCE over TARGET" },
    { "fsopen", 0, fsopen_tmpfs, "open a file system context" },
    { "fspick", 1, fspick_root, "pick up the file system of DIRECTORY" },
    { "pivot-root", 1, pivot_away, "pivot_root to DIRECTORY" },
    { "old-root", 1, old_root, "find SECRET below a root that was left mounted" },
    { "mountinfo-host", 1, mountinfo_paths, "find a mount of the host: PATH in mountinfo" },
    { 0 },
};
