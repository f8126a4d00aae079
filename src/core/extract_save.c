/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing into `out`, so that a file is there whole or not at all, whatever kills us.
 *
 * The bytes go to a file without a name (O_TMPFILE), which the kernel forgets when we die. It gets
 * its name by linkat; where a file is in its place already, first a temporary one, which is renamed
 * over it. File systems without O_TMPFILE get the temporary name at once.
 *
 * The attack: `out` may be in reach of the enemy (an earlier call wrote there, or a granted directory
 * is above it). Each directory on the way is opened from the one above it, links refused; a link in
 * the file's own place is replaced and not followed. Not synced: it is a result, not a record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/uuid.h"
#include "core/extract_internal.h"

/* Never executable, whatever it was in the cage; the caller's umask takes more away. */
enum { file_mode = 0644, directory_mode = 0755 };

static int name_temporary(struct tci_saving *saving)
{
    char random[17];

    if (tci_random_hex(8, random) < 0)
        return -1;
    (void)snprintf(saving->temporary, sizeof saving->temporary, ".toolcage-%s.tmp", random);
    return 0;
}

static int open_named(struct tci_saving *saving)
{
    if (name_temporary(saving) < 0)
        return -1;
    saving->fd = openat(saving->directory, saving->temporary,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode);
    if (saving->fd < 0)
        saving->temporary[0] = '\0';
    return saving->fd < 0 ? -1 : 0;
}

int tci_saving_begin(struct tci_saving *saving, int directory)
{
    *saving = (struct tci_saving){ .directory = directory, .fd = -1 };
    if (directory < 0)
        return 0;
    saving->fd = openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, file_mode);
    if (saving->fd >= 0)
        return 0;
    /* What file systems and kernels say that do not have it. */
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)
        return open_named(saving);
    return -1;
}

void tci_saving_end(struct tci_saving *saving)
{
    if (saving->temporary[0])
        (void)unlinkat(saving->directory, saving->temporary, 0);
    saving->temporary[0] = '\0';
    saving->fd = tci_close(saving->fd);
}

/* Gives the file without a name one. */
static int link_file(int fd, int directory, const char *name)
{
    char path[32];

    /* Older kernels want a capability for this one, the other needs /proc. */
    if (linkat(fd, "", directory, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT && errno != EPERM)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

/* The directory of the last name, made where it is missing. */
static int open_parent(int directory, const char *path, const char **ret_name)
{
    tc_cleanup(tci_closep) int parent = -1;
    const char *slash;

    for (; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char name[TCI_COMPONENT_MAX + 1];
        int above = parent >= 0 ? parent : directory, next;
        size_t length = (size_t)(slash - path);
        if (length >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        next = tci_extract_open(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 && errno == ENOENT) {
            if (mkdirat(above, name, directory_mode) < 0 && errno != EEXIST)
                return -1;
            next = tci_extract_open(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        if (next < 0)
            return -1;
        tci_close(parent);
        parent = next;
    }
    *ret_name = path;
    return parent >= 0 ? tci_take_fd(&parent)
                       : tci_extract_open(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int tci_saving_publish(struct tci_saving *saving, const char *path)
{
    tc_cleanup(tci_closep) int parent = -1;
    const char *name;

    if (saving->fd < 0)
        return 0;
    parent = open_parent(saving->directory, path, &name);
    if (parent < 0)
        return -1;
    if (!saving->temporary[0]) {
        if (link_file(saving->fd, parent, name) == 0)
            return 0;
        if (errno != EEXIST || name_temporary(saving) < 0)
            return -1;
        if (link_file(saving->fd, saving->directory, saving->temporary) < 0) {
            saving->temporary[0] = '\0';
            return -1;
        }
    }
    if (renameat(saving->directory, saving->temporary, parent, name) < 0)
        return -1;
    saving->temporary[0] = '\0';
    return 0;
}
