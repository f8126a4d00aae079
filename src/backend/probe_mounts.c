/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can a cage's root be built here? Makes one: a tmpfs of fixed size from fsopen(), a bind
 * clone from open_tree() made read-only by mount_setattr(), both joined by move_mount(), and a
 * pivot_root() into it. All of it in a private mount namespace that ends with the child.
 */
#include "backend/probe.h"
#include "backend/probe_mount_api.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char REMEDY_CAPABILITIES[] = "see user_namespaces, or run toolcage as root";
static const char REMEDY_API[] = "use Linux 5.2 or newer; in a container, allow the mount calls in "
                                 "its seccomp profile";
static const char REMEDY_SETATTR[] = "use Linux 5.12 or newer; in a container, allow mount_setattr "
                                     "in its seccomp profile";
static const char REMEDY_PIVOT[] =
    "pivot_root cannot leave an initial ramdisk or a chroot: start toolcage on a mounted root file "
    "system";

/* A detached tmpfs of 64 KiB, or -1; `ret_step` says what failed. */
static int tmpfs_make(const char **ret_step)
{
    int mount_fd = -1, problem;
    int context = tci_sys_fsopen("tmpfs");
    *ret_step = "fsopen";
    if (context < 0)
        return -1;
    *ret_step = "fsconfig";
    if (tci_sys_fsconfig(context, TCI_FSCONFIG_SET_STRING, "size", "65536") == 0 &&
        tci_sys_fsconfig(context, TCI_FSCONFIG_SET_STRING, "mode", "0700") == 0 &&
        tci_sys_fsconfig(context, TCI_FSCONFIG_CMD_CREATE, NULL, NULL) == 0) {
        *ret_step = "fsmount";
        mount_fd = tci_sys_fsmount(context, TCI_MOUNT_ATTR_NOSUID | TCI_MOUNT_ATTR_NODEV);
    }
    problem = errno;
    (void)close(context);
    errno = problem;
    return mount_fd;
}

/* The size must be kept, not only accepted: write until it says "no space". */
static void tmpfs_size(const struct tci_probe *p, int tmpfs)
{
    static const char page[4096];
    ssize_t n = 0;
    int pages = 0, problem;
    int fd = openat(tmpfs, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        tci_probe_refused(p, TCI_FEATURE_TMPFS_SIZE, REMEDY_API, "a file in tmpfs", errno);
        return;
    }
    while (pages < 64 && (n = write(fd, page, sizeof page)) > 0)
        pages++;
    problem = errno;
    (void)close(fd);
    (void)unlinkat(tmpfs, "file", 0);
    if (n < 0 && problem == ENOSPC)
        tci_probe_yes(p, TCI_FEATURE_TMPFS_SIZE, "64 KiB were full after %d KiB", pages * 4);
    else if (n < 0)
        tci_probe_unknown(p, TCI_FEATURE_TMPFS_SIZE, NULL, "write: %s", strerrordesc_np(problem));
    else
        tci_probe_no(p, TCI_FEATURE_TMPFS_SIZE, REMEDY_API, "%d KiB fit into 64 KiB", pages * 4);
}

/* A clone of the host's whole tree: with its submounts, which a user may not uncover. Or -1 with
 * errno set. */
static int clone_make(const struct tci_probe *p)
{
    struct tci_mount_attr attr = { .attr_set = TCI_MOUNT_ATTR_RDONLY | TCI_MOUNT_ATTR_NOSUID |
                                               TCI_MOUNT_ATTR_NODEV };
    struct statvfs now;
    int fd = tci_sys_open_tree(AT_FDCWD, "/");
    if (fd < 0) {
        int problem = errno;
        tci_probe_refused(p, TCI_FEATURE_MOUNT_API, REMEDY_API, "open_tree", problem);
        tci_probe_failed(p, TCI_FEATURE_MOUNT_SETATTR, "see mount_api", problem,
                         "no mount to try it on: %s", strerrordesc_np(problem));
        errno = problem;
        return -1;
    }
    if (tci_sys_mount_setattr(fd, &attr) < 0)
        tci_probe_refused(p, TCI_FEATURE_MOUNT_SETATTR, REMEDY_SETATTR, "mount_setattr", errno);
    else if (fstatvfs(fd, &now) < 0)
        tci_probe_refused(p, TCI_FEATURE_MOUNT_SETATTR, REMEDY_SETATTR, "looking at it", errno);
    else if (!(now.f_flag & ST_RDONLY))
        tci_probe_no(p, TCI_FEATURE_MOUNT_SETATTR, REMEDY_SETATTR, "the tree stayed writable");
    else
        tci_probe_yes(p, TCI_FEATURE_MOUNT_SETATTR, "a whole tree became read-only");
    return fd;
}

/* Moves into the tmpfs and drops the host's root. Afterwards "/" is ours and holds "clone". */
static void pivot(const struct tci_probe *p, int tmpfs)
{
    struct stat before, after;
    if (fchdir(tmpfs) < 0 || fstat(tmpfs, &before) < 0 || tci_sys_pivot_root(".", ".") < 0)
        tci_probe_refused(p, TCI_FEATURE_PIVOT_ROOT, REMEDY_PIVOT, "pivot_root", errno);
    else if (umount2(".", MNT_DETACH) < 0)
        tci_probe_refused(p, TCI_FEATURE_PIVOT_ROOT, REMEDY_PIVOT, "dropping the old root", errno);
    else if (chdir("/") < 0 || stat("/", &after) < 0 || before.st_dev != after.st_dev ||
             before.st_ino != after.st_ino || access("/clone", F_OK) < 0)
        tci_probe_no(p, TCI_FEATURE_PIVOT_ROOT, REMEDY_PIVOT, "the old root is still there");
    else
        tci_probe_yes(p, TCI_FEATURE_PIVOT_ROOT, "the old root is gone");
}

/* Joins the two at a directory that every host has, then pivots. */
static void assemble(const struct tci_probe *p, int tmpfs, int clone)
{
    static const char *const places[] = { "/tmp", "/mnt", "/proc" };
    size_t i = 0;
    if (mkdirat(tmpfs, "clone", 0700) < 0) {
        tci_probe_refused(p, TCI_FEATURE_MOUNT_API, REMEDY_API, "a directory in tmpfs", errno);
        return;
    }
    while (i < tci_array_size(places) && tci_sys_move_mount(tmpfs, AT_FDCWD, places[i]) < 0)
        i++;
    if (i == tci_array_size(places) || tci_sys_move_mount(clone, tmpfs, "clone") < 0) {
        tci_probe_refused(p, TCI_FEATURE_MOUNT_API, REMEDY_API, "move_mount", errno);
        return;
    }
    tci_probe_yes(p, TCI_FEATURE_MOUNT_API, "fsopen, fsmount, open_tree and move_mount work");
    pivot(p, tmpfs);
}

void tci_probe_mounts(const struct tci_probe *p)
{
    static const enum tci_feature all[] = { TCI_FEATURE_MOUNT_API, TCI_FEATURE_MOUNT_SETATTR,
                                            TCI_FEATURE_PIVOT_ROOT, TCI_FEATURE_TMPFS_SIZE };
    char why[TCI_FEATURE_DETAIL_MAX];
    const char *step;
    int tmpfs, clone, problem = tci_probe_gain_capabilities(why, sizeof why);
    if (problem) {
        for (size_t i = 0; i < tci_array_size(all); i++)
            tci_probe_failed(p, all[i], REMEDY_CAPABILITIES, problem, "%s", why);
        return;
    }
    /* Nothing below may reach the host's own mounts. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        problem = errno;
        for (size_t i = 0; i < tci_array_size(all); i++)
            tci_probe_refused(p, all[i], REMEDY_API, "making mounts private", problem);
        return;
    }
    tmpfs = tmpfs_make(&step);
    if (tmpfs < 0) {
        problem = errno;
        tci_probe_refused(p, TCI_FEATURE_MOUNT_API, REMEDY_API, step, problem);
        tci_probe_refused(p, TCI_FEATURE_TMPFS_SIZE, REMEDY_API, step, problem);
    } else {
        tmpfs_size(p, tmpfs);
    }
    clone = clone_make(p);
    if (clone < 0)
        problem = errno;
    if (tmpfs >= 0 && clone >= 0)
        assemble(p, tmpfs, clone);
    /* The first report counts: this one only where nothing got that far. */
    tci_probe_failed(p, TCI_FEATURE_PIVOT_ROOT, "see mount_api", problem, "no root to move into");
}
