/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a file that a call brought back, as content: small pictures, sounds and texts as themselves, the
 * rest as a link to a resource.
 *
 * The attack: names and bytes are the cage's. A file is read only below the directory that was made for
 * this call, links refused on the whole way, and only as much of it as its kind may have here; a
 * replayed result names places of another time, which are not looked at. A picture is one by its bytes:
 * the core has looked at them (media_type.h); one that is a document with scripts (SVG) is a text.
 */
#include <string.h>
#include "base/arena.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/utf8.h"
#include "json/write.h"
#include "mcp/job.h"

enum {
    blob_max = 1024 * 1024,
    text_max = 64 * 1024,
    note_max = 16 * 1024,
};

enum kind { KIND_IMAGE, KIND_AUDIO, KIND_TEXT, KIND_OTHER };

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t length = strlen(text), tail = strlen(with);
    return length >= tail && strcmp(text + length - tail, with) == 0;
}

static enum kind kind_of(const char *type)
{
    static const char *const texts[] = { "application/json",     "application/jsonl",
                                         "application/x-ndjson", "application/xml",
                                         "application/toml",     "application/yaml" };
    if (begins(type, "text/") || ends(type, "+json") || ends(type, "+xml"))
        return KIND_TEXT;
    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (strcmp(type, texts[i]) == 0)
            return KIND_TEXT;
    if (begins(type, "image/"))
        return KIND_IMAGE;
    return begins(type, "audio/") ? KIND_AUDIO : KIND_OTHER;
}

/* Its place below the directory of the call; NULL: it is not there. */
static const char *place_in(const char *directory, const char *saved)
{
    if (!directory || !saved || !begins(saved, directory) || saved[strlen(directory)] != '/')
        return NULL;
    return saved + strlen(directory) + 1;
}

static bool is_text(const char *bytes, size_t length)
{
    uint32_t code_point;
    for (size_t i = 0, size; i < length; i += size) {
        size = tci_utf8_decode(bytes + i, length - i, &code_point);
        if (!size || !code_point)
            return false;
    }
    return true;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- the forms ------------------------------------------------------------------------------ */

static void put_base64(struct tci_json *json, const char *key, const char *bytes, size_t length)
{
    tci_json_raw(json, key, "\"");
    tci_base64_encode(json->out, bytes, length);
    tci_buf_char(json->out, '"');
}

static void put_media(struct tci_json *json, const char *type, const struct tc_file *file,
                      const char *bytes, size_t length)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", type);
    put_base64(json, "data", bytes, length);
    tci_json_string(json, "mimeType", file->media_type);
    tci_json_object_end(json);
}

static void put_embedded(const struct tci_mcp_content *content, size_t number,
                         struct tci_json *json, bool as_text, const char *bytes, size_t length)
{
    const struct tc_file *file = &content->result->files[number];
    const char *uri = content->uris ? content->uris[number] : NULL;

    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "resource");
    tci_json_object_begin(json, "resource");
    if (uri)
        tci_json_string(json, "uri", uri);
    else
        tci_json_printf(json, "uri", "toolcage://call/%s/file/%zu", content->result->call_id,
                        number);
    tci_json_string(json, "mimeType", file->media_type);
    if (as_text)
        tci_json_bytes(json, "text", bytes, length);
    else
        put_base64(json, "blob", bytes, length);
    tci_json_object_end(json);
    tci_json_object_end(json);
}

static void put_link(struct tci_json *json, const struct tc_file *file, const char *uri)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "resource_link");
    tci_json_string(json, "uri", uri);
    tci_json_string(json, "name", name_of(file->path));
    tci_json_string(json, "description", file->path);
    tci_json_string(json, "mimeType", file->media_type);
    tci_json_unsigned(json, "size", file->size);
    tci_json_object_end(json);
}

/* Where there is neither room for its bytes nor a link: what is known of it. */
static int put_note(struct tci_json *json, const struct tc_file *file, const char *uri,
                    struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(note_max);

    tci_buf_printf(&text, "file %s: %llu bytes, %s, SHA-256 %s", file->path,
                   (unsigned long long)file->size, file->media_type, file->sha256);
    if (uri)
        tci_buf_printf(&text, "; read it as the resource %s", uri);
    else
        tci_buf_string(&text, "; it is not kept here");
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "text");
    tci_json_bytes(json, "text", text.data, text.length);
    tci_json_object_end(json);
    return 0;
}

/* ---- the choice ----------------------------------------------------------------------------- */

/* How many bytes of it may stand in the answer. */
static size_t most_of(enum kind kind, enum tci_mcp_version version)
{
    if (kind == KIND_OTHER)
        return version < TCI_MCP_2025_06_18 ? blob_max : 0; /* it knows no links */
    if (kind == KIND_AUDIO || kind == KIND_IMAGE)
        return blob_max;
    return text_max;
}

/* 1: it is in the answer; 0: it has to be linked; -1: no memory. */
static int put_inline(const struct tci_mcp_content *content, size_t number, struct tci_json *json,
                      size_t *room)
{
    const struct tc_file *file = &content->result->files[number];
    const char *place = place_in(content->out_directory, file->saved);
    enum kind kind = kind_of(file->media_type);
    size_t most = most_of(kind, content->version), length = 0;
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = NULL;
    struct tc_error ignored = { 0 };
    char *bytes = NULL;

    if (!place || file->size > most || file->size > *room || most == 0)
        return 0;
    arena = tci_arena_new();
    if (!arena)
        return -1;
    if (tci_file_read_beneath(arena, content->out_directory, place, most, &bytes, &length,
                              &ignored) < 0)
        return ignored.code == TC_ERROR_NO_MEMORY ? -1 : 0; /* somebody took it away */
    if (kind == KIND_TEXT && !is_text(bytes, length) && content->version >= TCI_MCP_2025_06_18)
        return 0;
    *room -= length < *room ? length : *room;
    if (kind == KIND_IMAGE || kind == KIND_AUDIO)
        put_media(json, kind == KIND_IMAGE ? "image" : "audio", file, bytes, length);
    else
        put_embedded(content, number, json, kind == KIND_TEXT && is_text(bytes, length), bytes,
                     length);
    return 1;
}

int tci_mcp_content_file(const struct tci_mcp_content *content, size_t number,
                         struct tci_json *json, size_t *room, struct tc_error *reterr)
{
    const struct tc_file *file = &content->result->files[number];
    const char *uri = content->uris ? content->uris[number] : NULL;
    int r = put_inline(content, number, json, room);

    if (r < 0)
        return tci_error_no_memory(reterr);
    if (r > 0)
        return 0;
    if (!uri || content->version < TCI_MCP_2025_06_18)
        return put_note(json, file, uri, reterr);
    put_link(json, file, uri);
    return 0;
}
