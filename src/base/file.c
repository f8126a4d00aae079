/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading whole files within a bound, and who else may know what is in one.
 * Trusts: nothing about the file. It is opened without blocking (a FIFO would hang the caller) and
 * judged by its descriptor, so that it cannot be swapped between the check and the read.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "base/sys.h"

static const int read_flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)tci_sys.close(*fd);
}

static int too_large(struct tc_error *reterr, size_t maximum)
{
    tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the file is larger than %zu bytes", maximum);
    tci_error_id(reterr, "TC-P003");
    tci_error_remedy(reterr, "a policy is a short text; check that this is the right file");
    return -1;
}

static int changed(struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO, "the file changed while it was read");
    tci_error_id(reterr, "TC-P004");
    tci_error_remedy(reterr, "try again; write policies to a new file and rename it into place");
    return -1;
}

static int cannot_read(struct tc_error *reterr, int errnum, const char *what)
{
    tci_error_errno(reterr, errnum, "%s", what);
    tci_error_id(reterr, "TC-P001");
    if (errnum == ENOENT)
        tci_error_remedy(reterr, "check the name, or give the file with --policy FILE");
    else if (errnum == EACCES)
        tci_error_remedy(reterr, "make the file readable for this user: chmod u+r, or chown");
    else
        tci_error_remedy(reterr, "check the file and the disk that it is on");
    return -1;
}

/* What kind of thing was opened, for the message. */
static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

static int check_kind(const struct stat *st, bool standard_input, struct tc_error *reterr)
{
    if (S_ISREG(st->st_mode) || (standard_input && !S_ISDIR(st->st_mode)))
        return 0;
    tci_error_set(reterr, TC_ERROR_IO, "this is %s, not a file", kind_of(st->st_mode));
    tci_error_id(reterr, "TC-P002");
    tci_error_remedy(reterr, "name a regular file, or use - to read standard input");
    return -1;
}

/* Reads until the end or one byte more than `maximum`; the bytes are in pieces that double. */
static int read_all(struct tci_arena *arena, int fd, size_t expected, size_t maximum,
                    char **ret_bytes, size_t *ret_length, struct tc_error *reterr)
{
    size_t capacity = expected < maximum ? expected + 1 : maximum + 1, length = 0;
    char *bytes = tci_arena_alloc(arena, capacity + 1);

    while (bytes) {
        ssize_t n = tci_sys.read(fd, bytes + length, capacity - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_read(reterr, errno, "cannot read");
        length += (size_t)n;
        if (length > maximum)
            return too_large(reterr, maximum);
        if (n == 0) {
            bytes[length] = '\0';
            *ret_bytes = bytes;
            *ret_length = length;
            return 0;
        }
        if (length == capacity) {
            char *larger;
            capacity = capacity > maximum / 2 ? maximum + 1 : capacity * 2;
            larger = tci_arena_alloc(arena, capacity + 1);
            if (larger)
                memcpy(larger, bytes, length);
            bytes = larger;
        }
    }
    return tci_error_no_memory(reterr);
}

static bool same_file_state(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int open_file(const char *path, int flags)
{
    int fd;
    do {
        fd = tci_sys.open(path, flags);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Reads what `fd` is, after judging it. Its number does not tell standard input: a program that has
 * closed its own gets 0 for the next file that it opens. */
static int read_descriptor(struct tci_arena *arena, int fd, bool standard_input, size_t maximum,
                           char **ret_bytes, size_t *ret_length, struct tc_error *reterr)
{
    struct stat before, after;
    char *bytes = NULL;
    size_t length = 0;

    if (tci_sys.fstat(fd, &before) < 0)
        return cannot_read(reterr, errno, "cannot examine");
    if (check_kind(&before, standard_input, reterr) < 0)
        return -1;
    if (S_ISREG(before.st_mode) && (uintmax_t)before.st_size > maximum)
        return too_large(reterr, maximum);
    size_t expected = S_ISREG(before.st_mode) ? (size_t)before.st_size : 4096;
    if (read_all(arena, fd, expected, maximum, &bytes, &length, reterr) < 0)
        return -1;
    if (S_ISREG(before.st_mode)) {
        if (tci_sys.fstat(fd, &after) < 0)
            return cannot_read(reterr, errno, "cannot examine");
        if (!same_file_state(&before, &after) || (!standard_input && length != expected))
            return changed(reterr);
    }
    *ret_bytes = bytes;
    *ret_length = length;
    return 0;
}

int tci_file_open(const char *path)
{
    return open_file(path, read_flags);
}

int tci_file_judge_secret(int fd, bool root_too, struct stat *ret_stat)
{
    int wrong = 0;
    if (tci_sys.fstat(fd, ret_stat) < 0)
        return -1;
    if (!S_ISREG(ret_stat->st_mode))
        wrong |= TCI_SECRET_NO_FILE;
    if (ret_stat->st_uid != geteuid() && !(root_too && ret_stat->st_uid == 0))
        wrong |= TCI_SECRET_FOREIGN;
    if (ret_stat->st_mode & 077)
        wrong |= TCI_SECRET_EXPOSED;
    return wrong;
}

int tci_file_read(struct tci_arena *arena, const char *path, size_t maximum, char **ret_bytes,
                  size_t *ret_length, struct tc_error *reterr)
{
    tc_cleanup(close_fd) int fd = -1;
    if (strcmp(path, "-") == 0)
        return read_descriptor(arena, STDIN_FILENO, true, maximum, ret_bytes, ret_length, reterr);
    fd = tci_file_open(path);
    if (fd < 0)
        return cannot_read(reterr, errno, "cannot open");
    return read_descriptor(arena, fd, false, maximum, ret_bytes, ret_length, reterr);
}

int tci_file_read_fd(struct tci_arena *arena, int fd, size_t maximum, char **ret_bytes,
                     size_t *ret_length, struct tc_error *reterr)
{
    return read_descriptor(arena, fd, false, maximum, ret_bytes, ret_length, reterr);
}

int tci_file_read_beneath(struct tci_arena *arena, const char *directory, const char *path,
                          size_t maximum, char **ret_bytes, size_t *ret_length,
                          struct tc_error *reterr)
{
    tc_cleanup(close_fd) int parent = -1;
    tc_cleanup(close_fd) int fd = -1;

    parent = open_file(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0)
        fd = tci_sys.open_beneath(parent, path, read_flags);
    if (fd < 0)
        return cannot_read(reterr, errno, "cannot open");
    return read_descriptor(arena, fd, false, maximum, ret_bytes, ret_length, reterr);
}
