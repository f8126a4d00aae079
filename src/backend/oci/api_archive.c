/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what lies at a path of an image, as the engine itself says it: where its layers cannot be read
 * (root's Docker, asked by somebody else), or are no directories. It is asked about a container of its own
 * that has no mounts: for one with mounts Docker would make their places, which is what this is to prevent.
 */
#include "backend/oci/api_look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/base64.h"
#include "base/clock.h"
#include "base/uuid.h"

enum { REMOVE_MS = 1000, LOOK_MS = 4000 };
/* Go's numbers. */
#define MODE_DIRECTORY (UINT64_C(1) << 31)
#define MODE_LINK      (UINT64_C(1) << 27)
#define MODE_OTHER     (UINT64_C(7) << 24 | UINT64_C(1) << 21 | UINT64_C(1) << 19)

static void write_body(struct tci_buf *out, const struct tci_api *api,
                       const struct tci_api_image *image, const char *name, const char *owner)
{
    const bool docker = api->engine == TCI_OCI_ENGINE_DOCKER;
    struct tci_json json = { .out = out };
    tci_json_object_begin(&json, NULL);
    tci_json_printf(&json, docker ? "Image" : "image", "%s%s", docker ? "sha256:" : "", image->id);
    tci_json_array_begin(&json, docker ? "Entrypoint" : "entrypoint");
    tci_json_string(&json, NULL, TCI_ENTRY_DIRECTORY);
    tci_json_array_end(&json);
    tci_json_object_begin(&json, docker ? "Labels" : "labels");
    tci_json_string(&json, TCI_API_LABEL_OWNER, owner);
    tci_json_object_end(&json);
    if (docker) {
        tci_json_object_begin(&json, "HostConfig");
        tci_json_string(&json, "NetworkMode", "none");
        tci_json_object_begin(&json, "Tmpfs"); /* or it would make volumes, and fill them */
        for (size_t i = 0; i < image->volume_count; i++)
            tci_json_string(&json, image->volumes[i], "size=65536");
        tci_json_object_end(&json);
        tci_json_object_end(&json);
    } else {
        tci_json_string(&json, "name", name);
        tci_json_string(&json, "image_volume_mode", "ignore");
        tci_json_object_begin(&json, "netns");
        tci_json_string(&json, "nsmode", "none");
        tci_json_object_end(&json);
    }
    tci_json_object_end(&json);
}

int tci_api_archive_open(struct tci_api_archive *archive, const struct tci_api *api,
                         const struct tci_api_image *image, const char *owner,
                         struct tc_error *reterr)
{
    struct tci_api_request request = { .method = "POST",
                                       .limit_ms = LOOK_MS,
                                       .abort = archive->abort };
    struct tci_api_answer answer;
    struct tci_buf body = TCI_BUF_INIT(65536);
    char random[TCI_API_NAME_LENGTH + 1], path[96], words[TCI_API_WORDS_MAX];
    int r;
    if (tci_random_hex(TCI_API_NAME_LENGTH / 2, random) < 0)
        return tci_error_errno(reterr, errno, "taking random numbers");
    archive->api = api;
    archive->until_us = tci_clock_us() + LOOK_MS * UINT64_C(1000);
    (void)snprintf(archive->name, sizeof archive->name, TCI_API_NAME_PREFIX "%s", random);
    (void)snprintf(path, sizeof path, "/containers/create%s%s",
                   api->engine == TCI_OCI_ENGINE_DOCKER ? "?name=" : "",
                   api->engine == TCI_OCI_ENGINE_DOCKER ? archive->name : "");
    write_body(&body, api, image, archive->name, owner);
    r = tci_buf_check(&body, reterr);
    request.path = path;
    request.body = body.data;
    request.length = body.length;
    if (r == 0) {
        archive->is_made = true; /* also when the answer does not come */
        r = tci_api_send(api, &request, &answer, reterr);
        if (r == 0 && answer.status != 201) {
            tci_api_words(&answer, words);
            r = tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                              "%s does not make a container to look at the image: %s",
                              tci_api_name(api), words);
        }
        tci_api_answer_free(&answer);
    }
    tci_buf_free(&body);
    return r;
}

/* {"mode":134218239,"linkTarget":"/etc"}, in base64. */
static bool read_stat(const char *text, struct tci_api_seen *ret)
{
    struct tci_buf plain = TCI_BUF_INIT(TCI_API_STAT_MAX);
    json_t *document = NULL;
    json_int_t mode;
    const char *target;
    bool good = tci_base64_decode(&plain, text, strlen(text)) == 0 && plain.length > 0;
    if (good)
        document = json_loadb(plain.data, plain.length, 0, NULL);
    tci_buf_free(&plain);
    mode = json_integer_value(json_object_get(document, "mode"));
    target = json_string_value(json_object_get(document, "linkTarget"));
    good = json_is_integer(json_object_get(document, "mode")) && mode >= 0;
    ret->kind = (uint64_t)mode & MODE_LINK        ? TCI_API_LINK
                : (uint64_t)mode & MODE_DIRECTORY ? TCI_API_DIRECTORY
                : (uint64_t)mode & MODE_OTHER     ? TCI_API_OTHER
                                                  : TCI_API_FILE;
    if (good && ret->kind == TCI_API_LINK) {
        good = target && *target && strlen(target) < sizeof ret->target;
        if (good)
            (void)snprintf(ret->target, sizeof ret->target, "%s", target);
    }
    json_decref(document);
    return good;
}

static void write_path(struct tci_buf *out, const char *name, const char *path)
{
    tci_buf_printf(out, "/containers/%s/archive?path=", name);
    for (; *path; path++) {
        const unsigned char c = (unsigned char)*path;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("._-/", c))
            tci_buf_char(out, *path);
        else
            tci_buf_printf(out, "%%%02X", c);
    }
}

int tci_api_archive_look(const struct tci_api_archive *archive, const char *path,
                         struct tci_api_seen *ret, struct tc_error *reterr)
{
    struct tci_api_request request = { .method = "HEAD",
                                       .limit_ms = tci_api_left_ms(archive->until_us),
                                       .abort = archive->abort };
    struct tci_api_answer answer = { 0 };
    struct tci_buf target = TCI_BUF_INIT(TCI_API_TARGET_MAX);
    int r;
    write_path(&target, archive->name, path);
    r = tci_buf_check(&target, reterr);
    request.path = target.data;
    if (r == 0)
        r = tci_api_send(archive->api, &request, &answer, reterr);
    if (r == 0 && answer.status == 404)
        ret->kind = TCI_API_MISSING;
    else if (r == 0 && (answer.status != 200 || !read_stat(answer.stat, ret)))
        r = tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                          "%s does not say what is at %.300s in the image (%d)",
                          tci_api_name(archive->api), path, answer.status);
    tci_api_answer_free(&answer);
    tci_buf_free(&target);
    return r;
}

int tci_api_archive_confirm(const struct tci_api_archive *archive, struct tc_error *reterr)
{
    struct tci_api_seen root = { .kind = TCI_API_MISSING };
    if (tci_api_archive_look(archive, "/", &root, reterr) < 0)
        return -1;
    if (root.kind == TCI_API_DIRECTORY)
        return 0;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the container in which %s showed the image was removed meanwhile",
                  tci_api_name(archive->api));
    tci_error_remedy(reterr, "call again; what removes containers that were not started "
                             "(\"prune\") can spare those with the label " TCI_API_LABEL_OWNER);
    return -1;
}

void tci_api_archive_close(struct tci_api_archive *archive)
{
    if (archive->is_made)
        (void)tci_api_remove(archive->api, archive->name, REMOVE_MS, NULL, NULL);
    archive->is_made = false;
}
