/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: splitting and resolving references. Texts of any bytes; the result is as long as its parts. */
#include "json/schema_uri.h"

#include <string.h>
#include "base/buf.h"

static bool is_scheme_character(char c, bool first)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (!first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'));
}

static size_t span_until(const char *text, const char *end, const char *stops)
{
    const char *p = text;
    while (p < end && !(*p && strchr(stops, *p)))
        p++;
    return (size_t)(p - text);
}

static struct tci_uri_part take(const char **at, size_t length)
{
    struct tci_uri_part part = { *at, length };
    *at += length;
    return part;
}

struct tci_uri tci_uri_split(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    struct tci_uri uri = { .path = { text, 0 } };
    size_t scheme = 0;

    while (scheme < length && is_scheme_character(text[scheme], scheme == 0))
        scheme++;
    if (scheme > 0 && scheme < length && text[scheme] == ':') {
        uri.scheme = take(&at, scheme);
        at++;
    }
    if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
        at += 2;
        uri.authority = take(&at, span_until(at, end, "/?#"));
    }
    uri.path = take(&at, span_until(at, end, "?#"));
    if (at < end && *at == '?') {
        at++;
        uri.query = take(&at, span_until(at, end, "#"));
    }
    if (at < end) {
        at++;
        uri.fragment = (struct tci_uri_part){ at, (size_t)(end - at) };
    }
    return uri;
}

/* ---- resolving -------------------------------------------------------------------------------- */

static bool begins(const char *at, const char *end, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

static bool is_exactly(const char *at, const char *end, const char *text)
{
    return (size_t)(end - at) == strlen(text) && begins(at, end, text);
}

/* Drops the last segment of what stands behind `from`, and the slash before it. */
static void drop_segment(struct tci_buf *out, size_t from)
{
    while (out->length > from && out->data[out->length - 1] != '/')
        out->length--;
    if (out->length > from)
        out->length--;
}

/* "." and ".." segments, as in section 5.2.4. */
static void append_path(struct tci_buf *out, const char *at, size_t length)
{
    const char *end = at + length;
    size_t from = out->length;

    while (at < end && !out->no_memory && !out->too_large) {
        if (begins(at, end, "../")) {
            at += 3;
        } else if (begins(at, end, "./") || begins(at, end, "/./")) {
            at += 2;
        } else if (begins(at, end, "/../")) {
            at += 3;
            drop_segment(out, from);
        } else if (is_exactly(at, end, "/.")) {
            tci_buf_char(out, '/');
            return;
        } else if (is_exactly(at, end, "/..")) {
            drop_segment(out, from);
            tci_buf_char(out, '/');
            return;
        } else if (is_exactly(at, end, ".") || is_exactly(at, end, "..")) {
            return;
        } else {
            size_t segment = 1 + span_until(at + 1, end, "/");
            tci_buf_append(out, at, segment);
            at += segment;
        }
    }
}

static void append_part(struct tci_buf *out, const char *before, struct tci_uri_part part,
                        const char *after)
{
    if (!part.text)
        return;
    tci_buf_string(out, before);
    tci_buf_append(out, part.text, part.length);
    tci_buf_string(out, after);
}

/* The directory of the base's path, and the reference behind it. */
static void append_merged(struct tci_buf *out, const struct tci_uri *base,
                          struct tci_uri_part reference)
{
    struct tci_buf merged = TCI_BUF_INIT(out->maximum);
    size_t keep = base->path.length;

    while (keep > 0 && base->path.text[keep - 1] != '/')
        keep--;
    if (keep == 0 && base->authority.text)
        tci_buf_char(&merged, '/');
    tci_buf_append(&merged, base->path.text, keep);
    tci_buf_append(&merged, reference.text, reference.length);
    out->no_memory |= merged.no_memory;
    out->too_large |= merged.too_large;
    if (merged.data)
        append_path(out, merged.data, merged.length);
    tci_buf_free(&merged);
}

static void append_target(struct tci_buf *out, const struct tci_uri *base,
                          const struct tci_uri *reference)
{
    const struct tci_uri *from = reference->scheme.text ? reference : base;
    append_part(out, "", from->scheme, ":");
    if (reference->scheme.text || reference->authority.text)
        from = reference;
    append_part(out, "//", from->authority, "");
    if (from == reference || (reference->path.length > 0 && reference->path.text[0] == '/'))
        append_path(out, reference->path.text, reference->path.length);
    else if (reference->path.length > 0)
        append_merged(out, base, reference->path);
    else
        tci_buf_append(out, base->path.text, base->path.length);
    append_part(out, "?",
                from == reference || reference->path.length > 0 || reference->query.text
                    ? reference->query
                    : base->query,
                "");
}

char *tci_uri_resolve(struct tci_arena *arena, const char *base, const char *reference,
                      size_t length)
{
    struct tci_uri from = tci_uri_split(base, strlen(base));
    struct tci_uri to = tci_uri_split(reference, length);
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(2 * (strlen(base) + length) + 16);

    if (to.fragment.text)
        length = (size_t)(to.fragment.text - reference) - 1;
    if (!*base)
        tci_buf_append(&out, reference, length);
    else
        append_target(&out, &from, &to);
    if (tci_buf_check(&out, NULL) < 0)
        return NULL;
    return tci_arena_strndup(arena, out.data ? out.data : "", out.length);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *tci_uri_fragment(struct tci_arena *arena, const char *reference, size_t length,
                       size_t *ret_length, bool *ret_malformed)
{
    struct tci_uri_part part = tci_uri_split(reference, length).fragment;
    char *text, *to;

    if (!part.text)
        part.text = "";
    text = to = tci_arena_strndup(arena, part.text, part.length);
    *ret_malformed = false;
    for (size_t i = 0; text && i < part.length; i++) {
        char c = part.text[i];
        bool encoded = c == '%' && part.length - i >= 3 && hex(part.text[i + 1]) >= 0 &&
                       hex(part.text[i + 2]) >= 0;
        *ret_malformed |= c == '%' && !encoded;
        if (encoded) {
            c = (char)(hex(part.text[i + 1]) << 4 | hex(part.text[i + 2]));
            i += 2;
        }
        *to++ = c;
    }
    if (!text)
        return NULL;
    *to = '\0';
    *ret_length = (size_t)(to - text);
    return text;
}
