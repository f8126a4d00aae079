/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding the host's side of a grant. The attack: a tool that may write to /work puts a link at
 * /work/data, which the policy grants to another tool, or to its next call; following it would put
 * any directory of the host into the cage. So the path is walked one name at a time, and from the
 * moment on that the walk is inside a directory that this policy lets any tool write to, links are
 * refused. Directories are compared by what they are (device, inode), not by how they are spelt: the
 * administrator's own links and bind mounts lead to the same place. Links elsewhere are followed.
 */
#include "backend/granted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

enum { links_max = 40 };

static int look(int fd, struct statx *ret)
{
    return statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_TYPE, ret) < 0 ? -errno : 0;
}

static struct tci_identity identity(const struct statx *found)
{
    return (struct tci_identity){ (uint64_t)found->stx_dev_major << 32 | found->stx_dev_minor,
                                  found->stx_ino };
}

int tci_granted_identify(int fd, uint64_t *ret_device, uint64_t *ret_inode, bool *ret_is_directory)
{
    struct statx found = { 0 };
    int r = look(fd, &found);
    if (r < 0)
        return r;
    *ret_device = identity(&found).device;
    *ret_inode = found.stx_ino;
    *ret_is_directory = S_ISDIR(found.stx_mode);
    return 0;
}

/* ---- where tools may write ------------------------------------------------------------------------- */

static void note_writable(struct tci_writables *writables, const struct tci_filesystem *fs,
                          size_t room)
{
    for (size_t i = 0; i < fs->count && writables->count < room; i++) {
        struct statx found = { 0 };
        tc_cleanup(tci_closep) int fd = -1;
        if (fs->rules[i].access != TCI_ACCESS_WRITABLE)
            continue;
        fd = open(fs->rules[i].host, O_PATH | O_CLOEXEC);
        if (fd >= 0 && look(fd, &found) == 0)
            writables->items[writables->count++] = identity(&found);
    }
}

static size_t count_writable(const struct tci_filesystem *fs)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->count; i++)
        count += fs->rules[i].access == TCI_ACCESS_WRITABLE;
    return count;
}

/* Every directory that any tool of the policy may write to. */
int tci_writables_note(struct tci_arena *arena, const struct tc_policy *policy,
                       const struct tci_filesystem *own, struct tci_writables *ret,
                       struct tc_error *reterr)
{
    size_t room = count_writable(own);
    *ret = (struct tci_writables){ 0 };
    for (size_t i = 0; policy && i < policy->tool_count; i++)
        room += count_writable(&policy->tools[i].settings.filesystem);
    if (policy && policy->anonymous)
        room += count_writable(&policy->anonymous->settings.filesystem);
    if (!room)
        return 0;
    ret->items = tci_arena_new_array(arena, room, struct tci_identity);
    if (!ret->items)
        return tci_error_no_memory(reterr);
    note_writable(ret, own, room);
    for (size_t i = 0; policy && i < policy->tool_count; i++)
        note_writable(ret, &policy->tools[i].settings.filesystem, room);
    if (policy && policy->anonymous)
        note_writable(ret, &policy->anonymous->settings.filesystem, room);
    return 0;
}

static bool is_writable(const struct tci_writables *writables, const struct statx *found)
{
    struct tci_identity it = identity(found);
    for (size_t i = 0; i < writables->count; i++)
        if (writables->items[i].device == it.device && writables->items[i].inode == it.inode)
            return true;
    return false;
}

/* ---- the walk -------------------------------------------------------------------------------------- */

struct walk {
    const struct tci_writables *writables;
    char left[2 * PATH_MAX]; /* what is still to be walked */
    char rest[2 * PATH_MAX], target[PATH_MAX];
    int at;      /* where we are; -1 after a failure */
    bool inside; /* a directory that a tool may write to is behind us */
    int links;
};

/* Puts the target of a link in front of what is left. */
static int follow(struct walk *w, int link)
{
    char *target = w->target;
    ssize_t n = readlinkat(link, "", target, sizeof w->target - 1);
    int length;
    if (n < 0)
        return -errno;
    if (w->inside || ++w->links > links_max)
        return -ELOOP;
    target[n] = '\0';
    memcpy(w->rest, w->left, strlen(w->left) + 1);
    length = snprintf(w->left, sizeof w->left, "%s/%s", target, w->rest);
    if (length < 0 || (size_t)length >= sizeof w->left)
        return -ENAMETOOLONG;
    if (target[0] == '/') {
        (void)tci_close(w->at);
        w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return w->at < 0 ? -errno : 0;
    }
    return 0;
}

static int step(struct walk *w, const char *name)
{
    struct statx found = { 0 };
    tc_cleanup(tci_closep) int next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r = next < 0 ? -errno : look(next, &found);
    if (r < 0)
        return r;
    if (S_ISLNK(found.stx_mode))
        return follow(w, next);
    w->inside |= is_writable(w->writables, &found);
    (void)tci_close(w->at);
    w->at = tci_take_fd(&next);
    return 0;
}

static int walk(struct walk *w, const char *host)
{
    char name[NAME_MAX + 1];
    int r = 0;
    if (strlen(host) >= PATH_MAX)
        return -ENAMETOOLONG;
    w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->at < 0)
        return -errno;
    memcpy(w->left, host, strlen(host) + 1);
    while (r == 0 && tci_path_take(w->left, name))
        r = step(w, name);
    if (r == 0 && w->left[strspn(w->left, "/")])
        r = -ENAMETOOLONG;
    if (r < 0)
        w->at = tci_close(w->at);
    return r < 0 ? r : w->at;
}

/* One call where the kernel itself says that there is no link on the way, or that no tool can have
 * put one there; otherwise the whole walk. */
bool tci_granted_is_same(const struct tci_writables *writables, const char *host, uint64_t device,
                         uint64_t inode)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
    struct statx found = { 0 };
    tc_cleanup(tci_closep) int fd = -1;
    if (!writables->count)
        return statx(AT_FDCWD, host, AT_NO_AUTOMOUNT, STATX_INO, &found) == 0 &&
               found.stx_ino == inode && identity(&found).device == device;
    fd = (int)syscall(SYS_openat2, AT_FDCWD, host, &how, sizeof how);
    if (fd < 0)
        fd = tci_granted_open(writables, host);
    return fd >= 0 && look(fd, &found) == 0 && found.stx_ino == inode &&
           identity(&found).device == device;
}

int tci_granted_open(const struct tci_writables *writables, const char *host)
{
    /* Too large for a thread's small stack. */
    struct walk *w = malloc(sizeof *w);
    int r;
    if (!w)
        return -ENOMEM;
    w->writables = writables;
    w->inside = false;
    w->links = 0;
    r = walk(w, host);
    free(w);
    return r;
}
