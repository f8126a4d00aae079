/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: building toolcage/tool-sandbox from the packages of a Debian system, without a registry. The same
 * packages give the same bytes, whoever builds and wherever.
 */
#include "backend/oci/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"

enum { label_max = 65536 };

/* The words that the OCI has for Debian's. */
static const char *architecture_of(const char *debian)
{
    static const struct {
        const char *debian, *oci;
    } words[] = { { "i386", "386" },
                  { "armhf", "arm" },
                  { "armel", "arm" },
                  { "ppc64el", "ppc64le" },
                  { "mips64el", "mips64le" } };
    for (size_t i = 0; i < tci_array_size(words); i++)
        if (strcmp(words[i].debian, debian) == 0)
            return words[i].oci;
    return debian;
}

/* When the image was made, for all that is in it: when the youngest of its files was, or what
 * $SOURCE_DATE_EPOCH says. Not now: then no two images would be the same. */
static int moment_of(const struct tci_file_list *list, int64_t *ret, struct tc_error *reterr)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    *ret = list->newest;
    if (!text || !*text)
        return 0;
    if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) {
        tci_error_set(reterr, TC_ERROR_USAGE, "SOURCE_DATE_EPOCH is not a number of seconds");
        tci_error_remedy(reterr, "unset it, or write seconds since 1970");
        return -1;
    }
    *ret = strtoll(text, NULL, 10);
    return 0;
}

static int make_image(struct tci_image_store *store, const char *root,
                      const struct tci_image_name *name, const struct tci_image_watch *watch,
                      struct tci_arena *arena, struct tci_image_entry *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf label = TCI_BUF_INIT(label_max);
    tc_cleanup(tci_files_free) struct tci_file_list files = { .root = -1 };
    struct tci_package_list packages;
    struct tci_blob layer, manifest;
    int64_t moment;

    if (tci_image_step(watch, TCI_IMAGE_PACKAGES, 0, 0, reterr) < 0 ||
        tci_packages_choose(arena, root, &packages, reterr) < 0 ||
        tci_image_step(watch, TCI_IMAGE_PACKAGES, 0, 0, reterr) < 0 ||
        tci_packages_check(arena, root, &packages, reterr) < 0 ||
        tci_files_collect(arena, root, &packages, &files, reterr) < 0 ||
        moment_of(&files, &moment, reterr) < 0 ||
        tci_image_tar(store, &files, moment, watch, &layer, reterr) < 0)
        return -1;
    for (size_t i = 0; i < packages.count; i++)
        if (packages.packages[i].chosen)
            tci_buf_printf(&label, "%s%s=%s", label.length ? " " : "", packages.packages[i].name,
                           packages.packages[i].version);
    if (tci_buf_check(&label, reterr) < 0 ||
        tci_image_write(store, &layer, moment, architecture_of(packages.architecture), label.data,
                        &manifest, reterr) < 0)
        return -1;
    *ret = (struct tci_image_entry){ .name = *name, .size = manifest.size };
    memcpy(ret->name.digest, manifest.digest, sizeof ret->name.digest);
    return 0;
}

static int build_in(struct tci_image_store *store, const char *root,
                    const struct tci_image_name *name, const struct tci_image_watch *watch,
                    struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_image_entry entry;
    struct tci_image image;

    if (!arena)
        return tci_error_no_memory(reterr);
    if (make_image(store, root, name, watch, arena, &entry, reterr) < 0 ||
        tci_image_read(store, &entry, arena, &image, reterr) < 0 ||
        tci_image_unpack(store, &image, watch, reterr) < 0)
        return -1;
    return tci_image_index_add(store, name, &image.manifest, reterr);
}

/* Those who were killed in it may have a last moment in which they write. */
static void remove_system(const struct tci_image_store *store, const char *name)
{
    const struct timespec pause = { 0, 100000000L };
    for (unsigned i = 0; tci_image_remove(store->directory, name) < 0 && i < 50; i++)
        (void)nanosleep(&pause, NULL);
}

int tci_image_build(const struct tci_image_name *name, enum tci_image_source source,
                    const struct tci_image_watch *watch, struct tc_error *reterr)
{
    tc_cleanup(tci_image_store_close) struct tci_image_store store = TCI_IMAGE_STORE_NONE;
    char temporary[64], root[PATH_MAX] = "/";
    int r;

    if (*name->digest)
        return tci_error_set(reterr, TC_ERROR_USAGE,
                             "an image gets its digest when it is built: give it a name and a tag");
    if (tci_image_store_open(true, &store, reterr) < 0 ||
        tci_image_store_lock(&store, watch, reterr) < 0)
        return -1;
    tci_image_temporary(temporary);
    r = source == TCI_IMAGE_FROM_DEBOOTSTRAP
            ? tci_image_debootstrap(&store, temporary, watch, root, reterr)
            : 0;
    if (r == 0)
        r = build_in(&store, root, name, watch, reterr);
    /* Also what was finished and belongs to no image: blobs of a build that was given up. */
    if (r < 0)
        tci_image_collect(&store);
    if (source == TCI_IMAGE_FROM_DEBOOTSTRAP)
        remove_system(&store, temporary);
    return r;
}
