/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what lies at a path of an image, read from the layers of an overlay as the engine keeps them. They do
 * not change. Nothing is followed: each name on the way is looked at by itself.
 */
#include "backend/oci/api_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

static bool exists(int directory, const char *path)
{
    struct stat s;
    return fstatat(directory, path, &s, AT_SYMLINK_NOFOLLOW) == 0;
}

/* 1: it has this mark, with the value "y"; 0: it does not have it. -EOPNOTSUPP: with another value. */
static int read_mark(int fd, const char *mark)
{
    char value[2];
    const ssize_t n = fgetxattr(fd, mark, value, sizeof value);
    if (n < 0 && (errno == ENODATA || errno == ENOTSUP))
        return 0;
    if (n < 0 && errno != ERANGE)
        return -errno;
    return n == 1 && value[0] == 'y' ? 1 : -EOPNOTSUPP;
}

/* Does a directory hide what lower layers have in it? 1, 0, or a negative errno.
 * The attack: marks that the kernel's overlay of a rootful engine does not know can come with an image, as can names
 * like fuse-overlayfs' ".wh.". Who believed them would not see the link that the kernel sees. So only the kernel's own
 * marks count; what others may believe is for the engine to say. */
static int hides_lower(int directory, const char *path)
{
    static const char *const unclear[] = { "user.overlay.opaque", "user.fuseoverlayfs.opaque",
                                           "trusted.overlay.redirect", "user.overlay.redirect" };
    tc_cleanup(tci_closep) int fd = openat(directory, path,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (exists(fd, ".wh..wh..opq"))
        return -EOPNOTSUPP;
    for (size_t i = 0; i < tci_array_size(unclear); i++) {
        const int r = read_mark(fd, unclear[i]);
        if (r != 0)
            return r < 0 ? r : -EOPNOTSUPP;
    }
    return read_mark(fd, "trusted.overlay.opaque");
}

/* "a/b" as "a/.wh.b": for fuse-overlayfs there is no b any more, for the kernel this is a name like any other. */
static bool has_sign(int directory, const char *path, const char *name)
{
    char sign[TCI_PATH_MAX + 8];
    const int above = (int)(name - path);
    (void)snprintf(sign, sizeof sign, "%.*s.wh.%s", above, path, name);
    return exists(directory, sign);
}

static int describe(int directory, const char *path, const struct stat *s, struct tci_api_seen *ret)
{
    ssize_t n;
    ret->kind = S_ISDIR(s->st_mode)   ? TCI_API_DIRECTORY
                : S_ISREG(s->st_mode) ? TCI_API_FILE
                : S_ISLNK(s->st_mode) ? TCI_API_LINK
                                      : TCI_API_OTHER;
    if (ret->kind != TCI_API_LINK)
        return 1;
    n = readlinkat(directory, path, ret->target, sizeof ret->target);
    if (n <= 0 || (size_t)n >= sizeof ret->target)
        return n < 0 ? -errno : -ENAMETOOLONG;
    ret->target[n] = '\0';
    return 1;
}

/* 1: this layer says what is there, or that nothing is. 0: it has nothing to say. Negative: errno. */
static int look_in_layer(int directory, const char *path, struct tci_api_seen *ret)
{
    char prefix[TCI_PATH_MAX + 1];
    int hides = 0; /* or an errno: it matters only if this layer does not have the name itself */
    ret->kind = TCI_API_MISSING;
    for (const char *name = path, *end = path; *end; name = end + 1) {
        struct stat s;
        end = strchrnul(name, '/');
        memcpy(prefix, path, (size_t)(end - path));
        prefix[end - path] = '\0';
        if (has_sign(directory, prefix, prefix + (name - path)))
            return -EOPNOTSUPP;
        if (fstatat(directory, prefix, &s, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? hides : -errno;
        if (S_ISCHR(s.st_mode) && s.st_rdev == makedev(0, 0))
            return 1;
        if (!*end)
            return describe(directory, prefix, &s, ret);
        if (!S_ISDIR(s.st_mode))
            return 1;
        if (hides == 0)
            hides = hides_lower(directory, prefix);
    }
    return -EINVAL; /* "" */
}

int tci_api_layers_look(const char *layers, const char *path, struct tci_api_seen *ret)
{
    char name[TCI_PATH_MAX + 1];
    int r = 0;
    ret->kind = TCI_API_MISSING;
    while (*layers && r == 0) {
        const char *end = strchrnul(layers, ':');
        tc_cleanup(tci_closep) int directory = -1;
        if (*layers != '/' || end - layers > TCI_PATH_MAX)
            return -EINVAL;
        memcpy(name, layers, (size_t)(end - layers));
        name[end - layers] = '\0';
        directory = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
            return -errno;
        if (exists(directory, "../composefs-data")) /* then names are kept elsewhere */
            return -EOPNOTSUPP;
        r = look_in_layer(directory, path + 1, ret);
        layers = *end ? end + 1 : end;
    }
    return r < 0 ? r : 0;
}
