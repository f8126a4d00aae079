/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: opening below a handle, for whom, and saying what was not taken and why. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "core/extract_internal.h"

int tci_extract_open(int directory, const char *path, int flags)
{
    int fd, tries = 0;

    /* EAGAIN: a rename came between, or somebody holds a lease. Not for ever: the enemy may go on. */
    do
        fd = tci_sys.open_beneath(directory, path, flags);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < 32);
    return fd;
}

bool tci_extract_may(const struct tci_extract *what, int fd, const struct stat *st, mode_t wanted)
{
    const struct tci_file_reader *reader = &what->reader;
    mode_t granted = st->st_gid == reader->gid ? st->st_mode >> 3 : st->st_mode;
    if (!reader->is_known || st->st_uid == reader->uid)
        return true;
    /* With a list, the mode says what somebody may, and not who. */
    return (granted & wanted) == wanted && fgetxattr(fd, "system.posix_acl_access", NULL, 0) <= 0;
}

/* Handles all the way, so that what was looked at is what is opened. */
static int walk_to(const struct tci_extract *what, int root, const char *path)
{
    char rest[TCI_PATH_MAX + 1], name[TCI_COMPONENT_MAX + 1];
    tc_cleanup(tci_closep) int at = root;
    struct stat st;

    if (strlen(path) > TCI_PATH_MAX)
        return errno = ENAMETOOLONG, -1;
    memcpy(rest, path, strlen(path) + 1);
    while (tci_path_take(rest, name)) {
        int next = tci_extract_open(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
        int errnum = errno;
        tci_close(at);
        at = next;
        if (at < 0)
            return errno = errnum, -1;
        if (tci_sys.fstat(at, &st) < 0)
            return -1;
        if (!tci_extract_may(what, at, &st, S_IXOTH))
            return errno = EACCES, -1;
    }
    return tci_take_fd(&at);
}

int tci_extract_directory(const struct tci_extract *what, const char *path, struct tc_error *reterr)
{
    int fd = what->open_directory(what->context, path, reterr);
    if (fd < 0 || !what->reader.is_known)
        return fd;
    tci_close(fd);
    fd = what->open_directory(what->context, "/", reterr);
    if (fd < 0)
        return fd;
    fd = walk_to(what, fd, path);
    if (fd < 0) {
        int errnum = errno;
        tci_error_errno(reterr, errnum, "opening %.300s as the tool", path);
        errno = errnum;
    }
    return fd;
}

bool tci_extract_is_fatal(int errnum, struct tc_error *reterr)
{
    if (errnum == ENOMEM) {
        tci_error_no_memory(reterr);
        return true;
    }
    if (errnum == EMFILE || errnum == ENFILE) {
        tci_error_errno(reterr, errnum, "cannot open the files of the call");
        tci_error_remedy(reterr, "raise the limit on open files (ulimit -n)");
        return true;
    }
    if (errnum == ENOSYS) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "files cannot be brought back safely: this kernel has no openat2");
        tci_error_remedy(reterr, "use Linux 5.6 or newer, or a tool without \"outputs\"");
        return true;
    }
    return false;
}

const char *tci_extract_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return "is a symbolic link, which is not followed";
    case S_IFIFO:
        return "is a FIFO and not a file";
    case S_IFSOCK:
        return "is a socket and not a file";
    case S_IFDIR:
        return "is a directory and not a file";
    default:
        return "is a device and not a file";
    }
}

/* Line breaks and terminal escapes would forge lines in a listing; direction overrides and invisible
 * characters show another name than the one that is there. */
static bool is_clean_character(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !(c >= 0x2028 && c <= 0x202e) &&
           !tci_utf8_is_deceptive(c);
}

bool tci_extract_is_clean(const char *path)
{
    size_t length = strlen(path), i = 0;

    while (i < length) {
        uint32_t c;
        size_t size = tci_utf8_decode(path + i, length - i, &c);
        if (size == 0 || !is_clean_character(c))
            return false;
        i += size;
    }
    return true;
}

/* A path that is not clean, so that it can be shown and told from any other. */
static const char *escape(struct tci_arena *arena, const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char *text = tci_arena_array(arena, strlen(path) + 1, 4), *to = text;

    if (!text)
        return NULL;
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (c >= 0x20 && c < 0x7f && c != '\\') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = digits[c >> 4];
        *to++ = digits[c & 15];
    }
    *to = '\0';
    return text;
}

int tci_extract_skip(struct tci_extraction *x, const char *path, const char *format, ...)
{
    struct tci_extracted *ret = x->ret;
    struct tc_denial skipped = { .kind = "output" };
    char reason[256];
    va_list args;

    if (ret->skipped_count > TCI_EXTRACT_SKIPPED_MAX)
        return 0;
    if (!ret->skipped)
        ret->skipped = tci_arena_new_array(x->arena, TCI_EXTRACT_SKIPPED_MAX + 1, struct tc_denial);
    if (!ret->skipped)
        return tci_error_no_memory(x->reterr);
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (ret->skipped_count == TCI_EXTRACT_SKIPPED_MAX) {
        skipped = (struct tc_denial){ "more", "", "more files were not taken than are listed" };
    } else {
        skipped.target = tci_extract_is_clean(path) ? tci_arena_strdup(x->arena, path)
                                                    : escape(x->arena, path);
        skipped.rule = tci_arena_strdup(x->arena, reason);
    }
    if (!skipped.target || !skipped.rule)
        return tci_error_no_memory(x->reterr);
    ret->skipped[ret->skipped_count++] = skipped;
    return 0;
}
