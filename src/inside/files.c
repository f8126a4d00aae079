/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the start of `toolcage-files TOOL`, and how file tools open what they are asked for. */
#include "inside/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NAMES_MAX = 200 * 1000 }; /* of one directory */

const char *tci_files_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "directory";
    case S_IFREG:
        return "file";
    case S_IFLNK:
        return "symlink";
    default:
        return "other";
    }
}

int tci_files_open(const char *path, struct stat *ret_status)
{
    /* Asked before it is opened: to open a device is to use it. */
    if (stat(path, ret_status) < 0)
        tci_inside_fail_path(errno, path, "be opened");
    const char *problem = NULL;
    int fd = -1;
    if (S_ISREG(ret_status->st_mode)) {
        /* It may have become a FIFO since, which would block. */
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, ret_status) < 0)
            tci_inside_fail_path(errno, path, "be opened");
    }
    if (S_ISDIR(ret_status->st_mode))
        problem = "is a directory: list_dir shows what is in it";
    else if (!S_ISREG(ret_status->st_mode))
        problem = "is not a regular file";
    if (problem)
        tci_inside_fail("%s %s", tci_inside_shown(path, strlen(path)), problem);
    return fd;
}

size_t tci_files_pread(int fd, const char *path, char *buffer, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, buffer + done, size - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            tci_inside_fail_path(errno, path, "be read");
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return done;
}

bool tci_files_resolve(const char *path, char **ret_resolved, struct stat *ret_status)
{
    if (stat(path, ret_status) == 0) {
        *ret_resolved = realpath(path, NULL);
        if (!*ret_resolved)
            tci_inside_fail_path(errno, path, "be opened");
        return true;
    }
    if (errno != ENOENT)
        tci_inside_fail_path(errno, path, "be opened");
    struct stat link;
    if (lstat(path, &link) == 0)
        tci_inside_fail("%s is a symbolic link that leads nowhere: write to a path that is no link",
                        tci_inside_shown(path, strlen(path)));
    *ret_resolved = strdup(path);
    if (!*ret_resolved)
        tci_inside_no_memory();
    return false;
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

int tci_files_names(struct tci_arena *arena, int directory, bool hidden,
                    struct tci_files_names *ret)
{
    *ret = (struct tci_files_names){ 0 };
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream)
        return errno;
    size_t room = 0;
    /* cppcheck-suppress readdirCalled ; there is one thread */
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (!hidden && name[0] == '.') {
            ret->hidden++;
            continue;
        }
        if (ret->count == NAMES_MAX) {
            ret->truncated = true;
            break;
        }
        if (ret->count == room) {
            room = room ? room * 2 : 64;
            ret->names = realloc(ret->names, room * sizeof ret->names[0]);
        }
        const char *copy = ret->names ? tci_arena_strdup(arena, name) : NULL;
        if (!copy)
            tci_inside_no_memory();
        ret->names[ret->count++] = copy;
    }
    closedir(stream);
    if (ret->count)
        qsort(ret->names, ret->count, sizeof ret->names[0], compare_names);
    return 0;
}

int tci_files_enter(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct statfs system;
    if (fd < 0 || fstatfs(fd, &system) < 0)
        return fd;
    /* Endless, and every read of it makes the kernel do something. */
    if (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC) {
        close(fd);
        errno = EACCES;
        return -1;
    }
    return fd;
}

static const struct {
    const char *name;
    void (*run)(const json_t *arguments);
} TOOLS[] = {
    { "read_file", tci_files_read },      { "write_file", tci_files_write },
    { "edit_file", tci_files_edit },      { "list_dir", tci_files_list },
    { "search_files", tci_files_search },
};

int main(int count, char **words)
{
    for (size_t i = 0; count == 2 && i < tci_array_size(TOOLS); i++)
        if (strcmp(words[1], TOOLS[i].name) == 0) {
            TOOLS[i].run(tci_inside_arguments());
            return 0;
        }
    tci_inside_fail("usage: toolcage-files read_file|write_file|edit_file|list_dir|search_files");
}
