/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: blobs, content that is named by its SHA-256. A blob that has its name was whole when it got it;
 * whoever uses one checks it again, since disks fail and people edit.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"

enum { buffer_size = 1 << 20, read_max = 1 << 20 };

static void blob_path(const char *digest, char ret[96])
{
    (void)snprintf(ret, 96, "blobs/sha256/%s", digest);
}

/* ---- writing ------------------------------------------------------------------------------------- */

int tci_blob_begin(struct tci_image_store *store, struct tci_blob_writer *ret,
                   struct tc_error *reterr)
{
    *ret = (struct tci_blob_writer){ .store = store, .fd = -1 };
    ret->buffer = malloc(buffer_size);
    if (!ret->buffer)
        return tci_error_no_memory(reterr);
    tci_image_temporary(ret->temporary);
    ret->fd = openat(store->directory, ret->temporary,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (ret->fd < 0) {
        tci_image_store_fail(store, "write", reterr);
        tci_blob_drop(ret);
        return -1;
    }
    tci_sha256_begin(&ret->hash);
    return 0;
}

void tci_blob_drop(struct tci_blob_writer *writer)
{
    if (writer->fd >= 0)
        (void)unlinkat(writer->store->directory, writer->temporary, 0);
    writer->fd = tci_close(writer->fd);
    free(writer->buffer);
    writer->buffer = NULL;
}

static int flush(struct tci_blob_writer *writer, struct tc_error *reterr)
{
    tci_sha256_add(&writer->hash, writer->buffer, writer->used);
    if (tci_write_all(writer->fd, writer->buffer, writer->used) < 0)
        return tci_image_store_fail(writer->store, "write", reterr);
    writer->used = 0;
    return 0;
}

int tci_blob_write(struct tci_blob_writer *writer, const void *bytes, size_t length,
                   struct tc_error *reterr)
{
    const char *from = bytes;
    writer->size += length;
    while (length > 0) {
        size_t room = buffer_size - writer->used, part = length < room ? length : room;
        memcpy(writer->buffer + writer->used, from, part);
        writer->used += part;
        from += part;
        length -= part;
        if (writer->used == buffer_size && flush(writer, reterr) < 0)
            return -1;
    }
    return 0;
}

int tci_blob_finish(struct tci_blob_writer *writer, struct tci_blob *ret, struct tc_error *reterr)
{
    struct tci_image_store *store = writer->store;
    char path[96];
    int r = flush(writer, reterr);

    tci_sha256_end_text(&writer->hash, ret->digest);
    ret->size = writer->size;
    blob_path(ret->digest, path);
    /* The bytes are on the disk before the name is: a name never stands for half a blob. */
    if (r == 0 && (fchmod(writer->fd, 0644) < 0 || fsync(writer->fd) < 0 ||
                   renameat(store->directory, writer->temporary, store->directory, path) < 0))
        r = tci_image_store_fail(store, "write", reterr);
    if (r == 0)
        writer->fd = tci_close(writer->fd);
    tci_blob_drop(writer);
    return r;
}

int tci_blob_put(struct tci_image_store *store, const void *bytes, size_t length,
                 struct tci_blob *ret, struct tc_error *reterr)
{
    struct tci_blob_writer writer;
    if (tci_blob_begin(store, &writer, reterr) < 0)
        return -1;
    if (tci_blob_write(&writer, bytes, length, reterr) == 0)
        return tci_blob_finish(&writer, ret, reterr);
    tci_blob_drop(&writer);
    return -1;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int damaged(const struct tci_image_store *store, const struct tci_blob *blob,
                   const char *how, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO, "the image in %s is damaged: blob %.12s %s", store->path,
                  blob->digest, how);
    tci_error_remedy(reterr, "run 'toolcage image build' again");
    return -1;
}

int tci_blob_open(const struct tci_image_store *store, const struct tci_blob *blob,
                  struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = -1;
    struct stat status;
    char path[96];

    blob_path(blob->digest, path);
    fd = openat(store->directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return damaged(store, blob, errno == ENOENT ? "is missing" : "cannot be opened", reterr);
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        /* cppcheck-suppress resourceLeak ; tc_cleanup closes it */
        return damaged(store, blob, "is not a file", reterr);
    if ((uint64_t)status.st_size != blob->size)
        /* cppcheck-suppress resourceLeak ; tc_cleanup closes it */
        return damaged(store, blob, "has another size", reterr);
    /* cppcheck-suppress resourceLeak ; handed over */
    return tci_take_fd(&fd);
}

int tci_blob_read(const struct tci_image_store *store, struct tci_arena *arena,
                  const struct tci_blob *blob, char **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = -1;
    char digest[TCI_SHA256_TEXT_MAX], *bytes;
    size_t have = 0;

    if (blob->size > read_max)
        return damaged(store, blob, "is too large", reterr);
    fd = tci_blob_open(store, blob, reterr);
    if (fd < 0)
        return -1;
    bytes = tci_arena_alloc(arena, blob->size + 1);
    if (!bytes)
        return tci_error_no_memory(reterr);
    while (have < blob->size) {
        ssize_t n = tci_read_some(fd, bytes + have, blob->size - have);
        if (n <= 0)
            return damaged(store, blob, "cannot be read", reterr);
        have += (size_t)n;
    }
    tci_sha256_text(bytes, have, digest);
    if (strcmp(digest, blob->digest) != 0)
        return damaged(store, blob, "has other bytes", reterr);
    *ret = bytes;
    return 0;
}

int tci_blob_check(const struct tci_image_store *store, const struct tci_blob *blob,
                   struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = tci_blob_open(store, blob, reterr);
    char digest[TCI_SHA256_TEXT_MAX], *buffer;
    struct tci_sha256 hash;
    ssize_t n;

    if (fd < 0)
        return -1;
    buffer = malloc(buffer_size);
    if (!buffer)
        return tci_error_no_memory(reterr);
    tci_sha256_begin(&hash);
    while ((n = tci_read_some(fd, buffer, buffer_size)) > 0)
        tci_sha256_add(&hash, buffer, (size_t)n);
    free(buffer);
    if (n < 0)
        return damaged(store, blob, "cannot be read", reterr);
    tci_sha256_end_text(&hash, digest);
    return strcmp(digest, blob->digest) == 0 ? 0 : damaged(store, blob, "has other bytes", reterr);
}
