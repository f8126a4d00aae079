/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: signatures, extensions, and whether bytes are text. The tables are in media_types.def. */
#include "core/media_type.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>
#include "base/attr.h"
#include "base/utf8.h"

enum proof {
    ANY,
    TEXT,
#define SIGNATURE(id, type, offset, bytes) id,
#include "core/media_types.def"
};

static const struct {
    enum proof id;
    const char *type;
    size_t offset, length;
    const char *bytes;
} signatures[] = {
#define SIGNATURE(id, type, offset, bytes) { id, type, offset, sizeof(bytes) - 1, bytes },
#include "core/media_types.def"
};

static const struct {
    const char *extension, *type;
    enum proof proof;
} extensions[] = {
#define EXTENSION(extension, type, proof) { extension, type, proof },
#include "core/media_types.def"
};

/* ---- bytes -------------------------------------------------------------------------------- */

static void note_character(struct tci_media *media, uint32_t c)
{
    /* Line breaks, tabs, form feeds and the escapes of coloured logs are found in texts. */
    if ((c < 0x20 && !(c >= '\t' && c <= '\r') && c != 0x1b) || c == 0x7f)
        media->not_text = true;
    if (c <= ' ')
        return;
    char shown = c < 0x7f ? (char)c : '?';
    if (!media->first)
        media->first = shown;
    else if (!media->second)
        media->second = shown;
    media->last = shown;
}

/* Goes on with a character of which the last piece held the beginning; the bytes of this one that it
 * took. */
static size_t finish_pending(struct tci_media *media, const char *bytes, size_t length)
{
    size_t taken = 0, size = 0;
    uint32_t c;

    while (media->pending_length > 0 && taken < length && media->pending_length < 4 && size == 0) {
        media->pending[media->pending_length++] = (unsigned char)bytes[taken++];
        size = tci_utf8_decode((const char *)media->pending, media->pending_length, &c);
    }
    if (size > 0) {
        note_character(media, c);
        media->pending_length = 0;
    } else if (media->pending_length == 4) {
        media->not_text = true;
    }
    return taken;
}

static void look_for_text(struct tci_media *media, const char *bytes, size_t length)
{
    size_t i = finish_pending(media, bytes, length);

    while (i < length && !media->not_text) {
        uint32_t c;
        size_t size = tci_utf8_decode(bytes + i, length - i, &c);
        if (size > 0) {
            note_character(media, c);
        } else if (length - i < 4 && (unsigned char)bytes[i] >= 0xc2) {
            memcpy(media->pending, bytes + i, length - i);
            media->pending_length = length - i;
            return;
        } else {
            media->not_text = true;
        }
        i += size;
    }
}

void tci_media_add(struct tci_media *media, const void *bytes, size_t length)
{
    size_t room = sizeof media->head - media->head_length;
    size_t taken = length < room ? length : room;

    if (taken > 0)
        memcpy(media->head + media->head_length, bytes, taken);
    media->head_length += taken;
    if (!media->not_text)
        look_for_text(media, bytes, length);
}

/* ---- judging ------------------------------------------------------------------------------ */

/* The extension without its dot; "" when there is none. */
static const char *extension_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot;

    name = slash ? slash + 1 : name;
    dot = strrchr(name, '.');
    return dot && dot > name ? dot + 1 : "";
}

/* It begins and ends as an object or an array does. Nothing else is known about it. */
static bool looks_like_json(const struct tci_media *media)
{
    if (media->first == '{')
        return media->last == '}' && media->second && strchr("\"}", media->second);
    if (media->first == '[')
        return media->last == ']' && media->second && strchr("\"{[]-0123456789tfn", media->second);
    return false;
}

const char *tci_media_type(const struct tci_media *media, const char *name)
{
    const char *extension = extension_of(name), *type = NULL;
    bool text = !media->not_text && media->pending_length == 0;
    enum proof found = text ? TEXT : ANY;

    for (size_t i = 0; i < tci_array_size(signatures) && !type; i++) {
        /* "BZh" also begins a sentence. Of these kinds only PDF can be text from end to end. */
        if (text && signatures[i].id != PDF)
            continue;
        if (media->head_length >= signatures[i].offset + signatures[i].length &&
            memcmp(media->head + signatures[i].offset, signatures[i].bytes, signatures[i].length) ==
                0) {
            found = signatures[i].id;
            type = signatures[i].type;
        }
    }
    for (size_t i = 0; i < tci_array_size(extensions); i++)
        if (strcasecmp(extension, extensions[i].extension) == 0 && extensions[i].proof == found)
            return extensions[i].type;
    if (type)
        return type;
    if (text)
        return looks_like_json(media) ? "application/json" : "text/plain";
    return "application/octet-stream";
}
