/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way to a store: making it, and whether somebody else can change it. The attack: a directory on
 * it is another user's to write. He keeps an image of his own beside the store, and exchanges the two while
 * calls run: what was checked by its handle is not what is opened by its path. So a store counts only if
 * nobody but root and the caller can rename anything on the way to it. That is looked at from the top down:
 * what is above is known to stay. Links are resolved before, and only the path without them is used.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

/* ---- making -------------------------------------------------------------------------------------- */

/* By handles: whoever may write to the parent could put a link in the place of what was just made, and
 * what that leads to would get a new mode. */
static int make_one(int at, const char *name, mode_t mode)
{
    const bool made = mkdirat(at, name, 0700) == 0;
    int fd;
    if (!made && errno != EEXIST)
        return -1;
    fd = openat(at, name, O_DIRECTORY | O_CLOEXEC | (made ? O_RDONLY | O_NOFOLLOW : O_PATH));
    if (made && fd >= 0)
        (void)fchmod(fd, mode);
    return fd;
}

/* mkdir -p. What is on the way to root's store is for all to pass, whatever the umask is. */
static int make_all(const struct tci_image_store *store, struct tc_error *reterr)
{
    const mode_t mode = strcmp(store->path, TCI_IMAGE_SYSTEM_STORE) == 0 ? 0755 : 0700;
    char left[PATH_MAX], name[TCI_COMPONENT_MAX + 1];
    tc_cleanup(tci_closep) int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    memcpy(left, store->path, sizeof left);
    while (at >= 0 && tci_path_take(left, name)) {
        int next = make_one(at, name, left[strspn(left, "/")] ? mode : 0755);
        int cause = errno;
        (void)tci_close(at);
        at = next;
        errno = cause;
    }
    return at < 0 ? tci_image_store_fail(store, "make directories", reterr) : 0;
}

/* ---- judging ------------------------------------------------------------------------------------- */

/* A list of more users has the group's bits for its own. */
static bool has_more_users(const char *directory)
{
    return lgetxattr(directory, "system.posix_acl_access", NULL, 0) > 0;
}

/* In a sticky directory only the owner of something can rename it, and all that follows must be ours. A group
 * with the number of its user is that user's own, by custom. */
static bool can_be_changed(const char *directory, const struct stat *status)
{
    if (status->st_mode & S_ISVTX)
        return false;
    if (status->st_mode & S_IWOTH)
        return true;
    return status->st_mode & S_IWGRP &&
           (status->st_gid != status->st_uid || has_more_users(directory));
}

static int check_directory(const struct tci_image_store *store, const char *directory,
                           struct tc_error *reterr)
{
    struct stat status;
    if (lstat(directory, &status) < 0)
        return tci_image_store_fail(store, "look at the way", reterr);
    if (!S_ISDIR(status.st_mode)) {
        errno = ENOTDIR; /* exchanged just now */
        return tci_image_store_fail(store, "look at the way", reterr);
    }
    if (status.st_uid != 0 && status.st_uid != geteuid()) {
        tci_error_set(reterr, TC_ERROR_IO,
                      "others can exchange the image store %.500s: %.500s belongs to another user",
                      store->path, directory);
        tci_error_remedy(reterr, "name a directory of your own in TOOLCAGE_IMAGES");
        return -1;
    }
    if (can_be_changed(directory, &status)) {
        tci_error_set(reterr, TC_ERROR_IO,
                      "others can exchange the image store %.500s: they may write to %.500s",
                      store->path, directory);
        tci_error_remedy(reterr, "chmod go-w %.500s, or name another directory in TOOLCAGE_IMAGES",
                         directory);
        return -1;
    }
    return 0;
}

/* Every directory above it; itself is looked at through its handle. */
static int check_way(const struct tci_image_store *store, struct tc_error *reterr)
{
    char directory[PATH_MAX];
    for (const char *slash = store->path; slash; slash = strchr(slash + 1, '/')) {
        size_t length = slash == store->path ? 1 : (size_t)(slash - store->path);
        memcpy(directory, store->path, length);
        directory[length] = '\0';
        if (check_directory(store, directory, reterr) < 0)
            return -1;
    }
    return 0;
}

int tci_image_way(struct tci_image_store *store, bool make, struct tc_error *reterr)
{
    char real[PATH_MAX];
    if (make && make_all(store, reterr) < 0)
        return -1;
    if (!realpath(store->path, real)) {
        /* A store of others that we may not even look at is as good as none. */
        if (!make && (errno == ENOENT || errno == EACCES))
            return 0;
        return tci_image_store_fail(store, "look", reterr);
    }
    if (strlen(real) > TCI_IMAGE_STORE_PATH_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the path of the image store is too long");
    memcpy(store->path, real, strlen(real) + 1);
    return check_way(store, reterr) < 0 ? -1 : 1;
}
