/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing a layer: a tar archive (POSIX, with extended headers where a name is long) in which the
 * same files always give the same bytes. Owners are root, times are one moment, and there is nothing in it
 * but files, directories and links.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/sys.h"

enum {
    block = 512,
    name_max = 100, /* bytes of a name, and of a link's target, in a header */
    copy_size = 1 << 18,
};

static const char zeros[2 * block];

/* A number as a tar header has it: octal digits and a NUL. */
static void octal(char *field, size_t size, uint64_t value)
{
    field[--size] = '\0';
    while (size > 0) {
        field[--size] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

/* A text as a tar header has it: no NUL where it fills its field. */
static void put_text(char *field, size_t size, const char *text)
{
    for (size_t i = 0; i < size && text[i]; i++)
        field[i] = text[i];
}

void tci_tar_header(char ret[512], const char *path, char type, unsigned mode, uint64_t size,
                    int64_t moment, const char *target)
{
    unsigned sum = 0;
    memset(ret, 0, block);
    put_text(ret, name_max, path);
    octal(ret + 100, 8, mode);
    octal(ret + 108, 8, 0);
    octal(ret + 116, 8, 0);
    octal(ret + 124, 12, size);
    octal(ret + 136, 12, (uint64_t)moment);
    memset(ret + 148, ' ', 8);
    ret[156] = type;
    if (target)
        put_text(ret + 157, name_max, target);
    put_text(ret + 257, 6, "ustar");
    put_text(ret + 263, 2, "00");
    put_text(ret + 265, 32, "root");
    put_text(ret + 297, 32, "root");
    for (size_t i = 0; i < block; i++)
        sum += (unsigned char)ret[i];
    octal(ret + 148, 7, sum);
}

/* "LENGTH KEY=VALUE\n", whose length counts its own digits. */
static size_t extended_record(char *out, size_t room, const char *key, const char *value)
{
    size_t length = strlen(key) + strlen(value) + 3, digits = 1;
    for (size_t limit = 10; length + digits >= limit; limit *= 10)
        digits++;
    (void)snprintf(out, room, "%zu %s=%s\n", length + digits, key, value);
    return length + digits;
}

static int pad(struct tci_blob_writer *writer, uint64_t size, struct tc_error *reterr)
{
    size_t rest = (size_t)(size % block);
    return rest ? tci_blob_write(writer, zeros, block - rest, reterr) : 0;
}

static int write_extended(struct tci_blob_writer *writer, const struct tci_file *file,
                          int64_t moment, struct tc_error *reterr)
{
    size_t room = 2 * (size_t)PATH_MAX + 128, length = 0;
    char header[block], *records;
    int r;

    if (strlen(file->path) <= name_max && (!file->target || strlen(file->target) <= name_max))
        return 0;
    records = malloc(room);
    if (!records)
        return tci_error_no_memory(reterr);
    if (strlen(file->path) > name_max)
        length += extended_record(records, room, "path", file->path);
    if (file->target && strlen(file->target) > name_max)
        length += extended_record(records + length, room - length, "linkpath", file->target);
    tci_tar_header(header, "PaxHeaders", 'x', 0644, length, moment, NULL);
    r = tci_blob_write(writer, header, block, reterr);
    if (r == 0)
        r = tci_blob_write(writer, records, length, reterr);
    free(records);
    return r < 0 ? -1 : pad(writer, length, reterr);
}

/* The bytes of a file of the root directory, which must be as many as were announced. */
static int copy_file(struct tci_blob_writer *writer, int root, const struct tci_file *file,
                     char *buffer, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = tci_sys.open_beneath(
        root, file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    uint64_t left = file->size;

    if (fd < 0 || fstat(fd, &status) < 0)
        return tci_error_errno(reterr, errno, "cannot read /%s", file->path);
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != file->size)
        return tci_error_set(reterr, TC_ERROR_IO, "/%s was changed meanwhile", file->path);
    while (left > 0) {
        ssize_t n = tci_read_some(fd, buffer, left < copy_size ? (size_t)left : copy_size);
        if (n < 0)
            return tci_error_errno(reterr, errno, "cannot read /%s", file->path);
        if (n == 0)
            return tci_error_set(reterr, TC_ERROR_IO, "/%s was changed meanwhile", file->path);
        if (tci_blob_write(writer, buffer, (size_t)n, reterr) < 0)
            return -1;
        left -= (uint64_t)n;
    }
    return 0;
}

static int write_file(struct tci_blob_writer *writer, const struct tci_file_list *list,
                      const struct tci_file *file, int64_t moment, char *buffer,
                      struct tc_error *reterr)
{
    static const char types[] = {
        [TCI_FILE_REGULAR] = '0', [TCI_FILE_DIRECTORY] = '5', [TCI_FILE_LINK] = '2'
    };
    char header[block];

    tci_tar_header(header, file->path, types[file->kind], file->mode, file->size, moment,
                   file->target);
    if (write_extended(writer, file, moment, reterr) < 0 ||
        tci_blob_write(writer, header, block, reterr) < 0)
        return -1;
    if (file->bytes && tci_blob_write(writer, file->bytes, file->size, reterr) < 0)
        return -1;
    if (!file->bytes && file->kind == TCI_FILE_REGULAR &&
        copy_file(writer, list->root, file, buffer, reterr) < 0)
        return -1;
    return pad(writer, file->size, reterr);
}

int tci_image_tar(struct tci_image_store *store, const struct tci_file_list *list, int64_t moment,
                  const struct tci_image_watch *watch, struct tci_blob *ret,
                  struct tc_error *reterr)
{
    struct tci_blob_writer writer;
    uint64_t done = 0;
    char *buffer;
    int r;

    if (tci_blob_begin(store, &writer, reterr) < 0)
        return -1;
    buffer = malloc(copy_size);
    r = buffer ? 0 : tci_error_no_memory(reterr);
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        r = write_file(&writer, list, &list->files[i], moment, buffer, reterr);
        done += list->files[i].size;
        if (r == 0)
            r = tci_image_step(watch, TCI_IMAGE_LAYER, done, list->bytes, reterr);
    }
    free(buffer);
    if (r == 0)
        r = tci_blob_write(&writer, zeros, sizeof zeros, reterr);
    if (r == 0)
        return tci_blob_finish(&writer, ret, reterr);
    tci_blob_drop(&writer);
    return -1;
}
