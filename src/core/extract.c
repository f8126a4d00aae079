/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: taking the files that were found: which of them, whether they are what they should be, and
 * reading them once.
 * Trusts: the patterns, which are the policy's; `out`'s handle. Nothing of what the cage wrote.
 * Invariants: only regular files are opened for reading, and no more bytes are read than the size that
 * was checked; a file that changes meanwhile is not taken.
 */
#include "core/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "core/extract_internal.h"
#include "core/media_type.h"

enum { piece_size = 128 * 1024 };

/* What is carried from file to file. */
struct taking {
    struct tci_extraction *x;
    size_t room;      /* in ret->files */
    char *piece;      /* piece_size bytes */
    int directory;    /* the one that was opened last; -1: none */
    const char *path; /* of it: the first `length` bytes */
    size_t length;
};

/* ---- choosing ----------------------------------------------------------------------------- */

static int compare_matches(const void *a, const void *b)
{
    return strcmp(((const struct tci_match *)a)->path, ((const struct tci_match *)b)->path);
}

/* In order, each path once: the answer does not depend on how the file system lists. */
static void sort_matches(struct tci_extraction *x)
{
    size_t kept = 0;

    if (x->match_count == 0)
        return;
    qsort(x->matches, x->match_count, sizeof *x->matches, compare_matches);
    for (size_t i = 1; i < x->match_count; i++)
        if (strcmp(x->matches[i].path, x->matches[kept].path) != 0)
            x->matches[++kept] = x->matches[i];
    x->match_count = kept + 1;
}

static bool is_within_cwd(const struct tci_extraction *x, const char *path)
{
    return tci_path_is_within(path, x->what->cwd);
}

/* Where it is saved below `out`. */
static const char *path_in_out(const struct tci_extraction *x, const char *path)
{
    if (!is_within_cwd(x, path) || strcmp(x->what->cwd, "/") == 0)
        return path + 1;
    return path + strlen(x->what->cwd) + 1;
}

/* "/etc/x" and the working directory's own "etc/x" would be saved in one place. The second is taken,
 * whatever becomes of it: one must never pass for the other. */
static bool is_covered(const struct tci_extraction *x, const char *path)
{
    char other[TCI_PATH_MAX + 1];
    struct tci_match wanted = { .path = other };
    size_t length = strlen(x->what->cwd);

    if (is_within_cwd(x, path) || length + strlen(path) > TCI_PATH_MAX)
        return false;
    memcpy(other, x->what->cwd, length);
    memcpy(other + length, path, strlen(path) + 1);
    return bsearch(&wanted, x->matches, x->match_count, sizeof wanted, compare_matches) != NULL;
}

/* ---- one file ----------------------------------------------------------------------------- */

/* Opens below the pattern's directory, which is kept for the next file: most share one. */
static int open_match(struct taking *taking, const struct tci_match *match, int flags)
{
    const struct tci_extract *what = taking->x->what;
    const char *below = match->path + match->static_length + 1;

    if (taking->directory < 0 || taking->length != match->static_length ||
        memcmp(taking->path, match->path, match->static_length) != 0) {
        char path[TCI_PATH_MAX + 1];
        taking->directory = tci_close(taking->directory);
        memcpy(path, match->path, match->static_length);
        path[match->static_length] = '\0';
        taking->directory = tci_extract_directory(what, match->static_length ? path : "/", NULL);
        if (taking->directory < 0)
            return -1;
        taking->path = match->path;
        taking->length = match->static_length;
    }
    return tci_extract_open(taking->directory, below, flags);
}

/* NULL: it is to be taken. */
static const char *objection(const struct tci_extract *what, int fd, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return tci_extract_kind(st->st_mode);
    /* The size that it claims: reading the holes of a sparse file takes as long as reading data. */
    if (st->st_size < 0 || (uint64_t)st->st_size > what->max_file)
        return "is larger than max_file";
    if (!tci_extract_may(what, fd, st, S_IROTH))
        return "is not the tool's to read";
    return NULL;
}

/*
 * A descriptor to read from. -1: it is not taken, and skipped says why. -2: the extraction ends.
 * First without opening the file itself: to open a device or a FIFO can act. Then with O_NONBLOCK, in
 * case it was swapped for one in between, and looking again.
 */
static int open_file(struct taking *taking, const struct tci_match *match, struct stat *ret)
{
    static const int flags[] = { O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                 O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC };
    struct tci_extraction *x = taking->x;
    tc_cleanup(tci_closep) int fd = -1;

    for (size_t i = 0; i < tci_array_size(flags); i++) {
        const char *why = NULL;
        int errnum = 0;
        tci_close(fd);
        fd = open_match(taking, match, flags[i]);
        if (fd < 0 || tci_sys.fstat(fd, ret) < 0)
            errnum = errno;
        else
            why = objection(x->what, fd, ret);
        if (tci_extract_is_fatal(errnum, x->reterr))
            return -2;
        if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
            why = "changed while it was looked at";
        else if (errnum)
            why = strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "cannot be opened";
        if (why)
            return tci_extract_skip(x, match->path, "%s", why) < 0 ? -2 : -1;
    }
    return tci_take_fd(&fd);
}

static bool is_unchanged(int fd, const struct stat *before)
{
    struct stat after;

    return tci_sys.fstat(fd, &after) == 0 && after.st_size == before->st_size &&
           after.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           after.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

enum copied { COPIED, CHANGED, CANNOT_READ, CANNOT_WRITE };

/* Reads the file once: to its hash, to the guess of its kind, and to where it is saved. */
static enum copied copy(struct taking *taking, int from, const struct stat *st, int to,
                        struct tc_file *file, struct tci_media *media)
{
    struct tci_sha256 hash;
    uint64_t left = (uint64_t)st->st_size;

    tci_sha256_begin(&hash);
    for (;;) {
        /* At the end one byte more is asked for: a file that has grown would go on. */
        size_t wanted = left == 0 ? 1 : left < piece_size ? (size_t)left : piece_size;
        ssize_t n = tci_read_some(from, taking->piece, wanted);
        if (n < 0)
            return CANNOT_READ;
        if (n == 0)
            break;
        if (left == 0)
            return CHANGED;
        left -= (size_t)n;
        tci_sha256_add(&hash, taking->piece, (size_t)n);
        tci_media_add(media, taking->piece, (size_t)n);
        if (to >= 0 && tci_write_all(to, taking->piece, (size_t)n) < 0)
            return CANNOT_WRITE;
    }
    if (left > 0 || !is_unchanged(from, st))
        return CHANGED;
    tci_sha256_end_text(&hash, file->sha256);
    file->size = (uint64_t)st->st_size;
    return COPIED;
}

static int cannot_write(struct tci_extraction *x, int errnum)
{
    tci_error_errno(x->reterr, errnum, "cannot save the files of the call in %s",
                    x->what->out_path ? x->what->out_path : "the output directory");
    tci_error_remedy(x->reterr, errnum == ENOSPC || errnum == EDQUOT
                                    ? "free some space there, or choose another directory"
                                    : "choose a directory that you may write to");
    return -1;
}

/* Errors of one place in `out`, where something else stands. */
static bool is_in_the_way(int errnum)
{
    return errnum == EEXIST || errnum == ENOTDIR || errnum == EISDIR || errnum == ELOOP ||
           errnum == ENOTEMPTY || errnum == EXDEV || errnum == ENAMETOOLONG;
}

/* 1: taken. 0: skipped. -1: the extraction ends. */
static int save(struct taking *taking, int fd, const struct stat *st, struct tci_saving *saving,
                const char *path, struct tc_file *file)
{
    struct tci_extraction *x = taking->x;
    struct tci_media media = { .head_length = 0 };

    switch (copy(taking, fd, st, saving->fd, file, &media)) {
    case CHANGED:
        return tci_extract_skip(x, path, "changed while it was read");
    case CANNOT_READ:
        return tci_extract_skip(x, path, "cannot be read: %s", strerrordesc_np(errno));
    case CANNOT_WRITE:
        return cannot_write(x, errno);
    case COPIED:
        break;
    }
    file->media_type = tci_media_type(&media, path);
    if (tci_saving_publish(saving, path_in_out(x, path)) == 0)
        return 1;
    if (is_in_the_way(errno))
        return tci_extract_skip(x, path, "something else is in its place in the output directory");
    return cannot_write(x, errno);
}

static int add_file(struct taking *taking, struct tc_file *file, const char *path)
{
    struct tci_extraction *x = taking->x;
    struct tci_extracted *ret = x->ret;

    if (ret->count == taking->room) {
        void *files = tci_arena_grow(x->arena, ret->files, ret->count, sizeof *ret->files,
                                     &taking->room);
        if (!files)
            return tci_error_no_memory(x->reterr);
        ret->files = files;
    }
    file->path = path;
    if (x->what->out >= 0) {
        file->saved = tci_arena_printf(
            x->arena, "%s/%s", x->what->out_path ? x->what->out_path : ".", path_in_out(x, path));
        if (!file->saved)
            return tci_error_no_memory(x->reterr);
    }
    ret->files[ret->count++] = *file;
    return 0;
}

static int take(struct taking *taking, const struct tci_match *match)
{
    struct tci_extraction *x = taking->x;
    tc_cleanup(tci_closep) int fd = -1;
    tc_cleanup(tci_saving_end) struct tci_saving saving = { .fd = -1 };
    struct tc_file file = { .size = 0 };
    struct stat st;
    int status;

    fd = open_file(taking, match, &st);
    if (fd < 0)
        return fd == -1 ? 0 : -1;
    if (tci_saving_begin(&saving, x->what->out) < 0)
        return cannot_write(x, errno);
    status = save(taking, fd, &st, &saving, match->path, &file);
    return status == 1 ? add_file(taking, &file, match->path) : status;
}

/* ---- all of them -------------------------------------------------------------------------- */

static int take_all(struct taking *taking)
{
    struct tci_extraction *x = taking->x;

    for (size_t i = 0; i < x->match_count; i++) {
        const char *path = x->matches[i].path;
        int status;
        if (x->ret->count >= x->what->max_files)
            status = tci_extract_skip(x, path, "there are more files than max_files");
        else if (!tci_extract_is_clean(path))
            status = tci_extract_skip(x, path, "has a name with characters that are not allowed");
        else if (is_covered(x, path))
            status = tci_extract_skip(x, path, "another file is saved in its place");
        else
            status = take(taking, &x->matches[i]);
        if (status < 0)
            return -1;
    }
    return 0;
}

int tci_extract(const struct tci_extract *what, struct tci_arena *arena, struct tci_extracted *ret,
                struct tc_error *reterr)
{
    struct tci_extraction x = { .what = what, .arena = arena, .ret = ret, .reterr = reterr };
    struct taking taking = { .x = &x, .directory = -1 };
    int status;

    *ret = (struct tci_extracted){ .count = 0 };
    status = tci_extract_walk(&x);
    if (status < 0 || x.match_count == 0)
        return status;
    sort_matches(&x);
    taking.piece = malloc(piece_size);
    if (!taking.piece)
        return tci_error_no_memory(reterr);
    status = take_all(&taking);
    free(taking.piece);
    tci_close(taking.directory);
    return status;
}
