/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: bringing an image into the store of Podman or Docker, over their sockets. They take an archive
 * with manifest.json, the configuration and the layer. It is not written anywhere: it is made of pages, the
 * layer's are those of its file, and blanks behind manifest.json let them begin where a page does.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "backend/oci/api.h"
#include "base/fd.h"
#include "json/write.h"

enum { block = 512, headers = 3 * block, end_size = 2 * block, load_ms = 600000 };

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

struct archive {
    char *bytes; /* NULL: none */
    size_t length, mapped;
};

static void archive_free(struct archive *archive)
{
    if (archive->bytes)
        (void)munmap(archive->bytes, archive->mapped);
    archive->bytes = NULL;
}

static void put(char **to, const char *name, const char *bytes, size_t length)
{
    tci_tar_header(*to, name, '0', 0644, length, 0, NULL);
    if (bytes)
        memcpy(*to + block, bytes, length);
    *to += block + (bytes ? round_up(length, block) : 0);
}

static int describe(const struct tci_image *image, const char *name, struct tci_buf *out,
                    struct tc_error *reterr)
{
    struct tci_json json = { .out = out };
    tci_json_array_begin(&json, NULL);
    tci_json_object_begin(&json, NULL);
    tci_json_printf(&json, "Config", "%s.json", image->config.digest);
    tci_json_array_begin(&json, "RepoTags");
    tci_json_string(&json, NULL, name);
    tci_json_array_end(&json);
    tci_json_array_begin(&json, "Layers");
    tci_json_printf(&json, NULL, "%s/layer.tar", image->layer.digest);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_json_array_end(&json);
    return tci_buf_check(out, reterr);
}

/* The file's last page has zeros behind its end; one more page of them ends the archive. */
static int map_archive(const struct tci_image *image, int layer, size_t head, const char *manifest,
                       size_t manifest_length, const char *config, struct archive *ret,
                       struct tc_error *reterr)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = image->layer.size;
    char name[128], *to;

    ret->length = head + round_up(size, block) + end_size;
    ret->mapped = head + round_up(size, page) + page;
    ret->bytes = mmap(NULL, ret->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    if (ret->bytes == MAP_FAILED) {
        ret->bytes = NULL;
        return tci_error_no_memory(reterr);
    }
    to = ret->bytes;
    put(&to, "manifest.json", manifest, manifest_length);
    (void)snprintf(name, sizeof name, "%s.json", image->config.digest);
    put(&to, name, config, image->config.size);
    (void)snprintf(name, sizeof name, "%s/layer.tar", image->layer.digest);
    put(&to, name, NULL, size);
    /* cppcheck-suppress leakReturnValNotUsed ; it lies in what archive_free gives back */
    if (mmap(to, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, layer, 0) == MAP_FAILED)
        return tci_error_errno(reterr, errno, "cannot read the image's layer");
    return 0;
}

static int make_archive(const struct tci_image_store *store, const struct tci_image *image,
                        const char *name, struct tci_arena *arena, struct archive *ret,
                        struct tc_error *reterr)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), head;
    struct tci_buf manifest = TCI_BUF_INIT(65536);
    tc_cleanup(tci_closep) int layer = -1;
    char *config;
    int r;

    if (tci_blob_check(store, &image->layer, reterr) < 0 ||
        tci_blob_read(store, arena, &image->config, &config, reterr) < 0)
        return -1;
    layer = tci_blob_open(store, &image->layer, reterr);
    if (layer < 0)
        return -1;
    r = describe(image, name, &manifest, reterr);
    head = headers + round_up(manifest.length, block) + round_up(image->config.size, block);
    while (r == 0 && (head % page || manifest.length % block)) {
        tci_buf_char(&manifest, ' ');
        head = headers + round_up(manifest.length, block) + round_up(image->config.size, block);
        r = tci_buf_check(&manifest, reterr);
    }
    if (r == 0)
        r = map_archive(image, layer, head, manifest.data, manifest.length, config, ret, reterr);
    tci_buf_free(&manifest);
    return r;
}

/* ---- the engine ----------------------------------------------------------------------------------- */

/* It says 200 before it has read everything: an error can be in the body. */
static int judge(const struct tci_api *api, const struct tci_api_answer *answer,
                 struct tc_error *reterr)
{
    char words[TCI_API_WORDS_MAX];
    const char *error = answer->body.data ? strstr(answer->body.data, "\"error\"") : NULL;
    if (answer->status == 200 && !error)
        return 0;
    tci_api_words(answer, words);
    return tci_error_set(reterr, TC_ERROR_IO, "%s did not take the image (status %d): %s",
                         tci_api_name(api), answer->status, words);
}

static int send_archive(const struct tci_oci_choice *choice, const char *socket,
                        const struct archive *archive, const struct tci_image_watch *watch,
                        struct tc_error *reterr)
{
    bool docker = choice->engine == TCI_OCI_ENGINE_DOCKER;
    struct tci_api_request request = {
        .method = "POST",
        .path = docker ? "/images/load?quiet=1" : "/v4.0.0/libpod/images/load",
        .body = archive->bytes,
        .length = archive->length,
        .limit_ms = load_ms,
        .abort = watch ? watch->stop : NULL,
    };
    struct tci_api_answer answer = { 0 };
    struct tci_api api = { 0 };
    int r = tci_api_open(&api, choice->engine, socket, reterr);

    if (r == 0)
        r = tci_api_send(&api, &request, &answer, reterr);
    if (r == 0)
        r = judge(&api, &answer, reterr);
    tci_api_answer_free(&answer);
    return r;
}

/* Podman may have no service that runs: then one is started for this. */
static int deliver(const struct tci_oci_choice *choice, const struct archive *archive,
                   const struct tci_image_watch *watch, struct tc_error *reterr)
{
    struct tci_podman_service service = { .alive = -1 };
    struct tci_api_place place = { .directory = -1 };
    char socket[TCI_OCI_SOCKET_MAX];
    int r = 0;

    memcpy(socket, choice->socket, sizeof socket);
    if (*socket)
        return send_archive(choice, socket, archive, watch, reterr);
    r = tci_api_place_open(&place, reterr);
    if (r == 0)
        r = tci_podman_service_start(&service, choice->program, &place, socket, reterr);
    if (r == 0)
        r = send_archive(choice, socket, archive, watch, reterr);
    tci_podman_service_end(&service);
    tci_api_place_close(&place);
    return r;
}

int tci_image_load(const struct tci_image_name *name, const char *engine,
                   const struct tci_image_watch *watch, char ret_name[TCI_IMAGE_NAME_MAX],
                   struct tc_error *reterr)
{
    tc_cleanup(tci_image_store_close) struct tci_image_store store = TCI_IMAGE_STORE_NONE;
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(archive_free) struct archive archive = { 0 };
    struct tci_settings *settings;
    struct tci_oci_choice choice;
    struct tci_image_entry entry;
    struct tci_image image;
    int length;

    if (!arena || !(settings = tci_arena_new_of(arena, struct tci_settings)))
        return tci_error_no_memory(reterr);
    settings->backend = TCI_BACKEND_OCI;
    settings->container.engine = engine;
    if (tci_image_open(name, arena, &store, &entry, &image, reterr) < 0 ||
        tci_oci_choose(settings, &choice, reterr) < 0)
        return -1;
    if (!*entry.name.tag)
        return tci_error_set(reterr, TC_ERROR_USAGE,
                             "this image has no tag, by which an engine could find it");
    /* Podman files what has no registry under "localhost"; Docker has no such word. */
    length = snprintf(ret_name, TCI_IMAGE_NAME_MAX, "%s%s:%s",
                      choice.engine == TCI_OCI_ENGINE_PODMAN ? "localhost/" : "",
                      entry.name.repository, entry.name.tag);
    if (length >= TCI_IMAGE_NAME_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the image's name is too long");
    if (make_archive(&store, &image, ret_name, arena, &archive, reterr) < 0 ||
        tci_image_step(watch, TCI_IMAGE_LOADING, 0, 0, reterr) < 0)
        return -1;
    return deliver(&choice, &archive, watch, reterr);
}
