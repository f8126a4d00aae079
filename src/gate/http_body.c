/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: where the body of an HTTP/1 request ends.
 * Trusts: the head (http.c). A byte is checked before it goes and need not be held back.
 * Invariant: chunks are written as in RFC 9112, with CR LF and without spaces. Every leniency here is
 * one that some server does not share, and the way to a request that was not checked.
 */
#include "gate/http.h"

#include <string.h>

enum {
    size_digits_max = 15, /* fits 64 bits */
    extension_max = 4096,
    trailer_max = 65536,
};

enum body_state {
    BODY_PLAIN,
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_END, /* the LF behind it */
    CHUNK_DATA,
    CHUNK_DATA_RETURN,
    CHUNK_DATA_END,
    TRAILER_START, /* of a line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LINE_END,
    TRAILER_END, /* the LF of the empty line */
    BODY_END,
};

void tci_http_body_start(struct tci_http_body *body, const struct tci_http_head *head)
{
    *body = (struct tci_http_body){ .left = head->is_chunked ? 0 : head->length };
    if (head->is_chunked)
        body->state = CHUNK_SIZE;
    else
        body->state = head->length > 0 ? BODY_PLAIN : BODY_END;
}

uint64_t tci_http_body_content(const struct tci_http_body *body)
{
    return body->state == BODY_PLAIN || body->state == CHUNK_DATA ? body->left : 0;
}

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

static bool is_text(uint8_t byte)
{
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

static const char *go(struct tci_http_body *body, enum body_state state)
{
    body->state = (int)state;
    return NULL;
}

static const char *take_size(struct tci_http_body *body, uint8_t byte)
{
    int digit = hex_value(byte);

    if (digit >= 0 && body->count < size_digits_max) {
        body->left = body->left << 4 | (uint64_t)digit;
        body->count++;
        return NULL;
    }
    if (body->count == 0 || (byte != '\r' && byte != ';'))
        return "has a chunk whose size cannot be read";
    body->count = 0;
    return go(body, byte == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_END);
}

static const char *take_extension(struct tci_http_body *body, uint8_t byte)
{
    if (byte == '\r')
        return go(body, CHUNK_SIZE_END);
    if (!is_text(byte) || ++body->count > extension_max)
        return "has a chunk whose extension cannot be read";
    return NULL;
}

static const char *take_line_end(struct tci_http_body *body, uint8_t byte, enum body_state next)
{
    if (byte != '\n')
        return "has a chunk or a trailer whose line does not end in CR LF";
    return go(body, next);
}

/* Some servers merge the trailer into the head: it must not bring what the head was checked for. */
static const char *check_trailer(const struct tci_http_body *body)
{
    static const char *const forbidden[] = { "host", "content-length", "transfer-encoding",
                                             "upgrade" };
    const struct tci_http_text name = { body->name, strlen(body->name) };

    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (tci_http_equals(name, forbidden[i]))
            return "has a trailer with a field that belongs in the head";
    return NULL;
}

/* Names that do not fit are none of those that matter. */
static const char *take_trailer_name(struct tci_http_body *body, uint8_t byte)
{
    size_t used = strlen(body->name);

    if (byte == ':' && used > 0) {
        const char *problem = check_trailer(body);
        return problem ? problem : go(body, TRAILER_VALUE);
    }
    if (!tci_http_is_token(byte))
        return "has a trailer with a line that is no field";
    if (used < sizeof body->name - 1)
        body->name[used] = (char)byte;
    return NULL;
}

static const char *take_trailer(struct tci_http_body *body, uint8_t byte)
{
    if (++body->count > trailer_max)
        return "has a trailer that is too long";
    if (body->state == TRAILER_VALUE) {
        if (byte == '\r')
            return go(body, TRAILER_LINE_END);
        return is_text(byte) ? NULL : "has a control byte in its trailer";
    }
    if (body->state == TRAILER_START) {
        if (byte == '\r')
            return go(body, TRAILER_END);
        memset(body->name, 0, sizeof body->name);
        body->state = TRAILER_NAME;
    }
    return take_trailer_name(body, byte);
}

static const char *take_byte(struct tci_http_body *body, uint8_t byte)
{
    switch ((enum body_state)body->state) {
    case CHUNK_SIZE:
        return take_size(body, byte);
    case CHUNK_EXTENSION:
        return take_extension(body, byte);
    case CHUNK_SIZE_END:
        body->count = 0;
        return take_line_end(body, byte, body->left > 0 ? CHUNK_DATA : TRAILER_START);
    case CHUNK_DATA_RETURN:
        return byte == '\r' ? go(body, CHUNK_DATA_END) : "has a chunk that is longer than its size";
    case CHUNK_DATA_END:
        return take_line_end(body, byte, CHUNK_SIZE);
    case TRAILER_START:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        return take_trailer(body, byte);
    case TRAILER_LINE_END:
        return take_line_end(body, byte, TRAILER_START);
    case TRAILER_END:
        return take_line_end(body, byte, BODY_END);
    case BODY_PLAIN:
    case CHUNK_DATA:
    case BODY_END:
        break;
    }
    return NULL;
}

enum tci_http_body_says tci_http_body_feed(struct tci_http_body *body, const uint8_t *bytes,
                                           size_t length, size_t *ret_used,
                                           const char **ret_problem)
{
    size_t at = 0;

    while (body->state != BODY_END && at < length) {
        if (body->state == BODY_PLAIN || body->state == CHUNK_DATA) {
            size_t part = length - at < body->left ? length - at : (size_t)body->left;
            at += part;
            body->left -= part;
            if (body->left == 0)
                body->state = body->state == BODY_PLAIN ? BODY_END : CHUNK_DATA_RETURN;
            continue;
        }
        *ret_problem = take_byte(body, bytes[at]);
        if (*ret_problem) {
            *ret_used = at;
            return TCI_HTTP_BODY_BAD;
        }
        at++;
    }
    *ret_used = at;
    return body->state == BODY_END ? TCI_HTTP_BODY_DONE : TCI_HTTP_BODY_MORE;
}
