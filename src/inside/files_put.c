/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: putting a file in place at once. The new content goes to a file without a name (O_TMPFILE),
 * which gets its name when it is whole: whatever ends us before, nothing is left behind. Only where it
 * replaces a file, it has a name of our own for the moment between linkat() and renameat().
 *
 * Where a file system has no such files, a file with a name of our own is renamed. Where the
 * directory may not be written, or the file is a mount point, which is how a policy grants a single
 * file, it is written as it stands.
 *
 * No mode is ever changed, only given at birth: the narrowest list of system calls has no chmod.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "inside/files.h"

struct putting {
    int directory;
    const char *name; /* in the directory */
    const char *bytes;
    size_t length;
    mode_t mode;
    enum tci_files_place place;
    char temporary[32];
};

/* 0, or an errno. */
static int write_bytes(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

static void choose_temporary(struct putting *putting)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = (uint64_t)getpid();
    (void)snprintf(putting->temporary, sizeof putting->temporary, ".toolcage-%016llx",
                   (unsigned long long)random);
}

/* Gives the temporary name's file its real name. 0, or an errno; then the temporary one is gone. */
static int rename_temporary(const struct putting *putting)
{
    int d = putting->directory;
    int problem = 0;
    if (putting->place == TCI_FILES_REPLACE) {
        if (renameat(d, putting->temporary, d, putting->name) == 0)
            return 0;
        problem = errno;
    } else if (linkat(d, putting->temporary, d, putting->name, 0) < 0) {
        problem = errno; /* also when somebody has made such a file in the meantime */
    }
    (void)unlinkat(d, putting->temporary, 0);
    return problem;
}

/* Names a file that has none. 0, or an errno. */
static int link_nameless(int fd, int directory, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    int problem = errno;
    if (problem != EEXIST && linkat(fd, "", directory, name, AT_EMPTY_PATH) == 0)
        return 0;
    return problem;
}

static int put_nameless(struct putting *putting)
{
    int fd = openat(putting->directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, putting->mode);
    if (fd < 0)
        return errno;
    int problem = write_bytes(fd, putting->bytes, putting->length);
    if (!problem && putting->place == TCI_FILES_NEW) {
        problem = link_nameless(fd, putting->directory, putting->name);
    } else if (!problem) {
        /* A link does not replace a file, a rename does: between the two there is a second name. */
        problem = link_nameless(fd, putting->directory, putting->temporary);
        if (!problem)
            problem = rename_temporary(putting);
    }
    close(fd);
    return problem;
}

static int put_named(struct putting *putting)
{
    int fd = openat(putting->directory, putting->temporary,
                    O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, putting->mode);
    if (fd < 0)
        return errno;
    int problem = write_bytes(fd, putting->bytes, putting->length);
    close(fd);
    if (problem) {
        (void)unlinkat(putting->directory, putting->temporary, 0);
        return problem;
    }
    return rename_temporary(putting);
}

/* Over the old content. Whoever reads it meanwhile may see a part of each. */
static int put_in_place(const struct putting *putting, const char *shown)
{
    int fd = openat(putting->directory, putting->name,
                    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int problem = write_bytes(fd, putting->bytes, putting->length);
    if (!problem && ftruncate(fd, (off_t)putting->length) < 0)
        problem = errno;
    close(fd);
    if (problem)
        tci_inside_fail("%s was written only in part: %s", tci_inside_shown(shown, strlen(shown)),
                        strerror(problem));
    return 0;
}

static bool is_out_of_space(int problem)
{
    return problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
}

static int put(struct putting *putting, const char *shown)
{
    bool is_old = putting->place == TCI_FILES_REPLACE;
    /* A rename asks for the directory's permission only. The file's own counts here, too. */
    if (is_old && faccessat(putting->directory, putting->name, W_OK, 0) < 0)
        return errno;
    int problem = put_nameless(putting);
    if (problem && problem != EEXIST && !is_out_of_space(problem))
        problem = put_named(putting);
    if (problem && is_old && !is_out_of_space(problem)) {
        int second = put_in_place(putting, shown);
        return second == EACCES ? problem : second;
    }
    return problem;
}

void tci_files_put(const char *path, const char *shown, const char *bytes, size_t length,
                   enum tci_files_place place, const struct stat *old)
{
    const char *slash = strrchr(path, '/');
    size_t parent_length = slash ? (size_t)(slash - path) : 0;
    char *parent = strndup(slash ? (parent_length ? path : "/") : ".",
                           parent_length ? parent_length : 1);
    if (!parent)
        tci_inside_no_memory();
    mode_t mask = umask(0); /* so that the mode at birth is exactly what is asked for */
    struct putting putting = {
        .directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC),
        .name = slash ? slash + 1 : path,
        .bytes = bytes,
        .length = length,
        .mode = place == TCI_FILES_REPLACE ? old->st_mode & 0777 : 0666 & ~mask,
        .place = place,
    };
    if (putting.directory < 0 && errno == ENOENT)
        tci_inside_fail("the directory of %s does not exist here: set create_directories, or use a "
                        "path that the policy grants",
                        tci_inside_shown(shown, strlen(shown)));
    if (putting.directory < 0)
        tci_inside_fail_path(errno, shown, "be written");
    choose_temporary(&putting);
    int problem = put(&putting, shown);
    if (problem == EEXIST)
        tci_inside_fail("%s has been made by somebody else in the meantime: try again",
                        tci_inside_shown(shown, strlen(shown)));
    if (problem)
        tci_inside_fail_path(problem, shown, "be written");
    close(putting.directory);
    free(parent);
    (void)umask(mask);
}
