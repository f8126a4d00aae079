/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: manifests and configurations of images, and descriptors, which name one blob in the JSON of another.
 * A digest is one before it becomes the name of a file.
 */
#include "backend/oci/image_json.h"

#include <stdio.h>
#include <string.h>
#include "base/moment.h"

enum { text_max = 1 << 20 };

#define MEDIA_CONFIG   "application/vnd.oci.image.config.v1+json"
#define MEDIA_LAYER    "application/vnd.oci.image.layer.v1.tar"
#define LABEL_VERSION  "io.toolcage.version"
#define LABEL_PACKAGES "io.toolcage.packages"

void tci_image_json_freep(json_t **json)
{
    json_decref(*json);
}

int tci_image_strange(const char *what, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "%s of the image store is not as toolcage writes it",
                  what);
    tci_error_remedy(reterr, "run 'toolcage image build' again, with an empty directory in "
                             "TOOLCAGE_IMAGES if this stays so");
    return -1;
}

/* A member that is a text; "" if it is none. */
const char *tci_image_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* {"digest": "sha256:...", "size": N, "mediaType": "..."} */
bool tci_image_read_descriptor(const json_t *json, const char *media_type, struct tci_blob *ret)
{
    const char *digest = tci_image_text_of(json, "digest");
    const json_t *size = json_object_get(json, "size");
    if (strcmp(tci_image_text_of(json, "mediaType"), media_type) != 0 ||
        strncmp(digest, "sha256:", 7) != 0 || !tci_image_is_digest(digest + 7) ||
        !json_is_integer(size) || json_integer_value(size) < 0)
        return false;
    memcpy(ret->digest, digest + 7, sizeof ret->digest);
    ret->size = (uint64_t)json_integer_value(size);
    return true;
}

void tci_image_write_descriptor(struct tci_json *json, const char *media_type,
                                const struct tci_blob *blob)
{
    tci_json_string(json, "mediaType", media_type);
    tci_json_printf(json, "digest", "sha256:%s", blob->digest);
    tci_json_unsigned(json, "size", blob->size);
}

static int read_config(const json_t *config, const struct tci_image *image, struct tci_arena *arena,
                       struct tci_image *ret, struct tc_error *reterr)
{
    const json_t *labels = json_object_get(json_object_get(config, "config"), "Labels");
    const json_t *layers = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    const char *diff_id = json_string_value(json_array_get(layers, 0));

    /* The layer is not compressed: its two digests are one. */
    if (json_array_size(layers) != 1 || !diff_id || strncmp(diff_id, "sha256:", 7) != 0 ||
        strcmp(diff_id + 7, image->layer.digest) != 0)
        return tci_image_strange("a configuration", reterr);
    (void)snprintf(ret->created, sizeof ret->created, "%s", tci_image_text_of(config, "created"));
    ret->architecture = tci_arena_strdup(arena, tci_image_text_of(config, "architecture"));
    ret->version = tci_arena_strdup(arena, tci_image_text_of(labels, LABEL_VERSION));
    ret->packages = tci_arena_strdup(arena, tci_image_text_of(labels, LABEL_PACKAGES));
    if (!ret->architecture || !ret->version || !ret->packages)
        return tci_error_no_memory(reterr);
    return 0;
}

int tci_image_read(const struct tci_image_store *store, const struct tci_image_entry *entry,
                   struct tci_arena *arena, struct tci_image *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_image_json_freep) json_t *manifest = NULL, *config = NULL;
    const json_t *layers;
    char *text;

    *ret = (struct tci_image){ .manifest.size = entry->size };
    memcpy(ret->manifest.digest, entry->name.digest, sizeof ret->manifest.digest);
    if (tci_blob_read(store, arena, &ret->manifest, &text, reterr) < 0)
        return -1;
    manifest = json_loadb(text, ret->manifest.size, JSON_REJECT_DUPLICATES, NULL);
    layers = json_object_get(manifest, "layers");
    if (json_array_size(layers) != 1 ||
        !tci_image_read_descriptor(json_object_get(manifest, "config"), MEDIA_CONFIG,
                                   &ret->config) ||
        !tci_image_read_descriptor(json_array_get(layers, 0), MEDIA_LAYER, &ret->layer))
        return tci_image_strange("a manifest", reterr);
    if (tci_blob_read(store, arena, &ret->config, &text, reterr) < 0)
        return -1;
    config = json_loadb(text, ret->config.size, JSON_REJECT_DUPLICATES, NULL);
    return read_config(config, ret, arena, ret, reterr);
}

static void write_config(struct tci_json *json, const struct tci_blob *layer, int64_t created,
                         const char *architecture, const char *packages)
{
    char moment[TCI_MOMENT_TEXT_MAX];
    tci_moment_format(created, moment);
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "created", moment);
    tci_json_string(json, "architecture", architecture);
    tci_json_string(json, "os", "linux");
    tci_json_object_begin(json, "config");
    tci_json_array_begin(json, "Env");
    tci_json_string(json, NULL, "PATH=/usr/local/bin:/usr/bin:/bin");
    tci_json_array_end(json);
    tci_json_array_begin(json, "Cmd");
    tci_json_string(json, NULL, "/bin/bash");
    tci_json_array_end(json);
    tci_json_object_begin(json, "Labels");
    tci_json_string(json, LABEL_VERSION, tc_version());
    tci_json_string(json, LABEL_PACKAGES, packages);
    tci_json_object_end(json);
    tci_json_object_end(json);
    tci_json_object_begin(json, "rootfs");
    tci_json_string(json, "type", "layers");
    tci_json_array_begin(json, "diff_ids");
    tci_json_printf(json, NULL, "sha256:%s", layer->digest);
    tci_json_array_end(json);
    tci_json_object_end(json);
    tci_json_array_begin(json, "history");
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "created", moment);
    tci_json_string(json, "created_by", "toolcage image build");
    tci_json_object_end(json);
    tci_json_array_end(json);
    tci_json_object_end(json);
}

int tci_image_write(struct tci_image_store *store, const struct tci_blob *layer, int64_t created,
                    const char *architecture, const char *packages, struct tci_blob *ret,
                    struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max - 1);
    tc_cleanup(tci_buf_free) struct tci_buf manifest = TCI_BUF_INIT(text_max - 1);
    struct tci_json json = { .out = &text };
    struct tci_blob config;

    write_config(&json, layer, created, architecture, packages);
    if (tci_buf_check(&text, reterr) < 0 ||
        tci_blob_put(store, text.data, text.length, &config, reterr) < 0)
        return -1;
    json = (struct tci_json){ .out = &manifest };
    tci_json_object_begin(&json, NULL);
    tci_json_unsigned(&json, "schemaVersion", 2);
    tci_json_string(&json, "mediaType", TCI_IMAGE_MEDIA_MANIFEST);
    tci_json_object_begin(&json, "config");
    tci_image_write_descriptor(&json, MEDIA_CONFIG, &config);
    tci_json_object_end(&json);
    tci_json_array_begin(&json, "layers");
    tci_json_object_begin(&json, NULL);
    tci_image_write_descriptor(&json, MEDIA_LAYER, layer);
    tci_json_object_end(&json);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    if (tci_buf_check(&manifest, reterr) < 0)
        return -1;
    return tci_blob_put(store, manifest.data, manifest.length, ret, reterr);
}
