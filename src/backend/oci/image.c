/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding, listing and removing images of our own stores. Finding is what a plan does: it reads one
 * small file and looks at one directory, and unpacks only what nobody has unpacked yet.
 */
#include "backend/oci/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "backend/oci/oci.h"
#include "base/fd.h"
#include "base/quote.h"

struct found {
    struct tci_image_store store;
    struct tci_image_index index;
    const struct tci_image_entry *entry;
};

static void found_free(struct found *found)
{
    tci_image_index_free(&found->index);
    tci_image_store_close(&found->store);
}

static int missing(const struct tci_image_name *name, struct tc_error *reterr)
{
    char text[TCI_IMAGE_NAME_MAX], quoted[TCI_QUOTE_MAX];
    tci_image_name_text(name, text);
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "there is no image %s in toolcage's image store",
                  tci_quote(text, strlen(text), quoted));
    if (*name->tag && strcmp(text, TCI_IMAGE_DEFAULT ":latest") == 0)
        tci_error_remedy(reterr, "run 'toolcage image build'");
    else
        tci_error_remedy(reterr,
                         "'toolcage image list' shows what there is; 'toolcage image build "
                         "--name NAME' makes one; others are for an engine (podman, docker)");
    return -1;
}

/* In one's own store, else in root's. */
static int find(const struct tci_image_name *name, bool own_only, struct found *ret,
                struct tc_error *reterr)
{
    for (unsigned i = 0; i < (own_only ? 1U : 2U); i++) {
        *ret = (struct found){ .store = TCI_IMAGE_STORE_NONE };
        if ((i == 0 ? tci_image_store_open(false, &ret->store, reterr)
                    : tci_image_store_open_system(&ret->store, reterr)) < 0 ||
            tci_image_index_read(&ret->store, &ret->index, reterr) < 0) {
            found_free(ret);
            *ret = (struct found){ .store = TCI_IMAGE_STORE_NONE };
            return -1;
        }
        ret->entry = tci_image_index_find(&ret->index, name);
        if (ret->entry)
            return 0;
        found_free(ret);
    }
    *ret = (struct found){ .store = TCI_IMAGE_STORE_NONE };
    return missing(name, reterr);
}

int tci_image_find(const char *reference, char ret[PATH_MAX], struct tc_error *reterr)
{
    tc_cleanup(found_free) struct found found = { .store = TCI_IMAGE_STORE_NONE };
    struct tci_image_name name;
    struct tci_image image;
    char unpacked[96];
    int length;

    if (tci_image_name_parse(reference, &name, reterr) < 0 ||
        find(&name, false, &found, reterr) < 0)
        return -1;
    if (!tci_image_is_unpacked(&found.store, found.entry->name.digest) &&
        (tci_image_store_lock(&found.store, NULL, reterr) < 0 ||
         tci_image_read(&found.store, found.entry, found.index.arena, &image, reterr) < 0 ||
         tci_image_unpack(&found.store, &image, NULL, reterr) < 0))
        return -1;
    tci_image_unpacked_name(found.entry->name.digest, unpacked);
    length = snprintf(ret, PATH_MAX, "%s/%s", found.store.path, unpacked);
    return length < PATH_MAX ? 0
                             : tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                                             "the path of the image store is too long");
}

/* ---- telling -------------------------------------------------------------------------------------------- */

static void tell_one(const struct found *found, const struct tci_image_entry *entry,
                     tci_image_tell *tell, void *context)
{
    struct tc_error error = { 0 };
    struct tci_image image;
    struct tci_image_info info = { .store = found->store.path, .entry = entry };
    if (tci_image_read(&found->store, entry, found->index.arena, &image, &error) == 0) {
        info.image = &image;
        info.size = image.manifest.size + image.config.size + image.layer.size;
    }
    info.problem = info.image ? NULL : error.message;
    info.unpacked = tci_image_is_unpacked(&found->store, entry->name.digest);
    tell(context, &info);
}

int tci_image_each(tci_image_tell *tell, void *context, struct tc_error *reterr)
{
    for (unsigned i = 0; i < 2; i++) {
        tc_cleanup(found_free) struct found found = { .store = TCI_IMAGE_STORE_NONE };
        if ((i == 0 ? tci_image_store_open(false, &found.store, reterr)
                    : tci_image_store_open_system(&found.store, reterr)) < 0 ||
            tci_image_index_read(&found.store, &found.index, reterr) < 0)
            return -1;
        for (size_t k = 0; k < found.index.count; k++)
            tell_one(&found, &found.index.entries[k], tell, context);
    }
    return 0;
}

int tci_image_show(const struct tci_image_name *name, tci_image_tell *tell, void *context,
                   struct tc_error *reterr)
{
    tc_cleanup(found_free) struct found found = { .store = TCI_IMAGE_STORE_NONE };
    struct tci_image image;
    if (find(name, false, &found, reterr) < 0 ||
        tci_image_read(&found.store, found.entry, found.index.arena, &image, reterr) < 0 ||
        tci_blob_check(&found.store, &image.layer, reterr) < 0)
        return -1;
    tell_one(&found, found.entry, tell, context);
    return 0;
}

int tci_image_open(const struct tci_image_name *name, struct tci_arena *arena,
                   struct tci_image_store *ret_store, struct tci_image_entry *ret_entry,
                   struct tci_image *ret_image, struct tc_error *reterr)
{
    tc_cleanup(found_free) struct found found = { .store = TCI_IMAGE_STORE_NONE };
    if (find(name, false, &found, reterr) < 0 ||
        tci_image_read(&found.store, found.entry, arena, ret_image, reterr) < 0)
        return -1;
    *ret_entry = *found.entry;
    *ret_store = found.store;
    found.store.directory = found.store.lock = -1; /* handed over */
    return 0;
}

/* ---- removing ------------------------------------------------------------------------------------------- */

/* What the images of the index need, as names of files. */
struct needed {
    const struct tci_image_index *index;
    const struct tci_image *images;
};

static bool is_needed(const struct needed *needed, const char *digest)
{
    for (size_t i = 0; i < needed->index->count; i++)
        if (strcmp(digest, needed->images[i].manifest.digest) == 0 ||
            strcmp(digest, needed->images[i].config.digest) == 0 ||
            strcmp(digest, needed->images[i].layer.digest) == 0)
            return true;
    return false;
}

/* Does a plan hold this root directory (plan.c)? The accident: an image is removed or built anew, and calls that run
 * lose their files. Files are held by nobody. */
static bool is_in_use(int directory, const char *name)
{
    tc_cleanup(tci_closep) int fd = openat(directory, name,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Names in a directory of the store that begin with `prefix`. One that goes is moved to tmp first: it is
 * never half there. */
static int remove_unneeded(struct tci_image_store *store, const char *directory, const char *prefix,
                           const struct needed *needed)
{
    int fd = openat(store->directory, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!stream) {
        tci_close(fd);
        return -1;
    }
    /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
    while ((entry = readdir(stream))) {
        const char *name = entry->d_name;
        char temporary[64];
        if (strncmp(name, prefix, strlen(prefix)) != 0 ||
            !tci_image_is_digest(name + strlen(prefix)) || is_needed(needed, name + strlen(prefix)))
            continue;
        if (is_in_use(fd, name))
            continue; /* for the next time */
        tci_image_temporary(temporary);
        if (renameat(fd, name, store->directory, temporary) < 0 ||
            tci_image_remove(store->directory, temporary) < 0)
            r = -1;
    }
    (void)closedir(stream);
    return r;
}

static int collect(struct tci_image_store *store, struct tc_error *reterr)
{
    tc_cleanup(tci_image_index_free) struct tci_image_index index = { 0 };
    struct needed needed = { .index = &index };
    struct tci_image *images;

    if (tci_image_index_read(store, &index, reterr) < 0)
        return -1;
    images = tci_arena_new_array(index.arena, index.count + 1, struct tci_image);
    if (!images)
        return tci_error_no_memory(reterr);
    needed.images = images;
    /* An image that cannot be read may need anything: then nothing is removed. */
    for (size_t i = 0; i < index.count; i++)
        if (tci_image_read(store, &index.entries[i], index.arena, &images[i], reterr) < 0)
            return -1;
    if (remove_unneeded(store, "unpacked", "sha256-", &needed) < 0 ||
        remove_unneeded(store, "blobs/sha256", "", &needed) < 0)
        return tci_image_store_fail(store, "remove what is not needed any more", reterr);
    return 0;
}

void tci_image_collect(struct tci_image_store *store)
{
    (void)collect(store, NULL);
}

int tci_image_rm(const struct tci_image_name *name, struct tc_error *reterr)
{
    tc_cleanup(found_free) struct found found = { .store = TCI_IMAGE_STORE_NONE };
    struct tci_image_index *index = &found.index;
    size_t at;

    if (find(name, true, &found, reterr) < 0 ||
        tci_image_store_lock(&found.store, NULL, reterr) < 0)
        return -1;
    /* Once more, now that nobody else changes it. */
    tci_image_index_free(index);
    if (tci_image_index_read(&found.store, index, reterr) < 0)
        return -1;
    found.entry = tci_image_index_find(index, name);
    if (!found.entry)
        return missing(name, reterr);
    at = (size_t)(found.entry - index->entries);
    memmove(&index->entries[at], &index->entries[at + 1],
            (index->count - at - 1) * sizeof *index->entries);
    index->count--;
    if (tci_image_index_write(&found.store, index->entries, index->count, reterr) < 0)
        return -1;
    return collect(&found.store, reterr);
}
