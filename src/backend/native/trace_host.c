/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one question about the host: is there something at this path? The path is text of the cage.
 *
 * The attacks: a name below an automounter (/net/evil.example/x) would make the host talk to a
 * stranger; a name on a network file system that does not answer would keep the tracer, and with it
 * the end of the call, for ever. So only file systems that are known to be on this machine are
 * looked at, one of them at a time: links that lead to another one are not followed. Nothing is
 * opened but a handle without rights (O_PATH).
 */
#include "backend/native/trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/mountinfo.h"

enum { mounts_max = 4096, text_max = 4 << 20 };

/* Those that answer from this machine alone. What is missing here is only explained less well. */
static const char *const local_types[] = {
    "bcachefs", "btrfs",   "devtmpfs", "erofs", "exfat", "ext2",   "ext3",     "ext4",
    "f2fs",     "iso9660", "jfs",      "ntfs3", "ramfs", "rootfs", "reiserfs", "squashfs",
    "sysfs",    "tmpfs",   "udf",      "vfat",  "xfs",   "zfs",
};

static bool is_local(const char *type, size_t length)
{
    /* An overlay's layers may lie anywhere, but the root of a container is always one. */
    if (length == strlen("overlay") && strncmp(type, "overlay", length) == 0)
        return true;
    for (size_t i = 0; i < tci_array_size(local_types); i++)
        if (strlen(local_types[i]) == length && strncmp(type, local_types[i], length) == 0)
            return true;
    return false;
}

/* The word after `count` spaces, within the line. */
static const char *word_at(const char *line, const char *end, unsigned count, size_t *ret_length)
{
    while (count > 0 && line < end)
        if (*line++ == ' ')
            count--;
    *ret_length = 0;
    while (line + *ret_length < end && line[*ret_length] != ' ')
        (*ret_length)++;
    return line;
}

static int parse_line(struct tci_arena *arena, const char *line, const char *end,
                      struct tci_trace_mount *ret)
{
    size_t path_length, type_length;
    const char *path = word_at(line, end, 4, &path_length);
    const char *rest = memmem(path, (size_t)(end - path), " - ", 3);
    const char *type = word_at(rest ? rest + 3 : end, end, 0, &type_length);
    char *copy = tci_arena_strndup(arena, path, path_length);
    if (!copy)
        return -1;
    tci_mountinfo_unescape(copy);
    ret->path = copy;
    ret->is_local = is_local(type, type_length);
    return 0;
}

int tci_trace_host_parse(struct tci_arena *arena, const char *text, struct tci_trace_host *ret)
{
    size_t lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    *ret = (struct tci_trace_host){ .mounts = NULL };
    if (lines == 0 || lines > mounts_max)
        return 0; /* nothing is known about this host */
    ret->mounts = tci_arena_new_array(arena, lines, struct tci_trace_mount);
    if (!ret->mounts)
        return -1;
    for (size_t i = 0; i < lines; i++) {
        const char *end = strchr(text, '\n');
        if (parse_line(arena, text, end, &ret->mounts[ret->count++]) < 0)
            return -1;
        text = end + 1;
    }
    return 0;
}

int tci_trace_host_read(struct tci_arena *arena, struct tci_trace_host *ret)
{
    tc_cleanup(tci_closep) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    struct tci_buf text = TCI_BUF_INIT(text_max);
    char piece[4096];
    ssize_t n = 0;
    int r;
    while (fd >= 0 && (n = tci_read_some(fd, piece, sizeof piece)) > 0)
        tci_buf_append(&text, piece, (size_t)n);
    /* Half a list could lack the very mount that must not be touched. */
    if (fd < 0 || n < 0 || text.too_large) {
        *ret = (struct tci_trace_host){ .mounts = NULL };
        r = 0;
    } else {
        r = text.no_memory ? -1 : tci_trace_host_parse(arena, text.data ? text.data : "", ret);
    }
    tci_buf_free(&text);
    return r;
}

bool tci_trace_host_has(const struct tci_trace_host *host, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                            .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS };
    tc_cleanup(tci_closep) int directory = -1, found = -1;
    const struct tci_trace_mount *deepest = NULL;
    const char *rest;
    for (size_t i = 0; i < host->count; i++) {
        const struct tci_trace_mount *mount = &host->mounts[i];
        if (!tci_path_is_within(path, mount->path))
            continue;
        /* Every one of them: which lies on top cannot be told from the list. */
        if (!mount->is_local)
            return false;
        if (!deepest || strlen(mount->path) >= strlen(deepest->path))
            deepest = mount;
    }
    if (!deepest)
        return false;
    rest = path + strlen(deepest->path);
    rest += *rest == '/';
    if (!*rest)
        return true;
    directory = open(deepest->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return false;
    found = (int)syscall(SYS_openat2, directory, rest, &how, sizeof how);
    return found >= 0;
}
