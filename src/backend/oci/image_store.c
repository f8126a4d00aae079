/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: where a store is, its directory, its lock and its temporary files. Trusts a store only if nobody
 * but root and the caller can write it, or put another in its place (image_way.c). All below is reached
 * through the directory's handle.
 */
#include "backend/oci/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"

enum { wait_ms = 100, depth_max = 64 };

int tci_image_step(const struct tci_image_watch *watch, enum tci_image_phase phase, uint64_t done,
                   uint64_t all, struct tc_error *reterr)
{
    if (watch && watch->step)
        watch->step(watch->context, phase, done, all);
    if (!watch || !watch->stop || !atomic_load(watch->stop))
        return 0;
    return tci_error_set(reterr, TC_ERROR_IO, "interrupted; nothing was changed");
}

int tci_image_store_fail(const struct tci_image_store *store, const char *what,
                         struct tc_error *reterr)
{
    int cause = errno;
    tci_error_errno(reterr, cause, "cannot %s in the image store %s", what, store->path);
    if (cause == ENOSPC || cause == EDQUOT)
        tci_error_remedy(reterr, "free about 300 MB there, or name another directory in "
                                 "TOOLCAGE_IMAGES");
    else if (cause == EACCES || cause == EPERM || cause == EROFS)
        tci_error_remedy(reterr, "name a directory of your own in TOOLCAGE_IMAGES");
    else if (cause == ENOTDIR || cause == ELOOP || cause == EEXIST)
        tci_error_remedy(reterr, "name a directory in TOOLCAGE_IMAGES");
    return -1;
}

/* ---- place -------------------------------------------------------------------------------------- */

int tci_image_store_place(char ret[PATH_MAX], struct tc_error *reterr)
{
    const char *given = getenv("TOOLCAGE_IMAGES"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int length;

    if (given && *given && *given != '/') {
        tci_error_set(reterr, TC_ERROR_USAGE, "TOOLCAGE_IMAGES is not an absolute path");
        tci_error_remedy(reterr, "write it with a slash at the beginning");
        return -1;
    }
    if (given && *given)
        length = snprintf(ret, PATH_MAX, "%s", given);
    else if (geteuid() == 0)
        length = snprintf(ret, PATH_MAX, "%s", TCI_IMAGE_SYSTEM_STORE);
    else if (data && data[0] == '/')
        length = snprintf(ret, PATH_MAX, "%s/toolcage/images", data);
    else if (home && home[0] == '/')
        length = snprintf(ret, PATH_MAX, "%s/.local/share/toolcage/images", home);
    else {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "there is no place for images: neither XDG_DATA_HOME nor HOME is an "
                      "absolute path");
        tci_error_remedy(reterr, "set HOME, or name a directory in TOOLCAGE_IMAGES");
        return -1;
    }
    if (length > TCI_IMAGE_STORE_PATH_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the path of the image store is too long");
    for (; length > 1 && ret[length - 1] == '/'; length--)
        ret[length - 1] = '\0';
    return 0;
}

/* The attack: whoever can write here decides what we run, and as root's image what everybody runs; and
 * whoever can write one of its directories exchanges what is unpacked there. */
static int check_owner(const struct tci_image_store *store, struct tc_error *reterr)
{
    static const char *const parts[] = { ".", "blobs", "blobs/sha256", "unpacked", "tmp" };
    for (size_t i = 0; i < tci_array_size(parts); i++) {
        struct stat status;
        if (fstatat(store->directory, parts[i], &status, 0) < 0) {
            if (errno == ENOENT)
                continue;
            return tci_image_store_fail(store, "look", reterr);
        }
        if (S_ISDIR(status.st_mode) && (status.st_uid == 0 || status.st_uid == geteuid()) &&
            !(status.st_mode & 0022))
            continue;
        tci_error_set(reterr, TC_ERROR_IO, "others can write the image store %s%s%s", store->path,
                      i ? "/" : "", i ? parts[i] : "");
        tci_error_remedy(reterr, "use a directory that only you or root can write");
        return -1;
    }
    return 0;
}

static int open_parts(struct tci_image_store *store, struct tc_error *reterr)
{
    static const char *const parts[] = { "blobs", "blobs/sha256", "unpacked", "tmp" };
    for (size_t i = 0; i < tci_array_size(parts); i++) {
        bool made = mkdirat(store->directory, parts[i], 0700) == 0;
        /* Whatever the umask is: others may read, and nobody else looks into tmp. */
        if ((!made && errno != EEXIST) ||
            (made && fchmodat(store->directory, parts[i], i < 3 ? 0755 : 0700, 0) < 0))
            return tci_image_store_fail(store, "make directories", reterr);
    }
    return 0;
}

static int open_store(bool make, struct tci_image_store *store, struct tc_error *reterr)
{
    int r = tci_image_way(store, make, reterr);
    if (r <= 0)
        return r;
    store->directory = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* A store of others that we may not even look at is as good as none. */
    if (store->directory < 0 && !make && (errno == ENOENT || errno == EACCES))
        return 0;
    if (store->directory < 0)
        return tci_image_store_fail(store, "look", reterr);
    if (check_owner(store, reterr) < 0 || (make && open_parts(store, reterr) < 0)) {
        tci_image_store_close(store);
        return -1;
    }
    return 0;
}

int tci_image_store_open(bool make, struct tci_image_store *ret, struct tc_error *reterr)
{
    *ret = (struct tci_image_store)TCI_IMAGE_STORE_NONE;
    return tci_image_store_place(ret->path, reterr) < 0 ? -1 : open_store(make, ret, reterr);
}

int tci_image_store_open_system(struct tci_image_store *ret, struct tc_error *reterr)
{
    const char *given = getenv("TOOLCAGE_IMAGES");
    *ret = (struct tci_image_store)TCI_IMAGE_STORE_NONE;
    /* A store that was named is the only one. */
    if ((given && *given) || geteuid() == 0)
        return 0;
    (void)snprintf(ret->path, sizeof ret->path, "%s", TCI_IMAGE_SYSTEM_STORE);
    return open_store(false, ret, reterr);
}

void tci_image_store_close(struct tci_image_store *store)
{
    store->lock = tci_close(store->lock);
    store->directory = tci_close(store->directory);
}

/* ---- lock --------------------------------------------------------------------------------------- */

static int sweep(struct tci_image_store *store)
{
    int fd = openat(store->directory, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!stream) {
        tci_close(fd);
        return -1;
    }
    /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
    while ((entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r |= tci_image_remove(fd, entry->d_name);
    (void)closedir(stream);
    return r;
}

int tci_image_store_lock(struct tci_image_store *store, const struct tci_image_watch *watch,
                         struct tc_error *reterr)
{
    const struct timespec pause = { 0, wait_ms * 1000000L };
    unsigned waited = 0, most = watch ? 36000 : 1200; /* an hour; two minutes inside a call */

    if (store->lock >= 0)
        return 0;
    store->lock = openat(store->directory, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (store->lock < 0)
        return tci_image_store_fail(store, "take the lock", reterr);
    while (flock(store->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return tci_image_store_fail(store, "take the lock", reterr);
        if (tci_image_step(watch, TCI_IMAGE_WAITING, 0, 0, reterr) < 0) {
            store->lock = tci_close(store->lock);
            return -1;
        }
        if (waited++ == most) {
            store->lock = tci_close(store->lock);
            tci_error_set(reterr, TC_ERROR_IO, "another process works on the image store %s",
                          store->path);
            tci_error_remedy(reterr, "wait for it, or end it");
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    if (sweep(store) < 0)
        return tci_image_store_fail(store, "remove temporary files", reterr);
    return 0;
}

void tci_image_temporary(char ret[64])
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) < 0)
        number = (uint64_t)getpid();
    (void)snprintf(ret, 64, "tmp/%016llx", (unsigned long long)number);
}

/* ---- removing ----------------------------------------------------------------------------------- */

static int remove_below(int directory, const char *name, unsigned depth)
{
    const struct dirent *entry;
    int fd, r = 0;
    DIR *stream;

    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
        return 0;
    if ((errno != EISDIR && errno != EPERM) || depth > depth_max)
        return -1;
    fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        tci_close(fd);
        return -1;
    }
    /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
    while ((entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r |= remove_below(fd, entry->d_name, depth + 1);
    (void)closedir(stream);
    return r < 0 ? -1 : unlinkat(directory, name, AT_REMOVEDIR);
}

int tci_image_remove(int directory, const char *name)
{
    return remove_below(directory, name, 0);
}
