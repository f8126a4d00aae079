/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: index.json, which names the images of a store. Trusts nothing in it: every field's type is looked
 * at, and a digest is one before it becomes the name of a file.
 */
#include "backend/oci/image_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"

enum { index_max = 1 << 20, entries_max = 1000 };

#define MEDIA_INDEX     "application/vnd.oci.image.index.v1+json"
#define ANNOTATION_REF  "org.opencontainers.image.ref.name"
#define ANNOTATION_NAME "io.toolcage.image.name"
#define LAYOUT          "{\"imageLayoutVersion\":\"1.0.0\"}"

static bool read_entry(const json_t *json, struct tci_image_entry *ret)
{
    const json_t *annotations = json_object_get(json, "annotations");
    const char *reference = tci_image_text_of(annotations, ANNOTATION_REF);
    struct tci_blob manifest;

    if (!tci_image_read_descriptor(json, TCI_IMAGE_MEDIA_MANIFEST, &manifest))
        return false;
    if (!*reference)
        reference = tci_image_text_of(annotations, ANNOTATION_NAME);
    if (tci_image_name_parse(reference, &ret->name, NULL) < 0 || *ret->name.digest)
        return false;
    if (!json_object_get(annotations, ANNOTATION_REF))
        ret->name.tag[0] = '\0';
    memcpy(ret->name.digest, manifest.digest, sizeof ret->name.digest);
    ret->size = manifest.size;
    return true;
}

static int read_whole(const struct tci_image_store *store, json_t **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = openat(store->directory, "index.json",
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *bytes;
    size_t have = 0;
    ssize_t n;

    *ret = NULL;
    if (fd < 0)
        return errno == ENOENT ? 0 : tci_image_store_fail(store, "read index.json", reterr);
    bytes = malloc(index_max);
    if (!bytes)
        /* cppcheck-suppress resourceLeak ; tc_cleanup closes it */
        return tci_error_no_memory(reterr);
    while (have < index_max && (n = tci_read_some(fd, bytes + have, index_max - have)) > 0)
        have += (size_t)n;
    *ret = have < index_max ? json_loadb(bytes, have, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(bytes);
    return *ret ? 0 : tci_image_strange("index.json", reterr);
}

int tci_image_index_read(const struct tci_image_store *store, struct tci_image_index *ret,
                         struct tc_error *reterr)
{
    tc_cleanup(tci_image_json_freep) json_t *json = NULL;
    const json_t *manifests;
    size_t count;

    *ret = (struct tci_image_index){ .arena = tci_arena_new() };
    if (!ret->arena)
        return tci_error_no_memory(reterr);
    if (store->directory < 0)
        return 0;
    if (read_whole(store, &json, reterr) < 0)
        return -1;
    if (!json)
        return 0;
    manifests = json_object_get(json, "manifests");
    count = json_array_size(manifests);
    if (!json_is_array(manifests) || count > entries_max)
        return tci_image_strange("index.json", reterr);
    ret->entries = tci_arena_new_array(ret->arena, count + 1, struct tci_image_entry);
    if (!ret->entries)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < count; i++)
        if (!read_entry(json_array_get(manifests, i), &ret->entries[ret->count++]))
            return tci_image_strange("index.json", reterr);
    return 0;
}

void tci_image_index_free(struct tci_image_index *index)
{
    tci_arena_free(index->arena);
    index->arena = NULL;
}

const struct tci_image_entry *tci_image_index_find(const struct tci_image_index *index,
                                                   const struct tci_image_name *name)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct tci_image_name *here = &index->entries[i].name;
        if (*name->repository && strcmp(name->repository, here->repository) != 0)
            continue;
        if (*name->digest ? strcmp(name->digest, here->digest) == 0
                          : strcmp(name->tag, here->tag) == 0)
            return &index->entries[i];
    }
    return NULL;
}

static void write_entry(struct tci_json *json, const struct tci_image_entry *entry)
{
    struct tci_blob manifest = { .size = entry->size };
    memcpy(manifest.digest, entry->name.digest, sizeof manifest.digest);
    tci_json_object_begin(json, NULL);
    tci_image_write_descriptor(json, TCI_IMAGE_MEDIA_MANIFEST, &manifest);
    tci_json_object_begin(json, "annotations");
    tci_json_string(json, ANNOTATION_NAME, entry->name.repository);
    if (*entry->name.tag)
        tci_json_printf(json, ANNOTATION_REF, "%s:%s", entry->name.repository, entry->name.tag);
    tci_json_object_end(json);
    tci_json_object_end(json);
}

/* Whole under another name, then renamed: readers take no lock. */
static int replace_file(struct tci_image_store *store, const char *name, const char *bytes,
                        size_t length, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = -1;
    char temporary[64];
    int r = 0;

    tci_image_temporary(temporary);
    fd = openat(store->directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || tci_write_all(fd, bytes, length) < 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0 ||
        renameat(store->directory, temporary, store->directory, name) < 0 ||
        fsync(store->directory) < 0)
        r = tci_image_store_fail(store, "write", reterr);
    if (r < 0 && fd >= 0)
        (void)unlinkat(store->directory, temporary, 0);
    return r;
}

int tci_image_index_write(struct tci_image_store *store, const struct tci_image_entry *entries,
                          size_t count, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(index_max - 1);
    struct tci_json json = { .out = &out };

    tci_json_object_begin(&json, NULL);
    tci_json_unsigned(&json, "schemaVersion", 2);
    tci_json_string(&json, "mediaType", MEDIA_INDEX);
    tci_json_array_begin(&json, "manifests");
    for (size_t i = 0; i < count; i++)
        write_entry(&json, &entries[i]);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    if (tci_buf_check(&out, reterr) < 0 ||
        replace_file(store, "oci-layout", LAYOUT, sizeof LAYOUT - 1, reterr) < 0)
        return -1;
    return replace_file(store, "index.json", out.data, out.length, reterr);
}

int tci_image_index_add(struct tci_image_store *store, const struct tci_image_name *name,
                        const struct tci_blob *manifest, struct tc_error *reterr)
{
    tc_cleanup(tci_image_index_free) struct tci_image_index index = { 0 };
    struct tci_image_entry *entries, *new;
    size_t count = 0;

    if (tci_image_index_read(store, &index, reterr) < 0)
        return -1;
    entries = tci_arena_new_array(index.arena, index.count + 1, struct tci_image_entry);
    if (!entries)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < index.count; i++) {
        struct tci_image_entry entry = index.entries[i];
        bool same_name = strcmp(entry.name.repository, name->repository) == 0;
        bool same = strcmp(entry.name.digest, manifest->digest) == 0;
        if (same_name && strcmp(entry.name.tag, name->tag) == 0)
            entry.name.tag[0] = '\0';
        /* Without a tag it is only kept as what it was before. */
        if (!(same && same_name && !*entry.name.tag))
            entries[count++] = entry;
    }
    if (count == entries_max)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the image store holds too many images");
    new = &entries[count++];
    *new = (struct tci_image_entry){ .name = *name, .size = manifest->size };
    memcpy(new->name.digest, manifest->digest, sizeof new->name.digest);
    return tci_image_index_write(store, entries, count, reterr);
}
