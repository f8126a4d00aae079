/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: unpacking a layer into a directory, the root of cages. Trusts nothing in the archive: names stay
 * below the directory and follow no link, whatever the archive has made before; devices, set-user-id bits
 * and owners are not taken; and the digest of all that was read is compared before the directory gets its
 * name. The attack: an archive with "x -> /etc" and then "x/passwd", or with "../../etc/passwd".
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

enum { block = 512, copy_size = 1 << 18, extended_max = 16384 };

struct unpacking {
    const struct tci_image_store *store;
    const struct tci_image_watch *watch;
    const struct tci_image *image;
    int archive, root, parent; /* parent: the directory that `parent_path` names */
    char parent_path[PATH_MAX];
    struct tci_sha256 hash;
    uint64_t left, directories;
    char path[PATH_MAX],
        target[PATH_MAX]; /* of the next entry, from an extended header; "": none */
    char *buffer;
};

static int bad(const struct unpacking *unpacking, const char *why, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO, "the image in %s is damaged: its layer %s",
                  unpacking->store->path, why);
    tci_error_remedy(reterr, "run 'toolcage image build' again");
    return -1;
}

/* What could not be made. A name that is there already came from this archive: the directory was empty. */
static int cannot(const struct unpacking *unpacking, struct tc_error *reterr)
{
    return errno == EEXIST ? bad(unpacking, "has a name twice", reterr)
                           : tci_image_store_fail(unpacking->store, "unpack", reterr);
}

static int take(struct unpacking *unpacking, void *bytes, size_t length, struct tc_error *reterr)
{
    char *to = bytes;
    if (length > unpacking->left)
        return bad(unpacking, "ends too early", reterr);
    unpacking->left -= length;
    for (size_t have = 0; have < length;) {
        ssize_t n = tci_read_some(unpacking->archive, to + have, length - have);
        if (n <= 0)
            return bad(unpacking, "cannot be read", reterr);
        have += (size_t)n;
    }
    tci_sha256_add(&unpacking->hash, bytes, length);
    return 0;
}

static bool read_octal(const char *field, size_t size, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < size && field[i] >= '0' && field[i] <= '7' && value < (uint64_t)1 << 59; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    *ret = value;
    return i > 0 && (i == size || field[i] == '\0' || field[i] == ' ');
}

/* A name that stays below the root, in normal form: no "..", no "//", no slash at either end. */
static bool is_plain(const char *path)
{
    if (!*path || strlen(path) >= PATH_MAX)
        return false;
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > NAME_MAX || strncmp(part, ".", length) == 0 ||
            strncmp(part, "..", length) == 0)
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

/* "LENGTH KEY=VALUE\n", again and again. */
static int take_extended(struct unpacking *unpacking, uint64_t size, struct tc_error *reterr)
{
    size_t padded = (size_t)((size + block - 1) / block * block);
    char *text = unpacking->buffer, *end;

    if (size > extended_max)
        return bad(unpacking, "has a name that is too long", reterr);
    if (take(unpacking, text, padded, reterr) < 0)
        return -1;
    end = text + size;
    *end = '\0';
    while (text < end) {
        char *value = NULL, *after;
        unsigned long length = strtoul(text, &after, 10);
        if (length < 5 || length > (size_t)(end - text) || *after != ' ' ||
            text[length - 1] != '\n' || after + 1 >= text + length)
            return bad(unpacking, "has a broken extended header", reterr);
        text[length - 1] = '\0';
        value = strchr(++after, '=');
        if (!value)
            return bad(unpacking, "has a broken extended header", reterr);
        *value++ = '\0';
        if (strlen(value) >= PATH_MAX)
            return bad(unpacking, "has a name that is too long", reterr);
        if (strcmp(after, "path") == 0)
            memcpy(unpacking->path, value, strlen(value) + 1);
        else if (strcmp(after, "linkpath") == 0)
            memcpy(unpacking->target, value, strlen(value) + 1);
        text += length;
    }
    return 0;
}

/* The handle of the directory in which `path` is, kept for the entries that follow. */
static int enter(struct unpacking *unpacking, const char *path, const char **ret_name,
                 struct tc_error *reterr)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;

    *ret_name = slash ? slash + 1 : path;
    if (unpacking->parent >= 0 && strncmp(unpacking->parent_path, path, length) == 0 &&
        !unpacking->parent_path[length])
        return 0;
    unpacking->parent = tci_close(unpacking->parent);
    memcpy(unpacking->parent_path, path, length);
    unpacking->parent_path[length] = '\0';
    unpacking->parent = tci_sys.open_beneath(unpacking->root, length ? unpacking->parent_path : ".",
                                             O_PATH | O_DIRECTORY | O_CLOEXEC);
    return unpacking->parent < 0 ? bad(unpacking, "has an entry without a directory", reterr) : 0;
}

static int unpack_file(struct unpacking *unpacking, const char *name, uint64_t mode, uint64_t size,
                       struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = openat(
        unpacking->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    uint64_t left = size;

    if (fd < 0)
        return cannot(unpacking, reterr);
    while (left > 0) {
        size_t part = left < copy_size ? (size_t)left : copy_size;
        size_t padded = (part + block - 1) / block * block;
        if (take(unpacking, unpacking->buffer, padded, reterr) < 0)
            return -1;
        if (tci_write_all(fd, unpacking->buffer, part) < 0)
            return tci_image_store_fail(unpacking->store, "unpack", reterr);
        left -= part;
    }
    return fchmod(fd, mode & 0111 ? 0755 : 0644) < 0
               ? tci_image_store_fail(unpacking->store, "unpack", reterr)
               : 0;
}

static int unpack_entry(struct unpacking *unpacking, const char *header, struct tc_error *reterr)
{
    char target[101] = "", path[101] = "";
    const char *name, *whole = unpacking->path, *to = unpacking->target;
    uint64_t mode, size;
    int r = 0;

    if (!read_octal(header + 100, 8, &mode) || !read_octal(header + 124, 12, &size))
        return bad(unpacking, "has a broken header", reterr);
    if (header[156] == 'x')
        return take_extended(unpacking, size, reterr);
    memcpy(path, header, 100);
    memcpy(target, header + 157, 100);
    whole = *whole ? whole : path;
    to = *to ? to : target;
    if (!is_plain(whole))
        return bad(unpacking, "has a name that leads elsewhere", reterr);
    if (enter(unpacking, whole, &name, reterr) < 0)
        return -1;
    if (header[156] == '0')
        return unpack_file(unpacking, name, mode, size, reterr);
    if (size)
        return bad(unpacking, "has a broken header", reterr);
    if (header[156] == '5')
        r = mkdirat(unpacking->parent, name, 0700) < 0 ||
                    fchmodat(unpacking->parent, name, mode & 01000 ? 01777 : 0755, 0) < 0
                ? -1
                : 0;
    else if (header[156] == '2' && *to)
        r = symlinkat(to, unpacking->parent, name);
    else
        return bad(unpacking, "has something that is no file, directory or link", reterr);
    return r < 0 ? cannot(unpacking, reterr) : 0;
}

static int unpack_all(struct unpacking *unpacking, struct tc_error *reterr)
{
    char header[block], digest[TCI_SHA256_TEXT_MAX];
    uint64_t all = unpacking->left;

    while (unpacking->left > 0) {
        if (take(unpacking, header, block, reterr) < 0)
            return -1;
        if (header[0]) {
            if (unpack_entry(unpacking, header, reterr) < 0)
                return -1;
            if (header[156] != 'x')
                unpacking->path[0] = unpacking->target[0] = '\0';
        }
        if (tci_image_step(unpacking->watch, TCI_IMAGE_UNPACKING, all - unpacking->left, all,
                           reterr) < 0)
            return -1;
    }
    tci_sha256_end_text(&unpacking->hash, digest);
    if (strcmp(digest, unpacking->image->layer.digest) != 0)
        return bad(unpacking, "has other bytes than its name says", reterr);
    return 0;
}

/* ---- the directory ------------------------------------------------------------------------------------ */

void tci_image_unpacked_name(const char *digest, char ret[96])
{
    (void)snprintf(ret, 96, "unpacked/sha256-%s", digest);
}

bool tci_image_is_unpacked(const struct tci_image_store *store, const char *digest)
{
    struct stat status;
    char name[96];
    tci_image_unpacked_name(digest, name);
    return fstatat(store->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode) && (status.st_uid == 0 || status.st_uid == geteuid()) &&
           !(status.st_mode & 0022);
}

static int unpack_in(struct unpacking *unpacking, struct tc_error *reterr)
{
    int r;
    unpacking->archive = tci_blob_open(unpacking->store, &unpacking->image->layer, reterr);
    unpacking->buffer = malloc(copy_size);
    if (!unpacking->buffer)
        return tci_error_no_memory(reterr);
    r = unpacking->archive < 0 ? -1 : unpack_all(unpacking, reterr);
    free(unpacking->buffer);
    unpacking->archive = tci_close(unpacking->archive);
    unpacking->parent = tci_close(unpacking->parent);
    return r;
}

int tci_image_unpack(struct tci_image_store *store, const struct tci_image *image,
                     const struct tci_image_watch *watch, struct tc_error *reterr)
{
    char temporary[64], name[96];
    struct unpacking *unpacking;
    int r = -1;

    if (tci_image_is_unpacked(store, image->manifest.digest))
        return 0;
    unpacking = calloc(1, sizeof *unpacking);
    if (!unpacking)
        return tci_error_no_memory(reterr);
    *unpacking = (struct unpacking){ .store = store, .watch = watch, .image = image };
    unpacking->archive = unpacking->root = unpacking->parent = -1;
    unpacking->left = image->layer.size;
    tci_sha256_begin(&unpacking->hash);
    tci_image_temporary(temporary);
    tci_image_unpacked_name(image->manifest.digest, name);
    if (mkdirat(store->directory, temporary, 0755) == 0)
        unpacking->root = openat(store->directory, temporary,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (unpacking->root < 0 || fchmod(unpacking->root, 0755) < 0)
        tci_image_store_fail(store, "unpack", reterr);
    else
        r = unpack_in(unpacking, reterr);
    /* On the disk before it has its name: after a crash half a root must not look like a whole one. */
    if (r == 0 && (syncfs(unpacking->root) < 0 ||
                   renameat(store->directory, temporary, store->directory, name) < 0))
        r = tci_image_store_fail(store, "unpack", reterr);
    if (r < 0)
        (void)tci_image_remove(store->directory, temporary);
    tci_close(unpacking->root);
    free(unpacking);
    return r;
}
