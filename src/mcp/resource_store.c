/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the private directory for files that calls bring back: "toolcage-mcp-" and 16 random digits in
 * $TMPDIR or /tmp.
 *
 * Trusts: nothing in the directory around it, which others write to. The store is made anew with mode
 * 0700 under a name that nobody can guess; "lock" in it is locked as long as the server lives. What a
 * killed server leaves is removed by the next one: a directory of that form, of this user, whose lock is
 * free. Links are never followed, so that a planted one leads nowhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/uuid.h"
#include "mcp/resources.h"

static const char prefix[] = "toolcage-mcp-";
static const char lock_name[] = "lock";
static const int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

enum {
    random_digits = 16,
    depth_max = 512,    /* directories in one another, in what is removed */
    young_seconds = 60, /* one without a lock may be in the making */
};

/* ---- removing ----------------------------------------------------------------------------- */

/* Below the handle only. Another file system that somebody has mounted there is left alone. */
static void remove_tree(int parent, const char *name, dev_t device, unsigned depth)
{
    int fd = openat(parent, name, directory_flags);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct stat st;

    if (!list) {
        (void)tci_close(fd);
        return;
    }
    /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
    while (fstat(fd, &st) == 0 && st.st_dev == device && (entry = readdir(list))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR && depth < depth_max)
            remove_tree(fd, entry->d_name, device, depth + 1);
    }
    (void)closedir(list);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void tci_mcp_store_remove(int parent, const char *name)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        remove_tree(parent, name, st.st_dev, 0);
}

/* ---- what others have left ---------------------------------------------------------------- */

static const char *base_directory(void)
{
    const char *directory = getenv("TMPDIR");
    return directory && directory[0] == '/' ? directory : "/tmp";
}

static bool is_store_name(const char *name)
{
    const char *random = name + strlen(prefix);
    return strncmp(name, prefix, strlen(prefix)) == 0 &&
           strspn(random, "0123456789abcdef") == random_digits && !random[random_digits];
}

/* Is its server gone? Then the lock is ours, in *ret_lock, until the store is removed. */
static bool is_abandoned(int store, const struct stat *st, int *ret_lock)
{
    struct stat lock;
    /* Nobody but us writes in it, unless a tool has it granted: a FIFO would make us wait. */
    *ret_lock = openat(store, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*ret_lock < 0)
        return errno == ENOENT && time(NULL) - st->st_mtime > young_seconds;
    return fstat(*ret_lock, &lock) == 0 && S_ISREG(lock.st_mode) &&
           flock(*ret_lock, LOCK_EX | LOCK_NB) == 0;
}

static void sweep_one(int base, const char *name)
{
    tc_cleanup(tci_closep) int store = -1;
    tc_cleanup(tci_closep) int lock = -1;
    struct stat st;
    /* By the handle: what a name means may change. Another user's directory of that name could be a
     * trap, in which something of ours lies by a mount or a race; it is theirs to remove. */
    store = openat(base, name, directory_flags);
    if (store < 0 || fstat(store, &st) < 0 || st.st_uid != geteuid())
        return;
    if (is_abandoned(store, &st, &lock))
        tci_mcp_store_remove(base, name);
}

void tci_mcp_files_sweep(void)
{
    int fd = open(base_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (!list) {
        (void)tci_close(fd);
        return;
    }
    /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
    while ((entry = readdir(list)))
        if (is_store_name(entry->d_name))
            sweep_one(fd, entry->d_name);
    (void)closedir(list);
}

/* ---- the store ---------------------------------------------------------------------------- */

/* 0: it is ours and locked; 1: somebody who sweeps was faster, try another name. */
static int lock_store(const char *path, int *ret_lock, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int store = -1;
    struct stat st;
    store = open(path, directory_flags);
    if (store < 0 || fstat(store, &st) < 0)
        return errno == ENOENT ? 1 : tci_error_errno(reterr, errno, "cannot open %s", path);
    /* Somebody who may rename in the directory around it has put another one in its place. */
    if (st.st_uid != geteuid() || (st.st_mode & 077)) {
        tci_error_set(reterr, TC_ERROR_IO, "%s is not the directory that was made", path);
        tci_error_remedy(reterr, "set TMPDIR to a directory that is yours, or has the sticky bit");
        return -1;
    }
    *ret_lock = openat(store, lock_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*ret_lock < 0)
        return errno == ENOENT ? 1 : tci_error_errno(reterr, errno, "cannot lock %s", path);
    if (flock(*ret_lock, LOCK_EX | LOCK_NB) == 0 && fstat(*ret_lock, &st) == 0 && st.st_nlink > 0)
        return 0;
    *ret_lock = tci_close(*ret_lock);
    return 1;
}

int tci_mcp_store_make(struct tci_mcp_server *server, struct tc_error *reterr)
{
    char random[random_digits + 1], *path;
    int r = server->store ? 0 : 1;
    for (unsigned tries = 0; r > 0 && tries < 10; tries++) {
        if (tci_random_hex(random_digits / 2, random) < 0)
            return tci_error_errno(reterr, errno, "cannot get random bytes");
        if (asprintf(&path, "%s/%s%s", base_directory(), prefix, random) < 0)
            return tci_error_no_memory(reterr);
        if (mkdir(path, 0700) == 0) {
            r = lock_store(path, &server->store_lock, reterr);
            if (r != 0) /* each try would leave one; what is not empty is not touched */
                (void)rmdir(path);
        } else if (errno != EEXIST)
            r = tci_error_errno(reterr, errno, "cannot make %s", path);
        if (r == 0)
            server->store = path;
        else
            free(path);
    }
    return r > 0 ? tci_error_set(reterr, TC_ERROR_IO, "cannot make a directory for files in %s",
                                 base_directory())
                 : r;
}

void tci_mcp_files_close(struct tci_mcp_server *server)
{
    const char *name = server->store ? strrchr(server->store, '/') + 1 : NULL;
    tc_cleanup(tci_closep) int base = -1;
    if (!name)
        return;
    base = open(base_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base >= 0)
        tci_mcp_store_remove(base, name);
    server->store_lock = tci_close(server->store_lock);
    free(tc_take(server->store));
}
