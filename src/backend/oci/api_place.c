/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: directories on the host that containers of an engine see: our first program, a built-in
 * tool's program, small generated files, and the socket on which the container calls back.
 *
 *   BASE/OWNER/pN/           0700: nobody but this user (and the engine, which binds) comes in
 *     entry, program, f0...  made once for each plan
 *     CAGE/                  0755: what one container sees as /.toolcage, read-only
 *       entry, program       the same files by another name (hard links)
 *       control              listens until the container has called, then it is gone
 *
 * Invariants: every directory is ours, and no link is followed; a name that another process owns is
 * removed only when that process is surely gone.
 */
#include "backend/oci/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/fd.h"

/* Of $XDG_RUNTIME_DIR: the path of Podman's socket below it has at most 107 bytes. */
enum { PLANS_MAX = 100000, OWNER_TRIES = 100, DEPTH_MAX = 4, RUNTIME_MAX = 40 };

static const int OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/* Removes what is in a directory of ours and it. Only names below handles: no link leads out. */
static void remove_tree(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, OPEN_DIRECTORY);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (!list) {
        (void)tci_close(fd);
        return;
    }
    while ((entry = readdir(list))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(list), entry->d_name, 0) < 0 && depth < DEPTH_MAX)
            remove_tree(dirfd(list), entry->d_name, depth + 1);
    }
    (void)closedir(list);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void sweep(int base, const char *self)
{
    int fd = openat(base, ".", OPEN_DIRECTORY);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (!list) {
        (void)tci_close(fd);
        return;
    }
    while ((entry = readdir(list)))
        if (strcmp(entry->d_name, self) != 0 && tci_api_owner_is_gone(entry->d_name))
            remove_tree(base, entry->d_name, 0);
    (void)closedir(list);
}

/* Opens a directory, made if it is not there; it must be ours and closed to others. The attack:
 * in /tmp somebody else made it first, and exchanges the program that our containers start. */
static int open_private(const char *path)
{
    struct stat s;
    int fd;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -1;
    fd = open(path, OPEN_DIRECTORY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &s) < 0 || s.st_uid != geteuid() || (s.st_mode & 077)) {
        errno = EPERM;
        return tci_close(fd);
    }
    return fd;
}

/* A container starts our program from there, and a bind keeps the flags of its mount. */
static bool may_execute(int fd)
{
    struct statvfs s;
    return fstatvfs(fd, &s) == 0 && !(s.f_flag & ST_NOEXEC);
}

static int open_base(char *path, size_t size, struct tc_error *reterr)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool is_root = geteuid() == 0;
    for (int i = 0; i < 3; i++) {
        int fd;
        if (i == 0 && is_root)
            (void)snprintf(path, size, "/run/toolcage");
        else if (i == 0 && runtime && runtime[0] == '/' && strlen(runtime) < RUNTIME_MAX)
            (void)snprintf(path, size, "%s/toolcage", runtime);
        else if (i == 1 && is_root)
            (void)snprintf(path, size, "/var/lib/toolcage");
        else if (i == 2)
            (void)snprintf(path, size, "/tmp/toolcage-%u", (unsigned)geteuid());
        else
            continue;
        fd = open_private(path);
        if (fd >= 0 && may_execute(fd))
            return fd;
        (void)tci_close(fd);
    }
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "there is no private directory from which a container could start a program "
                  "(last tried: %s)",
                  path);
    tci_error_remedy(reterr, "set XDG_RUNTIME_DIR to a directory of yours that is not mounted "
                             "noexec");
    return -1;
}

/* One that is not taken, in the owner's directory. 0, or -1 with errno. */
static int make_plan_directory(struct tci_api_place *place, const char *base)
{
    int problem;
    for (int i = 0; i < PLANS_MAX; i++) {
        (void)snprintf(place->path, sizeof place->path, "%.100s/%s/p%d", base, place->owner, i);
        if (mkdir(place->path, 0700) < 0) {
            if (errno == EEXIST)
                continue;
            return -1;
        }
        place->directory = open(place->path, OPEN_DIRECTORY);
        if (place->directory >= 0)
            return 0;
        problem = errno;
        (void)rmdir(place->path);
        errno = problem;
        return -1;
    }
    return -1;
}

/* Another plan of this process that closes takes the owner's directory with it when it is the last: then it is
 * made again. */
static int make_directories(struct tci_api_place *place, int base_fd, const char *base)
{
    struct stat s;
    int problem;
    for (int i = 0; i < OWNER_TRIES; i++) {
        if (mkdirat(base_fd, place->owner, 0700) < 0 && errno != EEXIST)
            return -1;
        if (fstatat(base_fd, place->owner, &s, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(s.st_mode)) {
            errno = ENOTDIR;
            return -1;
        }
        if (make_plan_directory(place, base) == 0)
            return 0;
        if (errno != ENOENT)
            break;
    }
    problem = errno;
    (void)unlinkat(base_fd, place->owner, AT_REMOVEDIR); /* unless others are in it */
    errno = problem;
    return -1;
}

int tci_api_place_open(struct tci_api_place *place, struct tc_error *reterr)
{
    char base[PATH_MAX];
    tc_cleanup(tci_closep) int fd = -1;
    place->directory = -1;
    place->path[0] = '\0';
    if (tci_api_owner(place->owner, reterr) < 0)
        return -1;
    fd = open_base(base, sizeof base, reterr);
    if (fd < 0)
        return -1;
    sweep(fd, place->owner);
    place->parent = strlen(base) + 1 + strlen(place->owner);
    if (make_directories(place, fd, base) == 0)
        return 0;
    tci_error_errno(reterr, errno, "making a directory in %s/%s", base, place->owner);
    place->path[0] = '\0';
    return -1;
}

void tci_api_place_close(struct tci_api_place *place)
{
    place->directory = tci_close(place->directory);
    if (!place->path[0])
        return;
    remove_tree(AT_FDCWD, place->path, 0);
    place->path[place->parent] = '\0';
    (void)rmdir(place->path); /* when it was the last plan */
    place->path[0] = '\0';
}

int tci_api_place_write(const struct tci_api_place *place, const char *name, mode_t mode,
                        const void *bytes, size_t length, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = openat(
        place->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* fchmod: whatever the umask is. */
    if (fd < 0 || tci_write_all(fd, bytes, length) < 0 || fchmod(fd, mode) < 0)
        return tci_error_errno(reterr, errno, "writing %s/%s", place->path, name);
    return 0;
}

/* Through /proc: the path itself may be longer than an address. */
static int listen_in(int directory)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    tc_cleanup(tci_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control",
                   directory);
    /* Anybody may connect who sees it: the container, as whatever user it runs. The directories
     * above keep others of the host away. */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        fchmodat(directory, "control", 0666, 0) < 0 || listen(fd, 1) < 0)
        return -1;
    return tci_take_fd(&fd);
}

int tci_api_place_cage(const struct tci_api_place *place, const char *name, bool program,
                       struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int cage = -1;
    int fd = -1;
    if (mkdirat(place->directory, name, 0755) == 0)
        cage = openat(place->directory, name, OPEN_DIRECTORY);
    if (cage >= 0 && fchmod(cage, 0755) == 0 &&
        linkat(place->directory, "entry", cage, "entry", 0) == 0 &&
        (!program || linkat(place->directory, "program", cage, "program", 0) == 0))
        fd = listen_in(cage);
    if (fd < 0) {
        tci_error_errno(reterr, errno, "making a container's directory %s/%s", place->path, name);
        tci_api_place_cage_remove(place, name);
    }
    return fd;
}

void tci_api_place_cage_remove(const struct tci_api_place *place, const char *name)
{
    remove_tree(place->directory, name, 0);
}
